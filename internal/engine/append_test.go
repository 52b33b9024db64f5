//go:build unix

package engine_test

import (
	"context"
	"errors"
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
	_, err := x.Append(ctx, x.call("s"), x.ws+"/large", []byte(text), engine.Rules{})
	return err
}

// A file that the store can't hold is appended to in place: it stays the same object.
func TestAppendInPlace(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	path := x.write("large", large)
	was, err := os.Stat(path)
	must(t, err)
	c := x.call("s")
	done, err := x.Append(ctx, c, path, []byte("one\n"), engine.Rules{})
	if err != nil || done.Checkpoint == "" || done.Skipped != "" || done.Targets[0].Published.Info.Size != int64(len(large)+4) {
		t.Fatalf("%+v %v", done, err)
	}
	if c.Trace.Bytes != 4 {
		t.Errorf("%d bytes are on record", c.Trace.Bytes)
	}
	x.reads("large", large+"one\n")
	if is, err := os.Stat(path); err != nil || !os.SameFile(was, is) {
		t.Errorf("it was made anew: %v", err)
	}
	op, err := x.Checkpoint(ctx, x.call("s"), checkpoint.ID(done.Checkpoint))
	must(t, err)
	ch := op.Changes[0]
	if ch.Role != checkpoint.RoleAppended || ch.After.Tail != engine.HashOf([]byte("one\n")) || ch.Before.Size != int64(len(large)) ||
		ch.After.Size != int64(len(large)+4) || ch.After.Hash != "" || ch.Before.Hash != "" || ch.Stored || ch.AfterStored {
		t.Errorf("%+v", ch)
	}
	shown, _, _, err := x.Compare(ctx, x.call("s"), checkpoint.Restore{ID: op.ID}, false)
	if err != nil || len(shown) != 1 || shown[0].Added != 1 || !strings.Contains(shown[0].Diff, "\n+one\n") {
		t.Errorf("the diff: %+v %v", shown, err)
	}
	if done, err = x.Append(ctx, x.call("s"), path, nil, engine.Rules{}); err != nil || !done.Idle {
		t.Errorf("nothing appended: %+v %v", done, err)
	}
	if left := x.halfWay(); left != nil {
		t.Errorf("open: %v", left)
	}
}

// What keeps a file from being changed keeps it from being appended to.
func TestAppendInPlaceRefuses(t *testing.T) {
	t.Parallel()
	x := grow(t, func(fs *config.FS) {
		tight(fs)
		fs.TrackReads, fs.MustReadBeforeWrite = true, true
		fs.HardLinks = "refuse"
	})
	path := x.write("large", large)
	must(t, os.Symlink("large", x.ws+"/link"))
	try := func(name string, r engine.Rules) engine.Code {
		_, err := x.Append(ctx, x.call("s"), x.ws+"/"+name, []byte("x\n"), r)
		return code(err)
	}
	read := func() {
		t.Helper()
		must(t, x.Read(ctx, x.call("s"), path, func(ctx2 context.Context, s *engine.Source) (*engine.Sight, error) {
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
		{"hard links", "large", func() { must(t, errors.Join(os.Chmod(path, 0o640), os.Link(path, x.ws+"/other"))) }, engine.Rules{}, engine.CodePermissionDenied},
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
		x.reads("large", want)
	}
}

// A file with other names is made anew where that is what the config says.
func TestAppendBreaksLink(t *testing.T) {
	t.Parallel()
	x := grow(t, tight)
	path := x.write("large", large)
	must(t, os.Link(path, x.ws+"/other"))
	must(t, x.append("mine\n"))
	x.reads("large", large+"mine\n")
	x.reads("other", large)
}
