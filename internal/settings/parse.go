package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

// ConfigMapName is the ConfigMap, in the manager's namespace, that holds the settings.
const ConfigMapName = "inferenceservice-config"

// LastGoodAnnotation keeps, on the ConfigMap, the settings of the last time nothing was wrong
// with them. Its value is what Encode returns.
const LastGoodAnnotation = v1beta1.LastGoodConfigAnnotation

// Problem is one value that could not be used.
type Problem struct {
	// Key of the ConfigMap.
	Key string
	// Path of the field inside the key's JSON, empty when the whole key is bad.
	Path string
	// Message says what the value is, what was expected and what is used meanwhile.
	Message string
}

func (p Problem) Error() string {
	at := p.Key
	if p.Path != "" {
		at += ": " + p.Path
	}
	return at + ": " + p.Message
}

// Parse reads the ConfigMap's data. A bad value is replaced by the one of lastGood, or by the
// default when lastGood is nil. Problems come in a fixed order.
func Parse(data map[string]string, lastGood *config.Settings) (config.Settings, []Problem) {
	out := config.Default()
	fallback := config.Default()
	if lastGood != nil {
		fallback = *lastGood
	}
	p := parser{out: &out, fallback: &fallback, using: "using the default"}
	if lastGood != nil {
		p.using = "using the last good value"
	}
	for _, key := range keys() {
		raw, ok := data[key]
		if !ok || strings.TrimSpace(raw) == "" {
			continue
		}
		p.key(key, raw)
	}
	p.crossChecks()
	p.providers(data)
	return out, p.problems
}

// Unused lists what is set and has no effect in this release, in a fixed order.
func Unused(data map[string]string) []Problem {
	var out []Problem
	roots := map[string]map[string]any{}
	for _, f := range fields {
		if f.unused == "" {
			continue
		}
		root, ok := roots[f.key]
		if !ok {
			root, _ = decodeObject(data[f.key]) // Parse tells what is wrong with it
			roots[f.key] = root
		}
		if _, found, _ := lookup(root, f.path); found {
			out = append(out, Problem{Key: f.key, Path: f.path, Message: f.unused})
		}
	}
	lifecycle, _ := decodeObject(data["lifecycle"])
	for _, half := range [][2]string{{overdueSlack, nodeUnreachable}, {nodeUnreachable, overdueSlack}} {
		if isSet(lifecycle, half[0]) && !isSet(lifecycle, half[1]) {
			out = append(out, Problem{Key: "lifecycle", Path: half[0], Message: "has no effect without " + half[1] +
				"; set both to remove pods that outlive their deletion on a dead node, or neither"})
		}
	}
	return out
}

func isSet(root map[string]any, path string) bool {
	value, found, _ := lookup(root, path)
	return found && value != nil
}

func keys() []string {
	set := map[string]bool{}
	for _, f := range fields {
		set[f.key] = true
	}
	return slices.Sorted(maps.Keys(set))
}

type parser struct {
	out, fallback *config.Settings
	// using says what a bad value is replaced by.
	using    string
	problems []Problem
}

func (p *parser) problem(key, path, format string, args ...any) {
	p.problems = append(p.problems, Problem{Key: key, Path: path, Message: fmt.Sprintf(format, args...) + "; " + p.using})
}

func (p *parser) key(key, raw string) {
	root, err := decodeObject(raw)
	if err != nil {
		p.problem(key, "", "%v", err)
		for _, f := range fields {
			if f.key == key {
				f.keep(p.out, p.fallback)
			}
		}
		return
	}
	// A parent that isn't an object spoils every field below it, and is reported once.
	badParents := map[string]bool{}
	for _, f := range fields {
		if f.key != key {
			continue
		}
		value, found, badParent := lookup(root, f.path)
		switch {
		case badParent != "":
			if !badParents[badParent] {
				badParents[badParent] = true
				p.problem(key, badParent, "must be a JSON object")
			}
			f.keep(p.out, p.fallback)
		case !found:
		default:
			if err := f.set(p.out, value); err != nil {
				p.problem(key, f.path, "%s: %v", show(value), err)
				f.keep(p.out, p.fallback)
			}
		}
	}
}

