package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core"
)

func small() map[v1beta1.ComponentType]Piece {
	one := Piece{Image: "v1", Replicas: 1, MaxSurge: intstr.FromString("25%")}
	return map[v1beta1.ComponentType]Piece{
		v1beta1.EngineComponent:  {Image: "v1", Replicas: 3, MaxSurge: intstr.FromString("25%")},
		v1beta1.DecoderComponent: one, v1beta1.RouterComponent: one,
	}
}

func settled(t *testing.T) *Cluster {
	t.Helper()
	c := New(small(), together())
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestADeletedServiceDrainsItsPodsBeforeItsReplicasGo(t *testing.T) {
	c := settled(t)
	c.DeleteService()
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
	}
}

func TestAServiceDeletedInTheMiddleOfAPausedRollStillGoes(t *testing.T) {
	c := settled(t)
	c.SetImage(v1beta1.EngineComponent, "v2")
	if err := c.Round(); err != nil {
		t.Fatal(err)
	}
	c.Pause("freeze")
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	c.DeleteService()
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
	}
}

func TestAComponentThatLeavesTheSpecIsDrainedAndGone(t *testing.T) {
	c := settled(t)
	delete(c.Pieces, v1beta1.RouterComponent)
	c.edited()
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
	}
	for name := range c.actual.services {
		if strings.Contains(name, "router") {
			t.Errorf("Service %s stays behind", name)
		}
	}
}

func TestAReplicaDeletedByHandIsDrainedAndMadeAgain(t *testing.T) {
	c := settled(t)
	c.DeleteReplica(v1beta1.EngineComponent)
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
	}
}

func TestAServiceOfTheSameNameWaitsForItsPredecessor(t *testing.T) {
	c := settled(t)
	c.editService(func(s *v1beta1.InferenceService) { s.UID = "another" })
	c.Pass()
	c.SyncAll()
	before := len(c.Pods())
	c.Pass()
	if got := len(c.Pods()); got != before {
		t.Fatalf("%d pods before, %d after", before, got)
	}
	found := false
	for _, cond := range c.actual.service.Status.Conditions {
		found = found || cond.Type == v1beta1.ConditionPreviousGone && cond.Status == "False"
	}
	if !found {
		t.Errorf("no condition says what the service waits for: %+v", c.actual.service.Status.Conditions)
	}
	old := map[v1beta1.ComponentType]types.UID{}
	for kind, r := range c.actual.replicas {
		old[kind] = r.UID
	}
	// Garbage collection takes the Services of the old service; its replicas have a
	// finalizer, and it is on us to drain them.
	c.actual.services = map[string]*serviceObject{}
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
	}
	for kind, uid := range old {
		if c.actual.replicas[kind].UID == uid {
			t.Errorf("%s still has the replica of the earlier service", kind)
		}
	}
	for _, p := range c.Pods() {
		if owner := metav1.GetControllerOf(p); owner == nil || slices.Contains(slices.Collect(maps.Values(old)), owner.UID) {
			t.Errorf("pod %s outlived the earlier service", p.Name)
		}
	}
}

// The pods of a dead node never go by themselves. The rest of the roll goes on, and
// what waits says for which pod.
func TestALostNodeDoesNotStopTheRoll(t *testing.T) {
	c := settled(t)
	c.SetImage(v1beta1.EngineComponent, "v2")
	for range 2 {
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
	}
	c.LoseNode("svc-engine-0-default-0")
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	for _, row := range c.Rows(v1beta1.EngineComponent) {
		if row.Phase != v1beta1.InstanceReady || row.RunningRevision != c.actual.replicas[v1beta1.EngineComponent].Status.UpdateRevision {
			t.Errorf("Instance %d is %s at %s\n%s", row.Index, row.Phase, row.RunningRevision, strings.Join(c.Moves, "\n"))
		}
	}
}

func TestASurgePodOnALostNodeIsNamed(t *testing.T) {
	c := settled(t)
	c.SetImage(v1beta1.DecoderComponent, "v2")
	for range 2 {
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
	}
	c.LoseNode("svc-decoder-0-default-1")
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	st := c.actual.replicas[v1beta1.DecoderComponent].Status
	if st.RolloutHold == nil || !strings.Contains(st.RolloutHold.Reason, "svc-decoder-0-default-1 is past its deletion grace") {
		t.Errorf("the hold is %+v\n%s", st.RolloutHold, strings.Join(c.Moves, "\n"))
	}
	if row := c.Rows(v1beta1.DecoderComponent)[0]; row.Operation == nil || row.Operation.Waiting != v1beta1.WaitingNodeUnknown {
		t.Errorf("row %+v", row)
	}
	c.Heal()
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatal(err)
	}
}

func TestAnImageThatCannotBePulledIsNamedInTheHold(t *testing.T) {
	c := settled(t)
	c.SetImage(v1beta1.EngineComponent, BadImage)
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	hold := c.actual.service.Status.Components[v1beta1.EngineComponent].Lifecycle.RolloutHold
	if hold == nil || hold.Gate != v1beta1.GateHeld || !strings.Contains(hold.Reason, "last with ImagePullBackOff") {
		t.Errorf("the hold is %+v", hold)
	}
	if n := c.Serving(v1beta1.EngineComponent); n != 3 {
		t.Errorf("%d engines serve", n)
	}
}

