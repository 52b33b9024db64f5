package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
)

// asker says yes to everything, and remembers what it was asked.
type asker struct {
	asked []approval.Question
	while func() // what happens while it thinks
}

func (a *asker) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	a.asked = append(a.asked, q)
	if a.while != nil {
		a.while()
	}
	return approval.Answer{Decision: approval.Approved}, nil
}

// last is the only question since the last call, with its paths below the workspace.
func (a *asker) last(x *tree) (paths []string, summary, digest string) {
	x.t.Helper()
	if len(a.asked) != 1 {
		x.t.Fatalf("%d questions", len(a.asked))
	}
	q := a.asked[0]
	a.asked = nil
	for _, p := range q.Paths {
		paths = append(paths, strings.TrimPrefix(p, x.ws+"/"))
	}
	slices.Sort(paths)
	return paths, strings.ReplaceAll(q.Summary, x.ws+"/", ""), q.Digest
}

func asking(t *testing.T) (*tree, *asker) {
	x := grow(t, func(fs *config.FS) { fs.RequireApproval = true })
	return x, &asker{}
}

// mkdir is a change that makes directories and nothing else.
func (x *tree) mkdir(names ...string) (m engine.Files) {
	for _, name := range names {
		m.Dirs = append(m.Dirs, x.ws+"/"+name)
	}
	return m
}

// Whoever approves a change sees each directory that it makes or removes, and what is approved has
// a digest of its own.
func TestDirectoriesAreApprovedByName(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	digests := map[string]string{}
	sees := func(what string, err error, summary string, paths ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		got, said, digest := a.last(x)
		if !slices.Equal(got, paths) || said != summary {
			t.Errorf("%s: asked about %q: %q, should be %q: %q", what, got, said, paths, summary)
		}
		if other := digests[digest]; other != "" {
			t.Errorf("%s has the digest of %s", what, other)
		}
		digests[digest] = what
		if c.Trace.Digest != digest {
			t.Errorf("%s: the record has the digest %s", what, c.Trace.Digest)
		}
		for _, p := range paths {
			if !slices.Contains(c.Trace.Paths, x.ws+"/"+p) {
				t.Errorf("%s: the record does not name %s: %q", what, p, c.Trace.Paths)
			}
		}
	}
	_, err := x.ChangeFiles(ctx, c, x.mkdir("a"))
	sees("mkdir a", err, "creates directory a", "a")
	_, err = x.ChangeFiles(ctx, c, x.mkdir("b"))
	sees("mkdir b", err, "creates directory b", "b")
	_, err = x.ChangeFiles(ctx, c, x.mkdir("e/1", "e/2", "e/3"))
	sees("mkdir e/…", err, "creates 4 directories: e, e/1, e/2, …", "e", "e/1", "e/2", "e/3")

	write := x.becomes("one\n", "n1/n2/f")
	write.Parents, write.Summary = true, "write 4 bytes"
	_, err = x.ChangeFiles(ctx, c, write)
	sees("write", err, "write 4 bytes; creates 2 directories: n1, n1/n2", "n1", "n1/n2", "n1/n2/f")
	_, err = x.Undo(ctx, c, engine.RestoreOptions{})
	sees("undo", err, "restore 3 paths; removes 2 directories: n1/n2, n1", "n1", "n1/n2", "n1/n2/f")
	_, err = x.Redo(ctx, c, engine.RestoreOptions{})
	sees("redo", err, "restore 3 paths; creates 2 directories: n1, n1/n2", "n1", "n1/n2", "n1/n2/f")

	c.Tool = "another" // by which the same change is another one
	for _, d := range []string{"a", "b"} {
		_, err = x.Delete(ctx, c, x.ws+"/"+d, engine.DeleteOptions{})
		sees("delete "+d, err, "delete "+d+"; removes directory "+d, d)
	}
	tree, err := x.Delete(ctx, c, x.ws+"/n1", engine.DeleteOptions{Recursive: true})
	sees("delete n1", err, "delete n1; removes 2 directories: n1/n2, n1", "n1", "n1/n2", "n1/n2/f")
	_, err = x.Restore(ctx, c, checkpoint.Restore{ID: checkpoint.ID(tree.Checkpoint)}, engine.RestoreOptions{})
	sees("restore n1", err, "restore 3 paths; creates 2 directories: n1, n1/n2", "n1", "n1/n2", "n1/n2/f")
}

// A link and a mode that come back are told, and two links to different places have two digests.
func TestLinksAndModesAreApprovedByName(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	digests := map[string]bool{}
	for _, target := range []string{"f", "g"} {
		if err := os.Symlink(target, x.ws+"/l"); err != nil {
			t.Fatal(err)
		}
		done, err := x.Delete(ctx, c, x.ws+"/l", engine.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a.asked = nil
		if _, err := x.Restore(ctx, c, checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)}, engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		if want := x.ws + "/l becomes a symbolic link to " + target; !slices.Contains(a.asked[0].Warnings, want) {
			t.Errorf("warned of %q, not that %s", a.asked[0].Warnings, want)
		}
		_, _, digest := a.last(x)
		digests[digest] = true
		if err := os.Remove(x.ws + "/l"); err != nil {
			t.Fatal(err)
		}
	}
	if len(digests) != 2 {
		t.Error("two links have one digest")
	}
}

