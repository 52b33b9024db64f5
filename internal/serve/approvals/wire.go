package approvals

import (
	"encoding/json"
	"fmt"
	"time"

	"moltisfs/internal/approval"
)

// A frame of the wire form that comes in.
type frame struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type response struct {
	Type    string     `json:"type"`
	ID      string     `json:"id"`
	OK      bool       `json:"ok"`
	Payload any        `json:"payload,omitempty"`
	Error   *wireError `json:"error,omitempty"`
}

type wireError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *wireError) Error() string { return e.Message }

type event struct {
	Type    string `json:"type"`
	Event   string `json:"event"`
	Payload any    `json:"payload"`
	Seq     int    `json:"seq"`
}

// request is a question on the wire. The first three are Moltis'.
type request struct {
	RequestID  string    `json:"requestId"`
	Command    string    `json:"command"`
	SessionKey string    `json:"sessionKey"`
	Tool       string    `json:"tool"`
	Principal  string    `json:"principal"`
	Paths      []string  `json:"paths"`
	Warnings   []string  `json:"warnings,omitempty"`
	Diff       string    `json:"diff"`
	DiffCut    int       `json:"diffCut,omitempty"` // lines that are left out of diff
	Expires    time.Time `json:"expires,omitzero"`
}

// An Alert is a message of an agent to the operators, on the wire.
type Alert struct {
	ID         string         `json:"alertId"`
	Severity   string         `json:"severity"`
	Message    string         `json:"message"`
	Context    map[string]any `json:"context,omitempty"`
	Principal  string         `json:"principal"`
	SessionKey string         `json:"sessionKey"`
}

// command is the question in one line.
func command(q *approval.Question) string {
	s := approval.Escape(q.Tool, false)
	if len(q.Paths) > 0 {
		s += " " + approval.Escape(q.Paths[0], false)
	}
	if n := len(q.Paths) - 1; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

func escaped(list []string) (out []string) {
	for _, s := range list {
		out = append(out, approval.Escape(s, false))
	}
	return out
}
