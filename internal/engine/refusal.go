package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/guard"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/fleet"
	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
	"moltisfs/internal/outage"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
)

// A Code is the kind of a refusal. It is the same in every dialect.
type Code string

const (
	CodeNotFound         Code = "not_found"
	CodePermissionDenied Code = "permission_denied"
	CodeTooLarge         Code = "too_large"
	CodeNotRegularFile   Code = "not_regular_file"
	CodePathDenied       Code = "path_denied"
	CodeBadRequest       Code = "bad_request"
	CodeSymlinkRefused   Code = "symlink_refused"
	CodeMustRead         Code = "must_read_before_write"
	CodeModified         Code = "modified_since_read"
	CodeNoMatch          Code = "no_match"
	CodeNotUnique        Code = "not_unique"
	CodeConflict         Code = "conflict"
	CodeApprovalDenied   Code = "approval_denied"
	CodeApprovalTimeout  Code = "approval_timeout"
	CodeApprovalStale    Code = "approval_stale"
	CodeUnsupported      Code = "unsupported"
	CodeLimit            Code = "limit"
	CodeDeadline         Code = "deadline"
	CodePolicyError      Code = "policy_error"
	CodeIOError          Code = "io_error"
	CodeUnavailable      Code = "unavailable"
)

// A Cause tells apart the refusals that share a code. Facts is a nil pointer to the type of their
// facts, nil where there are none.
type Cause struct {
	Code  Code
	Name  string
	Facts any
}

// In says whether err is refused for this cause, which an error from below is too that nobody has made
// a refusal of yet. A Cause is no error: errors.Is would find some and pass over others.
func (c Cause) In(err error) bool {
	r := Reason(err)
	return err != nil && r != nil && r.Cause == c
}

// A Refusal is a "no" as facts. Each dialect says it in its own words.
type Refusal struct {
	Code  Code  // mostly that of the cause
	Cause Cause // one of Causes
	Path  string
	Facts any   // what there is to say beside the path; the causes tell its type
	Err   error // for the log and errors.Is; never shown
}

// Error is for logs.
func (r *Refusal) Error() string {
	s := r.Cause.Name
	if r.Path != "" {
		s += " " + edit.ShownPath(r.Path)
	}
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	if f, ok := r.Facts.(PartFacts); ok {
		s += ": " + f.Err.Error()
	}
	return s
}

func (r *Refusal) Unwrap() error { return r.Err }

// Rule gives the rule of the policy that refused a path, for the operator alone; or "".
func (r *Refusal) Rule() string {
	if d, ok := errors.AsType[*policy.Denied](r.Err); ok {
		return d.Rule
	}
	return ""
}

// Class is the protected class that closes a path, as a caller may be told; or "".
func (r *Refusal) Class() string {
	if d, ok := errors.AsType[*policy.Denied](r.Err); ok {
		return d.Class
	}
	return ""
}

// Lift is the line of the configuration by which the operator takes a path out of its class; of a
// path that can't be written there, the key.
func (r *Refusal) Lift() string {
	const where = " in [tools.fs]"
	rule := glob.Literal(path.Clean(r.Path))
	_, err := glob.CompileRule(rule, nil)
	if err != nil || !utf8.ValidString(rule) || strings.ContainsFunc(rule, unicode.IsControl) {
		return "unprotected" + where
	}
	return "unprotected = [" + strconv.Quote(rule) + "]" + where
}

// is answers for the code; there may be no refusal.
func (r *Refusal) is(c Code) bool { return r != nil && r.Code == c }

// Refuse is a refusal for a cause that is no error from below.
func Refuse(c Cause, path string, facts any) error {
	return &Refusal{Code: c.Code, Cause: c, Path: path, Facts: facts}
}

// Causes are all that there are: internal/refusal has a row for each. The errors of the rooms below
// become refusals by finders, the first that fits: in the order of the causes.
var (
	Causes                 []Cause
	finders, systemFinders []func(error) *Refusal
)

// own is a cause that the engine itself names, without facts.
func own(code Code, name string) Cause { return added(Cause{Code: code, Name: name}) }

