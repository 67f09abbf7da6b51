package validate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is the service of the samples: three OMENative components, engine and decoder grouped.
func sample(t testing.TB) *v1beta1.InferenceService {
	t.Helper()
	raw, err := os.ReadFile("../../config/samples/mistral-pd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := new(v1beta1.InferenceService)
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

type edit func(*v1beta1.InferenceService)

func groups(g ...v1beta1.RolloutGroup) edit {
	return func(s *v1beta1.InferenceService) { s.Spec.Rollout.Groups = g }
}

func group(c ...v1beta1.ComponentType) v1beta1.RolloutGroup {
	return v1beta1.RolloutGroup{Components: c}
}

func with(g v1beta1.RolloutGroup, change func(*v1beta1.RolloutGroup)) v1beta1.RolloutGroup {
	change(&g)
	return g
}

// lockstep puts engine and decoder into one rolling-update group.
func lockstep(s *v1beta1.InferenceService) {
	groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) { g.RollingUpdate = &v1beta1.GroupRollingUpdate{} }))(s)
}

func runnerOf(image string) *v1beta1.RunnerSpec {
	return &v1beta1.RunnerSpec{Container: corev1.Container{Name: "ome-container", Image: image}}
}

func annotate(key, value string) edit {
	return func(s *v1beta1.InferenceService) { s.Annotations = map[string]string{key: value} }
}

