package args

import "reflect"

// Field is one argument as its tags declare it, for who reads calls that are not quite right.
type Field struct {
	Name     string
	Kind     reflect.Kind
	Required bool
	Objects  bool // an array of objects, which have Items
	Items    []Field
	Enum     []string
	Min, Max *int64
	Fallback string // the default
}

// Fields are the arguments, in order.
func (s *Spec) Fields() []Field { return told(s.fields) }

func told(in []field) []Field {
	out := make([]Field, len(in))
	for i, f := range in {
		out[i] = Field{f.name, f.typ.Kind(), f.required, f.items != nil, told(f.items), f.enum, f.min,
			f.max, f.fallback}
	}
	return out
}
