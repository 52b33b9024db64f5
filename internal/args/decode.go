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
)

const (
	maxRequest = 64 << 20 // bytes of arguments; a Write of a large file included
	maxDepth   = 64
)

// Error is an argument that cannot be taken. What says why, Hint the next move. Call are arguments that would be taken in
// their place, where they are known, and Tool is the tool that takes them, where it is another.
type Error struct {
	What, Hint string
	Call       json.RawMessage
	Tool       string

	instead json.RawMessage // a value that would be taken; null to leave it out
}

func (e *Error) Error() string { return e.What }

// Errorf makes an *Error.
func Errorf(hint, format string, args ...any) error { return bad(hint, format, args...) }

func bad(hint, format string, args ...any) *Error {
	return &Error{What: fmt.Sprintf(format, args...), Hint: hint}
}

// Decode makes the argument struct that raw describes: a pointer to the type that the Spec was
// made of. The pointer is never nil, so that a refusal can look at the arguments that were understood. Errors
// are of type *Error, and say all that is wrong.
func (s *Spec) Decode(raw json.RawMessage) (any, error) {
	in, _, err := s.Take(raw)
	return in, err
}

// Take is Decode, and lists in note the arguments that were taken under other names or left out. The pointer of a
// refusal holds the arguments that were most likely meant.
func (s *Spec) Take(raw json.RawMessage) (in any, note string, err error) {
	into := reflect.New(s.typ)
	c := &call{spec: s, fields: s.fields(), given: map[string]member{}, outcome: &outcome{}}
	if err := c.whole(bytes.TrimSpace(raw), into.Elem()); err != nil {
		return into.Interface(), "", err
	}
	if len(c.wrong) == 0 {
		return into.Interface(), c.note(), nil
	}
	e := &Error{What: strings.Join(c.wrong, "; "), Hint: strings.Join(c.hints, "; "), Tool: c.tool}
	switch {
	case c.lost || !s.lenient():
	case c.tool != "":
		values := map[string]json.RawMessage{}
		for name, m := range c.given {
			values[name] = m.value
		}
		e.Call, _ = Encode(values)
	default:
		e.Call, _ = Encode(into.Interface())
	}
	return into.Interface(), "", e
}

// A call is an object of arguments on its way into a struct: all of a call, or an item of a list.
type call struct {
	spec   *Spec
	fields []field
	at     string            // its name in messages: "" of a call, "edits[2]." of an item
	given  map[string]member // by our name
	*outcome

	tool    string // another one, that the arguments are for
	last    *int   // the last line to read
	wrapped bool   // the arguments stand under a key that is none
}

// outcome collects the notes and problems of a call and of all its items.
type outcome struct {
	taken, left, wrong, hints []string
	lost                      bool // something that was said is in no argument
}

// A member is one of an object, with its key as it was sent.
type member struct {
	key   string
	value json.RawMessage
}

func (c *call) refuse(hint, format string, a ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, a...))
	if !slices.Contains(c.hints, hint) && hint != "" {
		c.hints = append(c.hints, hint)
	}
}

func (c *call) note() string {
	var parts []string
	if len(c.taken) > 0 {
		parts = append(parts, "taken: "+strings.Join(c.taken, ", "))
	}
	if len(c.left) > 0 {
		parts = append(parts, "left out: "+strings.Join(c.left, ", "))
	}
	return strings.Join(parts, "; ")
}

func (c *call) took(format string, a ...any) {
	if t := fmt.Sprintf(format, a...); !slices.Contains(c.taken, t) {
		c.taken = append(c.taken, t)
	}
}

// whole decodes all the arguments of a call. Its error says that they are no object.
func (c *call) whole(raw json.RawMessage, into reflect.Value) error {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	if len(raw) > maxRequest {
		return bad("split the content over several calls",
			"the arguments have %d bytes; %d are taken", len(raw), maxRequest)
	}
	if err := CheckText(raw); err != nil {
		return err
	}
	var text string // of an object, as some send it
	if c.spec.lenient() && raw[0] == '"' && json.Unmarshal(raw, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "{") {
		raw = json.RawMessage(strings.TrimSpace(text))
		c.took("a string of JSON as the arguments")
		if err := CheckText(raw); err != nil {
			return err
		}
	}
	if raw[0] != '{' {
		return bad("send an object with the arguments as its keys",
			"the arguments are %s, not an object", jsonKind(raw))
	}
	all, err := members(raw)
	if err != nil {
		return err
	}
	c.object(all, into)
	return nil
}

// object names the members of an object, and puts their values into the struct.
func (c *call) object(all []member, into reflect.Value) {
	for _, m := range all { // ours first: of two names for one argument its own counts
		if f := c.field(m.key); f != nil && !c.turned(m) {
			c.put(f.name, m, true)
		}
	}
	for _, m := range all {
		if c.field(m.key) == nil {
			c.name(m)
		}
	}
	c.endOfLines()
	for i := range c.fields {
		c.fill(&c.fields[i], into.Field(c.fields[i].index))
	}
	if c.tool != "" || c.wrapped {
		return // another tool has other required arguments; or they stand deeper
	}
	var missing []string
	for _, f := range c.fields {
		if _, ok := c.given[f.name]; f.required && !ok {
			missing = append(missing, c.at+f.name)
			if c.lost = c.lost || f.offer == ""; f.offer != "" {
				into.Field(f.index).SetString(f.offer)
			}
		}
	}
	if list := strings.Join(missing, ", "); list != "" {
		c.refuse("add "+list+" and call again", "missing: %s", list)
	}
}

