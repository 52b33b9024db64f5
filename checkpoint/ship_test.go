package checkpoint_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/checkpointtest"
	"moltisfs/internal/fleetbox"
)

// shipped opens a local store that is shipped, and the remote one.
func shipped(t *testing.T) (local, remote *checkpoint.DB, s *checkpoint.Shipper) {
	t.Helper()
	local, remote = open(t, t.TempDir(), checkpoint.Options{Ships: true}), open(t, t.TempDir(), checkpoint.Options{})
	return local, remote, checkpoint.Sender(local, remote)
}

// shipTo ships to the store in dir, as a process does.
func shipTo(t *testing.T, local *checkpoint.DB, dir string) *checkpoint.Shipper {
	return checkpoint.Ship(local, checkpoint.NotCut, func() (*checkpoint.DB, error) { return openAt(dir, fleetOf(t, dir), checkpoint.Options{}) })
}

func round(t *testing.T, s *checkpoint.Shipper) {
	t.Helper()
	if err := s.Round(ctx); err != nil {
		t.Fatal(err)
	}
}

// behind wants so many operations unsent.
func behind(t *testing.T, d *checkpoint.DB, want int) {
	t.Helper()
	n, oldest, err := d.Behind(ctx)
	if err != nil || n != want || oldest.IsZero() != (want == 0) {
		t.Errorf("%d are unsent, since %v, not %d: %v", n, oldest, want, err)
	}
}

