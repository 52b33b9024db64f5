package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/ledger"
	"moltisfs/internal/policy"
	"moltisfs/readers"
)

// The kinds of refusal, all of them.
const (
	KindNotFound         = "not_found"
	KindPermissionDenied = "permission_denied"
	KindTooLarge         = "too_large"
	KindNotRegularFile   = "not_regular_file"
	KindPathDenied       = "path_denied"
	KindBadRequest       = "bad_request"
	KindSymlinkRefused   = "symlink_refused"
	KindMustRead         = "must_read_before_write"
	KindModified         = "modified_since_read"
	KindNoMatch          = "no_match"
	KindNotUnique        = "not_unique"
	KindConflict         = "conflict"
	KindApprovalDenied   = "approval_denied"
	KindApprovalTimeout  = "approval_timeout"
	KindApprovalStale    = "approval_stale"
	KindUnsupported      = "unsupported"
	KindLimit            = "limit"
	KindDeadline         = "deadline"
	KindPolicyError      = "policy_error"
	KindIOError          = "io_error"
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

// refuse is the one table from what can go wrong to what a model is told. nil means that the host is broken, or
// that the suite was closed. An error without a row is an io_error: that the host is broken is said by who knows it.
func (s *Suite) refuse(ctx context.Context, tool string, args any, err error) *Refusal {
	if r := s.refusal(tool, args, err); r != nil {
		if r.FilePath == "" {
			r.FilePath = pathOf(args)
		}
		return r
	}
	switch {
	case errors.Is(err, engine.ErrHost), errors.Is(err, engine.ErrClosed):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		hint := "Ask for less: a narrower path, pattern or window."
		if t := row(tool); t != nil && t.Effect != Reads {
			hint = "Look at the file, then send the change in smaller parts."
		}
		return &Refusal{Reason: KindDeadline, FilePath: pathOf(args), Message: "the call took too long and was stopped", Hint: hint}
	case errors.Is(err, context.Canceled):
		return &Refusal{Reason: KindDeadline, FilePath: pathOf(args), Message: "the call was cancelled", Hint: "Call again if the answer is still wanted."}
	}
	s.logger.Error("a call failed for a reason without a row", "tool", tool, "err", err)
	return &Refusal{Reason: KindIOError, FilePath: pathOf(args), Message: "the system failed in a way that has no name here", Hint: "Tell the user; the operator's log has the details."}
}

func (s *Suite) refusal(tool string, args any, err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if e, ok := errors.AsType[*engine.HalfMadeError](err); ok {
		return s.halfMade(tool, args, e)
	}
	if e, ok := errors.AsType[*badArgument](err); ok {
		return &Refusal{Reason: KindBadRequest, Message: e.What, Hint: sentence(e.Hint)}
	}
	if e, ok := errors.AsType[*engine.NameError](err); ok {
		hint := "Use printable characters."
		if e.Bytes > 0 {
			hint = fmt.Sprintf("Use a name of at most %d bytes.", engine.MaxName)
		}
		return &Refusal{Reason: KindBadRequest, Message: e.Error(), Hint: hint}
	}
	for _, of := range []func(string, any, error) *Refusal{s.ofPath, s.ofFreshness, s.ofEdit, s.ofNotebook, s.ofApproval, s.ofReader, s.ofSearch, s.ofStore, s.ofSystem} {
		if r := of(tool, args, err); r != nil {
			return r
		}
	}
	return nil
}

// halfMade refuses a call that left something behind. No text of its cause is used: those say that nothing was changed.
func (s *Suite) halfMade(tool string, args any, e *engine.HalfMadeError) *Refusal {
	const most = 20
	r := &Refusal{Reason: KindIOError, Fields: halfMadeFields{e.Left[:min(most, len(e.Left))], len(e.Left), e.Checkpoint},
		Message: "the change failed half-way (" + e.Cause.Error() + "), and " + plural(len(e.Left), "path") + " could not be put back: what is there is changed, or may be"}
	if why := s.refusal(tool, args, e.Cause); why != nil {
		r.Reason = why.Reason
	}
	if pathOf(args) == "" && len(e.Left) > 0 {
		r.FilePath = e.Left[0]
	}
	r.Hint = "Tell the user, and read these paths before going on."
	switch {
	case e.Marked:
		r.Hint = "The next start, and the next change of these paths, takes back what others have not changed since, as soon as the system lets it. Tell the user, and read these paths before going on."
	case e.Checkpoint != "":
		r.Hint = "What was there is in checkpoint " + e.Checkpoint + ". " + r.Hint
	}
	return r
}

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

func (s *Suite) ofPath(tool string, args any, err error) *Refusal {
	path := pathOf(args)
	if e, ok := errors.AsType[*guardfs.BadPathError](err); ok {
		return s.badPath(tool, args, e)
	}
	if e, ok := errors.AsType[*policy.Denied](err); ok {
		return s.pathDenied(e.Path)
	}
	if errors.Is(err, guardfs.ErrPseudo) {
		return s.pathDenied(path)
	}
	if e, ok := errors.AsType[*guardfs.SymlinkError](err); ok {
		return s.symlink(tool, args, e)
	}
	if e, ok := errors.AsType[*guardfs.NotRegularError](err); ok {
		return s.notRegular(e, args, cmp.Or(path, e.Path)) // a call of many paths has none of its own
	}
	if e, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
		return &Refusal{Reason: KindNotFound, FilePath: path, Message: "the directory " + quote(e.Missing) + " does not exist, and this tool makes none",
			Hint: "Write into a directory that exists, or make " + quote(e.Missing) + " first.", Fields: struct {
				Missing string `json:"missing_parent"`
			}{e.Missing}}
	}
	if e, ok := errors.AsType[*guardfs.TooLargeError](err); ok {
		has, takes := size(e.Size), size(e.Max)
		if has == takes {
			has, takes = fmt.Sprintf("%d bytes", e.Size), fmt.Sprintf("%d", e.Max)
		}
		return &Refusal{Reason: KindTooLarge, Message: fmt.Sprintf("the file has %s; this tool takes up to %s", has, takes),
			Hint: "Work on a smaller file, or split this one.", Fields: sizes{e.Size, e.Max}}
	}
	if e, ok := errors.AsType[*guardfs.ConflictError](err); ok {
		return &Refusal{Reason: KindConflict, Message: "somebody else changed the file at the same moment: " + e.Why + "; nothing was changed by this call",
			Hint: "Read it again and repeat the change.", Next: read(path)}
	}
	if e, ok := errors.AsType[*engine.UnsettledError](err); ok {
		return &Refusal{Reason: KindConflict, Message: e.Error() + "; nothing was restored",
			Hint: "Call again in a moment. If it stays so, ask the user to end a process of moltis-fs that stands still and holds the locks of its files."}
	}
	if e, ok := errors.AsType[*guardfs.LockedError](err); ok {
		msg := "another call holds the lock on this file"
		if e.Holder != "" {
			msg += " (" + e.Holder + ")"
		}
		return &Refusal{Reason: KindConflict, Message: msg, Hint: "Call again in a moment."}
	}
	return nil
}

