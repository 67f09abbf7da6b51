package core

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

// serves is the comparison with a built Service that the one without building must
// agree with.
func serves(got, want *corev1.Service) bool {
	for k, v := range want.Labels {
		if got.Labels[k] != v {
			return false
		}
	}
	return maps.Equal(got.Spec.Selector, want.Spec.Selector) && got.Spec.PublishNotReadyAddresses == want.Spec.PublishNotReadyAddresses &&
		apiequality.Semantic.DeepEqual(mergePorts(got.Spec.Ports, want.Spec.Ports), got.Spec.Ports)
}

func drawPorts(t *rapid.T) []corev1.ServicePort {
	var out []corev1.ServicePort
	for i := range rapid.IntRange(1, 3).Draw(t, "ports") {
		p := corev1.ServicePort{Name: string(rune('a' + i)), Port: rapid.Int32Range(80, 82).Draw(t, "port")}
		p.Protocol = rapid.SampledFrom([]corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP}).Draw(t, "protocol")
		p.TargetPort = rapid.SampledFrom([]intstr.IntOrString{{}, intstr.FromInt32(8080), intstr.FromString("http")}).Draw(t, "target")
		if rapid.Bool().Draw(t, "app") {
			p.AppProtocol = new("http")
		}
		out = append(out, p)
	}
	return out
}

func TestPropertyServedIsWhatBuildingSays(t *testing.T) {
	w := &World{Key: types.NamespacedName{Namespace: "prod", Name: "tide"},
		Service: &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "tide", UID: "u"}}}
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		want := wantedService{
			name: "s", c: &component{Component: &Component{Type: v1beta1.EngineComponent}}, ports: drawPorts(t),
			hash: rapid.SampledFrom([]string{"", "0a1b2c3d"}).Draw(t, "hash"), token: rapid.SampledFrom([]string{"", "kv-v2"}).Draw(t, "token"),
			headless: rapid.Bool().Draw(t, "headless"), unready: rapid.Bool().Draw(t, "unready"),
		}
		// What the API server makes of it, and then what somebody else does.
		got := want.build(w)
		for i := range got.Spec.Ports {
			p := &got.Spec.Ports[i]
			if p.Protocol == "" {
				p.Protocol = corev1.ProtocolTCP
			}
			if p.TargetPort == (intstr.IntOrString{}) {
				p.TargetPort = intstr.FromInt32(p.Port)
			}
			if rapid.Bool().Draw(t, "node port") {
				p.NodePort = 30000
			}
		}
		got.Labels["other"] = "x"
		switch rapid.IntRange(0, 12).Draw(t, "edit") {
		case 0:
			delete(got.Labels, v1beta1.ManagedByLabel)
		case 1:
			got.Labels[v1beta1.PairingProtocolLabel] = "other"
		case 2:
			got.Spec.Selector["more"] = "x"
		case 3:
			got.Spec.Selector[v1beta1.ComponentLabel] = "router"
		case 4:
			delete(got.Spec.Selector, v1beta1.RevisionHashLabel)
		case 5:
			got.Spec.PublishNotReadyAddresses = !got.Spec.PublishNotReadyAddresses
		case 6:
			got.Spec.Ports = got.Spec.Ports[1:]
		case 7:
			got.Spec.Ports[0].Port++
		case 8:
			got.Spec.Ports[0].TargetPort = intstr.FromInt32(1)
		case 9:
			got.Spec.Ports[0].AppProtocol = new("other")
		case 10:
			got.Spec.Ports = append(got.Spec.Ports, corev1.ServicePort{Name: "z", Port: 1, Protocol: corev1.ProtocolTCP})
		}
		built := want.build(w)
		if got, oracle := want.served(got, w), serves(got, built); got != oracle {
			t.Fatalf("served says %v and the built object %v", got, oracle)
		}
		if want.served(got, w) {
			yes++
		} else {
			no++
		}
	})
	if yes == 0 || no == 0 {
		t.Errorf("%d Services are as wanted and %d are not: the test reaches only one side", yes, no)
	}
}

// A Service that is as wanted is compared without a single allocation.
func TestServedBuildsNothing(t *testing.T) {
	w := &World{Key: types.NamespacedName{Namespace: "prod", Name: "tide"},
		Service: &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "tide", UID: "u"}}}
	want := wantedService{name: "s", c: &component{Component: &Component{Type: v1beta1.EngineComponent}}, hash: "0a1b2c3d",
		ports: []corev1.ServicePort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}}}
	got := want.build(w)
	if n := testing.AllocsPerRun(100, func() {
		if !want.served(got, w) {
			t.Fatal("what was built is not as wanted")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
