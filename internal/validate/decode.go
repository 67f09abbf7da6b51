package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// Decoded is an object as far as it can be read.
type Decoded[T any] struct {
	Object *T
	// Typos are fields that the type doesn't have, or has twice.
	Typos []string
	// Broken is a value of a wrong type. Nothing of the object can be read then.
	Broken error
}

// UnknownFields words the refusal of typos: a field that isn't known would be admitted unseen.
func UnknownFields(typos []string) string {
	return strings.Join(typos, ", ") + ": correct the spelling or remove it; if a newer release has the field, upgrade the manager of this cluster first"
}

// Decode reads what the rules judge. Status is left out: no rule reads it, and a newer writer's
// fields are welcome there.
func Decode[T any](raw []byte) (Decoded[T], error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return Decoded[T]{}, err
	}
	delete(parts, "status")
	trimmed, err := json.Marshal(parts)
	if err != nil {
		return Decoded[T]{}, err
	}
	out := Decoded[T]{Object: new(T)}
	err = v1beta1.DecodeStrict(trimmed, out.Object)
	// Mistakes that leave the object readable come joined.
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			out.Typos = append(out.Typos, e.Error())
		}
	} else if err != nil {
		out.Broken = locate[T](trimmed)
	}
	return out, nil
}

// locate finds the first value that T can't hold, and says where it is. The decoder names a place
// only for some types, and then in words of its own.
func locate[T any](raw []byte) error {
	reader := json.NewDecoder(bytes.NewReader(raw))
	reader.UseNumber()
	var whole any
	if err := reader.Decode(&whole); err != nil {
		return err
	}
	check := func(v any) error {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		err = v1beta1.DecodeStrict(data, new(T))
		if _, readable := err.(interface{ Unwrap() []error }); readable || err == nil {
			return nil
		}
		// The standard decoder says what it wanted in a form that a program can read.
		if plain := json.Unmarshal(data, new(T)); plain != nil {
			return plain
		}
		return err
	}
	path, value, err := narrow(whole, check)
	if err == nil {
		err = fmt.Errorf("can't be read as %T", *new(T))
	}
	text := err.Error()
	if mistyped := (*json.UnmarshalTypeError)(nil); errors.As(err, &mistyped) {
		text = "want " + inWords(mistyped.Type)
	}
	shown, _ := json.Marshal(value)
	if len(shown) > 60 {
		shown = append(shown[:57:57], "..."...)
	}
	return fmt.Errorf("%s: %s: %s", strings.TrimPrefix(path, "."), shown, text)
}

// narrow follows the error into v. check judges the whole object. Of the elements of a list or an
// object only the first few are kept: the fewest that still fail end in the one to follow.
func narrow(v any, check func(any) error) (path string, value any, err error) {
	err = check(v)
	follow := func(n int, keep func(n int) any, only func(i int, with any) any, name func(i int) string, at func(i int) any) bool {
		first := sort.Search(n+1, func(k int) bool { return check(keep(k)) != nil })
		if first == 0 || first > n {
			return false // the container itself is wrong, or nothing is
		}
		rest, inner, innerErr := narrow(at(first-1), func(with any) error { return check(only(first-1, with)) })
		path, value, err = name(first-1)+rest, inner, innerErr
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if follow(len(keys), func(n int) any {
			some := map[string]any{}
			for _, k := range keys[:n] {
				some[k] = v[k]
			}
			return some
		}, func(i int, with any) any { return map[string]any{keys[i]: with} },
			func(i int) string {
				if strings.ContainsAny(keys[i], "./[]") {
					return "[" + keys[i] + "]"
				}
				return "." + keys[i]
			},
			func(i int) any { return v[keys[i]] }) {
			return path, value, err
		}
	case []any:
		if follow(len(v), func(n int) any { return v[:n] },
			func(_ int, with any) any { return []any{with} },
			func(i int) string { return "[" + strconv.Itoa(i) + "]" },
			func(i int) any { return v[i] }) {
			return path, value, err
		}
	}
	return "", v, err
}

// inWords says what a Go type is in JSON.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number of at most " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a text"
	}
	return "an object"
}
