package args

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"moltisfs/internal/nearest"
)

const (
	maxRequest = 64 << 20 // bytes of arguments; a Write of a large file included
	maxDepth   = 64
)

// Error is an argument that cannot be taken: what is so, and the next move. Call are arguments that
// would be taken in their place, where they are known, and Tool is whose, where that is another.
type Error struct {
	What, Hint string
	Call       json.RawMessage
	Tool       string
}

func (e *Error) Error() string { return e.What }

// Errorf makes an *Error.
func Errorf(hint, format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Hint: hint}
}

// Decode makes the argument struct that raw describes: a pointer to the type that the Spec was
// made of. The pointer is never nil, so that a refusal can look at what was understood. Errors
// are of type *Error.
func (s *Spec) Decode(raw json.RawMessage) (any, error) {
	into := reflect.New(s.typ)
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	if len(raw) > maxRequest {
		return into.Interface(), Errorf("split the content over several calls",
			"the arguments have %d bytes; %d are taken", len(raw), maxRequest)
	}
	if err := CheckText(raw); err != nil {
		return into.Interface(), err
	}
	if raw[0] != '{' {
		return into.Interface(), Errorf("send an object with the arguments as its keys",
			"the arguments are %s, not an object", jsonKind(raw))
	}
	return into.Interface(), s.decodeObject(raw, s.fields, into.Elem(), "")
}

// Injected are the arguments that gateways put beside those of the model, as "_session_key" and
// "_working_dir": those whose names begin with "_", as name=value. They are for the record, so that
// long ones are cut, and only the first are told.
func Injected(raw json.RawMessage) (out []string) {
	const most, longest = 16, 256
	var all map[string]json.RawMessage
	if !bytes.Contains(raw, []byte(`"_`)) || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(key, "_") || len(out) == most {
			continue
		}
		text := string(all[key])
		if json.Unmarshal(all[key], &text) != nil {
			text = string(all[key])
		}
		if text = key + "=" + text; len(text) > longest {
			text = strings.ToValidUTF8(text[:longest], "") + "…"
		}
		out = append(out, text)
	}
	return out
}

// Canonical is the arguments raw under their own names and with typed values: in, that Decode made of
// raw, as JSON, and what gateways put beside it.
func Canonical(in any, raw json.RawMessage) (json.RawMessage, error) {
	out, err := Encode(in)
	if err != nil || !bytes.Contains(raw, []byte(`"_`)) {
		return out, err
	}
	var ours, all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil || json.Unmarshal(out, &ours) != nil {
		return out, nil
	}
	maps.DeleteFunc(all, func(key string, _ json.RawMessage) bool { return !strings.HasPrefix(key, "_") })
	maps.Copy(all, ours)
	return Encode(all)
}

// notJSON says it without the decoder's shorthand for text that ends too early.
func notJSON(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return Errorf("send the whole object", "the arguments are not JSON: they end too early")
	}
	return Errorf("send well-formed JSON", "the arguments are not JSON: %v", err)
}

// CheckText refuses what encoding/json would silently repair, and depth that
// would cost before it is refused.
func CheckText(raw []byte) error {
	if !utf8.Valid(raw) {
		return Errorf("send the arguments as UTF-8", "the arguments are not valid UTF-8")
	}
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			if i+1 < len(raw) && raw[i+1] == 'u' && loneSurrogate(raw, i) {
				return Errorf("send characters outside the BMP as a pair of \\u escapes, or as UTF-8",
					"a \\u escape in the arguments is half of a surrogate pair")
			}
			if i+11 < len(raw) && raw[i+1] == 'u' && utf16.IsSurrogate(hex4(raw[i+2:])) {
				i += 11 // the pair
			} else {
				i++
			}
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return Errorf("send flat arguments", "the arguments are nested deeper than %d", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return 0
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return 0
	}
	return rune(n)
}

