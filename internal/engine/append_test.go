//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
)

// large is a content that the store of tight can't hold.
var large = strings.Repeat("a line of what is there\n", 500)

// tight has a store that can't hold large.
func tight(fs *config.FS) { fs.Checkpoint.MaxFileBytes = int64(len(large)) - 1 }

// append appends to the file large of the session s.
func (x *tree) append(text string) error {
	return errOf(x.call("s").Append(ctx, x.ws+"/large", []byte(text), engine.Rules{}))
}

// A file that the store can't hold is appended to in place: it stays the same object.
func TestAppendInPlace(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	path := x.write("large", large)
	was, err := os.Stat(path)
	must(t, err)
	c := x.call("s")
	done, err := c.Append(ctx, path, []byte("one\n"), engine.Rules{})
	if err != nil || done.Checkpoint == "" || done.Skipped != "" || done.Targets[0].Published.Info.Size != int64(len(large)+4) {
		t.Fatalf("%+v %v", done, err)
	}
	if c.Trace.Bytes != 4 {
		t.Errorf("%d bytes are on record", c.Trace.Bytes)
	}
	x.has("large", large+"one\n")
	if is, err := os.Stat(path); err != nil || !os.SameFile(was, is) {
		t.Errorf("it was made anew: %v", err)
	}
	op, err := x.call("s").Checkpoint(ctx, checkpoint.ID(done.Checkpoint))
	must(t, err)
	ch := op.Changes[0]
	if ch.Role != checkpoint.RoleAppended || ch.After.Tail != engine.HashOf([]byte("one\n")) || ch.Before.Size != int64(len(large)) ||
		ch.After.Size != int64(len(large)+4) || ch.After.Hash != "" || ch.Before.Hash != "" || ch.Stored || ch.AfterStored {
		t.Errorf("%+v", ch)
	}
	shown, _, _, err := x.call("s").Compare(ctx, checkpoint.Restore{ID: op.ID}, false)
	if err != nil || len(shown) != 1 || shown[0].Added != 1 || !strings.Contains(shown[0].Diff, "\n+one\n") {
		t.Errorf("the diff: %+v %v", shown, err)
	}
	if done, err = x.call("s").Append(ctx, path, nil, engine.Rules{}); err != nil || !done.Idle {
		t.Errorf("nothing appended: %+v %v", done, err)
	}
	x.settled()
}

// An append in place is refused where a change is.
func TestAppendInPlaceRefuses(t *testing.T) {
	t.Parallel()
	x := grow(t, func(fs *config.FS) {
		tight(fs)
		fs.TrackReads, fs.MustReadBeforeWrite = true, true
	})
	path := x.write("large", large)
	must(t, os.Symlink("large", x.ws+"/link"))
	try := func(name string, r engine.Rules) engine.Code {
		_, err := x.call("s").Append(ctx, x.ws+"/"+name, []byte("x\n"), r)
		return code(err)
	}
	read := func() {
		t.Helper()
		must(t, x.call("s").Read(ctx, path, func(ctx2 context.Context, s *engine.Source) (*engine.ReadRecord, error) {
			_, sight, err := s.Lines(ctx2, 1, 3, 1<<20)
			return sight, err
		}))
	}
	for _, c := range []struct {
		why, name string
		ready     func()
		rules     engine.Rules
		want      engine.Code
	}{
		{"unread", "large", nil, engine.Rules{}, engine.CodeMustRead},
		{"a part was read", "large", read, engine.Rules{}, ""},
		{"its own append counts as seen", "large", nil, engine.Rules{}, ""},
		{"others appended", "large", func() { x.write("large", large+"theirs\n") }, engine.Rules{}, engine.CodeModified},
		{"read again, not the hash", "large", read, engine.Rules{Hash: engine.HashOf([]byte("x"))}, engine.CodeModified},
		{"the hash", "large", nil, engine.Rules{Hash: engine.HashOf([]byte(large + "theirs\n"))}, ""},
		{"a link", "link", nil, engine.Rules{}, engine.CodeSymlinkRefused},
		{"outside", "../data/x", nil, engine.Rules{}, engine.CodePathDenied},
		{"nothing", "none", nil, engine.Rules{}, engine.CodeNotFound},
		{"read-only", "large", func() { must(t, os.Chmod(path, 0o440)); read() }, engine.Rules{}, engine.CodePermissionDenied},
	} {
		if c.ready != nil {
			c.ready()
		}
		was, err := os.ReadFile(path)
		must(t, err)
		if got := try(c.name, c.rules); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
		want := string(was)
		if c.want == "" {
			want += "x\n"
		}
		x.has("large", want)
	}
}

// A file with other names is made anew where that is what the config says.
func TestAppendBreaksLink(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	path := x.write("large", large)
	must(t, os.Link(path, x.ws+"/other"))
	must(t, x.append("mine\n"))
	x.has("large", large+"mine\n")
	x.has("other", large)
}

