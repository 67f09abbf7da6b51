package revision

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The golden hashes never change between releases: a hash that moves restarts
// every pod of that shape in every cluster that upgrades. -update is for new
// vectors; a diff on an old line means that the code is wrong, not the file.
var update = flag.Bool("update", false, "write the golden files; only ever to add vectors")

// template is a pod template as a rendered engine has it.
func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"serving-runtime": "srt-mistral", "team": "search", "base-model-name": "mistral-7b"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "models",
			Volumes: []corev1.Volume{
				{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("8Gi"))}}},
				{Name: "weights", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/models/mistral-7b"}}},
			},
			InitContainers: []corev1.Container{{Name: "wait", Image: "registry.local/wait:1", Command: []string{"/wait", "--for", "model"}}},
			Containers: []corev1.Container{
				{
					Name: "ome-container", Image: "registry.local/server:v1",
					Args: []string{"--model", "$(MODEL_PATH)", "--port", "8080", "--mem-fraction", "0.9", "--expr", "a<b && b>c"},
					Env: []corev1.EnvVar{
						{Name: "HF_HOME", Value: "/tmp/hf"}, {Name: "NCCL_DEBUG", Value: "INFO"}, {Name: "EMPTY"},
						{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
					},
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("1")},
						Limits:   corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("1")},
					},
					VolumeMounts: []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}, {Name: "weights", MountPath: "/mnt/models", ReadOnly: true}},
					ReadinessProbe: &corev1.Probe{
						ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(8080)}},
						PeriodSeconds: 5, FailureThreshold: 3,
					},
					LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/live", Port: intstr.FromString("http")}}},
				},
				{Name: "sidecar", Image: "registry.local/sidecar:4", SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(0)), AllowPrivilegeEscalation: new(false)}},
			},
			TerminationGracePeriodSeconds: new(int64(60)),
			NodeSelector:                  map[string]string{"gpu": "h100"},
			Tolerations:                   []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 10, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "search"}}},
			}}}},
		},
	}
}

func single() Input {
	return Input{Runners: []Runner{{Name: "default", Size: 1, Template: template()}}}
}

func gang() Input {
	return Input{
		Runners:     []Runner{{Name: "leader", Size: 1, Template: template()}, {Name: "worker", Size: 3, Template: template()}},
		TopologyKey: "rack",
	}
}

// with returns single() after some edits.
func with(edits ...func(*Input)) Input {
	in := single()
	for _, e := range edits {
		e(&in)
	}
	return in
}

func mustHash(t testing.TB, in Input) (string, []byte) {
	t.Helper()
	h, data, err := Hash(in)
	if err != nil {
		t.Fatal(err)
	}
	return h, data
}

func pod(in *Input) *corev1.PodSpec     { return &in.Runners[0].Template.Spec }
func main0(in *Input) *corev1.Container { return &in.Runners[0].Template.Spec.Containers[0] }

