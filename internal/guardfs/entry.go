package guardfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Object is the occupant as Entry or the last Load saw it; its Info.Kind is KindAbsent when there was none.
func (p *Entry) Object() Object { return p.object }

// ParentTrue is the directory's true name.
func (p *Entry) ParentTrue() string { return p.dir.True }

// ParentID is the directory's identity.
func (p *Entry) ParentID() Identity { return p.dir.Info.ID }

// Base is the name in the directory.
func (p *Entry) Base() string { return p.base }

// LockKey is the same for every process and every spelling that could mean this entry, on every machine that sees the same identities; see
// Locks.
func (p *Entry) LockKey() string {
	return p.dir.Info.ID.Lasting() + "/" + foldBase(p.base)
}

// Load reads what stands there now, content and metadata, through one descriptor; the Judge is
// asked again if it is not what was last looked at. Nothing there is a Before with Exists false.
// More than max bytes is a *TooLargeError (max < 0: no limit), and what is neither file nor symlink
// a *NotRegularError. A symlink that came there after Entry is a *SymlinkError; only EntryLink
// means links.
func (p *Entry) Load(max int64) (*Before, error) { return p.read(nil, max, refuseLarger) }

// Reload is Load for a caller who has what Load gave him before: when nothing about the
// occupant has changed since, times included, before is the answer and nothing is read. Publish finds
// a change that a clock's tick hides from this. Elsewhere than on Linux it is Load.
func (p *Entry) Reload(before *Before, max int64) (*Before, error) {
	return p.read(before, max, refuseLarger)
}

// Peek is Reload, but a file of more than most bytes is not read: its Before has neither Content nor
// Hash. before may be nil.
func (p *Entry) Peek(before *Before, most int64) (*Before, error) {
	return p.read(before, most, peekLarger)
}

// Sum is Load of a file of any size, without Content: it is read only for its hash.
func (p *Entry) Sum() (*Before, error) { return p.read(nil, -1, onlyHash) }

func (p *Entry) conflict(why Interference) error {
	return &ConflictError{Path: p.object.Spelled, Why: why}
}

// nameFailed is failed for an operation on the name of p: a *FixedError where the name can't be changed.
func (p *Entry) nameFailed(op string, err error) error {
	err = p.failed(op, err)
	pe, ok := errors.AsType[*PathError](err)
	if !ok {
		return err
	}
	switch f := (&FixedError{Path: p.object.Spelled, Err: pe.Err}); f.Err {
	case syscall.EBUSY:
		return f
	case syscall.EACCES, syscall.EPERM:
		f.Dir, f.Sticky = p.dir.True, f.Err == syscall.EPERM && p.dir.Info.Mode&fs.ModeSticky != 0
		return f
	}
	return err
}

// True is the directory's true name when it was opened.
func (d *Dir) True() string { return d.name }

// List reads every entry that may be named and appends it to buf[:0]; denied is the number of the others. The order is
// the directory's own. Entries that were read before an error come with it.
func (d *Dir) List(buf []DirEntry) (entries []DirEntry, denied int, err error) {
	return d.list(buf, false)
}

// ListWays is List with the directories among the others that only lead to something that may be seen: DirEntry.Way.
func (d *Dir) ListWays(buf []DirEntry) (entries []DirEntry, denied int, err error) {
	return d.list(buf, true)
}

// ReadSmall reads a regular file of at most max bytes below d, such as an ignore file. A larger one is a
// *TooLargeError, a link a *NotRegularError.
func (d *Dir) ReadSmall(name string, max int64) ([]byte, error) {
	f, err := d.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	return f.slurp(max)
}

func (d *Dir) failed(op, name string, err error) error { return failed(op, join(d.name, name), err) }

// Object is the object that the handle holds, as it was when it was resolved.
func (h *Handle) Object() Object { return h.object }

// Open opens the object for reading: on Linux the one that was judged, whatever its name means by now. Anything but a
// regular file is a *NotRegularError. A handle that was resolved for something else is judged for Read first.
func (h *Handle) Open() (*File, error) {
	if h.access != Read {
		if err := h.fs.judge.Judge(h.object, Read); err != nil {
			return nil, err
		}
	}
	f, err := h.open()
	return f, failed("open", h.object.Spelled, err)
}

// Dir opens the object for listing and walking. Anything but a directory is ENOTDIR.
func (h *Handle) Dir() (d *Dir, err error) {
	if h.access > Read {
		if err := h.fs.judge.Judge(h.object, Look); err != nil {
			return nil, err
		}
	}
	if err = syscall.ENOTDIR; h.object.Info.Kind == KindDir {
		d, err = h.openDir()
	}
	return d, failed("open", h.object.Spelled, err)
}

// Info is the file as it was when it was opened.
func (f *File) Info() Info { return f.info }

func (f *File) failed(op string, err error) error { return failed(op, f.path(), err) }

// look brings the account of the occupant up to date and asks the Judge: for a if there is one,
// else for Create where a would change it.
func (p *Entry) look(a Access) (err error) {
	if p.object.Info, err = p.lstat(); err != nil {
		a = absent(a)
	}
	if err := p.fs.judge.Judge(p.object, a); err != nil {
		return err
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p.failed("stat", err)
	}
	return nil
}

