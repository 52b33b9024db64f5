// Package run has programs run in an overlay over the workspace: they see the whole machine read-only, and what they change in the
// workspace is kept apart in an upper layer, for its maker to look at and to apply.
//
// A Run is a directory below Data/runs: the upper layer, the kernel's work directory, a lock and a record. New makes one, Open takes one
// that was left behind. Start runs a program in namespaces of its own; a Run has one program at a time, and may have several one after
// another. A program ends with the process that started it, however that ends, and so does all that it has started.
//
// Linux has all of it; elsewhere every function answers an *Error.
package run

import (
	"io"
	"syscall"
	"time"
)

// Options say where a program runs and what it may reach. All paths are absolute, real and clean.
type Options struct {
	Root    string   // the workspace
	Data    string   // the data directory, which is closed to the program; runs are below Data/runs
	Hidden  []string // names below the root, relative to it, that are not there for the program
	Conceal []string // files and directories outside of the root that the program finds empty
	Write   []string // directories outside of the root that are writable and outside of the history
	Network bool
	Limits  Limits
}

// Limits end a program with all that it has started; 0 is no limit.
type Limits struct {
	Time      time.Duration
	Disk      int64 // bytes of the upper layer and of /tmp, which are looked at now and then; and of each file
	Processes int   // which are counted now and then
}

// A Limit is the limit that ended a program.
type Limit string

// The limits.
const (
	LimitTime      Limit = "time"
	LimitDisk      Limit = "disk"
	LimitProcesses Limit = "processes"
)

// A Program is a command that Start runs. Stdin, Stdout and Stderr are as in os/exec. Its /tmp is empty at the start.
type Program struct {
	Args           []string // Args[0] is looked up in the PATH of Env
	Env            []string
	Dir            string // absolute; the root where it is empty
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Terminal gives the program a terminal of its own, with job control. Stdin is copied into it, and what it shows to
	// Stdout; Stderr is not used. Where Stdin is a terminal it is in raw mode meanwhile, and has its size copied.
	Terminal bool
}

// Status says how a program ended.
type Status struct {
	Code   int            // its exit status; 128 and the signal where one ended it, 126 or 127 where it was not started
	Signal syscall.Signal // 0 where none ended it
	Limit  Limit          // the limit that ended it, or ""
	Err    string         // why it was not started, where Code is 126 or 127
}

// Upper is the upper layer of a run, for those who make changes of it. A file of the lower layer that has several names becomes one of its own
// under the name by which it is changed; the program sees the old content by the others, and so it stays.
type Upper struct {
	Root  string    // the lower layer
	Dir   string    // the upper layer
	User  bool      // the kernel's marks are user.overlay.*, and trusted.overlay.* where it is not set
	Stamp time.Time // who changed something in the root since has a ctime of at least this; zero: nobody can tell
	Laid  []string  // names relative to Root that are whited out by us
}

// Info is a run as List has it.
type Info struct {
	ID      string    `json:"id"`
	Root    string    `json:"root"`
	Command string    `json:"command"` // the last program
	Began   time.Time `json:"began"`
	Torn    bool      `json:"torn,omitempty"` // see Run.Torn
}

// errDamaged: nobody knows any more what the run is over.
var errDamaged = &Error{Why: "the record of the run is damaged", Do: "drop it"}

// An Error says why a run can't be had, and what to change.
type Error struct {
	Why string // a clause
	Do  string // a clause: what to change, or ""
	Err error  // of the system, or nil
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Why + ": " + e.Err.Error()
	}
	return e.Why
}

func (e *Error) Unwrap() error { return e.Err }

// Hint says what to change.
func (e *Error) Hint() string { return e.Do }
