package checkpoint_test

import (
	"bytes"
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
	del := save(t, d, op(edit("/w/small", []byte("x"), nil)))
	put := func(e checkpoint.Trashed) checkpoint.Trashed {
		t.Helper()
		e.Kind = checkpoint.File
		got, err := d.TrashPut(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	small := put(checkpoint.Trashed{Principal: "ann", Session: "s", Path: "/w/small", Checkpoint: del, Agent: true})
	tree := put(checkpoint.Trashed{Principal: "ann", Path: "/w/Tree\n[x]", Parked: "/w/.trash/ann/1", Files: 10_000, Size: 1 << 40, Identity: "8:77"})
	bobs := put(checkpoint.Trashed{Principal: "bob", Path: "/w/b", Parked: "/w/.trash/bob/1"})
	if small.Phase != checkpoint.Parked || !small.Expires.Equal(c.t.Add(24*time.Hour)) || tree.Phase != checkpoint.Parking || !tree.Expires.Equal(c.t.Add(168*time.Hour)) {
		t.Errorf("an agent's is kept for 24 h, a user's for 168 h; only what has to be moved is still on its way: %+v %+v", small, tree)
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
	same("what is on its way is not in the trash yet", list(ann), small.ID)
	same("a crash's leavings", list(checkpoint.TrashFilter{AllPrincipals: true, Unsettled: true}), bobs.ID, tree.ID)
	for _, e := range []checkpoint.Trashed{tree, bobs} {
		if err := d.TrashSettle(ctx, e.ID, checkpoint.Parked); err != nil {
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
	tree.Phase = checkpoint.Parked
	if err != nil || got != tree {
		t.Errorf("an entry must come back as it was put: %+v, want %+v, %v", got, tree, err)
	}
	var badID *checkpoint.BadIDError
	for _, id := range []checkpoint.TrashID{"", checkpoint.TrashID(del), "tr-../../x", tree.ID + "0"} {
		if _, err := d.TrashGet(ctx, id, "ann", false); !errors.As(err, &badID) {
			t.Errorf("%q: %v", id, err)
		}
	}

	side, err := d.Sidecar(ctx, tree)
	if err != nil || !strings.HasPrefix(string(side), "[Trash Info]\nPath=/w/Tree%0A%5Bx%5D\n") {
		t.Fatalf("%q %v", side, err)
	}
	if e, err := d.ReadSidecar(ctx, side); err != nil || e.ID != tree.ID {
		t.Errorf("a sidecar of ours must be taken: %+v %v", e, err)
	}
	for i := range side {
		forged := bytes.Clone(side)
		forged[i] ^= 1
		if _, err := d.ReadSidecar(ctx, forged); !errors.Is(err, checkpoint.ErrForged) {
			t.Fatalf("a sidecar with byte %d changed must be ErrForged, not %v", i, err)
		}
	}
	for _, forged := range []string{"", "[Trash Info]\nPath=/etc/passwd\n", string(side) + "Path=/etc/x\n", "Path=/etc/x\n" + string(side), strings.Repeat("x", 1<<20)} {
		if _, err := d.ReadSidecar(ctx, []byte(forged)); !errors.Is(err, checkpoint.ErrForged) {
			t.Errorf("%.40q: %v", forged, err)
		}
	}
	other := open(t, t.TempDir(), checkpoint.Options{})
	if _, err := other.ReadSidecar(ctx, side); !errors.Is(err, checkpoint.ErrForged) {
		t.Errorf("another store's sidecar is none of ours: %v", err)
	}

	if err := d.TrashDrop(ctx, tree.ID); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("what is still parked must not be forgotten: %v", err)
	}
	for _, id := range []checkpoint.TrashID{tree.ID, bobs.ID} {
		if err := d.TrashSettle(ctx, id, checkpoint.Gone); err != nil {
			t.Fatal(err)
		}
		if err := d.TrashDrop(ctx, id); err != nil {
			t.Fatal(err)
		}
		if _, err := d.TrashGet(ctx, id, "", true); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("what is gone is not found: %v", err)
		}
		if err := d.TrashSettle(ctx, id, checkpoint.Parked); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("what is gone is parked again: %v", err)
		}
	}
	if e := put(checkpoint.Trashed{Principal: "bob", Path: "/w/c", Parked: "/w/.trash/bob/2"}); e.ID == bobs.ID || e.ID == tree.ID {
		t.Error("an id must not be given out twice")
	}
	var bad *checkpoint.BadOpError
	for _, e := range []checkpoint.Trashed{{Path: "/w/x", Kind: checkpoint.File}, {Path: "w/x", Kind: checkpoint.File, Parked: "/p"}, {Path: "/w/x", Kind: "fifo", Parked: "/p"}, {Path: "/w/x", Parked: "/p"}, {Path: "/w/x", Kind: checkpoint.File, Parked: "p"}} {
		if _, err := d.TrashPut(ctx, e); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}
