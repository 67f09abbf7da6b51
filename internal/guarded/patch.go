package guarded

import (
	"encoding/json"
	"strings"

	"ome.io/ome/api/v1beta1"
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

// patchOps are the guard and the change of a subject.
func patchOps(s Subject, c Change) []Op {
	ops := append(guardOps(s.Target), annotationOps(s.Annotations, c.Annotations)...)
	if c.Scale != nil {
		ops = append(ops, Op{"test", "/spec/replicas", c.Scale.From}, Op{"replace", "/spec/replicas", c.Scale.To})
	}
	return ops
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

// answerTo is what an answer to a patch is checked for.
type answerTo struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		UID         string            `json:"uid"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
}

// unbound says why an answer isn't about this request; empty when it is.
func unbound(raw []byte, s Subject, c Change) string {
	kind, version := s.Ref.Kind, v1beta1.GroupVersion.String()
	if s.Subresource == subresourceScale {
		kind, version = kindScale, scaleVersion
	}
	var a answerTo
	if err := decode(raw, &a); err != nil {
		return "the answer is no " + kind + ": " + Clean(err.Error())
	}
	m := a.Metadata
	if a.Kind != kind || a.APIVersion != version || m.Namespace != s.Target.Namespace || m.Name != s.Target.Name || m.UID != s.Target.UID {
		return "the answer is about another object than " + s.Ref.String()
	}
	for _, w := range c.Annotations {
		got, ok := m.Annotations[w.Key]
		if ok != (w.Value != nil) || (ok && got != *w.Value) {
			return "the answer doesn't show the requested annotation " + w.Key
		}
	}
	if c.Scale != nil && (a.Spec.Replicas == nil || *a.Spec.Replicas != c.Scale.To) {
		return "the answer doesn't show the requested spec.replicas"
	}
	return ""
}

// byHand is the same change as a plain kubectl command under the same guard;
// empty when the subject isn't known.
func (ev *Evidence) byHand(s Subject, c Change) string {
	if s.Target.Name == "" {
		return ""
	}
	object := s.Ref.Resource + "." + v1beta1.Group
	guard := " --resource-version=" + ShellQuote(s.Target.ResourceVersion)
	if c.Scale != nil {
		return ev.kubectl("scale " + object + " " + ShellQuote(s.Target.Name) + " --replicas=" + itoa(c.Scale.To) + guard)
	}
	var words []string
	overwrite := ""
	for _, w := range c.Annotations {
		_, present := s.Annotations[w.Key]
		switch {
		case w.Value != nil:
			words = append(words, w.Key+"="+ShellQuote(*w.Value))
			if present {
				overwrite = " --overwrite"
			}
		case present:
			words = append(words, w.Key+"-")
		}
	}
	if len(words) == 0 {
		return ""
	}
	return ev.kubectl("annotate " + object + " " + ShellQuote(s.Target.Name) + " " + strings.Join(words, " ") + overwrite + guard)
}
