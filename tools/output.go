package tools

import (
	"reflect"
	"slices"
	"strings"

	"moltisfs/internal/dialect"
)

// A bulky payload has members that Text says too: a brief answer, see [answer.Brief], goes without
// them. inText names all that may be left out; brief is a copy where they are empty, and names those
// that are.
type bulky interface {
	inText() []string
	brief() (Payload, []string)
}

// refusalKinds are those that a Refusal has.
var refusalKinds = []string{KindNotFound, KindPermissionDenied, KindTooLarge, KindNotRegularFile,
	KindPathDenied, KindBadRequest, KindSymlinkRefused, KindMustRead, KindModified, KindNoMatch,
	KindNotUnique, KindConflict, KindApprovalDenied, KindApprovalTimeout, KindApprovalStale,
	KindUnsupported, KindLimit, KindDeadline, KindPolicyError, KindIOError, KindUnavailable}

// inTextMember is the member of a brief answer that names what it goes without.
const inTextMember = "in_text"

// object is a JSON Schema.
type object = map[string]any

// outputSchema describes every payload that a tool can answer: its successes, which are open objects
// with the fields of their types; the refusals, which carry fields of their own; and what a hook may
// make of either.
func outputSchema(answers []Payload) object {
	known := slices.Clone(refusalKinds)
	var any []object
	for _, p := range answers {
		known = append(known, p.Kind())
		any = append(any, schemaOf(p))
	}
	text := object{"type": "string"}
	any = append(any, object{
		"properties": object{"kind": object{"enum": refusalKinds}, "error": text, "hint": text},
		"required":   []string{"kind", "error", "hint"},
	}, object{"properties": object{"kind": object{"not": object{"enum": known}}}})
	return object{"type": "object", "properties": object{"kind": text}, "required": []string{"kind"},
		"anyOf": any}
}

func schemaOf(p Payload) object {
	properties := object{"kind": object{"const": p.Kind()}}
	required := membersOf(reflect.TypeOf(p).Elem(), properties)
	if c, ok := p.(*Content); ok {
		required = append(required, membersOf(reflect.TypeOf(c.Body).Elem(), properties)...)
	}
	var left []string
	if b, ok := p.(bulky); ok {
		left = b.inText()
	}
	if left != nil {
		properties[inTextMember] = object{"type": "array", "items": object{"enum": left}}
	}
	required = slices.DeleteFunc(required, func(name string) bool { return slices.Contains(left, name) })
	return object{"properties": properties, "required": append([]string{"kind"}, required...)}
}

// membersOf adds the members of a struct as encoding/json writes it, and gives those that are always
// there.
func membersOf(t reflect.Type, properties object) (required []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			required = append(required, membersOf(f.Type, properties)...)
			continue
		case !f.IsExported(), name == "-":
			continue
		}
		properties[name] = valueOf(f.Type)
		if !strings.Contains(rest, "omit") {
			required = append(required, name)
		}
	}
	return required
}

// valueOf is the schema of a member's value.
func valueOf(t reflect.Type) object {
	switch t.Kind() {
	case reflect.Interface:
		return object{} // anything: the arguments of a call to make next
	case reflect.Pointer:
		v := valueOf(t.Elem())
		if v["type"] != nil {
			v["type"] = []any{v["type"], "null"}
		}
		return v
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": valueOf(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": valueOf(t.Elem())}
	case reflect.Struct:
		properties := object{}
		required := append([]string{}, membersOf(t, properties)...)
		return object{"type": "object", "properties": properties, "required": required}
	}
	panic("tools: no schema for " + t.String()) // found by any test that lists the tools
}

var _ dialect.Brief = answer{}

// Brief is the JSON without what Text says too.
func (a answer) Brief() ([]byte, error) {
	b, ok := a.Payload.(bulky)
	if !ok {
		return a.JSON(false)
	}
	short, left := b.brief()
	if left == nil {
		return answer{short}.JSON(false)
	}
	out, err := Encode(short)
	if err != nil {
		return nil, err
	}
	return withoutEmpty(withoutBytes(out), left)
}

// withoutEmpty takes empty members out of an encoded object, which are not its last, and names them
// at its end. No text can be mistaken for one: within a string its quotes would be escaped.
func withoutEmpty(body []byte, names []string) ([]byte, error) {
	s := string(body)
	for _, n := range names {
		for _, empty := range []string{`""`, `[]`} {
			s = strings.Replace(s, `,"`+n+`":`+empty, "", 1)
		}
	}
	list, err := plainJSON(names)
	if err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(s, "}") + `,"` + inTextMember + `":` + string(list) + "}"), nil
}
