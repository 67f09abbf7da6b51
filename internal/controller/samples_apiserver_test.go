package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
	"ome.io/ome/internal/settings"
	"ome.io/ome/internal/testenv"
)

// TestAnalysisOnAnAPIServer: a metrics server decides two canaries, one each way. Its token can be
// read only once somebody has bound the right, and until then nothing is decided.
func TestAnalysisOnAnAPIServer(t *testing.T) {
	const namespace, token = "analysis", "s3cr3t-of-analysis"
	var errorRate atomic.Value
	errorRate.Store("1")
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, errorRate.Load())
	}))
	defer prometheus.Close()

	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	bound := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ome", Name: settings.ConfigMapName}, Data: map[string]string{
		"metricProviders": fmt.Sprintf(`{"here":{"serverAddress":%q,"authSecretRef":{"name":"prom","key":"token"}}}`, prometheus.URL),
	}}
	create(t, c, bound)
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), bound); err != nil { // the test's own context is over
			t.Error(err)
		}
	})
	isvc := sampleService(t, c, namespace)
	key := client.ObjectKeyFromObject(isvc)
	startKubelet(t, namespace)
	startManager(t, controller.Options{})
	until(t, "the service to come up", func() (bool, string) { return settled(t, c, key) })

	edit := func(what string, change func(*v1beta1.InferenceServiceSpec)) {
		until(t, what, func() (bool, string) {
			if err := c.Get(t.Context(), key, isvc); err != nil {
				return false, err.Error()
			}
			change(&isvc.Spec)
			err := c.Update(t.Context(), isvc)
			return err == nil, fmt.Sprint(err)
		})
	}
	image := func(tag string) func(*v1beta1.InferenceServiceSpec) {
		return func(s *v1beta1.InferenceServiceSpec) {
			s.Engine.Runner = &v1beta1.RunnerSpec{Container: corev1.Container{Name: "ome-container", Image: "lab.ome.io/engine:" + tag}}
			s.Decoder.Runner = &v1beta1.RunnerSpec{Container: corev1.Container{Name: "ome-container", Image: "lab.ome.io/decoder:" + tag}}
		}
	}
	canary := func() (v1beta1.ComponentStatus, string) {
		if err := c.Get(t.Context(), key, isvc); err != nil {
			t.Fatal(err)
		}
		s := isvc.Status.Components[v1beta1.EngineComponent]
		return s, fmt.Sprintf("%s %+v", s.RolloutPhase, s.Canary)
	}

	edit("the canary to be stored", func(s *v1beta1.InferenceServiceSpec) {
		s.Rollout.Groups[0].Canary = &v1beta1.GroupCanary{
			Prometheus: &v1beta1.AnalysisPrometheus{ProviderRef: &v1beta1.AnalysisProviderRef{Name: "here"}},
			Steps: []v1beta1.RolloutGroupStep{{Capacity: intstr.FromString("100%"), Traffic: 100, Analysis: &v1beta1.RolloutAnalysis{
				Interval: metav1.Duration{Duration: time.Second}, FailureLimit: 2,
				Metrics: []v1beta1.AnalysisMetric{{Name: "error-rate", Query: `errors{revision_hash="{{.CanaryRevision}}"}`, Operator: v1beta1.MetricLT, Threshold: "0.01"}},
			}}},
		}
		image("v2")(s)
	})
	until(t, "a sample without a token", func() (bool, string) {
		s, what := canary()
		return s.Canary != nil && len(s.Canary.MetricResults) == 1 && s.Canary.MetricResults[0].Name == "auth" &&
			strings.Contains(s.Canary.MetricResults[0].Message, "forbidden"), what
	})

	create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prom"}, StringData: map[string]string{"token": token}})
	if err := installFrom(config(t), filepath.Join(testenv.Root(), "config", "rbac", "metric-tokens.yaml")); err != nil {
		t.Fatal(err)
	}
	create(t, c, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ome-metric-tokens"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ome-metric-tokens"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ome", Name: "ome-controller-manager"}},
	})
	until(t, "two failures to roll the canary back", func() (bool, string) {
		s, what := canary()
		return s.RolloutPhase == v1beta1.RolloutRolledBack, what
	})
	s, what := canary()
	want := `errors{revision_hash="` + s.Canary.CanaryRevisionHash + `"}`
	if r := s.Canary.MetricResults; len(r) != 1 || r[0].Passed || r[0].Value != "1" || r[0].Query != want || r[0].Time == nil || s.Canary.AnalysisFailedChecks != 2 {
		t.Errorf("the verdict isn't in the status: %s", what)
	}
	for comp, image := range map[v1beta1.ComponentType]string{v1beta1.EngineComponent: "lab.ome.io/engine:v1", v1beta1.DecoderComponent: "lab.ome.io/decoder:v1"} {
		until(t, "only old pods of "+string(comp), func() (bool, string) {
			got := images(t, c, namespace, comp)
			return slices.Equal(got, []string{image}), fmt.Sprint(got)
		})
	}

	errorRate.Store("0")
	edit("the next image to be stored", image("v3"))
	until(t, "a passing sample to complete the canary", func() (bool, string) {
		s, what := canary()
		return s.RolloutPhase == v1beta1.RolloutStable && slices.Equal(images(t, c, namespace, v1beta1.EngineComponent), []string{"lab.ome.io/engine:v3"}), what
	})
	if _, what := canary(); strings.Contains(what, token) {
		t.Errorf("the token is in the status: %s", what)
	}
}
