package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// object is a decoded JSON object. Pod specs are merged in this form because "was it set" is then
// simply "is it there".
type object = map[string]any

// listKeys names the lists that are merged element by element, and what identifies an element.
// Every other list is replaced whole.
var listKeys = map[string][]string{
	"containers":                {"name"},
	"env":                       {"name"},
	"hostAliases":               {"ip"},
	"imagePullSecrets":          {"name"},
	"initContainers":            {"name"},
	"ports":                     {"containerPort", "protocol"},
	"resourceClaims":            {"name"},
	"schedulingGates":           {"name"},
	"topologySpreadConstraints": {"topologyKey"},
	"volumeDevices":             {"devicePath"},
	"volumeMounts":              {"mountPath"},
	"volumes":                   {"name"},
}

// unions are groups of fields of which an object may have one: the patch's choice drops the base's.
var unions = [][]string{
	{"value", "valueFrom"},
	{"exec", "grpc", "httpGet", "sleep", "tcpSocket"},
}

// toObject decodes v's JSON and drops what counts as unset.
func toObject(v any) (object, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out object
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	dropUnset(out)
	return out, nil
}

// fromObject is the way back. Unknown fields can't occur: the object came from the same type.
func fromObject(in object, out any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

// ownKeys hold a person's own keys, of which an empty value says something: a node may be chosen by a
// label without one.
var ownKeys = []string{"annotations", "labels", "matchLabels", "nodeSelector"}

// dropUnset removes nulls, empty strings and empty lists from objects, at any depth. Empty objects
// stay: they mean something (emptyDir: {}) and are harmless in a merge.
func dropUnset(v any) {
	switch v := v.(type) {
	case object:
		for key, value := range v {
			list, isList := value.([]any)
			if value == nil || value == "" || isList && len(list) == 0 {
				delete(v, key)
				continue
			}
			if slices.Contains(ownKeys, key) {
				continue
			}
			dropUnset(value)
		}
	case []any:
		for _, element := range v {
			dropUnset(element)
		}
	}
}

// merge lays patch over base and returns base, which it changes.
func merge(base, patch object) object {
	if base == nil {
		base = object{}
	}
	for _, union := range unions {
		if !slices.ContainsFunc(union, func(f string) bool { return patch[f] != nil }) {
			continue
		}
		for _, f := range union {
			if patch[f] == nil {
				delete(base, f)
			}
		}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case object:
			into, _ := base[key].(object)
			base[key] = merge(into, value)
		case []any:
			keys, keyed := listKeys[key]
			into, ok := base[key].([]any)
			if !keyed || !ok {
				base[key] = value
				continue
			}
			base[key] = mergeList(key, keys, into, value)
		default:
			base[key] = value
		}
	}
	return base
}

// mergeList keeps the base's order and appends what only the patch has.
func mergeList(name string, keys []string, base, patch []any) []any {
	for _, element := range patch {
		at := slices.IndexFunc(base, func(b any) bool { return identity(b, keys) == identity(element, keys) })
		if at < 0 {
			base = append(base, element)
			continue
		}
		into, ok1 := base[at].(object)
		from, ok2 := element.(object)
		if !ok1 || !ok2 {
			base[at] = element
			continue
		}
		if name == "volumes" && !sameSource(into, from) {
			base[at] = element
			continue
		}
		base[at] = merge(into, from)
	}
	return base
}

// sameSource reports whether two volumes of one name can be merged: a volume has one source.
func sameSource(base, patch object) bool {
	for key := range patch {
		if _, ok := base[key]; !ok && key != "name" {
			return false
		}
	}
	return true
}

func identity(element any, keys []string) string {
	o, ok := element.(object)
	if !ok {
		return fmt.Sprint(element)
	}
	var id string
	for _, key := range keys {
		value := o[key]
		if key == "protocol" && value == nil {
			value = "TCP"
		}
		id += fmt.Sprintf("%v\x00", value)
	}
	return id
}

// withContainer puts the main container into a pod spec: merged over the container of its name, or
// in front of the others.
func withContainer(spec object, container object, name string) {
	container["name"] = name
	list, _ := spec["containers"].([]any)
	for i, c := range list {
		if o, ok := c.(object); ok && o["name"] == name {
			list[i] = merge(o, container)
			return
		}
	}
	spec["containers"] = append([]any{container}, list...)
}
