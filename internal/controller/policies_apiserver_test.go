package controller_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/controller"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/testenv"
)

// addPolicies adds the component, and returns what a manager that starts now finds.
func addPolicies(t *testing.T, c client.Client) bool {
	t.Helper()
	dir := filepath.Join(testenv.Root(), "config", "components", "rolloutpolicy")
	if _, err := envtest.InstallCRDs(config(t), envtest.CRDInstallOptions{Paths: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	if err := installFrom(config(t), filepath.Join(dir, "rbac.yaml")); err != nil {
		t.Fatal(err)
	}
	return served(t)
}

func served(t *testing.T) bool {
	t.Helper()
	mgr, err := ctrl.NewManager(asManager(config(t)), ctrl.Options{Scheme: scheme(t), HealthProbeBindAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	is, err := controller.PoliciesServed(t.Context(), mgr.GetRESTMapper(), mgr.GetLogger())
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// TestPolicies follows a service whose group takes its progression from a policy: it waits while there is
// none, goes on by itself when there is, drifts when the policy is edited under an open run, and takes the
// edit by a repin.
func TestPolicies(t *testing.T) {
	const namespace = "policies"
	c := newClient(t)
	create(t, c, namespaceNamed("ome"))
	if !addPolicies(t, c) {
		t.Fatal("the component is there and not found")
	}
	sent, _ := startManager(t, controller.Options{PoliciesServed: true})
	key := client.ObjectKey{Namespace: namespace, Name: "mistral-pd"}
	policyKey := client.ObjectKey{Namespace: namespace, Name: "slow"}
	t.Run("up", func(t *testing.T) {
		startKubelet(t, namespace) // until the service is up: the rolls of this test stay where they start
		sampleService(t, c, namespace)
		until(t, "the service to come up", func() (bool, string) { return settled(t, c, key) })
	})

	edit := func(change func(*v1beta1.InferenceService)) {
		t.Helper()
		until(t, "an edit of the service", func() (bool, string) {
			s := &v1beta1.InferenceService{}
			if err := c.Get(t.Context(), key, s); err != nil {
				return false, err.Error()
			}
			before := s.DeepCopy()
			change(s)
			err := c.Patch(t.Context(), s, client.MergeFrom(before))
			return err == nil, fmt.Sprint(err)
		})
	}
	service := func(what string, holds func(*v1beta1.InferenceService) bool) *v1beta1.InferenceService {
		t.Helper()
		s := &v1beta1.InferenceService{}
		until(t, what, func() (bool, string) {
			if err := c.Get(t.Context(), key, s); err != nil {
				return false, err.Error()
			}
			if s.Status.Rollout == nil {
				return false, "no rollout status"
			}
			return holds(s), fmt.Sprintf("%+v\n%s; %s", s.Status.Rollout.Groups, said(s, "RolloutPlanReady"), said(s, "RolloutPlanDrift"))
		})
		return s
	}
	policy := func(what string, holds func(*v1beta1.RolloutPolicy) bool) *v1beta1.RolloutPolicy {
		t.Helper()
		p := &v1beta1.RolloutPolicy{}
		until(t, what, func() (bool, string) {
			if err := c.Get(t.Context(), policyKey, p); err != nil {
				return false, err.Error()
			}
			return holds(p), fmt.Sprintf("%+v", p.Status)
		})
		return p
	}
	is := func(p *v1beta1.RolloutPolicy, kind, status, reason string) bool {
		got := apimeta.FindStatusCondition(p.Status.Conditions, kind)
		return got != nil && string(got.Status) == status && got.Reason == reason && got.ObservedGeneration == p.Generation
	}

	// Parked: the new revision is held, and nothing of it is created.
	edit(func(s *v1beta1.InferenceService) {
		s.Spec.Rollout.Groups[0].BlueGreen = nil
		s.Spec.Rollout.Groups[0].PolicyRef = &v1beta1.RolloutPolicyRef{Name: "slow", Progression: v1beta1.ProgressionRollingUpdate}
		for _, comp := range []v1beta1.ComponentType{v1beta1.EngineComponent, v1beta1.DecoderComponent} {
			s.Spec.Extension(comp).Labels = map[string]string{"roll": "1"}
		}
	})
	parked := service("the plan to park", func(s *v1beta1.InferenceService) bool {
		return strings.HasPrefix(said(s, "RolloutPlanReady"), "False PolicyNotFound") && s.Status.Components["engine"].Lifecycle.RolloutHold != nil
	})
	if g := parked.Status.Rollout.Groups[0]; g.Source != v1beta1.SourcePolicy || g.ObservedDigest != "" || parked.Status.Rollout.ActiveRun != nil ||
		parked.Status.Components["engine"].Lifecycle.RolloutHold.Gate != v1beta1.GatePlan {
		t.Errorf("parked: %+v, hold %+v", g, parked.Status.Components["engine"].Lifecycle.RolloutHold)
	}

	// Another kind than the group expects: it stays parked, and says so.
	slow := &v1beta1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "slow", Namespace: namespace}}
	slow.Spec.BlueGreen = &v1beta1.GroupBlueGreen{}
	create(t, c, slow)
	service("the mismatch", func(s *v1beta1.InferenceService) bool {
		return strings.HasPrefix(said(s, "RolloutPlanReady"), "False ProgressionMismatch")
	})
	body := func(surge int32) {
		t.Helper()
		p := &v1beta1.RolloutPolicy{}
		if err := c.Get(t.Context(), policyKey, p); err != nil {
			t.Fatal(err)
		}
		before := p.DeepCopy()
		p.Spec = v1beta1.RolloutPolicySpec{RollingUpdate: &v1beta1.GroupRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(surge))}}
		if err := c.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}

	// A broken body, past the webhook, which doesn't run here.
	body(-1)
	service("the broken policy", func(s *v1beta1.InferenceService) bool {
		return strings.HasPrefix(said(s, "RolloutPlanReady"), "False PolicyNotReady") && strings.Contains(said(s, "RolloutPlanReady"), "InvalidRollingUpdateInteger")
	})
	policy("the broken policy's status", func(p *v1beta1.RolloutPolicy) bool {
		return is(p, "Ready", "False", "BodyInvalid") && is(p, "InUse", "True", "Attached")
	})

	// Mended: the run opens without another edit of the service.
	body(1)
	judged := policy("the mended policy's status", func(p *v1beta1.RolloutPolicy) bool {
		return is(p, "Ready", "True", "BodyValid") && p.Status.ObservedGeneration == p.Generation
	})
	if judged.Status.AttachedGroups != 1 {
		t.Errorf("attached groups: %d", judged.Status.AttachedGroups)
	}
	open := service("the run to open", func(s *v1beta1.InferenceService) bool { return s.Status.Rollout.ActiveRun != nil })
	pinned := open.Status.Rollout.ActiveRun.Plan.Groups[0]
	if pinned.Source != v1beta1.SourcePolicy || pinned.PolicyRef == nil || pinned.PolicyRef.Name != "slow" || pinned.PolicyGeneration != judged.Generation ||
		pinned.PortableDigest != judged.Status.PortableDigest || pinned.Group.RollingUpdate == nil || pinned.Group.PolicyRef != nil {
		t.Errorf("pinned %+v, the policy has digest %s", pinned, judged.Status.PortableDigest)
	}

	// Edited under the run: that drifts and goes on as it was pinned, until a repin names the new digest.
	body(2)
	drifted := service("the drift", func(s *v1beta1.InferenceService) bool {
		return strings.HasPrefix(said(s, "RolloutPlanDrift"), "True PolicyNewerThanRun")
	})
	live := drifted.Status.Rollout.Groups[0].ObservedDigest
	if run := drifted.Status.Rollout.ActiveRun; run.RunID != open.Status.Rollout.ActiveRun.RunID || run.Plan.Groups[0].PortableDigest != pinned.PortableDigest || live == pinned.PortableDigest {
		t.Errorf("after the edit the run has %+v, the live digest is %s", run.Plan.Groups[0], live)
	}
	edit(func(s *v1beta1.InferenceService) {
		s.Annotations = map[string]string{v1beta1.RolloutRepinAnnotation: plan.PlanDigest([]string{live})}
	})
	repinned := service("the repin", func(s *v1beta1.InferenceService) bool {
		return strings.HasPrefix(said(s, "RolloutPlanDrift"), "False InSync") && s.Annotations[v1beta1.RolloutRepinAnnotation] == ""
	})
	if run := repinned.Status.Rollout.ActiveRun; run == nil || run.RunID != open.Status.Rollout.ActiveRun.RunID || run.Plan.Groups[0].PortableDigest != live ||
		run.Plan.Groups[0].PolicyGeneration <= pinned.PolicyGeneration {
		t.Errorf("after the repin: %+v", run)
	}

	// A progression of the group's own outranks the policy, which is still referred to.
	edit(func(s *v1beta1.InferenceService) {
		s.Spec.Rollout.Groups[0].RollingUpdate = &v1beta1.GroupRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(2))}
	})
	service("the shadowed policy", func(s *v1beta1.InferenceService) bool {
		g := s.Status.Rollout.Groups[0]
		return g.Source == v1beta1.SourceInline && g.ShadowedPolicyRef != nil && g.ShadowedPolicyRef.WouldPinDigest == live && g.ObservedDigest == live
	})
	before := sent.count()
	edit(func(s *v1beta1.InferenceService) { s.Spec.Rollout.Groups[0].PolicyRef = nil })
	policy("the last reference to go", func(p *v1beta1.RolloutPolicy) bool {
		return is(p, "InUse", "False", "NoConsumers") && p.Status.AttachedGroups == 0
	})
	for _, request := range sent.since(before) {
		if strings.Contains(request, "/rolloutpolicies/") && !strings.Contains(request, "/status") {
			t.Errorf("the manager sent %s", request)
		}
	}
}

