package checkpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

func TestTrash(t *testing.T) {
	c := &clock{time.Date(2026, 5, 1, 12, 0, 0, 7, time.UTC)}
	d := open(t, t.TempDir(), checkpoint.Options{Now: c.now})
	try := func(principal, session string, c checkpoint.Change, e checkpoint.Trashed) (checkpoint.Saved, error) {
		c.Trash = &e
		o := op(c)
		o.Principal, o.Session = principal, session
		return d.Save(ctx, o)
	}
	put := func(principal, session string, c checkpoint.Change, e checkpoint.Trashed) checkpoint.Trashed {
		t.Helper()
		s, err := try(principal, session, c, e)
		if err != nil {
			t.Fatal(err)
		}
		return s.Trashed[0]
	}
	moved := func(path string) checkpoint.Change {
		return checkpoint.Change{Path: path, Before: checkpoint.State{Kind: checkpoint.File}, Skipped: checkpoint.SkipParked}
	}
	small := put("ann", "s", moved("/w/small"), checkpoint.Trashed{Parked: "/w/.trash/ann/2", Agent: true})
	tree := put("ann", "", moved("/w/Tree\n[x]"), checkpoint.Trashed{Parked: "/w/.trash/ann/1", Files: 10_000, Size: 1 << 40, Identity: "8:77"})
	bobs := put("bob", "", moved("/w/b"), checkpoint.Trashed{Parked: "/w/.trash/bob/1"})
	if !small.Moving || !small.Expires.Equal(c.t.Add(24*time.Hour)) || !tree.Moving || !tree.Expires.Equal(c.t.Add(168*time.Hour)) {
		t.Errorf("an agent's is kept for 24 h, a user's for 168 h; both are still on their way: %+v %+v", small, tree)
	}
	list := func(f checkpoint.TrashFilter) (ids []checkpoint.TrashID) {
		t.Helper()
		p, err := d.TrashList(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Entries {
			ids = append(ids, e.ID)
		}
		return ids
	}
	same := func(why string, got []checkpoint.TrashID, want ...checkpoint.TrashID) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", why, got, want)
		}
	}
	ann := checkpoint.TrashFilter{Principal: "ann"}
	same("what is on its way is not in the trash yet", list(ann))
	same("a crash's leavings", list(checkpoint.TrashFilter{AllPrincipals: true, Unsettled: true}), bobs.ID, tree.ID, small.ID)
	never := put("ann", "s", edit("/w/never", []byte("0"), nil), checkpoint.Trashed{Parked: "/w/.trash/ann/3"})
	if err := d.Settle(ctx, never.Checkpoint, checkpoint.Aborted); err != nil {
		t.Fatal(err)
	}
	same("an operation that did not take place has no trash", list(checkpoint.TrashFilter{AllPrincipals: true, Unsettled: true}), bobs.ID, tree.ID, small.ID)
	for _, e := range []checkpoint.Trashed{small, tree, bobs} {
		if err := d.TrashSettle(ctx, e.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	same("own, newest first", list(ann), tree.ID, small.ID)
	same("the operator's", list(checkpoint.TrashFilter{AllPrincipals: true}), bobs.ID, tree.ID, small.ID)
	same("a session's", list(checkpoint.TrashFilter{AllPrincipals: true, Session: "s"}), small.ID)
	same("nobody's", list(checkpoint.TrashFilter{}))
	same("by part of the path", list(checkpoint.TrashFilter{Principal: "ann", PathContains: "tREE"}), tree.ID)
	same("by path", list(checkpoint.TrashFilter{Principal: "ann", Path: "/w/small"}), small.ID)
	same("expired", list(checkpoint.TrashFilter{AllPrincipals: true, Expired: c.t.Add(25 * time.Hour)}), small.ID)
	if _, err := d.TrashGet(ctx, bobs.ID, "ann", false); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("another's entry must be ErrNotFound: %v", err)
	}
	if got, err := d.TrashGet(ctx, bobs.ID, "ann", true); err != nil || got.Path != "/w/b" {
		t.Errorf("unless the operator asks: %+v %v", got, err)
	}
	got, err := d.TrashGet(ctx, tree.ID, "ann", false)
	tree.Moving = false
	if err != nil || got != tree {
		t.Errorf("an entry must come back as it was put: %+v, want %+v, %v", got, tree, err)
	}
	var badID *checkpoint.BadIDError
	for _, id := range []checkpoint.TrashID{"", checkpoint.TrashID(small.Checkpoint), "tr-../../x", tree.ID + "0"} {
		if _, err := d.TrashGet(ctx, id, "ann", false); !errors.As(err, &badID) {
			t.Errorf("%q: %v", id, err)
		}
	}

	if side := string(tree.Sidecar()); !strings.HasPrefix(side, "[Trash Info]\nPath=/w/Tree%0A%5Bx%5D\n") {
		t.Errorf("%q", side)
	}
	for _, id := range []checkpoint.TrashID{tree.ID, bobs.ID} {
		if err := d.TrashDrop(ctx, id); err != nil {
			t.Fatal(err)
		}
		if _, err := d.TrashGet(ctx, id, "", true); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("what is gone is not found: %v", err)
		}
		if err := d.TrashSettle(ctx, id, true); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("what is gone is parked again: %v", err)
		}
	}
	if e := put("bob", "", moved("/w/c"), checkpoint.Trashed{Parked: "/w/.trash/bob/2"}); e.ID == bobs.ID || e.ID == tree.ID {
		t.Error("an id must not be given out twice")
	}
	var bad *checkpoint.BadOpError
	for _, c := range []struct {
		change checkpoint.Change
		entry  checkpoint.Trashed
	}{
		{moved("w/x"), checkpoint.Trashed{Parked: "/p"}},
		{moved("/w/x"), checkpoint.Trashed{Parked: "p"}},
		{moved("/w/x"), checkpoint.Trashed{}},
		{moved("/w/x"), checkpoint.Trashed{Parked: "/p", Files: -1}},
		{moved("/w/x"), checkpoint.Trashed{Parked: "/p", Expires: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{edit("/w/x", nil, []byte("new")), checkpoint.Trashed{Parked: "/p"}},
	} {
		if _, err := try("ann", "s", c.change, c.entry); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
