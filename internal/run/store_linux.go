//go:build !rooted

package run

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/internal/ids"
)

// prefix begins the ids of runs.
const prefix = "run-"

// record is the file record of a run's directory. A directory without one has never had a program.
type record struct {
	Options
	User, Own bool // see Upper.User; a user namespace of its own
	Stamp     time.Time
	Laid      []string
	Began     time.Time
	Args      []string
	Boot      string // of the machine, when the last program began
}

// A Run is an upper layer over a workspace, which is open to this process alone. Its methods are for one goroutine.
type Run struct {
	id   string
	dir  string
	lock *os.File
	record
	process *Process // the one that runs, or has run last
}

// New makes a run over o.Root.
func New(o Options) (*Run, error) {
	o, own, err := checked(o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(runs(o.Data), 0o700); err != nil {
		return nil, failed("making the directory of runs", err)
	}
	if err := sweep(o.Data); err != nil {
		return nil, err
	}
	for seq := int64(1); ; seq++ {
		r := &Run{id: ids.New(prefix, seq), record: record{Options: o, Own: own, User: own || !initial(), Began: time.Now()}}
		r.dir = filepath.Join(runs(o.Data), r.id)
		if err := os.Mkdir(r.dir, 0o700); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return nil, failed("making a run", err)
		}
		if err := r.hold(); err != nil {
			continue // another process has swept it away
		}
		if err := r.furnish(); err != nil {
			return nil, errors.Join(err, r.Drop())
		}
		return r, nil
	}
}

// Open opens a run that was kept or left behind.
func Open(data, id string) (*Run, error) {
	parsed, why := ids.Parse(prefix, id)
	r := &Run{id: parsed, dir: filepath.Join(runs(data), parsed)}
	gone := &Error{Why: "there is no run " + strconv.Quote(id), Do: "see which are kept with moltis-fs status"}
	if why != "" {
		return nil, gone
	}
	if _, err := os.Lstat(r.dir); err != nil {
		return nil, gone
	}
	if err := r.hold(); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &Error{Why: "the run " + id + " is open in another process", Do: "wait until that ends"}
	} else if err != nil {
		return nil, gone
	}
	if err := r.outlive(); err != nil {
		return nil, errors.Join(err, r.lock.Close())
	}
	if err := r.load(); err != nil {
		return r, nil // its options are empty, and it can be dropped
	}
	if r.Data = data; r.Torn() {
		r.Stamp = time.Time{} // nothing is sure
	}
	return r, nil
}

// Renew gives the options of New to the later programs of a run that was opened. Nothing may be hidden now that was not when it began.
func (r *Run) Renew(o Options) error {
	o, own, err := checked(o)
	switch {
	case err != nil:
		return err
	case r.Root == "":
		return errDamaged
	case o.Root != r.Root:
		return &Error{Why: "the run " + r.id + " is over " + r.Root, Do: "name that as the root"}
	}
	for _, name := range o.Hidden {
		if !under(name, r.Hidden) {
			return &Error{Why: "the run " + r.id + " was begun when less was closed", Do: "ask about it without a program, or drop it, and begin anew"}
		}
	}
	o.Hidden = r.Hidden
	r.Options, r.Own = o, own
	return nil
}

// List lists the runs of a data directory that nobody has open, the oldest first.
func List(data string) ([]Info, error) {
	entries, err := os.ReadDir(runs(data))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, failed("listing the runs", err)
	}
	var all []Info
	for _, e := range entries {
		r := &Run{id: e.Name(), dir: filepath.Join(runs(data), e.Name())}
		if i, err := e.Info(); err == nil {
			r.Began = i.ModTime() // unless the record says it
		}
		if _, why := ids.Parse(prefix, r.id); why != "" || errors.Is(r.load(), os.ErrNotExist) {
			continue // it is being made, or dropped
		}
		f, err := os.OpenFile(r.file("lock"), os.O_RDWR, 0)
		if err != nil {
			continue // it is dropped just now
		}
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		if unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) == nil && lock.Type == unix.F_UNLCK {
			all = append(all, Info{r.id, r.Root, cmp.Or(strings.Join(r.Args, " "), "?"), r.Began, r.Torn()})
		}
		_ = f.Close()
	}
	slices.SortFunc(all, func(a, b Info) int { return a.Began.Compare(b.Began) })
	return all, nil
}

