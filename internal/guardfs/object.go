package guardfs

import (
	"io/fs"
	"strconv"
	"time"
)

// Kind is the kind of an object, as far as this package needs to know.
type Kind uint8

// The kinds. KindOther is a fifo, a socket or a device: never opened.
const (
	KindAbsent Kind = iota
	KindFile
	KindDir
	KindSymlink
	KindOther
)

// String is the word for k in answers and errors.
func (k Kind) String() string {
	switch k {
	case KindAbsent:
		return "absent"
	case KindFile:
		return "file"
	case KindDir:
		return "directory"
	case KindSymlink:
		return "symlink"
	}
	return "special file"
}

// Identity names an object for as long as it lives: device, inode number and, where the file system
// tells, the time of birth, because inode numbers are reused.
type Identity struct {
	Dev, Ino uint64
	Birth    int64 // nanoseconds since 1970, 0 where unknown
}

// String is "dev:ino", in decimal.
func (id Identity) String() string {
	return strconv.FormatUint(id.Dev, 10) + ":" + strconv.FormatUint(id.Ino, 10)
}

// Lasting is "ino:birth", in decimal: the part of an identity that outlives a restart of the system, where devices may be numbered anew. It
// tells objects of one file system apart.
func (id Identity) Lasting() string {
	return strconv.FormatUint(id.Ino, 10) + ":" + strconv.FormatInt(id.Birth, 10)
}

// Info is the answer of stat about an object. The zero Info is that of an absent one.
type Info struct {
	Kind                Kind
	Size                int64       // bytes
	Mode                fs.FileMode // permission bits and fs.ModeSetuid, ModeSetgid, ModeSticky; no type bits
	ModTime, ChangeTime time.Time
	ID                  Identity
	Links               uint64 // hard links
	UID, GID            uint32
	AccessTime          time.Time // zero where the system does not tell

	special string // the word for KindOther
}

// word is the word for a thing that is no regular file, as NotRegularError has it.
func (i *Info) word() string {
	if i.Kind == KindOther {
		return i.special
	}
	return i.Kind.String()
}

// unchanged reports whether nothing that a foreign writer changes differs between two looks at an object.
func (i *Info) unchanged(was *Info) bool {
	return i.ID == was.ID && i.Size == was.Size && i.Mode == was.Mode &&
		i.ModTime.Equal(was.ModTime) && i.ChangeTime.Equal(was.ChangeTime)
}

// Object is the object that a path leads to.
type Object struct {
	Spelled string // as the caller wrote it
	// True is the kernel's own name of the object: absolute, without links, "." or "..". For an absent object it
	// is the true name of the deepest directory that exists, followed by the rest of the path.
	True string
	// Also are the other true names of the object, which it has where its file system is mounted more
	// than once. An object that is denied by one of them is denied.
	Also []string
	Hops []Hop // what the way there passes and True does not show, in order; nil when that is nothing
	Info Info  // Kind is KindAbsent when nothing is there
}

// Hop is something that a path passes: a symlink that is followed, or a directory that a ".." goes up from,
// which need not exist. A directory that another hop shows to be there is none: the directories above the
// deepest one of a chain of "..", and that of a link whose text goes up from it.
type Hop struct {
	Name string   // true name
	Also []string // as in Object
	Left bool     // a ".." goes up from it, so that what it is would show in the answer
}

// Access is an act of a caller on an object.
type Access uint8

// The accesses, from harmless to not. Look is to stat, to list or to name in a result; Walk is to search
// what lies below a directory, and to name no more of it than the verdicts on directories show.
const (
	Look Access = iota
	Walk
	Read
	Create
	Modify
	Remove
)

// String is the verb for a, as it stands in errors.
func (a Access) String() string {
	switch a {
	case Look:
		return "look"
	case Walk:
		return "walk"
	case Read:
		return "read"
	case Create:
		return "create"
	case Modify:
		return "modify"
	case Remove:
		return "remove"
	}
	return "access(" + strconv.Itoa(int(a)) + ")"
}

// absent is the access that a comes to where nothing is.
func absent(a Access) Access {
	if a > Read {
		return Create
	}
	return a
}

// Judge decides on an access. It is asked before any byte or name leaves this package, and for absent
// objects too, so that a denied path answers the same whether or not it exists. Its errors are handed to the
// caller unchanged. A Judge MUST be safe for concurrent use and MUST NOT use the FS that asks it.
type Judge interface {
	Judge(o Object, a Access) error
	// Dir gives the verdict for the entries of one directory, by true name and Object.Also, so that a
	// walk pays per directory and not per entry. It is not asked about mount points.
	Dir(canonical string, also ...string) DirVerdict
}

