//go:build linux

package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

var (
	every    = flag.Int64("every", 0, "a kill before, or a fault at, each so manieth call; 0: what a test takes for enough")
	from     = flag.Int64("from", 0, "the first of those calls; 0: another one with each commit")
	realOnly = flag.Bool("real", false, "no kill is played")
)

// realKills is how many processes are really killed in a change, spread over its calls. The other
// kills are played, which takes a tenth of the time and has to come to the same.
const realKills = 3

// deed is what a process does until it is killed.
type deed struct {
	change func(*config.FS)
	start  bool // its start is part of it; run may be nil
	run    act
}

// deeds are all that any test has a process do, so that TestKilledChild finds them. No two may have
// one name: one of them would be done in the place of the other.
var deeds = func() map[string]deed {
	all := map[string]deed{"recover": {start: true}}
	add := func(name string, d deed) {
		if _, twice := all[name]; twice {
			panic("two deeds are called " + name)
		}
		all[name] = d
	}
	for name, run := range parkings {
		add(name, deed{change: small, run: run})
	}
	for _, tests := range []map[string]act{appendings, copyings} {
		for name, run := range tests {
			add(name, deed{change: tight, run: run})
		}
	}
	for name, m := range makings {
		add(name, deed{change: small, run: m.run})
	}
	return all
}()

// in does it in the tree of dir. hook is asked before every call of it.
func (d deed) in(dir string, hook func() *guardfs.Fault) error {
	cfg := config.Default().Tools.FS
	cfg.RequireApproval, cfg.CheckpointBeforeMutation = false, true
	if d.change != nil {
		d.change(&cfg)
	}
	var on atomic.Bool
	on.Store(d.start)
	fault := func(string) *guardfs.Fault {
		if on.Load() {
			return hook()
		}
		return nil
	}
	e, err := engine.OpenOver(engine.Options{Config: cfg, Judge: inside(dir+"/ws", ""), DataDir: dir + "/data", Fault: fault})
	if err != nil {
		return err
	}
	on.Store(true)
	if d.run != nil {
		err = d.run(ctx, maker(e), dir+"/ws")
	}
	return errors.Join(err, e.Close())
}

// calls counts how many there are when nobody is killed.
func (d deed) calls(t *testing.T, dir string) (n int64) {
	t.Helper()
	var count atomic.Int64
	must(t, d.in(dir, func() *guardfs.Fault { count.Add(1); return nil }))
	return count.Load()
}

// The child of every test that kills: it kills itself before its N-th system call on the tree.
func TestKilledChild(t *testing.T) {
	how := strings.Split(os.Getenv("KILLED_CHILD"), ":")
	if len(how) != 3 {
		t.Skip("only run by the tests that kill")
	}
	n, err := strconv.ParseInt(how[2], 10, 64)
	must(t, err)
	var count atomic.Int64
	must(t, deeds[how[0]].in(how[1], func() *guardfs.Fault {
		if count.Add(1) == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}))
}

// kill has a process do a deed in the tree of dir and kills it before the n-th call. over: there are not so many.
func kill(t *testing.T, name, dir string, n int64) (over bool) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	child.Env = append(os.Environ(), "KILLED_CHILD="+name+":"+dir+":"+strconv.FormatInt(n, 10))
	out, err := child.CombinedOutput()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%v\n%s", err, out)
	}
	return err == nil
}

// playKill does the deed in this process. Before the n-th call it stands still, and loses its locks
// as one that is killed does. end lets go of it: its calls come to nothing then.
func playKill(t *testing.T, name, dir string, n int64) (over bool, end func()) {
	t.Helper()
	var count atomic.Int64
	stands, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- deeds[name].in(dir, func() *guardfs.Fault {
			k := count.Add(1)
			if k < n {
				return nil
			}
			if k == n {
				close(stands)
			}
			<-goOn
			return &guardfs.Fault{Err: syscall.EIO}
		})
	}()
	select {
	case err := <-ended:
		must(t, err)
		return true, func() {}
	case <-stands:
	}
	unlockBelow(t, dir)
	return false, func() {
		close(goOn)
		<-ended
	}
}

func (x *tree) dir() string { return filepath.Dir(x.ws) }