// sweep removes the directories of runs whose maker ended before they were complete, or while they were dropped.
func sweep(data string) error {
	entries, err := os.ReadDir(runs(data))
	if err != nil {
		return failed("listing the runs", err)
	}
	for _, e := range entries {
		r := &Run{id: e.Name(), dir: filepath.Join(runs(data), e.Name())}
		if _, err := os.Lstat(r.file("record")); errors.Is(err, os.ErrNotExist) && r.hold() == nil {
			if _, err := os.Lstat(r.file("record")); errors.Is(err, os.ErrNotExist) {
				_ = r.Drop() // the next one tries again
			}
			_ = r.Close()
		}
	}
	return nil
}

func runs(data string) string { return filepath.Join(data, "runs") }

func (r *Run) file(name string) string { return filepath.Join(r.dir, name) }

// hold takes the lock of a run. The process that a program runs under has it too: the lock is free when all have ended.
func (r *Run) hold() error {
	f, err := os.OpenFile(r.file("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		_ = f.Close()
		return err
	}
	var ours, there unix.Stat_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &ours), unix.Lstat(r.file("lock"), &there)); err != nil || ours.Ino != there.Ino {
		_ = f.Close()
		return os.ErrNotExist // it was dropped meanwhile
	}
	r.lock = f
	return nil
}

// outlive waits until a helper that was left behind has ended: it gives the lock away before the kernel has ended its program.
func (r *Run) outlive() error {
	b, _ := os.ReadFile(r.file("lock"))
	line, _, _ := strings.Cut(string(b), "\n")
	pid, began, _ := strings.Cut(line, " ")
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(time.Millisecond) {
		if at, state := seen(pid); at == "" || at != began || state == "Z" || state == "X" {
			return nil
		}
	}
	return &Error{Why: "the program of the run " + r.id + " does not end", Do: "see process " + pid}
}

// seen gives the time at which a process began, as the kernel counts, and its state; "" if it is not there.
func seen(pid string) (began, state string) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	i := bytes.LastIndexByte(b, ')')
	if fields := strings.Fields(string(b[i+1:])); err == nil && pid != "" && len(fields) > 19 {
		return fields[19], fields[0]
	}
	return "", ""
}

func (r *Run) load() error {
	b, err := os.ReadFile(r.file("record"))
	if err != nil {
		return err
	}
	return gob.NewDecoder(bytes.NewReader(b)).Decode(&r.record)
}

func (r *Run) save() error {
	var b bytes.Buffer // gob, as names may have any bytes
	err := gob.NewEncoder(&b).Encode(r.record)
	if err == nil {
		err = os.WriteFile(r.file("record.new"), b.Bytes(), 0o600)
	}
	if err == nil {
		err = os.Rename(r.file("record.new"), r.file("record"))
	}
	if err != nil {
		return failed("writing the record of a run", err)
	}
	return nil
}

// furnish makes what a run's directory has.
func (r *Run) furnish() error {
	for _, d := range []string{UpperName, "work"} {
		if err := os.Mkdir(r.file(d), 0o700); err != nil {
			return failed("making a run", err)
		}
	}
	mark := "trusted.overlay.opaque"
	if r.User {
		mark = "user.overlay.opaque"
	}
	if err := unix.Lsetxattr(r.file("work"), mark, []byte("n"), 0); err != nil {
		return &Error{"the file system of the data directory has no extended attributes for an overlay", another, err}
	}
	_ = unix.Lremovexattr(r.file("work"), mark)
	root, err := unix.Open(r.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return failed("opening the root", err)
	}
	defer unix.Close(root) //nolint:errcheck // nothing was written through it
	upper, err := unix.Open(r.file(UpperName), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return failed("opening the upper layer", err)
	}
	defer unix.Close(upper) //nolint:errcheck // as above
	if err := r.lay(root, upper); err != nil {
		return err
	}
	if err := resemble(root, upper); err != nil {
		return failed("making the upper layer like the root", err)
	}
	r.Stamp, err = stamp(root)
	return err
}

// lay whites the hidden names out.
func (r *Run) lay(root, upper int) error {
	slices.Sort(r.Hidden) // a directory comes before what is in it
	for _, name := range r.Hidden {
		if n := len(r.Laid); n > 0 && within(name, r.Laid[n-1]) {
			continue
		}
		if laid, err := whiteout(root, upper, name); err != nil {
			return &Error{"a file in the workspace that is closed can't be kept from the program", "give its directory to the user who runs this", err}
		} else if laid {
			r.Laid = append(r.Laid, name)
		}
	}
	return nil
}

