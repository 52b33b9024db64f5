package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
)

// The causes of refusals, with the types of their facts. Errors of the packages below are their own
// facts. Of two that fit, the first counts.
var (
	HalfMade = With[HalfFacts](CodeIOError, "half_made") // the code is that of what failed
	BadName  = With[NameFacts](CodeBadRequest, "bad_name")

	TooManyCalls = With[CallFacts](CodeLimit, "too_many_calls")

	BadArgument = Typed[*args.Error](CodeBadRequest, "bad_argument") // by Decode, before anything else

	BadPath = Typed[*guardfs.BadPathError](CodeBadRequest, "bad_path")
	// where the call has to run can't be reached
	Unavailable   = named(CodeUnavailable, "unavailable", guardfs.ErrUnavailable)
	OutOfScope    = Typed[*policy.OutOfScope](CodePathDenied, "out_of_scope")
	Denied        = Typed[*policy.Denied](CodePathDenied, "denied")
	ChainFailed   = Typed[*policy.ChainError](CodePolicyError, "policies_failed")
	Pseudo        = named(CodePathDenied, "pseudo", guardfs.ErrPseudo)
	IsLink        = Typed[*guardfs.SymlinkError](CodeSymlinkRefused, "link")
	NotRegular    = Typed[*guardfs.NotRegularError](CodeNotRegularFile, "not_regular")
	ParentMissing = Typed[*guardfs.MissingParentError](CodeNotFound, "parent_missing")
	FileTooLarge  = Typed[*guardfs.TooLargeError](CodeTooLarge, "file_too_large")
	ChangedAtOnce = Typed[*guardfs.ConflictError](CodeConflict, "changed_at_once")
	Locked        = Typed[*guardfs.LockedError](CodeConflict, "locked")
	Unsettled     = With[checkpoint.ID](CodeConflict, "unsettled")
	NotEmpty      = own(CodeConflict, "directory_not_empty")

	UnsavedText = own(CodeConflict, "unsaved_text") // a client holds it, and more was to change
	// a client holds it, and the disk has moved since the session last read it
	BufferDiffers = own(CodeModified, "buffer_differs_from_disk")
	ClientFailed  = With[error](CodeIOError, "client_failed") // what it said of its text

	Unread     = own(CodeMustRead, "unread")
	PartUnread = With[*session.Seen](CodeMustRead, "part_unread")
	Modified   = With[HashFacts](CodeModified, "modified")
	Unexpected = With[HashFacts](CodeModified, "not_expected_hash") // Hash is "" where no file is
	ReadOnly   = With[string](CodePermissionDenied, "read_only")    // the mode

	LinesUnseen = With[LineFacts](CodeMustRead, "lines_unseen")
	NotAsShown  = With[string](CodeUnsupported, "not_as_shown") // the kind of file
	OverBinary  = With[string](CodeBadRequest, "over_binary")   // the kind of file
	Accident    = With[GuardFacts](CodeBadRequest, "accident")
	DropsUnseen = With[*session.Seen](CodeBadRequest, "drops_unseen")

	NoMatch        = Typed[*edit.NoMatchError](CodeNoMatch, "no_match")
	NotUnique      = Typed[*edit.NotUniqueError](CodeNotUnique, "not_unique")
	Unencodable    = Typed[*edit.UnencodableError](CodeBadRequest, "unencodable")
	DamagedBytes   = Typed[*edit.DamagedError](CodeBadRequest, "damaged_bytes")
	OldEmpty       = Typed[*edit.EmptyOldError](CodeBadRequest, "old_string_empty")
	OldIsNew       = Typed[*edit.SameError](CodeBadRequest, "old_string_is_new")
	NoChange       = Typed[*edit.NoopError](CodeBadRequest, "no_change")
	BadEncoding    = Typed[*edit.EncodingError](CodeBadRequest, "bad_encoding")
	TooManyEdits   = Typed[*edit.TooManyError](CodeLimit, "too_many_edits")
	WriteTooLarge  = With[SizeFacts](CodeTooLarge, "write_too_large") // over max_write_bytes
	ResultTooLarge = Typed[*edit.TooLargeError](CodeLimit, "result_too_large")

	NotApproved   = With[string](CodeApprovalDenied, "not_approved")  // what the approver said
	NobodyToAsk   = With[string](CodeApprovalDenied, "nobody_to_ask") // what the host said
	RunsCode      = With[CodeFacts](CodeApprovalDenied, "runs_code")
	NotAnswered   = own(CodeApprovalTimeout, "approval_timeout")
	ApprovalStale = With[string](CodeApprovalStale, "approval_stale") // the diff as it would be now
	NotSaved      = With[error](CodeIOError, "checkpoint_not_saved")  // why

	TierBlocked = own(CodePermissionDenied, "tier_blocked")
	HookBlocked = With[*hook.Error](CodePermissionDenied, "hook_blocked")
	HookFailed  = With[*hook.Error](CodePolicyError, "hook_failed")
	Withheld    = With[*hook.Error](CodePermissionDenied, "answer_withheld") // the call has ended

	Conflicts    = With[[]Blocked](CodeConflict, "conflicts")
	BothKinds    = With[[]Blocked](CodeConflict, "both_kinds") // to force does not help
	NotStored    = With[Why](CodeUnsupported, "not_stored")
	WouldLose    = own(CodeUnsupported, "would_lose") // what is there now can't be stored
	NotInPlan    = With[PlanFacts](CodeBadRequest, "not_in_plan")
	Hidden       = With[int](CodePathDenied, "hidden")      // paths, which must not be named
	NoTrash      = With[error](CodeUnsupported, "no_trash") // why
	TooManyPaths = With[CountFacts](CodeLimit, "too_many_paths")

	BadGlob        = Typed[*grep.GlobError](CodeBadRequest, "bad_glob")
	BadPattern     = Typed[*match.PatternError](CodeBadRequest, "bad_pattern")
	NoFileType     = Typed[*grep.TypeError](CodeBadRequest, "no_file_type")
	Unwatchable    = named(CodeUnsupported, "unwatchable", guardfs.ErrUnwatchable)
	TooManyWatches = With[error](CodeLimit, "too_many_watches")  // what the system said
	IntoItself     = With[string](CodeBadRequest, "into_itself") // the directory
	BadWindow      = With[int64](CodeBadRequest, "bad_window")   // where it was to begin
	TooManyEntries = With[int](CodeLimit, "too_many_entries")    // how many a listing holds at most

	BadID          = Typed[*checkpoint.BadIDError](CodeBadRequest, "bad_id")
	AmbiguousLabel = Typed[*checkpoint.AmbiguousLabelError](CodeNotUnique, "ambiguous_label")
	AmbiguousTurn  = Typed[*checkpoint.AmbiguousTurnError](CodeNotUnique, "ambiguous_turn")
	PartialHistory = Typed[*checkpoint.PartialError](CodeConflict, "partial_history")
	NoCheckpoint   = named(CodeNotFound, "no_checkpoint", checkpoint.ErrNotFound)
	NothingToUndo  = Typed[*checkpoint.NothingError](CodeNotFound, "nothing_to_undo")
	StoreFull      = Typed[*checkpoint.FullError](CodeIOError, "store_full")
	StoreDiskFull  = Typed[*checkpoint.DiskFullError](CodeIOError, "store_disk_full")
	StoreGone      = Typed[*checkpoint.GoneError](CodeIOError, "store_gone")
	StoreBusy      = named(CodeIOError, "store_busy", checkpoint.ErrBusy)
	StoreReadOnly  = named(CodeIOError, "store_read_only", checkpoint.ErrReadOnly)
	StoreInUse     = named(CodeIOError, "store_in_use", checkpoint.ErrInUse)
	Sealed         = named(CodeUnsupported, "sealed", checkpoint.ErrSealed)
	BadRestore     = Typed[*checkpoint.BadOpError](CodeBadRequest, "bad_restore")
	CorruptContent = Typed[*checkpoint.CorruptError](CodeIOError, "corrupt_content")

	Absent        = system(CodeNotFound, "absent", fs.ErrNotExist)
	NotPermitted  = system(CodePermissionDenied, "not_permitted", fs.ErrPermission)
	NotADirectory = system(CodeNotFound, "not_a_directory", syscall.ENOTDIR)
	LinkLoop      = system(CodeNotFound, "link_loop", syscall.ELOOP)
	NameTooLong   = system(CodeBadRequest, "name_too_long", syscall.ENAMETOOLONG)
	DiskFull      = system(CodeIOError, "disk_full", syscall.ENOSPC, syscall.EDQUOT)
	DiskReadOnly  = system(CodePermissionDenied, "disk_read_only", syscall.EROFS)
	SystemError   = systemError()
	TookTooLong   = system(CodeDeadline, "took_too_long", context.DeadlineExceeded)
	NoAnswer      = With[StuckFacts](CodeDeadline, "no_answer")
	Cancelled     = system(CodeDeadline, "cancelled", context.Canceled)
	Unknown       = own(CodeIOError, "unknown")
)

