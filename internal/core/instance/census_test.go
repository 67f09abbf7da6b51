package instance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
)

// A peer counts as one to pair with when requests have had minReadySeconds to find it.
func TestCensusOfTokens(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := func(uid types.UID, token string, age time.Duration) *corev1.Pod {
		since := metav1.NewTime(now.Add(-age))
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid, Labels: map[string]string{v1beta1.PairingProtocolLabel: token},
				OwnerReferences: []metav1.OwnerReference{{UID: "owner", Controller: ptr.To(true)}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: since},
				{Type: v1beta1.ServingReadinessGate, Status: corev1.ConditionTrue, LastTransitionTime: since},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since},
			}},
		}
	}
	pods := []*corev1.Pod{pod("old", "kv-v1", time.Hour), pod("new", "kv-v2", time.Second), pod("newer", "kv-v2", 0)}
	routed := map[types.UID]bool{"old": true, "new": true, "newer": true}
	type tokens = map[string]int32
	for name, tc := range map[string]struct {
		minReady time.Duration
		routed   map[types.UID]bool
		want     tokens
		due      time.Time
	}{
		"in rotation is enough":        {0, routed, tokens{}, time.Time{}},
		"no endpoint offers one":       {0, map[types.UID]bool{"old": true, "new": true}, tokens{"kv-v2": 1}, time.Time{}},
		"not for long enough":          {3 * time.Second, routed, tokens{"kv-v2": 2}, now.Add(2 * time.Second)},
		"one of them for long enough":  {time.Second, routed, tokens{"kv-v2": 1}, now.Add(time.Second)},
		"neither offered nor for long": {3 * time.Second, map[types.UID]bool{"old": true}, tokens{"kv-v2": 2}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := TakeCensus(nil, pods, "owner", tc.routed, now, tc.minReady)
			if diff := cmp.Diff(tokens{"kv-v1": 1, "kv-v2": 2}, got.ByToken); diff != "" {
				t.Errorf("serving (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, got.Unoffered); diff != "" || !got.Due.Equal(tc.due) {
				t.Errorf("not to be paired with until %v, want %v (-want +got):\n%s", got.Due, tc.due, diff)
			}
		})
	}
}
