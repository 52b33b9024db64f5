package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
)

// run has a script change this and that, some of it twice: "kept" and all below "old" were there before.
func (x *tree) run() {
	x.t.Helper()
	x.write("kept", "kept\n")
	x.write("old/a/1", "1\n")
	x.write("old/2", "2\n")
	x.scripted(7)
}

func (x *tree) scripted(run int64) {
	x.t.Helper()
	c := func() *engine.Call {
		c := x.call("s")
		c.Run = run
		return c
	}
	at := func(name string) string { return x.ws + "/" + name }
	put := func(name, content string) {
		x.t.Helper()
		_, _, err := x.Write(ctx, c(), engine.WriteArgs{Path: at(name), Raw: []byte(content), Rules: engine.Rules{Meant: true}})
		must(x.t, err)
	}
	remove := func(name string) {
		x.t.Helper()
		_, err := x.Delete(ctx, c(), at(name), engine.DeleteOptions{Recursive: true})
		must(x.t, err)
	}
	put("kept", "once\n")
	put("kept", "twice\n")
	put("gone", "it comes and goes\n")
	remove("gone")
	_, err := x.Mkdir(ctx, c(), engine.MkdirArgs{Path: at("made/deep"), Rules: engine.Rules{Parents: true}})
	must(x.t, err)
	put("made/deep/f", "f\n")
	_, err = x.Move(ctx, c(), engine.MoveArgs{From: at("made/deep/f"), To: at("made/g")})
	must(x.t, err)
	_, err = x.Move(ctx, c(), engine.MoveArgs{From: at("old/a"), To: at("made/a")})
	must(x.t, err)
	put("made/a/1", "one\n")
	remove("old")
	_, err = x.Append(ctx, c(), at("kept"), []byte("and more\n"), engine.Rules{Meant: true})
	must(x.t, err)
}

// One undo takes back all that a run did, a redo brings it back, and the next undo goes on before it.
func TestUndoOfARun(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.put("s", "before", "b\n")
	x.write("kept", "kept\n")
	x.write("old/a/1", "1\n")
	x.write("old/2", "2\n")
	was := x.looks()
	x.scripted(7)
	ran := x.looks()
	x.put("s", "after", "a\n")
	c, o := x.call("s"), engine.RestoreOptions{}
	step := func(what string, do func() (*engine.Restored, error), want string) {
		t.Helper()
		if _, err := do(); err != nil || bare(x.looks()) != bare(want) {
			t.Fatalf("%s: %v\n%s\nwant\n%s", what, err, x.looks(), want)
		}
	}
	undo := func() (*engine.Restored, error) { return x.Undo(ctx, c, o) }
	redo := func() (*engine.Restored, error) { return x.Redo(ctx, c, o) }
	step("the change after it", undo, ran)
	for range 2 {
		dry, err := x.Undo(ctx, c, engine.RestoreOptions{DryRun: true})
		if err != nil || len(dry.Plan.Undoes) != 11 || x.looks() != ran {
			t.Fatalf("%d changes, %v", len(dry.Plan.Undoes), err)
		}
		step("the run", undo, was)
		step("the run again", redo, ran)
	}
	must(t, x.Close())
	x.open()
	step("after a restart", undo, was)
	if _, err := undo(); err != nil || strings.Contains(x.looks(), "before") {
		t.Fatalf("%v\n%s", err, x.looks())
	}
	if _, err := undo(); !errors.Is(err, checkpoint.ErrNothing) {
		t.Fatal(err)
	}
	step("all the way", redo, was)
	step("all the way", redo, ran)
	next := x.call("s")
	next.Run = 8
	for i := range 3 {
		_, _, err := x.Write(ctx, next, engine.WriteArgs{Path: x.ws + "/kept", Raw: []byte{'0' + byte(i)}, Rules: engine.Rules{Meant: true}})
		must(t, err)
	}
	if _, err := redo(); !errors.Is(err, checkpoint.ErrNothing) {
		t.Fatal(err)
	}
	step("the second run", undo, ran)
	step("the first run", undo, was)
}

// The undo of a run passes all doors, as one plan: what is in the way of one path is in the way of all.
func TestUndoOfARunIsGuarded(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.run()
	must(t, x.Close())
	x.cfg.RequireApproval = true
	x.open()
	no := &decider{}
	undo := func(what string, c *engine.Call, want engine.Cause) {
		t.Helper()
		was := x.looks()
		if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); !want.In(err) || x.looks() != was {
			t.Fatalf("%s: %v\n%s", what, err, x.looks())
		}
	}
	undo("nobody to ask", x.call("s"), engine.NobodyToAsk)
	c := x.call("s")
	c.Approver = no
	undo("refused", c, engine.NotApproved)
	if len(no.asked) != 1 || !strings.Contains(no.asked[0].Diff, "-twice") || len(no.asked[0].Paths) < 5 {
		t.Errorf("asked %+v", no.asked)
	}
	x.write("made/g", "others\n")
	yes := x.call("s")
	yes.Approver = &asker{}
	undo("what others changed", yes, engine.Conflicts)
	x.write("made/g", "f\n")
	if _, err := x.Undo(ctx, yes, engine.RestoreOptions{}); err != nil || strings.Contains(x.looks(), "made") {
		t.Fatalf("%v\n%s", err, x.looks())
	}
}

// decider says no.
type decider struct{ asked []approval.Question }

func (d *decider) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	d.asked = append(d.asked, q)
	return approval.Answer{Decision: approval.Denied}, nil
}
