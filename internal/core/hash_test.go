package core

import (
	"reflect"
	"testing"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/revision"
)

// Which fields of a rendered component make a new revision. Another one would
// restart every pod of every service when only a policy or a count was edited.
func TestOnlyTheseFieldsMakeARevision(t *testing.T) {
	// A multi-pod Instance, because of the topology key.
	base := Template{Runners: []v1beta1.Runner{{Name: v1beta1.RunnerLeader, Size: 1}, {Name: v1beta1.RunnerWorker, Size: 1}}}
	hash := func(in *Template) string {
		out, _, err := revision.Hash(in.revisionInput(0))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	was := hash(&base)
	makes := map[string]bool{
		"Runners": true, "PairingProtocol": true, "TopologyKey": true,
		"Lifecycle": false, "MinReadySeconds": false, "MinReplicas": false, "MaxReplicas": false,
		"Autoscaler": false, "AutoscalerSource": false, "TopologySpread": false, "TopologySpreadKey": false,
		"ServicePorts": false, "ExcludedAnnotationKeys": false,
	}
	kind := reflect.TypeFor[Template]()
	for i := range kind.NumField() {
		f := kind.Field(i)
		if !f.IsExported() {
			continue
		}
		want, ok := makes[f.Name]
		if !ok {
			t.Errorf("Template.%s is new: say here whether it makes a revision", f.Name)
			continue
		}
		next := base
		switch f.Name {
		case "Runners":
			next.Runners = append([]v1beta1.Runner{}, base.Runners...)
			next.Runners[1].Template.Spec.NodeName = "x"
		case "Autoscaler":
			next.Autoscaler = &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerExternal}
		case "ServicePorts":
			reflect.ValueOf(&next).Elem().Field(i).Set(reflect.MakeSlice(f.Type, 1, 1))
		default:
			fill(reflect.ValueOf(&next).Elem().Field(i))
		}
		if reflect.DeepEqual(base, next) {
			t.Fatalf("%s: the test changed nothing", f.Name)
		}
		if got := hash(&next) != was; got != want {
			t.Errorf("a change of %s makes a new revision: %v, want %v", f.Name, got, want)
		}
	}
}