func TestGoldenHashes(t *testing.T) {
	vectors := []struct {
		name string
		in   Input
	}{
		{"empty-template", Input{Runners: []Runner{{Name: "default"}}}},
		{"smallest-pod", Input{Runners: []Runner{{Name: "default", Size: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ome-container", Image: "a"}}}}}}}},
		{"engine", single()},
		{"engine-paired", with(func(in *Input) { in.PairingProtocol = "kv-v2" })},
		{"engine-collided", with(func(in *Input) { in.CollisionCount = 1 })},
		{"engine-other-image", with(func(in *Input) { main0(in).Image = "registry.local/server:v2" })},
		{"gang", gang()},
		{"unicode-and-html", with(func(in *Input) { main0(in).Args = []string{"<é\u2028&\"\\\x01>"} })},
	}
	var b strings.Builder
	for _, v := range vectors {
		h, data := mustHash(t, v.in)
		fmt.Fprintf(&b, "%s\t%s\t%s\n", v.name, h, data)
	}
	golden(t, "hashes.golden", b.String())
}

// golden compares with a file whose lines only ever grow in number.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("a revision hash moved, which would restart every service that runs this template (-stored +now):\n%s", diff)
	}
}

func TestWhatChangesTheHash(t *testing.T) {
	base, _ := mustHash(t, single())
	gangBase, _ := mustHash(t, gang())
	cases := []struct {
		name    string
		base    string
		in      Input
		changes bool
	}{
		{"image", base, with(func(in *Input) { main0(in).Image += "x" }), true},
		{"sidecar image", base, with(func(in *Input) { pod(in).Containers[1].Image += "x" }), true},
		{"args", base, with(func(in *Input) { main0(in).Args[1] = "x" }), true},
		{"args order", base, with(func(in *Input) { a := main0(in).Args; a[0], a[1] = a[1], a[0] }), true},
		{"env value", base, with(func(in *Input) { main0(in).Env[0].Value = "x" }), true},
		{"env removed", base, with(func(in *Input) { main0(in).Env = main0(in).Env[1:] }), true},
		{"empty argument", base, with(func(in *Input) { main0(in).Args = append(main0(in).Args, "") }), true},
		{"component label", base, with(func(in *Input) { in.Runners[0].Template.Labels["team"] = "ads" }), true},
		{"empty label value", base, with(func(in *Input) { in.Runners[0].Template.Labels["flag"] = "" }), true},
		{"component annotation", base, with(func(in *Input) { in.Runners[0].Template.Annotations["a"] = "b" }), true},
		{"grace period", base, with(func(in *Input) { pod(in).TerminationGracePeriodSeconds = new(int64(61)) }), true},
		{"pairing token", base, with(func(in *Input) { in.PairingProtocol = "kv-v2" }), true},
		{"runner renamed", base, with(func(in *Input) { in.Runners[0].Name = "leader" }), true},
		{"size", base, with(func(in *Input) { in.Runners[0].Size = 2 }), true},
		{"zero behind a pointer", base, with(func(in *Input) { pod(in).AutomountServiceAccountToken = new(false) }), true},
		{"selector of everything", base, with(func(in *Input) {
			pod(in).Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.NamespaceSelector = &metav1.LabelSelector{}
		}), true},
		{"accelerator's node selector", base, with(func(in *Input) { pod(in).NodeSelector["gpu"] = "h200" }), true},
		{"accelerator's resources", base, with(func(in *Input) { main0(in).Resources.Limits["nvidia.com/gpu"] = resource.MustParse("2") }), true},
		{"model's volume", base, with(func(in *Input) { pod(in).Volumes[1].HostPath.Path = "/mnt/models/other" }), true},
		{"runtime's probe", base, with(func(in *Input) { main0(in).ReadinessProbe.PeriodSeconds = 6 }), true},
		{"grace period taken out", base, with(func(in *Input) { pod(in).TerminationGracePeriodSeconds = nil }), true},
		{"runner added", base, with(func(in *Input) {
			in.Runners = append(in.Runners, Runner{Name: "worker", Size: 1, Template: template()})
		}), true},
		{"collision", base, with(func(in *Input) { in.CollisionCount = 1 }), true},
		{"worker only", gangBase, func() Input { in := gang(); in.Runners[1].Template.Spec.Containers[0].Image = "w"; return in }(), true},
		{"worker size", gangBase, func() Input { in := gang(); in.Runners[1].Size = 4; return in }(), true},
		{"topology key of a gang", gangBase, func() Input { in := gang(); in.TopologyKey = "block"; return in }(), true},

		{"topology key of a single pod", base, with(func(in *Input) { in.TopologyKey = "block" }), false},
		{"runner order", gangBase, func() Input { in := gang(); in.Runners[0], in.Runners[1] = in.Runners[1], in.Runners[0]; return in }(), false},
		{"size zero is one", base, with(func(in *Input) { in.Runners[0].Size = 0 }), false},
		{"queue label", base, with(func(in *Input) { in.Runners[0].Template.Labels["kueue.x-k8s.io/queue-name"] = "q" }), false},
		{"excluded annotation", base, with(func(in *Input) {
			in.Runners[0].Template.Annotations["note"] = "from the service"
			in.ExcludedAnnotations = []string{"note", "other"}
		}), false},
		{"quantity spelling", base, with(func(in *Input) { main0(in).Resources.Requests["cpu"] = resource.MustParse("8000m") }), false},
		{"empty lists and maps", base, with(func(in *Input) {
			pod(in).ImagePullSecrets = []corev1.LocalObjectReference{}
			main0(in).Command = []string{}
			pod(in).Containers[1].Env = []corev1.EnvVar{}
			pod(in).Containers[1].Resources.Limits = corev1.ResourceList{}
		}), false},
	}
	var lines strings.Builder
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, data := mustHash(t, c.in)
			fmt.Fprintf(&lines, "%s\t%s\n", got, c.name)
			if (got != c.base) != c.changes {
				t.Errorf("hash %s, base %s: changed=%v, want %v\n%s", got, c.base, got != c.base, c.changes, data)
			}
		})
	}
	// What each line of the table hashes to stays the same on every release.
	golden(t, "changes.golden", lines.String())
}

