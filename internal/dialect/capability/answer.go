package capability

import (
	"bytes"
	"encoding/json"
	"errors"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
)

// An answer is the data of a success, or the one object of an error, on one line.
type answer struct{ dialect.Object }

func succeed(name string, v any) (*answer, error) {
	data, err := args.Encode(v)
	return &answer{dialect.Object{Of: name, Content: data}}, err
}

// Text is the answer as it is said over JSON-RPC.
func (a *answer) Text() string {
	if a.No {
		return `{"success":false,"error":` + string(a.Content) + "}"
	}
	return `{"success":true,"data":` + string(a.Content) + "}"
}

// replaced is what a hook makes of the answer. An error stays one.
func (a *answer) replaced(raw json.RawMessage) (*answer, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return a, errors.New("the result is no JSON object")
	}
	now := *a
	if a.No {
		if err := json.Unmarshal(fields["type"], &now.Of); err != nil || now.Of == "" {
			return a, errors.New("the error has no type")
		}
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return a, err
	}
	now.Content = line.Bytes()
	return &now, nil
}

// warn says what went wrong beside the call.
func (a *answer) warn(what string) {
	head := bytes.TrimSuffix(a.Content, []byte("}"))
	if len(head) > 1 {
		head = append(head[:len(head):len(head)], ',')
	}
	a.Content = append(append(append(head, `"warnings":`...), mustJSON([]string{what})...), '}')
}
