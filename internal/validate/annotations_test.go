package validate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"abc", "abd", 1}, {"abc", "ac", 1}, {"ac", "abc", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2},
	} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

// One or two edits of a known key are always noticed, and a known key never is.
func TestMeantFindsNearKeys(t *testing.T) {
	for _, key := range v1beta1.KnownAnnotationKeys() {
		if near := meant(key); near != "" {
			t.Errorf("%s is taken for %s", key, near)
		}
	}
	letters := rapid.SampledFrom(strings.Split("abcdefghijklmnopqrstuvwxyz-", ""))
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom(v1beta1.KnownAnnotationKeys()).Draw(t, "key")
		name, ok := strings.CutPrefix(key, v1beta1.AnnotationPrefix)
		if !ok {
			t.Fatalf("known key %s has another prefix", key)
		}
		for range rapid.IntRange(1, 2).Draw(t, "edits") {
			at := rapid.IntRange(0, len(name)).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				name = name[:at] + letters.Draw(t, "letter") + name[at:]
			case 1:
				if at < len(name) {
					name = name[:at] + name[at+1:]
				}
			case 2:
				if at < len(name) {
					name = name[:at] + letters.Draw(t, "letter") + name[at+1:]
				}
			}
		}
		got := v1beta1.AnnotationPrefix + name
		near := meant(got)
		for _, k := range v1beta1.KnownAnnotationKeys() {
			if got == k {
				return
			}
		}
		for _, family := range openFamilies {
			if strings.HasPrefix(got, family) {
				return
			}
		}
		if d := distance(got, near); near == "" || d > 2 {
			t.Fatalf("%s, made from %s, is taken for %q", got, key, near)
		}
	})
}

func FuzzAnnotations(f *testing.F) {
	f.Add(v1beta1.RolloutPausedAnnotation, "true")
	f.Add("ome.io/rollout-pausé", "")
	f.Add(v1beta1.RevisionHistoryLimitAnnotation, "+1")
	f.Add("ome.io/", "\xff")
	f.Fuzz(func(t *testing.T, key, value string) {
		var r Result
		checkAnnotations(&r, map[string]string{key: value}, nil)
		for _, p := range r.Errors {
			if p.Field != "metadata.annotations["+key+"]" {
				t.Errorf("%q", p)
			}
		}
	})
}