// The text must be what encoding/json would write for the same value, so that
// an API server or a tool that decodes and encodes it keeps every byte.
func TestTextIsAFixedPoint(t *testing.T) {
	for name, in := range map[string]Input{"single": with(func(in *Input) { main0(in).Args = append(main0(in).Args, "<é\u2028&\"\\\x01\x7f>") }), "gang": gang()} {
		t.Run(name, func(t *testing.T) {
			_, data := mustHash(t, in)
			norm, err := normalize(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(data), string(norm)); diff != "" {
				t.Errorf("the text is not canonical JSON (-text +normalized):\n%s", diff)
			}
			// And the templates come back whole.
			p, err := parse(data)
			if err != nil {
				t.Fatal(err)
			}
			again, err := canonical(p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(data), string(again)); diff != "" {
				t.Errorf("decoding lost something (-text +again):\n%s", diff)
			}
			// The library's own JSON of the original template is the same value
			// once both are stripped of what says nothing.
			for i, r := range p.Runners {
				want, _ := json.Marshal(stripped(t, in.Runners[i].Template))
				got, _ := json.Marshal(stripped(t, r.Template))
				if !bytes.Equal(want, got) {
					t.Errorf("runner %s:\nwant %s\ngot  %s", r.Name, want, got)
				}
			}
		})
	}
}

// stripped decodes the library's JSON and removes null, "" and empty objects.
func stripped(t *testing.T, v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var x any
	if err := json.Unmarshal(raw, &x); err != nil {
		t.Fatal(err)
	}
	var walk func(any) any
	walk = func(x any) any {
		switch x := x.(type) {
		case map[string]any:
			for k, e := range x {
				e = walk(e)
				if m, ok := e.(map[string]any); e == nil || e == "" || ok && len(m) == 0 {
					delete(x, k)
				} else {
					x[k] = e
				}
			}
		case []any:
			for i := range x {
				x[i] = walk(x[i])
			}
		}
		return x
	}
	return walk(x)
}

func TestHashLeavesItsInputAlone(t *testing.T) {
	in := gang()
	in.Runners[0], in.Runners[1] = in.Runners[1], in.Runners[0]
	in.Runners[0].Template.Labels["kueue.x-k8s.io/queue-name"] = "q"
	in.ExcludedAnnotations = []string{"prometheus.io/port"}
	before, _ := json.Marshal(in)
	mustHash(t, in)
	after, _ := json.Marshal(in)
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("input changed:\n%s", diff)
	}
}

func TestHashRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		in   Input
		want string
	}{
		"no runner":       {Input{}, "a revision needs at least one runner"},
		"same name twice": {Input{Runners: []Runner{{Name: "a"}, {Name: "a"}}}, `two runners are named "a": each runner of a component needs a name of its own`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Hash(c.in)
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func BenchmarkHash(b *testing.B) {
	in := single()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Hash(in); err != nil {
			b.Fatal(err)
		}
	}
}
