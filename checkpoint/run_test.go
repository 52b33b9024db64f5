package checkpoint_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// inRun is an edit of a run, or with 0 of no script.
func inRun(t *testing.T, d *checkpoint.DB, run int64, path, before, after string) checkpoint.ID {
	t.Helper()
	o := op(edit(path, []byte(before), []byte(after)))
	o.Run = run
	return save(t, d, o)
}

// carryOut saves the operation that carries out a plan over files that are as the newest operations left them.
func carryOut(t *testing.T, d *checkpoint.DB, p *checkpoint.Plan) {
	t.Helper()
	o := op()
	o.Kind = checkpoint.KindRestore
	o.UndoOf, o.RestoreOf = p.UndoOf, p.RestoreOf
	for _, it := range p.Items {
		c := checkpoint.Change{Path: it.Path, Before: it.Head, After: it.Want}
		if it.Head.Kind == checkpoint.File {
			body, err := d.Content(ctx, it.Head.Hash)
			if err != nil {
				c.Skipped = "test"
			}
			c.Content = body
		}
		o.Changes = append(o.Changes, c)
	}
	save(t, d, o)
}

// undoes plans the next undo, wants it to be about these, and carries it out.
func undoes(t *testing.T, d *checkpoint.DB, why string, want ...checkpoint.ID) *checkpoint.Plan {
	t.Helper()
	p, err := d.Undo(ctx, ann)
	if err != nil || !reflect.DeepEqual(p.Undoes, want) {
		t.Fatalf("%s: not %v: %v", why, want, err)
	}
	carryOut(t, d, p)
	return p
}

// If retention takes a part of a run, the undo of the rest is not whole, and says so; of a run that goes as a whole nothing is left to tell.
func TestUndoOfARunPastWhatRetentionTook(t *testing.T) {
	t.Parallel()
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d := open(t, t.TempDir(), checkpoint.Options{KeepWithin: time.Hour, KeepLast: checkpoint.KeepNone, Now: c.now})
	inRun(t, d, 7, "/w/a", "0", "1")
	c.t = c.t.Add(50 * time.Minute)
	kept := inRun(t, d, 7, "/w/a", "1", "2")
	other := inRun(t, d, 8, "/w/b", "0", "1")
	another := inRun(t, d, 8, "/w/c", "0", "1")
	c.t = c.t.Add(20 * time.Minute)
	if r, err := d.GC(ctx, false); err != nil || r.Checkpoints != 1 {
		t.Fatal(r, err)
	}
	last := inRun(t, d, 7, "/w/a", "2", "3") // it goes on
	p := undoes(t, d, "some of it was taken", kept, last)
	if p.Lost == nil || p.Lost.Until.IsZero() || p.Items[0].Path != "/w/a" || p.Items[0].Want.Hash != sum([]byte("1")) {
		t.Errorf("it must say that it is not whole: %+v", p)
	}
	if p := undoes(t, d, "nothing of it was taken", other, another); p.Lost != nil {
		t.Errorf("it is whole: %+v", p.Lost)
	}
	if _, err := d.Undo(ctx, ann); !errors.Is(err, checkpoint.ErrNothing) {
		t.Error(err)
	}
	sound(t, d)
}

// An undo says that it would not be of the newest change where retention took that one and an older one is kept; and where all is gone, that it was
// taken. A redo does not pass by an undo of which it can't be told whether it is one.
func TestUndoIsOfTheNewest(t *testing.T) {
	t.Parallel()
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d := open(t, t.TempDir(), checkpoint.Options{KeepWithin: time.Hour, KeepLast: checkpoint.KeepNone, Now: c.now})
	old := inRun(t, d, 0, "/w/a", "0", "1")
	if err := d.Pin(ctx, old, ann); err != nil {
		t.Fatal(err)
	}
	newer := inRun(t, d, 0, "/w/b", "0", "1")
	c.t = c.t.Add(50 * time.Minute)
	undoes(t, d, "of the newer one", newer)
	c.t = c.t.Add(20 * time.Minute)
	if r, err := d.GC(ctx, false); err != nil || r.Checkpoints != 1 {
		t.Fatal(r, err)
	}
	if p, err := d.Redo(ctx, ann); !errors.Is(err, checkpoint.ErrNothing) {
		t.Errorf("what the undo took back is not known: %+v %v", p, err)
	}
	if p, err := d.Undo(ctx, ann); err != nil || p.Lost == nil || p.Lost.First == "" {
		t.Errorf("newer ones were taken: %+v %v", p, err)
	}
	var nothing *checkpoint.NothingError
	if err := d.Unpin(ctx, old, ann); err != nil {
		t.Fatal(err)
	}
	c.t = c.t.Add(2 * time.Hour)
	if _, err := d.GC(ctx, false); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Undo(ctx, ann); !errors.As(err, &nothing) || nothing.Lost == nil {
		t.Errorf("all was taken: %v", err)
	}
	if _, err := d.Undo(ctx, checkpoint.Scope{Principal: "p", Session: "new"}); !errors.As(err, &nothing) || nothing.Lost != nil {
		t.Errorf("there never was anything: %v", err)
	}
}

// The newest run goes first, wherever its paths lie; what was aborted is no part of it; what the session did in between to the same path, above or below it
// is not taken back with it.
func TestWhatAnUndoOfARunTakes(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir(), checkpoint.Options{})
	first := inRun(t, d, 1, "/w/x", "-", "1")
	secret := inRun(t, d, 1, "/w/secret", "-", "1")
	never := inRun(t, d, 1, "/w/never", "-", "1")
	if err := d.Settle(ctx, never, checkpoint.Aborted); err != nil {
		t.Fatal(err)
	}
	second, third := inRun(t, d, 2, "/w/secret2", "-", "1"), inRun(t, d, 2, "/w/secret3", "-", "1")
	undoes(t, d, "the newest run", second, third)
	undoes(t, d, "and the one before it", first, secret)
	for _, between := range []string{"/w/d", "/w/d/e", "/w/d/e/f"} {
		one := inRun(t, d, 3, "/w/d/e", "-", "1")
		two := inRun(t, d, 3, "/w/apart", "-", "1")
		mine := inRun(t, d, 0, between, "1", "2")
		three := inRun(t, d, 3, "/w/three", "-", "1")
		undoes(t, d, between+", what came after it", two, three)
		undoes(t, d, between+", itself", mine)
		undoes(t, d, between+", what came before", one)
	}
	one := inRun(t, d, 4, "/w/one", "-", "1")
	mine := inRun(t, d, 0, "/w/mine", "-", "1")
	two := inRun(t, d, 4, "/w/two", "-", "1")
	undoes(t, d, "elsewhere, it is no hindrance", one, two)
	three := inRun(t, d, 4, "/w/three", "-", "1")
	undoes(t, d, "what a run does after its undo", three)
	undoes(t, d, "and then what is before it all", mine)
	bad := op(edit("/w/a", []byte("1"), []byte("2")))
	bad.Run = -1
	if _, err := d.Save(ctx, bad); err == nil {
		t.Error("a run below 0 is a mark of ours")
	}
	sound(t, d)
}
