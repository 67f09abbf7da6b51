package sim

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/internal/core"
)

func containsWord(move, word string) bool { return strings.Contains(move, " "+word+" ") }

// drainUnderWay is true when the move only repeats one made before the pause.
func drainUnderWay(before []string, move string) bool {
	for _, m := range before {
		if m == move {
			return true
		}
	}
	return false
}

type serviceObject = corev1.Service

// dump is every object of a world as text.
func dump(t *testing.T, w core.World) string {
	t.Helper()
	var out strings.Builder
	add := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(raw)
	}
	add(w.Service)
	add(w.Services)
	for i := range w.Components {
		c := &w.Components[i]
		add(c.Replica)
		add(c.Revisions)
		add(c.Pods)
		if c.Template != nil {
			add(c.Template.Runners)
			add(c.Template.Lifecycle)
		}
	}
	return out.String()
}
