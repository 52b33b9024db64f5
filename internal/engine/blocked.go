package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"syscall"

	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

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
	LastPurged      = known(rewind.LastPurged)  // its last content was purged: can't be compared
	LastRemoved     = known(rewind.LastRemoved) // the same, by retention
	SameLines       = known(rewind.SameLines)   // later changes touch the lines that are to come back
	Occupied        = newWhy("occupied")

	NotSavable     = newWhy("not_savable") // what is there would be lost
	IsReadOnly     = newWhy("read_only")   // string: the mode
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
	OnlyAlone   = newWhy("only_alone")       // it is appended to in place, and other paths change with it

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

// mayReplace refuses a target that a restore can't or must not change: WouldLose, ReadOnly,
// or a *guardfs.PathError where the system does not let us write.
func (r *restore) mayReplace(t *Target) error {
	if r.e.notBackedUp(t) {
		return Refuse(WouldLose, t.True, nil)
	}
	if err := r.e.changeable(t); err != nil {
		return err
	}
	dir := path.Dir(filepath.ToSlash(t.True))
	if t.place == nil && r.asked[dir] { // that is not there yet: once for all that go into it
		return nil
	}
	err := r.e.allowed(t.place, t.True)
	r.asked[dir] = err == nil
	return err
}

// unseen is why a restore with "skip" passes by a path that it can't look at; none for an error
// that stops it. place is nil where not even its directory could be opened.
func (r *restore) unseen(name string, err error, place *guardfs.Place) Why {
	if err == nil || r.o.OnConflict != OnConflictSkip {
		return none
	}
	_, denied := errors.AsType[*policy.Denied](err)
	_, link := errors.AsType[*guardfs.SymlinkError](err)
	_, kind := errors.AsType[*guardfs.NotRegularError](err)
	switch {
	case place != nil && place.Object().True != name:
		return LinkOnTheWay
	case errors.Is(err, syscall.ENOTDIR):
		return FileOnTheWay
	case denied:
		return OutOfReach
	case link && r.e.isLink(name):
		return OtherKind.Of(guardfs.KindSymlink)
	case link:
		return LinkOnTheWay
	case kind && place != nil:
		return OtherKind.Of(place.Object().Info.Kind)
	case forbidden(err) && place != nil:
		return Unreadable
	case forbidden(err):
		return Unreachable
	}
	return none
}

// blockedWhy turns an error of mayReplace into the reason why a path is skipped. It is none for any
// other error.
func blockedWhy(err error) Why {
	r, _ := errors.AsType[*Refusal](err)
	switch {
	case WouldLose.In(err):
		return NotSavable
	case ReadOnly.In(err):
		return IsReadOnly.Of(r.Facts)
	case errors.Is(err, syscall.EROFS):
		return VolumeReadOnly
	case errors.Is(err, fs.ErrPermission):
		return DirNotWritable
	}
	return none
}

// allowed asks the system early whether the directory of a path can be written, or the nearest one
// above that exists. place may be nil.
func (e *Engine) allowed(place *guardfs.Place, name string) error {
	if place == nil {
		p, err := e.fs.PlaceLink(name)
		if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
			p, err = e.fs.PlaceLink(gone.Missing)
		}
		if err != nil {
			return nil //nolint:nilerr // the chain meets it again, and says so
		}
		defer p.Close()
		place = p
	}
	err := place.Allowed()
	if pe, ok := errors.AsType[*guardfs.PathError](err); ok {
		return &guardfs.PathError{Op: pe.Op, Path: name, Err: pe.Err}
	}
	return err
}

// notBackedUp says that the change would replace content that the store can't or must not hold.
func (e *Engine) notBackedUp(t *Target) bool {
	b := t.Before
	if !b.Exists || b.Info.Kind != guardfs.KindFile || e.storable(t.True, b.Info.Size) {
		return false
	}
	return t.After.Kind != guardfs.KindFile || t.After.From != nil || !bytes.Equal(t.After.Content, b.Content)
}
