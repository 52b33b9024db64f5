package checkpoint_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// What one configuration asks to be kept does not go because somebody looks at the store, or saves to it, with another.
func TestTheWidestLimitsHold(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	wide := checkpoint.Options{KeepWithin: 90 * 24 * time.Hour, KeepLast: 1000, MaxBytes: 64 << 20, Now: c.now}
	narrow := checkpoint.Options{KeepWithin: time.Hour, KeepLast: 1, MaxBytes: 1 << 20, Now: c.now}
	// with opens the store, does something and closes it, which is when a short process cleans.
	with := func(o checkpoint.Options, do func(d *checkpoint.DB)) {
		t.Helper()
		d, err := checkpoint.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		do(d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	writes := func(path string, n int) func(d *checkpoint.DB) {
		return func(d *checkpoint.DB) {
			for i := range n {
				id := save(t, d, op(edit(path, randomText(100<<10, int64(i)+c.t.Unix()), []byte(fmt.Sprint(i)))))
				if err := d.Settle(ctx, id, checkpoint.Committed); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	count := func(want int, after string) {
		t.Helper()
		for range 2 { // the first look must not change what the second one sees
			with(narrow, func(d *checkpoint.DB) {
				if n := stats(t, d).Checkpoints; n != want {
					t.Fatalf("after %s there are %d checkpoints, not %d", after, n, want)
				}
			})
		}
	}
	with(wide, writes("/w/a", 30))
	c.t = c.t.Add(24 * time.Hour)
	with(narrow, func(d *checkpoint.DB) {
		for _, o := range []checkpoint.GCOptions{{DryRun: true}, {DryRun: true, Shared: true}} {
			r, err := d.GC(ctx, o)
			if err != nil || (r.Checkpoints == 0) != o.Shared || (r.Limits == checkpoint.Limits{KeepWithin: time.Hour, KeepLast: 1, MaxBytes: 1 << 20}) == o.Shared {
				t.Errorf("%+v: %+v %v", o, r, err)
			}
		}
		if _, err := d.List(ctx, checkpoint.Filter{AllSessions: true}); err != nil {
			t.Fatal(err)
		}
	})
	count(30, "somebody with narrow limits only looked")
	with(narrow, writes("/w/b", 3))
	count(33, "somebody with narrow limits saved")
	with(narrow, func(d *checkpoint.DB) {
		if s := stats(t, d); s.MaxBytes != 64<<20 {
			t.Errorf("the store may have %d bytes", s.MaxBytes)
		}
		if r, err := d.GC(ctx, checkpoint.GCOptions{Shared: true}); err != nil || r.Checkpoints != 0 || r.Limits.KeepLast != 1000 {
			t.Errorf("%+v %v", r, err)
		}
	})
	// Nobody has used the wide ones for so long that even what was saved last may go.
	c.t = c.t.Add(91 * 24 * time.Hour)
	count(33, "a long time")
	with(narrow, writes("/w/b", 1))
	count(3, "the wide limits were not used any more") // of either path the newest, and what was the newest of all when room had to be made

	// Whoever cleans with limits of his own means them.
	with(wide, writes("/w/a", 30))
	c.t = c.t.Add(2 * time.Hour)
	with(narrow, func(d *checkpoint.DB) {
		if r, err := d.GC(ctx, checkpoint.GCOptions{}); err != nil || r.Checkpoints != 31 || r.Limits.KeepLast != 1 {
			t.Errorf("%+v %v", r, err)
		}
		if s := stats(t, d); s.MaxBytes != 1<<20 {
			t.Errorf("from then on they hold: %d", s.MaxBytes)
		}
	})
	with(wide, writes("/w/a", 30))
	c.t = c.t.Add(2 * time.Hour)
	with(narrow, writes("/w/b", 1))
	count(33, "the wide limits were used again")
}

// Whoever cleans with limits of his own means them until the others save again; those who go on with what they have open do so at once.
func TestLimitsCountAgainWithTheNextSave(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	own := checkpoint.Limits{KeepWithin: 90 * 24 * time.Hour, KeepLast: 1000, MaxBytes: 64 << 20}
	server := open(t, dir, checkpoint.Options{KeepWithin: own.KeepWithin, KeepLast: own.KeepLast, MaxBytes: own.MaxBytes, Now: c.now})
	other := open(t, dir, checkpoint.Options{KeepWithin: time.Hour, KeepLast: 1, MaxBytes: 1 << 20, Now: c.now})
	settled(t, server, edit("/w/a", []byte("1"), []byte("2")))
	if r, err := other.GC(ctx, checkpoint.GCOptions{}); err != nil || r.Checkpoints != 0 {
		t.Fatalf("there is nothing to remove yet: %+v %v", r, err)
	}
	c.t = c.t.Add(time.Minute)
	settled(t, server, edit("/w/a", []byte("2"), []byte("3")))
	if r, err := other.GC(ctx, checkpoint.GCOptions{Shared: true, DryRun: true}); err != nil || r.Limits != own {
		t.Errorf("it has saved since, and what counts is %+v: %v", r.Limits, err)
	}
}

// To open the store, look at it and close it again takes no lock that a writer holds, or holds while it is stopped.
func TestLookingDoesNotWaitForAWriter(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	id := save(t, d, op(edit("/w/a", []byte("1"), []byte("2"))))
	db, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	looked := make(chan error, 1)
	go func() {
		d, err := checkpoint.Open(dir, checkpoint.Options{})
		if err != nil {
			looked <- err
			return
		}
		_, err1 := d.List(ctx, checkpoint.Filter{AllSessions: true})
		_, err2 := d.Get(ctx, id, checkpoint.Scope{AllSessions: true})
		_, err3 := d.Stats(ctx)
		_, err4 := d.Check(ctx, true)
		_, err5 := d.GC(ctx, checkpoint.GCOptions{DryRun: true})
		_, err6 := d.Purge(ctx, checkpoint.Purge{Match: func(string) bool { return true }, DryRun: true})
		if errors.Is(err6, checkpoint.ErrUnderWay) { // as it is
			err6 = nil
		}
		looked <- errors.Join(err1, err2, err3, err4, err5, err6, d.Close())
	}()
	select {
	case err = <-looked:
	case <-time.After(10 * time.Second): // half of what SQLite waits for a lock
		err = errors.New("it waits")
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}
