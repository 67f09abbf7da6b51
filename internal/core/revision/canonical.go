package revision

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The canonical text is JSON that encoding/json would not change: sorted keys,
// no white space, the escapes of json.Marshal with HTML escaping. So it comes
// back byte for byte from an API server, whichever way the object was encoded.

// plan is what the encoder needs to know of a type, worked out once.
type plan struct {
	kind      reflect.Kind
	marshaler bool      // has MarshalJSON: its text is taken as it is
	zeroer    bool      // has IsZero
	fields    []field   // of a struct, sorted by JSON name
	elem      *lazyPlan // of a pointer, slice, array or map
	stringKey bool      // map with string keys
	typ       reflect.Type
}

// lazyPlan lets recursive types be planned.
type lazyPlan struct {
	typ  reflect.Type
	once sync.Once
	plan *plan
}

func (l *lazyPlan) get() *plan {
	l.once.Do(func() { l.plan = planOf(l.typ) })
	return l.plan
}

type field struct {
	name  string
	key   []byte // `"name":`
	index []int
	elem  *lazyPlan
}

var (
	plans         sync.Map // reflect.Type -> *plan
	marshalerType = reflect.TypeFor[json.Marshaler]()
	zeroerType    = reflect.TypeFor[interface{ IsZero() bool }]()
)

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{kind: t.Kind(), typ: t}
	ptr := reflect.PointerTo(t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
	default:
		p.marshaler = ptr.Implements(marshalerType)
		p.zeroer = ptr.Implements(zeroerType)
	}
	switch {
	case p.marshaler:
	case t.Kind() == reflect.Struct:
		p.fields = structFields(t, nil)
		slices.SortStableFunc(p.fields, func(a, b field) int {
			return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)))
		})
		// A name of the struct itself hides the same name of an inlined one.
		p.fields = slices.CompactFunc(p.fields, func(a, b field) bool { return a.name == b.name })
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Array, t.Kind() == reflect.Map:
		p.elem = &lazyPlan{typ: t.Elem()}
		p.stringKey = t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
	}
	actual, _ := plans.LoadOrStore(t, p)
	return actual.(*plan)
}

func structFields(t reflect.Type, prefix []int) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" && opts == "" {
			continue
		}
		index := append(slices.Clone(prefix), i)
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			out = append(out, structFields(f.Type, index)...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		out = append(out, field{name: tag, key: append(appendString(nil, tag), ':'), index: index, elem: &lazyPlan{typ: f.Type}})
	}
	return out
}

// canonical writes the value that ptr points at.
func canonical(ptr any) ([]byte, error) {
	v := reflect.ValueOf(ptr).Elem()
	return appendValue(make([]byte, 0, 2048), v, planOf(v.Type()))
}

// empty reports whether a struct field says nothing. For a struct that has no
// text of its own the answer comes from writing it.
func empty(v reflect.Value, p *plan) bool {
	switch p.kind {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	if p.zeroer {
		return v.Addr().Interface().(interface{ IsZero() bool }).IsZero()
	}
	if p.kind == reflect.Struct && !p.marshaler {
		return false
	}
	return v.IsZero()
}

func appendValue(b []byte, v reflect.Value, p *plan) ([]byte, error) {
	if p.marshaler {
		if p.kind == reflect.Slice && v.IsNil() {
			return append(b, "null"...), nil
		}
		raw, err := v.Addr().Interface().(json.Marshaler).MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("writing a %s: %w", p.typ, err)
		}
		return appendRaw(b, raw)
	}
	switch p.kind {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case reflect.String:
		return appendString(b, v.String()), nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return appendValue(b, v.Elem(), p.elem.get())
	case reflect.Struct:
		return appendStruct(b, v, p)
	case reflect.Map:
		return appendMap(b, v, p)
	case reflect.Slice, reflect.Array:
		if p.kind == reflect.Slice && p.typ.Elem().Kind() == reflect.Uint8 {
			raw, err := json.Marshal(v.Bytes())
			return append(b, raw...), err
		}
		b = append(b, '[')
		elem := p.elem.get()
		var err error
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, v.Index(i), elem); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	return nil, fmt.Errorf("a revision can't hold a value of type %s", p.typ)
}

func appendStruct(b []byte, v reflect.Value, p *plan) ([]byte, error) {
	b = append(b, '{')
	start := len(b)
	var err error
	for i := range p.fields {
		f := &p.fields[i]
		fv := v
		for _, x := range f.index {
			fv = fv.Field(x)
		}
		fp := f.elem.get()
		if empty(fv, fp) {
			continue
		}
		before := len(b)
		if before > start {
			b = append(b, ',')
		}
		b = append(b, f.key...)
		at := len(b)
		if b, err = appendValue(b, fv, fp); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		// A struct held by value whose fields all say nothing says nothing.
		if fp.kind == reflect.Struct && !fp.marshaler && len(b) == at+2 {
			b = b[:before]
		}
	}
	return append(b, '}'), nil
}

func appendMap(b []byte, v reflect.Value, p *plan) ([]byte, error) {
	if !p.stringKey {
		return nil, fmt.Errorf("a revision can't hold a map of type %s", p.typ)
	}
	keys := make([]string, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		keys = append(keys, it.Key().String())
	}
	slices.Sort(keys)
	elem := p.elem.get()
	slot := reflect.New(p.typ.Elem()).Elem() // map elements have no address
	b = append(b, '{')
	var err error
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k), ':')
		slot.Set(v.MapIndex(reflect.ValueOf(k).Convert(p.typ.Key())))
		if b, err = appendValue(b, slot, elem); err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
	}
	return append(b, '}'), nil
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			raw, _ := json.Marshal(s) // a string always marshals
			return append(b, raw...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendRaw takes the text of a marshaller in canonical form.
func appendRaw(b, raw []byte) ([]byte, error) {
	if len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') && bytes.IndexAny(raw, "<>&\u2028\u2029") < 0 {
		return append(b, raw...), nil
	}
	norm, err := normalize(raw)
	return append(b, norm...), err
}

// normalize rewrites any JSON text with sorted keys, no white space and the
// escapes of json.Marshal.
func normalize(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