// whiteout has the overlay not have name, which is below the directory lower. Directories on the way come to be in the upper layer. It
// says whether there was such a name.
func whiteout(lower, upper int, name string) (bool, error) {
	name, rest, below := strings.Cut(name, "/")
	var st unix.Stat_t
	if err := unix.Fstatat(lower, name, &st, unix.AT_SYMLINK_NOFOLLOW); err == unix.ENOENT {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if !below {
		return true, unix.Mknodat(upper, name, unix.S_IFCHR, 0)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, nil
	}
	l, err := openPath(lower, name)
	if err != nil {
		return false, err
	}
	defer unix.Close(l) //nolint:errcheck // it is O_PATH
	if err := unix.Mkdirat(upper, name, 0o700); err != nil && err != unix.EEXIST {
		return false, err
	}
	u, err := openPath(upper, name)
	if err != nil {
		return false, err
	}
	defer unix.Close(u) //nolint:errcheck // as above
	if err := unix.Chmod(proc(u), 0o700); err != nil {
		return false, err
	}
	laid, err := whiteout(l, u, rest)
	return laid, errors.Join(err, resemble(l, u))
}

// resemble gives the directory u the owner, attributes, mode and time of l.
func resemble(l, u int) error {
	want, _, err := look(l, "", "")
	have, _, err2 := look(u, "", "")
	if err = errors.Join(err, err2); err == nil && (want.UID != have.UID || want.GID != have.GID) {
		err = unix.Chown(proc(u), int(want.UID), int(want.GID))
	}
	for name, value := range want.Xattrs {
		if e := unix.Setxattr(proc(u), name, value, 0); e != unix.EPERM && e != unix.ENOTSUP {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(proc(u), want.Mode), os.Chtimes(proc(u), want.ModTime, want.ModTime))
}

// mostClosed is how many names Closed lists.
const mostClosed = 100_000

// Closed lists the names below a directory, relative to it, that are closed, and the other names there of files that are, or lie in what is. look
// gives, for each directory that is walked (the path from dir, with a slash at the end, or ""), a function that says of a name in it whether that is
// closed, and whether to look into it.
func Closed(dir string, look func(in string) func(name string, isDir bool) (shut, enter bool)) (closed []string, err error) {
	root, err := openPath(unix.AT_FDCWD, dir)
	if err != nil {
		return nil, failed("opening "+dir, err)
	}
	defer unix.Close(root) //nolint:errcheck // it is O_PATH
	type file struct{ dev, ino uint64 }
	shuts, links, shutDirs := map[file]bool{}, map[file][]string{}, map[string]bool{}
	last, here := "", look("")
	err = walk(root, ".", func(name string, st *unix.Stat_t) bool {
		in, base := filepath.Split(name)
		inside := shutDirs[in]
		if in != last && !inside {
			last, here = in, look(in)
		}
		shut, enter := inside, true
		if !inside {
			if shut, enter = here(base, st.Mode&unix.S_IFMT == unix.S_IFDIR); shut {
				closed = append(closed, name)
			}
		}
		id := file{st.Dev, st.Ino}
		switch {
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			shutDirs[name+"/"] = shut
		case st.Nlink > 1 && shut:
			shuts[id] = true
		case st.Nlink > 1:
			links[id] = append(links[id], name)
		}
		return enter && len(closed) <= mostClosed
	})
	for id := range shuts {
		closed = append(closed, links[id]...)
	}
	if len(closed) > mostClosed {
		return nil, &Error{Why: fmt.Sprintf("more than %d names below %s are closed to programs", mostClosed, dir),
			Do: "close whole directories by deny_paths, or name a smaller root"}
	}
	return closed, err
}

// walk calls f with all that is below the directory name of root, at any depth, and with its names relative to root. It goes into a
// directory if f says so. It passes by directories that can't be read.
func walk(root int, name string, f func(name string, st *unix.Stat_t) bool) error {
	for todo := []string{name}; len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		fd, err := openDeep(root, name)
		if err == unix.EMFILE || err == unix.ENFILE || err == unix.ENOMEM {
			return failed("looking through a directory", err)
		} else if err != nil {
			continue
		}
		dir := os.NewFile(uintptr(fd), name)
		names, _ := dir.Readdirnames(-1)
		for _, child := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, child, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			if child = filepath.Join(name, child); f(child, &st) && st.Mode&unix.S_IFMT == unix.S_IFDIR {
				todo = append(todo, child)
			}
		}
		dir.Close() //nolint:errcheck // nothing was written through it
	}
	return nil
}

