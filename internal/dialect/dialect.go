// Package dialect is the seam between ways of naming file operations and ways in which calls
// arrive. A [Dialect] has names, arguments and words for its answers; whatever serves calls (MCP,
// the command line, a gateway) takes any of them and knows none.
//
// A dialect stands over one engine, which does the work and keeps the promises: policy, approval,
// checkpoint, audit. Package tools is the dialect that Claude Code and Moltis trained models on;
// tools.Suite.Dialect gives it.
//
//	for _, d := range suite.Dialect().Definitions() { … }
//	answer, err := suite.Dialect().Call(ctx, dialect.Call{Session: "s1", Tool: "Read", Args: raw})
package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"

	"moltisfs/internal/approval"
)

// A Dialect is a set of tools under one policy. It is safe for concurrent use.
type Dialect interface {
	// Definitions are the tools that may be called, in the order in which they are listed. Models and
	// prompt caches see that order.
	Definitions() []Definition
	// Call carries out one call. A refusal is an Answer. An error says that the host is broken, or, as
	// an *UnknownToolError, that there is no such tool.
	Call(ctx context.Context, c Call) (Answer, error)
}

// A Definition describes a tool to a model.
type Definition struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	ReadOnly     bool            `json:"read_only"`
	Destructive  bool            `json:"destructive"`
	Idempotent   bool            `json:"idempotent"`
	OpenWorld    bool            `json:"open_world"`
	InputSchema  json.RawMessage `json:"input_schema"`   // JSON Schema 2020-12, a closed object
	OutputSchema json.RawMessage `json:"output_schema"`  // JSON Schema 2020-12 of every answer's JSON
	Also         []string        `json:"also,omitempty"` // other names it is called by; not listed
	Entry        json.RawMessage `json:"-"`              // all that a catalog tells of it, if it has one
	Search       Search          `json:"-"`              // for clients that load tools on demand
}

// Search is how a tool is found by a client that loads tools when they are looked for. Unless Wanted
// is set it should be loaded from the start.
type Search struct {
	Wanted bool
	Hint   string // under what it is found, beside its name
}

// A Call is one tool call as it came in.
type Call struct {
	// Principal names the caller ("local" when empty); Session names the history that counts ("default" when
	// empty).
	Principal, Session string
	// Turn groups the checkpoints of one user prompt; may be empty.
	Turn string
	Tool string
	Args json.RawMessage
	// Approver, when set, is asked instead of the host's: a front that can ask this very caller.
	Approver approval.Approver
	// Heard, when set, ends when no answer reaches the caller any more: then a question that waits is
	// withdrawn. A call that asks nobody goes on until its context ends.
	Heard context.Context //nolint:containedctx // see above
	// Overlay, when set, has texts that the caller's side holds instead of the disk: see Editor.
	Overlay Overlay
	// Tier says how freely this caller may change things; "" is as the configuration has it.
	Tier approval.Tier
	// Scope, when set, says what this caller may read and change of what the configuration allows.
	Scope *Scope
	// Client is the program that calls, with its version, as it names itself: for the record alone.
	Client string
	// Page is the form of text that fits the client.
	Page Page
	// ByUser says that a person makes the call, not an agent: files that it removes stay in the trash as
	// long as a user's.
	ByUser bool
	// Progress, when set, is kept up to date while the call runs.
	Progress *Progress
	// Headers are the headers of the request that a policy chain sees as input.mcp_headers: the X-MCP-*
	// ones, without that prefix, in lower case.
	Headers map[string]string
	// Unavailable says why the place where the call has to run can't be reached: then it is refused.
	Unavailable *Unreachable
}

// Unreachable is a place that can't be reached, by the name that answers and records have for it.
type Unreachable struct {
	Where string
	Err   error
}

func (u *Unreachable) Error() string { return u.Err.Error() }
func (u *Unreachable) Unwrap() error { return u.Err }

// An Overlay has the texts that a client holds instead of the disk: an editor's unsaved buffers.
// Paths are canonical, and policy has let each through. It is called from any goroutine, and must
// come back when ctx ends.
type Overlay interface {
	// Load is the text that is held of a path, in UTF-8; held is false where the disk counts.
	Load(ctx context.Context, path string) (text string, held bool, err error)
	// Store puts text in the place of old. A client that can tell that it holds another text by now
	// changes nothing, and fails.
	Store(ctx context.Context, path, old, text string) error
}

// Progress is how many files a call has come to, of how many it will; 0 is not known. Both may be
// read while it runs.
type Progress struct {
	Files, Total atomic.Int64
	Asked        atomic.Bool // a person is asked, and the call waits for the answer
}

