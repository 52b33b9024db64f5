package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

var (
	runsFrom = flag.Int64("runs.from", 1, "the first seed of TestRunsAtRandom")
	runs     = flag.Int64("runs", 0, "how many seeds TestRunsAtRandom takes of each kind; 0: what it takes for enough")
)

// A scribbler is a program that does things at random, the same ones for one seed.
type scribbler struct {
	*rand.Rand
	dir     string
	links   bool // files of the workspace have several names
	dirs    bool // directories get other names
	log     []string
	crossed int // renames that the overlay refused
}

func (s *scribbler) path() string {
	names := []string{"a", "b", "c", "A", "n é"}
	p := names[s.Intn(len(names))]
	for s.Intn(3) > 0 && strings.Count(p, "/") < 3 {
		p += "/" + names[s.Intn(len(names))]
	}
	return p
}

// seed makes the workspace.
func (s *scribbler) seed() {
	for i := range 40 {
		p := filepath.Join(s.dir, s.path())
		switch s.Intn(8) {
		case 0, 1, 2:
			os.MkdirAll(p, 0o755)
		case 3, 4, 5:
			os.MkdirAll(filepath.Dir(p), 0o755)
			os.WriteFile(p, []byte(strings.Repeat(strconv.Itoa(i), s.Intn(3000))), 0o644)
		case 6:
			os.Symlink(s.path(), p)
		case 7:
			if q := filepath.Join(s.dir, s.path()); s.links {
				os.Link(q, p)
			}
		}
	}
}

// act does one thing.
func (s *scribbler) act(i int) {
	rp, rq := s.path(), s.path()
	p, q := filepath.Join(s.dir, rp), filepath.Join(s.dir, rq)
	k, size, mode := s.Intn(22), s.Intn(5000), []fs.FileMode{0o644, 0o600, 0o755, 0o444}[s.Intn(4)]
	data := []byte(strings.Repeat(fmt.Sprint(i)+",", size/2+1))[:size]
	var err error
	kind := func(p string) uint32 {
		var st unix.Stat_t
		if err = unix.Lstat(p, &st); err != nil {
			return 0
		}
		return st.Mode & unix.S_IFMT
	}
	opened := func(how int, mode fs.FileMode, use func(f *os.File) error) {
		f, oerr := os.OpenFile(p, how|unix.O_NONBLOCK, mode)
		if err = oerr; err == nil {
			err = errors.Join(use(f), f.Close())
		}
	}
	put := func(f *os.File) error { _, err := f.Write(data); return err }
	switch k {
	case 0:
		opened(os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode, put)
	case 1, 2:
		opened(os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644, put)
	case 3:
		opened(os.O_APPEND|os.O_WRONLY, 0, put)
	case 4:
		err = unix.Truncate(p, int64(size))
	case 5, 6:
		err = s.mv(p, q)
	case 7:
		err = unix.Linkat(unix.AT_FDCWD, p, unix.AT_FDCWD, q, 0)
	case 8:
		err = unix.Unlink(p)
	case 9, 10:
		err = unix.Mkdir(p, 0o755)
	case 11:
		err = unix.Rmdir(p)
	case 12:
		if kind(p) != 0 && i%2 == 0 {
			err = os.RemoveAll(p)
		}
	case 13:
		if kind(p) == unix.S_IFREG {
			err = os.Chmod(p, mode)
		}
	case 14:
		if kind(p) == unix.S_IFDIR {
			err = os.Chmod(p, []fs.FileMode{0o755, 0o700, 0o711, 0o777 | fs.ModeSticky}[s.Intn(4)])
		}
	case 15:
		err = os.Symlink(rq, p)
	case 16: // as an editor saves
		if err = os.WriteFile(p+".tmp", data, mode); err == nil {
			if err = os.Rename(p+".tmp", p); err != nil {
				os.Remove(p + ".tmp")
			}
		}
	case 17:
		opened(os.O_CREATE|os.O_WRONLY, 0o644, func(f *os.File) error { _, err := f.WriteAt([]byte("end"), int64(size)*40); return err })
	case 18:
		if is := kind(p); is == unix.S_IFREG || is == unix.S_IFDIR {
			err = unix.Setxattr(p, "user.k"+strconv.Itoa(size%2), data[:size/100], 0)
		}
	case 19:
		if kind(p) == unix.S_IFREG {
			err = unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{{Sec: 1e9}, {Sec: int64(size) * 1e5}}, unix.AT_SYMLINK_NOFOLLOW)
		}
	case 20: // a file that had no name
		fd, oerr := unix.Open(filepath.Dir(p), unix.O_TMPFILE|unix.O_WRONLY, 0o640)
		if err = oerr; err == nil {
			unix.Write(fd, data)
			err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW)
			unix.Close(fd)
		}
	case 21: // mapped
		opened(os.O_RDWR, 0, func(f *os.File) error {
			i, err := f.Stat()
			if err != nil || i.Size() == 0 || !i.Mode().IsRegular() {
				return err
			}
			m, err := unix.Mmap(int(f.Fd()), 0, int(i.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err == nil {
				m[0] = byte('A' + size%26)
				err = unix.Munmap(m)
			}
			return err
		})
	}
	said := "ok"
	if no := syscallOf(err); no != nil {
		said = no.Error()
	}
	s.log = append(s.log, fmt.Sprintf("%d: %d %q %q %d %o: %s", i, k, rp, rq, size, mode, said))
}

