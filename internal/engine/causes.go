package engine

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// The causes of refusals, and the types of their facts. Errors of the packages below are their own
// facts. Of two that fit, the first counts.
var (
	HalfMade = own(CodeIOError, "half_made")   // HalfFacts; the code is that of what failed
	BadName  = own(CodeBadRequest, "bad_name") // NameFacts

	TooManyCalls = own(CodeLimit, "too_many_calls") // CallFacts

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
	Unsettled     = own(CodeConflict, "unsettled") // checkpoint.ID
	NotEmpty      = own(CodeConflict, "directory_not_empty")

	UnsavedText = own(CodeConflict, "unsaved_text") // a client holds it, and more was to change
	// a client holds it, and the disk has moved since the session last read it
	BufferDiffers = own(CodeModified, "buffer_differs_from_disk")
	ClientFailed  = own(CodeIOError, "client_failed") // error: what it said of its text

	Unread     = own(CodeMustRead, "unread")
	PartUnread = own(CodeMustRead, "part_unread")       // *ledger.Seen
	Modified   = own(CodeModified, "modified")          // HashFacts
	Unexpected = own(CodeModified, "not_expected_hash") // HashFacts; Hash is "" where no file is
	ReadOnly   = own(CodePermissionDenied, "read_only") // string: the mode

	LinesUnseen = own(CodeMustRead, "lines_unseen")    // LineFacts
	NotAsShown  = own(CodeUnsupported, "not_as_shown") // string: the kind of file
	OverBinary  = own(CodeBadRequest, "over_binary")   // string: the kind of file
	Accident    = own(CodeBadRequest, "accident")      // GuardFacts
	DropsUnseen = own(CodeBadRequest, "drops_unseen")  // *ledger.Seen

	NoMatch        = Typed[*edit.NoMatchError](CodeNoMatch, "no_match")
	NotUnique      = Typed[*edit.NotUniqueError](CodeNotUnique, "not_unique")
	Unencodable    = Typed[*edit.UnencodableError](CodeBadRequest, "unencodable")
	DamagedBytes   = Typed[*edit.DamagedError](CodeBadRequest, "damaged_bytes")
	OldEmpty       = Typed[*edit.EmptyOldError](CodeBadRequest, "old_string_empty")
	OldIsNew       = Typed[*edit.SameError](CodeBadRequest, "old_string_is_new")
	NoChange       = Typed[*edit.NoopError](CodeBadRequest, "no_change")
	BadEncoding    = Typed[*edit.EncodingError](CodeBadRequest, "bad_encoding")
	TooManyEdits   = Typed[*edit.TooManyError](CodeLimit, "too_many_edits")
	ResultTooLarge = Typed[*edit.TooLargeError](CodeLimit, "result_too_large")

	NotApproved   = own(CodeApprovalDenied, "not_approved")  // string: what the approver said
	NobodyToAsk   = own(CodeApprovalDenied, "nobody_to_ask") // string: what the host said
	RunsCode      = own(CodeApprovalDenied, "runs_code")     // CodeFacts
	NotAnswered   = own(CodeApprovalTimeout, "approval_timeout")
	ApprovalStale = own(CodeApprovalStale, "approval_stale") // string: the diff as it would be now
	NotSaved      = own(CodeIOError, "checkpoint_not_saved") // error: why

	TierBlocked = own(CodePermissionDenied, "tier_blocked")
	HookBlocked = own(CodePermissionDenied, "hook_blocked")    // *hook.Error
	HookFailed  = own(CodePolicyError, "hook_failed")          // *hook.Error
	Withheld    = own(CodePermissionDenied, "answer_withheld") // *hook.Error; the call has ended

	Conflicts    = own(CodeConflict, "conflicts")     // []Blocked
	BothKinds    = own(CodeConflict, "both_kinds")    // []Blocked; to force does not help
	NotStored    = own(CodeUnsupported, "not_stored") // Why
	WouldLose    = own(CodeUnsupported, "would_lose") // what is there now can't be stored
	NotInPlan    = own(CodeBadRequest, "not_in_plan") // PlanFacts
	Hidden       = own(CodePathDenied, "hidden")      // int: paths, which must not be named
	NoTrash      = own(CodeUnsupported, "no_trash")   // error: why
	TooManyPaths = own(CodeLimit, "too_many_paths")   // CountFacts

	BadGlob        = Typed[*grep.GlobError](CodeBadRequest, "bad_glob")
	BadPattern     = Typed[*match.PatternError](CodeBadRequest, "bad_pattern")
	NoFileType     = Typed[*grep.TypeError](CodeBadRequest, "no_file_type")
	Unwatchable    = named(CodeUnsupported, "unwatchable", guardfs.ErrUnwatchable)
	TooManyWatches = own(CodeLimit, "too_many_watches") // error: what the system said
	IntoItself     = own(CodeBadRequest, "into_itself") // string: the directory
	BadWindow      = own(CodeBadRequest, "bad_window")  // int64: where it was to begin
	TooManyEntries = own(CodeLimit, "too_many_entries") // int: how many a listing holds at most

	BadID          = Typed[*checkpoint.BadIDError](CodeBadRequest, "bad_id")
	AmbiguousLabel = Typed[*checkpoint.AmbiguousLabelError](CodeNotUnique, "ambiguous_label")
	AmbiguousTurn  = Typed[*checkpoint.AmbiguousTurnError](CodeNotUnique, "ambiguous_turn")
	PartialHistory = Typed[*checkpoint.PartialError](CodeConflict, "partial_history")
	NoCheckpoint   = named(CodeNotFound, "no_checkpoint", checkpoint.ErrNotFound)
	NothingToUndo  = Typed[*checkpoint.NothingError](CodeNotFound, "nothing_to_undo")
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
	SystemError   = systemError() // syscall.Errno
	TookTooLong   = system(CodeDeadline, "took_too_long", context.DeadlineExceeded)
	NoAnswer      = own(CodeDeadline, "no_answer") // StuckFacts
	Cancelled     = system(CodeDeadline, "cancelled", context.Canceled)
	Unknown       = own(CodeIOError, "unknown")
)

// systemError is the cause of an errno without one of its own.
func systemError() Cause {
	c := own(CodeIOError, "system_error")
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

// NameFacts are those of a name that is not taken.
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

// PlanFacts are what a checkpoint, or the time since one, has something to say of.
type PlanFacts struct {
	Held   []string
	Denied int // and so many paths more that policy keeps from being named
}

// CountFacts say how many paths a change may have, with the files that this process may open.
type CountFacts struct {
	Most int
	Dirs bool // Most counts the directories that the paths are in
}
