package guardfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

// exchange is a rename that gives each of two names what the other has, each in a directory that is pinned.
type exchange struct {
	p, temp   *Entry
	out, in   Precondition
	displaced handle // on what was at p
	staged    handle // on what was at temp
	gone      Info   // of what came out
	again     bool   // a step is taken back: in was at p before
	overwrote bool   // the file system knows no exchange
}

func newExchange(p, temp *Entry, out, in Precondition) *exchange {
	made := temp.staged()
	return &exchange{p: p, temp: temp, out: out, in: in, again: made == nil || made.ID != in.ID}
}

// run makes the exchange. After an error the names may have been exchanged all the same.
func (x *exchange) run(pub *Published) (err error) {
	p := x.p
	if err := p.still(); err != nil {
		return err
	}
	if x.temp.apart(p) {
		if err := x.temp.still(); err != nil {
			return err
		}
	}
	if !x.in.nothing() {
		// The staged object is compared with what Stage left: others who may write in the directory can put another one under its name.
		var why Interference
		switch x.staged, why, err = x.temp.expect(x.in); {
		case err != nil:
			return p.failed("compare", err)
		case why == WasRemoved:
			return p.conflict(TempRemoved)
		case why != "":
			return p.conflict(TempSwapped)
		}
		defer x.staged.close(p.fs)
	}
	if !x.out.nothing() {
		// The last look comes right before the rename: another object that comes after it has to be put back.
		var why Interference
		if x.displaced, why, err = p.expect(x.out); err != nil {
			return p.failed("compare", err)
		}
		if why != "" {
			return p.conflict(why)
		}
		defer x.displaced.close(p.fs)
	}
	err = x.rename()
	switch exists, gone := errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist); {
	case err == nil || x.tookEffect():
		return x.verify(pub)
	case noFlags(err):
		return p.failed("publish", errors.ErrUnsupported)
	case exists && x.out.nothing():
		return p.conflict(Appeared)
	case exists:
		return x.temp.conflict(Appeared)
	case gone && !x.out.nothing() && !p.isAt(x.out.ID):
		return p.conflict(WasRemoved)
	case gone && !x.in.nothing() && !x.temp.isAt(x.in.ID):
		return p.conflict(TempRemoved)
	case gone:
		return p.conflict(DirRemoved)
	case x.temp.apart(p) && x.temp.Allowed() != nil:
		return x.temp.nameFailed("publish", err)
	}
	return p.nameFailed("publish", err)
}

func (x *exchange) rename() error {
	switch {
	case x.in.nothing():
		return x.p.renameNew(x.p.base, x.temp, x.temp.base)
	case x.out.nothing():
		return x.temp.renameNew(x.temp.base, x.p, x.p.base)
	}
	return x.both()
}

// isAt says that the object that has the name of p is that one.
func (p *Entry) isAt(id Identity) bool {
	info, err := p.lookAt(p.base)
	return err == nil && info.ID == id
}

// tookEffect reports whether a rename that failed was made all the same: remote file systems tell that of some.
func (x *exchange) tookEffect() bool {
	if !x.in.nothing() {
		return x.p.isAt(x.in.ID)
	}
	id, err := x.displaced.identity(x.p.fs, x.out) // a copy up may have made another identity of it
	return err == nil && x.temp.isAt(id)
}

// A renaming is what renameTo does where the new name is taken: it replaces the object there, refuses, or exchanges the two.
type renaming int

const (
	replaces renaming = iota
	refuses
	exchanges
)

// noFlags says that the file system knows only a rename that replaces.
func noFlags(err error) bool { return err == syscall.EINVAL || errors.Is(err, errors.ErrUnsupported) }

// renameNew is a rename from p's directory to q's that replaces nothing. Where the file system knows no such thing it is done
// by link, and where there is none of that either by a look and a rename.
func (p *Entry) renameNew(from string, q *Entry, to string) error {
	err := p.renameTo(from, q, to, refuses)
	if !noFlags(err) {
		return err
	}
	err = p.linkTo(from, q, to)
	if err == nil || p.same(from, q, to) { // some file systems report failures of calls that took effect
		if err = p.unlink(from); err != nil {
			q.unlink(to) //nolint:errcheck // the first error is the one that counts
		}
		return err
	}
	if !errors.Is(err, fs.ErrExist) {
		switch _, lerr := q.lookAt(to); {
		case lerr == nil:
			err = syscall.EEXIST
		case errors.Is(lerr, fs.ErrNotExist):
			err = p.renameTo(from, q, to, replaces)
		}
	}
	return err
}

