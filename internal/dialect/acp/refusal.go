package acp

import (
	"fmt"
	"net/url"
	"strings"

	"moltisfs/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
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

const unread = "the session has not read {path} as it is now; nothing was written"

// sentences say what is so and what to do, where a code says enough.
var sentences = map[engine.Code][2]string{
	engine.CodePathDenied: {"{path} is not open to this agent",
		"work on another path; the operator decides what is open"},
	engine.CodePermissionDenied: {"the operator or the system does not permit this for {path}", ""},
	engine.CodeNotFound:         {"Resource not found: {path}", ""},
	engine.CodeSymlinkRefused:   {"{path} is a symbolic link", "name the file that it leads to"},
	engine.CodeNotRegularFile:   {"{path} is not a file", ""},
	engine.CodeMustRead:         {unread, "read all of it with " + Read + ", then write again"},
	engine.CodeModified: {unread + ", and it has changed",
		"read it again with " + Read + ", then write again"},
	engine.CodeApprovalDenied: {"the change was not approved; nothing was done",
		"ask the user before trying again"},
	engine.CodeApprovalTimeout: {"nobody answered whether it may be done; nothing was done", ""},
	engine.CodeApprovalStale:   {"{path} changed while the user was asked", "read it again"},
	engine.CodeConflict:        {"somebody else changed {path} at the same moment", "read it again"},
	engine.CodeDeadline:        {"it took too long, or was cancelled", ""},
	engine.CodeUnavailable:     {"the sandbox of the session can't be reached", "try again, or tell the user"},
}

// causes has those that the sentence of their code does not fit.
var causes = map[engine.Cause][2]string{
	notText: {"{path} is not text", ""},
	engine.RunsCode: {"{path} runs code later, or tells an agent what to do (class exec): a change of it " +
		"takes an approval of its own; nothing was done", "ask the user"},
	engine.UnsavedText: {"the editor holds the text of {path}, and does not take this change of it",
		"ask the user to save it"},
	notDirectory:   {"{path} is not a directory", ""},
	engine.BadPath: {"{path} is no path of a file", ""},
	engine.OverBinary: {"{path} is not text, and this would replace all of it by text; nothing was written",
		"write to another path, or ask the user"},
	engine.DropsUnseen: {"this would drop most of {path}, of which a part was read",
		"read all of it"},
	engine.Unencodable:   {"the text has characters that the encoding of {path} does not have, or which can't be written because that is not known for certain", ""},
	engine.DiskFull:      {"the disk is full; nothing was done", ""},
	engine.StoreDiskFull: {"the disk is full; nothing was done", ""},
	engine.Withheld: {"the call has ended, and its answer is withheld",
		"what it changed is changed: do not send it again, tell the user"},
	engine.HalfMade: {"it failed, and whether {path} has the new text is not known",
		"read it before anything else"},
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
	text, ok := causes[r.Cause]
	if r.Cause == engine.Denied && r.Path == c.Tool {
		text, ok, out.Code, name = [2]string{"Method not found: the operator lets nobody call " + c.Tool}, true, codeNoMethod, ""
	}
	if !ok {
		text = sentences[r.Code]
	}
	class := r.Class()
	if class != "" {
		text[0] += ": names like this are of the class " + class
	}
	if class != "" || r.Cause == engine.RunsCode {
		text[0] += "; the operator can lift that: " + r.Lift()
	}
	switch f := r.Facts.(type) {
	case *args.Error:
		text = [2]string{f.What, f.Hint}
	case *guardfs.TooLargeError:
		text = [2]string{fmt.Sprintf("{path} is %d bytes, over the limit of %d", f.Size, f.Max),
			"read a part of it by line and limit"}
	case error:
		if r.Cause == engine.ClientFailed {
			text[0] = "the editor did not serve {path}: " + approval.Escape(f.Error(), false)
		}
	case string:
		if f != "" && (r.Cause == engine.NotApproved || r.Cause == engine.NobodyToAsk) {
			text[1] = approval.Escape(f, false)
		}
	}
	if r.Cause == engine.Cancelled {
		out.Code = codeCancelled
	}
	if engine.NotSaved.In(r) {
		text[0] = "the old content could not be stored; nothing was changed"
	}
	if text[0] == "" {
		text[0] = strings.ReplaceAll(r.Cause.Name, "_", " ") + ": {path}"
	}
	for i := range text {
		text[i] = strings.ReplaceAll(text[i], "{path}", approval.Escape(name, false))
	}
	out.Message, out.Data.Error, out.Data.Hint = text[0], text[0], text[1]
	if out.Data.Path = name; isAbsolute(name) {
		out.Data.URI = (&url.URL{Scheme: "file", Path: name}).String()
	}
	return out
}