func loneSurrogate(raw []byte, i int) bool {
	r := hex4(raw[i+2:])
	if !utf16.IsSurrogate(r) {
		return false
	}
	if i+12 > len(raw) || raw[i+6] != '\\' || raw[i+7] != 'u' {
		return true
	}
	return utf16.DecodeRune(r, hex4(raw[i+8:])) == utf8.RuneError
}

// decodeObject takes one JSON object into a struct. at names it in messages:
// "" at the top, "edits[2]." inside.
func (s *Spec) decodeObject(raw json.RawMessage, fields []field, into reflect.Value, at string) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil {
		return notJSON(err)
	} else if t != json.Delim('{') {
		return Errorf("send an object with the arguments as its keys", "%s is %s, not an object", strings.TrimSuffix(at, "."), jsonKind(raw))
	}
	given := map[string]string{} // field name -> the key it came under
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return notJSON(err)
		}
		key := tok.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return notJSON(err)
		}
		f := s.pick(fields, key)
		if f == nil && at == "" && strings.HasPrefix(key, "_") {
			continue // of the gateway that sends the call: see Injected
		}
		if f == nil {
			return unknownKey(fields, key, at)
		}
		if first, twice := given[f.name]; twice {
			return Errorf("send each argument once", "%s%s is given twice (as %.300q and %.300q)", at, f.name, first, key)
		}
		given[f.name] = key
		if left := string(value) == "null" || f.enum != nil && string(value) == `""`; left && !f.required {
			continue
		}
		if err := s.set(*f, into.Field(f.index), value, at); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	if rest, _ := dec.Token(); rest != nil {
		return Errorf("send one JSON object", "there is more after the object of the arguments")
	}
	var missing []string
	for _, f := range fields {
		if _, ok := given[f.name]; f.required && !ok {
			missing = append(missing, at+f.name)
		}
	}
	if len(missing) > 0 {
		return Errorf("add "+strings.Join(missing, ", ")+" and call again", "missing: %s", strings.Join(missing, ", "))
	}
	return nil
}

// pick finds the field that key names, by its own name or by an alias.
func (s *Spec) pick(fields []field, key string) *field {
	for _, name := range append([]string{key}, s.aliases[key]...) {
		for i := range fields {
			if fields[i].name == name {
				return &fields[i]
			}
		}
	}
	return nil
}

func unknownKey(fields []field, key, at string) error {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	if near := nearest.Of(key, names); near != "" {
		return Errorf(fmt.Sprintf("use %s%s", at, near), "there is no argument %.300q", at+key)
	}
	return Errorf("the arguments are: "+strings.Join(names, ", "),
		"there is no argument %.300q", at+key)
}

// set converts value into the field.
func (s *Spec) set(f field, into reflect.Value, value json.RawMessage, at string) error {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	name := at + f.name
	if string(bytes.TrimSpace(value)) == "null" { // encoding/json would take it for the zero value
		return Errorf("send a value for "+name, "%s is null", name)
	}
	wrong := func(want string) error {
		return Errorf(fmt.Sprintf("send %s as %s", name, want), "%s is %s, not %s", name, jsonKind(value), want)
	}
	switch f.typ.Kind() {
	case reflect.String:
		var text string
		if n, err := integer(value); f.form == "pages" && err == nil {
			text = strconv.FormatInt(n, 10)
		} else if json.Unmarshal(value, &text) != nil {
			return wrong("a string")
		}
		if f.enum != nil && !slices.Contains(f.enum, text) {
			hint := "use one of " + strings.Join(f.enum, ", ")
			near := nearest.Of(text, f.enum)
			if i := slices.IndexFunc(f.enum, func(e string) bool { return strings.HasPrefix(e, text) }); near == "" && i >= 0 {
				near = f.enum[i]
			}
			if near != "" {
				hint = "use " + near
			}
			return Errorf(hint, "%s is %.300q; it takes %s", name, text,
				strings.Join(f.enum, ", "))
		}
		if f.form == "sha256" {
			text = strings.TrimPrefix(strings.ToLower(text), "sha256:")
			if len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" {
				return Errorf("send the sha256 of an earlier answer, 64 hex digits, or leave "+name+" out", "%s is no sha256", name)
			}
		}
		into.SetString(text)
	case reflect.Bool:
		switch strings.TrimSpace(strings.Trim(string(value), `"`)) {
		case "true":
			into.SetBool(true)
		case "false":
			into.SetBool(false)
		default:
			return wrong("true or false")
		}
	case reflect.Int, reflect.Int64:
		n, err := integer(value)
		if err != nil {
			return wrong("a whole number")
		}
		if f.min != nil && n < *f.min {
			return Errorf(fmt.Sprintf("use %d or more, or leave %s out", *f.min, name), "%s is %d; the least is %d", name, n, *f.min)
		}
		if f.max != nil && n > *f.max {
			return Errorf(fmt.Sprintf("use %d or less", *f.max), "%s is %d; the most is %d", name, n, *f.max)
		}
		into.SetInt(n)
	case reflect.Map: // of any keys
		if json.Unmarshal(value, into.Addr().Interface()) != nil {
			return wrong("an object")
		}
	case reflect.Struct:
		return s.decodeObject(value, f.items, into, name+".")
	case reflect.Slice:
		if f.typ == reflect.TypeFor[json.RawMessage]() { // any value
			into.SetBytes(value)
			return nil
		}
		return s.setSlice(f, into, value, at)
	}
	return nil
}

