package instance

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

func TestRelocation(t *testing.T) {
	// bad makes nodes on which nothing comes up.
	bad := func(w *world, nodes ...string) {
		for _, n := range nodes {
			w.sick[n] = "CrashLoopBackOff"
		}
	}
	t.Run("a creation leaves the node on which it failed, and the next pod keeps off it", func(t *testing.T) {
		w := empty(t)
		bad(w, "n1")
		w.run(time.Minute)
		w.settle()
		w.rows("0 Ready a")
		if p := w.pod("0/0"); p.Spec.NodeName != "n2" || !slices.Equal(keptOff(p), []string{"n1"}) {
			t.Errorf("on %s, off %v", p.Spec.NodeName, keptOff(p))
		}
		w.told(v1beta1.EventAutoMigrationTriggered, 1, "Instance engine-0", "n1", "CrashLoopBackOff", "1 of 3")
		w.told(v1beta1.EventInstanceFailed, 1)
		w.block("a", "")
		if len(w.in.Migrations) != 1 {
			t.Fatalf("%+v", w.in.Migrations)
		}
		m := w.in.Migrations[0]
		if m.Trigger != v1beta1.MigrationTriggerAuto || m.Phase != v1beta1.MigrationRelocated || m.SourceInstance != 0 || m.FromNode != "n1" ||
			m.Attempt != 1 || m.CompletedAt == nil || m.SurgeInstance != nil || len(m.RequestUUID) != 36 || m.Succeeded == nil || !*m.Succeeded {
			t.Errorf("the record is %+v", m)
		}
	})
	t.Run("an update of one pod leaves the node, and the old pod serves on", func(t *testing.T) {
		w := started(t, 1)
		w.floor, w.most = 1, 1
		bad(w, "n1")
		w.sick["0/0"] = ""
		w.nodes = []string{"n1", "n2"}
		delete(w.sick, "n1")
		w.slow["b"] = true
		w.target("b")
		w.run(30 * time.Minute)
		w.settle()
		w.rows("0 Updating a>b Surge")
		w.told(v1beta1.EventAutoMigrationTriggered, 1, "ContainersNotReady")
		if p := w.pod("0/1"); !slices.Equal(keptOff(p), []string{"n1"}) {
			t.Errorf("off %v", keptOff(p))
		}
		w.clock(0, "30m0s")
		delete(w.slow, "b")
		w.settle()
		w.rows("0 Ready b slot1")
	})
	t.Run("a recreated pod leaves the node and stays of its incarnation", func(t *testing.T) {
		w := started(t, 1)
		w.strategy(v1beta1.RecreatePod)
		bad(w, "n1")
		w.target("b")
		w.run(2 * time.Minute)
		w.settle()
		w.rows("0 Ready b incarnation 2")
		if p := w.pod("0/0"); p.Spec.NodeName != "n2" || p.Labels[v1beta1.InstanceIncarnationLabel] != "2" {
			t.Errorf("on %s, %v", p.Spec.NodeName, p.Labels)
		}
	})
	t.Run("every node left before is kept off, up to the last relocation", func(t *testing.T) {
		w := empty(t)
		bad(w, "n1", "n2", "n3", "n4")
		w.run(4 * time.Minute)
		w.settle()
		w.told(v1beta1.EventAutoMigrationTriggered, 3, "3 of 3")
		w.told(v1beta1.EventAutoMigrationCapReached, 1, "last of 3")
		w.told(v1beta1.EventInstanceFailed, 4)
		w.rows("0 Failed -")
		w.block("a", "Backoff 1/0")
		var records []string
		for _, m := range w.in.Migrations {
			records = append(records, m.FromNode)
			if m.Succeeded != nil {
				t.Errorf("%s ended already: %v", m.FromNode, *m.Succeeded)
			}
		}
		if diff := cmp.Diff([]string{"n1", "n2", "n3"}, records); diff != "" {
			t.Error(diff)
		}
		// It is retried, off the same nodes, and relocated no more.
		w.run(3 * time.Minute)
		w.settle()
		w.told(v1beta1.EventAutoMigrationTriggered, 3)
		w.told(v1beta1.EventAutoMigrationCapReached, 1)
		if p := w.pod("0/0"); !slices.Equal(keptOff(p), []string{"n1", "n2", "n3"}) {
			t.Errorf("off %v", keptOff(p))
		}
		// Ready again, the last one succeeded, the others did not, and the count begins anew.
		delete(w.sick, "n4")
		w.run(10 * time.Minute)
		w.settle()
		w.rows("0 Ready a")
		var ends []bool
		for _, m := range w.in.Migrations {
			ends = append(ends, m.Succeeded != nil && *m.Succeeded)
		}
		if diff := cmp.Diff([]bool{false, false, true}, ends); diff != "" {
			t.Error(diff)
		}
		w.sick["n4"], w.in.RestartPolicy = "", v1beta1.RestartNone
		w.lose("0/0")
		delete(w.sick, "n1")
		bad(w, "n1")
		w.run(time.Minute)
		w.settle()
		w.told(v1beta1.EventAutoMigrationTriggered, 4, "1 of 3")
	})
	for _, tc := range []struct {
		name string
		set  func(*world)
	}{
		{"a failure of the revision's own", func(w *world) { w.sick["b"] = "ImagePullBackOff" }},
		{"an attempt that ran nowhere", func(w *world) { w.noRoom = "full" }},
		{"relocation turned off", func(w *world) { w.sick["b"], w.in.Relocations = "CrashLoopBackOff", 0 }},
		{"an update in place", func(w *world) { w.sick["b"], w.in.Strategy = "CrashLoopBackOff", v1beta1.InPlaceIfPossible }},
		{"a refusal", func(w *world) {
			w.refuse = func(*corev1.Pod) *Refusal { return &Refusal{Kind: RefusedInvalid, Text: "no"} }
		}},
	} {
		t.Run("none for "+tc.name, func(t *testing.T) {
			w := started(t, 1)
			tc.set(w)
			w.target("b")
			w.run(15 * time.Minute)
			w.settle()
			w.told(v1beta1.EventAutoMigrationTriggered, 0)
			if n := len(w.in.Migrations); n != 0 {
				t.Errorf("%d records", n)
			}
			if got := w.events; len(got) == 0 {
				t.Error("nothing failed")
			}
		})
	}
	t.Run("it adds to what the template asks of nodes", func(t *testing.T) {
		w := empty(t)
		r := w.in.Target
		template := r.Template()
		term := func(zone string) corev1.NodeSelectorTerm {
			return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}
		}
		template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{term("x"), term("y")}}}}
		r.Template = func() *corev1.PodTemplateSpec { return template }
		w.in.Target, w.in.Revisions[r.Name] = r, r
		bad(w, "n1")
		w.run(time.Minute)
		w.settle()
		off := []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"n1"}}}
		want := []corev1.NodeSelectorTerm{term("x"), term("y")}
		want[0].MatchFields, want[1].MatchFields = off, off
		got := w.pod("0/0").Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if n := len(template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields); n != 0 {
			t.Error("the template was written to")
		}
	})
	t.Run("records that ended go after their window", func(t *testing.T) {
		w := empty(t)
		bad(w, "n1")
		w.run(time.Minute)
		w.settle()
		if len(w.in.Migrations) != 1 {
			t.Fatalf("%v", w.in.Migrations)
		}
		w.run(time.Hour)
		w.settle()
		if len(w.in.Migrations) != 0 {
			t.Errorf("%v", w.in.Migrations)
		}
	})
	t.Run("records of an Instance that is still on its way stay", func(t *testing.T) {
		w := empty(t)
		bad(w, "n1")
		w.slow["a"] = true
		w.in.ReadyTimeout = 10 * time.Hour
		w.run(9 * time.Hour)
		if len(w.in.Migrations) != 1 {
			t.Errorf("%v", w.in.Migrations)
		}
	})
}