// With is a cause with facts of type F.
func With[F any](code Code, name string) Cause { return added(Cause{code, name, (*F)(nil)}) }

func added(c Cause) Cause {
	Causes = append(Causes, c)
	return c
}

// Typed is the cause of errors of one type, which are their own facts. A dialect declares what
// only it can meet.
func Typed[E error](code Code, name string) Cause {
	c := With[E](code, name)
	finders = append(finders, func(err error) *Refusal {
		e, ok := errors.AsType[E](err)
		if !ok {
			return nil
		}
		return &Refusal{code, c, pathOf(e), e, err}
	})
	return c
}

// named is the cause of errors that are this one.
func named(code Code, name string, is error) Cause {
	c := own(code, name)
	finders = append(finders, finder(c, is))
	return c
}

// system is the cause of what the system says, or the context. It comes last: others wrap these.
func system(code Code, name string, is ...error) Cause {
	c := own(code, name)
	systemFinders = append(systemFinders, finder(c, is...))
	return c
}

func finder(c Cause, is ...error) func(error) *Refusal {
	return func(err error) *Refusal {
		if !slices.ContainsFunc(is, func(e error) bool { return errors.Is(err, e) }) {
			return nil
		}
		return &Refusal{c.Code, c, pathOf(err), nil, err}
	}
}

// pathOf is the path that an error from below names.
func pathOf(err error) string {
	switch e := err.(type) {
	case *guardfs.BadPathError:
		return e.Path
	case *policy.OutOfScope:
		return e.Path
	case *policy.Denied:
		return e.Path
	case *policy.ChainError:
		return e.Path
	case *guardfs.SymlinkError:
		return e.Path
	case *guardfs.FixedError:
		return e.Path
	case *guardfs.NotRegularError:
		return e.Path
	case *guardfs.MissingParentError:
		return e.Path
	case *guardfs.TooLargeError:
		return e.Path
	case *guardfs.ConflictError:
		return e.Path
	}
	if e, ok := errors.AsType[*guardfs.PathError](err); ok {
		return e.Path
	}
	return ""
}

// Reason is an error as facts, nil when it is no refusal: the host is broken, or closed. An error
// that nobody knows is Unknown: a room that knows that the host is broken says so.
func Reason(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	for _, find := range finders {
		if r := find(err); r != nil {
			return r
		}
	}
	if errors.Is(err, ErrHost) || errors.Is(err, ErrClosed) {
		return nil
	}
	for _, find := range systemFinders {
		if r := find(err); r != nil {
			return r
		}
	}
	return &Refusal{Code: Unknown.Code, Cause: Unknown, Err: err}
}

// ErrHost marks trouble of our own: the host is broken, not the request. errors.Is finds it under
// any wrapping.
var ErrHost = errors.New("the host is broken")

// ErrClosed is the error of every call that comes after Shut, and of one that Shut met while it
// waited for its approver: it has changed nothing.
var ErrClosed = errors.New("closed: no calls are taken any more")

// A hostError is our own disk, log or store failing.
type hostError struct {
	doing string
	err   error
}

func (e *hostError) Error() string { return e.doing + ": " + e.err.Error() }

func (e *hostError) Unwrap() []error { return []error{ErrHost, e.err} }

// notSaved refuses a change whose pre-state could not be stored. Nothing was changed.
func notSaved(err error) error {
	if CutOff(err) {
		return err
	}
	return &Refusal{NotSaved.Code, NotSaved, "", err, &hostError{"storing the checkpoint", err}}
}

