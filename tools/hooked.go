package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

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
