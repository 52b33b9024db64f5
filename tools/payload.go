package tools

import (
	"encoding/json"
	"fmt"

	"moltisfs/internal/args"
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