// A tail is taken back, and appended again, as long as the file ends with it.
func TestAppendIsUndone(t *testing.T) {
	t.Parallel()
	type step func(*engine.Call, context.Context, engine.RestoreOptions) (*engine.Restored, error)
	x := grow(t, tight)
	path := x.write("large", large)
	must(t, os.Chmod(path, 0o604))
	c := x.turn("s", "t")
	for _, text := range []string{"one\n", "two\n"} {
		must(t, errOf(c.Append(ctx, path, []byte(text), engine.Rules{})))
	}
	rewind := func(c *engine.Call, ctx context.Context, o engine.RestoreOptions) (*engine.Restored, error) {
		return c.Restore(ctx, checkpoint.Restore{Turn: "t"}, o)
	}
	all := large + "one\ntwo\n"
	for i, s := range []struct {
		run  step
		want string
	}{
		{(*engine.Call).Undo, large + "one\n"}, {(*engine.Call).Undo, large}, {(*engine.Call).Redo, large + "one\n"}, {(*engine.Call).Redo, all}, {(*engine.Call).Undo, large + "one\n"},
		{(*engine.Call).Redo, all}, {rewind, large}, {(*engine.Call).Undo, all}, {rewind, large}, {rewind, large},
	} {
		if _, err := s.run(x.call("s"), ctx, engine.RestoreOptions{DryRun: true}); err != nil {
			t.Fatalf("step %d, dry: %v", i, err)
		}
		if _, err := s.run(x.call("s"), ctx, engine.RestoreOptions{}); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		x.has("large", s.want)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o604 {
			t.Errorf("step %d: %v %v", i, info.Mode(), err)
		}
	}
}

// Changes by others stand in the way of the undo, and stay, whatever is to become of conflicts.
func TestAppendIsNotUndoneOverOthers(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]string{
		"appended":       large + "one\ntheirs\n",
		"in between":     large + "theirs\none\n",
		"another tail":   large + "ONE\n",
		"cut off":        large[:100],
		"cut, but large": large + "o",
		"gone":           "-",
	} {
		x := grow(t, tight)
		path := x.write("large", large)
		must(t, x.append("one\n"))
		if must(t, os.Remove(path)); now != "-" {
			x.write("large", now)
		}
		for _, how := range []string{"", engine.OnConflictMerge, engine.OnConflictForce, engine.OnConflictSkip} {
			done, err := x.call("s").Undo(ctx, engine.RestoreOptions{OnConflict: how})
			want := engine.Conflicts
			if how == engine.OnConflictForce {
				want = engine.WouldLose
			}
			if how == engine.OnConflictSkip && (err != nil || len(done.Skipped) != 1) || how != engine.OnConflictSkip && !want.In(err) {
				t.Errorf("%s, %q: %+v %v", name, how, done, err)
			}
			if now != "-" {
				x.has("large", now)
			}
		}
	}
	// In the middle of it, others' changes stay, and what was appended goes.
	x := grow(t, tight)
	x.write("large", large)
	must(t, x.append("one\n"))
	theirs := "A" + large[1:]
	x.write("large", theirs+"one\n")
	must(t, x.does(undoes))
	x.has("large", theirs)
}

// Several paths at a time: what is made again in place can't be taken back with the others, so it comes
// alone, and is told so.
func TestAppendIsMadeAgainAlone(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	path := x.write("large", large)
	c := x.turn("s", "t")
	_, err := c.Append(ctx, path, []byte("one\n"), engine.Rules{})
	must(t, err)
	must(t, lastOf(c.Write(ctx, engine.WriteArgs{Path: x.ws + "/other", Text: "one\n"})))
	done, err := x.call("s").Restore(ctx, checkpoint.Restore{Turn: "t"}, engine.RestoreOptions{})
	must(t, err)
	x.has("large", large)
	_, err = x.call("s").Undo(ctx, engine.RestoreOptions{})
	r := engine.Reason(err)
	if r == nil || r.Cause != engine.NotStored || r.Facts != engine.OnlyAlone || r.Path != path {
		t.Fatalf("both at once: %v", err)
	}
	x.has("large", large)
	must(t, errOf(x.call("s").Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint), Paths: []string{path}},
		engine.RestoreOptions{})))
	x.has("large", large+"one\n")
}

// An edit after an append to a large file is taken back, and then the append: one after the other, or by one rewind.
func TestAppendThenEdit(t *testing.T) {
	t.Parallel()
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 8 << 20 })
	big := strings.Repeat("a line of what is there\n", 1<<16)
	for _, back := range []string{"rewind", "undo"} {
		x.write("large", big)
		c := x.call(back)
		c.Turn = "one"
		c.BeginTurn(ctx)
		_, err := c.Append(ctx, x.ws+"/large", []byte("one\n"), engine.Rules{})
		must(t, err)
		must(t, errOf(c.ChangeFiles(ctx, x.becomes("edited\n"+big+"one\n", "large"))))
		if back == "rewind" {
			must(t, errOf(c.Restore(ctx, rewindTo("one"), engine.RestoreOptions{})))
			x.has("large", big)
			continue
		}
		for _, want := range []string{big + "one\n", big} {
			_, err := c.Undo(ctx, engine.RestoreOptions{})
			must(t, err)
			x.has("large", want)
		}
	}
}

