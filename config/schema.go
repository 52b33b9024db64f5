package config

import (
	"reflect"
	"strconv"
	"strings"
)

// field is one key of the schema, or one section when children is not nil. The schema is read from
// the struct tags.
type field struct {
	key      string // full: tools.fs.track_reads
	name     string // its last part
	index    []int  // for reflect.Value.FieldByIndex
	typ      reflect.Type
	doc      string
	enum     []string
	sample   string
	min      int64    // the least number or duration
	check    string   // of a text, or of each entry of a list
	children []*field // of a section
}

var durationType = reflect.TypeFor[Duration]()

// schema is the tree of all fields of Config. It is built on each call: a process reads its
// configuration once.
func schema() *field {
	root := &field{typ: reflect.TypeFor[Config]()}
	root.addChildren()
	return root
}

func (f *field) addChildren() {
	for i := range f.typ.NumField() {
		sf := f.typ.Field(i)
		if !sf.IsExported() {
			continue
		}
		name := sf.Tag.Get("toml")
		c := &field{
			key:    strings.TrimPrefix(f.key+"."+name, "."),
			name:   name,
			index:  append(append([]int{}, f.index...), i),
			typ:    sf.Type,
			doc:    sf.Tag.Get("doc"),
			sample: sf.Tag.Get("sample"),
			min:    1,
			check:  sf.Tag.Get("check"),
		}
		if least := sf.Tag.Get("min"); least != "" {
			c.min, _ = strconv.ParseInt(least, 10, 64) // it is ours
		}
		if e := sf.Tag.Get("enum"); e != "" {
			c.enum = strings.Split(e, "|")
		}
		if c.typ.Kind() == reflect.Struct {
			c.children = []*field{}
			c.addChildren()
		}
		f.children = append(f.children, c)
	}
}

func (f *field) section() bool { return f.children != nil }

// find follows path as far as it is known. rest is what remains of it.
func (f *field) find(path []string) (at *field, rest []string) {
	for len(path) > 0 && f.section() {
		var next *field
		for _, c := range f.children {
			if c.name == path[0] {
				next = c
			}
		}
		if next == nil {
			break
		}
		f, path = next, path[1:]
	}
	return f, path
}

// walk visits every field below f, a section before its keys.
func (f *field) walk(visit func(*field)) {
	for _, c := range f.children {
		visit(c)
		c.walk(visit)
	}
}

func (f *field) keys() (names []string) {
	for _, c := range f.children {
		if !c.section() {
			names = append(names, c.name)
		}
	}
	return names
}

func (f *field) value(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(f.index)
}

// kind is the type in the operator's words.
func (f *field) kind() string {
	switch {
	case f.typ == durationType:
		return "duration"
	case f.enum != nil:
		return "one of"
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Slice:
		return "list of strings"
	}
	return "string"
}