func pct(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
func num(n int32) *intstr.IntOrString  { v := intstr.FromInt32(n); return &v }

func rolling(surge, unavailable *intstr.IntOrString) *v1beta1.LifecycleSpec {
	return &v1beta1.LifecycleSpec{UpdateStrategy: &v1beta1.UpdateStrategy{
		RollingUpdate: &v1beta1.InstanceRollingUpdate{MaxSurge: surge, MaxUnavailable: unavailable},
	}}
}

const (
	engine  = v1beta1.EngineComponent
	decoder = v1beta1.DecoderComponent
	router  = v1beta1.RouterComponent
)

// serviceCases are judged on create, or as an update when they have a before. Their verdicts,
// word for word, are in testdata/service.golden.
var serviceCases = []struct {
	name   string
	before edit
	change edit
}{
	{name: "the sample", change: func(*v1beta1.InferenceService) {}},
	{name: "neither model nor runtime", change: func(s *v1beta1.InferenceService) { s.Spec.Model, s.Spec.Runtime = nil, nil }},
	{name: "model without runtime", change: func(s *v1beta1.InferenceService) { s.Spec.Runtime = nil }},
	{name: "leader without worker", change: func(s *v1beta1.InferenceService) { s.Spec.Engine.Leader = &v1beta1.LeaderSpec{} }},
	{name: "worker without leader", change: func(s *v1beta1.InferenceService) { s.Spec.Decoder.Worker = &v1beta1.WorkerSpec{} }},
	{name: "engine alone declares OMENative", change: func(s *v1beta1.InferenceService) {
		s.Spec.DeploymentMode = ""
		s.Spec.Engine.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: "OMENative"}
		s.Spec.Rollout = nil
	}},
	{name: "deploymentStrategy on OMENative warns", change: func(s *v1beta1.InferenceService) {
		s.Spec.Router.DeploymentStrategy = &appsv1.DeploymentStrategy{}
	}},
	{name: "deployment mode that is no mode warns", change: func(s *v1beta1.InferenceService) {
		s.Spec.Router.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: "Serverless"}
	}},
	{name: "deployment mode annotation misspelt", change: func(s *v1beta1.InferenceService) {
		s.Spec.Router.Annotations = map[string]string{"ome.io/deploymentmode": "OMENative"}
	}},
	{name: "mode that nothing runs", change: func(s *v1beta1.InferenceService) {
		s.Spec.Router.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: "VirtualDeployment"}
	}},

	{name: "group of a component that is none", change: groups(group(engine, "encoder"))},
	{name: "group of an undeclared component", change: func(s *v1beta1.InferenceService) { s.Spec.Decoder = nil }},
	{name: "component in two groups", change: groups(group(engine, decoder), group(decoder))},
	{name: "component twice in one group", change: groups(group(engine, engine))},
	{name: "group without OMENative", change: func(s *v1beta1.InferenceService) { s.Spec.DeploymentMode = "" }},
	{name: "canary without OMENative", change: func(s *v1beta1.InferenceService) {
		s.Spec.DeploymentMode = "RawDeployment"
		s.Spec.Rollout.Groups[0] = canaryGroup(engine, decoder)
	}},
	{name: "OMENative by the components' annotations", change: func(s *v1beta1.InferenceService) {
		s.Spec.DeploymentMode = ""
		s.Spec.Engine.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: "OMENative"}
		s.Spec.Decoder.Annotations = s.Spec.Engine.Annotations
	}},
	{name: "two groups that run together", change: groups(group(engine, decoder), group(router))},
	{name: "a sequence", change: groups(group(decoder), group(engine))},
	{name: "soak below zero", change: groups(with(group(decoder), func(g *v1beta1.RolloutGroup) { g.Soak = &metav1.Duration{Duration: -time.Minute} }), group(engine))},
	{name: "soak outside a sequence", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) {
		g.Soak = &metav1.Duration{Duration: 10 * time.Minute}
	}))},
	{name: "order", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) { g.Order = g.Components }))},
	{name: "canary", change: groups(canaryGroup(engine, decoder))},
	{name: "blueGreen spelt out", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) { g.BlueGreen = &v1beta1.GroupBlueGreen{} }))},
	{name: "rolling update with bad budgets", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) {
		g.RollingUpdate = &v1beta1.GroupRollingUpdate{MaxSurge: num(-1), MaxUnavailable: pct("1.5%")}
	}))},
	{name: "maintainRatio", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) { g.MaintainRatio = &v1beta1.MaintainRatio{} }))},
	{name: "a ratio that keeps nothing", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) {
		g.MaintainRatio = &v1beta1.MaintainRatio{Tolerance: ptr.To[int32](51)}
	}))},
	{name: "a new image for one member of a rolling-update group", before: lockstep, change: func(s *v1beta1.InferenceService) {
		lockstep(s)
		s.Spec.Engine.Runner = runnerOf("engine:v2")
	}},
	{name: "a label for one member of a rolling-update group", before: lockstep, change: func(s *v1beta1.InferenceService) {
		lockstep(s)
		s.Spec.Decoder.Labels = map[string]string{"tier": "gold"}
	}},
	{name: "new images for all members of a rolling-update group, and a count for one", before: lockstep, change: func(s *v1beta1.InferenceService) {
		lockstep(s)
		s.Spec.Engine.Runner, s.Spec.Decoder.Runner = runnerOf("engine:v2"), runnerOf("decoder:v2")
		s.Spec.Engine.MinReplicas = ptr.To(1)
	}},
	{name: "policyRef", change: groups(with(group(engine, decoder), func(g *v1beta1.RolloutGroup) {
		g.PolicyRef = &v1beta1.RolloutPolicyRef{Name: "p", Progression: v1beta1.ProgressionBlueGreen}
	}))},
	{name: "traffic by gateway", change: func(s *v1beta1.InferenceService) { s.Spec.Rollout.TrafficRouting = v1beta1.TrafficGatewayAPI }},

	{name: "first pairing token", before: func(*v1beta1.InferenceService) {}, change: func(s *v1beta1.InferenceService) { s.Spec.Rollout.PairingProtocol = "kv-v1" }},
	{name: "another pairing token in a group", before: func(s *v1beta1.InferenceService) { s.Spec.Rollout.PairingProtocol = "kv-v1" },
		change: func(s *v1beta1.InferenceService) { s.Spec.Rollout.PairingProtocol = "kv-v2" }},
	{name: "another pairing token without a group",
		before: func(s *v1beta1.InferenceService) { s.Spec.Rollout = &v1beta1.RolloutSpec{PairingProtocol: "kv-v1"} },
		change: func(s *v1beta1.InferenceService) { s.Spec.Rollout = &v1beta1.RolloutSpec{PairingProtocol: "kv-v2"} }},

	{name: "zero budgets of a component", change: func(s *v1beta1.InferenceService) { s.Spec.Engine.Lifecycle = rolling(num(0), pct("0%")) }},
	{name: "one zero budget", change: func(s *v1beta1.InferenceService) { s.Spec.Engine.Lifecycle = rolling(num(1), num(0)) }},
	{name: "bad budgets of a component", change: func(s *v1beta1.InferenceService) { s.Spec.Engine.Lifecycle = rolling(pct("25"), pct("101%")) }},
	{name: "partition, restarts and every strategy, in a group and alone", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.Lifecycle = &v1beta1.LifecycleSpec{
			RestartPolicy: v1beta1.RestartRecreateInstance,
			UpdateStrategy: &v1beta1.UpdateStrategy{
				Type: v1beta1.RecreatePod, RollingUpdate: &v1beta1.InstanceRollingUpdate{Partition: ptr.To[int32](1), MaxUnavailable: pct("50%")},
			},
		}
		s.Spec.Decoder.Lifecycle = &v1beta1.LifecycleSpec{UpdateStrategy: &v1beta1.UpdateStrategy{
			Type: v1beta1.InPlaceOnly, InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{MarkNotReadyDuringLifecycle: ptr.To(false)},
		}}
		s.Spec.Router.Lifecycle = &v1beta1.LifecycleSpec{UpdateStrategy: &v1beta1.UpdateStrategy{Type: v1beta1.InPlaceIfPossible}}
	}},
	{name: "zero in the budget that the strategy reads warns", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.Lifecycle = rolling(pct("0%"), num(1))
		s.Spec.Engine.Lifecycle.UpdateStrategy.Type = v1beta1.SurgeThenDrain
		s.Spec.Decoder.Lifecycle = rolling(nil, num(0))
		s.Spec.Decoder.Lifecycle.UpdateStrategy.Type = v1beta1.InPlaceIfPossible
		s.Spec.Router.Lifecycle = rolling(num(0), num(1))
		s.Spec.Router.Lifecycle.UpdateStrategy.Type = v1beta1.RecreatePod
	}},

	{name: "replicas below one", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.MinReplicas, s.Spec.Decoder.MinReplicas, s.Spec.Router.MaxReplicas = ptr.To(-1), ptr.To(0), ptr.To(-2)
	}},
	{name: "minimum above maximum", change: func(s *v1beta1.InferenceService) { s.Spec.Engine.MinReplicas = ptr.To(3) }},
	{name: "room to scale", change: func(s *v1beta1.InferenceService) { s.Spec.Engine.MaxReplicas = ptr.To(4) }},
	{name: "external scaler", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.MaxReplicas, s.Spec.Engine.Autoscaler = ptr.To(4), &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerExternal}
	}},
	{name: "HPA", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.Autoscaler = &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerHPA}
	}},
	{name: "every form of an HPA's metrics", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.Autoscaler = hpa(resourceMetric("cpu", utilization(70)), externalMetric("queue", average("10")),
			autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "rps"}, Target: average("5")}},
			autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
				DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "s"},
				Metric:          autoscalingv2.MetricIdentifier{Name: "rps"}, Target: average("5")}},
			autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
				Name: "memory", Container: "ome-container", Target: utilization(50)}})
	}},
	{name: "malformed metrics of an HPA", change: func(s *v1beta1.InferenceService) {
		both := resourceMetric("cpu", utilization(70))
		both.External = &autoscalingv2.ExternalMetricSource{}
		s.Spec.Engine.Autoscaler = hpa(autoscalingv2.MetricSpec{Type: "Guess"}, autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType},
			both, resourceMetric("", utilization(0)), resourceMetric("cpu", autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType}),
			resourceMetric("cpu", autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageUtilization: ptr.To[int32](5)}),
			externalMetric("", average("-1")),
			autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{}},
			autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Target: utilization(50)}},
			autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Target: utilization(50)}})
	}},
	{name: "unknown and missing autoscaler class", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.Autoscaler, s.Spec.Decoder.Autoscaler = &v1beta1.ComponentAutoscaler{Class: "VPA"}, &v1beta1.ComponentAutoscaler{}
	}},
	{name: "KEDA where it isn't", change: func(s *v1beta1.InferenceService) { s.Spec.Engine.Autoscaler = kedaBy("cron") }},
	{name: "KEDA was stored, where it isn't", before: func(s *v1beta1.InferenceService) { s.Spec.Engine.Autoscaler = kedaBy("cron") },
		change: func(s *v1beta1.InferenceService) { s.Spec.Engine.Autoscaler = kedaBy("prometheus") }},
	{name: "KEDA without triggers", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.Autoscaler = &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerKEDA}
		s.Spec.Decoder.Autoscaler = kedaBy()
	}},
	{name: "KEDA's idle count", change: func(s *v1beta1.InferenceService) {
		for i, e := range []*v1beta1.ComponentExtensionSpec{s.Spec.Extension(v1beta1.EngineComponent), s.Spec.Extension(v1beta1.DecoderComponent), s.Spec.Extension(v1beta1.RouterComponent)} {
			e.MinReplicas, e.MaxReplicas, e.Autoscaler = ptr.To(1), ptr.To(4), kedaBy("cron")
			e.Autoscaler.KEDA.IdleReplicaCount = ptr.To(int32(i - 1))
		}
	}},
	{name: "a block for another class warns", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.Autoscaler = hpa(resourceMetric("cpu", utilization(70)))
		s.Spec.Engine.Autoscaler.Class = v1beta1.AutoscalerNone
		s.Spec.Decoder.Autoscaler = kedaBy("cron")
		s.Spec.Decoder.Autoscaler.Class = v1beta1.AutoscalerExternal
	}},
	{name: "both disruption budgets", change: func(s *v1beta1.InferenceService) {
		s.Spec.Engine.MinAvailable, s.Spec.Engine.MaxUnavailable = num(1), num(1)
	}},
	{name: "coupled scaling", change: func(s *v1beta1.InferenceService) {
		s.Spec.ScalingPolicy = &v1beta1.ScalingPolicy{Mode: v1beta1.ScalingPinned}
	}},
	{name: "autoscaler class twice", change: func(s *v1beta1.InferenceService) {
		s.Annotations = map[string]string{v1beta1.AutoscalerClassAnnotation: "hpa"}
		s.Spec.Engine.Autoscaler = &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerNone}
	}},

	{name: "pinned runtime", change: func(s *v1beta1.InferenceService) {
		s.Spec.Runtime.AutoSync, s.Spec.Runtime.Revision = ptr.To(false), "cr-x-00000000"
	}},
	{name: "revision without a pin", change: func(s *v1beta1.InferenceService) { s.Spec.Runtime.Revision = "cr-x-00000000" }},
	{name: "everything else that isn't there yet", change: func(s *v1beta1.InferenceService) {
		s.Spec.ReplicaRefs = &v1beta1.ReplicaRefs{Engine: []string{"pool"}}
		s.Spec.Placement, s.Spec.Routing, s.Spec.Traffic = &v1beta1.PlacementSpec{}, &v1beta1.RoutingSpec{}, &v1beta1.TrafficSpec{}
		s.Spec.AcceleratorSelector, s.Spec.Engine.AcceleratorOverride = &v1beta1.AcceleratorSelector{}, &v1beta1.AcceleratorSelector{}
		s.Spec.Model.FineTunedWeights, s.Spec.Model.Overlays = []string{"w"}, []v1beta1.ModelOverlayRef{{Name: "o"}}
		s.Spec.Engine.Leader, s.Spec.Engine.Worker = &v1beta1.LeaderSpec{}, &v1beta1.WorkerSpec{}
		s.Spec.Engine.AutoscalerPolicyRef = &v1beta1.AutoscalerPolicyRef{Name: "p"}
		s.Spec.Engine.TimeoutSeconds, s.Spec.TTLSecondsAfterCreation = ptr.To[int64](5), ptr.To[int64](5)
		s.Spec.Engine.MinAvailable, s.Spec.Decoder.MaxUnavailable = num(1), num(1)
		s.Spec.Decoder.TopologySpread = v1beta1.TopologySpreadPreferred
	}},

	{name: "name of 33 characters", change: func(s *v1beta1.InferenceService) { s.Name = strings.Repeat("a", 33) }},
	{name: "name of 34 characters", change: func(s *v1beta1.InferenceService) { s.Name = strings.Repeat("a", 34) }},
	{name: "long name in another mode", change: func(s *v1beta1.InferenceService) {
		s.Name, s.Spec.DeploymentMode, s.Spec.Rollout = strings.Repeat("a", 34), "", nil
	}},
	{name: "long name stored before", before: func(s *v1beta1.InferenceService) { s.Name = strings.Repeat("a", 40) },
		change: func(s *v1beta1.InferenceService) {
			s.Name, s.Spec.Engine.MaxReplicas = strings.Repeat("a", 40), ptr.To(2)
		}},
	{name: "name that begins with a digit", change: func(s *v1beta1.InferenceService) { s.Name = "7b" }},

	{name: "pause", change: annotate(v1beta1.RolloutPausedAnnotation, "true")},
	{name: "freeze", change: annotate(v1beta1.RolloutPausedAnnotation, "freeze")},
	{name: "no pause", change: annotate(v1beta1.RolloutPausedAnnotation, "false")},
	{name: "pause of another spelling", change: annotate(v1beta1.RolloutPausedAnnotation, "True")},
	{name: "misspelt pause", change: annotate("ome.io/rollout-pause", "true")},
	{name: "pause two edits away", change: annotate("ome.io/rolout-pausd", "true")},
	{name: "three edits away", change: annotate("ome.io/rolut-pausd", "true")},
	{name: "key of somebody else", change: annotate("example.com/rollout-pause", "true")},
	{name: "misspelt migration request", change: annotate("ome.io/migration-request-v-0f8fad5b-d9cb-469f-a165-70867728950e", "{}")},
	{name: "migration request", change: annotate("ome.io/migration-request-v1-0f8fad5b-d9cb-469f-a165-70867728950e", "{}")},
	{name: "request to a replica on its service warns", change: annotate(v1beta1.ReleaseHeldRevisionAnnotation, "mistral-pd-engine-0a1b2c3d")},
	{name: "promote", change: annotate(v1beta1.RolloutPromoteAnnotation, "abcdef")},
	{name: "ready timeout that is none", change: annotate(v1beta1.RolloutReadyTimeoutAnnotation, "5")},
	{name: "short ready timeout warns", change: annotate(v1beta1.RolloutReadyTimeoutAnnotation, "30s")},
	{name: "history limit of zero", change: annotate(v1beta1.RevisionHistoryLimitAnnotation, "0")},
	{name: "stored misspelt pause stays", before: annotate("ome.io/rollout-pause", "true"), change: annotate("ome.io/rollout-pause", "true")},
	{name: "stored misspelt pause gets another value", before: annotate("ome.io/rollout-pause", "true"), change: annotate("ome.io/rollout-pause", "freeze")},
	{name: "stored promote is removed", before: annotate(v1beta1.RolloutPromoteAnnotation, "abcdef"), change: func(*v1beta1.InferenceService) {}},
	{name: "object on its way out", before: func(*v1beta1.InferenceService) {}, change: func(s *v1beta1.InferenceService) {
		s.DeletionTimestamp = &metav1.Time{}
		s.Annotations = map[string]string{"ome.io/rollout-pause": "true"}
	}},
	{name: "unrelated edit of a stored bad object",
		before: func(s *v1beta1.InferenceService) {
			s.Spec.Rollout.Groups = []v1beta1.RolloutGroup{group("encoder"), group(engine, engine)}
			s.Spec.Model = nil
		},
		change: func(s *v1beta1.InferenceService) {
			s.Spec.Rollout.Groups = []v1beta1.RolloutGroup{group("encoder"), group(engine, engine)}
			s.Spec.Model = nil
			s.Spec.Engine.Labels = map[string]string{"a": "b"}
		}},
}

