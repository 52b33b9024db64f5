package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/guardfs"
)

// A Payload is the answer of a tool: one plain struct a kind, or a *Refusal.
// The set is sealed; switch on the type, or on Kind.
//
// A model may read a payload as text, too: Text is the same answer in the shape
// that models trained on Claude Code know, without JSON around it.
type Payload interface {
	// Kind is the discriminator, the first key of the JSON.
	Kind() string
	// Text is the answer as plain text for a model.
	Text() string
	payload()
}

// Refused says whether p is a refusal: a typed "no" that the model can act on.
func Refused(p Payload) bool {
	if r, ok := p.(*Replaced); ok {
		return r.refused
	}
	_, no := p.(*Refusal)
	return no
}

// Encode renders p as one line of JSON, "kind" first. HTML characters are not
// escaped; the result ends without a newline.
func Encode(p Payload) ([]byte, error) {
	var body []byte
	var err error
	if own, ok := p.(json.Marshaler); ok { // encoding/json would go over all of it again
		body, err = own.MarshalJSON()
	} else {
		body, err = plainJSON(p)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding %s payload: %w", p.Kind(), err)
	}
	kind, err := plainJSON(p.Kind())
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(body)+len(kind)+9)
	out = append(append(out, `{"kind":`...), kind...)
	if len(body) > 2 {
		out = append(out, ',')
	}
	return append(out, body[1:]...), nil
}

var plainJSON = args.Encode

// Replaced is an answer that a hook of ToolResultPersist made: fields of any names.
type Replaced struct {
	kind    string
	fields  map[string]json.RawMessage
	refused bool
}

// Replaced is the answer that a hook made of it. A refusal stays one.
func (a answer) Replaced(by json.RawMessage) (answer, error) {
	r := &Replaced{refused: a.Refused()}
	if err := json.Unmarshal(by, &r.fields); err != nil || r.fields == nil {
		return a, errors.New("the result is no JSON object")
	}
	if err := json.Unmarshal(r.fields["kind"], &r.kind); err != nil || r.kind == "" {
		return a, errors.New("the result has no kind")
	}
	delete(r.fields, "kind")
	return answer{Payload: r}, nil
}

// Kind is the "kind" that the hook gave.
func (r *Replaced) Kind() string { return r.kind }

// MarshalJSON gives the fields, sorted by name.
func (r *Replaced) MarshalJSON() ([]byte, error) { return plainJSON(r.fields) }

// Text is the JSON: no words are known for it.
func (r *Replaced) Text() string {
	text, err := Encode(r)
	if err != nil {
		return fmt.Sprintf("a hook made an answer that can't be shown: %v", err)
	}
	return string(text)
}

func (*Replaced) payload() {}

// answer is a payload on its way out, to a caller with a page.
type answer struct {
	Payload
	page   dialect.Page
	prefix string // of the names of the tools, for the caller
}

// Text is the payload's. One that is longer than the page ends with a whole line, and says how much it leaves out.
func (a answer) Text() string {
	text := a.Payload.Text()
	part := func(n int) string {
		if n >= len(text) {
			return text
		}
		shown := whole(text, n)
		if end := strings.LastIndexByte(shown, '\n'); end > n/2 {
			shown = shown[:end]
		}
		return fmt.Sprintf("%s\n[%d more bytes of this answer are left out: this client shows no more]", shown, len(text)-len(shown))
	}
	return part(a.page.Fit(len(text), part))
}

// Unwrap gives the payload to callers that know the payloads of the tools.
func (a answer) Unwrap() Payload { return a.Payload }

func (a answer) Refused() bool { return Refused(a.Payload) }

// ForHooks is the payload as JSON.
func (a answer) ForHooks() (json.RawMessage, error) { return Encode(a.Payload) }

func (a answer) JSON(bytes bool) ([]byte, error) {
	body, err := Encode(a.Payload)
	if _, ok := a.Payload.(withBlocks); err == nil && ok && !bytes {
		body = withoutBytes(body)
	}
	return a.named(body), err
}

// named names the tools of calls to make next as the caller knows them. No text can be mistaken for the key: within a string its quotes would be
// escaped.
func (a answer) named(body []byte) []byte {
	if a.prefix == "" {
		return body
	}
	return bytes.ReplaceAll(body, []byte(`{"tool":"`), []byte(`{"tool":"`+a.prefix))
}

