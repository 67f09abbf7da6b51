package core

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
)

// retained is an engine with the revisions r1 to r8, each of the hash h1 to h8, of
// which nothing refers to any.
func retained() (*World, *component) {
	replica := &v1beta1.InferenceReplica{ObjectMeta: metav1.ObjectMeta{Name: "tide-engine", UID: "u"}}
	c := &component{Component: &Component{Type: v1beta1.EngineComponent, Replica: replica}, known: map[string]instance.Revision{}}
	for n := 1; n <= 8; n++ {
		cr := &appsv1.ControllerRevision{Revision: int64(n), ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("r", n), OwnerReferences: []metav1.OwnerReference{*ownerReference(replica, "InferenceReplica")},
		}}
		c.Revisions = append(c.Revisions, cr)
		c.known[cr.Name] = instance.Revision{Name: cr.Name, Hash: fmt.Sprint("h", n)}
	}
	w := &World{Service: &v1beta1.InferenceService{}}
	w.Settings.Lifecycle.RevisionHistoryLimit = 2
	return w, c
}

func TestRetention(t *testing.T) {
	run := func(component v1beta1.ComponentType, stable string) *v1beta1.RolloutStatus {
		return &v1beta1.RolloutStatus{ActiveRun: &v1beta1.RolloutRun{TargetRevisions: []v1beta1.RunTarget{
			{Component: component, Revision: "h8", StableRevision: stable},
		}}}
	}
	cases := []struct {
		name string
		edit func(*World, *component)
		want []string // deleted, oldest first
	}{
		{"the newest two stay", func(*World, *component) {}, []string{"r1", "r2", "r3", "r4", "r5", "r6"}},
		{"and what the template renders", func(_ *World, c *component) { c.target.Name = "r1" }, []string{"r2", "r3", "r4", "r5", "r6"}},
		{"the current revision", func(_ *World, c *component) { c.status.CurrentRevision = "r2" }, []string{"r1", "r3", "r4", "r5", "r6"}},
		{"the update revision", func(_ *World, c *component) { c.status.UpdateRevision = "r3" }, []string{"r1", "r2", "r4", "r5", "r6"}},
		{"what a row runs", func(_ *World, c *component) {
			c.result.Rows = []v1beta1.InstanceStatus{{RunningRevision: "r8"}, {RunningRevision: "r1"}, {RunningRevision: "r8"}}
		}, []string{"r2", "r3", "r4", "r5"}},
		{"what a row moves to", func(_ *World, c *component) {
			c.result.Rows = []v1beta1.InstanceStatus{{}, {TargetRevision: "r4"}}
		}, []string{"r1", "r2", "r3", "r5", "r6"}},
		{"what a retry block is about", func(_ *World, c *component) {
			c.status.RetryBlocks = []v1beta1.RetryBlock{{TargetRevision: "r1"}, {TargetRevision: "r3"}}
		}, []string{"r2", "r4", "r5", "r6"}},
		{"the revision that a rollback was asked to return to", func(_ *World, c *component) {
			c.Replica.Spec.Pacing = &v1beta1.Pacing{RollbackToRevision: "r2"}
		}, []string{"r1", "r3", "r4", "r5", "r6"}},
		{"the revision that the open run would return to", func(w *World, _ *component) {
			w.Service.Status.Rollout = run(v1beta1.EngineComponent, "h1")
		}, []string{"r2", "r3", "r4", "r5", "r6"}},
		{"not that of another component", func(w *World, _ *component) {
			w.Service.Status.Rollout = run(v1beta1.DecoderComponent, "h1")
		}, []string{"r1", "r2", "r3", "r4", "r5", "r6"}},
		{"a first revision has none to return to", func(w *World, _ *component) {
			w.Service.Status.Rollout = run(v1beta1.EngineComponent, "")
		}, []string{"r1", "r2", "r3", "r4", "r5", "r6"}},
		{"the service's own limit wins", func(w *World, _ *component) {
			w.Service.Annotations = map[string]string{v1beta1.RevisionHistoryLimitAnnotation: "5"}
		}, []string{"r1", "r2", "r3"}},
		{"a limit that is none is passed over", func(w *World, _ *component) {
			w.Service.Annotations = map[string]string{v1beta1.RevisionHistoryLimitAnnotation: "0"}
		}, []string{"r1", "r2", "r3", "r4", "r5", "r6"}},
		{"no limit keeps all", func(w *World, _ *component) { w.Settings.Lifecycle.RevisionHistoryLimit = 0 }, nil},
		{"a revision of somebody else is not ours to delete", func(_ *World, c *component) { c.Revisions[0].OwnerReferences = nil },
			[]string{"r2", "r3", "r4", "r5", "r6"}},
		{"one that is on its way out neither counts nor is deleted again", func(_ *World, c *component) {
			c.Revisions[7].DeletionTimestamp = &metav1.Time{}
			c.Revisions[7].DeletionTimestamp.Time = noon
		}, []string{"r1", "r2", "r3", "r4", "r5"}},
		{"a service that is gone keeps by the operator's limit", func(w *World, c *component) {
			w.Service, c.target.Name = nil, "r1"
		}, []string{"r2", "r3", "r4", "r5", "r6"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w, c := retained()
			tc.edit(w, c)
			c.prune(w)
			var got []string
			for _, cr := range c.out.DeleteRevisions {
				got = append(got, cr.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}
