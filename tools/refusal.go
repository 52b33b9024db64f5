package tools

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/ledger"
	"moltisfs/readers"
)

// The kinds of refusal, all of them.
const (
	KindNotFound         = string(engine.CodeNotFound)
	KindPermissionDenied = string(engine.CodePermissionDenied)
	KindTooLarge         = string(engine.CodeTooLarge)
	KindNotRegularFile   = string(engine.CodeNotRegularFile)
	KindPathDenied       = string(engine.CodePathDenied)
	KindBadRequest       = string(engine.CodeBadRequest)
	KindSymlinkRefused   = string(engine.CodeSymlinkRefused)
	KindMustRead         = string(engine.CodeMustRead)
	KindModified         = string(engine.CodeModified)
	KindNoMatch          = string(engine.CodeNoMatch)
	KindNotUnique        = string(engine.CodeNotUnique)
	KindConflict         = string(engine.CodeConflict)
	KindApprovalDenied   = string(engine.CodeApprovalDenied)
	KindApprovalTimeout  = string(engine.CodeApprovalTimeout)
	KindApprovalStale    = string(engine.CodeApprovalStale)
	KindUnsupported      = string(engine.CodeUnsupported)
	KindLimit            = string(engine.CodeLimit)
	KindDeadline         = string(engine.CodeDeadline)
	KindPolicyError      = string(engine.CodePolicyError)
	KindIOError          = string(engine.CodeIOError)
	KindUnavailable      = string(engine.CodeUnavailable)
)

// A Refusal is a "no" that a model can act on: what is so, the next move, and
// where there is one, the call to make now.
type Refusal struct {
	Reason   string `json:"-"` // the kind
	FilePath string `json:"file_path,omitempty"`
	Message  string `json:"error"`
	Hint     string `json:"hint"`
	// Next is a call that can be made as it stands and answers the hint.
	Next *NextCall `json:"next,omitempty"`
	// Fields are the kind's own, spliced into the object.
	Fields any `json:"-"`

	facts *engine.Refusal
}

// Facts are what the refusal says, for this module's command line, which says it in other words;
// nil where a tool itself refuses.
func (r *Refusal) Facts() *engine.Refusal { return r.facts }

// Unwrap is the error behind it, where there is one: errors.Is(r, fs.ErrNotExist) may hold, and
// errors.Is(r, context.Canceled).
func (r *Refusal) Unwrap() error {
	if r.facts == nil {
		return nil
	}
	return r.facts.Err
}

// NextCall is a tool call ready to be sent.
type NextCall struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

func (r *Refusal) Kind() string { return r.Reason }

// Error lets a step of a chain refuse in its own words.
func (r *Refusal) Error() string { return r.Message }

func (*Refusal) payload() {}

// Text is the refusal in two or three lines.
func (r *Refusal) Text() string {
	var b strings.Builder
	b.WriteString(r.Message)
	if r.Hint != "" {
		b.WriteString("\n" + r.Hint)
	}
	if t, ok := r.Fields.(interface{ Text() string }); ok {
		b.WriteString("\n" + t.Text())
	}
	return b.String()
}

// MarshalJSON splices the kind's own fields behind the common ones.
func (r *Refusal) MarshalJSON() ([]byte, error) {
	type common Refusal
	head, err := plainJSON((*common)(r))
	if err != nil || r.Fields == nil {
		return head, err
	}
	own, err := plainJSON(r.Fields)
	if err != nil {
		return nil, err
	}
	if string(own) == "{}" {
		return head, nil
	}
	head[len(head)-1] = ','
	return append(head, own[1:]...), nil
}

// refuse tells a model of an error. nil means that the host is broken, or that the suite was
// closed.
func (s *Suite) refuse(c *engine.Call, tool string, args any, err error) *Refusal {
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		facts := engine.Reason(err)
		if facts == nil {
			return nil
		}
		if facts.Cause == engine.Unknown {
			s.logger.Error("a call failed for a reason without a row", "tool", tool, "err", err)
		}
		r = s.told(c, tool, args, facts)
	}
	if r.FilePath == "" {
		r.FilePath = pathOf(args)
	}
	r.FilePath = fmt.Sprintf("%.*s", guardfs.MaxPath, r.FilePath)
	return r
}

// told is a refusal in the words of a tool.
func (s *Suite) told(c *engine.Call, tool string, args any, facts *engine.Refusal) (r *Refusal) {
	a := &about{facts, s, c, tool, args, pathOf(args)}
	if of := restoreSentences[facts.Cause]; of != nil && tool == "checkpoint_restore" {
		r = of(a)
	}
	if r == nil {
		r = sentences[facts.Cause](a)
	}
	r.Reason, r.facts = cmp.Or(r.Reason, string(facts.Code)), facts
	if n := r.Next; c != nil && n != nil && row(n.Tool) != nil && row(n.Tool).Effect != Reads {
		if path, _ := n.Args["file_path"].(string); s.engine.RunsCode(path) {
			r.Hint += " It runs code later: a change of it is asked about."
		}
	}
	return r
}