func (s *Suite) ofFreshness(tool string, args any, err error) *Refusal {
	path := pathOf(args)
	if e, ok := errors.AsType[*engine.UnreadError](err); ok {
		r := &Refusal{Reason: KindMustRead, Message: "this session has not read the file, and must before it changes it", Hint: "Read it, then repeat the call.", Next: read(path)}
		if e.Seen != nil {
			partRead(r, path, e.Seen)
		}
		return r
	}
	if e, ok := errors.AsType[*engine.ModifiedError](err); ok {
		r := &Refusal{Reason: KindModified, Message: "the file changed since this session read it; nothing was changed by this call",
			Hint: "Read it again, then repeat the change on what is there now.", Next: read(path),
			Fields: modifiedFields{Diff: clip(e.Diff, maxDiff), SHA256: e.Hash, was: e.Was}}
		if e.Expected && e.Hash == "" {
			r.Message = "the file does not exist, so it is not the content that expected_hash names; nothing was changed"
			r.Hint, r.Next = "Leave expected_hash out to create it, or check the path with Glob.", s.globBeside(path)
		} else if e.Expected {
			r.Message = "the file is not the content that expected_hash names; nothing was changed"
		}
		return r
	}
	if e, ok := errors.AsType[*engine.ReadOnlyError](err); ok {
		return &Refusal{Reason: KindPermissionDenied, Message: "the file is read-only (" + e.Mode + ")",
			Hint: `Ask the user to make it writable, or the operator for read_only_files = "write".`}
	}
	if e, ok := errors.AsType[*engine.HardLinkError](err); ok {
		return &Refusal{Reason: KindPermissionDenied, Message: fmt.Sprintf("the file is one of %d hard links to the same content, and hard_links = \"refuse\"", e.Names),
			Hint: `Ask the user which name is meant, or the operator for hard_links = "break".`}
	}
	return nil
}

