//go:build linux

package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"hash/fnv"
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

	"golang.org/x/sys/unix"

	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var (
	every    = flag.Int64("every", 0, "a kill before, or a fault at, each so manieth call; 0: what a test takes for enough")
	from     = flag.Int64("from", 0, "the first of those calls; 0: another one with each commit")
	realOnly = flag.Bool("real", false, "no kill is played")
)

// realKills is how many processes are really killed in a change, spread over its calls. The other
// kills are played, which takes a tenth of the time and has to come to the same.
const realKills = 5

// deed is what a process does until it is killed.
type deed struct {
	change func(*config.FS)
	start  bool // its start is part of it; run may be nil
	run    func(e *engine.Engine, ws string) error
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
	for _, tests := range []map[string]func(*engine.Engine, string) error{appendings, copyings} {
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
		err = d.run(e, dir+"/ws")
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
const killRounds = 15

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
	begin := first(stride)
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

// inOrder sorts lines: random names come in any order.
func inOrder(text string) string {
	lines := slices.Sorted(strings.Lines(text + "\n"))
	return strings.Join(lines, "")
}

// first is the call that a test of each so manieth begins with: another one with each commit, so
// that in time all are met.
func first(stride int64) int64 {
	if *from != 0 {
		return *from
	}
	return 1 + int64(commit()%uint64(stride))
}

var commit = sync.OnceValue(func() uint64 {
	out, _ := exec.Command("git", "rev-parse", "HEAD").Output() //nolint:errcheck // then it is always the same
	h := fnv.New64a()
	h.Write(out)
	return h.Sum64()
})
