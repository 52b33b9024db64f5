package guardfs

import (
	"golang.org/x/sys/unix"
)

// MakeParents makes the directories above path that are missing, with mode 0777 less the umask, and syncs each
// into the one that holds it. The Judge is asked for Create of each of them and of path itself before the first
// is made. made are the true names of those that were made, topmost first, also when an error comes with them.
// A part that a dangling link names is not made: *SymlinkError.
func (f *FS) MakeParents(path string) (made []string, err error) {
	dir, base, err := splitPlace(path)
	if err != nil {
		return nil, err
	}
	k := f.kernel
	t := k.walkPath(dir)
	defer func() { k.discard(t.fd) }()
	if t.err == nil {
		return nil, f.parentExists(&t, path, base)
	}
	parent := t.absent(dir)
	if err := f.judge.Judge(Object{Spelled: path, True: join(parent, base), Hops: t.hops}, Create); err != nil {
		return nil, err
	}
	switch {
	case t.err != unix.ENOENT || t.fd < 0:
		return nil, &PathError{Op: "make directory of", Path: path, Err: t.err}
	case t.linked:
		return nil, &SymlinkError{Path: t.hops[len(t.hops)-1], Target: t.target}
	}
	if err := k.refusePseudo(t.fd); err != nil {
		return nil, &PathError{Op: "make directory of", Path: path, Err: err}
	}
	var todo []Object
	at := t.at
	for _, c := range t.rest {
		switch c {
		case "", ".":
			continue
		case "..":
			return nil, &BadPathError{Path: path, Why: "goes up from a directory that does not exist"}
		}
		at = join(at, c)
		o := Object{Spelled: at, True: at, Hops: t.hops}
		if err := f.judge.Judge(o, Create); err != nil {
			return nil, err
		}
		todo = append(todo, o)
	}
	for _, o := range todo {
		fresh, err := k.makeBelow(&t.fd, o.True, o.True[len(t.at):])
		if fresh {
			made = append(made, o.True)
		}
		if err != nil {
			return made, &PathError{Op: "make directory", Path: o.True, Err: err}
		}
		t.at = o.True
	}
	return made, nil
}

// parentExists has nothing to make; it only judges, and says so if the directory is none.
func (f *FS) parentExists(t *trail, path, base string) error {
	name, gone, err := f.kernel.trueName(t.fd, &t.st)
	if name == "" {
		name = lexical(path[:len(path)-len(base)])
	}
	if err := f.judge.Judge(Object{Spelled: path, True: join(name, base), Hops: t.hops}, Create); err != nil {
		return err
	}
	switch {
	case err != nil:
	case gone:
		err = unix.ENOENT
	case t.st.info.Kind != KindDir:
		err = unix.ENOTDIR
	default:
		return nil
	}
	return &PathError{Op: "make directory of", Path: path, Err: err}
}

// makeBelow makes one directory below *fd and steps into it. Somebody else having made it meanwhile is fine; a
// link or file in its place is not. fresh: it is ours.
func (k *kernel) makeBelow(fd *int, full, name string) (fresh bool, err error) {
	if name[0] == '/' {
		name = name[1:]
	}
	err = k.do("mkdir", func() error { return unix.Mkdirat(*fd, name, 0o777) })
	if err != nil && err != unix.EEXIST {
		return false, err
	}
	fresh = err == nil
	next, err := k.openat(*fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fresh, err
	}
	st, err := k.stat(next)
	if err == nil {
		// The pinned directory may have been moved: what counts is where the new one really is.
		var now string
		if now, _, err = k.trueName(next, &st); err == nil && now != full {
			err = unix.EXDEV
			if fresh && k.unlink(*fd, name, unix.AT_REMOVEDIR) == nil {
				fresh = false
			}
		}
	}
	if err == nil && fresh {
		switch err = k.syncDir(*fd); err {
		case unix.EINVAL, unix.EROFS, unix.EACCES: // cannot be synced there, by nobody
			err = nil
		}
	}
	k.discard(*fd)
	*fd = next
	return fresh, err
}

// syncDir puts the names in the directory behind an O_PATH handle on stable storage.
func (k *kernel) syncDir(dir int) error {
	fd, err := k.reopen(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = k.fsync(fd)
	k.close(fd)
	return err
}
