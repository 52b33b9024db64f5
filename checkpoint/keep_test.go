package checkpoint_test

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/checkpointtest"
)

// clock is a time that the test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func TestGCKeepsWhatRetentionSays(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d := open(t, t.TempDir(), checkpoint.Options{KeepWithin: 24 * time.Hour, KeepLast: 5, Now: c.now})
	rng := rand.New(rand.NewSource(1))
	v := [][]byte{source(4000, 1)}
	var ids []checkpoint.ID
	for i := range 60 {
		v = append(v, nextVersion(rng, v[i]))
		ids = append(ids, save(t, d, op(edit("/w/a", v[i], v[i+1]))))
		c.t = c.t.Add(time.Hour)
	}
	if err := d.Pin(ctx, ids[3], ann); err != nil {
		t.Fatal(err)
	}
	rare := save(t, d, op(edit("/w/rare", nil, []byte("rare"))))
	del := edit("/w/trashed", []byte("in the trash"), nil)
	del.Trash = &checkpoint.Trashed{Parked: "/w/.trash/1", Expires: c.t.Add(10 * 24 * time.Hour)}
	s, err := d.Save(ctx, op(del))
	if err != nil {
		t.Fatal(err)
	}
	trashed, entry := s.ID, s.Trashed[0]
	both := op(edit("/w/a", v[60], v[61%len(v)]), edit("/w/other", []byte("x"), []byte("y")))
	save(t, d, both)
	for i := range 7 { // push it out of KeepLast
		save(t, d, op(edit("/w/trashed", []byte(fmt.Sprint(i)), []byte(fmt.Sprint(i+1)))))
	}
	c.t = c.t.Add(30 * time.Hour)
	dry, err := d.GC(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	before := stats(t, d)
	r, err := d.GC(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	if r.Checkpoints != dry.Checkpoints || r.Evicted != 0 {
		t.Errorf("a dry run must say what the run then does: %+v, did %+v", dry, r)
	}
	// Of /w/a: 60 edits, one more in both; the last 5 stay, so 4 of the 60, and the pinned one. Of /w/trashed the
	// last 5 of 8 and the one that the trash needs.
	if want := 60 - 4 - 1 + 8 - 5 - 1; r.Checkpoints != want {
		t.Errorf("%d checkpoints went, %d should", r.Checkpoints, want)
	}
	for i, id := range ids {
		_, err := d.Get(ctx, id, ann)
		if kept := i == 3 || i >= 56; kept != (err == nil) || (!kept && !errors.Is(err, checkpoint.ErrNotFound)) {
			t.Errorf("edit %d kept: %v, should be %v (%v)", i, err == nil, kept, err)
		}
		_, err = d.Content(ctx, sum(v[i]))
		if i == 3 || i >= 56 {
			if err != nil {
				t.Errorf("content before edit %d must be there: %v", i, err)
			}
		}
	}
	for _, id := range []checkpoint.ID{rare, trashed} {
		if _, err := d.Get(ctx, id, ann); err != nil {
			t.Errorf("%s must stay: %v", id, err)
		}
	}
	if _, err := d.Content(ctx, sum(v[20])); !errors.Is(err, checkpoint.ErrNoContent) {
		t.Errorf("what nothing refers to must be gone: %v", err)
	}
	after := stats(t, d)
	if after.StoredBytes >= before.StoredBytes {
		t.Errorf("gc must free bytes: %d before, %d after", before.StoredBytes, after.StoredBytes)
	}
	sound(t, d)
	if err := d.TrashDrop(ctx, entry.ID); err != nil {
		t.Fatal(err)
	}
	if err := d.Unpin(ctx, ids[3], ann); err != nil {
		t.Fatal(err)
	}
	if r, err := d.GC(ctx, false); err != nil || r.Checkpoints != 2 {
		t.Errorf("what is unpinned and no longer in the trash goes: %+v %v", r, err)
	}
	sound(t, d)
	series(t, d, "/w/a", 4000, 3, 9) // and life goes on
	sound(t, d)
}

// A zero that is meant is no default.
func TestGCKeepsNone(t *testing.T) {
	for _, o := range []checkpoint.Options{{KeepWithin: checkpoint.KeepNone, KeepLast: 3}, {KeepWithin: time.Hour, KeepLast: checkpoint.KeepNone}} {
		c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		o.Now = c.now
		d := open(t, t.TempDir(), o)
		for i := range 10 {
			save(t, d, op(edit("/w/a", []byte(fmt.Sprint(i)), []byte(fmt.Sprint(i+1)))))
			c.t = c.t.Add(25 * time.Minute)
		}
		c.t = c.t.Add(-15 * time.Minute)
		if r, err := d.GC(ctx, false); err != nil || r.Checkpoints != 7 {
			t.Errorf("%+v: %+v %v", o, r, err)
		}
	}
	var bad *checkpoint.BadOpError
	for _, o := range []checkpoint.Options{{KeepWithin: checkpoint.KeepNone, KeepLast: checkpoint.KeepNone}, {KeepLast: -2}, {KeepWithin: -2}} {
		if _, err := checkpoint.Open(t.TempDir(), o); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A delta that stays keeps the bases below it, and no other content of its chain.
func TestGCKeepsBases(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d := open(t, t.TempDir(), checkpoint.Options{KeepWithin: time.Hour, KeepLast: 1, Now: c.now})
	v := series(t, d, "/w/a", 12000, 80, 1)
	if s := stats(t, d); s.Deltas < 60 {
		t.Fatalf("the test needs chains, there are %d deltas", s.Deltas)
	}
	c.t = c.t.Add(2 * time.Hour)
	r, err := d.GC(ctx, false)
	if s := stats(t, d); err != nil || s.Contents > 34 || s.Contents+r.Contents != 81 || s.Checkpoints != 1 {
		t.Errorf("%d contents are left of %d checkpoints: %+v %v", s.Contents, s.Checkpoints, r, err)
	}
	sound(t, d)
	for _, b := range v[79:] {
		if got, err := d.Content(ctx, sum(b)); err != nil || string(got) != string(b) {
			t.Error("what stays must be readable:", err)
		}
	}
	save(t, d, op(edit("/w/b", nil, []byte("the newest stays"))))
	c.t = c.t.Add(2 * time.Hour)
	save(t, d, op(edit("/w/a", v[80], []byte("whole"))))
	c.t = c.t.Add(2 * time.Hour)
	save(t, d, op(edit("/w/a", []byte("whole"), nil)))
	if _, err := d.GC(ctx, false); err != nil {
		t.Fatal(err)
	}
	if s := stats(t, d); s.Contents != 2 {
		t.Errorf("a chain that nothing needs any more goes: %d contents", s.Contents)
	}
	sound(t, d)
}

func TestQuotaEvictsOldestFirst(t *testing.T) {
	const limit = 4 << 20
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{MaxBytes: limit})
	first := save(t, d, op(edit("/w/first", randomText(5000, 1), nil)))
	if err := d.Pin(ctx, first, ann); err != nil {
		t.Fatal(err)
	}
	var ids []checkpoint.ID
	for i := range 150 { // half as much again as there is room for
		ids = append(ids, save(t, d, op(edit(fmt.Sprintf("/w/f%d", i), randomText(40<<10, int64(i+2)), nil))))
		if s := stats(t, d); s.UsedBytes > limit {
			t.Fatalf("after save %d the store holds %d bytes of %d", i, s.UsedBytes, limit)
		}
	}
	if _, err := d.Get(ctx, first, ann); err != nil {
		t.Error("a pinned checkpoint must never be evicted:", err)
	}
	if _, err := d.Get(ctx, ids[0], ann); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Error("the oldest must have gone:", err)
	}
	if _, err := d.Get(ctx, ids[len(ids)-1], ann); err != nil {
		t.Error("the newest must be there:", err)
	}
	sound(t, d)
	var full *checkpoint.FullError
	before := stats(t, d).Checkpoints
	if _, err := d.Save(ctx, op(edit("/w/huge", randomText(limit+1, 1), nil))); !errors.As(err, &full) {
		t.Errorf("what can never fit is a FullError, not %v", err)
	}
	if after := stats(t, d).Checkpoints; after != before {
		t.Errorf("for what can never fit %d checkpoints went", before-after)
	}
	// Pin everything: now a save must be refused, not squeezed in.
	page, err := d.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range page.Checkpoints {
		if err := d.Pin(ctx, c.ID, ann); err != nil {
			t.Fatal(err)
		}
	}
	var got error
	for i := 0; i < 200 && got == nil; i++ {
		var s checkpoint.Saved
		if s, got = d.Save(ctx, op(edit(fmt.Sprintf("/w/p%d", i), randomText(40<<10, int64(1000+i)), nil))); got == nil {
			got = d.Pin(ctx, s.ID, ann)
		}
	}
	if !errors.As(got, &full) {
		t.Errorf("a store full of pins refuses: %v", got)
	}
	sound(t, d)
}

// Of few large checkpoints one goes for the next, not all for the sake of one.
func TestFewLargeCheckpointsGoOneByOne(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir(), checkpoint.Options{MaxBytes: 1_300_000})
	for i := range 30 {
		save(t, d, op(edit(fmt.Sprintf("/w/f%d", i), randomText(80<<10, int64(i)), nil)))
		if n := stats(t, d).Checkpoints; n < min(i+1, 6) {
			t.Fatalf("after save %d only %d checkpoints are left", i, n)
		}
	}
}