// The causes of refusals, with the types of their facts. Errors of the packages below are their own
// facts. Of two that fit, the first counts.
var (
	HalfMade  = With[HalfFacts](CodeIOError, "half_made")       // the code is that of what failed
	PartTaken = With[PartFacts](CodeIOError, "part_taken_back") // likewise
	BadName   = With[NameFacts](CodeBadRequest, "bad_name")

	TooManyCalls = With[CallFacts](CodeLimit, "too_many_calls")

	BadArgument = Typed[*args.Error](CodeBadRequest, "bad_argument") // by Decode, before anything else

	BadPath = Typed[*guardfs.BadPathError](CodeBadRequest, "bad_path")
	// where the call has to run can't be reached
	Unavailable   = named(CodeUnavailable, "unavailable", guardfs.ErrUnavailable)
	OutOfScope    = Typed[*policy.OutOfScope](CodePathDenied, "out_of_scope")
	Denied        = Typed[*policy.Denied](CodePathDenied, "denied")
	ChainFailed   = Typed[*policy.ChainError](CodePolicyError, "policies_failed")
	Pseudo        = named(CodePathDenied, "pseudo", guardfs.ErrPseudo)
	Fixed         = Typed[*guardfs.FixedError](CodePermissionDenied, "fixed")
	IsLink        = Typed[*guardfs.SymlinkError](CodeSymlinkRefused, "link")
	NotRegular    = Typed[*guardfs.NotRegularError](CodeNotRegularFile, "not_regular")
	ParentMissing = Typed[*guardfs.MissingParentError](CodeNotFound, "parent_missing")
	FileTooLarge  = Typed[*guardfs.TooLargeError](CodeTooLarge, "file_too_large")
	ChangedAtOnce = Typed[*guardfs.ConflictError](CodeConflict, "changed_at_once")
	Locked        = Typed[*guardfs.LockedError](CodeConflict, "locked")
	FleetGone     = Typed[*outage.Error](CodeIOError, "fleet_gone") // also where it is why a gateway is fenced
	Fenced        = named(CodeIOError, "fenced", fleet.ErrFenced)
	OtherView     = With[string](CodeConflict, "other_view") // the gateway that has begun a change
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
	NotStored    = With[Why](CodeUnsupported, "not_stored")
	WouldLose    = own(CodeUnsupported, "would_lose") // what is there now can't be stored
	NotInPlan    = With[PlanFacts](CodeBadRequest, "not_in_plan")
	Hidden       = With[int](CodePathDenied, "hidden")      // paths, which must not be named
	NoTrash      = With[error](CodeUnsupported, "no_trash") // why
	TooManyPaths = With[CountFacts](CodeLimit, "too_many_paths")
	RunLeaves    = With[[]Blocked](CodePathDenied, "run_leaves") // what a run changed and can't be
	RunStale     = With[[]Blocked](CodeConflict, "run_stale")    // the same, where others changed some of it meanwhile

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
	Busy          = system(CodePermissionDenied, "busy", syscall.EBUSY)
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

// PartFacts are of a restore that takes several changes, of which some were made before one failed.
type PartFacts struct {
	Err         error    // why that one failed; nothing of it was done
	Back        []string // what was taken back
	Checkpoints []string // of what was made
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

// CodeFacts is why what runs code is not changed. Lifts: a yes would have done, and nobody was
// there to give it; Why is what the approver said. Else the operator has it refused.
type CodeFacts struct {
	Lifts bool
	Why   string
}

// LineFacts are lines that were never shown. Encoding is the one to read them in; "" is the
// default.
type LineFacts struct {
	First, Last int
	Encoding    string
	ANSI        bool // they were shown without terminal codes
}

// SizeFacts are the size that a file would have, and the largest that is allowed.
type SizeFacts struct{ Size, Max int64 }

// GuardFacts say why a change is most likely not meant.
type GuardFacts struct {
	guard.Finding
	Edits bool // else a whole text
}

// CallFacts are the facts of a call that is one too many.
type CallFacts struct {
	Limit string        // the key of [tools.fs.limits]; "" where calls were left behind
	Most  int           // what it is set to
	Wait  time.Duration // after which the call would be taken; 0: not known
}

// String names the limit, for a sentence: "calls_per_second is 100".
func (f CallFacts) String() string {
	if f.Limit == "" {
		return fmt.Sprintf("%d calls wait for a file system that does not answer", f.Most)
	}
	return fmt.Sprintf("%s is %d", f.Limit, f.Most)
}

// StuckFacts are the facts of NoAnswer.
type StuckFacts struct{ Began bool } // a change may be half-way

// String tells the fate of a change, for a sentence.
func (f StuckFacts) String() string {
	if f.Began {
		return "cannot determine whether the change completes"
	}
	return "nothing was changed"
}

// CountFacts say how many paths a change may have, with the files that this process may open.
type CountFacts struct {
	Most int
	Dirs bool // Most counts the directories that the paths are in
}

// A Blocked is a path that stands against a plan, one that the plan leaves alone, or a directory
// that was to go and stays.
type Blocked struct {
	Path string
	Why  Why
	Diff string // from what the store knows to what is there
	Err  error  // of the removal; nil for one that was not tried
}

// A Why is the reason for a Blocked. The zero Why is none.
type Why = rewind.Why

// none is no reason: nothing is in the way.
var none Why

// Whys are all names that there are: a dialect has words for each.
var Whys []string

func newWhy(name string) Why { return known(Why{Name: name}) }

func known(w Why) Why {
	Whys = append(Whys, w.Name)
	return w
}

// The reasons, and what their facts are.
var (
	ChangedOutside  = known(rewind.ChangedOutside)
	ChangedByOthers = known(rewind.ChangedByOthers)
	LastPurged      = known(rewind.LastPurged)  // its last content was purged: can't be compared
	LastRemoved     = known(rewind.LastRemoved) // the same, by retention
	SameLines       = known(rewind.SameLines)   // later changes touch the lines that are to come back
	Occupied        = newWhy("occupied")

	NotSavable     = newWhy("not_savable") // what is there would be lost
	HeldOpen       = newWhy("held_open")   // another program has it open for writing
	MaybeHeldOpen  = newWhy("maybe_held_open")
	IsReadOnly     = newWhy("read_only") // string: the mode
	VolumeReadOnly = newWhy("volume_read_only")
	DirNotWritable = newWhy("directory_not_writable")
	Unreadable     = newWhy("unreadable")
	Unreachable    = newWhy("unreachable")  // a directory on the way is closed to us
	OutOfReach     = newWhy("out_of_reach") // by today's policy
	FileOnTheWay   = newWhy("file_on_the_way")
	LinkOnTheWay   = newWhy("link_on_the_way")
	OtherKind      = newWhy("other_kind")         // guardfs.Kind
	KindForDir     = newWhy("kind_for_directory") // guardfs.Kind, in the place of a directory

	WasDirOf  = newWhy("was_directory_of") // string: a path in it that is wanted too
	OnlyAlone = newWhy("only_alone")       // it is appended to in place, and other paths change with it

	NotInTrash    = newWhy("not_in_trash")
	NoneInTrash   = newWhy("not_in_trash_and_occupied")
	TrashUnopened = newWhy("trash_unopened")     // error
	ContentOf     = newWhy("content_not_stored") // Why: an Unstored, or a JustRemoved
	Unstored      = known(rewind.Unstored)       // string: checkpoint's word for it
	JustRemoved   = known(rewind.JustRemoved)    // since the plan was made

	InUse      = newWhy("in_use")      // something is in the directory
	Unlisted   = newWhy("unlisted")    // the system does not let us look into it
	NotListed  = newWhy("not_listed")  // error
	NotRemoved = newWhy("not_removed") // error

	SetID       = newWhy("set_id")       // what a run left, from here on
	SpecialFile = newWhy("special_file") // a FIFO, a socket or a device
	NoSuchName  = newWhy("no_such_name") // no path of ours: not UTF-8, or too long
	LayeredDir  = newWhy("layered_directory")
	ClosedClass = newWhy("closed_class")   // string: the protected class
	ShutDir     = newWhy("shut_directory") // string: the mode that the program gave it
	NotDone     = newWhy("not_done")       // error

	LinkNow      = newWhy("link_now") // a look at a path for a diff: a link leads elsewhere
	TooLargeNow  = newWhy("too_large_now")
	NotLookedAt  = newWhy("not_looked_at") // error
	NotRead      = newWhy("not_read")      // error
	WentTo       = newWhy("went_to")       // string: its new name
	CameFrom     = newWhy("came_from")     // string: its old name
	AfterUnknown = newWhy("after_unknown") // what it became is not in the store
	KindNow      = newWhy("kind_now")      // guardfs.Kind
)
