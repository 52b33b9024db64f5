package run

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// UpperName is the last element of Upper.Dir. It is one that package guardfs takes for ours, so that no call of an agent comes below it, and
// a thing below it can be given its name in the workspace by one rename.
const UpperName = ".moltis-trash-run"

// State describes the object at a name: its kind, mode, owner, times and attributes. The zero State is nothing.
type State struct {
	Exists              bool
	Mode                fs.FileMode // with the bits of the type
	UID, GID            uint32
	Size                int64 // of a file
	ModTime, ChangeTime time.Time
	Links, Ino          uint64
	Target              string            // of a link
	Xattrs              map[string][]byte // of a file or directory, without the kernel's marks
}

// Is says that something of that type is there.
func (s *State) Is(t fs.FileMode) bool { return s.Exists && s.Mode.Type() == t }

// IsFile says that a regular file is there.
func (s *State) IsFile() bool { return s.Is(0) }

// IsDir says that a directory is there.
func (s *State) IsDir() bool { return s.Is(fs.ModeDir) }

// SameMeta says that a and b have one mode, owner and attributes, and unless they are directories one time.
func (s *State) SameMeta(b *State) bool {
	return s.Mode == b.Mode && s.UID == b.UID && s.GID == b.GID && (s.IsDir() || s.ModTime.Equal(b.ModTime)) &&
		maps.EqualFunc(s.Xattrs, b.Xattrs, slices.Equal)
}

// A Doubt is why nobody knows whether a program that changed a name saw what is there now.
type Doubt uint8

// The doubts.
const (
	Sure    Doubt = iota
	Perhaps       // a directory on the way, or this name, may have another object than it had
	Changed       // others have changed it meanwhile
)

// A Why is the reason why a change can't be made at all.
type Why string

// The reasons. They go before all that policy says.
const (
	WhySetID   Why = "set_id"  // a file with a set-id bit, or a capability
	WhySpecial Why = "special" // a FIFO, a socket or a device
	WhyName    Why = "name"    // not valid UTF-8, or of more than 4,095 bytes
	WhyHidden  Why = "hidden"  // something is there that the program could not see
)

// A Change is one name that a run has left other than it was.
//
// A directory that is gone is one change, with all that was in it. A directory that is new is one change, and each name in it another
// one, after it. In all else the names of one directory are together, directories before what is in them.
type Change struct {
	Path          string // relative to the root; the upper layer has After at the same path
	Before, After State
	Doubt         Doubt
	Why           Why // "": it can be made

	marked bool // its object in the upper layer has marks of the kernel
}

// IsMark says that an attribute is the kernel's own for overlays. One that a program gave counts as such, since the next run would take it
// for one.
func IsMark(name string) bool {
	return strings.HasPrefix(name, "trusted.overlay.") || strings.HasPrefix(name, "user.overlay.")
}
