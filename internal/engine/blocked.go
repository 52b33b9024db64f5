package engine

import "moltisfs/internal/engine/rewind"

// A Blocked is a path that stands against a plan, one that the plan leaves alone, or a directory
// that was to go and stays.
type Blocked struct {
	Path  string
	Why   Why
	Diff  string // from what the store knows to what is there
	Stays bool   // no restore removes what is in the way: neither merge nor force helps
	Err   error  // of the removal; nil for one that was not tried
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
	LastPurged      = known(rewind.LastPurged)  // what it became last was purged: nobody can tell whether it is that
	LastRemoved     = known(rewind.LastRemoved) // the same, by retention
	SameLines       = known(rewind.SameLines)   // later changes touch the lines that are to come back
	Occupied        = newWhy("occupied")

	NotSavable     = newWhy("not_savable") // what is there would be lost
	IsReadOnly     = newWhy("read_only")   // string: the mode
	IsHardLinked   = newWhy("hard_linked") // int: all names
	VolumeReadOnly = newWhy("volume_read_only")
	DirNotWritable = newWhy("directory_not_writable")
	Unreadable     = newWhy("unreadable")
	Unreachable    = newWhy("unreachable")  // a directory on the way is closed to us
	OutOfReach     = newWhy("out_of_reach") // by today's policy
	FileOnTheWay   = newWhy("file_on_the_way")
	LinkOnTheWay   = newWhy("link_on_the_way")
	OtherKind      = newWhy("other_kind")         // guardfs.Kind
	KindForDir     = newWhy("kind_for_directory") // guardfs.Kind, in the place of a directory

	WasDirOf    = newWhy("was_directory_of") // string: a path in it that is wanted too
	WasFile     = newWhy("was_file")         // string: the path above it that is wanted as a file
	HoldsOthers = newWhy("holds_others")     // the directory holds what the plan does not remove
	HoldsMoved  = newWhy("holds_moved")      // … what the plan moves as a whole
	MovedWhole  = newWhy("moved_whole")      // other changes in it belong to the plan

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

	LinkNow      = newWhy("link_now") // a look at a path for a diff: a link leads elsewhere
	TooLargeNow  = newWhy("too_large_now")
	NotLookedAt  = newWhy("not_looked_at") // error
	NotRead      = newWhy("not_read")      // error
	AfterUnknown = newWhy("after_unknown") // what it became is not in the store
	KindNow      = newWhy("kind_now")      // guardfs.Kind
)
