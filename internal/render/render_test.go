package render

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func readSample[T any](t testing.TB, name string) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../config/samples", name))
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.UnmarshalStrict(raw, out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func sampleInput(t testing.TB, service string, c v1beta1.ComponentType) Input {
	t.Helper()
	isvc := readSample[v1beta1.InferenceService](t, service)
	runtime, err := PickRuntime(isvc.Spec.Runtime, readSample[v1beta1.ClusterServingRuntime](t, "runtime.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	model, err := PickModel(isvc.Spec.Model, readSample[v1beta1.ClusterBaseModel](t, "model.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Input{
		Service: isvc, Component: c,
		Runtime: runtime.Spec, RuntimeName: runtime.Name, RuntimeKind: runtime.Kind,
		Model: model.Spec, ModelName: model.Name,
		Settings: config.Default(),
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s, run with -update if this is meant (-want +got):\n%s", path, diff)
	}
}

// The samples, rendered in full: what a person gets from the four files of config/samples.
func TestRenderSamples(t *testing.T) {
	for _, service := range []string{"mistral-pd.yaml", "mistral-pd-v2.yaml"} {
		for _, c := range v1beta1.Components() {
			name := strings.TrimSuffix(service, ".yaml") + "-" + string(c) + ".yaml"
			t.Run(name, func(t *testing.T) {
				got, err := Render(sampleInput(t, service, c))
				if err != nil {
					t.Fatal(err)
				}
				raw, err := yaml.Marshal(got)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, name, raw)
			})
		}
	}
}

// A new image in the sample changes engine and decoder, and leaves the router's template alone.
func TestSampleImageChangeReachesGroupOnly(t *testing.T) {
	for _, c := range v1beta1.Components() {
		before, err := Render(sampleInput(t, "mistral-pd.yaml", c))
		if err != nil {
			t.Fatal(err)
		}
		after, err := Render(sampleInput(t, "mistral-pd-v2.yaml", c))
		if err != nil {
			t.Fatal(err)
		}
		if same := cmp.Equal(before.Runners, after.Runners); same != (c == v1beta1.RouterComponent) {
			t.Errorf("%s: same template: %v", c, same)
		}
	}
}

func engine(change func(*v1beta1.EngineSpec)) *v1beta1.EngineSpec {
	e := &v1beta1.EngineSpec{}
	change(e)
	return e
}

func runner(change func(*corev1.Container)) *v1beta1.RunnerSpec {
	r := &v1beta1.RunnerSpec{}
	change(&r.Container)
	return r
}

// renderEngine lays own over base for a service "chat".
func renderEngine(t *testing.T, own, base *v1beta1.EngineSpec) corev1.PodTemplateSpec {
	t.Helper()
	got, err := Render(Input{
		Service: &v1beta1.InferenceService{
			ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "demo"},
			Spec:       v1beta1.InferenceServiceSpec{Engine: own},
		},
		Component: v1beta1.EngineComponent,
		Runtime:   &v1beta1.ServingRuntimeSpec{EngineConfig: base}, RuntimeName: "rt", RuntimeKind: v1beta1.ClusterServingRuntimeKind,
		Settings: config.Default(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return got.Runners[0].Template
}

func TestMerge(t *testing.T) {
	main := func(t corev1.PodTemplateSpec) corev1.Container { return t.Spec.Containers[0] }
	image := runner(func(c *corev1.Container) { c.Name, c.Image = "ome-container", "a:1" })
	tests := map[string]struct {
		own, base *v1beta1.EngineSpec
		got       func(corev1.PodTemplateSpec) any
		want      any
	}{
		"scalar replaces": {
			own:  engine(func(e *v1beta1.EngineSpec) { e.Runner = runner(func(c *corev1.Container) { c.Image = "a:2" }) }),
			base: engine(func(e *v1beta1.EngineSpec) { e.Runner = image }),
			got:  func(t corev1.PodTemplateSpec) any { return main(t).Image },
			want: "a:2",
		},
		"empty value counts as unset": {
			own:  engine(func(e *v1beta1.EngineSpec) { e.ServiceAccountName = "" }),
			base: engine(func(e *v1beta1.EngineSpec) { e.Runner, e.ServiceAccountName = image, "sa" }),
			got:  func(t corev1.PodTemplateSpec) any { return t.Spec.ServiceAccountName },
			want: "sa",
		},
		"a label without a value chooses nodes": {
			own:  engine(func(e *v1beta1.EngineSpec) { e.NodeSelector = map[string]string{"node-role.kubernetes.io/gpu": ""} }),
			base: engine(func(e *v1beta1.EngineSpec) { e.Runner, e.NodeSelector = image, map[string]string{"zone": "a"} }),
			got:  func(t corev1.PodTemplateSpec) any { return t.Spec.NodeSelector },
			want: map[string]string{"node-role.kubernetes.io/gpu": "", "zone": "a"},
		},
		"explicit false replaces true": {
			own:  engine(func(e *v1beta1.EngineSpec) { e.AutomountServiceAccountToken = ptr.To(false) }),
			base: engine(func(e *v1beta1.EngineSpec) { e.Runner, e.AutomountServiceAccountToken = image, ptr.To(true) }),
			got:  func(t corev1.PodTemplateSpec) any { return *t.Spec.AutomountServiceAccountToken },
			want: false,
		},
		"args and command replace": {
			own: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) { c.Args = []string{"--b"} })
			}),
			base: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Name, c.Image, c.Args, c.Command = "ome-container", "a:1", []string{"--a", "--c"}, []string{"run"}
				})
			}),
			got:  func(t corev1.PodTemplateSpec) any { return []any{main(t).Args, main(t).Command} },
			want: []any{[]string{"--b"}, []string{"run"}},
		},
		"tolerations replace": {
			own:  engine(func(e *v1beta1.EngineSpec) { e.Tolerations = []corev1.Toleration{{Key: "b"}} }),
			base: engine(func(e *v1beta1.EngineSpec) { e.Runner, e.Tolerations = image, []corev1.Toleration{{Key: "a"}} }),
			got:  func(t corev1.PodTemplateSpec) any { return t.Spec.Tolerations },
			want: []corev1.Toleration{{Key: "b"}},
		},
		"env merges by name and a choice of source replaces the other": {
			own: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Env = []corev1.EnvVar{{Name: "TWO", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}, {Name: "THREE", Value: "3"}}
				})
			}),
			base: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Name, c.Image, c.Env = "ome-container", "a:1", []corev1.EnvVar{{Name: "ONE", Value: "1"}, {Name: "TWO", Value: "2"}}
				})
			}),
			got: func(t corev1.PodTemplateSpec) any { return main(t).Env },
			want: []corev1.EnvVar{
				{Name: "ONE", Value: "1"},
				{Name: "TWO", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
				{Name: "THREE", Value: "3"},
			},
		},
		"ports merge by number": {
			own: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP, Name: "web"}, {ContainerPort: 81}}
				})
			}),
			base: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Name, c.Image, c.Ports = "ome-container", "a:1", []corev1.ContainerPort{{ContainerPort: 80, Name: "http", HostIP: "h"}}
				})
			}),
			got:  func(t corev1.PodTemplateSpec) any { return main(t).Ports },
			want: []corev1.ContainerPort{{ContainerPort: 80, Name: "web", Protocol: corev1.ProtocolTCP, HostIP: "h"}, {ContainerPort: 81}},
		},
		"volume of another source replaces, of the same one merges": {
			own: engine(func(e *v1beta1.EngineSpec) {
				e.Volumes = []corev1.Volume{
					{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					{Name: "b", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "two"}}},
				}
			}),
			base: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = image
				e.Volumes = []corev1.Volume{
					{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}},
					{Name: "b", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "one", DefaultMode: ptr.To[int32](256)}}},
				}
			}),
			got: func(t corev1.PodTemplateSpec) any { return t.Spec.Volumes },
			want: []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "two", DefaultMode: ptr.To[int32](256)}}},
			},
		},
		"probe handler replaces and its timing merges": {
			own: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}}
				})
			}),
			base: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Name, c.Image = "ome-container", "a:1"
					c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 7, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}}
				})
			}),
			got:  func(t corev1.PodTemplateSpec) any { return main(t).ReadinessProbe },
			want: &corev1.Probe{PeriodSeconds: 7, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}},
		},
		"a container by the runner's name patches the runner": {
			own: engine(func(e *v1beta1.EngineSpec) {
				e.Containers = []corev1.Container{{Name: "ome-container", Image: "a:3"}, {Name: "side", Image: "s"}}
			}),
			base: engine(func(e *v1beta1.EngineSpec) { e.Runner = image }),
			got: func(t corev1.PodTemplateSpec) any {
				return []string{t.Spec.Containers[0].Image, t.Spec.Containers[1].Image}
			},
			want: []string{"a:3", "s"},
		},
		"the main container comes first": {
			own:  engine(func(e *v1beta1.EngineSpec) { e.Runner = image }),
			base: engine(func(e *v1beta1.EngineSpec) { e.Containers = []corev1.Container{{Name: "side", Image: "s"}} }),
			got:  func(t corev1.PodTemplateSpec) any { return main(t).Name },
			want: "ome-container",
		},
		"resources merge by name": {
			own: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3")}
				})
			}),
			base: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Name, c.Image = "ome-container", "a:1"
					c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
				})
			}),
			got: func(t corev1.PodTemplateSpec) any {
				requests := main(t).Resources.Requests
				return []string{requests.Cpu().String(), requests.Memory().String()}
			},
			want: []string{"3", "1Gi"},
		},
		"placeholders are filled in the runtime only": {
			own: engine(func(e *v1beta1.EngineSpec) { e.Hostname = "{{.Name}}" }),
			base: engine(func(e *v1beta1.EngineSpec) {
				e.Runner = runner(func(c *corev1.Container) {
					c.Name, c.Image, c.Args = "ome-container", "a:1", []string{"--id={{.Namespace}}/{{ .Name }}"}
				})
			}),
			got:  func(t corev1.PodTemplateSpec) any { return []string{t.Spec.Hostname, main(t).Args[0]} },
			want: []string{"{{.Name}}", "--id=demo/chat"},
		},
		"the grace period is never invented": {
			own:  engine(func(*v1beta1.EngineSpec) {}),
			base: engine(func(e *v1beta1.EngineSpec) { e.Runner = image }),
			got:  func(t corev1.PodTemplateSpec) any { return t.Spec.TerminationGracePeriodSeconds },
			want: (*int64)(nil),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got(renderEngine(t, tc.own, tc.base))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvironmentAndMetadata(t *testing.T) {
	in := sampleInput(t, "mistral-pd.yaml", v1beta1.EngineComponent)
	in.Service.Labels = map[string]string{v1beta1.QueueNameLabel: "gpu", "team": "a"}
	in.Service.Annotations = map[string]string{
		"example.com/owner":               "ml",
		"prometheus.io/port":              "1",
		"ome.io/metrics":                  "cpu",
		v1beta1.RolloutPausedAnnotation:   "true",
		v1beta1.RuntimeSyncAnnotation:     "t",
		lastAppliedKey:                    "{}",
		"ome.io/migration-request-v1-abc": "{}",
	}
	in.Service.Spec.Engine.Annotations = map[string]string{"prometheus.io/port": "2"}
	in.Service.Spec.Engine.Labels = map[string]string{"tier": "gold"}
	in.Service.Spec.Rollout.PairingProtocol = "kv-v1"
	in.Service.Spec.Engine.Runner = runner(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "MODEL_PATH", Value: "/elsewhere"}, {Name: "MINE", Value: "1"}}
		c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")}
	})
	got, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	template := got.Runners[0].Template
	wantEnv := []corev1.EnvVar{
		{Name: "MODEL_PATH", Value: "/mnt/models/mistral-7b-instruct-v0-2"},
		{Name: "PARALLELISM_SIZE", Value: "4"},
		{Name: "MINE", Value: "1"},
	}
	if diff := cmp.Diff(wantEnv, template.Spec.Containers[0].Env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"example.com/owner": "ml", "ome.io/metrics": "cpu", "prometheus.io/port": "2"}, template.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"example.com/owner", "ome.io/metrics"}, got.ExcludedAnnotationKeys); diff != "" {
		t.Errorf("excluded keys (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{
		"serving-runtime": "srt-mistral-7b-instruct-pd", "base-model-name": "mistral-7b-instruct-v0-2",
		"base-model-size": "7B", "base-model-vendor": "mistralai", v1beta1.QueueNameLabel: "gpu", "tier": "gold",
	}
	if diff := cmp.Diff(wantLabels, template.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got.PairingProtocol != "kv-v1" {
		t.Errorf("pairing protocol %q", got.PairingProtocol)
	}

	router := sampleInput(t, "mistral-pd.yaml", v1beta1.RouterComponent)
	router.Service.Labels, router.Service.Spec.Rollout.PairingProtocol = in.Service.Labels, "kv-v1"
	router.Service.Spec.Router.Config = map[string]string{"ROUTING_POLICY": "least_loaded", "A": "1", "SET": "config"}
	router.Service.Spec.Router.Runner = runner(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "SET", Value: "env"}} })
	got, err = Render(router)
	if err != nil {
		t.Fatal(err)
	}
	wantEnv = []corev1.EnvVar{{Name: "SET", Value: "env"}, {Name: "A", Value: "1"}, {Name: "ROUTING_POLICY", Value: "least_loaded"}}
	if diff := cmp.Diff(wantEnv, got.Runners[0].Template.Spec.Containers[0].Env); diff != "" {
		t.Errorf("router env (-want +got):\n%s", diff)
	}
	if got.PairingProtocol != "" || got.Runners[0].Template.Labels[v1beta1.QueueNameLabel] != "" {
		t.Errorf("router has pairing protocol %q and labels %v", got.PairingProtocol, got.Runners[0].Template.Labels)
	}
}

