package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

// A change of several paths that was taken back, or could not all be, and of which the store can't be told so, stays marked for the
// next start: the store would take it for made. One that was made needs no such word.
func TestMarkStaysWhenSettlingFails(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		outcome checkpoint.Outcome
		closed  bool // the store can't be told any more
		stays   bool
	}{
		{checkpoint.Committed, false, false}, {checkpoint.Aborted, false, false}, {checkpoint.Foreign, false, true},
		{checkpoint.Committed, true, false}, {checkpoint.Aborted, true, true}, {checkpoint.Foreign, true, true},
	} {
		cfg := config.Default().Tools.FS
		cfg.Checkpoint.Durability = "relaxed"
		e, err := Open(Options{Config: cfg, Judge: anything{}, DataDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		db, err := e.points.open()
		if err != nil {
			t.Fatal(err)
		}
		edit := func(path string) checkpoint.Change {
			return checkpoint.Change{Path: path, Role: "target", After: checkpoint.State{Kind: checkpoint.File, Size: 1}, AfterContent: []byte("1")}
		}
		saved, err := db.Save(ctx, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p", Session: "s", Changes: []checkpoint.Change{edit("/w/a"), edit("/w/b")}})
		if err != nil {
			t.Fatal(err)
		}
		p := &point{e: e, db: db, id: saved.ID}
		if p.intent, err = db.Intend(saved.ID); err != nil {
			t.Fatal(err)
		}
		if c.closed {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		p.settle(ctx, c.outcome)
		ids, err := checkpoint.Unfinished(e.points.dir)
		if err != nil || slices.Contains(ids, saved.ID) != c.stays {
			t.Errorf("%+v: unfinished are %v, %v", c, ids, err)
		}
	}
}

// What can't be taken back after a crash stays marked, so that the next start tries again.
func TestMarkStaysWhenTakingBackFails(t *testing.T) {
	ctx := context.Background()
	cfg := config.Default().Tools.FS
	cfg.Checkpoint.Durability = "relaxed"
	e, err := Open(Options{Config: cfg, Judge: anything{}, DataDir: t.TempDir()})
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
		if err := e.recover(ctx); err != nil {
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
	e, err := Open(Options{Config: cfg, Judge: anything{}, DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	file := func(s string) checkpoint.State {
		return checkpoint.State{Kind: checkpoint.File, Hash: HashOf([]byte(s))}
	}
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
		err := e.become(ctx, path, file("ours"), c.was)
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