func syscallOf(err error) error {
	var no unix.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// mv moves a name as mv(1) does: it renames, and where the system refuses that it copies and removes.
func (s *scribbler) mv(p, q string) error {
	if i, err := os.Lstat(p); err == nil && i.IsDir() && !s.dirs {
		return unix.EINVAL
	}
	err := unix.Rename(p, q)
	if err != unix.EXDEV {
		return err
	}
	s.crossed++
	if i, err := os.Lstat(q); err == nil && i.IsDir() {
		if err := unix.Rmdir(q); err != nil {
			return err
		}
	}
	if out, err := exec.Command("cp", "-a", "-T", p, q).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %w", out, err)
	}
	return os.RemoveAll(p)
}

// The workspace is after each run as the programs would have left it without us, after an undo as it was, and after a redo as after the run.
func TestRunsAtRandom(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	for name, kind := range map[string]struct {
		options     string
		links, dirs bool
		seeds       int64
	}{
		"renames by copies": {"", false, true, 12},
		"a user's marks":    {",userxattr", false, true, 6},
		"several names":     {"", true, true, 6},
	} {
		t.Run(name, func(t *testing.T) {
			n := kind.seeds
			if *runs > 0 {
				n = *runs
			}
			crossed, differs := 0, 0
			for seed := *runsFrom; seed < *runsFrom+n; seed++ {
				if !t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) { crossed += oneAtRandom(t, seed, kind.options, kind.links, kind.dirs) }) {
					differs++
				}
			}
			t.Logf("%d runs, of which %d differ; the overlay refused %d renames", n, differs, crossed)
		})
	}
}

func oneAtRandom(t *testing.T, seed int64, options string, links, dirs bool) (crossed int) {
	unix.Umask(0o022)
	r := newRan(t, nil)
	(&scribbler{Rand: rand.New(rand.NewSource(seed * 7919)), dir: r.ws, links: links}).seed()
	before := pictured(t, r.ws)
	var logs [2]*scribbler
	program := func(n int) func(dir string) {
		return func(dir string) {
			s := &scribbler{Rand: rand.New(rand.NewSource(seed)), dir: dir, links: links, dirs: dirs}
			for i := range 60 {
				s.act(i)
			}
			logs[n] = s
		}
	}
	want := r.without(t, program(0))
	u := r.layer(t, options, program(1))
	if links { // where such a file is changed the overlay makes one of its own of it: the program sees that, and so it stays
		want = r.saw
	} else if a, b := strings.Join(logs[0].log, "\n"), strings.Join(logs[1].log, "\n"); a != b {
		t.Fatalf("the overlay behaves in another way:\n%s\nand not\n%s", b, a)
	}
	_, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "scribble"})
	if err != nil {
		t.Fatalf("%v: %+v", err, engine.Reason(err).Facts)
	}
	same(t, "after", pictured(t, r.ws), want)
	if _, err = r.call().Undo(ctx, engine.RestoreOptions{}); err != nil {
		t.Fatal("undo: ", err)
	}
	same(t, "undone", timeless(pictured(t, r.ws)), timeless(before))
	if _, err = r.call().Redo(ctx, engine.RestoreOptions{}); err != nil {
		t.Fatal("redo: ", err)
	}
	return logs[1].crossed
}
