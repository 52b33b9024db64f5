package checkpoint_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// A mark is nobody's business while its process lives, and everybody's after that.
func TestIntent(t *testing.T) {
	dir := t.TempDir()
	if ids, err := checkpoint.Unfinished(filepath.Join(dir, "nothing")); err != nil || ids != nil {
		t.Errorf("no store: %v %v", ids, err)
	}
	d := open(t, dir, checkpoint.Options{})
	first := save(t, d, op(edit("/w/a", []byte("0"), []byte("1"))))
	in, err := d.Intend(first)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := checkpoint.Unfinished(dir); err != nil || len(ids) > 0 {
		t.Errorf("under way, but called unfinished: %v %v", ids, err)
	}
	if other, err := d.TakeOver(first); err != nil || other != nil {
		t.Errorf("taken from its process: %v %v", other, err)
	}
	if err := in.Done(); err != nil {
		t.Fatal(err)
	}
	if ids, err := checkpoint.Unfinished(dir); err != nil || len(ids) > 0 {
		t.Errorf("done, but unfinished: %v %v", ids, err)
	}
	if other, err := d.TakeOver(first); err != nil || other != nil {
		t.Errorf("done, but taken over: %v %v", other, err)
	}

	cmd, out := spawn(t, "intender", 1, dir)
	sc := bufio.NewScanner(out)
	if !sc.Scan() {
		t.Fatal("the process said nothing")
	}
	id := checkpoint.ID(sc.Text())
	if ids, err := checkpoint.Unfinished(dir); err != nil || len(ids) > 0 {
		t.Errorf("its process lives: %v %v", ids, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if ids, err := checkpoint.Unfinished(dir); err != nil || !slices.Equal(ids, []checkpoint.ID{id}) {
		t.Fatalf("its process is dead: %v %v", ids, err)
	}
	a, err := d.TakeOver(id)
	if err != nil || a == nil || a.ID() != id {
		t.Fatalf("%v %v", a, err)
	}
	if b, err := d.TakeOver(id); err != nil || b != nil {
		t.Errorf("two took it over: %v %v", b, err)
	}
	if err := a.Leave(); err != nil {
		t.Fatal(err)
	}
	if a, err = d.TakeOver(id); err != nil || a == nil {
		t.Fatalf("left, and not to be had: %v", err)
	}
	if err := a.Done(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "journal")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := d.Intend("ck-zzzz"); err == nil {
		t.Error("a mistyped id was marked")
	}
}

// What was noted beside a mark is there for whoever takes the operation over, and who does may note more.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	id := save(t, d, op(edit("/w/a", []byte("0"), []byte("1"))))
	in, err := d.Intend(id)
	if err != nil {
		t.Fatal(err)
	}
	if notes, last, err := in.Notes(); err != nil || len(notes) != 0 || last.IsZero() {
		t.Errorf("of a new mark: %v %v %v", notes, last, err)
	}
	odd := "/w/a \"line\"\nbreak\xff"
	if err := errors.Join(in.Note(odd, ""), in.Note("/w/b", "1"), in.Note(odd, "7 8"), in.Leave()); err != nil {
		t.Fatal(err)
	}
	if in, err = d.TakeOver(id); err != nil || in == nil {
		t.Fatal(err)
	}
	if err := in.Note("/w/c", "3"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "journal", string(id))
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(was, `"/w/d" "4"`...), 0o600); err != nil { // cut off before its end
		t.Fatal(err)
	}
	notes, last, err := in.Notes()
	if want := map[string]string{odd: "7 8", "/w/b": "1", "/w/c": "3"}; err != nil || !maps.Equal(notes, want) || time.Since(last) > time.Hour {
		t.Errorf("%q %v %v", notes, last, err)
	}
	if err := in.Done(); err != nil {
		t.Fatal(err)
	}
}

// What an operation puts into the trash is there if and only if the operation took place.
func TestTrashWithAnOperation(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{MaxFileBytes: 100})
	gone := edit("/w/a", []byte("0"), nil)
	gone.Trash = &checkpoint.Trashed{Agent: true}
	s, err := d.Save(ctx, op(gone))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Trashed) != 1 || s.Trashed[0].Checkpoint != s.ID || s.Trashed[0].Phase != checkpoint.Parked ||
		s.Trashed[0].Expires.Sub(s.Trashed[0].Deleted) != checkpoint.TrashOfAgents {
		t.Fatalf("%+v", s)
	}
	page, err := d.TrashList(ctx, checkpoint.TrashFilter{Principal: ann.Principal})
	if err != nil || len(page.Entries) != 1 || page.Entries[0] != s.Trashed[0] {
		t.Fatalf("%+v %v, want %+v", page, err, s.Trashed)
	}
	if err := d.Settle(ctx, s.ID, checkpoint.Aborted); err != nil {
		t.Fatal(err)
	}
	if page, err := d.TrashList(ctx, checkpoint.TrashFilter{Principal: ann.Principal}); err != nil || len(page.Entries) > 0 {
		t.Errorf("an operation that did not take place has trash: %+v %v", page, err)
	}
	large := edit("/w/b", make([]byte, 101), nil)
	large.Trash = &checkpoint.Trashed{}
	if s, err = d.Save(ctx, op(large)); err != nil || len(s.Trashed) > 0 || len(s.Skipped) != 1 {
		t.Errorf("a content that is not stored is in the trash: %+v %v", s, err)
	}
}

// Whoever looks for unfinished operations does not take a mark that is just being made for one that never became any.
func TestMarkBesideThoseWhoLook(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{Durability: checkpoint.Relaxed})
	id := save(t, d, op(edit("/w/a", []byte("0"), []byte("1"))))
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for ctx.Err() == nil {
				if _, err := checkpoint.Unfinished(dir); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 500 {
		in, err := d.Intend(id)
		if err != nil {
			t.Error(err)
			break
		}
		if err := in.Done(); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	looking.Wait()
}

// A file that its maker may not have come to lock is nobody else's to lock; one that stayed so for minutes is nobody's.
func TestJustMadeIsLeftToItsMaker(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{Durability: checkpoint.Relaxed})
	save(t, d, op(edit("/w/a", []byte("0"), []byte("1"))))
	for _, tt := range []struct {
		name string
		look func() error
	}{
		{filepath.Join("journal", "new-x"), func() error { _, err := checkpoint.Unfinished(dir); return err }},
		{filepath.Join("writers", "x"), func() error { _, err := d.GC(t.Context(), checkpoint.GCOptions{}); return err }},
	} {
		name := filepath.Join(dir, tt.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tt.look(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(name); err != nil {
			t.Errorf("%s just made: %v", tt.name, err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
		if err := tt.look(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s left for an hour: %v", tt.name, err)
		}
	}
}
