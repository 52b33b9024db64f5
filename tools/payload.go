package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/readers"
)

// A Payload is what a tool answers: one plain struct a kind, or a *Refusal.
// The set is sealed; switch on the type, or on Kind.
//
// A payload is also what a model reads: Text is the same answer in the shape
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

// HasDiffs says whether the text of p may hold diffs, for who shows them in colour.
func HasDiffs(p Payload) bool {
	_, yes := p.(interface{ diffs() })
	return yes
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

// Replaced is what a hook of ToolResultPersist made of an answer: fields of any names.
type Replaced struct {
	kind    string
	fields  map[string]json.RawMessage
	refused bool
}

// replaced takes the answer of a hook. A refusal stays one.
func replaced(raw json.RawMessage, refused bool) (*Replaced, error) {
	r := &Replaced{refused: refused}
	if err := json.Unmarshal(raw, &r.fields); err != nil || r.fields == nil {
		return nil, errors.New("the result is no JSON object")
	}
	if err := json.Unmarshal(r.fields["kind"], &r.kind); err != nil || r.kind == "" {
		return nil, errors.New("the result has no kind")
	}
	r.fields = maps.Clone(r.fields)
	delete(r.fields, "kind")
	return r, nil
}

// Kind is what the hook says it is.
func (r *Replaced) Kind() string { return r.kind }

// MarshalJSON gives the fields, sorted by name.
func (r *Replaced) MarshalJSON() ([]byte, error) { return plainJSON(r.fields) }

// Text is the JSON: what words would fit it is not known.
func (r *Replaced) Text() string {
	text, err := Encode(r)
	if err != nil {
		return fmt.Sprintf("a hook made an answer that can't be shown: %v", err)
	}
	return string(text)
}

func (*Replaced) payload() {}

// Dialect is the suite for whatever serves calls and knows no payloads.
func (s *Suite) Dialect() Dialect { return served{s} }

type served struct{ *Suite }

func (s served) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	p, err := s.Suite.call(ctx, c)
	if err != nil {
		return nil, err
	}
	return answer{p}, nil
}

// answer is a payload on its way out.
type answer struct{ Payload }

// Unwrap is the payload, for who knows those of the tools.
func (a answer) Unwrap() Payload { return a.Payload }

func (a answer) Refused() bool { return Refused(a.Payload) }

func (a answer) JSON(bytes bool) ([]byte, error) {
	body, err := Encode(a.Payload)
	if _, ok := a.Payload.(*Content); err == nil && ok && !bytes {
		body = withoutBytes(body)
	}
	return body, err
}

// Blocks are the images of a payload, and the bytes of a binary file.
func (a answer) Blocks() (out []dialect.Block, err error) {
	c, ok := a.Payload.(*Content)
	if !ok {
		return nil, nil
	}
	add := func(path, mediaType, encoded string) {
		data, derr := base64.StdEncoding.DecodeString(encoded)
		if err == nil {
			err = derr
		}
		if len(data) > 0 {
			out = append(out, dialect.Block{Path: path, MediaType: mediaType, Data: data})
		}
	}
	switch body := c.Body.(type) {
	case *readers.Image:
		add("", body.MediaType, body.Base64)
	case *readers.PDF:
		for i := range body.Images {
			add("", body.Images[i].MediaType, body.Images[i].Base64)
		}
	case *readers.Notebook:
		for _, cell := range body.Cells {
			for _, o := range cell.Outputs {
				add("", o.MediaType, o.Base64)
			}
		}
	case *readers.Binary:
		add(c.FilePath, body.MediaType, body.Base64)
	}
	return out, err
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
