package acp

import (
	"net/url"

	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
)

// The error codes of the protocol that a refusal can have.
const (
	codeNoMethod  = -32601
	codeInvalid   = -32602
	codeInternal  = -32603
	codeNotFound  = -32002
	codeCancelled = -32800
)

// An Error is the error object of JSON-RPC, with our refusal in its data.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    Data   `json:"data"`
}

// Data is why a call was refused.
type Data struct {
	Kind  string `json:"kind"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	Path  string `json:"path,omitempty"`
	URI   string `json:"uri,omitempty"`
}

// codes has what is not codeInternal: nothing is there, or the parameters name what can't be
// served.
var codes = map[engine.Code]int{
	engine.CodeNotFound: codeNotFound, engine.CodeBadRequest: codeInvalid,
	engine.CodePathDenied: codeInvalid, engine.CodeNotRegularFile: codeInvalid,
	engine.CodeSymlinkRefused: codeInvalid, engine.CodeTooLarge: codeInvalid,
	engine.CodeUnsupported: codeInvalid,
}

// refusal is the error object of a refusal.
func (c *call) refusal(r *engine.Refusal) Error {
	name := r.Path
	if c.params.Path != nil { // as the agent has it
		name = *c.params.Path
	}
	out := Error{Code: codeInternal, Data: Data{Kind: string(r.Code)}}
	if code, ok := codes[r.Code]; ok {
		out.Code = code
	}
	if r.Cause == engine.Cancelled {
		out.Code = codeCancelled
	}
	told := refusal.Tell(r, refusal.Voice{Path: name, Show: func(p string) string { return p },
		Now: map[string]string{"by": " with " + Read}, Names: func(name string) string {
			return map[string]string{"line": "line"}[name]
		}})
	switch {
	case r.Cause == engine.Denied && r.Path == c.Tool:
		told = refusal.Told{Says: "Method not found: the operator lets nobody call " + c.Tool}
		out.Code, name = codeNoMethod, ""
	case r.Code == engine.CodeNotFound:
		told = refusal.Told{Says: "Resource not found: " + name}
	}
	out.Data.Error, out.Data.Hint = approval.Escape(told.Says, false), approval.Escape(told.Hint, false)
	out.Message = out.Data.Error
	if out.Data.Path = name; isAbsolute(name) {
		out.Data.URI = (&url.URL{Scheme: "file", Path: name}).String()
	}
	return out
}
