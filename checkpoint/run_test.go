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
	o := opBy(me, checkpoint.KindEdit, textEdit(path, before, after))
	o.Run = run
	return save(t, d, o)
}

// carryOut saves the operation that carries out a plan over files that are as the newest operations left them.
func carryOut(t *testing.T, d *checkpoint.DB, p *checkpoint.Plan) {
	t.Helper()
	o := opBy(me, checkpoint.KindRestore)
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
func undoes(t *testing.T, d *checkpoint.DB, why string, reach func(string) bool, want ...checkpoint.ID) *checkpoint.Plan {
	t.Helper()
	p, err := d.Undo(ctx, me, reach)
	if err != nil || !reflect.DeepEqual(p.Undoes, want) {
		t.Fatalf("%s: not %v: %v", why, want, err)
	}
	carryOut(t, d, p)
	return p
}

// What retention takes of a run makes the undo of the rest one that is not whole, and says so; of a run that goes as a whole nothing is left to tell.
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
	if r, err := d.GC(ctx, checkpoint.GCOptions{}); err != nil || r.Checkpoints != 1 {
		t.Fatal(r, err)
	}
	last := inRun(t, d, 7, "/w/a", "2", "3") // it goes on
	p := undoes(t, d, "some of it was taken", nil, kept, last)
	if p.Lost == nil || p.Lost.Until.IsZero() || wants(p)[0] != at("/w/a", "1") {
		t.Errorf("it must say that it is not whole: %+v", p)
	}
	if p := undoes(t, d, "nothing of it was taken", nil, other, another); p.Lost != nil {
		t.Errorf("it is whole: %+v", p.Lost)
	}
	if _, err := d.Undo(ctx, me, nil); !errors.Is(err, checkpoint.ErrNothing) {
		t.Error(err)
	}
	sound(t, d)
}

// A run is within reach if one of its paths is; what was aborted is no part of it; what the session did in between to the same path, above or below it
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
	hidden, denied := inRun(t, d, 2, "/w/secret2", "-", "1"), inRun(t, d, 2, "/w/secret3", "-", "1")
	reach := func(p string) bool { return p == "/w/x" }
	undoes(t, d, "a run out of reach is passed by", reach, first, secret)
	undoes(t, d, "once it is within reach", nil, hidden, denied)
	for _, between := range []string{"/w/d", "/w/d/e", "/w/d/e/f"} {
		one := inRun(t, d, 3, "/w/d/e", "-", "1")
		two := inRun(t, d, 3, "/w/apart", "-", "1")
		mine := inRun(t, d, 0, between, "1", "2")
		three := inRun(t, d, 3, "/w/three", "-", "1")
		undoes(t, d, between+", what came after it", nil, two, three)
		undoes(t, d, between+", itself", nil, mine)
		undoes(t, d, between+", what came before", nil, one)
	}
	one := inRun(t, d, 4, "/w/one", "-", "1")
	mine := inRun(t, d, 0, "/w/mine", "-", "1")
	two := inRun(t, d, 4, "/w/two", "-", "1")
	undoes(t, d, "elsewhere, it is no hindrance", nil, one, two)
	three := inRun(t, d, 4, "/w/three", "-", "1")
	undoes(t, d, "what a run does after its undo", nil, three)
	undoes(t, d, "and then what is before it all", nil, mine)
	bad := opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2"))
	bad.Run = -1
	if _, err := d.Save(ctx, bad); err == nil {
		t.Error("a run below 0 is a mark of ours")
	}
	sound(t, d)
}
