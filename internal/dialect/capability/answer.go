package capability

import (
	"bytes"
	"encoding/json"
	"errors"

	"moltisfs/dialect"
	"moltisfs/internal/args"
)

// An answer is the data of a success, or the one object of an error.
type answer struct {
	kind    string // the capability, or the type of the error
	refused bool
	data    json.RawMessage // one object on one line
}

func succeed(name string, v any) (*answer, error) {
	data, err := args.Encode(v)
	return &answer{kind: name, data: data}, err
}

func (a *answer) Kind() string                   { return a.kind }
func (a *answer) Refused() bool                  { return a.refused }
func (a *answer) JSON(bool) ([]byte, error)      { return a.data, nil }
func (*answer) Blocks() ([]dialect.Block, error) { return nil, nil }

// Text is the answer as it is said over JSON-RPC.
func (a *answer) Text() string {
	if a.refused {
		return `{"success":false,"error":` + string(a.data) + "}"
	}
	return `{"success":true,"data":` + string(a.data) + "}"
}

// replaced is what a hook makes of the answer. An error stays one.
func (a *answer) replaced(raw json.RawMessage) (*answer, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return a, errors.New("the result is no JSON object")
	}
	now := *a
	if a.refused {
		if err := json.Unmarshal(fields["type"], &now.kind); err != nil || now.kind == "" {
			return a, errors.New("the error has no type")
		}
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return a, err
	}
	now.data = line.Bytes()
	return &now, nil
}

// warn says what went wrong beside the call.
func (a *answer) warn(what string) {
	head := bytes.TrimSuffix(a.data, []byte("}"))
	if len(head) > 1 {
		head = append(head[:len(head):len(head)], ',')
	}
	a.data = append(append(append(head, `"warnings":`...), mustJSON([]string{what})...), '}')
}
