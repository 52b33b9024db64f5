package checkpoint_test

import (
	"bytes"
	"errors"
	"testing"

	"moltisfs/checkpoint"
)

// appended is a change of a file of 1 GB that is appended to, or with back cut off again.
func appended(path, tail string, back bool) checkpoint.Change {
	c := checkpoint.Change{Path: path, Role: checkpoint.RoleAppended, Tail: []byte(tail),
		Before: checkpoint.State{Kind: checkpoint.File, Mode: 0o640, Size: 1 << 30},
		After:  checkpoint.State{Kind: checkpoint.File, Mode: 0o640, Size: 1<<30 + int64(len(tail))}}
	if back {
		c.Before, c.After = c.After, c.Before
	}
	return c
}

// The store has the tail of an appended file, and never takes it for a content of that file.
func TestAppended(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	const tail = "what was appended\n"
	for _, back := range []bool{false, true} {
		id := save(t, d, op(appended("/w/log", tail, back)))
		c, err := d.Get(ctx, id, ann)
		if err != nil {
			t.Fatal(err)
		}
		ch := c.Changes[0]
		large, small := ch.After, ch.Before
		if back {
			large, small = ch.Before, ch.After
		}
		if large.Size != 1<<30+int64(len(tail)) || small.Size != 1<<30 || large.Tail != sum([]byte(tail)) || small.Tail != "" ||
			large.Hash != "" || small.Hash != "" || ch.Stored || ch.AfterStored || ch.Skipped != checkpoint.SkipAppended {
			t.Errorf("back %v: %+v", back, ch)
		}
		if got, err := d.Content(ctx, large.Tail); err != nil || string(got) != tail {
			t.Errorf("back %v: %q %v", back, got, err)
		}
		p, err := d.Plan(ctx, checkpoint.Restore{ID: id, Principal: ann.Principal, Session: ann.Session})
		if err != nil || p.Items[0].Stored || p.Items[0].BaseStored || p.Items[0].Missing != checkpoint.SkipAppended {
			t.Errorf("back %v: %+v %v", back, p, err)
		}
	}
	sound(t, d)
	if p, err := d.Purge(ctx, checkpoint.Purge{Hash: sum([]byte(tail))}); err != nil || p.Contents != 1 {
		t.Fatalf("%+v %v", p, err)
	}
	sound(t, d)
	if f := contains(t, dir, []byte(tail)); len(f) != 0 {
		t.Errorf("after the purge it is still in %v", f)
	}
	page, err := d.List(ctx, checkpoint.Filter{Principal: ann.Principal, Session: ann.Session})
	if err != nil || len(page.Checkpoints) != 2 {
		t.Fatalf("%+v %v", page, err)
	}
	for _, c := range page.Checkpoints {
		if ch := c.Changes[0]; ch.After.Size+ch.Before.Size != 2<<30+int64(len(tail)) || ch.After.Tail+ch.Before.Tail != "" {
			t.Errorf("purged: %+v", ch)
		}
	}
}

// A tail that the store must not hold is not in it, and that is said.
func TestAppendedIsSkipped(t *testing.T) {
	secret := []byte("token 0123456789abcdef\n")
	for why, o := range map[string]checkpoint.Options{
		checkpoint.SkipExcluded: {Exclude: func(string) bool { return true }},
		checkpoint.SkipTooLarge: {MaxFileBytes: 5},
	} {
		dir := t.TempDir()
		d := open(t, dir, o)
		saved, err := d.Save(ctx, op(appended("/w/log", string(secret), false)))
		if err != nil || len(saved.Skipped) != 1 || saved.Skipped[0].Why != why || saved.Skipped[0].Size != int64(len(secret)) {
			t.Errorf("%s: %+v %v", why, saved, err)
		}
		if f := contains(t, dir, secret); len(f) != 0 {
			t.Errorf("%s: it is in %v", why, f)
		}
		c, err := d.Get(ctx, saved.ID, ann)
		if err != nil || c.Changes[0].After.Tail != sum(secret) || c.Changes[0].After.Size != 1<<30+int64(len(secret)) {
			t.Errorf("%s: %+v %v", why, c, err)
		}
		sound(t, d)
	}
	d := open(t, t.TempDir(), checkpoint.Options{})
	for why, spoil := range map[string]func(*checkpoint.Change){
		"no tail":       func(c *checkpoint.Change) { c.Tail = nil },
		"another size":  func(c *checkpoint.Change) { c.Tail = c.Tail[1:] },
		"no file":       func(c *checkpoint.Change) { c.Before = checkpoint.State{} },
		"a content":     func(c *checkpoint.Change) { c.Content = []byte{} },
		"a whole hash":  func(c *checkpoint.Change) { c.After.Hash = sum(secret) },
		"another role":  func(c *checkpoint.Change) { c.Role = "target" },
		"negative size": func(c *checkpoint.Change) { c.Before.Size, c.After.Size = -5, int64(len(c.Tail))-5 },
	} {
		c := appended("/w/log", string(bytes.Clone(secret)), false)
		spoil(&c)
		if _, err := d.Save(ctx, op(c)); !errors.As(err, new(*checkpoint.BadOpError)) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
