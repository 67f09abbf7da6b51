package prometheus

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/lab/internal/stub"
)

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat-engine-0", Annotations: map[string]string{"a": "b"}, Labels: map[string]string{
			stub.LabelService: "chat", stub.LabelComponent: "engine", stub.LabelRevision: "abcd1234", "other": "label",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "sidecar", Image: "proxy"},
			{Name: "ome-container", Image: "lab.ome.io/engine:v1", Ports: []corev1.ContainerPort{{ContainerPort: 9000}}},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "198.18.3.4"},
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestTargets(t *testing.T) {
	want := func(address, component, name string) target {
		return target{Targets: []string{address}, Labels: map[string]string{
			"namespace": "ns", "inferenceservice": "chat", "component": component, "revision_hash": "abcd1234", "pod": name,
		}}
	}
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		want []target
	}{
		"none":                     {nil, []target{}},
		"the server's port":        {[]*corev1.Pod{pod(nil)}, []target{want("127.18.3.4:9000", "engine", "chat-engine-0")}},
		"a stub that names none":   {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.Spec.Containers[1].Ports = nil })}, []target{want("127.18.3.4:8080", "engine", "chat-engine-0")}},
		"a worker serves nothing":  {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.Labels[stub.LabelRunner] = "worker" })}, []target{}},
		"not of a service":         {[]*corev1.Pod{pod(func(p *corev1.Pod) { delete(p.Labels, stub.LabelService) })}, []target{}},
		"not up":                   {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })}, []target{}},
		"no address":               {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.Status.PodIP = "" })}, []target{}},
		"an address of nobody":     {[]*corev1.Pod{pod(func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" })}, []target{}},
		"in the order of the pods": {[]*corev1.Pod{pod(nil), pod(func(p *corev1.Pod) { p.Name = "a" })}, []target{want("127.18.3.4:9000", "engine", "a"), want("127.18.3.4:9000", "engine", "chat-engine-0")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, targets(c.pods)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for i, p := range c.pods { // what the watch keeps says the same
				o, err := lean(p)
				if err != nil {
					t.Fatal(err)
				}
				c.pods[i] = o.(*corev1.Pod)
			}
			if diff := cmp.Diff(c.want, targets(c.pods)); diff != "" {
				t.Errorf("of lean pods (-want +got)\n%s", diff)
			}
		})
	}
}

func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "targets.json")
	first, err := save(path, targets(nil), nil)
	if err != nil || string(first) != "[]" {
		t.Fatalf("no pods are saved as %q, %v", first, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if again, err := save(path, targets(nil), first); err != nil || !bytes.Equal(again, first) {
		t.Errorf("saved again: %q, %v", again, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the same targets were written twice: %v", err)
	}
	second, err := save(path, targets([]*corev1.Pod{pod(nil)}), first)
	if raw, readErr := os.ReadFile(path); err != nil || readErr != nil || !bytes.Equal(raw, second) {
		t.Errorf("the file holds %q, %v, %v; want %q", raw, err, readErr, second)
	}
}