// A Page is how much text of an answer a client takes, and how it has its lines numbered. The zero
// value is as the configuration says.
type Page struct {
	// Bytes is the most that an answer should have, 0 for no limit but ours. Hard says that the client
	// cuts what is longer: then the configuration can only make it less.
	Bytes int
	Hard  bool
	Lines int // the most lines, 0 for no limit but ours
	// Numbers is how lines are numbered where the configuration leaves it open: "arrow" (also ""),
	// "tab" or "compact".
	Numbers string
}

// Scope lists the paths that a caller may read and change: absolute paths, each with all that is below it, links
// in it followed. It only takes away. An empty list is nothing at all. A path that may be changed must be
// readable too.
type Scope struct{ Readable, Writable []string }

// Within gives the part of the scope s that lies in a directory; s may be nil. Paths are absolute and clean. For example, of a scope that
// reads /a and /b/c, within /b it leaves /b/c.
func (s *Scope) Within(dir string) *Scope {
	if s == nil {
		return &Scope{Readable: []string{dir}, Writable: []string{dir}}
	}
	in := func(p, d string) bool { return p == d || d == "/" || strings.HasPrefix(p, d+"/") }
	both := func(paths []string) (out []string) {
		for _, p := range paths {
			switch {
			case in(dir, p):
				return []string{dir}
			case in(p, dir):
				out = append(out, p)
			}
		}
		return out
	}
	return &Scope{Readable: both(s.Readable), Writable: both(s.Writable)}
}

// An Answer is the outcome of a call.
type Answer interface {
	// Kind names the sort of answer or of refusal, as "text" or "not_found".
	Kind() string
	// Refused says that nothing was done. The answer says why.
	Refused() bool
	// Text is the answer for a model that reads text.
	Text() string
	// JSON is the answer as one object on one line. Without bytes it leaves out what Blocks gives.
	JSON(bytes bool) ([]byte, error)
	// Blocks are the bytes in the answer that can't be told as text.
	Blocks() ([]Block, error)
}

// Object is an Answer that is one JSON object, which is its text too.
type Object struct {
	Of      string // Kind
	No      bool   // Refused
	Content json.RawMessage
}

// These implement [Answer].
func (o *Object) Kind() string              { return o.Of }
func (o *Object) Refused() bool             { return o.No }
func (o *Object) Text() string              { return string(o.Content) }
func (o *Object) JSON(bool) ([]byte, error) { return o.Content, nil }
func (*Object) Blocks() ([]Block, error)    { return nil, nil }

// ForHooks is the object.
func (o *Object) ForHooks() (json.RawMessage, error) { return o.Content, nil }

// Replaced is the object that a hook made of it.
func (o *Object) Replaced(by json.RawMessage) (*Object, error) {
	return &Object{Of: o.Of, No: o.No, Content: by}, nil
}

// Brief is an Answer whose JSON can do without what its Text says too, or without the tail of a long
// list: then the JSON names or counts that, for clients that get both.
type Brief interface{ Brief() ([]byte, error) }

// A Block is an image, or, with a Path, the bytes of that file.
type Block struct {
	Path      string
	MediaType string
	Data      []byte
}

// UnknownToolError is a call of a tool that is not there, or that this caller may not call: the two
// are the same to it.
type UnknownToolError struct {
	Tool    string
	Nearest string // "" when nothing is close
}

func (e *UnknownToolError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("there is no tool %.300q; did you mean %s?", e.Tool, e.Nearest)
	}
	return fmt.Sprintf("there is no tool %.300q", e.Tool)
}

// An Editor is the user's editor, as a client of the Agent Client Protocol: the Overlay of a client
// that cannot say of which files it has unsaved text. Its text is compared with the disk, and
// counts where the two differ. Texts that were seen are remembered by principal and session. The
// functions may be called at the same time, and must come back when ctx ends.
type Editor struct {
	// Read is fs/read_text_file, without line and limit: all of a file. A file that the client does
	// not have is fs.ErrNotExist (-32002 in the protocol); any other error ends the call. nil: the
	// client does not offer it. Then all is as the disk has it, and Write is never called.
	Read func(ctx context.Context, path string) (text string, err error)
	// Write is fs/write_text_file. It is called for files with unsaved text only. nil: the client
	// does not offer it. Then a file with unsaved text can be read, and is not changed.
	Write func(ctx context.Context, path, text string) error
}

// Load is the text that the editor shows of a path, be it saved or not.
func (e *Editor) Load(ctx context.Context, path string) (text string, held bool, err error) {
	if e.Read == nil {
		return "", false, nil
	}
	text, err = e.Read(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return text, err == nil, err
}

// Store gives the editor a text. It cannot compare it with the old one.
func (e *Editor) Store(ctx context.Context, path, _, text string) error {
	if e.Write == nil {
		return errors.New("it takes no text")
	}
	return e.Write(ctx, path, text)
}