// openDeep opens a directory whose name may be longer than the system takes.
func openDeep(root int, name string) (int, error) {
	for at := root; ; {
		part, rest := name, ""
		if len(name) > 4000 {
			cut := strings.LastIndexByte(name[:4000], '/')
			part, rest = name[:cut], name[cut+1:]
		}
		fd, err := unix.Openat(at, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if at != root {
			unix.Close(at) //nolint:errcheck // nothing was written through it
		}
		if at, name = fd, rest; err != nil || rest == "" {
			return fd, err
		}
	}
}

// stamp gives a time such that all changes before have an earlier ctime, and all later ones this or a later one. The file that it takes it
// from has no name. Where the file system has no such files it gives the zero time.
func stamp(root int) (time.Time, error) {
	fd, err := unix.Openat(root, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return time.Time{}, nil
	}
	defer unix.Close(fd) //nolint:errcheck // it has no name
	var first, now unix.Stat_t
	if err := unix.Fstat(fd, &first); err != nil {
		return time.Time{}, failed("reading the clock of the root", err)
	}
	for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; time.Sleep(100 * time.Microsecond) { // it may tick slowly
		if err := errors.Join(unix.Fchmod(fd, 0o600), unix.Fstat(fd, &now)); err != nil {
			return time.Time{}, failed("reading the clock of the root", err)
		}
		if now.Ctim != first.Ctim {
			return time.Unix(now.Ctim.Unix()), nil
		}
	}
	return time.Time{}, nil
}

// ID is the name of the run, for Open.
func (r *Run) ID() string { return r.id }

// Torn says that the machine was started anew since the last program, and nobody knows what of it was on the disk: files may be empty or cut.
func (r *Run) Torn() bool { return r.Boot != "" && r.Boot != boot() }

// Upper gives the upper layer.
func (r *Run) Upper() Upper {
	return Upper{Root: r.Root, Dir: r.file(UpperName), User: r.User, Stamp: r.Stamp, Laid: slices.Clone(r.Laid)}
}

// Temporary gives the first bytes of a file that the last program has left in its /tmp; "" where there is none.
func (r *Run) Temporary(name string) string {
	fd, err := unix.Open(r.file("tmp/"+name), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written through it
	b := make([]byte, maxPath)
	n, _ := unix.Read(fd, b)
	return string(b[:max(n, 0)])
}

// Close ends the program, and keeps the run for another process to open.
func (r *Run) Close() error {
	r.stop()
	if r.lock == nil {
		return nil
	}
	err := r.lock.Close()
	r.lock = nil
	return err
}

// boot tells the times apart that the machine was started.
func boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// Drop ends the program and removes all of the run. A second time it does nothing.
func (r *Run) Drop() error {
	r.stop()
	if r.lock == nil {
		return nil
	}
	err := os.Remove(r.file("record")) // from here on it is swept, if not dropped
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = clear(r.dir, "lock")
	}
	if err == nil {
		err = os.Remove(r.file("lock"))
	}
	if err != nil {
		err = failed("removing a run", err)
	} else {
		_ = os.Remove(r.dir) // else another process sweeps it just now
	}
	err = errors.Join(err, r.lock.Close())
	r.lock = nil
	return err
}

// clear removes all that is in a directory but the name keep, at any depth and whatever the modes. Of a directory that is not empty the
// directories in it move up first: so no name gets long, and few descriptors are open.
func clear(dir, keep string) error {
	top, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(top)                             //nolint:errcheck // nothing was written through it
	full := func(at int, name string) (bool, error) { // it is a directory that is not empty, and can be now
		err := unix.Unlinkat(at, name, 0)
		if err == unix.EISDIR {
			err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
		}
		if err == unix.ENOTEMPTY || err == unix.EEXIST {
			return true, unix.Fchmodat(at, name, 0o700, 0)
		}
		return false, err
	}
	moved := 0
	for left := 1; left > 0; {
		left = 0
		err := children(top, ".", func(_ int, name string) error {
			if name == keep {
				return nil
			}
			left++
			if more, err := full(top, name); !more || err != nil {
				return err
			}
			return children(top, name, func(in int, name string) error {
				more, err := full(in, name)
				for try := more && err == nil; try; try = err == unix.EEXIST {
					moved++
					err = unix.Renameat2(in, name, top, strconv.Itoa(moved), unix.RENAME_NOREPLACE)
				}
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// children calls f with the names in the directory name of at.
func children(at int, name string, f func(dir int, name string) error) error {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close() //nolint:errcheck // nothing was written through it
	names, err := d.Readdirnames(-1)
	for _, child := range names {
		if err == nil {
			err = f(fd, child)
		}
	}
	return err
}

// proc names an open descriptor, also one that is O_PATH.
func proc(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// within says whether the path name is dir or below it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// failed is the error for what the system says.
func failed(doing string, err error) error { return &Error{Why: doing, Err: err} }

// under says whether the path name is within one of dirs.
func under(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(name, d) })
}