// unlockBelow gives back every lock that this process has on a file below dir. Those of SQLite are
// not among them: it knows itself what this process holds.
func unlockBelow(t *testing.T, dir string) {
	t.Helper()
	const fds = "/proc/self/fd/"
	ours := func(fd int) bool {
		name, err := os.Readlink(fds + strconv.Itoa(fd))
		return err == nil && strings.HasPrefix(name, dir+"/") && !strings.Contains(name, "/checkpoints.db")
	}
	entries, err := os.ReadDir(fds)
	must(t, err)
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		must(t, err)
		if !ours(fd) {
			continue
		}
		// Other tests close and open files meanwhile: only what is held can be looked at in peace.
		if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			continue
		}
		if ours(fd) { // a handle has no locks and says so
			unix.Flock(fd, unix.LOCK_UN)                                                      //nolint:errcheck // as above
			unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK}) //nolint:errcheck // as above
		}
		must(t, unix.Close(fd))
	}
}

// needsTrash skips what parks where nothing can be.
func (x *tree) needsTrash() {
	x.t.Helper()
	if x.bestEffort() {
		x.t.Skip("SKIPPED: there is no trash on this system")
	}
}

// bestEffort says that names trade in several steps, and that a number is all that tells an object.
func (x *tree) bestEffort() bool { return x.Containment() == "best_effort" }

var tempName = regexp.MustCompile(`\.moltis-[^/ ]*`)

// killRounds is how many kills there are of a deed, spread over its calls: with each commit others. With -every 1 all are.
const killRounds = 8

// kills kills the deed before its calls, in a tree that is laid once and copied for each, or laid anew where it would not be the same
// as a copy. The played ones run beside other tests. look sees what is left, and is told what the tree looks like when nobody is killed; what it answers is compared
// between a real kill and a played one.
func kills(t *testing.T, name string, x *tree, again func(), look func(n int64, over bool, done string) string) {
	t.Helper()
	must(t, x.Close())
	kept := t.TempDir()
	copyAll(t, x.dir(), kept)
	anew := func() {
		t.Helper()
		must(t, errors.Join(os.RemoveAll(x.ws), os.RemoveAll(x.data)))
		if again == nil {
			copyAll(t, kept, x.dir())
			return
		}
		must(t, errors.Join(os.Mkdir(x.ws, 0o700), os.Mkdir(x.data, 0o700)))
		x.open()
		again()
		must(t, x.Close())
	}
	anew()
	total := deeds[name].calls(t, x.dir())
	done := x.looks()
	stride := cmp.Or(*every, max(1, total/killRounds))
	begin := first(t, stride)
	var at []int64
	for n := begin; n <= total; n += stride {
		at = append(at, n)
	}
	at = append(at, total+1) // this one comes to its end
	after := map[int64]string{}
	round := func(n int64, kill func() (over bool, end func())) {
		anew()
		over, end := kill()
		defer end()
		saw := inOrder(tempName.ReplaceAllString(look(n, over, done), ".moltis-*"))
		if was, ok := after[n]; ok && was != saw {
			t.Fatalf("killed before call %d:\n%s\nplayed:\n%s", n, was, saw)
		}
		after[n] = saw
	}
	apart := max(1, len(at)/realKills)
	for i, n := range at {
		if *realOnly || i%apart == 0 {
			round(n, func() (bool, func()) { return kill(t, name, x.dir(), n), func() {} })
		}
	}
	reals := len(after)
	t.Parallel() // only now: see copyAll
	for _, n := range at {
		if !*realOnly {
			round(n, func() (bool, func()) { return playKill(t, name, x.dir(), n) })
		}
	}
	t.Logf("%d calls; killed before %d, from the %d. on, %d times really", total, len(at), begin, reals)
	if len(at) < min(killRounds, int(total)) || reals < realKills { // before each of few is enough
		t.Errorf("killed %d times, %d times really: the test tests less than it should", len(at), reals)
	}
}

// bothWays counts what kills led to, and fails at the end of the test where one of the two was seen less than so often.
func bothWays(t *testing.T, least int) (saw func(made bool) string) {
	var mu sync.Mutex
	seen := map[bool]int{}
	t.Cleanup(func() {
		if min(seen[true], seen[false]) < least {
			t.Errorf("killed too early or too late to tell anything: %v", seen)
		}
	})
	return func(made bool) string {
		mu.Lock()
		defer mu.Unlock()
		seen[made]++
		return fmt.Sprint(made)
	}
}

// inOrder sorts lines: random names come in any order.
func inOrder(text string) string {
	lines := slices.Sorted(strings.Lines(text + "\n"))
	return strings.Join(lines, "")
}

