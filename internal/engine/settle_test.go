package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

// What can't be taken back after a crash stays marked, so that the next start tries again.
func TestMarkStaysWhenTakingBackFails(t *testing.T) {
	ctx := context.Background()
	cfg := config.Default().Tools.FS
	cfg.Checkpoint.Durability = "relaxed"
	e, err := OpenOver(Options{Config: cfg, Judge: anything{}, DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	db, err := e.points.open()
	if err != nil {
		t.Fatal(err)
	}
	// A number that no checkpoint has here: of another store.
	other, err := checkpoint.Open(t.TempDir(), checkpoint.Options{Durability: checkpoint.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	saved, err := other.Save(ctx, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindManual, Principal: "p", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	in, err := db.Intend(saved.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Leave(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.recover(ctx, time.Now().Add(e.lockWait)); err != nil {
			t.Fatal(err)
		}
		if ids, err := checkpoint.Unfinished(e.points.dir); err != nil || !slices.Equal(ids, []checkpoint.ID{saved.ID}) {
			t.Errorf("unfinished are %v, %v", ids, err)
		}
	}
}

// What a change that failed half-way has to put back is put back over what the change made, and over nothing else.
func TestPutBackOverOursOnly(t *testing.T) {
	ctx := context.Background()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default().Tools.FS
	e, err := OpenOver(Options{Config: cfg, Judge: anything{}, DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ours := func(b *guardfs.Before) bool { return b.Hash == HashOf([]byte("ours")) }
	before := func(s string) *guardfs.Before {
		return &guardfs.Before{Exists: true, Content: []byte(s), Hash: HashOf([]byte(s)), Info: guardfs.Info{Kind: guardfs.KindFile, Size: int64(len(s))}, Meta: guardfs.Metadata{Mode: 0o644}}
	}
	link := &guardfs.Before{Exists: true, Content: []byte("elsewhere"), Info: guardfs.Info{Kind: guardfs.KindSymlink}}
	for _, c := range []struct {
		name, now string
		was       *guardfs.Before
		want      string // "-" is absence
		fails     bool
	}{
		{"ours", "ours", before("was"), "was", false},
		{"gone", "-", before("was"), "was", false},
		{"as it was", "was", before("was"), "was", false},
		{"theirs", "theirs", before("was"), "theirs", true},
		{"theirs where nothing was", "theirs", &guardfs.Before{}, "theirs", true},
		{"ours where nothing was", "ours", &guardfs.Before{}, "-", false},
		{"theirs where a link was", "theirs", link, "theirs", true},
	} {
		path := filepath.Join(dir, "f")
		os.Remove(path)
		if c.now != "-" {
			if err := os.WriteFile(path, []byte(c.now), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := e.become(ctx, path, "", ours, c.was)
		var conflict *guardfs.ConflictError
		got := "-"
		if b, rerr := os.ReadFile(path); rerr == nil {
			got = string(b)
		}
		if got != c.want || errors.As(err, &conflict) != c.fails || !c.fails && err != nil {
			t.Errorf("%s: there is %q, should %q: %v", c.name, got, c.want, err)
		}
	}
}

// Of a change that a dead process left half-way, the paths that it changed become what they were, and its mark goes. A path that was changed
// since stays, though it looks like what the change made of it, and so does the mark.
func TestHalfAChangeIsTakenBack(t *testing.T) {
	ctx := context.Background()
	for _, wentOn := range []bool{false, true} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		cfg := config.Default().Tools.FS
		cfg.Checkpoint.Durability = "relaxed"
		e, err := OpenOver(Options{Config: cfg, Judge: anything{}, DataDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		db, err := e.points.open()
		if err != nil {
			t.Fatal(err)
		}
		save := func(session, before, after string, names ...string) checkpoint.ID {
			t.Helper()
			op := checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p", Session: session}
			for _, name := range names {
				state := func(s string) checkpoint.State {
					return checkpoint.State{Kind: checkpoint.File, Mode: 0o644, UID: uint32(max(os.Getuid(), 0)), GID: uint32(max(os.Getgid(), 0)), Size: int64(len(s)), Hash: HashOf([]byte(s))}
				}
				op.Changes = append(op.Changes, checkpoint.Change{Path: filepath.ToSlash(filepath.Join(dir, name)), Role: "target",
					Before: state(before), Content: []byte(before), After: state(after), AfterContent: []byte(after)})
			}
			saved, err := db.Save(ctx, op)
			if err != nil {
				t.Fatal(err)
			}
			return saved.ID
		}
		id := save("s", "old", "new", "a", "b")
		in, err := db.Intend(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Leave(); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"a": "old", "b": "old"} // a was changed, b was not
		if wentOn {
			save("z", "new", "newer", "a")
			save("z", "newer", "new", "a")
			want["a"] = "new"
		}
		for name, content := range map[string]string{"a": "new", "b": "old"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.recover(ctx, time.Now().Add(e.lockWait)); err != nil {
			t.Fatal(err)
		}
		for name, content := range want {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != content {
				t.Errorf("changed since: %v: %s holds %q, should %q: %v", wentOn, name, b, content, err)
			}
		}
		op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
		if err != nil || (op.Outcome == checkpoint.Aborted) == wentOn {
			t.Errorf("changed since: %v: it is %s, %v", wentOn, op.Outcome, err)
		}
	}
}