// both exchanges the names, whatever they have.
func (x *exchange) both() error {
	err := x.temp.renameTo(x.temp.base, x.p, x.p.base, exchanges)
	if !noFlags(err) {
		return err
	}
	x.overwrote = true
	if x.again {
		return x.temp.renameTo(x.temp.base, x.p, x.p.base, replaces)
	}
	return x.replace()
}

// replace is both for file systems that know no exchange. The file at p gets another name as well, so that p always has something, and
// the new one is renamed over it. That other name is the one of temp then.
func (x *exchange) replace() error {
	p, t := x.p, x.temp
	old := OldName(t.base)
	linked := p.linkTo(p.base, t, old) == nil || p.same(p.base, t, old)
	var at Info
	var err error
	if !linked { // then it is away for a moment
		err = p.renameNew(p.base, t, old)
	} else if at, err = t.lookAt(old); err == nil && !p.same(p.base, t, old) {
		err = syscall.ENOENT // replaced, or removed, just now
	}
	if err == nil {
		if err = t.renameTo(t.base, p, p.base, replaces); err == nil || x.tookEffect() {
			t.base, t.object.True = old, join(t.dir.True, old)
			return nil
		}
		if !linked {
			t.renameNew(old, p, p.base) //nolint:errcheck // the first error is the one that counts
		}
	}
	if now, lerr := t.lookAt(old); linked && lerr == nil && now.ID == at.ID {
		t.unlink(old) //nolint:errcheck // see above
	}
	return err
}

// verify looks at what came out, and at where the directories are, and rolls back if that is not as it has to be.
func (x *exchange) verify(pub *Published) error {
	p := x.p
	var why Interference
	var err error
	if !x.out.nothing() && !(x.again && x.overwrote) {
		if why, x.gone, err = x.temp.came(x.out, x.displaced); errors.Is(err, fs.ErrNotExist) {
			why, err = "what it replaced was taken from under its temporary name", nil
		}
	}
	if err == nil && why == "" && !x.in.nothing() {
		// Others who exchanged the temporary name for another object have published that; others who replaced the file just now were
		// a moment later than we. It looks the same, and the pre-image is kept.
		now, lerr := p.lookAt(p.base)
		switch {
		case lerr != nil:
		case now.ID == x.in.ID:
			pub.Info = now
		case x.out.nothing():
			why = PublishedOrSwap
		default:
			why = PublishedToo
		}
	}
	if err == nil && why == "" {
		pub.True, why = p.moved()
	}
	if err == nil && why == "" && x.temp.apart(p) {
		_, why = x.temp.moved()
	}
	if err == nil && why == "" {
		if x.gone.Kind != KindAbsent {
			pub.Displaced = Precondition{x.gone.ID, &Before{Exists: true, Info: x.gone}}
		}
		if x.gone.Kind == KindFile {
			pub.LinksBroken = max(int(x.gone.Links)-1, 0)
		}
		return nil
	}
	left := x.rollback()
	if err != nil {
		return p.failed("compare", err)
	}
	return &ConflictError{Path: p.object.Spelled, Why: why, Left: left}
}

// rollback renames back, once, as long as the object that came in is where it came to; that loses nothing. The caller undoes the rest by
// the objects at the two names. left is the name of one that can't go back and has no temporary name.
func (x *exchange) rollback() (left string) {
	p, temp := x.p, x.temp
	switch here := x.in.nothing() || p.isAt(x.in.ID); {
	case x.in.nothing():
		if errors.Is(temp.renameNew(temp.base, p, p.base), fs.ErrExist) && temp.temp == nil {
			left = temp.object.True
		}
	case !here || x.overwrote:
	case x.out.nothing():
		p.renameNew(p.base, temp, temp.base) //nolint:errcheck // see above
	case x.both() == nil && !temp.isAt(x.in.ID):
		x.both() //nolint:errcheck // something newer came before it: turn that round
	}
	return left
}

// DropLink removes the name temp if it is a link to the very file at p: a process died within a
// rename that is a link and a removal.
func (p *Entry) DropLink(temp *Entry) error {
	if !p.same(p.base, temp, temp.base) {
		return nil
	}
	return p.failed("publish", temp.unlink(temp.base))
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
