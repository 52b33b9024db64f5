// Package state keeps small files that several processes share: questions and their answers, tokens, what sessions have read.
// [Files] is a directory of them. [Dir] has them in a directory of the file system, for the processes of one machine. The package
// internal/fleet has them in a database, for the machines of a fleet.
//
// The package statetest has the tests that each Files must pass.
package state

import (
	"context"
	"io"
	"time"
)

// Files are the files of one directory, by names that are the caller's own. A reader sees a file as it was before a change or as it is
// after it, never a mixture. The error of a file that is not there is fs.ErrNotExist; that of files that can't be reached now, but may be later, is
// an *outage.Error. Files are safe for concurrent use, also by several processes.
type Files interface {
	// Open opens a file for reading. Of a file of several pieces the later ones may be fetched as they are asked for: fs.ErrNotExist
	// in the middle says that the file has been removed or replaced meanwhile.
	Open(name string) (io.ReadCloser, error)
	// Since reads what came to a file behind m, and moves m there. With anew it may be another file than that of m, or it is the first look: then
	// tail has all of it, which is nothing where no file is.
	Since(name string, m *Mark) (tail []byte, anew bool, err error)
	// List gives the names of the files, in any order.
	List() ([]string, error)
	// Look gives the Info of each file. It is zero for a file that is not there, or is not ours.
	Look(names ...string) ([]Info, error)

	// Append puts one piece at the end of a file, which it makes if necessary. Pieces of several writers do not mix.
	Append(name string, piece []byte) error
	// Replace puts a file in the place of an old one, if there is one.
	Replace(name string, content []byte) error
	// Touch sets the time of a file to now, and makes an empty one where there is none.
	Touch(name string) error
	// Remove removes a file.
	Remove(name string) error

	// Hold makes a file of these pieces and holds it until release, or until the process dies, in whatever way. Where there is a file of
	// that name already the error is fs.ErrExist.
	Hold(name string, pieces ...[]byte) (release func(), err error)
	// Held reports for each name whether somebody holds the file. Nobody holds a file that is not there.
	Held(names ...string) ([]bool, error)
	// Update runs do alone: nobody else runs an Update of the same lock meanwhile. do works on the Files that it is given. After an error
	// what it has changed may be there or not. It must not call Update.
	Update(ctx context.Context, lock string, do func(Files) error) error
	// Changes gives a channel that gets something after a file whose name begins with prefix was held, released or replaced. It may get
	// something without a cause, and a loss of the connection may delay it: look now and then all the same. It is nil where the files tell of
	// nothing.
	Changes(prefix string) (changed <-chan struct{}, stop func())
}

// A Mark is a place in a file that others append to: how far somebody has read it. The zero Mark is its beginning.
type Mark struct {
	Bytes int64 // of the file up to the mark
	Of    any   // which file it is, as the Files knows it
}

// Info is what is known of a file without reading it.
type Info struct {
	Size int64     // in bytes
	At   time.Time // of the last change; zero: there is no such file
}
