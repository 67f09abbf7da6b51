package sim

import (
	"strings"
	"testing"

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
	for _, kind := range order {
		c.DeleteReplica(kind)
	}
	c.actual.services = map[string]*serviceObject{} // garbage collection took them with the old service
	if err := c.Settle(3000); err != nil {
		t.Fatal(err)
	}
	if err := c.Rested(); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(c.Moves, "\n"))
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
