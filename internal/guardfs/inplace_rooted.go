//go:build !linux || rooted

package guardfs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
)

// Allowed asks the system whether this process may make and remove names in the entry's directory: a *PathError when not. A yes promises nothing: the answer
// only tells early of a change that would fail. Here nobody is asked.
func (p *Entry) Allowed() error { return nil }

// Fixed says why the file at p can't be exchanged for another one. Here nobody is asked, and no file is written in place.
func (p *Entry) Fixed() (*FixedError, error) { return nil, nil }

// Overwrite writes content into the file at p, in place. Here that is not done.
func (p *Entry) Overwrite(Precondition, []byte) (pub *Published, begun bool, err error) {
	return nil, false, p.failed("write", errors.ErrUnsupported)
}

// append is Append once p is judged.
func (p *Entry) append(own Identity, tail []byte) (a Appended, err error) {
	f, err := p.root.OpenFile(p.base, os.O_RDWR|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return a, p.failed("append to", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil { // some file systems tell only now
			err = p.failed("append to", cerr)
		}
	}()
	fi, err := f.Stat()
	if err != nil {
		return a, p.failed("stat", err)
	}
	switch info := infoOfFile(f, fi); {
	case info.ID != own || !fi.Mode().IsRegular():
		return a, p.conflict(Replaced)
	case info.Links > 1:
		return a, p.conflict(NameAdded)
	}
	err = p.root.do("write", func() error {
		a.Bytes, err = f.Write(tail)
		return err
	})
	if err != nil {
		return a, p.failed("append to", err)
	}
	end, err := f.Seek(0, io.SeekCurrent)
	if a.At = end - int64(len(tail)); err == nil {
		there := make([]byte, len(tail))
		n, rerr := f.ReadAt(there, max(a.At, 0))
		if err = rerr; (err == nil || err == io.EOF) && !bytes.Equal(there[:n], tail) {
			err = syscall.EIO // somebody has written over it already, or came in between
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		fi, err = f.Stat()
	}
	if err != nil {
		return a, p.failed("append to", err)
	}
	a.Info = infoOfFile(f, fi)
	return a, nil
}

// Writers asks whether another program has the file there open for writing. known is false: it can't be told here.
func (p *Entry) Writers() (open, known bool) { return false, false }