// fill sets one field to the value that was given for it.
func (c *call) fill(f *field, into reflect.Value) {
	m, ok := c.given[f.name]
	left := string(m.value) == "null" || f.enum != nil && string(m.value) == `""`
	if !ok || left && !f.required {
		return
	}
	err := c.set(f, into, m.value, c.at)
	if err == nil {
		return
	}
	c.refuse(err.Hint, "%s", err.What)
	into.SetZero()
	if err.instead == nil || string(err.instead) != "null" && c.set(f, into, err.instead, c.at) != nil {
		c.lost = true
	}
}

// item decodes value, an object within the arguments, which messages call at.
func (c *call) item(f *field, into reflect.Value, value json.RawMessage, at string) *Error {
	if value[0] != '{' {
		return bad("send an object with the arguments as its keys", "%s is %s, not an object", at, jsonKind(value))
	}
	all, err := members(value)
	if err != nil {
		return bad("send an object", "%s: %v", at, err)
	}
	in := &call{spec: c.spec, fields: f.items, at: at + ".", given: map[string]member{}, outcome: c.outcome}
	in.object(all, into)
	return nil
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
// raw, as JSON, and the arguments that gateways put beside it.
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
func notJSON(err error) *Error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return bad("send the whole object", "the arguments are not JSON: they end too early")
	}
	return bad("send well-formed JSON", "the arguments are not JSON: %v", err)
}

// CheckText refuses text that encoding/json would silently repair, and depth that would cost before it is refused.
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

// members gives the members of an object, in order.
func members(raw json.RawMessage) (all []member, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil {
		return nil, notJSON(err)
	} else if t != json.Delim('{') {
		return nil, bad("send an object", "it is %s", jsonKind(raw))
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, notJSON(err)
		}
		m := member{key: key.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, notJSON(err)
		}
		all = append(all, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, notJSON(err)
	}
	if rest, _ := dec.Token(); rest != nil {
		return nil, bad("send one JSON object", "there is more after the object of the arguments")
	}
	return all, nil
}

// field is the argument of that name, nil where there is none.
func (c *call) field(name string) *field {
	for i := range c.fields {
		if c.fields[i].name == name {
			return &c.fields[i]
		}
	}
	return nil
}

// set converts value into the field f; at is the name of the object around it. An error may hold a value that would do.
func (c *call) set(f *field, into reflect.Value, value json.RawMessage, at string) *Error {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	name := at + f.name
	if string(value) == "null" { // encoding/json would take it for the zero value
		return bad("send a value for "+name, "%s is null", name)
	}
	switch f.typ.Kind() {
	case reflect.String:
		text, err := c.text(f, value, name)
		if err != nil {
			return err
		}
		into.SetString(text)
	case reflect.Bool:
		yes, err := c.yesOrNo(value, name)
		if err != nil {
			return err
		}
		into.SetBool(yes)
	case reflect.Int, reflect.Int64:
		n, err := number(f, value, name)
		if err != nil {
			return err
		}
		into.SetInt(n)
	case reflect.Map: // of any keys
		if json.Unmarshal(value, into.Addr().Interface()) != nil {
			return wrong(name, "an object", value)
		}
	case reflect.Struct:
		return c.item(f, into, value, name)
	case reflect.Slice:
		if f.typ == reflect.TypeFor[json.RawMessage]() { // any value
			into.SetBytes(value)
			return nil
		}
		return c.list(f, into, value, name)
	}
	return nil
}

func wrong(name, want string, value json.RawMessage) *Error {
	return bad(fmt.Sprintf("send %s as %s", name, want), "%s is %s, not %s", name, jsonKind(value), want)
}

// text takes a string; a number where an id or a pattern is wanted; and a list where it stands for one.
func (c *call) text(f *field, value json.RawMessage, name string) (string, *Error) {
	var text string
	var several []string
	plain := json.Unmarshal(value, &text) == nil
	path := f.name == "path" || strings.HasSuffix(f.name, "_path")
	if f.form == "pages" {
		if n, err := integer(value); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
	}
	switch {
	case plain:
	case !c.spec.lenient():
		return "", wrong(name, "a string", value)
	case json.Unmarshal(value, &several) == nil && len(several) > 0:
		switch {
		case f.form == "list":
			c.took("the list %s as one string", f.name)
		case len(several) > 1 && path:
			return "", bad("make one call for each", "%s is a list of %d", name, len(several))
		case len(several) == 1 && (path || f.enum != nil || f.form != ""):
			c.took("the list %s as what is in it", f.name)
		default:
			return "", wrong(name, "a string", value)
		}
		text = strings.Join(several, ",")
	case f.form == "list" || f.form == "number":
		if _, err := strconv.ParseFloat(string(value), 64); err != nil {
			return "", wrong(name, "a string", value)
		}
		c.took("the number %s as a string", f.name)
		text = string(value)
	default:
		return "", wrong(name, "a string", value)
	}
	if f.enum != nil && !slices.Contains(f.enum, text) {
		e := bad("use one of "+strings.Join(f.enum, ", "), "%s is %.300q; it takes %s", name, text, strings.Join(f.enum, ", "))
		if near := choice(text, f.enum); near != "" {
			e.Hint, e.instead = "use "+near, quoted(near)
		}
		return "", e
	}
	if f.form == "sha256" {
		text = strings.TrimPrefix(strings.ToLower(text), "sha256:")
		if len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" {
			return "", bad("send the sha256 of an earlier answer, 64 hex digits, or leave "+name+" out", "%s is no sha256", name)
		}
	}
	return text, nil
}

