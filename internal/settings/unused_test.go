package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ome.io/ome/internal/core/config"
)

func TestUnused(t *testing.T) {
	got := messages(Unused(map[string]string{
		"lifecycle":           `{"revisionHistoryLimit":3,"requeue":{"gate":"1s","operation":"2s"},"scaleDownRequeueInterval":null,"instanceReadyTimeout":"5m","forceDelete":{"overdueSlack":"1m"}}`,
		"podDisruptionBudget": `{"omeNative":{"minAvailable":1},"rawDeployment":7}`,
		"rollout":             `{`,
		"deploy":              `{"minReadySeconds":3}`,
		"coordination":        "",
		"other":               `{"requeue":1}`,
	}))
	want := []string{
		"lifecycle: requeue.gate: not used by this release; remove it, or expect nothing of it",
		"lifecycle: scaleDownRequeueInterval: not used by this release; remove it, or expect nothing of it",
		"podDisruptionBudget: rawDeployment: not used by this release; remove it, or expect nothing of it",
		"podDisruptionBudget: omeNative: not used by this release; remove it, or expect nothing of it",
		"lifecycle: forceDelete.overdueSlack: has no effect without forceDelete.nodeUnreachableThreshold; set both to remove pods that outlive their deletion on a dead node, or neither",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Unused(nil); got != nil {
		t.Errorf("nothing set: %v", got)
	}
}

// TestHalfOfForceDelete: either value alone does nothing, and says so.
func TestHalfOfForceDelete(t *testing.T) {
	for data, want := range map[string]string{
		`{}`: "",
		`{"forceDelete":{"overdueSlack":"1m","nodeUnreachableThreshold":"5m"}}`: "",
		`{"forceDelete":{"overdueSlack":null,"nodeUnreachableThreshold":null}}`: "",
		`{"forceDelete":{"overdueSlack":"1m","nodeUnreachableThreshold":null}}`: "forceDelete.overdueSlack",
		`{"forceDelete":{"nodeUnreachableThreshold":"5m"}}`:                     "forceDelete.nodeUnreachableThreshold",
		`{"forceDelete":"on"}`: "", // Parse tells what is wrong with it
	} {
		got := ""
		for _, p := range Unused(map[string]string{"lifecycle": data}) {
			got += p.Path
		}
		set, _ := Parse(map[string]string{"lifecycle": data}, nil)
		both := strings.Contains(data, "1m") && strings.Contains(data, "5m")
		if got != want || set.Lifecycle.ForceDelete.Enabled() != both {
			t.Errorf("%s: told of %q, want %q; enabled = %v", data, got, want, set.Lifecycle.ForceDelete.Enabled())
		}
	}
}

// TestUnusedIsTrue looks for readers of each field in the sources: a field whose
// names nobody selects is not used, and one that somebody reads must not be
// called so.
func TestUnusedIsTrue(t *testing.T) {
	sources := productSources(t, "../core", "../render", "../controller", "../prom")
	for _, f := range fields {
		path := configPath(f)
		if path == nil {
			continue // only one value is allowed, and it is what happens anyway
		}
		selected := func(names, after string) bool {
			return regexp.MustCompile(`\.` + names + `\b` + after).MatchString(sources)
		}
		read := true
		for i, name := range path {
			read = read && selected(name, "")
			// A field of a part that is nowhere handed on as a whole is selected together with it.
			if i > 0 && !selected(path[i-1], `([^.]|\.For\()`) {
				read = read && selected(path[i-1]+`\.`+name, "")
			}
		}
		if read == (f.unused != "") {
			t.Errorf("%s: %s (Settings.%s): read = %v, and it is called %q", f.key, f.path, strings.Join(path, "."), read, f.unused)
		}
	}
}

// productSources joins the sources of directories, but for tests and the settings themselves.
func productSources(t *testing.T, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && e.Name() == "config":
				return filepath.SkipDir
			case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			raw, err := os.ReadFile(path)
			all.Write(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// configPath names the fields of Settings that lead to where f stores its value.
func configPath(f field) []string {
	var marked, got config.Settings
	mark(reflect.ValueOf(&marked).Elem())
	f.keep(&got, &marked)
	var path []string
	v := reflect.ValueOf(got)
	for v.Kind() == reflect.Struct && strings.HasSuffix(v.Type().PkgPath(), "core/config") {
		next := reflect.Value{}
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				path, next = append(path, v.Type().Field(i).Name), v.Field(i)
				break
			}
		}
		if !next.IsValid() {
			return nil
		}
		v = next
	}
	return path
}

// mark makes every value differ from zero.
func mark(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			mark(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	default:
		v.SetInt(1)
	}
}
