//go:build !rooted

package capability

import (
	"encoding/json"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var every = flag.Int64("every", 0, "somebody meddles before each so manieth system call; 0: what is enough for a test")

// arena is what a race is about: R with d/f that may be changed, O and R/secret that may not, each
// with a file f, and a link to one of them.
type arena struct{ root, outside, victim string }

func (a arena) lay(t *testing.T) {
	t.Helper()
	for _, name := range []string{"d", "b", "a", "l", "lf"} {
		must(t, os.RemoveAll(filepath.Join(a.root, name)))
	}
	r := room{root: a.root}
	r.write(t, "d/f", "OURS")
	r.write(t, "a", "OURS")
	for name, to := range map[string]string{"l": a.victim, "lf": a.victim + "/f"} {
		must(t, os.Symlink(to, filepath.Join(a.root, name)))
	}
}

// held is what lies at the places that nobody may change, and what of it has come to light.
func (a arena) held(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(a.root, func(name string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		if strings.HasPrefix(name, a.root+"/secret/") || strings.Contains(string(b), "VICTIM") {
			out[name] = string(b)
		}
		return err
	})
	must(t, err)
	all, err := os.ReadDir(a.outside)
	must(t, err)
	for _, e := range all {
		b, err := os.ReadFile(filepath.Join(a.outside, e.Name()))
		must(t, err)
		out["outside "+e.Name()] = string(b)
	}
	return out
}

// swap lets two names below R trade places.
func (a arena) swap(x, y string) error {
	return unix.Renameat2(unix.AT_FDCWD, a.root+"/"+x, unix.AT_FDCWD, a.root+"/"+y, unix.RENAME_EXCHANGE)
}

// races are the rows D01 to D14 of the catalogue that capabilities can meet: somebody makes swap[0]
// and swap[1] trade places, or makes a file where one is to go. bad is the usual mistake: what a
// program does between its look and the end when it goes by names.
var races = []struct {
	name, tool, args string
	swap             [2]string
	bad              func(root string) error
}{
	{"a file is deleted, its directory becomes a link", "filesystem.delete", `{"path":"R/d/f"}`, [2]string{"d", "l"},
		func(r string) error { return os.Remove(r + "/d/f") }},
	{"a file is moved, its directory becomes a link", "filesystem.move", `{"source":"R/d/f","destination":"R/b"}`,
		[2]string{"d", "l"}, func(r string) error { return os.Rename(r+"/d/f", r+"/b") }},
	{"a file is moved to where a link is by then", "filesystem.move",
		`{"source":"R/a","destination":"R/d/f","overwrite":true}`, [2]string{"d", "l"},
		func(r string) error { return os.Rename(r+"/a", r+"/d/f") }},
	{"a file is copied, its directory becomes a link", "filesystem.copy", `{"source":"R/d/f","destination":"R/b"}`,
		[2]string{"d", "l"}, func(r string) error { return copyByName(r+"/d/f", r+"/b") }},
	{"a file is copied that becomes a link", "filesystem.copy", `{"source":"R/d/f","destination":"R/b"}`,
		[2]string{"d/f", "lf"}, func(r string) error { return copyByName(r+"/d/f", r+"/b") }},
	{"a file is copied over what becomes a link", "filesystem.copy",
		`{"source":"R/a","destination":"R/d/f","overwrite":true}`, [2]string{"d/f", "lf"},
		func(r string) error { return copyByName(r+"/a", r+"/d/f") }},
	{"a file is appended to that becomes a link", "filesystem.append", `{"path":"R/d/f","content":"EVIL"}`,
		[2]string{"d/f", "lf"}, func(r string) error { return appendByName(r + "/d/f") }},
	{"a file is appended to, its directory becomes a link", "filesystem.append", `{"path":"R/d/f","content":"EVIL"}`,
		[2]string{"d", "l"}, func(r string) error { return appendByName(r + "/d/f") }},
	{"a file is written that becomes a link", "filesystem.write", `{"path":"R/d/f","content":"EVIL"}`,
		[2]string{"d/f", "lf"}, func(r string) error { return os.WriteFile(r+"/d/f", []byte("EVIL"), 0o600) }},
	{"a file comes back from the trash to where a link is by then", "filesystem.restore", `{"path":"TRASHED"}`,
		[2]string{"d", "l"}, func(r string) error { return copyByName(r+"/a", r+"/d/g") }},
}

func copyByName(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

func appendByName(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, "EVIL")
	f.Close()
	return err
}

// Somebody makes two names trade places before the N-th system call of a capability: whatever N is,
// nothing that may not be touched is, and nothing of it comes to light. The control is the usual
// mistake under the same hand, which has to fall.
func TestRaces(t *testing.T) {
	t.Parallel()
	var hook atomic.Pointer[func()]
	r := open(t, func(c *config.Config, h *engine.Host) {
		c.Tools.FS.DenyPaths = []string{c.Tools.FS.WorkspaceRoot + "/secret/**"}
		h.Approver = decides(approval.Approved)
		h.Fault = func(string) *guardfs.Fault {
			if f := hook.Load(); f != nil {
				(*f)()
			}
			return nil
		}
	})
	outside, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	met := 0
	for v, victim := range []string{outside, r.root + "/secret"} {
		a := arena{r.root, outside, victim}
		reset := func() {
			a.lay(t)
			r.write(t, "secret/f", "VICTIM")
			(room{root: outside}).write(t, "f", "VICTIM")
		}
		for i, c := range races {
			if *every == 0 && i%2 != v { // in the short form each has one of the two
				continue
			}
			reset()
			before := a.held(t)
			must(t, a.swap(c.swap[0], c.swap[1]))
			if err := c.bad(r.root); err != nil || maps.Equal(a.held(t), before) {
				t.Errorf("%s: the control survived: %v", c.name, err)
			}
			os.Remove(victim + "/g") //nolint:errcheck // that the control made
			stride := *every
			if stride == 0 {
				stride = 11
			}
			for n := stride; ; n += stride {
				reset()
				args := strings.ReplaceAll(c.args, `"R/`, `"`+r.root+`/`)
				if c.tool == "filesystem.restore" {
					r.write(t, "d/g", "OURS")
					p, _ := r.call(t, "filesystem.delete", `{"path":"R/d/g"}`)["trash_path"].(string)
					args = strings.ReplaceAll(args, "TRASHED", p)
				}
				var count atomic.Int64
				meddle := func() {
					if count.Add(1) == n && a.swap(c.swap[0], c.swap[1]) == nil {
						met++
					}
				}
				hook.Store(&meddle)
				got := r.call(t, c.tool, args)
				hook.Store(nil)
				if now := a.held(t); !maps.Equal(now, before) {
					t.Fatalf("%s, before call %d: %v\nthere is %v", c.name, n, got, now)
				}
				if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), "VICTIM") {
					t.Fatalf("%s, before call %d: %s %v", c.name, n, text, err)
				}
				if count.Load() < n {
					if got["recovery"] != nil {
						t.Errorf("%s with nobody about: %v", c.name, got)
					}
					break
				}
			}
		}
	}
	t.Logf("somebody meddled %d times", met)
	if met < len(races) {
		t.Error("that is too seldom")
	}
}