// said is a condition of a service in words.
func said(s *v1beta1.InferenceService, kind string) string {
	for _, c := range s.Status.Conditions {
		if string(c.Type) == kind {
			return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
		}
	}
	return kind + " is absent"
}

// TestSettingsAtStart: what is fixed at the start is read under the manager's own rights.
func TestSettingsAtStart(t *testing.T) {
	c := newClient(t)
	create(t, c, namespaceNamed("ome"), namespaceNamed("start"))
	mgr, err := ctrl.NewManager(asManager(config(t)), ctrl.Options{Scheme: scheme(t), HealthProbeBindAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := controller.StoredSettings(t.Context(), mgr.GetAPIReader(), "ome", mgr.GetLogger())
	if err != nil || set.Rollout.MaxPinnedPlanBytes != 16384 {
		t.Errorf("nothing set: %d, %v", set.Rollout.MaxPinnedPlanBytes, err)
	}
	// Of another namespace, so that the managers of other tests don't see it.
	create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "start", Name: "inferenceservice-config"}, Data: map[string]string{"rollout": `{"maxPinnedPlanBytes":7}`}})
	set, err = controller.StoredSettings(t.Context(), c, "start", mgr.GetLogger())
	if err != nil || set.Rollout.MaxPinnedPlanBytes != 7 {
		t.Errorf("7 is set: %d, %v", set.Rollout.MaxPinnedPlanBytes, err)
	}
}
