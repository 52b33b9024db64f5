package races

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file that may be seen and changed holds ours; one that may be neither holds victim, in its name too.
const (
	ours   = "OURS"
	victim = "VICTIM"
)

// An arena is a tree under attack. ws is allowed but for ws/secret; out is not.
type arena struct {
	dir  string
	race *race

	wait, waits, end atomic.Bool
	swaps            atomic.Int64
	done             chan struct{}
}

func (a *arena) ws(name string) string { return a.dir + "/ws/" + name }

// victims are the places that nobody may touch.
func (a *arena) victims() []string { return []string{a.ws("secret"), a.dir + "/out"} }

// newArena lays the tree of a race and lets somebody loose in it.
func newArena(t *testing.T, r *race) *arena {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	a := &arena{dir: dir, race: r, done: make(chan struct{})}
	must(t, os.Mkdir(dir+"/ws", 0o755))
	a.layVictims(t)
	a.mend(t)
	go a.swap()
	t.Cleanup(a.stop)
	return a
}

func (a *arena) stop() { a.end.Store(true); <-a.done }

// swap lets the two names trade places until stop; while wait is set it stands still.
func (a *arena) swap() {
	defer close(a.done)
	x, y := a.ws(a.race.swap[0]), a.ws(a.race.swap[1])
	for !a.end.Load() {
		if a.wait.Load() {
			a.waits.Store(true)
			rest(func() bool { return !a.wait.Load() || a.end.Load() })
			a.waits.Store(false)
		}
		if unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, y, unix.RENAME_EXCHANGE) == nil {
			a.swaps.Add(1)
		}
	}
}

// rest waits without sleeping as long as that may be enough.
func rest(over func() bool) {
	for n := 1; !over(); n++ {
		if n%10_000 == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// quietly runs do while nothing trades places.
func (a *arena) quietly(do func()) {
	a.wait.Store(true)
	rest(a.waits.Load)
	do()
	a.wait.Store(false)
	rest(func() bool { return !a.waits.Load() })
}

func (a *arena) layVictims(t *testing.T) {
	t.Helper()
	for _, dir := range a.victims() {
		must(t, os.RemoveAll(dir))
		for _, name := range []string{"f", victim} {
			lay(t, dir+"/"+name, victim)
		}
	}
}

func lay(t *testing.T, name, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	if err == nil {
		err = os.WriteFile(name, []byte(content), 0o644)
	}
	must(t, err)
}

// mend puts every entry of the race's tree where it was at the start, if it is not: an attack whose
// link was used up is none. Nothing trades places meanwhile.
func (a *arena) mend(t *testing.T) {
	t.Helper()
	x, y := a.ws(a.race.swap[0]), a.ws(a.race.swap[1])
	if !a.whole(a.race.swap[0]) {
		_ = unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, y, unix.RENAME_EXCHANGE)
	}
	for _, e := range a.race.tree {
		name, how, what := cut(e)
		if a.is(name, how, what) {
			continue
		}
		p := a.ws(name)
		err := os.RemoveAll(p)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(p), 0o755)
		}
		switch {
		case err != nil:
		case how == "=>":
			err = os.Symlink(what, p)
		case how == "~":
			err = os.Link(a.ws(what), p)
		default:
			lay(t, p, what)
		}
		must(t, err)
	}
}

// cut takes an entry of a tree apart: "f = content", "l => where a link leads to", "h ~ what else a
// hard link is called".
func cut(entry string) (name, how, what string) {
	f := strings.Fields(entry)
	return f[0], f[1], f[2]
}

// whole reports whether all entries at a name or below it are as they were laid.
func (a *arena) whole(at string) bool {
	for _, e := range a.race.tree {
		name, how, what := cut(e)
		if (name == at || strings.HasPrefix(name, at+"/")) && !a.is(name, how, what) {
			return false
		}
	}
	return true
}

func (a *arena) is(name, how, what string) bool {
	p := a.ws(name)
	for dir := filepath.Dir(p); dir != a.dir+"/ws"; dir = filepath.Dir(dir) {
		if i, err := os.Lstat(dir); err != nil || !i.IsDir() {
			if err == nil {
				_ = os.Remove(dir)
			}
			return false
		}
	}
	i, err := os.Lstat(p)
	if err != nil {
		return false
	}
	switch how {
	case "=>":
		to, err := os.Readlink(p)
		return err == nil && to == what
	case "~":
		v, err := os.Lstat(a.ws(what))
		return err == nil && os.SameFile(i, v)
	}
	var st unix.Stat_t
	if !i.Mode().IsRegular() || unix.Lstat(p, &st) != nil || st.Nlink != 1 || i.Size() > 1<<12 {
		return false
	}
	b, err := os.ReadFile(p)
	return err == nil && strings.HasPrefix(string(b), ours)
}

// harmed says what happened to a victim, "" when nothing did.
func (a *arena) harmed() string {
	for _, dir := range a.victims() {
		all, err := os.ReadDir(dir)
		if err != nil || len(all) != 2 {
			return fmt.Sprintf("in %s is %v %v", dir, all, err)
		}
		for _, e := range all {
			if b, err := os.ReadFile(dir + "/" + e.Name()); err != nil || string(b) != victim {
				return fmt.Sprintf("%s of %s is now %q %v", e.Name(), dir, b, err)
			}
		}
	}
	return ""
}

// copied says where else what a victim holds has got to: below at, which does not trade places. A
// planted hard link is there without us.
func (a *arena) copied(at string) (where string) {
	hard, _ := os.Lstat(a.ws("secret/f"))
	_ = filepath.WalkDir(at, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == a.ws("secret") {
			if e != nil && e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		i, err := e.Info()
		if err != nil || os.SameFile(i, hard) {
			return nil
		}
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(victim)) {
			where = name
		}
		return nil
	})
	return where
}

// sweep looks at all that is there, then removes what the race did not begin with.
func (a *arena) sweep(t *testing.T) (found string) {
	t.Helper()
	found = a.copied(a.dir + "/ws")
	all, err := os.ReadDir(a.dir + "/ws")
	must(t, err)
	known := map[string]bool{"secret": true}
	for _, e := range a.race.tree {
		name, _, _ := cut(e)
		first, _, _ := strings.Cut(name, "/")
		known[first] = true
	}
	for _, e := range all {
		if !known[e.Name()] {
			must(t, os.RemoveAll(a.ws(e.Name())))
		}
	}
	a.mend(t)
	return found
}
