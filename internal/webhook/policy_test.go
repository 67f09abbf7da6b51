package webhook

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/testenv"
)

// addPolicies adds the component to a default install, as an administrator would.
func (c *cluster) addPolicies(t *testing.T) {
	t.Helper()
	const dir = "config/components/rolloutpolicy/"
	if _, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(testenv.Root(), dir)}}); err != nil {
		t.Fatal(err)
	}
	for _, obj := range manifests(t, dir+"rbac.yaml") {
		if err := c.admin.Create(t.Context(), obj); err != nil {
			t.Fatalf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
	hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifests(t, dir+"webhook.yaml")[0].Object, hooks); err != nil {
		t.Fatal(err)
	}
	if hooks.Name != PolicyConfigurationName || len(hooks.Webhooks) != 1 || hooks.Webhooks[0].Name != PolicyWebhookName ||
		*hooks.Webhooks[0].ClientConfig.Service.Path != PolicyPath {
		t.Fatalf("the shipped webhook is %s in %s", hooks.Webhooks[0].Name, hooks.Name)
	}
	install := c.env.WebhookInstallOptions
	hooks.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL:      ptr.To("https://" + net.JoinHostPort(install.LocalServingHost, strconv.Itoa(install.LocalServingPort)) + PolicyPath),
		CABundle: install.LocalServingCAData,
	}
	if err := c.admin.Create(t.Context(), hooks); err != nil {
		t.Fatal(err)
	}
}

// warnings keeps what the API server warned of.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { *w = append(*w, text) }