// first is the call that a test of each so manieth begins with: another one with each commit, so
// that in time all are met. A test that fails says which it was.
func first(t testing.TB, stride int64) (n int64) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with -from %d", n)
		}
	})
	return cmp.Or(*from, 1+int64(commit()%uint64(stride)))
}

var commit = sync.OnceValue(func() uint64 {
	out, _ := exec.Command("git", "rev-parse", "HEAD").Output() //nolint:errcheck // then it is always the same
	h := fnv.New64a()
	h.Write(out)
	return h.Sum64()
})

func maker(e *engine.Engine) *engine.Call {
	return e.Begin(&engine.Call{ID: "c", Principal: "p", Session: "s", Tool: "test"})
}

// dirs lists the directories of a tree.
func (x *tree) dirs() (out []string) {
	for line := range strings.Lines(x.looks()) {
		if name, mode, _ := strings.Cut(line, " "); strings.HasPrefix(mode, "d") {
			out = append(out, name)
		}
	}
	return out
}

// recorded lists the directories that the newest change in the store makes, and says whether it has a mark.
func (x *tree) recorded() (made []string, marked bool) {
	x.t.Helper()
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	must(x.t, err)
	defer db.Close()
	page, err := db.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 4})
	must(x.t, err)
	page.Checkpoints = slices.DeleteFunc(page.Checkpoints, func(c checkpoint.Checkpoint) bool { return c.Kind == checkpoint.KindRead })
	if len(page.Checkpoints) == 0 {
		return nil, false
	}
	for _, c := range page.Checkpoints[0].Changes {
		if c.Before.Kind != checkpoint.Dir && c.After.Kind == checkpoint.Dir {
			made = append(made, strings.TrimPrefix(c.Path, x.ws))
		}
	}
	open, err := db.Open(ctx)
	must(x.t, err)
	return made, len(open) > 0
}

// A process is killed before every system call of changes that make directories or take them away. Never is a directory there that its checkpoint,
// and while others are missing its mark, does not tell of; after the next start everything is as before or as it should become, directories
// included; but what others put into such a directory, or made in its place, stays.
func TestKilledMaking(t *testing.T) {
	for step, making := range makings {
		t.Run(step, func(t *testing.T) {
			x := growIn(t, testdir.Disk(t), small) // where a new inode takes the number of one that went
			if x.bestEffort() && strings.HasSuffix(step, "a run") {
				t.Skip("SKIPPED: nothing tells here whether others have a file open that the run appended to")
			}
			making.lay(x)
			k := killedMaking{tree: x, step: step, old: x.looks(), had: x.dirs()}
			kills(t, step, x, func() { making.lay(x) }, k.look) // the trash knows its own
			t.Logf("%d cut with directories, %d taken back", k.cut, k.back)
			if k.back == 0 {
				t.Error("nothing was ever taken back: the test tests nothing")
			}
		})
	}
}

// killedMaking is a tree in which a change is killed.
type killedMaking struct {
	*tree
	step, old string   // the tree before
	had       []string // its directories
	cut, back int      // with a directory of its own half-way; taken back
}

// look looks at the tree after a kill, lets others use what is half made, and starts anew.
func (k *killedMaking) look(n int64, over bool, done string) string {
	t := k.t
	t.Helper()
	var fresh []string
	for _, d := range k.dirs() {
		if !slices.Contains(k.had, d) && !guardfs.ReservedPath(d) {
			fresh = append(fresh, d)
		}
	}
	killed := k.looks()
	var made []string
	marked := false
	if len(fresh) > 0 {
		made, marked = k.recorded()
	}
	for _, d := range fresh {
		told := slices.ContainsFunc(made, func(m string) bool { return d == m || strings.HasPrefix(d, m+"/") })
		if !told && k.step != "bring back what is parked" ||
			!over && len(made) > 1 && !marked && len(fresh) < len(made) {
			t.Fatalf("killed before call %d: %s is there, the checkpoint tells of %v, marked: %v", n, d, made, marked)
		}
	}
	theirs, others := "", ""
	if !over && len(fresh) > 0 && (len(fresh) < len(made) || marked) {
		theirs, others = k.use(fresh[len(fresh)-1], n)
	}
	k.open()
	now := k.looks()
	must(t, k.Close())
	gone := func(p string) bool {
		_, err := os.Stat(k.ws + p)
		return p != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR))
	}
	// An empty directory does not keep a file or link away that was there, whoever made the directory.
	gaveWay := func(p string) bool {
		for ; len(p) > 1; p = filepath.Dir(p) {
			if i, err := os.Lstat(k.ws + p); err == nil {
				return !i.IsDir()
			}
		}
		return false
	}
	if gone(others) && gaveWay(others) {
		others = "" // then all is as before, or as it should become
	}
	switch {
	case gone(theirs) || gone(others):
		t.Fatalf("killed before call %d: what is somebody else's is gone\n%s", n, now)
	case theirs != "" || others != "":
		k.cut++
	case over:
	case now == k.old:
		k.back++
	case now != done: // then all of it
		t.Fatalf("killed before call %d: after the next start\n%s\nit was\n%s\nand should have become\n%s", n, now, k.old, done)
	case len(fresh) > 0:
		k.cut++
	}
	if _, left := k.recorded(); left {
		t.Fatalf("killed before call %d: something is open still", n)
	}
	return killed + "then\n" + now
}