func TestARuntimeThatVanishesMidRollStopsItAndKeepsServing(t *testing.T) {
	c := settled(t)
	c.SetImage(v1beta1.EngineComponent, "v2")
	if err := c.Round(); err != nil {
		t.Fatal(err)
	}
	c.Break(v1beta1.EngineComponent, true)
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	if n := c.Serving(v1beta1.EngineComponent); n < 3 {
		t.Errorf("%d engines serve", n)
	}
	hold := c.actual.replicas[v1beta1.EngineComponent].Status.RolloutHold
	if hold == nil || !strings.Contains(hold.Reason, "the runtime is gone") {
		t.Errorf("the hold is %+v", hold)
	}
	c.Evict("svc-engine-0-default-0")
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	if n := c.Serving(v1beta1.EngineComponent); n < 3 {
		t.Errorf("after a loss %d engines serve: a lost pod comes back at the revision it ran\n%s", n, strings.Join(c.Moves, "\n"))
	}
	c.Break(v1beta1.EngineComponent, false)
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatal(err)
	}
}

func TestAPauseReplacesLostPodsAndAFreezeDoesNot(t *testing.T) {
	for depth, want := range map[string]int32{"true": 3, "freeze": 2} {
		c := settled(t)
		c.SetImage(v1beta1.EngineComponent, "v2")
		c.Pause(depth)
		c.Evict("svc-engine-1-default-0")
		if err := c.Settle(3000); err != nil {
			t.Fatal(err)
		}
		if n := c.Serving(v1beta1.EngineComponent); n != want {
			t.Errorf("pause %q: %d engines serve, want %d", depth, n, want)
		}
		for _, p := range c.Pods() {
			if p.Spec.Containers[0].Image != "v1" {
				t.Errorf("pause %q: pod %s runs %s", depth, p.Name, p.Spec.Containers[0].Image)
			}
		}
		c.Pause("")
		if err := c.Settle(3000); err != nil {
			t.Fatal(err)
		}
		if err := c.Rested(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARouterThatJoinsTakesTheFrontOnlyOnceItServes(t *testing.T) {
	pieces := small()
	router := pieces[v1beta1.RouterComponent]
	delete(pieces, v1beta1.RouterComponent)
	c := New(pieces, nil)
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	front := func() string { return c.actual.services[Name].Spec.Selector[v1beta1.ComponentLabel] }
	if front() != "engine" {
		t.Fatalf("the front selects %s", front())
	}
	c.Pieces[v1beta1.RouterComponent] = router
	c.edited()
	for range 60 {
		if front() == "router" && c.Serving(v1beta1.RouterComponent) == 0 {
			t.Fatalf("the front selects a router before one serves\n%s", strings.Join(c.Moves, "\n"))
		}
		c.SyncAll()
		c.Pass()
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
	}
	if front() != "router" {
		t.Errorf("the front selects %s", front())
	}
	c.DeleteReplica(v1beta1.RouterComponent)
	for range 3 {
		c.SyncAll()
		c.Pass()
		if front() != "router" {
			t.Errorf("with its replica deleted by hand the front selects %s", front())
		}
	}
}

func TestAServiceWithoutGroupsIsStampedToo(t *testing.T) {
	c := New(small(), nil)
	c.Pause("true")
	c.Pause("")
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	c.Pause("freeze")
	if err := c.Settle(2000); err != nil {
		t.Fatal(err)
	}
	st := c.actual.service.Status.Rollout
	if st == nil || st.ObservedGeneration != c.actual.service.Generation || st.ObservedPause != "freeze" {
		t.Errorf("status.rollout is %+v", st)
	}
}

func TestRowsThatCannotBeReadAreLeftAlone(t *testing.T) {
	c := settled(t)
	r := c.actual.replicas[v1beta1.EngineComponent].DeepCopy()
	r.Status.InstanceStatusEncoding = "FutureV9"
	r.ResourceVersion = c.next()
	c.actual.replicas[v1beta1.EngineComponent] = r
	c.SetImage(v1beta1.EngineComponent, "v2")
	c.SetImage(v1beta1.DecoderComponent, "v2")
	c.SyncAll()
	for range 20 {
		d := core.Decide(c.World())
		for _, cd := range d.Components {
			if cd.Type == v1beta1.EngineComponent && (len(cd.Pods) > 0 || cd.ReplicaStatus != nil || cd.UpdateReplica != nil) {
				t.Fatalf("engine rows are unreadable, yet %+v", cd)
			}
		}
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
	}
	said := false
	for _, cond := range c.actual.service.Status.Conditions {
		said = said || cond.Type == v1beta1.ConditionEngineReady && cond.Status == "False" && strings.Contains(cond.Message, "can't be read")
	}
	if !said {
		t.Errorf("nobody says so: %+v", c.actual.service.Status.Conditions)
	}
}

// Core must never write to what it was given: the caches are shared.
func TestDecideLeavesItsInputAlone(t *testing.T) {
	c := settled(t)
	c.SetImage(v1beta1.EngineComponent, "v2")
	c.Scale(v1beta1.DecoderComponent, 2)
	for range 40 {
		w := c.World()
		before := dump(t, w)
		core.Decide(w)
		if after := dump(t, w); after != before {
			t.Fatal("a decision changed its input")
		}
		if err := c.Round(); err != nil {
			t.Fatal(err)
		}
	}
}