func TestLifecycle(t *testing.T) {
	operator := config.Default()
	operator.Deploy.MinReadySeconds = 9
	pct := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	num := func(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }
	full := func(change func(*v1beta1.LifecycleSpec)) v1beta1.LifecycleSpec {
		l := v1beta1.LifecycleSpec{
			RestartPolicy: v1beta1.RestartNone,
			ReadyPolicy:   v1beta1.ReadyPolicyNone,
			UpdateStrategy: &v1beta1.UpdateStrategy{
				Type:                  v1beta1.SurgeThenDrain,
				RollingUpdate:         &v1beta1.InstanceRollingUpdate{MaxSurge: pct("25%")},
				InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{MarkNotReadyDuringLifecycle: ptr.To(true)},
			},
			InstanceReadyTimeout: &metav1.Duration{Duration: 30 * time.Minute},
			MigrationPolicy:      &v1beta1.MigrationPolicy{Mode: v1beta1.MigrationAuto},
		}
		change(&l)
		return l
	}
	tests := map[string]struct {
		own, base *v1beta1.LifecycleSpec
		want      v1beta1.LifecycleSpec
		window    int32
	}{
		"nothing set": {want: full(func(*v1beta1.LifecycleSpec) {}), window: 9},
		"service, then runtime, by field": {
			own: &v1beta1.LifecycleSpec{
				UpdateStrategy:  &v1beta1.UpdateStrategy{RollingUpdate: &v1beta1.InstanceRollingUpdate{MaxSurge: num(2)}},
				MinReadySeconds: ptr.To[int32](0),
			},
			base: &v1beta1.LifecycleSpec{
				RestartPolicy:   v1beta1.RestartRecreateInstance,
				UpdateStrategy:  &v1beta1.UpdateStrategy{RollingUpdate: &v1beta1.InstanceRollingUpdate{MaxSurge: num(5), Partition: ptr.To[int32](1)}},
				MinReadySeconds: ptr.To[int32](4),
				MigrationPolicy: &v1beta1.MigrationPolicy{Mode: v1beta1.MigrationNever},
			},
			want: full(func(l *v1beta1.LifecycleSpec) {
				l.RestartPolicy = v1beta1.RestartRecreateInstance
				l.UpdateStrategy.RollingUpdate = &v1beta1.InstanceRollingUpdate{MaxSurge: num(2), Partition: ptr.To[int32](1)}
				l.MigrationPolicy.Mode = v1beta1.MigrationNever
			}),
		},
		"the operator fills the budget that the strategy reads": {
			own: &v1beta1.LifecycleSpec{UpdateStrategy: &v1beta1.UpdateStrategy{Type: v1beta1.RecreatePod}},
			want: full(func(l *v1beta1.LifecycleSpec) {
				l.UpdateStrategy.Type = v1beta1.RecreatePod
				l.UpdateStrategy.RollingUpdate = &v1beta1.InstanceRollingUpdate{MaxUnavailable: pct("25%")}
			}),
			window: 9,
		},
		"a zero timeout hides the runtime's and falls to the operator's": {
			own:    &v1beta1.LifecycleSpec{InstanceReadyTimeout: &metav1.Duration{}},
			base:   &v1beta1.LifecycleSpec{InstanceReadyTimeout: &metav1.Duration{Duration: time.Second}},
			want:   full(func(*v1beta1.LifecycleSpec) {}),
			window: 9,
		},
		"the runtime's window": {
			base: &v1beta1.LifecycleSpec{MinReadySeconds: ptr.To[int32](4)},
			want: full(func(*v1beta1.LifecycleSpec) {}), window: 4,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, window := lifecycle(tc.own, tc.base, operator, v1beta1.EngineComponent)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if window != tc.window {
				t.Errorf("window %d, want %d", window, tc.window)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	tests := map[string]struct {
		own, base   [2]*int
		least, most int32
	}{
		"operator":                     {least: 1, most: 3},
		"runtime":                      {base: [2]*int{ptr.To(2), ptr.To(8)}, least: 2, most: 8},
		"service over runtime":         {own: [2]*int{ptr.To(4), nil}, base: [2]*int{ptr.To(2), ptr.To(8)}, least: 4, most: 8},
		"zero minimum runs one":        {own: [2]*int{ptr.To(0), ptr.To(1)}, least: 1, most: 1},
		"zero maximum counts as unset": {own: [2]*int{nil, ptr.To(0)}, base: [2]*int{nil, ptr.To(5)}, least: 1, most: 5},
		"maximum is raised":            {own: [2]*int{ptr.To(6), nil}, least: 6, most: 6},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			block := func(b [2]*int) *piece {
				return &piece{EngineSpec: engine(func(e *v1beta1.EngineSpec) { e.MinReplicas, e.MaxReplicas = b[0], b[1] })}
			}
			least, most := bounds(block(tc.own), block(tc.base), config.Default().Deploy, v1beta1.EngineComponent)
			if least != tc.least || most != tc.most {
				t.Errorf("got %d..%d, want %d..%d", least, most, tc.least, tc.most)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		change  func(*Input)
		reason  string
		message string
	}{
		"component not declared": {
			change:  func(in *Input) { in.Service.Spec.Engine = nil },
			reason:  v1beta1.ReasonRenderFailed,
			message: "InferenceService mistral-demo/mistral-pd has no spec.engine",
		},
		"leader in the service": {
			change: func(in *Input) { in.Service.Spec.Engine.Leader = &v1beta1.LeaderSpec{} },
			reason: v1beta1.ReasonRenderFailed,
			message: "InferenceService mistral-demo/mistral-pd, component engine: not supported yet: leader and worker (multi-pod Instances) in spec.engine; " +
				"use a runtime with a single runner",
		},
		"worker in the runtime": {
			change: func(in *Input) { in.Runtime.EngineConfig.Worker = &v1beta1.WorkerSpec{} },
			reason: v1beta1.ReasonRenderFailed,
			message: "InferenceService mistral-demo/mistral-pd, component engine: not supported yet: leader and worker (multi-pod Instances) in " +
				"spec.engineConfig of ClusterServingRuntime srt-mistral-7b-instruct-pd; use a runtime with a single runner",
		},
		"runtime without the piece": {
			change: func(in *Input) { in.Runtime.EngineConfig = nil },
			reason: v1beta1.ReasonRuntimePieceMissing,
			message: "InferenceService mistral-demo/mistral-pd, component engine: no containers: spec.engineConfig of ClusterServingRuntime srt-mistral-7b-instruct-pd " +
				"has none for it; name a runtime that has, or set spec.engine.runner",
		},
		"no image": {
			change: func(in *Input) { in.Runtime.EngineConfig.Runner.Image = "" },
			reason: v1beta1.ReasonRenderFailed,
			message: `InferenceService mistral-demo/mistral-pd, component engine: container "ome-container" has no image; ` +
				"set it in spec.engineConfig of ClusterServingRuntime srt-mistral-7b-instruct-pd or in spec.engine.runner.image",
		},
		"placeholder without a label": {
			change: func(in *Input) { in.Runtime.EngineConfig.Runner.Args = []string{"{{.Labels.team}}"} },
			reason: v1beta1.ReasonRenderFailed,
			message: "InferenceService mistral-demo/mistral-pd, component engine: spec.engineConfig of ClusterServingRuntime srt-mistral-7b-instruct-pd " +
				"uses {{.Labels.team}}, which the service's metadata does not have; add it",
		},
		"sharded model": {
			change: func(in *Input) { in.Model.Distribution = v1beta1.DistributionSharded },
			reason: v1beta1.ReasonRenderFailed,
			message: "InferenceService mistral-demo/mistral-pd, component engine: model mistral-7b-instruct-v0-2 has distribution Sharded, " +
				"which can't be served; use one with PerNode",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := sampleInput(t, "mistral-pd.yaml", v1beta1.EngineComponent)
			tc.change(&in)
			_, err := Render(in)
			if err == nil {
				t.Fatal("no error")
			}
			got := err.(*Error)
			if diff := cmp.Diff([]string{tc.reason, tc.message}, []string{got.Reason, got.Message}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever is set, the same input gives the same bytes, and no input changes.
func TestRenderIsPure(t *testing.T) {
	words := rapid.SampledFrom([]string{"", "a", "b", "{{.Name}}", "ome-container"})
	draw := func(t *rapid.T, label string) *v1beta1.EngineSpec {
		return engine(func(e *v1beta1.EngineSpec) {
			e.ServiceAccountName = words.Draw(t, label)
			e.Labels = map[string]string{words.Draw(t, label): words.Draw(t, label)}
			e.Annotations = map[string]string{words.Draw(t, label): "x"}
			for range rapid.IntRange(0, 3).Draw(t, label) {
				e.Volumes = append(e.Volumes, corev1.Volume{Name: words.Draw(t, label), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
				e.Containers = append(e.Containers, corev1.Container{Name: words.Draw(t, label), Image: words.Draw(t, label)})
			}
			e.Runner = runner(func(c *corev1.Container) {
				c.Name, c.Image = words.Draw(t, label), words.Draw(t, label)
				for range rapid.IntRange(0, 3).Draw(t, label) {
					c.Env = append(c.Env, corev1.EnvVar{Name: words.Draw(t, label), Value: words.Draw(t, label)})
				}
			})
			e.Lifecycle = &v1beta1.LifecycleSpec{UpdateStrategy: &v1beta1.UpdateStrategy{RollingUpdate: &v1beta1.InstanceRollingUpdate{Partition: ptr.To[int32](0)}}}
		})
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := sampleInput(t, "mistral-pd.yaml", v1beta1.EngineComponent)
		in.Service.Spec.Engine, in.Runtime.EngineConfig = draw(rt, "own"), draw(rt, "base")
		in.Service.Annotations = map[string]string{"x": "1", words.Draw(rt, "key"): "y"}
		before := mustJSON(in)
		first, err1 := Render(in)
		second, err2 := Render(in)
		if (err1 == nil) != (err2 == nil) || mustJSON(first) != mustJSON(second) {
			rt.Fatalf("two results: %v, %v", err1, err2)
		}
		if err1 == nil {
			scribble(&first)
		}
		if after := mustJSON(in); before != after {
			rt.Fatalf("the input changed:\n%s", cmp.Diff(before, after))
		}
	})
}

// scribble writes wherever a result could share memory with its input.
func scribble(r *Result) {
	for i := range r.Runners {
		meta, spec := &r.Runners[i].Template.ObjectMeta, &r.Runners[i].Template.Spec
		for k := range meta.Labels {
			meta.Labels[k] = "scribble"
		}
		for k := range meta.Annotations {
			meta.Annotations[k] = "scribble"
		}
		for j := range spec.Volumes {
			spec.Volumes[j].Name = "scribble"
		}
		for j := range spec.Containers {
			spec.Containers[j].Image = "scribble"
			for k := range spec.Containers[j].Env {
				spec.Containers[j].Env[k].Name = "scribble"
			}
		}
	}
	*r.Lifecycle.UpdateStrategy.RollingUpdate.Partition = 99
}

func mustJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