// Appends in place and edits of one file in any order, then undo and redo of them, and a rewind: each gives the content that there was then.
func TestAppendsAndEditsAreTakenBack(t *testing.T) {
	t.Parallel()
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 8 << 20 })
	old := strings.Repeat("a line of what is there\n", 1<<16)
	for _, steps := range []string{"ea", "aea", "eauu", "eaur", "aeuurr", "aaeuuurrr", "aeeuuurrr"} { // append, edit, undo, redo
		t.Run(steps, func(t *testing.T) {
			now, undo, redo := old, []string{}, []string{}
			x.write("large", now)
			c := x.turn(steps, "t")
			for i, step := range steps {
				var err error
				switch was := now; step {
				case 'a':
					now += "tail\n"
					undo, err = append(undo, was), errOf(c.Append(ctx, x.ws+"/large", []byte("tail\n"), engine.Rules{}))
				case 'e':
					now = "edited" + now
					undo, err = append(undo, was), errOf(c.ChangeFiles(ctx, x.becomes(now, "large")))
				case 'u':
					now, undo, redo = undo[len(undo)-1], undo[:len(undo)-1], append(redo, was)
					err = errOf(c.Undo(ctx, engine.RestoreOptions{}))
				case 'r':
					now, redo, undo = redo[len(redo)-1], redo[:len(redo)-1], append(undo, was)
					err = errOf(c.Redo(ctx, engine.RestoreOptions{}))
				}
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				x.has("large", now)
			}
			must(t, errOf(c.Restore(ctx, rewindTo("t"), engine.RestoreOptions{})))
			x.has("large", old)
		})
	}
}

// A restore of many files holds no content that the store has. What others wrote is in no store: it is held, and an undo brings it back.
func TestManyHoldNoContents(t *testing.T) {
	t.Parallel()
	x := grow(t, func(*config.FS) {})
	const n = 101
	name := func(i int) string { return fmt.Sprintf("%s/f%d", x.ws, i) }
	for turn, text := range []string{"one\n", "one\ntwo\n"} {
		c := x.turn("s", fmt.Sprint("t", turn))
		for i := range n {
			must(t, lastOf(c.Write(ctx, engine.WriteArgs{Path: name(i), Text: text})))
		}
	}
	const theirs = "of others\n"
	must(t, os.WriteFile(name(7), []byte(theirs), 0o600))
	back := func(want string, restore func(o engine.RestoreOptions) (*engine.Restored, error)) {
		t.Helper()
		done, err := restore(engine.RestoreOptions{OnConflict: engine.OnConflictForce})
		must(t, err)
		held := 0
		for _, target := range done.Targets {
			if held += len(target.Before.Content) + len(target.After.Content); len(engine.Hunks(target)) != 1 {
				t.Fatalf("%s has no patch", target.True)
			}
			if added, removed := engine.Counts(target); added+removed == 0 {
				t.Fatalf("%s: +%d -%d", target.True, added, removed)
			}
		}
		if len(done.Targets) != n || held > len(theirs) {
			t.Fatalf("%d files are back, and %d bytes held", len(done.Targets), held)
		}
		for i := range n {
			is, err := os.ReadFile(name(i))
			if must(t, err); string(is) != want && (i != 7 || string(is) != theirs) {
				t.Fatalf("%s has %q", name(i), is)
			}
		}
	}
	back("one\n", func(o engine.RestoreOptions) (*engine.Restored, error) {
		return x.call("s").Restore(ctx, checkpoint.Restore{Turn: "t1"}, o)
	})
	x.has("f7", "one\n")
	back("one\ntwo\n", func(o engine.RestoreOptions) (*engine.Restored, error) { return x.call("s").Undo(ctx, o) })
	x.has("f7", theirs)
}

// A restore of many files keeps no patch of each, which would take more memory than their contents. It has them when they are asked for.
func TestManyKeepNoPatches(t *testing.T) {
	t.Parallel()
	x := grow(t, func(*config.FS) {})
	for turn, n := range map[string]int{"few": 1, "many": 101} {
		c := x.turn("s", turn)
		for i := range n {
			must(t, lastOf(c.Write(ctx, engine.WriteArgs{Path: fmt.Sprintf("%s/%s%d", x.ws, turn, i), Text: "one\n"})))
		}
		done, err := x.call("s").Restore(ctx, checkpoint.Restore{Turn: turn}, engine.RestoreOptions{})
		must(t, err)
		for _, target := range done.Targets {
			if kept := target.After.Hunks != nil; kept && n > 1 {
				t.Fatalf("%s keeps its patch", target.True)
			}
			if hunks := engine.Hunks(target); len(hunks) != 1 {
				t.Fatalf("the patch of %s is %v", target.True, hunks)
			}
		}
		if len(done.Targets) != n {
			t.Fatalf("%d files are back, not %d", len(done.Targets), n)
		}
	}
}