func (s *Spec) setSlice(f field, into reflect.Value, value json.RawMessage, at string) error {
	name := at + f.name
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		// Models send an array as the string of an array now and then.
		var text string
		if json.Unmarshal(value, &text) != nil || json.Unmarshal([]byte(text), &items) != nil {
			return Errorf("send "+name+" as an array", "%s is %s, not an array", name, jsonKind(value))
		}
	}
	if f.min != nil && int64(len(items)) < *f.min {
		return Errorf(fmt.Sprintf("send %d or more", *f.min), "%s has %d items; the least is %d", name, len(items), *f.min)
	}
	if f.max != nil && int64(len(items)) > *f.max {
		return Errorf(fmt.Sprintf("send %d or fewer a call", *f.max), "%s has %d items; the most is %d", name, len(items), *f.max)
	}
	out := reflect.MakeSlice(f.typ, len(items), len(items))
	for i, item := range items {
		var err error
		if where := fmt.Sprintf("%s[%d]", name, i); f.items != nil {
			err = s.decodeObject(item, f.items, out.Index(i), where+".")
		} else {
			err = s.set(field{name: where, typ: f.typ.Elem(), enum: f.enum}, out.Index(i), item, "")
		}
		if err != nil {
			return err
		}
	}
	into.Set(out)
	return nil
}

// integer takes 5, 5.0, 5e0, "5" and " +5 "; values beyond an int64 are
// clamped, because a model that says 1e30 means "all".
func integer(value json.RawMessage) (int64, error) {
	s := string(value)
	var quoted string
	if json.Unmarshal(value, &quoted) == nil {
		s = strings.TrimPrefix(strings.TrimSpace(quoted), "+")
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	if len(s) > 64 || strings.ContainsAny(s, "xXpP_") {
		return 0, strconv.ErrSyntax
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && !math.IsInf(f, 0), math.IsNaN(f):
		return 0, strconv.ErrSyntax
	case f >= math.MaxInt64:
		return math.MaxInt64, nil
	case f <= math.MinInt64:
		return math.MinInt64, nil
	case f != math.Trunc(f):
		return 0, strconv.ErrSyntax
	}
	n, _ := big.NewFloat(f).Int64()
	return n, nil
}

// jsonKind says what a value is, short enough for a message.
func jsonKind(value json.RawMessage) string {
	v := strings.TrimSpace(string(value))
	switch {
	case v == "":
		return "nothing"
	case v == "null":
		return "null"
	case v[0] == '"':
		if len(v) > 40 {
			return "a string"
		}
		return "the string " + v
	case v[0] == '{':
		return "an object"
	case v[0] == '[':
		return "an array"
	case len(v) > 40:
		return "a long number"
	}
	return v
}
