package core

import (
	"reflect"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

var (
	timeType     = reflect.TypeFor[metav1.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	noon         = time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
)

// fill sets every field below v, with one element in each list and map.
func fill(v reflect.Value) {
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(metav1.NewTime(noon)))
		return
	case quantityType:
		v.Set(reflect.ValueOf(resource.MustParse("1")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint('1')
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.Interface: // the decoded form of raw JSON, which no status has
	default:
		panic("a status holds a " + v.Type().String() + ", which the test can't set")
	}
}

// change makes the one change number n below v and names the field; n counts down,
// and is still positive when there are fewer changes.
func change(v reflect.Value, n *int, path string) string {
	here := func(do func()) string {
		*n--
		if *n != 0 {
			return ""
		}
		do()
		return path
	}
	switch v.Type() {
	case timeType:
		return here(func() { v.Set(reflect.ValueOf(metav1.NewTime(noon.Add(time.Hour)))) })
	case quantityType:
		return here(func() { v.Set(reflect.ValueOf(resource.MustParse("2"))) })
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		if at := here(v.SetZero); at != "" {
			return at + " set to nil"
		}
		return change(v.Elem(), n, path)
	case reflect.Struct:
		for i := range v.NumField() {
			if at := change(v.Field(i), n, path+"."+v.Type().Field(i).Name); at != "" {
				return at
			}
		}
		return ""
	case reflect.Slice:
		if v.Len() == 0 {
			return ""
		}
		if at := here(v.SetZero); at != "" {
			return at + " emptied"
		}
		return change(v.Index(0), n, path+"[0]")
	case reflect.Map:
		if at := here(v.SetZero); at != "" {
			return at + " emptied"
		}
		key := v.MapKeys()[0]
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		at := change(value, n, path+"[x]")
		v.SetMapIndex(key, value)
		return at
	case reflect.Interface:
		return ""
	case reflect.String:
		return here(func() { v.SetString("y") })
	case reflect.Bool:
		return here(func() { v.SetBool(false) })
	case reflect.Uint8:
		return here(func() { v.SetUint('2') })
	case reflect.Float32, reflect.Float64:
		return here(func() { v.SetFloat(2) })
	}
	return here(func() { v.SetInt(2) })
}

// weighty is the status without what only counts and words.
func weighty(st *v1beta1.InferenceServiceStatus) *v1beta1.InferenceServiceStatus {
	out := st.DeepCopy()
	for name, c := range out.Components {
		if a := c.Autoscaler; a != nil {
			a.CurrentReplicas, a.DesiredReplicas, a.LastScaleTime = 0, 0, nil
			for i := range a.Conditions {
				x := &a.Conditions[i]
				if x.Status != metav1.ConditionFalse {
					x.Reason = ""
				}
				x.Message, x.ObservedGeneration, x.LastTransitionTime = "", 0, metav1.Time{}
			}
		}
		if l := c.Lifecycle; l != nil {
			l.Replicas, l.ReadyReplicas, l.ServingReplicas, l.AvailableReplicas = 0, 0, 0, 0
			l.UpdatedReplicas, l.UpdatedReadyReplicas = 0, 0
			for i := range l.Conditions {
				l.Conditions[i].Message = ""
			}
			if l.RolloutHold != nil {
				l.RolloutHold.Reason = ""
			}
		}
		out.Components[name] = c
	}
	for i := range out.Conditions {
		out.Conditions[i].Message = ""
	}
	return out
}

// A comparison by hand says what the reflective one says, for a change of any field.
func TestSameServiceStatusSeesEveryField(t *testing.T) {
	base := &v1beta1.InferenceServiceStatus{}
	fill(reflect.ValueOf(base).Elem())
	if !sameServiceStatus(base, base.DeepCopy(), exactly) || !sameServiceStatus(base, base.DeepCopy(), byWeight) {
		t.Fatal("a copy differs from its original")
	}
	changes, light := 0, 0
	for n := 1; ; n++ {
		next, left := base.DeepCopy(), n
		field := change(reflect.ValueOf(next).Elem(), &left, "status")
		if field == "" {
			break
		}
		changes++
		if apiequality.Semantic.DeepEqual(base, next) {
			t.Fatalf("%s: the test changed nothing", field)
		}
		if sameServiceStatus(base, next, exactly) || sameServiceStatus(next, base, exactly) {
			t.Errorf("a change of %s is not seen", field)
		}
		want := apiequality.Semantic.DeepEqual(weighty(base), weighty(next))
		if want {
			light++
		}
		if got := sameServiceStatus(base, next, byWeight); got != want {
			t.Errorf("%s: the same by weight: %v, want %v", field, got, want)
		}
	}
	if changes < 100 || light != 17 {
		t.Errorf("%d changes, %d of them light: the test does not reach the whole status", changes, light)
	}
}

// Rows are compared elsewhere.
func TestSameReplicaStatusSeesEveryFieldButRows(t *testing.T) {
	base := &v1beta1.InferenceReplicaStatus{}
	fill(reflect.ValueOf(base).Elem())
	base.InstanceStatuses, base.InstanceStatusColumns, base.InstanceStatusEncoding = nil, nil, ""
	if !sameReplicaStatus(base, base.DeepCopy()) {
		t.Fatal("a copy differs from its original")
	}
	changes := 0
	for n := 1; ; n++ {
		next, left := base.DeepCopy(), n
		field := change(reflect.ValueOf(next).Elem(), &left, "status")
		if field == "" {
			break
		}
		changes++
		rows := *next
		rows.InstanceStatuses, rows.InstanceStatusColumns, rows.InstanceStatusEncoding = nil, nil, ""
		want := apiequality.Semantic.DeepEqual(base, &rows)
		if got := sameReplicaStatus(base, next); got != want {
			t.Errorf("%s: the same: %v, want %v", field, got, want)
		}
	}
	if changes < 50 {
		t.Errorf("%d changes: the test does not reach the whole status", changes)
	}
}

func TestSameReplicaSpecSeesEveryField(t *testing.T) {
	base := &v1beta1.InferenceReplicaSpec{}
	v := reflect.ValueOf(base).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Name == "Runners" {
			base.Runners = []v1beta1.Runner{{Name: v1beta1.RunnerDefault, Size: 1}} // a whole pod is the API library's to compare
			continue
		}
		fill(v.Field(i))
	}
	if !sameReplicaSpec(base, base.DeepCopy()) {
		t.Fatal("a copy differs from its original")
	}
	changes := 0
	for i := range v.NumField() {
		for n := 1; ; n++ {
			next, left := base.DeepCopy(), n
			f := reflect.ValueOf(next).Elem().Field(i)
			field := ""
			if v.Type().Field(i).Name == "Runners" {
				if n == 1 {
					next.Runners[0].Template.Labels = map[string]string{"a": "b"}
					field = "Runners"
				}
			} else {
				field = change(f, &left, "spec."+v.Type().Field(i).Name)
			}
			if field == "" {
				break
			}
			changes++
			if apiequality.Semantic.DeepEqual(base, next) {
				t.Fatalf("%s: the test changed nothing", field)
			}
			if sameReplicaSpec(base, next) || sameReplicaSpec(next, base) {
				t.Errorf("a change of %s is not seen", field)
			}
		}
	}
	if changes < 40 {
		t.Errorf("%d changes: the test does not reach the whole spec", changes)
	}
}

func TestKept(t *testing.T) {
	stored := &v1beta1.ScaleTargetRef{Name: "a"}
	if kept(stored, v1beta1.ScaleTargetRef{Name: "a"}) != stored {
		t.Error("the same value must stay the same object")
	}
	if got := kept(stored, v1beta1.ScaleTargetRef{Name: "b"}); got == stored || got.Name != "b" || stored.Name != "a" {
		t.Errorf("next value %+v, stored %+v", got, stored)
	}
	if got := kept(nil, v1beta1.ScaleTargetRef{Name: "b"}); got == nil || got.Name != "b" {
		t.Errorf("first value %+v", got)
	}
}