func verdict(r Result) string {
	var b strings.Builder
	for _, p := range r.Errors {
		fmt.Fprintf(&b, "  denied: %s\n", p)
	}
	for _, p := range r.Warnings {
		fmt.Fprintf(&b, "  warned: %s\n", p)
	}
	if b.Len() == 0 {
		return "  admitted\n"
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s, run with -update if this is meant (-want +got):\n%s", path, diff)
	}
}

// TestNameOfAConvert: the length of a name counts from when a service becomes
// OMENative, not only from its birth.
func TestNameOfAConvert(t *testing.T) {
	long := strings.Repeat("n", 34)
	edits := map[string]edit{
		"raw":                       func(s *v1beta1.InferenceService) { s.Spec.DeploymentMode, s.Spec.Rollout = "", nil },
		"native":                    func(*v1beta1.InferenceService) {},
		"native, with another spec": func(s *v1beta1.InferenceService) { s.Spec.Engine.MinReplicas = ptr.To(1) },
		"native by a component": func(s *v1beta1.InferenceService) {
			s.Spec.DeploymentMode, s.Spec.Rollout = "", nil
			s.Spec.Router.Annotations = map[string]string{v1beta1.DeploymentModeAnnotation: "OMENative"}
		},
	}
	for _, test := range []struct {
		old, now string
		refused  bool
	}{
		{"", "raw", false},
		{"", "native", true},
		{"raw", "raw", false},
		{"raw", "native", true},
		{"raw", "native by a component", true},
		{"native", "native, with another spec", false},
		{"native by a component", "native", false},
		{"native", "raw", false},
	} {
		build := func(name string) *v1beta1.InferenceService {
			if name == "" {
				return nil
			}
			s := sample(t)
			s.Name = long
			edits[name](s)
			return s
		}
		got := ""
		for _, p := range InferenceService(build(test.now), build(test.old), Options{}).Errors {
			if p.Field == "metadata.name" {
				got = p.Message
			}
		}
		if (got != "") != test.refused || test.refused && !strings.Contains(got, long+"-decoder-rev-00000000-headless") {
			t.Errorf("from %q to %q: refused = %v: %s", test.old, test.now, got != "", got)
		}
	}
}

