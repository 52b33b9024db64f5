// Package tree is the view that a search has of a tree of files: handles of directories and files. FS makes
// one of any fs.FS; for another kind of tree implement Dir. The package reads on request and decides
// nothing.
package tree

import (
	"errors"
	"io"
	"strings"
	"time"
)

// Kind is the type of a directory entry, links not followed.
type Kind uint8

// The kinds. KindOther is a fifo, a socket or a device: never opened.
const (
	KindOther Kind = iota
	KindFile
	KindDir
	KindLink
)

// Entry is one name in a directory.
type Entry struct {
	Name string
	Kind Kind
	// Way says that policy hides the directory, but not everything below it. It is entered and counted once
	// as denied. Its entries show in no count except the one of matches.
	Way bool
}

// Info is the part of stat that a search needs.
type Info struct {
	Kind       Kind
	Size       int64
	ModTime    time.Time
	ChangeTime time.Time // zero where unknown
	Ino        uint64    // 0 where unknown
	Links      uint64    // names of the object; 0 where unknown
}

// Dir is a directory handle. Every method works relative to the handle, and names are single
// components. A Dir MUST be safe for concurrent use: several workers open its files at once.
//
// Errors answer to fs.ErrNotExist and fs.ErrPermission as usual. An entry that policy forbids answers to
// ErrDenied.
type Dir interface {
	// True is the canonical name of the directory, the prefix of every path in a result.
	True() string
	// List appends all entries to buf[:0], without "." and "..". denied counts the entries that policy
	// hides, including those with Way. With an error it also returns the entries read so far.
	List(buf []Entry) (entries []Entry, denied int, err error)
	// Stat does not follow a link.
	Stat(name string) (Info, error)
	// OpenDir does not follow a link; ErrMount when the entry is on another mount and crossMounts
	// is false.
	OpenDir(name string, crossMounts bool) (Dir, error)
	// OpenFile opens a file that List gave, never through a link, and never blocks on an object that took
	// its place.
	OpenFile(name string) (File, error)
	// ReadSmall reads a whole regular file of at most max bytes, never through a link.
	ReadSmall(name string, max int64) ([]byte, error)
	// Parent is the directory above; io.EOF at the top.
	Parent() (Dir, error)
	Close() error
}

// File is an open regular file. ReadAt MUST be safe for concurrent use.
type File interface {
	io.Reader
	io.ReaderAt
	// Info gives the stat of the moment when the file was opened.
	Info() Info
	Close() error
}

// Errors of a Dir.
var (
	ErrMount  = errors.New("on another file system")
	ErrDenied = errors.New("denied by policy")
)

// OpenBelow opens directory rel by handles from root. rel is not "" and ends in a slash. It goes
// step by step, never by path: a directory on the way may have been replaced by a link.
func OpenBelow(root Dir, rel string, crossMounts bool) (Dir, error) {
	cur, last := root, io.Closer(nil) // root is the caller's to close
	for part := range strings.SplitSeq(strings.TrimSuffix(rel, "/"), "/") {
		next, err := cur.OpenDir(part, crossMounts)
		if last != nil {
			last.Close()
		}
		if err != nil {
			return nil, err
		}
		cur, last = next, next
	}
	return cur, nil
}
