package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

// TestWeightsNameARevisionOnce: a primary that the change leaves alone has one revision,
// and a list of weights by name has no room for it twice.
func TestWeightsNameARevisionOnce(t *testing.T) {
	w := &World{Key: types.NamespacedName{Name: "chat"}}
	for _, c := range []struct {
		name    string
		primary bool
		canary  string
		weight  int32
		want    map[string]int32
	}{
		{"a primary that moves", true, "bbbbbbbb", 10, map[string]int32{"chat-engine-rev-bbbbbbbb": 10, "chat-engine-rev-aaaaaaaa": 90}},
		{"nothing yet", true, "bbbbbbbb", 0, map[string]int32{"chat-engine-rev-aaaaaaaa": 100}},
		{"all of it", true, "bbbbbbbb", 100, map[string]int32{"chat-engine-rev-bbbbbbbb": 100}},
		{"a primary that stays", true, "aaaaaaaa", 10, map[string]int32{"chat-engine-rev-aaaaaaaa": 100}},
		{"a primary that stays, at the last step", true, "aaaaaaaa", 100, map[string]int32{"chat-engine-rev-aaaaaaaa": 100}},
		{"another member", false, "bbbbbbbb", 10, map[string]int32{"chat-engine-rev-aaaaaaaa": 100}},
	} {
		s := &v1beta1.CanaryStatus{CanaryRevisionHash: c.canary, StableRevisionHash: "aaaaaaaa", ObservedTrafficWeight: c.weight,
			Members: []v1beta1.CanaryMember{{Component: "engine", Stable: "aaaaaaaa"}}}
		list := (&component{Component: &Component{Type: "engine", Replica: &v1beta1.InferenceReplica{}}}).weights(w, c.primary, s)
		got := map[string]int32{}
		for _, entry := range list {
			got[entry.RevisionName] = entry.Percent
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(list) != len(got) {
			t.Errorf("%s: %d entries (-want +got):\n%s", c.name, len(list), diff)
		}
	}
}