// use has others use the innermost directory that was made, or make it anew, or neither.
func (k *killedMaking) use(dir string, n int64) (theirs, others string) {
	switch n % 3 {
	case 0:
		theirs = dir + "/theirs"
		must(k.t, os.WriteFile(k.ws+theirs, []byte("t"), 0o600))
	case 1:
		if k.bestEffort() {
			break // the new one may get the number of the old one, and nothing else tells
		}
		if os.Remove(k.ws+dir) == nil { // else it holds something already
			others = dir
			testdir.Tick(k.t) // the number of the old one is taken again, so that only the time tells
			must(k.t, os.Mkdir(k.ws+dir, 0o700))
		}
	}
	return theirs, others
}

// A process is killed before every system call of a large copy: after the next start it is there as a
// whole, or not at all, and what was there before is too.
func TestKilledCopying(t *testing.T) {
	saw := bothWays(t, 1)
	for step := range copyings {
		t.Run(step, func(t *testing.T) {
			x := grow(t, tight)
			lay := func() { // the trash knows its own
				x.write("large", large)
				x.write("small", "small\n")
				if step == "copy large back" {
					x.needsTrash()
					must(t, x.does(copyings["copy large"]))
				}
			}
			kills(t, step, x, lay, func(n int64, _ bool, _ string) string {
				x.open()
				defer x.Close()
				made := false
				switch small, err := os.ReadFile(x.ws + "/small"); {
				case err != nil || string(small) != "small\n" && string(small) != large:
					t.Fatalf("call %d: small is %d bytes: %v", n, len(small), err)
				default:
					made = string(small) == large
				}
				if b, err := os.ReadFile(x.ws + "/d/new"); err == nil {
					if made = true; string(b) != large {
						t.Fatalf("call %d: a copy of %d bytes", n, len(b))
					}
				}
				x.has("large", large)
				if left := x.halfWay(); left != nil || strings.Contains(x.looks(), "/.moltis-") {
					t.Fatalf("call %d: left: %v\n%.500s", n, left, x.looks())
				}
				return saw(made)
			})
		})
	}
}

// mine is a tail that takes more than one page.
var mine = strings.Repeat("mine, a line\n", 700)

// A process is killed before every system call of an append: after the next start all of the tail is
// there, or nothing of it.
func TestKilledAppending(t *testing.T) {
	saw := bothWays(t, 1)
	for step := range appendings {
		t.Run(step, func(t *testing.T) {
			x := grow(t, tight)
			if x.bestEffort() && step != "append" {
				t.Skip("SKIPPED: nothing tells here whether others have the file open")
			}
			lay := func() { // a copy of it would be another file
				x.write("large", large)
				if step != "append" {
					must(t, x.does(appendings["append"]))
				}
				if step == "append again" {
					must(t, x.does(appendings["cut the tail"]))
				}
			}
			kills(t, step, x, lay, func(n int64, _ bool, _ string) string {
				x.open()
				defer x.Close()
				b, err := os.ReadFile(x.ws + "/large")
				must(t, err)
				made := string(b) == large+mine
				if !made && string(b) != large || x.halfWay() != nil {
					t.Fatalf("call %d: %d bytes; open: %v", n, len(b), x.halfWay())
				}
				return saw(made)
			})
		})
	}
}