// meanwhile does something over and over until end, or until it fails.
func meanwhile(t *testing.T, do func() error) (end func()) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := do(); err != nil {
				done <- err
				return
			}
		}
	}()
	return func() {
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Retention in the middle of use: a model-checked random run while another goroutine cleans all the time.
func TestRandomWhileCleaning(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	end := meanwhile(t, func() error {
		_, err := d.GC(ctx, false)
		return err
	})
	steps := 600
	if testing.Short() || inPostgres(t) {
		steps = 150
	}
	checkpointtest.Drive(t, d, 7, steps)
	end()
	sound(t, d)
}

func TestSkips(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{MaxFileBytes: 1000, Exclude: func(p string) bool { return p == "/w/.env" }})
	big, secret := randomText(1001, 1), []byte("TOKEN=hunter2 and more")
	s, err := d.Save(ctx, op(edit("/w/big", big, []byte("x")), edit("/w/.env", secret, secret[:5]), edit("/w/ok", []byte("1"), randomText(2000, 2)),
		checkpoint.Change{Path: "/w/hash", Before: file([]byte("never given"))}, checkpoint.Change{Path: "/w/hash2", Before: file([]byte("1"))}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"/w/big": checkpoint.SkipTooLarge, "/w/.env": checkpoint.SkipExcluded, "/w/hash": "hash_only"}
	for _, k := range s.Skipped {
		if want[k.Path] != k.Why {
			t.Errorf("%+v should not be skipped, or for another reason", k)
		}
		delete(want, k.Path)
	}
	if len(want) > 0 {
		t.Errorf("not said to be skipped: %v", want)
	}
	p, err := d.Plan(ctx, checkpoint.Restore{ID: s.ID, Principal: "ann", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range p.Items {
		if stored := it.Path == "/w/ok" || it.Path == "/w/hash2"; it.Stored != stored || (it.Missing == "") != stored {
			t.Errorf("%s: stored %v missing %q", it.Path, it.Stored, it.Missing)
		}
	}
	for _, b := range [][]byte{secret, secret[:5]} {
		if _, err := d.Content(ctx, sum(b)); !errors.Is(err, checkpoint.ErrNoContent) {
			t.Errorf("an excluded content must not be stored, neither before nor after: %v", err)
		}
	}
	sound(t, d)
}
