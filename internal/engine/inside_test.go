package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/guardfs"
)

// puts is the step that puts a file in the place of another one.
func puts(path string) Step {
	file := State{State: checkpoint.State{Kind: checkpoint.File}}
	return Step{Action: Put, Path: path, Before: file, After: file}
}

// A plan of which any part of a step is another is another plan; and no field can pass for its neighbour.
func FuzzPlan(f *testing.F) {
	f.Add("/a", "/b", "c", "d", uint32(1))
	f.Add("", "1:/a", "4:file", "0:", uint32(0))
	f.Fuzz(func(t *testing.T, a, b, c, d string, n uint32) {
		base := func() Plan {
			return Plan{Steps: []Step{
				{Path: a, Action: Rename, To: b, Before: State{State: checkpoint.State{Hash: c, Target: d}}},
				{Path: b, Action: Put, After: State{State: checkpoint.State{Hash: d, Target: c, UID: n, Xattrs: map[string][]byte{a: []byte(b)}}}},
			}}
		}
		x := n + 1
		changes := []func(p *Plan){
			func(*Plan) {},
			func(p *Plan) { p.Steps[0].Path += "x" },
			func(p *Plan) { p.Steps[0].Path, p.Steps[0].To = p.Steps[0].Path+"x", p.Steps[0].To+"x" },
			func(p *Plan) { p.Steps[0].To += "x" },
			func(p *Plan) { p.Steps[0].Action = Remove },
			func(p *Plan) { p.Steps[0].Exact = true },
			func(p *Plan) { p.Steps[0].Before.Kind = checkpoint.Dir },
			func(p *Plan) { p.Steps[0].Before.Hash += "x" },
			func(p *Plan) { p.Steps[0].Before.Target += "x" },
			func(p *Plan) { p.Steps[0].Before.ID.Ino++ },
			func(p *Plan) { p.Steps[1].After.Kind = checkpoint.Dir },
			func(p *Plan) { p.Steps[1].After.Hash += "x" },
			func(p *Plan) { p.Steps[1].After.Target += "x" },
			func(p *Plan) { p.Steps[1].After.Mode = 0o644 },
			func(p *Plan) { p.Steps[1].After.UID = x },
			func(p *Plan) { p.Steps[1].After.GID = x },
			func(p *Plan) { p.Steps[1].After.ModTime = time.Unix(int64(x), 1) },
			func(p *Plan) { p.Steps[1].After.Xattrs[a+"x"] = nil },
			func(p *Plan) { p.Steps[1].After.Xattrs[a] = []byte(b + "x") },
			func(p *Plan) { p.Steps = p.Steps[:1] },
			func(p *Plan) { p.Steps = p.Steps[1:] },
			func(p *Plan) { p.Steps = append(p.Steps, p.Steps[1]) },
			func(p *Plan) { p.Steps[0], p.Steps[1] = p.Steps[1], p.Steps[0] },
		}
		seen := map[string]int{}
		for i, change := range changes {
			p := base()
			change(&p)
			digest := p.Digest(&Call{Tool: "t"})
			if j, twice := seen[digest]; twice {
				t.Fatalf("changes %d and %d have one digest", i, j)
			}
			seen[digest] = i
		}
		p := base()
		for i, c := range []*Call{{Tool: a + "x"}, {Tool: a, Principal: "x"}, {Tool: a, Session: "x"}} {
			digest := p.Digest(c)
			if j, twice := seen[digest]; twice && a != "" {
				t.Fatalf("calls %d and %d have one digest", i, j)
			}
			seen[digest] = i
		}
	})
}

// The content of a file counts, and nothing else of it: a touch, or another mode, makes no approval stale.
func TestDigestOfATouchedFile(t *testing.T) {
	p := Plan{Steps: []Step{puts("/f")}}
	was := p.Digest(&Call{})
	s := &p.Steps[0].Before
	s.ModTime, s.Mode, s.ID = time.Now(), 0o600, guardfs.Identity{Ino: 7}
	if p.Digest(&Call{}) != was {
		t.Error("a touched file is another plan")
	}
	if p.exceeds(&Plan{Steps: []Step{puts("/f"), puts("/g")}}) || !p.exceeds(&Plan{Steps: []Step{puts("/g")}}) {
		t.Error(fmt.Sprint("adds: ", p.Paths()))
	}
}

