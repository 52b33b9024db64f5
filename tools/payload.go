package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// A withBlocks payload has images or other bytes.
type withBlocks interface {
	blocks() ([]dialect.Block, error)
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

// answerSchema is the JSON Schema of what any tool answers: the other members go by kind. A refusal has error and hint.
const answerSchema = `{"type":"object","properties":{"kind":{"type":"string"}},"required":["kind"]}`

var _ dialect.Brief = answer{}

// A bulky payload has members that Text says too: a brief answer, see [answer.Brief], goes without
// them. brief is a copy where they are empty, and names them.
type bulky interface{ brief() (Payload, []string) }

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
	return []byte(strings.TrimSuffix(s, "}") + `,"in_text":` + string(list) + "}"), nil
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
