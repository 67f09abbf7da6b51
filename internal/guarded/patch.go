package guarded

import (
	"encoding/json"
	"strings"
)

// Op is one JSON Patch operation.
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Annotation is a wanted annotation: set to Value, or gone when Value is nil.
type Annotation struct {
	Key   string
	Value *string
}

// guardOps test that the target is the object that was read, unchanged.
func guardOps(t Target) []Op {
	return []Op{
		{Op: "test", Path: "/metadata/uid", Value: t.UID},
		{Op: "test", Path: "/metadata/resourceVersion", Value: t.ResourceVersion},
	}
}

// annotationOps turns wanted annotations into operations of which only the
// tests can fail: the API server answers a failed test and an impossible remove
// alike, and the second must never look like the first.
func annotationOps(have map[string]string, want []Annotation) []Op {
	var ops []Op
	exists := len(have) > 0
	for _, w := range want {
		path := "/metadata/annotations/" + escapePointer(w.Key)
		old, present := have[w.Key]
		switch {
		case w.Value == nil && present:
			ops = append(ops, Op{"test", path, old}, Op{Op: "remove", Path: path})
		case w.Value == nil:
		case present:
			ops = append(ops, Op{"test", path, old}, Op{"replace", path, *w.Value})
		case exists:
			ops = append(ops, Op{"add", path, *w.Value})
		default:
			ops = append(ops, Op{"add", "/metadata/annotations", map[string]string{w.Key: *w.Value}})
			exists = true
		}
	}
	return ops
}

func escapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

func encodePatch(ops []Op) ([]byte, error) { return json.Marshal(ops) }