func TestInferenceServiceMessages(t *testing.T) {
	var b strings.Builder
	seen := map[string]bool{}
	for _, tc := range serviceCases {
		if seen[tc.name] {
			t.Fatalf("two cases are called %q", tc.name)
		}
		seen[tc.name] = true
		var old *v1beta1.InferenceService
		if tc.before != nil {
			old = sample(t)
			tc.before(old)
		}
		s := sample(t)
		tc.change(s)
		was, wasOld := s.DeepCopy(), old.DeepCopy()
		fmt.Fprintf(&b, "%s\n%s", tc.name, verdict(InferenceService(s, old, Options{})))
		if !reflect.DeepEqual(was, s) || !reflect.DeepEqual(wasOld, old) {
			t.Errorf("%s: the rules wrote to their input", tc.name)
		}
	}
	golden(t, "service.golden", b.String())
}

// Each code appears in some case, so that its message is pinned by the golden file.
func TestEveryCodeHasACase(t *testing.T) {
	found := map[string]bool{}
	for _, tc := range serviceCases {
		var old *v1beta1.InferenceService
		if tc.before != nil {
			old = sample(t)
			tc.before(old)
		}
		s := sample(t)
		tc.change(s)
		r := InferenceService(s, old, Options{})
		for _, p := range slices.Concat(r.Errors, r.Warnings) {
			found[p.Code] = true
			if p.Code != "" && !strings.HasSuffix(p.String(), " ("+p.Code+")") {
				t.Errorf("%q does not end in its code", p)
			}
		}
	}
	for _, code := range []string{
		CodeAutoscalerAnnotationConflict, CodeAutoscalerClassUnknown, CodeAutoscalerPolicyFeatureDisabled, CodeCanaryRequiresOMENative,
		CodeHPAMetricMalformed, CodeKedaIdleBelowMin, CodeKedaTriggersRequired,
		CodeCoordinationRequiresOMENative, CodeDuplicateComponentInCoordinationGroups, CodeGroupOrderingNotHonored,
		CodeInvalidComponentInCoordinationGroup, CodeInvalidDeploymentModeCombination, CodeInvalidDuration,
		CodeInvalidLeaderWorkerPairing, CodeInvalidRollingUpdateInteger, CodeInvalidRollingUpdatePercent,
		CodeInvalidScaleToZero, CodeOrderNotHonored, CodeOrphanCoordinationGroup, CodePairingProtocolChangeUncoordinated,
		CodeRolloutPolicyRefUnsupported, CodeRolloutTimeoutTooShort, CodeScalingModeNotImplemented, CodeSoakNotHonored,
		CodeZeroBudgetPacingUnstartable,
	} {
		if !found[code] {
			t.Errorf("no case for %s", code)
		}
	}
}

// Whatever is wrong with an object, storing it again unchanged is fine, and so is an edit of its
// labels. A new rule must never lock an old object.
func TestStoredObjectsStayEditable(t *testing.T) {
	for _, tc := range serviceCases {
		t.Run(tc.name, func(t *testing.T) {
			stored := sample(t)
			tc.change(stored)
			next := stored.DeepCopy()
			next.Labels = map[string]string{"team": "a"}
			if r := InferenceService(next, stored, Options{}); !r.OK() || len(r.Warnings) > 0 {
				t.Errorf("got\n%s", verdict(r))
			}
		})
	}
}

// The manager removes and reads annotations; spelling is none of its business.
func TestManagerIsNotAskedToSpell(t *testing.T) {
	old, s := sample(t), sample(t)
	s.Annotations = map[string]string{"ome.io/rollout-pause": "true"}
	if r := InferenceService(s, old, Options{FromManager: true}); !r.OK() {
		t.Error(r.Denial())
	}
}