func rolloutPolicy(t *testing.T, name, spec string) *v1beta1.RolloutPolicy {
	t.Helper()
	p := &v1beta1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

// referring is a service whose engine and decoder move by a policy.
func referring(t *testing.T, name, policy string, progression v1beta1.Progression) *v1beta1.InferenceService {
	s := sample[v1beta1.InferenceService](t, "mistral-pd.yaml")
	s.Name = name
	s.Spec.Rollout.Groups[0].BlueGreen, s.Spec.Rollout.Groups[0].RollingUpdate = nil, nil
	s.Spec.Rollout.Groups[0].PolicyRef = &v1beta1.RolloutPolicyRef{Name: policy, Progression: progression}
	return s
}

// testPolicies adds the component to the install that the other tests used. The manager runs under
// its own account, so that this also shows that the component's rights suffice.
func testPolicies(t *testing.T, c *cluster) {
	ctx := t.Context()
	const (
		service = `admission webhook "inferenceservice.ome-webhook-server.validator" denied the request: `
		policy  = `admission webhook "rolloutpolicy.ome-webhook-server.validator" denied the request: `
	)
	stop := c.serve(t)
	err := c.admin.Create(ctx, referring(t, "early", "slow", v1beta1.ProgressionRollingUpdate))
	if err == nil || !strings.HasPrefix(err.Error(), service) || !strings.HasSuffix(err.Error(), "(RolloutPolicyRefUnsupported)") {
		t.Errorf("a reference in a default install: %v", err)
	}
	stop()
	c.addPolicies(t)
	c.serveAs(t, c.asManager(), Options{ManagerUser: ManagerUser("ome"), PoliciesServed: true, MaxPlanBytes: 200})

	var warned warnings
	config := rest.CopyConfig(c.config)
	config.WarningHandler = &warned
	admin, err := client.New(config, client.Options{Scheme: c.scheme})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("rights", func(t *testing.T) {
		for _, a := range []struct {
			group, resource, subresource, verb, namespace, name string
			want                                                bool
		}{
			{"ome.io", "rolloutpolicies", "", "list", "", "", true},
			{"ome.io", "rolloutpolicies", "", "watch", "", "", true},
			{"ome.io", "rolloutpolicies", "status", "patch", namespace, "slow", true},
			{"", "namespaces", "", "get", "", namespace, true},
			{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "update", "", PolicyConfigurationName, true},
			{"ome.io", "rolloutpolicies", "", "patch", namespace, "slow", false},
			{"ome.io", "rolloutpolicies", "", "create", namespace, "", false},
			{"ome.io", "rolloutpolicies", "", "delete", namespace, "slow", false},
			{"", "namespaces", "", "list", "", "", false},
			{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "update", "", "another", false},
		} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: ManagerUser("ome"), Groups: []string{"system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: a.group, Resource: a.resource, Subresource: a.subresource, Verb: a.verb, Namespace: a.namespace, Name: a.name,
				},
			}}
			if err := c.admin.Create(ctx, review); err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed != a.want {
				t.Errorf("%+v: allowed %v", a, review.Status.Allowed)
			}
		}
	})

	t.Run("bodies", func(t *testing.T) {
		for name, tc := range map[string]struct{ spec, refusal string }{
			"green":     {`{blueGreen: {}}`, ""},
			"steps":     {`{canary: {steps: [{capacity: "25%", traffic: 25, pause: {}}, {capacity: "100%", traffic: 100}]}}`, ""},
			"empty":     {`{}`, "exactly one of canary, blueGreen, or rollingUpdate must be set"},
			"both":      {`{blueGreen: {}, rollingUpdate: {}}`, "exactly one of canary, blueGreen, or rollingUpdate must be set"},
			"standing":  {`{rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}`, "(ZeroBudgetPacingUnstartable)"},
			"counted":   {`{canary: {steps: [{capacity: 1, traffic: 10}, {capacity: "100%", traffic: 100}]}}`, "(RolloutPolicyInvalid)"},
			"addressed": {`{canary: {prometheus: {serverAddress: "http://p"}, steps: [{capacity: "100%", traffic: 100}]}}`, policy + "spec.canary.prometheus.serverAddress is not allowed in a policy body"},
			"large": {`{canary: {steps: [{capacity: "10%", traffic: 10, pause: {}}, {capacity: "20%", traffic: 20, pause: {}}, {capacity: "30%", traffic: 30, pause: {}}, {capacity: "40%", traffic: 40, pause: {}}, {capacity: "100%", traffic: 100}]}}`,
				"rollout.maxPinnedPlanBytes allows 200; use fewer steps or shorter queries (PlanTooLarge)"},
		} {
			err := admin.Create(ctx, rolloutPolicy(t, name, tc.spec))
			if (err == nil) != (tc.refusal == "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	slow := rolloutPolicy(t, "slow", `{rollingUpdate: {maxSurge: 1}}`)
	if err := admin.Create(ctx, slow); err != nil {
		t.Fatal(err)
	}
	patch := func(text string) error {
		return admin.Patch(ctx, slow.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	const (
		two   = `{"spec":{"rollingUpdate":{"maxSurge":2}}}`
		green = `{"spec":{"rollingUpdate":null,"blueGreen":{}}}`
		back  = `{"spec":{"rollingUpdate":{"maxSurge":1},"blueGreen":null}}`
	)

	t.Run("nobody refers to it", func(t *testing.T) {
		warned = nil
		for _, text := range []string{two, green, back} {
			if err := patch(text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		if len(warned) > 0 {
			t.Errorf("warned %q", warned)
		}
	})

	chat := referring(t, "chat", "slow", v1beta1.ProgressionRollingUpdate)
	other := referring(t, "code", "green", v1beta1.ProgressionBlueGreen)
	for _, s := range []*v1beta1.InferenceService{chat, other} {
		if err := admin.Create(ctx, s); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
	}
	reserved := referring(t, "reserved", "slow", v1beta1.ProgressionRollingUpdate)
	reserved.Spec.Rollout.Groups[0].PolicyRef.Kind = "ClusterRolloutPolicy"
	if err := admin.Create(ctx, reserved); err == nil || !strings.Contains(err.Error(), `groups[0].policyRef.kind: "ClusterRolloutPolicy" is reserved`) {
		t.Errorf("a reserved kind: %v", err)
	}

	const refusal = policy + `RolloutPolicy "slow" is referenced by 1 InferenceService(s): chat; remove the refs first, or set the ome.io/allow-in-use-delete="true" annotation to force deletion`
	t.Run("edit in use", func(t *testing.T) {
		warned = nil
		if err := patch(two); err != nil || len(warned) != 1 || !strings.Contains(warned[0], "1 InferenceService(s) refer to: chat") {
			t.Errorf("%v, warned %q", err, warned)
		}
		if err := patch(green); err == nil || !strings.HasPrefix(err.Error(), policy+"spec: rollingUpdate to blueGreen") || !strings.HasSuffix(err.Error(), "(RolloutPolicyInvalid)") {
			t.Errorf("to another kind: %v", err)
		}
		warned = nil
		if err := patch(`{"metadata":{"labels":{"team":"a"}}}`); err != nil || len(warned) > 0 {
			t.Errorf("a label: %v, warned %q", err, warned)
		}
		if err := patch(`{"metadata":{"annotations":{"ome.io/allow-in-use-deletes":"true"}}}`); err == nil || !strings.Contains(err.Error(), "did you mean ome.io/allow-in-use-delete?") {
			t.Errorf("a misspelt annotation: %v", err)
		}
	})
	t.Run("delete in use", func(t *testing.T) {
		if err := admin.Delete(ctx, slow.DeepCopy()); err == nil || err.Error() != refusal {
			t.Errorf("got  %v\nwant %s", err, refusal)
		}
		if err := patch(`{"metadata":{"annotations":{"ome.io/allow-in-use-delete":"true"}}}`); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(ctx, slow.DeepCopy()); err != nil {
			t.Errorf("after it was allowed: %v", err)
		}
	})
	t.Run("delete after the last reference", func(t *testing.T) {
		again := rolloutPolicy(t, "slow", `{rollingUpdate: {maxSurge: 1}}`)
		if err := admin.Create(ctx, again); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(ctx, again.DeepCopy()); err == nil || err.Error() != refusal {
			t.Errorf("while chat refers to it: %v", err)
		}
		if err := admin.Delete(ctx, chat); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(ctx, again); err != nil {
			t.Errorf("after chat is gone: %v", err)
		}
	})
	t.Run("namespace on its way out", func(t *testing.T) {
		// No controller runs here, so the namespace stays in this state for as long as the test wants.
		going := &corev1.Namespace{}
		if err := admin.Get(ctx, client.ObjectKey{Name: namespace}, going); err != nil {
			t.Fatal(err)
		}
		policy := &v1beta1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "green", Namespace: namespace}}
		if err := admin.Delete(ctx, policy.DeepCopy()); !apierrors.IsForbidden(err) {
			t.Errorf("before: %v", err)
		}
		if err := admin.Delete(ctx, going); err != nil {
			t.Fatal(err)
		}
		if err := admin.Delete(ctx, policy); err != nil {
			t.Errorf("the policy of a namespace that is going: %v", err)
		}
	})
}