// DirVerdict says which entries of a directory may be seen. The zero value hides all of them.
type DirVerdict struct {
	// All: no rule can touch any entry of this directory or below it, but for names that are Reserved and
	// what is on other mounts; Entry is not asked.
	All bool
	// Hides, with All, are the names that are refused here all the same. Below says it of the directories
	// in this one.
	Hides func(name string) bool
	// Entry says whether the entry may be named, and entered if it is a directory.
	Entry func(name string, k Kind) bool
	// Held says whether the Judge may refuse a file all the same whose name Entry shows, as for what it is, and must be asked.
	// nil: yes.
	Held func(i *Info) bool
	// Way says of a name that Entry hides whether something may be seen below, should it be a directory: then that may be entered, and
	// still not be named. nil: no.
	Way func(name string) bool
	// Below, where it is ok, is the verdict of Dir on a directory in it that has no other names. It takes no longer in the
	// depth of a tree, where Dir goes through the whole path.
	Below func(name string) (v DirVerdict, ok bool)
}

// allows applies the verdict to one entry.
func (v *DirVerdict) allows(name string, k Kind) bool {
	return v.All && !Reserved(name) && (v.Hides == nil || !v.Hides(name)) ||
		(v.Entry != nil && v.Entry(name, k))
}

// all says that the verdict is the same for all below.
func (v *DirVerdict) all() bool { return v.All && v.Hides == nil }

// held says whether the Judge must be asked about a file that allows lets be seen.
func (v *DirVerdict) held(i *Info) bool { return !v.All && (v.Held == nil || v.Held(i)) }

// leads is DirVerdict.Way of an entry.
func (v *DirVerdict) leads(name string, k Kind) bool {
	return k == KindDir && v.Way != nil && v.Way(name)
}

// And shows the entries that both verdicts show.
func (v DirVerdict) And(w DirVerdict) DirVerdict {
	switch {
	case v.all():
		return w
	case w.all():
		return v
	}
	seen := func(v *DirVerdict, name string) bool { // as a directory
		return v.allows(name, KindDir) || v.leads(name, KindDir)
	}
	both := DirVerdict{
		Entry: func(name string, k Kind) bool { return v.allows(name, k) && w.allows(name, k) },
		Held:  func(i *Info) bool { return v.held(i) || w.held(i) },
		Way:   func(name string) bool { return seen(&v, name) && seen(&w, name) },
	}
	if v.Below != nil && w.Below != nil {
		both.Below = func(name string) (DirVerdict, bool) {
			a, ok := v.Below(name)
			if !ok {
				return a, false
			}
			b, ok := w.Below(name)
			return a.And(b), ok
		}
	}
	return both
}

// inside is the verdict for the directory called name, or full.
func (v *DirVerdict) inside(j Judge, name, full string, others ...string) DirVerdict {
	if v.Below != nil && len(others) == 0 {
		if in, ok := v.Below(name); ok {
			return in
		}
	}
	return j.Dir(full, others...)
}

// DirEntry is one name in a directory.
type DirEntry struct {
	Name string
	Kind Kind // of the entry itself: links are not followed
	Way  bool // a directory that may be entered and not named; counted as denied. From ListWays only
	Ino  uint64
}

// Options are the arguments of New.
type Options struct {
	Judge Judge // required
	walk  bool  // for tests: openat2 is not used
	// Journal has the names on record that are given beside the agent's files; nil: nobody
	// removes them after a kill.
	Journal *Journal
	// Underway says of the tag of an operation that its temporary names are ours for a moment; nil: none is.
	Underway func(tag string) bool
	// Calls are the system calls on the tree, on Linux only; nil: those of this machine's kernel.
	Calls Calls
	// Fault is asked before every system call on the tree (elsewhere than on Linux: before those of
	// an Entry), and the call comes to its answer; nil: the call goes ahead. It is for
	// tests of what is built on this package, from any goroutine.
	Fault func(op string) *Fault
}

// Fault is the failure of a system call in a test.
type Fault struct {
	Err   error
	After bool // the call takes effect and then reports Err, as remote file systems do
	Short bool // a write stores half of what it was given
}

// Metadata are the facts that an exchange of content must not lose.
type Metadata struct {
	Mode     fs.FileMode // as Info.Mode
	UID, GID uint32
	ModTime  time.Time
	Xattrs   map[string][]byte // all extended attributes that could be read, the ACL among them; nil when there are none
}

// Before is an object's content and metadata, read through one descriptor: the pre-image of a mutation.
type Before struct {
	Exists  bool
	Info    Info
	Content []byte // nil when absent; of a symlink: its target
	Hash    string // SHA-256 of Content in lower-case hex, "" when absent
	Meta    Metadata
}

// loading says how a file of more than max bytes is loaded.
type loading int

const (
	refuseLarger loading = iota
	peekLarger           // it is described only
	onlyHash             // and so is any file, with its hash
)

// unread says that a file of size bytes is described, and its content left out.
func (l loading) unread(size, max int64) bool { return l == onlyHash || l == peekLarger && size > max }

// Published is the outcome of Publish.
type Published struct {
	Info        Info         // of the new file
	LinksBroken int          // other names of the replaced file, which keep the old content
	Dropped     []string     // metadata that was not carried over: "setuid", "setgid", "sticky", "mode", "capabilities", "owner", "group", "acl", "xattr:NAME"
	True        string       // true name of the published file
	Displaced   Precondition // the object that came out of a Publish, as it is at the temporary name
}