// A lock that somebody never gives back is no hang: the change is refused, with the name of who has it.
func TestALockThatIsHeld(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	data := t.TempDir()
	cfg := config.Default().Tools.FS
	cfg.RequireApproval = false
	e, err := OpenOver(Options{Config: cfg, Judge: anything{}, DataDir: data})
	must(t, err)
	defer e.Close()
	e.lockWait = 50 * time.Millisecond
	file := filepath.Join(root, "f")
	change := func() error {
		_, err := e.Begin(&Call{Tool: "Write", Session: "secret"}).ChangeFiles(context.Background(), Files{Paths: []string{file}, Next: func(ts []*Target) error {
			ts[0].After = After{Kind: guardfs.KindFile, Content: []byte("x")}
			return nil
		}})
		return err
	}
	place, err := e.tree.Entry(file)
	must(t, err)
	defer place.Close()
	others, err := guardfs.OpenLocks(filepath.Join(data, "locks"))
	must(t, err)
	unlock, err := others.For("a backup").Lock(context.Background(), place.LockKey())
	must(t, err)
	var locked *guardfs.LockedError
	if err := change(); !errors.As(err, &locked) || !strings.HasSuffix(locked.Holder, ", a backup") {
		t.Errorf("while it is held: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is there")
	}
	unlock()
	if err := change(); err != nil {
		t.Errorf("when it is free: %v", err)
	}
	must(t, errors.Join(os.Remove(file), os.RemoveAll(filepath.Join(data, "locks"))))
	if err := change(); !errors.Is(err, ErrHost) {
		t.Errorf("a data directory that is gone is not the agent's file: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(data, "locks"), nil, 0o600))
	if err := change(); !errors.Is(err, ErrHost) {
		t.Errorf("locks that can't be opened are not the agent's file: %v", err)
	}
}

// An approver has all of his time beside that of the call.
func TestTimeFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked, changes bool
		tier           approval.Tier
		want           time.Duration
	}{
		{true, true, "", 3 * time.Minute}, {true, false, "", time.Minute},
		{false, true, "", time.Minute}, {false, true, approval.TierAsk, 3 * time.Minute},
	} {
		e := &Engine{cfg: config.FS{RequireApproval: c.asked, ApprovalTimeout: config.Duration(2 * time.Minute)}}
		if got := e.TimeFor(c.changes, c.tier); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// anything allows everything.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }

func (anything) Dir(string, ...string) guardfs.DirVerdict { return guardfs.DirVerdict{All: true} }

// nothing allows nothing.
type nothing struct{ anything }

func (nothing) Judge(guardfs.Object, guardfs.Access) error { return os.ErrPermission }

// The next start removes the names that a killed process gave while it made a change ready, in directories that nobody changes too; where
// policy does not let it, that is left to another start. What no record names stays.
func TestTheNextStartRemovesWhatWasStaged(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	data := t.TempDir()
	const tag = "0123456789abcdef"
	record := filepath.Join(data, journalName, tag)
	litter := []string{"a/" + guardfs.TempName(tag, 0), "b/" + guardfs.TempName(tag, 1), "b/" + guardfs.TempName(tag, 2) + "/in/it"}
	stay := []string{"a/f", "a/" + guardfs.TempName(tag, 7), "a/" + guardfs.TempName("fedcba9876543210", 0)}
	for _, name := range slices.Concat(litter, stay) {
		name = filepath.Join(root, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("x"), 0o600)))
	}
	lines := ""
	for n, beside := range []string{"/a/f", "/b/gone", "/b/gone", "/removed/f"} {
		lines += `"` + root + beside + `" ` + guardfs.TempName(tag, n) + "\n"
	}
	must(t, errors.Join(os.MkdirAll(filepath.Dir(record), 0o700), os.WriteFile(record, []byte(lines+`"cut`), 0o600)))
	there := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	for _, judge := range []guardfs.Judge{nothing{}, anything{}} {
		e, err := OpenOver(Options{Config: config.Default().Tools.FS, Judge: judge, DataDir: data})
		must(t, err)
		e.Close()
		_, denied := judge.(nothing)
		for _, name := range litter {
			if there(filepath.Join(root, name)) != denied {
				t.Errorf("denied: %v: %s is there: %v", denied, name, !denied)
			}
		}
		if there(record) != denied {
			t.Errorf("denied: %v: the record is there: %v", denied, !denied)
		}
		for _, name := range stay {
			if !there(filepath.Join(root, name)) {
				t.Errorf("%s is gone", name)
			}
		}
	}
}

// A file that could not be put back in its place is listed as long as it is there, and can be removed.
func TestKept(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	f, err := guardfs.New(guardfs.Options{Judge: anything{}, Journal: guardfs.OpenJournal(filepath.Join(dir, journalName))})
	must(t, err)
	defer f.Close()
	theirs := filepath.Join(dir, guardfs.TempName("fedcba9876543210", 0))
	must(t, os.WriteFile(theirs, []byte("theirs"), 0o600))
	place, err := f.EntryLink(filepath.Join(dir, "f"))
	must(t, err)
	defer place.Close()
	temp, err := place.Temp(filepath.Base(theirs))
	must(t, err)
	defer temp.Close()
	_, err = temp.Preserve()
	must(t, err)
	for _, remove := range []bool{false, true, false} {
		kept, err := Kept(t.Context(), dir, Location{}, remove)
		must(t, err)
		if len(kept) == 1 && kept[0].Of == filepath.Join(dir, "f") {
			if b, err := os.ReadFile(kept[0].Path); remove == (err == nil) || !remove && string(b) != "theirs" {
				t.Errorf("remove %v: %q %v", remove, b, err)
			}
		} else if len(kept) > 0 || remove {
			t.Errorf("remove %v: %+v", remove, kept)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, journalName, "kept", "*")); !remove && (len(left) > 0) != (len(kept) > 0) {
			t.Errorf("records %v of %v", left, kept)
		}
	}
}