// A process is killed before every system call of a deletion that parks and of its undo: after the next start the tree is whole, in its place or in
// the trash, and the trash says which.
func TestKilledParking(t *testing.T) {
	grow(t, nil).needsTrash()
	saw := bothWays(t, 4)
	for step := range parkings {
		t.Run(step, func(t *testing.T) {
			x := grow(t, small)
			var whole string
			lay := func() { // the trash knows its own
				x.write("t/big.bin", strings.Repeat("b", 101))
				x.write("t/sub/b.txt", "b\n")
				whole = x.looks()
				if step == "bring back" {
					must(t, x.does(deletes("t")))
				}
			}
			kills(t, step, x, lay, func(n int64, _ bool, _ string) string {
				x.open()
				defer x.Close()
				page, err := x.call("s").Trash(ctx, checkpoint.TrashFilter{})
				must(t, err)
				there := x.looks() == whole
				files, _ := x.trashed()
				switch {
				case there && len(files) == 0 && len(page.Entries) == 0:
				case !there && len(files) == 1 && len(page.Entries) == 1 && page.Entries[0].Parked == files[0]:
					_, err := x.call("s").Untrash(ctx, page.Entries[0].ID, false)
					if err != nil || x.looks() != whole {
						t.Fatalf("call %d: coming back: %v\n%s", n, err, x.looks())
					}
				default:
					t.Fatalf("call %d: in the tree\n%s\nin the trash %v, listed %+v", n, x.looks(), files, page.Entries)
				}
				return saw(there)
			})
		})
	}
}

// A process that takes back what another has left half-way is killed before its N-th system call: the next one finishes that, and no temporary
// file stays.
func TestKilledTakingBack(t *testing.T) {
	littered := 0
	x := grow(t, nil)
	litter := func() []string {
		names, _ := filepath.Glob(x.ws + "/.moltis-*")
		return names
	}
	lay := func() { // a copy of it would be other files
		x.writeAll("old", "a", "b", "c")
		x.cut("rename", 3, writes("new", "a", "b", "c"))
		for i, name := range []string{"a", "b", "c"} {
			x.has(name, []string{"new", "new", "old"}[i])
		}
	}
	kills(t, "recover", x, lay, func(n int64, _ bool, _ string) string {
		left := len(litter())
		littered += left
		x.open()
		x.haveAll("old", "a", "b", "c")
		must(t, x.Close())
		if names := litter(); names != nil {
			t.Errorf("killed before call %d: %v is left", n, names)
		}
		return fmt.Sprint(left)
	})
	if littered == 0 {
		t.Error("no kill ever left a temporary file: the test tests less than it should")
	}
}

// changing are the calls that a kill can come before and that show.
const changing = " rename link unlink rmdir mkdir symlink write chmod "

// ends has every call fail from the n-th on that changes something, as for a process that is killed. met says
// whether there were so many.
func (c *calls) ends(n int64, run func() error) (met bool, err error) {
	var count atomic.Int64
	var over atomic.Bool
	hook := func(op string) *guardfs.Fault {
		if c.look != nil {
			c.look()
		}
		if strings.Contains(changing, " "+op+" ") && count.Add(1) >= n {
			over.Store(true)
		}
		if over.Load() {
			return &guardfs.Fault{Err: syscall.EIO}
		}
		return nil
	}
	err = c.meet(hook, run)
	return over.Load(), err
}

// On a disk, the temporary directories of these tests lie apart. An ext4 without a journal looks,
// for each new inode, at all that were deleted in the last minute in the same group of the disk.
// These tests delete thousands of files: half of their system time was that, and the tests of other
// packages waited as well. A directory with the T attribute gives each of its own a group of its own.
func TestMain(m *testing.M) {
	remove := testdir.InMemoryUnlessShort()
	dir, err := os.MkdirTemp("", "moltis-fs-tests-")
	if err != nil {
		os.Exit(m.Run())
	}
	if os.Chmod(dir, os.ModeSticky|0o777) == nil && apart(dir) { // ordinary users go through it too
		os.Setenv("TMPDIR", dir) // for children too
	}
	status := m.Run()
	os.RemoveAll(dir)
	remove()
	os.Exit(status)
}

// apart sets the T attribute, where the file system has it.
func apart(dir string) bool {
	const topDirectory = 0x20000 // FS_TOPDIR_FL of linux/fs.h
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	return err == nil && unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topDirectory)) == nil
}

