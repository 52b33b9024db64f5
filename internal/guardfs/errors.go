package guardfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// FixedError: the object at Path can't be exchanged, moved or removed, or nothing can be made there. Err is the system's word for it.
type FixedError struct {
	Path     string
	Dir      string // its directory, where this process may not write to that; "": Path is a mount point
	Sticky   bool   // Dir is a sticky one, and others own it and what is at Path
	Writable bool   // the file at Path may be written in place: see Entry.Overwrite
	Unkept   bool   // for the caller: it is not, since what is there, or what comes, can't be kept
	Err      error
}

func (e *FixedError) Error() string {
	if e.Dir == "" {
		return strconv.Quote(e.Path) + " is a mount point: " + e.Err.Error()
	}
	return "names in " + strconv.Quote(e.Dir) + " can't be changed: " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *FixedError) Unwrap() error { return e.Err }

// ErrMount: the entry is on another mount and the caller asked not to cross.
var ErrMount = errors.New("on another file system")

// ErrPseudo: the object lives on a kernel interface (procfs, sysfs, cgroup, …), which holds no files.
var ErrPseudo = errors.New("kernel interface, not a file")

// ErrUnavailable: the worker that makes the system calls elsewhere is gone, or gave an impossible answer. Nobody knows whether the call
// was made.
var ErrUnavailable = errors.New("the sandbox is not available")

// PathError is an operation that the system refused. Err is an errno, which also answers to fs.ErrNotExist,
// fs.ErrExist and fs.ErrPermission, or one of the sentinels of this package.
type PathError struct {
	Op, Path string
	Err      error
}

func (e *PathError) Error() string { return e.Op + " " + strconv.Quote(e.Path) + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *PathError) Unwrap() error { return e.Err }

// MaxPath is how many bytes a path may have: PATH_MAX of Linux without the zero behind it. Other systems allow less; then their own error comes.
const MaxPath = 4095

// BadPathError is a path that could not be the name of anything, refused before the file system was asked.
type BadPathError struct{ Path, Why string }

func (e *BadPathError) Error() string { return fmt.Sprintf("bad path %.1000q: %s", e.Path, e.Why) }

// SymlinkError: the last component of a path that was to be changed is a symbolic link. Target is as stored.
type SymlinkError struct{ Path, Target string }

func (e *SymlinkError) Error() string {
	return strconv.Quote(e.Path) + " is a symbolic link to " + strconv.Quote(e.Target)
}

// NotRegularError: the operation is for regular files and this is none. Kind is "directory", "fifo", "socket",
// "device" or "symlink".
type NotRegularError struct{ Path, Kind string }

func (e *NotRegularError) Error() string {
	return strconv.Quote(e.Path) + " is a " + e.Kind + ", not a regular file"
}

// MissingParentError: a directory on the way to Path does not exist. Missing is the first such one, True the name that Path would have.
// It answers to fs.ErrNotExist.
type MissingParentError struct{ Path, Missing, True string }

func (e *MissingParentError) Error() string {
	return "directory " + strconv.Quote(e.Missing) + " of " + strconv.Quote(e.Path) + " does not exist"
}

// Unwrap makes errors.Is(err, fs.ErrNotExist) true.
func (e *MissingParentError) Unwrap() error { return fs.ErrNotExist }

// Interference is a change that somebody else made between the check and the use.
type Interference string

// All that there are, but for NowA.
const (
	Appeared          Interference = "appeared"
	WasRemoved        Interference = "removed"
	Replaced          Interference = "replaced"
	ContentChanged    Interference = "content_changed"
	ModeChanged       Interference = "mode_changed"
	OwnerChanged      Interference = "owner_changed"
	AttributesChanged Interference = "attributes_changed"
	ChangedAgain      Interference = "changed_again" // while it was put back
	LeadsElsewhere    Interference = "leads_elsewhere"
	NameAdded         Interference = "name_added" // a hard link
	WasLink           Interference = "was_link"   // when it was looked at
	LinkInTurns       Interference = "link_in_turns"
	LinkInTheWay      Interference = "link_in_the_way" // Fact: where it leads
	OpenedInTurns     Interference = "replaced_in_turns"
	DirRemoved        Interference = "directory_removed"
	DirMoved          Interference = "directory_moved"
	DirRefused        Interference = "directory_moved_out" // to a place that the Judge refuses
	DirNameless       Interference = "directory_nameless"
	DirInTurns        Interference = "directory_in_turns" // made and removed
	TempSwapped       Interference = "temporary_swapped"
	TempRemoved       Interference = "temporary_removed"
	PublishedToo      Interference = "published_too"            // at the same moment
	PublishedOrSwap   Interference = "published_too_or_swapped" // or the temporary file was swapped
	NotRemoved        Interference = "not_removed"              // Err: why
	BeingTakenBack    Interference = "being_taken_back"         // a change that was cut off half-way
)

// NowA says that another kind of object is there now.
func NowA(kind string) Interference { return nowA + Interference(kind) }

const nowA = "now_a "

// Kind is the kind that NowA was given.
func (m Interference) Kind() (kind string, is bool) { return strings.CutPrefix(string(m), nowA) }

// ConflictError: somebody else changed the object between the check and the use. Nothing of theirs was lost;
// where something of theirs had to be kept under another name, Left says where.
type ConflictError struct {
	Path string
	Why  Interference
	Fact string // what there is to say beside; "" for most
	Left string // the name of what could not be put back, if there is such a thing
	Err  error  // why it could not be put back, compared or removed
}

func (e *ConflictError) Error() string {
	text := strconv.Quote(e.Path) + " changed meanwhile: " + string(e.Why)
	for _, more := range []string{e.Fact, e.Left} {
		if more != "" {
			text += " " + strconv.Quote(more)
		}
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// RecordError: a name could not be put on record before it was given, so it was not given. It is
// trouble of our own, and does not unwrap: its cause says nothing of the agent's files.
type RecordError struct{ Err error }

func (e *RecordError) Error() string { return "recording a temporary file: " + e.Err.Error() }

// TooLargeError: the object holds Size bytes and the caller takes no more than Max.
type TooLargeError struct {
	Path      string
	Size, Max int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%q is %d bytes, over the limit of %d", e.Path, e.Size, e.Max)
}

// LockedError: the lock was not free before the deadline. Holder says who has it, "" when unknown.
// It answers to the context's error as well.
type LockedError struct {
	Key, Holder string
	Err         error
}

func (e *LockedError) Error() string {
	if e.Holder == "" {
		return "locked by another call: " + e.Err.Error()
	}
	return "locked by " + e.Holder + ": " + e.Err.Error()
}

// Unwrap gives the context's error.
func (e *LockedError) Unwrap() error { return e.Err }