// A withBlocks payload has images or other bytes, and its members are those of schema too.
type withBlocks interface {
	blocks() ([]dialect.Block, error)
	schema() any
}

// Blocks are the images of a payload, and the bytes of a binary file.
func (a answer) Blocks() ([]dialect.Block, error) {
	if c, ok := a.Payload.(withBlocks); ok {
		return c.blocks()
	}
	return nil, nil
}

// withoutBytes takes every "base64" member out of an encoded payload. No text can be mistaken for
// the key: within a string its quotes would be escaped. It is never the first member, and its value
// holds no quotes.
func withoutBytes(body []byte) []byte {
	key := []byte(`,"base64":"`)
	var out []byte
	for {
		i := bytes.Index(body, key)
		if i < 0 {
			return append(out, body...)
		}
		out = append(out, body[:i]...)
		body = body[i+len(key):]
		body = body[bytes.IndexByte(body, '"')+1:]
	}
}

// A bulky payload has members that Text says too: a brief answer, see [answer.Brief], goes without
// them. inText names all that may be left out; brief is a copy where they are empty, and names those
// that are.
type bulky interface {
	inText() []string
	brief() (Payload, []string)
}

// refusalKinds lists the kinds of a Refusal.
var refusalKinds = []string{KindNotFound, KindPermissionDenied, KindTooLarge, KindNotRegularFile,
	KindPathDenied, KindBadRequest, KindSymlinkRefused, KindMustRead, KindModified, KindNoMatch,
	KindNotUnique, KindConflict, KindApprovalDenied, KindApprovalTimeout, KindApprovalStale,
	KindUnsupported, KindLimit, KindDeadline, KindPolicyError, KindIOError, KindUnavailable}

// inTextMember is the member of a brief answer that names the members it goes without.
const inTextMember = "in_text"

// object is a JSON Schema.
type object = map[string]any

// outputSchema describes every payload that a tool can answer: its successes, which are open objects
// with the fields of their types; the refusals, which carry fields of their own; and the answers that hooks make
// of either.
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
	if c, ok := p.(withBlocks); ok {
		required = append(required, membersOf(reflect.TypeOf(c.schema()).Elem(), properties)...)
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

// Brief is the JSON without the members that Text has too.
func (a answer) Brief() ([]byte, error) {
	b, ok := a.Payload.(bulky)
	if !ok {
		return a.JSON(false)
	}
	short, left := b.brief()
	if left == nil {
		return answer{Payload: short, prefix: a.prefix}.JSON(false)
	}
	out, err := Encode(short)
	if err != nil {
		return nil, err
	}
	return withoutEmpty(a.named(withoutBytes(out)), left)
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

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// pointer is null for "".
func pointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// jsonLen is how many bytes s takes in an answer, where an odd one takes up to six.
func jsonLen(s string) int {
	b, _ := json.Marshal(s) // a string never fails
	return len(b)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// clip bounds a text at a line's end and says that it did.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := strings.LastIndexByte(s[:most], '\n') + 1
	if cut == 0 { // one long line
		cut = len(whole(s, most))
	}
	return fmt.Sprintf("%s… %d more bytes\n", s[:cut], len(s)-cut)
}

// size prints bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// quote shows a name so that control characters and direction marks in it
// can't play tricks.
func quote(s string) string { return strconv.QuoteToGraphic(s) }

// quotePath is quote of a path, quoteShort where no file can have it, and "" for none.
func quotePath(p string) string {
	switch {
	case p == "":
		return ""
	case len(p) > guardfs.MaxPath:
		return quoteShort(p)
	}
	return quote(p)
}

// quoteShort is quote of at most 200 bytes of s: nobody looks for the end of a name of 100 KB in an error.
func quoteShort(s string) string {
	const most = 200
	if len(s) <= most {
		return quote(s)
	}
	return fmt.Sprintf("%s… (%d bytes)", quote(whole(s, most)), len(s))
}

// whole gives the characters of s that end within its first most bytes, which are fewer than all.
func whole(s string, most int) string {
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// NextCall is a tool call ready to be sent.
type NextCall struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

// within says whether clean path p is dir or lies below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// lines is a text that is put together from lines, most of which come only where there is something to say.
type lines struct{ strings.Builder }

// add writes a line, or a part of one, if is.
func (l *lines) add(is bool, format string, a ...any) {
	if is {
		fmt.Fprintf(l, format, a...)
	}
}