// cutting is an engine of its own over the tree, whose change run cuts off before its n-th call op, as a kill does: none of its
// calls comes about from there on, and its locks go. run returns the newest checkpoint then.
func (x *tree) cutting(op string, n int64) (run func(act) checkpoint.ID) {
	x.t.Helper()
	var count atomic.Int64
	var on, over atomic.Bool
	y := *x
	y.cfg.RequireApproval = false
	y.fault = func(called string) *guardfs.Fault {
		if on.Load() && called == op && count.Add(1) == n {
			over.Store(true)
		}
		if over.Load() {
			return &guardfs.Fault{Err: syscall.EIO}
		}
		return nil
	}
	y.open()
	return func(do act) checkpoint.ID {
		x.t.Helper()
		defer y.Close()
		on.Store(true)
		y.does(do) //nolint:errcheck // it is cut off
		if !over.Load() {
			x.t.Fatalf("%s: there is no %d. call", op, n)
		}
		page, err := y.call("s").Checkpoints(ctx, checkpoint.Filter{AllSessions: true, Limit: 1})
		must(x.t, err)
		return page.Checkpoints[0].ID
	}
}

func (x *tree) cut(op string, n int64, do act) checkpoint.ID {
	x.t.Helper()
	return x.cutting(op, n)(do)
}

// halfWay lists what is marked as half-way.
func (x *tree) halfWay() []checkpoint.ID {
	x.t.Helper()
	ids, err := x.HalfWay(ctx)
	must(x.t, err)
	return ids
}

// copyAll copies a directory with all that is in it, modes and times too. No process is started for
// it: one that has just been forked holds for a moment the locks of whoever runs beside it.
func copyAll(t testing.TB, from, to string) {
	t.Helper()
	times := map[string]time.Time{}
	must(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		at := to + path[len(from):]
		switch {
		case d.IsDir():
			times[at] = info.ModTime()
			err = cmp.Or(os.MkdirAll(at, 0o700), os.Chmod(at, info.Mode()))
		case d.Type()&fs.ModeSymlink != 0:
			var target string
			if target, err = os.Readlink(path); err == nil {
				err = os.Symlink(target, at)
			}
		default:
			var b []byte
			if b, err = os.ReadFile(path); err == nil {
				err = cmp.Or(os.WriteFile(at, b, 0o600), os.Chmod(at, info.Mode()), os.Chtimes(at, time.Time{}, info.ModTime()))
			}
		}
		return err
	}))
	for at, when := range times {
		must(t, os.Chtimes(at, time.Time{}, when))
	}
}

// trade makes, in turn t, a directory of the file "file" and of the link "link", and files of the directories "dir" and "hollow". It returns the tree before and after.
func (x *tree) trade() (old, traded string) {
	return x.replace("file/1", "file/deep/2", "dir", "hollow", "link/3", "dirlink/3", "dirlink/deep/4")
}

// goesAndComes removes, in turn t, files, links and directories, and makes others with other names. It returns the tree before and after.
func (x *tree) goesAndComes() (old, now string) {
	return x.replace("new/1", "new/deep/2", "top", "new/deep/3", "other/4")
}

// replace removes, in turn t, what it has made before, and makes the files names. It returns the tree before and after.
func (x *tree) replace(names ...string) (old, now string) {
	x.t.Helper()
	x.write("same", "same\n")
	x.write("led/3", "theirs\n")
	c := x.call("s")
	_, err := c.ChangeFiles(ctx, engine.Files{Paths: []string{x.ws + "/file", x.ws + "/dir/a", x.ws + "/dir/sub/b", x.ws + "/dir/l", x.ws + "/link",
		x.ws + "/dirlink", x.ws + "/hollow/x"}, Parents: true, Next: func(ts []*engine.Target) error {
		for _, t := range ts {
			name := t.Path[len(x.ws)+1:]
			t.After = engine.After{Kind: guardfs.KindFile, Content: []byte(name + "\n")}
			if to := map[string]string{"dir/l": "a", "link": "same", "dirlink": "led"}[name]; to != "" {
				t.After = engine.After{Kind: guardfs.KindSymlink, Target: to}
			}
		}
		return nil
	}})
	must(x.t, err)
	old = x.looks()
	c.Turn = "t"
	c.BeginTurn(ctx)
	_, err = c.Undo(ctx, engine.RestoreOptions{}) // so that they are gone, and the store has them
	must(x.t, err)
	for _, name := range names {
		x.puts("t", name, "new "+name+"\n")
	}
	return old, x.looks()
}

