package engine

import (
	"context"
	"os"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// trades leaves what a process leaves that was killed while it made a directory of the file p: the file is gone, the directories dirs are there, and its notes say no more than
// that the making of p and of dirs was begun. It was killed before them by so much.
func (h *halves) trades(before time.Duration, dirs ...string) checkpoint.ID {
	h.t.Helper()
	dir := checkpoint.State{Kind: checkpoint.Dir, Mode: 0o755, UID: uint32(max(os.Getuid(), 0)), GID: uint32(max(os.Getgid(), 0))}
	saved, err := h.db.Save(context.Background(), checkpoint.Op{Tool: "test", Kind: checkpoint.KindRestore, Principal: "p", Session: "s", Turn: "other", Changes: []checkpoint.Change{
		{Path: h.dir + "/p", Role: "target", Before: fileState("old"), Content: []byte("old"), After: dir},
		{Path: h.dir + "/p/s", Role: checkpoint.RoleParent, After: dir},
		{Path: h.dir + "/p/s/q", Role: "target", After: fileState("q"), AfterContent: []byte("q")},
	}})
	in, ierr := h.db.Intend(saved.ID)
	if err != nil || ierr != nil {
		h.t.Fatal(err, ierr)
	}
	h.lay("-", "p")
	for _, d := range dirs {
		if err := in.Note(h.dir+"/"+d, ""); err != nil {
			h.t.Fatal(err)
		}
		if err := os.Mkdir(h.dir+"/"+d, 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := in.Leave(); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chtimes(h.data+"/checkpoints/journal/"+string(saved.ID), time.Time{}, time.Now().Add(-before)); err != nil {
		h.t.Fatal(err)
	}
	return saved.ID
}

// A call that began before the kill writes nothing into a directory that a change left in the place of a file: the file comes back first.
func TestNothingGoesIntoHalfAnExchange(t *testing.T) {
	h := newHalves(t)
	h.lay("old", "p")
	id := h.trades(0, "p")
	if err := h.puts("t", "new", "p/new"); err == nil {
		t.Error("it was written")
	}
	h.has("old", "p")
	if o := h.outcome(id); o != checkpoint.Aborted {
		t.Errorf("it is %q", o)
	}
}

// Nor does one make the directory anew that was to become a file: first all that was in it comes back.
func TestNothingMakesTheDirectoryThatGaveWay(t *testing.T) {
	h := newHalves(t)
	dir := checkpoint.State{Kind: checkpoint.Dir, Mode: 0o755, UID: uint32(max(os.Getuid(), 0)), GID: uint32(max(os.Getgid(), 0))}
	saved, err := h.db.Save(context.Background(), checkpoint.Op{Tool: "test", Kind: checkpoint.KindRestore, Principal: "p", Session: "s", Turn: "other", Changes: []checkpoint.Change{
		{Path: h.dir + "/x", Role: "target", Before: dir, After: fileState("fx"), AfterContent: []byte("fx")},
		{Path: h.dir + "/x/a", Role: "target", Before: fileState("a"), Content: []byte("a"), After: fileState("-")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.dies(saved.ID) // both are gone
	if err := h.puts("t", "new", "x/new"); err != nil {
		t.Error(err)
	}
	h.has("a", "x/a")
	h.has("new", "x/new")
	if o := h.outcome(saved.ID); o != checkpoint.Aborted {
		t.Errorf("it is %q", o)
	}
}

// A directory whose making took so long that nobody can tell whose it is goes where it keeps away the file that was there, and only as long as nothing is in it.
func TestSlowDirectoryMakesRoomForTheFile(t *testing.T) {
	for _, c := range []struct {
		dirs   []string
		theirs string
	}{{[]string{"p"}, ""}, {[]string{"p", "p/s"}, ""}, {[]string{"p"}, "p/theirs"}, {[]string{"p", "p/s"}, "p/s/theirs"}} {
		h := newHalves(t)
		h.lay("old", "p")
		id := h.trades(time.Minute, c.dirs...)
		if c.theirs != "" {
			if err := os.WriteFile(h.dir+"/"+c.theirs, []byte("theirs"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.recover(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
		want := checkpoint.Aborted
		if c.theirs == "" {
			h.has("old", "p")
		} else {
			h.has("theirs", c.theirs)
			want = checkpoint.Foreign
		}
		if o := h.outcome(id); o != want {
			t.Errorf("%v: it is %q, want %q", c, o, want)
		}
	}
}