// crossChecks rejects values that are fine alone and not together.
func (p *parser) crossChecks() {
	strategies := []struct {
		component  string
		out, known *config.UpdateStrategy
	}{
		{"engine", &p.out.Deploy.UpdateStrategy.Engine, &p.fallback.Deploy.UpdateStrategy.Engine},
		{"decoder", &p.out.Deploy.UpdateStrategy.Decoder, &p.fallback.Deploy.UpdateStrategy.Decoder},
		{"router", &p.out.Deploy.UpdateStrategy.Router, &p.fallback.Deploy.UpdateStrategy.Router},
	}
	for _, s := range strategies {
		if isZero(s.out.MaxSurge) && isZero(s.out.MaxUnavailable) {
			p.problem("deploy", "updateStrategy."+s.component,
				"maxSurge and maxUnavailable are both zero, so no Instance could ever move; set one of them above zero")
			*s.out = *s.known
		}
	}
	budgets := []struct {
		mode       string
		out, known *config.DisruptionBudget
	}{
		{"rawDeployment", &p.out.PodDisruptionBudget.RawDeployment, &p.fallback.PodDisruptionBudget.RawDeployment},
		{"omeNative", &p.out.PodDisruptionBudget.OMENative, &p.fallback.PodDisruptionBudget.OMENative},
	}
	for _, b := range budgets {
		if b.out.MinAvailable != nil && b.out.MaxUnavailable != nil {
			p.problem("podDisruptionBudget", b.mode,
				"minAvailable and maxUnavailable are both set; keep one of them")
			*b.out = *b.known
		}
	}
	if p.out.InstanceStatus.Encoding == encodingColumnar && p.out.InstanceStatus.MaxDecodedInstances == 0 {
		p.problem("omenativeStatus", "maxDecodedInstances",
			"ColumnarV2 needs a bound above zero")
		p.out.InstanceStatus = p.fallback.InstanceStatus
	}
}

// Encode writes settings for LastGoodAnnotation.
func Encode(s config.Settings) string {
	raw, err := json.Marshal(s)
	if err != nil {
		// Settings holds numbers, strings and int-or-strings only.
		panic(err)
	}
	return string(raw)
}

// Decode reads what Encode wrote. A field that the text lacks has its default, so that the
// annotation of an older release can be read.
func Decode(text string) (config.Settings, error) {
	s := config.Default()
	// The budgets' pointers are shared by every default; a decoder writes through pointers.
	s.PodDisruptionBudget = config.PodDisruptionBudgets{}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return config.Settings{}, fmt.Errorf("annotation %s: %w", LastGoodAnnotation, err)
	}
	// Decoding a number over a default percentage leaves the default's text behind.
	for _, u := range []*config.UpdateStrategy{&s.Deploy.UpdateStrategy.Engine, &s.Deploy.UpdateStrategy.Decoder, &s.Deploy.UpdateStrategy.Router} {
		for _, b := range []*intstr.IntOrString{&u.MaxSurge, &u.MaxUnavailable} {
			if b.Type == intstr.Int {
				b.StrVal = ""
			}
		}
	}
	return s, nil
}

func decodeObject(raw string) (map[string]any, error) {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if dec.More() {
		return nil, fmt.Errorf("not a JSON object: something follows it")
	}
	return root, nil
}

// lookup walks a dotted path. badParent is the path of the first step that isn't an object.
func lookup(root map[string]any, path string) (value any, found bool, badParent string) {
	steps := strings.Split(path, ".")
	at := root
	for i, step := range steps {
		v, ok := at[step]
		if !ok {
			return nil, false, ""
		}
		if i == len(steps)-1 {
			return v, true, ""
		}
		next, ok := v.(map[string]any)
		if !ok {
			return nil, false, strings.Join(steps[:i+1], ".")
		}
		at = next
	}
	return nil, false, ""
}

func show(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const most = 80
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}
