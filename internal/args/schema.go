// Package args takes the arguments of a call: one struct type declares them, and its tags are both
// the JSON Schema that a model is shown and the rules of the strict decoder.
//
// The rules (docs/internals/rulings.md): the arguments are a closed object, decoded once.
//
//   - Unknown and duplicate keys are refused, with the nearest name.
//   - Numbers and booleans given as strings are taken.
//   - null for an optional argument is the argument left out, and so is "" for a choice.
//   - A table of other agents' names, see [Names], adds names, each with its argument and the way in
//     which its value is turned. Each dialect brings its own, or none.
//   - Another value than the one that was sent is offered and never taken.
//   - Bytes that are not UTF-8 and lone surrogates are refused: encoding/json would turn them into
//     U+FFFD, which is another path.
//
// A Spec is safe for concurrent use.
package args

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// The tags of an argument struct, read by the schema and by the decoder:
//
//	json:"name"            required; with ",omitempty" optional
//	doc:"…"                a model's help beyond the name
//	enum:"a|b|c"           the only strings taken, of an array too
//	min:"1" max:"1000"     bounds of an integer, or of the length of an array
//	default:"250"          told to the model; the run function applies it
//	form:"sha256"          a string that must be a content hash
//	form:"pages"           a string, of which a number is taken too
//	form:"number"          the same, and it is told
//	form:"list"            a string, of which a list is taken too, with commas between
//	offer:"*"              a string that is offered where none was sent

// A Spec is the arguments of one operation.
type Spec struct {
	typ    reflect.Type
	fields func() []field
	names  *Names
	rows   func() map[string][]Alias // by their names
	schema func() json.RawMessage
}

// Of makes the Spec of the struct type A from its tags, which are read at the first use: a malformed one panics there. Without names
// it takes no others than its own, in their very form.
func Of[A any](names *Names) *Spec {
	typ := reflect.TypeFor[A]()
	s := &Spec{typ: typ, names: names, fields: sync.OnceValue(func() []field { return fieldsOf(typ) }),
		rows: sync.OnceValue(func() map[string][]Alias {
			rows := map[string][]Alias{}
			if names != nil {
				for _, row := range names.Aliases {
					for _, theirs := range strings.Fields(row.Theirs) {
						rows[theirs] = append(rows[theirs], row)
					}
				}
			}
			return rows
		})}
	s.schema = sync.OnceValue(func() json.RawMessage {
		out, err := Encode(objectOf(s.fields()))
		if err != nil {
			panic("args: a schema that can't be encoded: " + err.Error()) // only by a bad struct tag
		}
		return out
	})
	return s
}

// lenient says whether calls in other agents' words are taken.
func (s *Spec) lenient() bool { return s.names != nil }

// Schema is the JSON Schema (2020-12), a closed object. MCP assumes 2020-12 without "$schema".
func (s *Spec) Schema() json.RawMessage { return s.schema() }

// field is one argument as its tags declare it.
type field struct {
	name     string
	index    int
	typ      reflect.Type // without the pointer that optional scalars carry
	required bool
	doc      string
	enum     []string
	min, max *int64
	fallback string
	form     string
	offer    string
	items    []field // of an object, or an array of objects
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue // a note of the struct's own check
		}
		name, opts, _ := strings.Cut(sf.Tag.Get("json"), ",")
		f := field{name: name, index: i, typ: sf.Type, required: opts != "omitempty", doc: sf.Tag.Get("doc"), fallback: sf.Tag.Get("default"), form: sf.Tag.Get("form"), offer: sf.Tag.Get("offer")}
		if f.typ.Kind() == reflect.Pointer {
			f.typ = f.typ.Elem()
		}
		if e := sf.Tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, "|")
		}
		f.min, f.max = bound(sf.Tag.Get("min")), bound(sf.Tag.Get("max"))
		if f.typ.Kind() == reflect.Slice && f.typ.Elem().Kind() == reflect.Struct {
			f.items = fieldsOf(f.typ.Elem())
		} else if f.typ.Kind() == reflect.Struct {
			f.items = fieldsOf(f.typ)
		}
		fields = append(fields, f)
	}
	return fields
}

func bound(s string) *int64 {
	if s == "" {
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic("args: bad bound in a struct tag: " + s) // found by any test that lists the tools
	}
	return &n
}

// node is one JSON Schema object. A struct, not a map: the order of its keys
// is the order in which models read it.
type node struct {
	Type        string      `json:"type,omitempty"`
	Description string      `json:"description,omitempty"`
	Enum        []string    `json:"enum,omitempty"`
	Minimum     *int64      `json:"minimum,omitempty"`
	Maximum     *int64      `json:"maximum,omitempty"`
	MinItems    *int64      `json:"minItems,omitempty"`
	MaxItems    *int64      `json:"maxItems,omitempty"`
	Default     any         `json:"default,omitempty"`
	Items       *node       `json:"items,omitempty"`
	Properties  *properties `json:"properties,omitempty"`
	Required    []string    `json:"required,omitempty"`
	Closed      *bool       `json:"additionalProperties,omitempty"`
}

// properties keeps the order of the struct's fields.
type properties []property

type property struct {
	name string
	node *node
}

func (p properties) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, one := range p {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := Encode(one.name)
		if err != nil {
			return nil, err
		}
		body, err := Encode(one.node)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), body...)
	}
	return append(out, '}'), nil
}

func objectOf(fields []field) *node {
	n := &node{Type: "object", Properties: &properties{}, Closed: new(bool)}
	for _, f := range fields {
		*n.Properties = append(*n.Properties, property{f.name, f.schema()})
		if f.required {
			n.Required = append(n.Required, f.name)
		}
	}
	return n
}

func (f field) schema() *node {
	n := &node{Description: f.doc, Enum: f.enum}
	switch f.typ.Kind() {
	case reflect.String:
		n.Type = "string"
	case reflect.Bool:
		n.Type = "boolean"
	case reflect.Int, reflect.Int64:
		n.Type, n.Minimum, n.Maximum = "integer", f.min, f.max
	case reflect.Map:
		n.Type = "object"
	case reflect.Struct:
		n = objectOf(f.items)
		n.Description = f.doc
	case reflect.Slice:
		n.Type, n.MinItems, n.MaxItems, n.Enum = "array", f.min, f.max, nil
		if f.items != nil {
			n.Items = objectOf(f.items)
		} else {
			n.Items = field{typ: f.typ.Elem(), enum: f.enum}.schema()
		}
	default:
		panic("args: no schema for an argument of type " + f.typ.String())
	}
	if f.fallback != "" {
		n.Default = json.RawMessage(f.fallback)
		if n.Type == "string" {
			n.Default = f.fallback
		}
	}
	return n
}

// Encode marshals without escaping <, > and &, which a model would read as noise.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
