//go:build !linux || rooted

package guardfs

import (
	"bytes"
	"context"
	"io"
	"os"
	"syscall"
)

// Append writes tail to the end of the file there, in place, if that is still the one called own
// and has no other name. Not even our own bytes are ever taken away: on an error Appended says how
// many are there. It syncs the file, and with an empty tail does no more.
func (p *Place) Append(own Identity, tail []byte) (a Appended, err error) {
	if err := p.look(Modify); err != nil {
		return a, err
	}
	if err := p.still(); err != nil {
		return a, err
	}
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

// Peek is Load, but a file of more than most bytes is not read: its Before has neither Content nor
// Hash. before is what Load or Peek gave the caller, or nil, and the answer where nothing about it
// has changed.
func (p *Place) Peek(before *Before, most int64) (*Before, error) {
	return p.peek(before, most, false)
}

// Sum is Load of a file of any size, without Content: it is read only for its hash.
func (p *Place) Sum() (*Before, error) { return p.peek(nil, -1, true) }

func (p *Place) peek(before *Before, most int64, hashed bool) (*Before, error) {
	if err := p.lookAgain(); err != nil {
		return nil, err
	}
	info := p.object.Info
	if info.Kind != KindFile || info.Size <= most {
		return p.Load(most)
	}
	if before != nil && before.Info.ID == info.ID && before.Info.Size == info.Size &&
		before.Info.Mode == info.Mode && before.Info.ModTime.Equal(info.ModTime) &&
		before.Info.ChangeTime.Equal(info.ChangeTime) {
		return before, nil
	}
	fi, err := p.root.Lstat(p.base)
	if err != nil {
		return nil, p.failed("stat", err)
	}
	f, err := openFile(p.root, p.base, p.object.Spelled, fi)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	b := newBefore(f.Info(), nil, xattrs(f.file))
	if b.Hash = ""; hashed {
		b.Hash, err = stream(context.Background(), f, b.Info.Size, func([]byte) error { return nil })
	}
	return b, err
}