// order lists the ids of all checkpoints, the oldest first.
func order(t *testing.T, d *checkpoint.DB) (ids []checkpoint.ID) {
	t.Helper()
	f := checkpoint.Filter{AllSessions: true, Limit: 1000}
	for {
		page, err := d.List(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Checkpoints {
			ids = append(ids, c.ID)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			slices.Reverse(ids)
			return ids
		}
	}
}

// A history that was shipped while it was made, with all that was marked later, answers as the local one.
func TestShippedAnswersAsTheLocal(t *testing.T) {
	t.Parallel()
	for seed := range int64(checkpointtest.Rounds(4)) {
		dir := t.TempDir()
		local, remote := open(t, t.TempDir(), checkpoint.Options{Ships: true}), open(t, dir, checkpoint.Options{})
		s := checkpoint.Sender(local, remote)
		historied := func() {
			historied(t, local, 60+seed, s.Forget)
			for _, session := range []string{"s1", "s2"} { // a turn is sent with what was done in it or after it
				o := op(edit("/w/end"+session, nil, []byte("end")))
				o.Session = session
				save(t, local, o)
			}
		}
		if seed%2 == 0 {
			historied()
			behind(t, local, len(order(t, local)))
			round(t, s)
		} else {
			loop := shipTo(t, local, dir)
			historied()
			if err := loop.End(); err != nil {
				t.Log(err)
			}
			round(t, s) // a second may be too short for the rest
		}
		behind(t, local, 0)
		sameAnswers(t, "shipped", answers(t, remote), answers(t, local))
		sound(t, remote)
		was := stats(t, remote)
		round(t, s)
		if now := stats(t, remote); now != was {
			t.Errorf("with nothing to send: %+v, before %+v", now, was)
		}
	}
}

// TestMarksAreShipped changes operations that were sent before: pins, labels, outcomes. The remote store gets the changes, too.
func TestMarksAreShipped(t *testing.T) {
	local, remote, s := shipped(t)
	parked := checkpoint.Change{Path: "/w/gone", Role: checkpoint.RoleTree, Before: checkpoint.State{Kind: checkpoint.Dir, Mode: 0o755},
		Moved: checkpoint.Moved{To: "/t/gone", Identity: "8:1"}, Trash: &checkpoint.Trashed{Parked: "/t/gone", Files: 3, Identity: "8:1"}}
	saved, err := local.Save(ctx, op(parked))
	if err != nil {
		t.Fatal(err)
	}
	trash := saved.Trashed[0].ID
	id := save(t, local, op(edit("/w/a", []byte("1"), []byte("2"))))
	undo := op(edit("/w/a", []byte("2"), []byte("1")))
	undo.Kind, undo.UndoOf = checkpoint.KindRestore, id
	undoID := save(t, local, undo)
	round(t, s)
	for i, change := range []func() error{
		func() error { return local.TrashSettle(ctx, trash, true) },
		func() error { return local.TrashRename(ctx, trash, "/t/other") },
		func() error { return local.Pin(ctx, id, ann) },
		func() error { return local.Label(ctx, id, ann, "here") },
		func() error { return local.Settle(ctx, undoID, checkpoint.Aborted) },
		func() error { return local.Settle(ctx, id, checkpoint.Foreign) },
		func() error { return local.Unpin(ctx, id, ann) },
		func() error { return local.TrashDrop(ctx, trash) },
	} {
		if err := change(); err != nil {
			t.Fatal(i, err)
		}
		behind(t, local, 1)
		round(t, s)
		behind(t, local, 0)
		sameAnswers(t, fmt.Sprint("change ", i), answers(t, remote), answers(t, local))
	}
	all := order(t, remote)
	last := save(t, local, op(edit("/w/b", []byte("1"), []byte("2"))))
	round(t, s)
	if want := append(all, last); !slices.Equal(order(t, remote), want) {
		t.Errorf("%v, not %v", order(t, remote), want)
	}
}

// The remote store's retention is its own: what it took does not come again when it is marked here.
func TestMarksOfWhatIsGoneThere(t *testing.T) {
	local := open(t, t.TempDir(), checkpoint.Options{Ships: true})
	remote := open(t, t.TempDir(), checkpoint.Options{KeepWithin: 1, KeepLast: checkpoint.KeepNone})
	s := checkpoint.Sender(local, remote)
	id := save(t, local, op(edit("/w/a", incompressible(1, 400<<10), incompressible(2, 400<<10))))
	last := save(t, local, op(edit("/w/a", incompressible(2, 400<<10), []byte("3"))))
	round(t, s)
	if r, err := remote.GC(ctx, false); err != nil || r.Checkpoints != 1 {
		t.Fatal(r, err)
	}
	if err := local.Label(ctx, id, ann, "late"); err != nil {
		t.Fatal(err)
	}
	round(t, s)
	behind(t, local, 0)
	if got := order(t, remote); !slices.Equal(got, []checkpoint.ID{last}) {
		t.Errorf("%v", got)
	}
}

// An open operation is not sent, nor what comes after it. Marks of what is there are.
func TestWhatIsOpenIsNotShipped(t *testing.T) {
	local, remote, s := shipped(t)
	do := func(session, path, tag string) checkpoint.ID {
		o := op(edit(path, []byte("1"), []byte("2")))
		o.Session, o.Tag = session, tag
		return save(t, local, o)
	}
	before := do("s1", "/w/d/a", "")
	round(t, s)
	open := do("s1", "/w/d/a", "t")
	after := do("s2", "/w/other", "")
	if err := local.Pin(ctx, before, checkpoint.Scope{Principal: "ann", Session: "s1"}); err != nil {
		t.Fatal(err)
	}
	behind(t, local, 3)
	round(t, s)
	if got := order(t, remote); !slices.Equal(got, []checkpoint.ID{before}) {
		t.Errorf("%v", got)
	}
	if c, err := remote.Get(ctx, before, checkpoint.Scope{AllSessions: true}); err != nil || !c.Pinned {
		t.Error(c, err)
	}
	behind(t, local, 2)
	if err := local.Settle(ctx, open, checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
	round(t, s)
	if got := order(t, remote); !slices.Equal(got, []checkpoint.ID{before, open, after}) {
		t.Errorf("%v", got)
	}
	behind(t, local, 0)
}

// Retention leaves what is unsent, and what it names. When nothing else is left the store is full, and says why.
func TestUnsentStays(t *testing.T) {
	o := checkpoint.Options{Ships: true, KeepWithin: 1, KeepLast: checkpoint.KeepNone, MaxBytes: 4 << 20}
	local, remote := open(t, t.TempDir(), o), open(t, t.TempDir(), checkpoint.Options{})
	s := checkpoint.Sender(local, remote)
	first := save(t, local, op(edit("/w/a", []byte("1"), []byte("2"))))
	round(t, s)
	undo := op(edit("/w/a", []byte("2"), []byte("1")))
	undo.Kind, undo.UndoOf = checkpoint.KindRestore, first
	save(t, local, undo)
	var full *checkpoint.FullError
	saves := 0
	for ; saves < 100; saves++ {
		_, err := local.Save(ctx, op(edit(fmt.Sprint("/w/", saves), randomText(200<<10, int64(saves)), nil)))
		if errors.As(err, &full) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if full == nil || full.Unsent != saves+1 || !strings.Contains(full.Error(), "wait until") {
		t.Fatalf("%d saves: %v", saves, full)
	}
	if r, err := local.GC(ctx, false); err != nil || r.Checkpoints != 0 {
		t.Errorf("%+v %v", r, err)
	}
	round(t, s)
	if n := len(order(t, remote)); n != saves+2 {
		t.Errorf("%d arrived", n)
	}
	c, err := remote.Get(ctx, order(t, remote)[1], ann)
	if err != nil || c.UndoOf != first {
		t.Errorf("%+v %v", c, err)
	}
	save(t, local, op(edit("/w/more", randomText(200<<10, 1000), nil))) // there is room again
	sound(t, local)
}

// TestRetentionOfWhatWasSent has retention take operations from the local store after they were sent: the remote store keeps them.
func TestRetentionOfWhatWasSent(t *testing.T) {
	local, remote := open(t, t.TempDir(), checkpoint.Options{Ships: true, KeepWithin: 1, KeepLast: checkpoint.KeepNone}), open(t, t.TempDir(), checkpoint.Options{})
	s := checkpoint.Sender(local, remote)
	for i := range 3 {
		o := op(edit("/w/a", []byte(fmt.Sprint(i)), []byte(fmt.Sprint(i+1))))
		o.Turn = "1"
		save(t, local, o)
		round(t, s)
		if r, err := local.GC(ctx, false); err != nil || (r.Checkpoints > 0) != (i > 0) {
			t.Fatal(r, err)
		}
	}
	p, err := remote.Plan(ctx, checkpoint.Restore{Principal: ann.Principal, Session: ann.Session, Turn: "1"})
	if err != nil || len(p.Undoes) != 3 || p.Lost != nil {
		t.Errorf("%+v %v", p, err)
	}
}

// Two processes that ship one store, while it is marked: each operation arrives once, and its last state stays.
func TestTwoShippers(t *testing.T) {
	t.Parallel()
	dir, remoteDir := t.TempDir(), t.TempDir()
	remote := open(t, remoteDir, checkpoint.Options{})
	var locals []*checkpoint.DB
	var all sync.WaitGroup
	var shippers []*checkpoint.Shipper
	for range 2 {
		d := open(t, dir, checkpoint.Options{Ships: true})
		locals, shippers = append(locals, d), append(shippers, shipTo(t, d, remoteDir))
	}
	for i, d := range locals {
		all.Go(func() {
			var mine []checkpoint.ID
			for n := range 40 {
				o := op(edit(fmt.Sprint("/w/", i, n%3), []byte(fmt.Sprint(n)), []byte(fmt.Sprint(n+1))))
				o.Session = fmt.Sprint("s", i)
				s, err := d.Save(ctx, o)
				if err == nil {
					mine = append(mine, s.ID)
					err = d.Label(ctx, mine[n/2], checkpoint.Scope{Principal: o.Principal, Session: o.Session}, fmt.Sprint("label ", n))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, s := range shippers {
		if err := s.End(); err != nil {
			t.Log(err) // a second may be too short
		}
	}
	round(t, checkpoint.Sender(locals[0], remote))
	behind(t, locals[1], 0)
	sameAnswers(t, "two shippers", answers(t, remote), answers(t, locals[0]))
	if got, want := order(t, remote), order(t, locals[0]); !slices.Equal(got, want) {
		t.Errorf("%v\nnot\n%v", got, want)
	}
}

// A store that had a history before it was shipped sends that first, once, with what retention took of it.
func TestShipBegins(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{KeepWithin: 1, KeepLast: checkpoint.KeepNone})
	for i := range 6 {
		id := save(t, d, op(edit("/w/a", []byte(fmt.Sprint(i)), []byte(fmt.Sprint(i+1)))))
		if i%2 == 0 {
			if err := d.Pin(ctx, id, ann); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r, err := d.GC(ctx, false); err != nil || r.Checkpoints == 0 {
		t.Fatal(r, err)
	}
	if checkpoint.Sender(d, d).Round(ctx) == nil {
		t.Error("without Ships nothing is noted, so nothing could be sent")
	}
	local, remote := open(t, dir, checkpoint.Options{Ships: true}), open(t, t.TempDir(), checkpoint.Options{})
	o := op(edit("/w/open", nil, []byte("1")))
	o.Tag, o.Session = "t", "s2"
	opened := save(t, local, o)
	save(t, local, op(edit("/w/b", nil, []byte("1"))))
	s := checkpoint.Sender(local, remote)
	round(t, s)
	behind(t, local, 2) // what is open, and what came after it
	if err := local.Settle(ctx, opened, checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
	round(t, s)
	behind(t, local, 0)
	got, want := answers(t, remote), answers(t, local)
	if len(order(t, remote)) != len(order(t, local)) {
		t.Errorf("%v", order(t, remote))
	}
	for _, q := range []string{"undo s", "redo s", "known s"} {
		if got[q] != want[q] {
			t.Errorf("%s: %s\n%s", q, got[q], want[q])
		}
	}
	p, err := remote.Undo(ctx, ann)
	if err != nil || p.Lost != nil && len(p.Items) == 0 {
		t.Error(p, err)
	}
}

// TestShipBeginsWithWhatGoesThere has retention of the remote store take an operation that the first copy brought, before the local store notes that
// it was sent: it does not come again, out of order. Marks that were set meanwhile are sent.
func TestShipBeginsWithWhatGoesThere(t *testing.T) {
	t.Parallel()
	local := open(t, t.TempDir(), checkpoint.Options{Ships: true})
	remote := open(t, t.TempDir(), checkpoint.Options{KeepWithin: 1, KeepLast: checkpoint.KeepNone})
	save(t, local, op(edit("/w/a", []byte("1"), []byte("2"))))
	last := save(t, local, op(edit("/w/a", []byte("2"), []byte("3"))))
	s := checkpoint.Sender(local, remote)
	if _, err := s.Fetch(ctx, ann.Principal, ann.Session); err != nil { // it begins, and sends nothing
		t.Fatal(err)
	}
	if r, err := remote.GC(ctx, false); err != nil || r.Checkpoints != 1 {
		t.Fatal(r, err)
	}
	if err := local.Label(ctx, last, ann, "late"); err != nil {
		t.Fatal(err)
	}
	round(t, s)
	behind(t, local, 0)
	if got := order(t, remote); !slices.Equal(got, []checkpoint.ID{last}) {
		t.Errorf("%v", got)
	}
	if c, err := remote.Get(ctx, last, ann); err != nil || c.Label != "late" {
		t.Error(c, err)
	}
}

// A purge of the local store reaches the remote one, and what was read before it is not sent after it.
func TestPurgeOfWhatIsShipped(t *testing.T) {
	local, remote, s := shipped(t)
	secret, other := []byte("a secret that must go"), []byte("it stays")
	save(t, local, op(edit("/w/a", secret, other)))
	round(t, s)
	save(t, local, op(edit("/w/b", secret, nil)))
	if p, err := local.Purge(ctx, checkpoint.Purge{Hash: sum(secret), Forget: s.Forget}); err != nil || p.Contents != 1 {
		t.Fatal(p, err)
	}
	round(t, s)
	for _, d := range []*checkpoint.DB{local, remote} {
		if _, err := d.Content(ctx, sum(secret)); !errors.Is(err, checkpoint.ErrNoContent) {
			t.Error(err)
		}
		if b, err := d.Content(ctx, sum(other)); err != nil || string(b) != string(other) {
			t.Error(err)
		}
	}
	sameAnswers(t, "purged", answers(t, remote), answers(t, local))
}

// onPut calls put before a content is written.
type onPut struct {
	blob.Store
	put func()
}

func (o onPut) Put(ctx context.Context, name string, z []byte) error {
	o.put()
	return o.Store.Put(ctx, name, z)
}

// While an operation is sent a save brings contents that it only named, and a purge takes some that it has. Both are seen.
func TestContentsChangeWhileTheyAreSent(t *testing.T) {
	named, large := [][]byte{[]byte("of this only the hash is known"), incompressible(3, 400<<10)}, incompressible(1, 400<<10)
	secrets := [][]byte{[]byte("a secret that must go"), incompressible(2, 400<<10)}
	local := open(t, t.TempDir(), checkpoint.Options{Ships: true})
	var s *checkpoint.Shipper
	change := sync.OnceFunc(func() {
		save(t, local, op(edit("/w/a0", named[0], nil), edit("/w/a1", named[1], nil)))
		for _, secret := range secrets {
			if _, err := local.Purge(ctx, checkpoint.Purge{Hash: sum(secret), Forget: s.Forget}); err != nil {
				t.Error(err)
			}
		}
	})
	files := &blob.Files{Dir: t.TempDir()}
	remote := open(t, t.TempDir(), checkpoint.Options{Blobs: onPut{files, change}})
	s = checkpoint.Sender(local, remote)
	first := op(edit("/w/a0", nil, named[0]), edit("/w/a1", nil, named[1]), edit("/w/b", large, nil), edit("/w/c", secrets[0], nil),
		edit("/w/d", secrets[1], nil))
	first.Changes[0].AfterContent, first.Changes[1].AfterContent = nil, nil
	save(t, local, first)
	round(t, s)
	behind(t, local, 0)
	for i, want := range append(named, large) {
		if b, err := remote.Content(ctx, sum(want)); err != nil || !bytes.Equal(b, want) {
			t.Errorf("content %d has %d bytes: %v", i, len(b), err)
		}
	}
	for _, secret := range secrets {
		if _, err := remote.Content(ctx, sum(secret)); !errors.Is(err, checkpoint.ErrNoContent) {
			t.Error("what a purge took: ", err)
		}
	}
	left := 0
	if err := files.List(ctx, func(string, int64) error { left++; return nil }); err != nil || left != 2 {
		t.Errorf("%d large contents are left, not two: %v", left, err)
	}
	sameAnswers(t, "changed", answers(t, remote), answers(t, local))
}

// While a large delta is sent a purge takes what it stands on, and so packs it anew: its new row is not written over its old bytes.
func TestABaseIsPurgedWhileItIsSent(t *testing.T) {
	secret := incompressible(1, 600<<10)
	large := append(slices.Clone(secret[:300<<10]), incompressible(2, 300<<10)...)
	local := open(t, t.TempDir(), checkpoint.Options{Ships: true})
	purge := sync.OnceFunc(func() {
		if _, err := local.Purge(ctx, checkpoint.Purge{Hash: sum(secret)}); err != nil {
			t.Error(err)
		}
	})
	remote := open(t, t.TempDir(), checkpoint.Options{Blobs: onPut{&blob.Files{Dir: t.TempDir()}, purge}})
	save(t, local, op(edit("/w/a", secret, large)))
	round(t, checkpoint.Sender(local, remote))
	behind(t, local, 0)
	if b, err := remote.Content(ctx, sum(large)); err != nil || !bytes.Equal(b, large) {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	if _, err := remote.Content(ctx, sum(secret)); !errors.Is(err, checkpoint.ErrNoContent) {
		t.Error(err)
	}
	sound(t, remote)
}

// onGet calls get before a content is read.
type onGet struct {
	blob.Store
	get func() error
}

func (o onGet) Get(ctx context.Context, name string, size int64) ([]byte, error) {
	if err := o.get(); err != nil {
		return nil, err
	}
	return o.Store.Get(ctx, name, size)
}

// An operation is marked while it is sent, and the remote store's retention takes it before the mark is sent: it does not come again after what
// came after it.
func TestMarkedWhileItIsSent(t *testing.T) {
	var local *checkpoint.DB
	var first checkpoint.ID
	gone := onGet{&blob.Files{Dir: t.TempDir()}, func() error { // a content that is gone is looked for each time that the operation is read
		return errors.Join(local.Label(ctx, first, ann, "here"), fs.ErrNotExist)
	}}
	local = open(t, t.TempDir(), checkpoint.Options{Ships: true, Blobs: gone})
	remote := open(t, t.TempDir(), checkpoint.Options{KeepWithin: 1, KeepLast: checkpoint.KeepNone})
	s := checkpoint.Sender(local, remote)
	round(t, s) // it begins
	first = save(t, local, op(edit("/w/a", incompressible(1, 400<<10), nil)))
	last := save(t, local, op(edit("/w/b", nil, []byte("1"))))
	round(t, s)
	behind(t, local, 1)
	if r, err := remote.GC(ctx, false); err != nil || r.Checkpoints != 1 {
		t.Fatal(r, err)
	}
	round(t, s)
	behind(t, local, 0)
	if got := order(t, remote); !slices.Equal(got, []checkpoint.ID{last}) {
		t.Errorf("%v came again", got)
	}
}

// A session changes something here while it is fetched: what comes after that would be out of order.
func TestSavedWhileItIsFetched(t *testing.T) {
	a, b := open(t, t.TempDir(), checkpoint.Options{Ships: true}), open(t, t.TempDir(), checkpoint.Options{Ships: true})
	saving := sync.OnceFunc(func() { save(t, b, op(edit("/w/b", nil, []byte("1")))) })
	remote := open(t, t.TempDir(), checkpoint.Options{Blobs: onGet{&blob.Files{Dir: t.TempDir()}, func() error { saving(); return nil }}})
	save(t, a, op(edit("/w/a", incompressible(1, 400<<10), nil)))
	round(t, checkpoint.Sender(a, remote))
	if n, err := checkpoint.Sender(b, remote).Fetch(ctx, ann.Principal, ann.Session); n != 0 || !errors.Is(err, checkpoint.ErrElsewhere) {
		t.Error(n, err)
	}
	if n := len(order(t, b)); n != 1 {
		t.Errorf("%d operations are here", n)
	}
}

// A history that is copied into a store that is shipped is shipped, too.
func TestCopyIsShipped(t *testing.T) {
	local, remote, s := shipped(t)
	round(t, s)
	from := open(t, t.TempDir(), checkpoint.Options{})
	series(t, from, "/w/a", 2000, 3, 1)
	copied(t, from, local)
	behind(t, local, 3)
	round(t, s)
	sameAnswers(t, "copied and shipped", answers(t, remote), answers(t, from))
}

// A key of contents is missing: they are damaged, and all else is sent.
func TestShipWithoutAKey(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	local, remote := open(t, dir, checkpoint.Options{Ships: true, EncryptTo: id.Recipient().String()}), open(t, t.TempDir(), checkpoint.Options{})
	first := save(t, local, op(edit("/w/a", []byte("1"), nil)))
	if err := local.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db"))
	if err == nil {
		_, err = db.Exec("DELETE FROM seal")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	local = open(t, dir, checkpoint.Options{Ships: true})
	last := save(t, local, op(edit("/w/b", []byte("2"), nil)))
	round(t, checkpoint.Sender(local, remote))
	behind(t, local, 0)
	if got := order(t, remote); !slices.Equal(got, []checkpoint.ID{first, last}) {
		t.Errorf("%v", got)
	}
	if c, err := remote.Get(ctx, first, ann); err != nil || c.Changes[0].Skipped != checkpoint.SkipDamaged {
		t.Errorf("%+v %v", c, err)
	}
}

// The database of the fleet is gone for a while: saves go on, and all arrives when it is back.
func TestShipWhileTheDatabaseIsGone(t *testing.T) {
	t.Parallel()
	database, wire := fleetbox.Wired(t, fleetbox.Database(t))
	database += " " + fleetbox.Contents(t, nil)
	remote, err := openAt("", database, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	told := make(warnings, 1)
	local := open(t, t.TempDir(), checkpoint.Options{Ships: true, Logger: slog.New(slog.NewTextHandler(told, nil))})
	s := checkpoint.Ship(local, checkpoint.NotCut, func() (*checkpoint.DB, error) { return openAt("", database, checkpoint.Options{}) })
	series(t, local, "/w/a", 2000, 5, 1)
	wire.Cut()
	if _, err := s.Fetch(ctx, "ann", "elsewhere"); err == nil {
		t.Error("what can't be fetched must be said")
	}
	series(t, local, "/w/b", 2000, 20, 2)
	if _, _, err := local.Behind(ctx); err != nil {
		t.Error(err)
	}
	<-told // it is at it
	if err := s.Close(); err == nil {
		t.Error("with the database gone not all was sent, and Close says nothing")
	}
	wire.Mend()
	round(t, checkpoint.Sender(local, remote))
	behind(t, local, 0)
	if got, want := order(t, remote), order(t, local); !slices.Equal(got, want) || len(got) != 25 {
		t.Errorf("%v\nnot\n%v", got, want)
	}
	sound(t, remote)
}

// warnings gets the first line that is logged.
type warnings chan string

func (w warnings) Write(b []byte) (int, error) {
	select {
	case w <- string(b):
	default:
	}
	return len(b), nil
}

// A session goes from gateway to gateway: its history comes along, and an undo takes back what was done on the other one.
func TestFetch(t *testing.T) {
	a, remote, sa := shipped(t)
	b := open(t, t.TempDir(), checkpoint.Options{Ships: true})
	sb := checkpoint.Sender(b, remote)
	save(t, b, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "ann", Session: "another",
		Changes: []checkpoint.Change{edit("/w/z", nil, []byte("z"))}})
	fetch := func(s *checkpoint.Shipper, want int, left error) {
		t.Helper()
		n, err := s.Fetch(ctx, ann.Principal, ann.Session)
		if n != want || !errors.Is(err, left) {
			t.Fatalf("%d %v, not %d and %v", n, err, want, left)
		}
	}
	fetch(sb, 0, nil)
	versions := series(t, a, "/w/a", 3000, 4, 1)
	turn := op(edit("/w/t", nil, []byte("t")))
	turn.Turn = "1"
	save(t, a, turn)
	round(t, sa)
	fetch(sb, 5, nil)
	fetch(sb, 0, nil)
	behind(t, b, 1) // of the other session: what was fetched is not to be sent
	want := answers(t, a)
	got := answers(t, b)
	for _, q := range []string{"undo s", "redo s", "known s"} {
		if got[q] != want[q] {
			t.Errorf("%s: %s\n%s", q, got[q], want[q])
		}
	}
	p, err := b.Undo(ctx, ann)
	if err != nil || p.Items[0].Path != "/w/t" {
		t.Fatal(p, err)
	}
	undo := op(edit("/w/t", []byte("t"), nil))
	undo.Kind, undo.UndoOf = checkpoint.KindRestore, p.UndoOf
	save(t, b, undo)
	if p, err = b.Undo(ctx, ann); err != nil || p.Items[0].Want.Hash != sum(versions[3]) {
		t.Fatal(p, err)
	}
	round(t, sb)
	fetch(sa, 1, nil)                          // and back
	for _, d := range []*checkpoint.DB{a, b} { // begun on both, before anything is done in it
		if _, err := d.BeginTurn(ctx, ann, "2"); err != nil {
			t.Fatal(err)
		}
	}
	late := op(edit("/w/t2", nil, []byte("t")))
	late.Turn = "2"
	save(t, b, late)
	round(t, sb)
	fetch(sa, 1, nil)
	for _, d := range []*checkpoint.DB{a, b} {
		p, err := d.Plan(ctx, checkpoint.Restore{Principal: ann.Principal, Session: ann.Session, Turn: "2"})
		if err != nil || len(p.Undoes) != 1 {
			t.Error(p, err)
		}
		p, err = d.Undo(ctx, ann)
		if err != nil || p.Items[0].Path != "/w/t2" {
			t.Fatal(p, err)
		}
	}
	back := op(edit("/w/t2", []byte("t"), nil))
	if p, err = a.Undo(ctx, ann); err != nil {
		t.Fatal(err)
	}
	back.Kind, back.UndoOf = checkpoint.KindRestore, p.UndoOf
	save(t, a, back)
	round(t, sa)
	fetch(sb, 1, nil)
	if p, err = a.Undo(ctx, ann); err != nil || p.Items[0].Want.Hash != sum(versions[3]) {
		t.Fatal(p, err)
	}
	if p, err = b.Redo(ctx, ann); err != nil || p.Items[0].Path != "/w/t2" {
		t.Fatal(p, err)
	}
	// Both go on without knowing of one another. What comes late would be out of order.
	save(t, b, op(edit("/w/b", nil, []byte("b"))))
	save(t, a, op(edit("/w/c", nil, []byte("c"))))
	round(t, sb)
	fetch(sa, 0, checkpoint.ErrElsewhere)
	round(t, sa)
	fetch(sa, 0, nil)
	fetch(sb, 1, nil)
	sound(t, a)
	sound(t, b)
	sound(t, remote)
}

// The remote store's retention took the beginning of a session: what is fetched knows that.
func TestFetchAfterRetention(t *testing.T) {
	a := open(t, t.TempDir(), checkpoint.Options{Ships: true})
	remote := open(t, t.TempDir(), checkpoint.Options{KeepWithin: 1, KeepLast: 1})
	sa := checkpoint.Sender(a, remote)
	for i := range 5 {
		o := op(edit("/w/a", []byte(fmt.Sprint(i)), []byte(fmt.Sprint(i+1))))
		o.Turn = fmt.Sprint(i)
		save(t, a, o)
	}
	round(t, sa)
	if r, err := remote.GC(ctx, false); err != nil || r.Checkpoints != 4 {
		t.Fatal(r, err)
	}
	b := open(t, t.TempDir(), checkpoint.Options{Ships: true})
	if n, err := checkpoint.Sender(b, remote).Fetch(ctx, ann.Principal, ann.Session); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	sameAnswers(t, "fetched", answers(t, b), answers(t, remote))
	partial(t, b, "the turn that is gone in part", checkpoint.Restore{Principal: ann.Principal, Session: ann.Session, Turn: "2"})
	// a has all of it, and gets nothing again.
	if n, err := sa.Fetch(ctx, ann.Principal, ann.Session); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	if len(order(t, a)) != 5 {
		t.Error(order(t, a))
	}
}

// What a gateway's own retention took does not come back after what it has, also where the remote store kept just that.
func TestFetchBringsNothingOld(t *testing.T) {
	none := checkpoint.Options{KeepWithin: 1, KeepLast: checkpoint.KeepNone, Ships: true}
	a := open(t, t.TempDir(), none)
	remote := open(t, t.TempDir(), checkpoint.Options{KeepWithin: 1, KeepLast: checkpoint.KeepNone})
	s := checkpoint.Sender(a, remote)
	old := save(t, a, op(edit("/w/a", []byte("1"), []byte("2"))))
	round(t, s)
	save(t, a, op(edit("/w/a", []byte("2"), []byte("3"))))
	if err := remote.Pin(ctx, old, ann); err != nil {
		t.Fatal(err)
	}
	if r, err := a.GC(ctx, false); err != nil || r.Checkpoints != 1 {
		t.Fatal(r, err)
	}
	round(t, s)
	other := op(edit("/w/b", nil, []byte("1")))
	other.Session = "other"
	save(t, a, other)
	round(t, s)
	if r, err := remote.GC(ctx, false); err != nil || r.Checkpoints != 1 {
		t.Fatal(r, err, order(t, remote))
	}
	if n, err := s.Fetch(ctx, ann.Principal, ann.Session); err != nil || n != 0 {
		t.Fatal(n, err)
	}
}

// A process that saves and ships is killed at some moment, over and over. All that it acknowledged arrives, once and in order, though its
// own retention takes away what was sent.
func TestKilledShipper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acks []string
	for seed := range int64(checkpointtest.Rounds(8)) {
		p := spawn(t, "shipping", seed, dir)
		p.kill(t, time.Duration(rand.Intn(60_000))*time.Microsecond)
		acks = append(acks, p.lines...)
		local := open(t, filepath.Join(dir, "local"), checkpoint.Options{Ships: true})
		remote := open(t, filepath.Join(dir, "remote"), checkpoint.Options{})
		ops, err := local.Open(ctx)
		for _, o := range ops {
			err = errors.Join(err, local.Settle(ctx, o.ID, checkpoint.Committed))
		}
		if err != nil {
			t.Fatal(err)
		}
		round(t, checkpoint.Sender(local, remote))
		behind(t, local, 0)
		if n, lost := acknowledged(remote, acks); n == 0 || len(lost) > 0 {
			t.Fatalf("seed %d: of %d acknowledged saves are lost: %v", seed, n, lost)
		}
		all := order(t, remote)
		var want []checkpoint.ID // in the order of the acknowledgements
		for _, l := range acks {
			if f := strings.Fields(l); len(f) == 4 {
				want = append(want, checkpoint.ID(f[1]))
			}
		}
		i := 0
		for _, id := range all {
			if i < len(want) && id == want[i] {
				i++
			}
		}
		if i < len(want) || len(all) > len(want)+int(seed)+1 { // the last save of each may not have been acknowledged
			t.Fatalf("seed %d: %d operations, of %d acknowledged ones %d are in order", seed, len(all), len(want), i)
		}
		sound(t, remote)
	}
}