// choice is the one of enum that s most likely means, "" where there is none.
func choice(s string, enum []string) string {
	folded := fold(strings.TrimSpace(s))
	for _, e := range enum {
		if f := fold(e); folded != "" && (strings.HasPrefix(f, folded) || strings.HasPrefix(folded, f)) {
			return e
		}
	}
	if near := otherWords[folded]; slices.Contains(enum, near) {
		return near
	}
	return Nearest(s, enum)
}

// otherWords are words of others for our choices.
var otherWords = map[string]string{
	"lines": "content", "matches": "content", "text": "content", "paths": "files_with_matches",
	"l": "files_with_matches", "filenames": "files_with_matches", "c": "count",
	"update": "replace", "edit": "replace", "add": "insert", "append": "insert", "remove": "delete",
	"md": "markdown", "python": "code",
}

// yesOrNo takes true and "false".
func (c *call) yesOrNo(value json.RawMessage, name string) (bool, *Error) {
	plain := strings.Trim(string(value), "\" \t\n")
	is := strings.ToLower(plain)
	if is != "true" && is != "false" || plain != is && !c.spec.lenient() {
		return false, wrong(name, "true or false", value)
	}
	if plain != is {
		c.took("%s %s as %s", name, plain, is)
	}
	return is == "true", nil
}

// number takes a whole number within the bounds of f. It offers the nearest one that would do.
func number(f *field, value json.RawMessage, name string) (int64, *Error) {
	n, err := integer(value)
	switch {
	case err != nil:
		return 0, wrong(name, "a whole number", value)
	case f.min != nil && n < *f.min:
		e := bad(fmt.Sprintf("use %d or more", *f.min), "%s is %d; the least is %d", name, n, *f.min)
		if !f.required {
			e.Hint, e.instead = e.Hint+", or leave "+name+" out", json.RawMessage("null")
		}
		return 0, e
	case f.max != nil && n > *f.max:
		e := bad(fmt.Sprintf("use %d or less", *f.max), "%s is %d; the most is %d", name, n, *f.max)
		e.instead = integral(*f.max)
		return 0, e
	}
	return n, nil
}

// list takes an array, and the text of one.
func (c *call) list(f *field, into reflect.Value, value json.RawMessage, name string) *Error {
	items, ok := listOf(value)
	if !ok && c.spec.lenient() && (f.items != nil && value[0] == '{' || f.items == nil && value[0] == '"') {
		items, ok = []json.RawMessage{value}, true
		c.took("%s as an array of one", f.name)
	}
	switch {
	case !ok:
		return bad("send "+name+" as an array", "%s is %s, not an array", name, jsonKind(value))
	case f.min != nil && int64(len(items)) < *f.min:
		return bad(fmt.Sprintf("send %d or more", *f.min), "%s has %d items; the least is %d", name, len(items), *f.min)
	case f.max != nil && int64(len(items)) > *f.max:
		return bad(fmt.Sprintf("send %d or fewer a call", *f.max), "%s has %d items; the most is %d", name, len(items), *f.max)
	}
	out := reflect.MakeSlice(f.typ, len(items), len(items))
	for i, item := range items {
		var err *Error
		if where := fmt.Sprintf("%s[%d]", name, i); f.items != nil {
			err = c.item(f, out.Index(i), item, where)
		} else {
			err = c.set(&field{name: where, typ: f.typ.Elem(), enum: f.enum}, out.Index(i), item, "")
		}
		if err != nil {
			err.instead = nil // it would do for the item
			return err
		}
	}
	into.Set(out)
	return nil
}

// listOf is an array, or the text of one, as models send it now and then.
func listOf(value json.RawMessage) (items []json.RawMessage, ok bool) {
	var text string
	if json.Unmarshal(value, &text) == nil {
		if value = json.RawMessage(text); CheckText(value) != nil {
			return nil, false
		}
	}
	return items, json.Unmarshal(value, &items) == nil && items != nil
}

func quoted(s string) json.RawMessage {
	raw, err := Encode(s)
	if err != nil { // a string never fails
		return json.RawMessage(`""`)
	}
	return raw
}

func integral(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

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

// jsonKind describes a value in a few words: "the string \"a\"", "an object".
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