// puts writes a file by way of the engine, in a turn.
func (x *tree) puts(turn, name, content string) {
	x.t.Helper()
	c := x.call("s")
	c.Turn = turn
	must(x.t, errOf(c.ChangeFiles(ctx, x.becomes(content, name))))
}

// makings are changes that make directories, or take them away, and what is there before them.
var makings = map[string]struct {
	lay func(x *tree)
	run act
}{
	"write":            {func(x *tree) { x.write("f", "f\n") }, writes("new\n", "x/y/z/f")},
	"make directories": {func(x *tree) { x.write("f", "f\n") }, mkdirs("x/y/z")},
	"move a tree": {func(x *tree) {
		x.write("d/a/f", "f\n")
		x.write("d/g", "g\n")
	}, moves("d", "x/y/d")},
	"move a tree back": {func(x *tree) {
		x.write("d/a/f", "f\n")
		must(x.t, x.does(moves("d", "e")))
	}, undoes},
	"take back": {func(x *tree) { x.put("s", "x/y/z/f", "new\n") }, undoes},
	"bring back what is parked": {func(x *tree) {
		x.needsTrash()
		x.write("u/v/t/big.bin", strings.Repeat("b", 101))
		must(x.t, x.does(deletes("u/v/t")))
		must(x.t, os.RemoveAll(x.ws+"/u"))
	}, undoes},
	"take back a run": {func(x *tree) { x.run() }, undoes},
	"bring back a run": {func(x *tree) {
		x.run()
		must(x.t, x.does(undoes))
	}, redoes},
	"rewind": {func(x *tree) { x.goesAndComes() }, rewinds},
	"rewind back": {func(x *tree) {
		x.goesAndComes()
		must(x.t, x.does(rewinds))
	}, undoes},
	"delete a tree": {func(x *tree) {
		x.write("t/a/1", "1\n")
		must(x.t, os.Symlink("nowhere", x.ws+"/t/a/link"))
	}, deletes("t")},
	"what a program left":           {(*tree).hasRun, leaves},
	"take back what a program left": {func(x *tree) { x.hasRun(); must(x.t, x.does(leaves)) }, undoes},
	"what a program left, again": {func(x *tree) {
		x.hasRun()
		must(x.t, x.does(leaves))
		must(x.t, x.does(undoes))
	}, redoes},
	"delete directories alone": {func(x *tree) { must(x.t, os.MkdirAll(x.ws+"/t/a/b", 0o750)) }, deletes("t")},
}

// copyings are copies of what the store can't hold, and what takes one back.
var copyings = map[string]act{"copy large": copies("large", "d/new"), "copy large over": copies("large", "small"), "copy large back": undoes}

// appendings are appends in place, and what takes them back.
var appendings = map[string]act{"append": appends("large", mine), "cut the tail": undoes, "append again": redoes}

// parkings are a deletion that parks, and its undo.
var parkings = map[string]act{"park": deletes("t"), "bring back": undoes}

// passages are changes of several steps, with what is there before them.
var passages = map[string]struct {
	lay []string
	run act
}{
	"a file with its directories": {[]string{"f"}, writes("new\n", "x/y/f")},
	"files, new and old":          {[]string{"e", "keep/k", "d/a"}, writes("new\n", "e", "keep/k", "d/new", "x/y/f", "x/g")},
	"directories":                 {[]string{"f"}, mkdirs("x/y")},
	"a tree moves":                {[]string{"d/b/c", "e", "d/a"}, moves("d", "x/y/d")},
	"a file moves over another":   {[]string{"e", "d/f"}, moves("d/f", "e")},
	"a tree goes":                 {[]string{"d/b/c", "e", "d/a", "d/b/e"}, deletes("d")},
}

// objects is the tree by the identity of each object, contents included where they are not large.
func (x *tree) objects() string {
	x.t.Helper()
	var out strings.Builder
	must(x.t, filepath.WalkDir(x.ws, func(p string, d fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(p, &st)
		}
		fmt.Fprintf(&out, "%s %d %o %d ", p[len(x.ws):], st.Ino, st.Mode, st.Size)
		if d.Type().IsRegular() && st.Size < 1<<20 {
			b, _ := os.ReadFile(p)
			fmt.Fprintf(&out, "%q", b)
		}
		out.WriteString("\n")
		return err
	}))
	return out.String()
}