// An about is what a sentence is made from: the facts, and the call that they are about.
type about struct {
	*engine.Refusal
	s    *Suite
	call *engine.Call
	tool string
	args any
	path string // that the call names; "" for a call of many paths
}

// factsOf are the facts of a refusal whose cause tells their type.
func factsOf[T any](a *about) T { return a.Facts.(T) }

// halfMadeFields tells what a call that failed has left behind.
type halfMadeFields struct {
	NotPutBack []string `json:"not_put_back"` // the first ones
	Total      int      `json:"not_put_back_total"`
	Checkpoint string   `json:"checkpoint,omitempty"`
}

// Text names them.
func (f halfMadeFields) Text() string {
	var b strings.Builder
	for _, p := range f.NotPutBack {
		b.WriteString(edit.ShownPath(p) + "\n")
	}
	if n := f.Total - len(f.NotPutBack); n > 0 {
		fmt.Fprintf(&b, "and %d more\n", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// partRead refuses an overwrite of a file of which the session was shown a part, or nothing.
func partRead(r *Refusal, path string, seen *ledger.Seen) {
	first := firstUnseen(seen)
	unit := cmp.Or(seen.Unit, "line")
	switch {
	case seen.Lossy && seen.Lines >= 0 && first > seen.Lines:
		r.Message = "this session has seen what can be shown of this file, but that was made from it, and " +
			"there is more in it (packed text, layout, or perhaps pictures, formulas, macros or deleted " +
			"text), which a full overwrite would drop"
		r.Hint, r.Next = "Send acknowledge: true if all of it should be replaced; to keep the rest, "+
			"make the change with a program for such files.", nil
		return
	case len(seen.Ranges) == 0 && seen.Unit == "":
		r.Message = "nothing of what is in this file could be shown to this session; a full overwrite " +
			"would drop it unseen"
		r.Hint, r.Next = "Send acknowledge: true if all of it should be replaced.", nil
		return
	case unit == "source line":
		r.Message = "this session has seen the text of this file, but not its source, which a full " +
			"overwrite would drop"
		r.Hint = "Read the source first, or send acknowledge: true to replace all of it."
		r.Next = &NextCall{"Read", map[string]any{"file_path": path, "render": false}}
		return
	case seen.Lines < 0:
		r.Message = "this session has read only a part of the file; a full overwrite would drop what " +
			"it has not seen"
	case len(seen.Ranges) == 0:
		r.Message = fmt.Sprintf("this session has read none of the %s as they are now; a full "+
			"overwrite would drop what it has not seen", plural(seen.Lines, unit))
	default:
		r.Message = fmt.Sprintf("this session has read %d of the %s (not %s); a full overwrite would "+
			"drop what it has not seen", seen.Shown(), plural(seen.Lines, unit), unseen(seen))
	}
	r.Hint = "Read the rest first, use Edit to change only what was seen, or send acknowledge: true " +
		"to replace all of it."
	args := map[string]any{"file_path": path}
	switch {
	case unit == "cell":
		r.Hint = "Use NotebookEdit to change cells, read the rest (of a cell that is cut: the source, " +
			"with encoding: utf-8), or send acknowledge: true to replace all of it."
		args["offset"] = first
	case unit == "line" && len(seen.Ranges) > 0 &&
		(first == 1 && seen.Ranges[0].First == 2 || first > 1 && len(seen.Ranges) > 1 &&
			seen.Ranges[1].First == first+1):
		// One line between others: it was too long to be shown with them.
		args["offset"], args["column"] = first, 1
	case unit == "page":
		args["pages"] = fmt.Sprint(first)
		if last := min(first+readers.MaxPages-1, seen.Lines); last > first {
			args["pages"] = fmt.Sprintf("%d-%d", first, last)
		}
	default:
		args["offset"] = first
	}
	r.Next = &NextCall{"Read", args}
	if unit == "line" {
		r.Fields = struct {
			Seen  int `json:"lines_seen"`
			Lines int `json:"total_lines,omitempty"`
		}{seen.Shown(), max(seen.Lines, 0)}
	}
}

type modifiedFields struct {
	Diff   string `json:"diff,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	was    string
}

// Text shows what changed.
func (m modifiedFields) Text() string { return m.Diff }

type sizes struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
}