// partRead refuses an overwrite of a file of which the session was shown a part, or nothing.
func partRead(r *Refusal, path string, seen *ledger.Seen) {
	first := firstUnseen(seen)
	unit := cmp.Or(seen.Unit, "line")
	switch {
	case len(seen.Ranges) == 0 && seen.Unit == "":
		r.Message = "nothing of what is in this file could be shown to this session; a full overwrite would drop it unseen"
		r.Hint, r.Next = "Send acknowledge: true if all of it should be replaced.", nil
		return
	case unit == "source line":
		r.Message = "this session has seen the text of this file, but not its source, which a full overwrite would drop"
		r.Hint = "Read the source first, or send acknowledge: true to replace all of it."
		r.Next = &NextCall{"Read", map[string]any{"file_path": path, "render": false}}
		return
	case seen.Lossy && seen.Lines >= 0 && first > seen.Lines:
		r.Message = "this session has seen all the text that can be shown of this file, but there is more in it (layout, and perhaps pictures, formulas, macros or deleted text), which a full overwrite would drop"
		r.Hint, r.Next = "Send acknowledge: true if all of it should be replaced; to keep the rest, make the change with a program for such files.", nil
		return
	case seen.Lines < 0:
		r.Message = "this session has read only a part of the file; a full overwrite would drop what it has not seen"
	case len(seen.Ranges) == 0:
		r.Message = fmt.Sprintf("this session has read none of the %s as they are now; a full overwrite would drop what it has not seen", plural(seen.Lines, unit))
	default:
		r.Message = fmt.Sprintf("this session has read %d of the %s (not %s); a full overwrite would drop what it has not seen", seen.Shown(), plural(seen.Lines, unit), unseen(seen))
	}
	r.Hint = "Read the rest first, use Edit to change only what was seen, or send acknowledge: true to replace all of it."
	args := map[string]any{"file_path": path}
	switch {
	case unit == "cell":
		r.Hint = "Use NotebookEdit to change cells, read the rest (of a cell that is cut: the source, with encoding: utf-8), or send acknowledge: true to replace all of it."
		args["offset"] = first
	case unit == "line" && len(seen.Ranges) > 0 && (first == 1 && seen.Ranges[0].First == 2 || first > 1 && len(seen.Ranges) > 1 && seen.Ranges[1].First == first+1):
		args["offset"], args["column"] = first, 1 // one line between others: it was too long to be shown with them
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

func (s *Suite) ofApproval(tool string, args any, err error) *Refusal {
	e, ok := errors.AsType[*engine.ApprovalError](err)
	if !ok {
		if e, ok := errors.AsType[*engine.CheckpointError](err); ok {
			r := &Refusal{Reason: KindIOError, Message: "the checkpoint could not be stored, so nothing was changed: " + e.Err.Error(),
				Hint: "Tell the operator; changes wait until checkpoints can be stored again."}
			if _, full := errors.AsType[*checkpoint.FullError](err); full { // all that may go has gone
				r.Hint = "Change less at once, or ask the operator to make room: moltis-fs checkpoint unpin, moltis-fs checkpoint gc, or a larger max_bytes."
			}
			if _, full := errors.AsType[*checkpoint.DiskFullError](err); full {
				r.Hint = diskFullHint
			}
			if hint := storeHint(err); hint != "" {
				r.Hint = hint
			}
			return r
		}
		return nil
	}
	switch e.State {
	case "denied":
		r := &Refusal{Reason: KindApprovalDenied, Message: "the change was not approved; nothing was changed", Hint: "Ask the user what should be different before trying again."}
		if e.Reason != "" {
			r.Message = "the change was not approved (" + e.Reason + "); nothing was changed"
		}
		return r
	case "timed_out":
		return &Refusal{Reason: KindApprovalTimeout, Message: "nobody answered the approval question in time; nothing was changed", Hint: "Tell the user that an approval is wanted, then call again."}
	case "stale":
		return &Refusal{Reason: KindApprovalStale, Message: "the file changed while the approval was pending; nothing was changed",
			Hint: "Call again: the new diff will be put before the approver.", Fields: struct {
				Diff string `json:"diff,omitempty"`
			}{clip(e.Diff, maxDiff)}}
	}
	hint := "Ask the operator for a way to approve: a terminal, --approve elicitation, --yes, or require_approval = false."
	if e.Reason != "" {
		hint = sentence(e.Reason)
	}
	return &Refusal{Reason: KindApprovalDenied, Message: "changes need approval and nobody can be asked; nothing was changed", Hint: hint}
}

const diskFullHint = "Ask the user to free space on that disk (moltis-fs checkpoint gc and moltis-fs trash empty give back what they can), then call again."

// storeHint says what can be done about a store that is well but can't be used here and now; "" for any other error.
func storeHint(err error) string {
	_, gone := errors.AsType[*checkpoint.GoneError](err)
	switch {
	case gone:
		return "Ask the operator to put the store back where it was or, if it is gone for good, to restart the server."
	case errors.Is(err, checkpoint.ErrBusy):
		return "Call again in a moment. If it stays so, ask the user to look for a process of moltis-fs that stands still on this data directory, and to let it go on or end it."
	case errors.Is(err, checkpoint.ErrReadOnly):
		return "Ask the operator for a data directory (--data-dir) that can be written to; what is stored can be looked at meanwhile."
	case errors.Is(err, checkpoint.ErrInUse):
		return "Wait until the operator's repair of the store has ended, then call again."
	}
	return ""
}

func (s *Suite) ofReader(tool string, args any, err error) *Refusal {
	e, ok := errors.AsType[readers.Hinter](err)
	if !ok {
		return nil
	}
	r := &Refusal{Reason: KindUnsupported, Message: e.Error(), Hint: sentence(e.Hint())}
	switch e := e.(type) {
	case *readers.BadRequest, *readers.BadPages, *readers.BadEncoding:
		r.Reason = KindBadRequest
	case *readers.Limit:
		r.Reason = KindLimit
	case *readers.Busy:
		r.Reason = KindDeadline
	case *readers.OutOfTime:
		r.Reason = KindDeadline
		if e.Resumes {
			r.Next = again(tool, args, nil)
		}
	case *readers.TooLarge:
		r.Reason = KindTooLarge
		r.Fields = sizes{e.Size, e.Max}
		switch {
		case e.Windowed && e.What == "PDF":
			r.Next = again(tool, args, map[string]any{"pages": fmt.Sprintf("1-%d", readers.MaxPages)})
		case e.Windowed:
			r.Next = again(tool, args, map[string]any{"offset": 1, "limit": defaultLines})
		}
	}
	return r
}

func (s *Suite) ofSearch(tool string, args any, err error) *Refusal {
	if e, ok := errors.AsType[*match.PatternError](err); ok {
		return badPattern(tool, args, e)
	}
	if e, ok := errors.AsType[*grep.GlobError](err); ok {
		hint := "Write it like **/*.go or *.{ts,tsx}; a backslash makes the next character literal."
		if e.Climbs {
			hint = "Give the directory to look in as path."
		}
		return &Refusal{Reason: KindBadRequest, Message: e.Error(), Hint: hint}
	}
	if e, ok := errors.AsType[*grep.TypeError](err); ok {
		return unknownType(tool, args, e)
	}
	return nil
}

func (s *Suite) ofStore(tool string, args any, err error) *Refusal {
	if e, ok := errors.AsType[*checkpoint.BadIDError](err); ok {
		return &Refusal{Reason: KindBadRequest, Message: e.Error(), Hint: "Take an id from checkpoints_list, as it stands there.", Next: &NextCall{"checkpoints_list", map[string]any{}}}
	}
	if e, ok := errors.AsType[*checkpoint.AmbiguousLabelError](err); ok {
		return ambiguous(e)
	}
	if e, ok := errors.AsType[*checkpoint.AmbiguousTurnError](err); ok {
		return ambiguousTurn(e)
	}
	if e, ok := errors.AsType[*checkpoint.PartialError](err); ok {
		return partial(tool, e)
	}
	if errors.Is(err, checkpoint.ErrNotFound) {
		return &Refusal{Reason: KindNotFound, Message: "this session has no such checkpoint", Hint: "Take an id from checkpoints_list.", Next: &NextCall{"checkpoints_list", map[string]any{}}}
	}
	if errors.Is(err, checkpoint.ErrNothing) {
		return &Refusal{Reason: KindNotFound, Message: "there is nothing to undo or redo in this session", Hint: "Look at the history with checkpoints_list.", Next: &NextCall{"checkpoints_list", map[string]any{}}}
	}
	if e, ok := errors.AsType[*checkpoint.DiskFullError](err); ok {
		return &Refusal{Reason: KindIOError, Message: e.Error() + "; nothing was changed", Hint: diskFullHint}
	}
	if hint := storeHint(err); hint != "" {
		return &Refusal{Reason: KindIOError, Message: err.Error() + "; nothing was changed", Hint: hint}
	}
	if errors.Is(err, checkpoint.ErrSealed) {
		return &Refusal{Reason: KindUnsupported, Message: err.Error(), Hint: "Ask the operator, who can read it with the identity file (--identity)."}
	}
	if e, ok := errors.AsType[*checkpoint.BadOpError](err); ok {
		return &Refusal{Reason: KindBadRequest, Message: e.Error(), Hint: "Send the id of a checkpoint from checkpoints_list.", Next: &NextCall{"checkpoints_list", map[string]any{}}}
	}
	if e, ok := errors.AsType[*checkpoint.CorruptError](err); ok {
		return &Refusal{Reason: KindIOError, Message: "the stored copy is damaged and was not used: " + e.Error(), Hint: "Restore another checkpoint, and tell the operator to run moltis-fs checkpoint check."}
	}
	return nil
}

// ofSystem turns what the system said into kinds. It comes last: the errors
// above wrap system errors too.
func (s *Suite) ofSystem(tool string, args any, err error) *Refusal {
	if errors.Is(err, engine.ErrHost) {
		return nil
	}
	path := pathOf(args)
	if e, ok := errors.AsType[*guardfs.PathError](err); ok && path == "" { // a call of many paths has none of its own
		path = e.Path
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.missing(tool, args, path)
	case errors.Is(err, fs.ErrPermission):
		return &Refusal{Reason: KindPermissionDenied, Message: "the system does not let us: " + quote(path) + " is not accessible to this process", Hint: "Ask the user to change its permissions, or use another file."}
	case errors.Is(err, syscall.ENOTDIR):
		return &Refusal{Reason: KindNotFound, Message: "a part of " + quote(path) + " is a file, not a directory", Hint: "Check the path with Glob.", Next: s.globBeside(path)}
	case errors.Is(err, syscall.ELOOP):
		return &Refusal{Reason: KindNotFound, Message: quote(path) + " is a loop of symbolic links", Hint: "Use the real path of the file."}
	case errors.Is(err, syscall.ENAMETOOLONG):
		return &Refusal{Reason: KindBadRequest, Message: "the path, or a name in it, is too long", Hint: "Use a shorter path."}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Refusal{Reason: KindIOError, Message: "the disk is full; nothing was changed", Hint: "Ask the user to free space, then call again."}
	case errors.Is(err, syscall.EROFS):
		return &Refusal{Reason: KindPermissionDenied, Message: "the file system is read-only; nothing was changed", Hint: "Use another directory."}
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return &Refusal{Reason: KindIOError, Message: "the system said: " + e.Error(), Hint: "Try once more; if it stays, tell the user."}
	}
	return nil
}

type sizes struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
}
