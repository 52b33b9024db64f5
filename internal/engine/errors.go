package engine

import (
	"errors"
	"fmt"
	"strings"

	"moltisfs/internal/edit"
	"moltisfs/internal/ledger"
)

// ErrHost marks trouble of our own: the host is broken, not the request. errors.Is finds it under any wrapping.
var ErrHost = errors.New("the host is broken")

// A hostError is our own disk, log or store failing.
type hostError struct {
	doing string
	err   error
}

func (e *hostError) Error() string   { return e.doing + ": " + e.err.Error() }
func (e *hostError) Unwrap() []error { return []error{ErrHost, e.err} }

// UnreadError: the session must read the file before it changes it, or must read more of it.
type UnreadError struct {
	Path string
	Seen *ledger.Seen // nil: never read
}

func (e *UnreadError) Error() string {
	if e.Seen == nil {
		return "this session has not read " + edit.ShownPath(e.Path)
	}
	return "this session has read only a part of " + edit.ShownPath(e.Path)
}

// ModifiedError: the file is not what the session read, or not what expected_hash says.
type ModifiedError struct {
	Path      string
	Was, Hash string // content hashes; Was is "" where it is not known
	Diff      string // unified, of what changed since; "" where the old content is not known
	Expected  bool   // the caller's expected_hash did not match
}

func (e *ModifiedError) Error() string {
	if e.Expected {
		return edit.ShownPath(e.Path) + " is not the content that expected_hash names"
	}
	return edit.ShownPath(e.Path) + " changed since this session read it"
}

// ApprovalError: the change was not approved. State is "denied", "timed_out", "nobody" or "stale".
type ApprovalError struct {
	State, Path, Reason string
	Diff                string   // stale: the change as it would be now
	Ways                []string // nobody: how this host can be made to ask or to allow
}

func (e *ApprovalError) Error() string {
	switch e.State {
	case "denied":
		if e.Reason != "" {
			return "the change to " + edit.ShownPath(e.Path) + " was not approved: " + e.Reason
		}
		return "the change to " + edit.ShownPath(e.Path) + " was not approved"
	case "timed_out":
		return "nobody answered the approval question for " + edit.ShownPath(e.Path) + " in time"
	case "stale":
		return edit.ShownPath(e.Path) + " changed while the approval was pending"
	}
	return "changes need approval and nobody can be asked"
}

// CheckpointError: the pre-state could not be stored, so nothing was changed.
type CheckpointError struct{ Err error }

func (e *CheckpointError) Error() string {
	return "storing the checkpoint: " + e.Err.Error()
}
func (e *CheckpointError) Unwrap() []error { return []error{ErrHost, e.Err} }

// ReadOnlyError: the file has no write permission bit and read_only_files is "refuse".
type ReadOnlyError struct {
	Path string
	Mode string
}

func (e *ReadOnlyError) Error() string {
	return edit.ShownPath(e.Path) + " is read-only (" + e.Mode + ")"
}

// HardLinkError: the file has other names and hard_links is "refuse".
type HardLinkError struct {
	Path  string
	Names int // all of them
}

func (e *HardLinkError) Error() string {
	return fmt.Sprintf("%s is one of %d names of the same file", edit.ShownPath(e.Path), e.Names)
}

// HalfMadeError: a change failed after it had begun, and not all of it could be taken back. It does not unwrap to Cause: who tells of that alone says that
// nothing was changed.
type HalfMadeError struct {
	Cause      error    // why the change failed
	Left       []string // what is, or may be, not as it was before, sorted
	Checkpoint string   // holds what was there
	Marked     bool     // recovery tries again
}

func (e *HalfMadeError) Error() string {
	shown := make([]string, len(e.Left))
	for i, p := range e.Left {
		shown[i] = edit.ShownPath(p)
	}
	return e.Cause.Error() + " (and these could not be put back: " + strings.Join(shown, ", ") + ")"
}
