package guardfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"syscall"
)

// Precondition is the object that must be at a name when it is changed. The zero Precondition requires that the name is free.
type Precondition struct {
	ID Identity // which object
	// Like, where it has a hash, is the state that the object must have as well: kind, mode, owner and
	// content.
	Like *Before
}

// Found is the precondition that b, which Load gave, is found again.
func Found(b *Before) Precondition {
	if b == nil || !b.Exists {
		return Precondition{}
	}
	return Precondition{b.Info.ID, b}
}

func (e Precondition) nothing() bool { return e == Precondition{} }

// content is Like, if it tells of the content, else nil.
func (e Precondition) content() *Before {
	if e.Like != nil && e.Like.Hash == "" {
		return nil
	}
	return e.Like
}

// NewObject is an object for Stage to make. The zero NewObject is none.
type NewObject struct {
	Kind    Kind
	Content []byte // of a file; of a link: its target
	// Source has the content of a file in place of Content: its first Size bytes. It has to stay as
	// it was when it was opened.
	Source *File
	Size   int64
	// Like has it carry the metadata of that object, but for set-id bits and capabilities of a file, less what Staged.Dropped will say. Without Like and
	// Meta a new file has mode 0666 less the umask, or the directory's default ACL.
	Like *Before
	Meta *Metadata   // carry exactly this, modification time included; for a restore. Like is ignored
	Mode fs.FileMode // of a new file or directory without Like and Meta, less the umask; 0: 0o666 or 0o777
	Sync bool        // Sync will be called
	// Open keeps a file open until Close, and nameless until Publish where the system can do that. The entry that it is
	// staged for has to be the one that it is exchanged with.
	Open bool
}

// metadata is the metadata that a new object is to carry; nil: the system's own.
func (what *NewObject) metadata() *Metadata {
	if what.Meta == nil && what.Like != nil && what.Like.Exists {
		return &what.Like.Meta
	}
	return what.Meta
}

// Staged is the object that Stage has made, or, for none, the one that was found under the name.
type Staged struct {
	Info    Info
	Meta    Metadata // that the system gave a new object to which nothing was carried over
	Dropped []string // as in Published
	Hash    string   // of what came from NewObject.Source
}

// Precondition is the precondition that the staged object is found again.
func (m *Staged) Precondition() Precondition {
	if m.Info.Kind == KindAbsent {
		return Precondition{}
	}
	return Precondition{m.Info.ID, &Before{Exists: true, Info: m.Info}}
}

// staged is the object that Stage left at p, as it was left; nil: there is none.
func (p *Entry) staged() *Info {
	if p.temp == nil {
		return nil
	}
	return p.temp.made
}

// Publish exchanges what the names p and temp have: out has to be at p, and in at temp. It looks before and
// after. Where something else came out the answer is a *ConflictError, after one rename
// back if what came in is still there. After an error the names may have been exchanged all the same, and nothing is lost:
// the caller has both on record, and undoes the step by the objects that stand there. The object that came out is not removed: see Drop.
//
// It is one rename. Where the system or the file system knows no exchange, a file that others rename to p between the last
// look and the rename is lost; and when a step is taken back (temp is one of Entry.Temp), the object at p is not kept.
//
// temp is one that Stage gave, or the entry that a thing is renamed to or from. Each entry asks its
// own Judge, but for temporary names, which are Reserved.
func (p *Entry) Publish(ctx context.Context, temp *Entry, out, in Precondition) (*Published, error) {
	if err := ctx.Err(); err != nil {
		return nil, p.failed("publish", err)
	}
	if out.nothing() && in.nothing() {
		return nil, p.failed("publish", syscall.ENOENT)
	}
	become := func(comes Precondition) Access {
		if comes.nothing() {
			return Remove
		}
		return Modify
	}
	if p.temp == nil {
		if err := p.look(become(in)); err != nil {
			return nil, err
		}
	}
	if temp.temp == nil {
		if err := temp.look(become(out)); err != nil {
			return nil, err
		}
	}
	return p.publish(temp, out, in)
}

// copyChunk is the size of a copy between two looks at the context.
const copyChunk = 1 << 20

// stream hands the first size bytes of src to write, and hashes them meanwhile.
func stream(ctx context.Context, src io.ReaderAt, size int64, write func([]byte) error) (string,
	error) {
	sum, hashed := sha256.New(), make(chan struct{}, 1)
	hashed <- struct{}{}
	var buffers [2][]byte
	for i := range buffers {
		buffers[i] = make([]byte, min(copyChunk, max(size, 1)))
	}
	for at, turn := int64(0), 0; at < size; turn = 1 - turn {
		if err := ctx.Err(); err != nil {
			<-hashed
			return "", err
		}
		chunk := buffers[turn][:min(copyChunk, size-at)]
		n, err := src.ReadAt(chunk, at)
		chunk, at = chunk[:n], at+int64(n)
		<-hashed // the other one is free then
		if err == io.EOF && at == size {
			err = nil
		}
		if err != nil {
			return "", err
		}
		go func() {
			sum.Write(chunk) //nolint:errcheck // never fails
			hashed <- struct{}{}
		}()
		if err := write(chunk); err != nil {
			<-hashed
			return "", err
		}
	}
	<-hashed
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// copied says that the source is still what it was when it was opened, and so what was copied.
func (what *NewObject) copied() error {
	now, err := what.Source.Stat()
	if err != nil {
		return err
	}
	was := what.Source.Info()
	if !now.unchanged(&was) {
		return &ConflictError{Path: what.Source.path(), Why: ContentChanged}
	}
	return nil
}
