package render

import (
	"regexp"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// placeholder is a reference to the service's metadata inside a runtime's text.
var placeholder = regexp.MustCompile(`\{\{\s*\.(Name|Namespace|(?:Labels|Annotations)\.[A-Za-z0-9][-A-Za-z0-9_./]*)\s*\}\}`)

// substitute fills the placeholders of every string in v. It returns the references that name a
// label or annotation which the service lacks.
func substitute(v any, service *v1beta1.InferenceService) (missing []string) {
	fill := func(text string) string {
		if !strings.Contains(text, "{{") {
			return text
		}
		return placeholder.ReplaceAllStringFunc(text, func(match string) string {
			ref := placeholder.FindStringSubmatch(match)[1]
			kind, key, _ := strings.Cut(ref, ".")
			var value string
			ok := true
			switch kind {
			case "Name":
				value = service.Name
			case "Namespace":
				value = service.Namespace
			case "Labels":
				value, ok = service.Labels[key]
			case "Annotations":
				value, ok = service.Annotations[key]
			}
			if !ok {
				missing = append(missing, ref)
			}
			return value
		})
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return fill(v)
		case object:
			for key, value := range v {
				v[key] = walk(value)
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		}
		return v
	}
	walk(v)
	return missing
}
