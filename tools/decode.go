package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

// The law of arguments (ARCHITECTURE.md, Rulings): a closed object, decoded once.
//
//   - unknown, duplicate and case-variant keys are refused, with the nearest name;
//   - numbers and booleans given as strings are taken; nothing else is converted;
//   - null for an optional argument is the argument left out, and so is "" for a choice;
//   - the aliases path, filePath, filepath, old_str, new_str are taken where the real name exists, and those of a path for notebook_path;
//   - bytes that are not UTF-8 and lone surrogates are refused: Go would turn them into U+FFFD, another path.
const (
	maxRequest = 64 << 20 // bytes of arguments; Write of a large file included
	maxDepth   = 64
)

// badRequest is an argument that can't be taken.
type badRequest struct{ what, hint string }

func (e *badRequest) Error() string { return e.what }

func bad(hint, format string, args ...any) error {
	return &badRequest{what: fmt.Sprintf(format, args...), hint: hint}
}

var aliases = map[string]string{
	"path": "file_path", "filePath": "file_path", "filepath": "file_path",
	"old_str": "old_string", "oldString": "old_string",
	"new_str": "new_string", "newString": "new_string",
	"replaceAll": "replace_all",
}

// decode fills the argument struct into from raw.
func decode(raw json.RawMessage, fields []field, into reflect.Value) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	if len(raw) > maxRequest {
		return bad("split the content over several calls", "the arguments have %d bytes; %d are taken", len(raw), maxRequest)
	}
	if err := checkText(raw); err != nil {
		return err
	}
	if raw[0] != '{' {
		return bad("send an object with the arguments as its keys", "the arguments are %s, not an object", jsonKind(raw))
	}
	return decodeObject(raw, fields, into, "")
}

// notJSON says it without the decoder's shorthand for text that ends too early.
func notJSON(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return bad("send the whole object", "the arguments are not JSON: they end too early")
	}
	return bad("send well-formed JSON", "the arguments are not JSON: %v", err)
}

// checkText refuses what encoding/json would silently repair, and depth that
// would cost before it is refused.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return bad("send the arguments as UTF-8", "the arguments are not valid UTF-8")
	}
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			if i+1 < len(raw) && raw[i+1] == 'u' && loneSurrogate(raw, i) {
				return bad("send characters outside the BMP as a pair of \\u escapes, or as UTF-8",
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
				return bad("send flat arguments", "the arguments are nested deeper than %d", maxDepth)
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
func decodeObject(raw json.RawMessage, fields []field, into reflect.Value, at string) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil {
		return notJSON(err)
	} else if t != json.Delim('{') {
		return bad("send an object with the arguments as its keys", "%s is %s, not an object", strings.TrimSuffix(at, "."), jsonKind(raw))
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
		f := pick(fields, key)
		if f == nil {
			return unknownKey(fields, key, at)
		}
		if first, twice := given[f.name]; twice {
			return bad("send each argument once", "%s%s is given twice (as %q and %q)", at, f.name, first, key)
		}
		given[f.name] = key
		if left := string(value) == "null" || f.enum != nil && string(value) == `""`; left && !f.required {
			continue
		}
		if err := f.set(into.Field(f.index), value, at); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	if rest, _ := dec.Token(); rest != nil {
		return bad("send one JSON object", "there is more after the object of the arguments")
	}
	var missing []string
	for _, f := range fields {
		if _, ok := given[f.name]; f.required && !ok {
			missing = append(missing, at+f.name)
		}
	}
	if len(missing) > 0 {
		return bad("add "+strings.Join(missing, ", ")+" and call again", "missing: %s", strings.Join(missing, ", "))
	}
	return nil
}

func pick(fields []field, key string) *field {
	for i := range fields {
		if fields[i].name == key {
			return &fields[i]
		}
	}
	real := aliases[key]
	for i := range fields {
		// A file is a file, whatever the tool calls it.
		if name := fields[i].name; name == real && real != "" || name == "notebook_path" && (real == "file_path" || key == "file_path") {
			return &fields[i]
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
		return bad(fmt.Sprintf("use %s%s", at, near), "there is no argument %q", at+key)
	}
	return bad("the arguments are: "+strings.Join(names, ", "), "there is no argument %q", at+key)
}

// set converts value into the field.
func (f field) set(into reflect.Value, value json.RawMessage, at string) error {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	name := at + f.name
	if string(bytes.TrimSpace(value)) == "null" { // encoding/json would take it for the zero value
		return bad("send a value for "+name, "%s is null", name)
	}
	wrong := func(want string) error {
		return bad(fmt.Sprintf("send %s as %s", name, want), "%s is %s, not %s", name, jsonKind(value), want)
	}
	switch f.typ.Kind() {
	case reflect.String:
		var s string
		if json.Unmarshal(value, &s) != nil {
			return wrong("a string")
		}
		if f.enum != nil && !slices.Contains(f.enum, s) {
			hint := "use one of " + strings.Join(f.enum, ", ")
			near := nearest.Of(s, f.enum)
			if i := slices.IndexFunc(f.enum, func(e string) bool { return strings.HasPrefix(e, s) }); near == "" && i >= 0 {
				near = f.enum[i]
			}
			if near != "" {
				hint = "use " + near
			}
			return bad(hint, "%s is %q; it takes %s", name, s, strings.Join(f.enum, ", "))
		}
		if f.form == "sha256" {
			if s = strings.TrimPrefix(strings.ToLower(s), "sha256:"); len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
				return bad("send the sha256 of an earlier answer, 64 hex digits, or leave "+name+" out", "%s is no sha256", name)
			}
		}
		into.SetString(s)
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
			return bad(fmt.Sprintf("use %d or more, or leave %s out", *f.min, name), "%s is %d; the least is %d", name, n, *f.min)
		}
		if f.max != nil && n > *f.max {
			return bad(fmt.Sprintf("use %d or less", *f.max), "%s is %d; the most is %d", name, n, *f.max)
		}
		into.SetInt(n)
	case reflect.Slice:
		return f.setSlice(into, value, at)
	}
	return nil
}

func (f field) setSlice(into reflect.Value, value json.RawMessage, at string) error {
	name := at + f.name
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		// Models send an array as the string of an array now and then.
		var s string
		if json.Unmarshal(value, &s) != nil || json.Unmarshal([]byte(s), &items) != nil {
			return bad("send "+name+" as an array", "%s is %s, not an array", name, jsonKind(value))
		}
	}
	if f.min != nil && int64(len(items)) < *f.min {
		return bad(fmt.Sprintf("send %d or more", *f.min), "%s has %d items; the least is %d", name, len(items), *f.min)
	}
	if f.max != nil && int64(len(items)) > *f.max {
		return bad(fmt.Sprintf("send %d or fewer a call", *f.max), "%s has %d items; the most is %d", name, len(items), *f.max)
	}
	out := reflect.MakeSlice(f.typ, len(items), len(items))
	for i, item := range items {
		var err error
		if where := fmt.Sprintf("%s[%d]", name, i); f.items != nil {
			err = decodeObject(item, f.items, out.Index(i), where+".")
		} else {
			err = field{name: where, typ: f.typ.Elem()}.set(out.Index(i), item, "")
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