// systemError is the cause of an errno without one of its own.
func systemError() Cause {
	c := With[syscall.Errno](CodeIOError, "system_error")
	systemFinders = append(systemFinders, func(err error) *Refusal {
		no, ok := errors.AsType[syscall.Errno](err)
		if !ok {
			return nil
		}
		return &Refusal{c.Code, c, pathOf(err), no, err}
	})
	return c
}

// HashFacts are contents by their hashes, "" where one is not known.
type HashFacts struct {
	Was, Hash string
	Diff      string // unified, of what changed since; "" where the old content is not known
}

// NameFacts are the facts of a name that is not taken.
type NameFacts struct {
	What  string // "principal", "session" or "turn"
	Bytes int    // of a name that is too long; 0: it is not printable text
}

// HalfFacts are of a change that failed half-way and could not be taken back as a whole.
type HalfFacts struct {
	Err        error    // why it failed
	Left       []string // what is, or may be, not as it was before, sorted
	Checkpoint string   // holds what was there
	Marked     bool     // recovery tries again
}

// PlanFacts hold the paths that a checkpoint, or the time since one, touched and that the refusal is about.
type PlanFacts struct {
	Held   []string
	Denied int // and so many paths more that policy keeps from being named
}

// String names the first ten, and says how many more there are.
func (f PlanFacts) String() string {
	var b strings.Builder
	for i, held := range f.Held[:min(10, len(f.Held))] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(edit.ShownPath(held))
	}
	if n := len(f.Held) - 10; max(n, 0)+f.Denied > 0 {
		fmt.Fprintf(&b, " and %d more", max(n, 0)+f.Denied)
	}
	return b.String()
}

// CountFacts say how many paths a change may have, with the files that this process may open.
type CountFacts struct {
	Most int
	Dirs bool // Most counts the directories that the paths are in
}