// Mkdir makes a directory there; the umask and the parent's default ACL apply. A name that exists is fs.ErrExist. Object tells of the new
// directory then. After any other error nothing stays behind, unless the system does not let it be taken away either. The
// name is not on stable storage before SyncNames.
func (p *Entry) Mkdir(mode fs.FileMode) error {
	if err := p.look(Create); err != nil {
		return err
	}
	if err := p.still(); err != nil {
		return err
	}
	d, made, err := p.Stage(context.Background(), p.base, NewObject{Kind: KindDir, Mode: mode})
	if err != nil {
		return err
	}
	defer d.Close()                  //nolint:errcheck // nothing was written through it
	if err = p.still(); err != nil { // the directory that is held may have been moved: then it lies elsewhere
		p.drop(made.Precondition()) //nolint:errcheck // the first error is the one that counts
		return err
	}
	p.object.Info = made.Info
	return nil
}

// RemoveEmptyDir removes the directory there. One that is not empty is ENOTEMPTY.
func (p *Entry) RemoveEmptyDir() error {
	if err := p.look(Remove); err != nil {
		return err
	}
	if err := p.still(); err != nil {
		return err
	}
	return p.nameFailed("rmdir", p.rmdir())
}

// Fresh is the metadata that a new file made there with mode gets from the system: the umask, the directory's default ACL and its group
// have a say. A file made in a new directory gets the same as beside it. Nothing stays behind.
func (p *Entry) Fresh(mode fs.FileMode) (Metadata, error) {
	tag := NewTag()
	defer p.fs.journal.Forget(tag)
	t, made, err := p.Stage(context.Background(), TempName(tag, 0), NewObject{Kind: KindFile, Mode: mode, Open: true})
	if err != nil {
		return Metadata{}, err
	}
	err = t.Drop(made.Precondition())
	return made.Meta, errors.Join(err, t.Close())
}

// RemoveTree removes what stands at p with all it holds, if it is the object that lasting (Identity.Lasting) names. The Judge is asked
// about the top only, so this is for what nobody else may touch any more. It follows no link and, where the system tells, enters no other
// mount: that is ErrMount, and the directories above the mount stay. Directories that the modes keep us out of are opened up. An error leaves a part.
func (p *Entry) RemoveTree(ctx context.Context, lasting string) error {
	if err := p.look(Remove); err != nil || p.object.Info.Kind == KindAbsent {
		return err
	}
	if p.object.Info.ID.Lasting() != lasting {
		return p.conflict(Replaced)
	}
	return p.failed("remove tree", p.removeAll(ctx))
}

func (p *Entry) failed(op string, err error) error { return failed(op, p.object.Spelled, err) }

// failed is the failure of op: the system's word for it in a *PathError. nil and the errors of this package stay as they are.
func failed(op, path string, err error) error {
	switch err.(type) {
	case nil, *PathError, *FixedError, *ConflictError, *BadPathError, *SymlinkError, *NotRegularError, *TooLargeError, *RecordError:
		return err
	}
	return &PathError{Op: op, Path: path, Err: cause(err)}
}

// cause takes the errno out of what package os wraps it in; the path is told by our own error.
func cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	case errors.As(err, &se):
		return se.Err
	}
	return err
}

// Temp is the entry of a temporary name that Stage, perhaps in a process that is no more, gave in the
// directory of p. Its Object says what is there. Nothing is judged: p was.
func (p *Entry) Temp(name string) (*Entry, error) {
	if !Temporary(name) {
		return nil, p.failed("open", syscall.EINVAL)
	}
	t, err := p.beside(name)
	if err != nil {
		return nil, p.failed("open", err)
	}
	if t.object.Info, err = t.lstat(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Close() //nolint:errcheck // nothing was written through it
		return nil, p.failed("stat", err)
	}
	return t, nil
}

// Preserve gives what is at a temporary name a lasting name, puts it on record, and tells where it is.
func (p *Entry) Preserve() (left string, err error) {
	if p.temp == nil {
		return "", p.failed("keep", syscall.EINVAL)
	}
	kept := keptName() // which nothing else has
	if p.renameNew(p.base, p, kept) != nil {
		if _, err := p.lookAt(kept); err != nil { // some file systems report failures of calls that took effect
			return join(p.dir.True, p.base), nil
		}
	}
	left = join(p.dir.True, kept)
	p.fs.journal.keep(KeptFile{left, p.object.Spelled}) // what it is beside
	return left, nil
}

// Drop removes the thing own from p, which is a temporary name or lies below one. Anything else that has the name stays there. A
// directory that is not empty is ENOTEMPTY.
func (p *Entry) Drop(own Precondition) error {
	if own.nothing() {
		return nil
	}
	if !ReservedPath(join(p.dir.True, p.base)) {
		return p.failed("drop", syscall.EINVAL)
	}
	return p.nameFailed("drop", p.drop(own))
}

// Appended tells the fate of a tail that was appended to a file.
type Appended struct {
	At    int64 // where it begins; later than the end that was looked at if others appended too
	Bytes int   // that are there
	Info  Info  // of the file, after it
}

// Append writes tail to the end of the file there, in place, if that is still the one called own
// and has no other name. Not even our own bytes are ever taken away: on an error Appended says how
// many are there. It syncs the file, and with an empty tail does no more.
func (p *Entry) Append(own Identity, tail []byte) (a Appended, err error) {
	if err := p.look(Modify); err != nil {
		return a, err
	}
	if err := p.still(); err != nil {
		return a, err
	}
	return p.append(own, tail)
}