// A directory that may not be made or removed is refused before anybody is asked.
func TestNobodyIsAskedAboutADeniedDirectory(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	x.write("no/f", "f\n")
	x.deny = x.ws + "/no/d"
	x.Close()
	x.open()
	if _, err := x.ChangeFiles(ctx, c, x.mkdir("no/d")); err == nil {
		t.Error("made a denied directory")
	}
	outside := engine.Files{Dirs: []string{x.data + "/d"}}
	if _, err := x.ChangeFiles(ctx, c, outside); err == nil {
		t.Error("made a directory outside")
	}
	if err := os.Mkdir(x.deny, 0o755); err != nil {
		t.Fatal(err)
	}
	drop := engine.Files{Drop: []string{x.deny}}
	if _, err := x.ChangeFiles(ctx, c, drop); err == nil {
		t.Error("removed a denied directory")
	}
	if len(a.asked) > 0 {
		t.Errorf("asked about %+v", a.asked)
	}
}

// More directories than were approved are not made: the question is put again, with all of them.
func TestMoreDirectoriesThanApprovedAreStale(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	if err := os.Mkdir(x.ws+"/n1", 0o755); err != nil {
		t.Fatal(err)
	}
	a.while = func() { _ = os.Remove(x.ws + "/n1") }
	write := x.becomes("one\n", "n1/n2/f")
	write.Parents = true
	_, err := x.ChangeFiles(ctx, c, write)
	if !engine.ApprovalStale.In(err) {
		t.Errorf("%v", err)
	}
	if now := x.looks(); strings.Contains(now, "n1") {
		t.Errorf("it was made all the same:\n%s", now)
	}
	// Fewer are fine.
	a.while = func() { _ = os.Mkdir(x.ws+"/n1", 0o755) }
	if _, err := x.ChangeFiles(ctx, c, write); err != nil {
		t.Error(err)
	}
	x.reads("n1/n2/f", "one\n")
}

// factsOf are the facts of a refusal for this cause; ok says that err is one.
func factsOf[T any](err error, cause engine.Cause) (facts T, ok bool) {
	r, is := errors.AsType[*engine.Refusal](err)
	if !is || r.Cause != cause {
		return facts, false
	}
	facts, ok = r.Facts.(T)
	return facts, ok
}

// blockedBy are the reasons of a restore that was refused.
func blockedBy(err error) (whys []engine.Why) {
	blocked, _ := factsOf[[]engine.Blocked](err, engine.Conflicts)
	for _, b := range blocked {
		whys = append(whys, b.Why)
	}
	return whys
}

// A few files that go are a warning each; more are one, so that no other is lost among them.
func TestManyRemovals(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	for files, want := range map[int]int{2: 2, 7: 1} {
		var names []string
		for i := range files {
			names = append(names, fmt.Sprintf("many%d/%d", files, i))
		}
		write := x.becomes("one\n", names...)
		write.Parents = true
		if _, err := x.ChangeFiles(ctx, c, write); err != nil {
			t.Fatal(err)
		}
		a.asked = nil
		if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		got := a.asked[0].Warnings
		if len(got) != want || want == 1 && got[0] != "7 files will be removed" {
			t.Errorf("%d files: the warnings are %q", files, got)
		}
		a.asked = nil
	}
}

// What an approver said is on record: who, and why, and that nobody did where the caller was gone first.
func TestAnswersAreOnRecord(t *testing.T) {
	for _, c := range []struct {
		answer approval.Answer
		err    error
		want   string
		cause  engine.Cause
	}{
		{approval.Answer{Decision: approval.Denied, By: "ann", Reason: "no caps"}, nil, "denied by ann: no caps", engine.NotApproved},
		{approval.Answer{Decision: approval.Denied, By: "ann"}, nil, "denied by ann", engine.NotApproved},
		{approval.Answer{Decision: approval.Cancelled, Reason: "the call was cancelled"}, nil, "cancelled", engine.Cancelled},
		{approval.Answer{}, context.Canceled, "cancelled", engine.Cancelled}, {approval.Answer{}, context.DeadlineExceeded, "timed_out", engine.NotAnswered},
		{approval.Answer{Decision: approval.NobodyToAsk, Reason: "ask elsewhere"}, nil, "nobody_to_ask", engine.NobodyToAsk},
		{approval.Answer{Decision: 77}, nil, "unknown", engine.NotApproved}, {approval.Answer{Decision: approval.Approved}, errors.New("broken"), "", engine.Unknown},
	} {
		call := &engine.Call{}
		err := call.Answered(t.Context(), "/w/a", c.answer, c.err)
		if !c.cause.In(err) || call.Trace.Approval != c.want {
			t.Errorf("%+v, %v: %q, %v", c.answer, c.err, call.Trace.Approval, err)
		}
	}
	call := &engine.Call{}
	if err := call.Answered(t.Context(), "/w/a", approval.Answer{Decision: approval.Approved, By: "ann", Reason: "fine"}, nil); err != nil || call.Trace.Approval != "approved by ann: fine" {
		t.Errorf("%q, %v", call.Trace.Approval, err)
	}
}
