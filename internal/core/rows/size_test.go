package rows

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

// fillLong sets every field below v to what takes the most room.
func fillLong(v reflect.Value) {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		v.Set(reflect.ValueOf(metav1.NewTime(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillLong(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fillLong(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fillLong(v.Index(i))
		}
	case reflect.String:
		v.SetString(strings.Repeat("<", 1000)) // six bytes each
	case reflect.Bool:
		v.SetBool(false)
	case reflect.Int32:
		v.SetInt(math.MinInt32)
	case reflect.Int64:
		v.SetInt(math.MinInt64)
	default:
		panic("columns hold a " + v.Type().String() + ", which the test can't set")
	}
}

// A field that the bound forgets would make it too small here.
func TestColumnsAtMostCountsEveryField(t *testing.T) {
	full := &v1beta1.InstanceStatusColumns{}
	fillLong(reflect.ValueOf(full).Elem())
	numbers := full.DeepCopy() // every field, with short texts
	var short func(reflect.Value)
	short = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			short(v.Elem())
		case reflect.Struct:
			if v.Type() != reflect.TypeFor[metav1.Time]() {
				for i := range v.NumField() {
					short(v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				short(v.Index(i))
			}
		case reflect.String:
			v.SetString("x")
		}
	}
	short(reflect.ValueOf(numbers).Elem())
	for name, c := range map[string]*v1beta1.InstanceStatusColumns{"long texts": full, "short texts": numbers} {
		raw, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if most := columnsAtMost(c); most < len(raw) {
			t.Errorf("%s: at most %d bytes, really %d", name, most, len(raw))
		}
	}
}

func TestPropertyColumnsAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := columnsOf(normalized(drawRows(t)))
		raw, err := json.Marshal(columns)
		if err != nil {
			t.Fatal(err)
		}
		if most := columnsAtMost(columns); most < len(raw) {
			t.Fatalf("at most %d bytes, really %d: %s", most, len(raw), raw)
		}
	})
}

func TestOver(t *testing.T) {
	e, err := Encode(rollout20k(), options20k)
	if err != nil {
		t.Fatal(err)
	}
	size, err := e.Size()
	if err != nil {
		t.Fatal(err)
	}
	if most := columnsAtMost(e.Columns); most > size*3/2 {
		t.Errorf("the bound of %d bytes on %d is no use", most, size)
	}
	dense := Encoded{Encoding: v1beta1.InstanceStatusDenseV1, Rows: restingRows(10)}
	denseSize, err := dense.Size()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		e     Encoded
		limit int
		want  bool
	}{
		{"far below", e, 1 << 20, false},
		{"below the bound and at the size", e, size, false},
		{"one byte over", e, size - 1, true},
		{"a list at its size", dense, denseSize, false},
		{"a list one byte over", dense, denseSize - 1, true},
		{"nothing", Encoded{}, 0, false},
	} {
		if got, err := c.e.Over(c.limit); err != nil || got != c.want {
			t.Errorf("%s: over %d bytes: %v (%v), want %v", c.name, c.limit, got, err, c.want)
		}
	}
}
