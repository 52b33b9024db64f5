package checkpoint_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// onDisk is how long the files of a store are together, and how long its log is. While others write,
// one look may find a file as it was and the next one as it is: two have to agree.
func onDisk(t *testing.T, dir string) (all, log int64) {
	t.Helper()
	for was := int64(-1); all != was; {
		was = all
		all, log = look(t, dir)
	}
	return all, log
}

func look(t *testing.T, dir string) (all, log int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		var fi fs.FileInfo
		if err == nil {
			fi, err = os.Lstat(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && fi.Mode().IsRegular() {
			all += fi.Size()
			if fi.Name() == "checkpoints.db-wal" {
				log = fi.Size()
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, log
}

// max_bytes is the size of the whole store, its log included, while it is in use.
func TestTheLogIsPartOfTheBound(t *testing.T) {
	for _, c := range []struct {
		most  int64
		saves int
		size  int
	}{{2_000_000, 40, 100_000}, {2_000_000, 200, 5_000}, {12_000_000, 80, 100_000}, {12_000_000, 40, 600_000}} {
		dir := t.TempDir()
		d := open(t, dir, checkpoint.Options{MaxBytes: c.most, MaxFileBytes: 1_000_000})
		var widest int64
		for i := range c.saves {
			id := save(t, d, op(edit(fmt.Sprint("/w/f", i%7), randomText(c.size, int64(2*i)), randomText(c.size, int64(2*i+1)))))
			if err := d.Settle(ctx, id, checkpoint.Committed); err != nil {
				t.Fatal(err)
			}
			all, _ := onDisk(t, dir)
			widest = max(widest, all)
		}
		if widest > c.most || widest < c.most/2 {
			t.Errorf("%+v: the store took %d bytes", c, widest)
		}
		sound(t, d)
	}
}

// The bound holds while somebody keeps the log from being emptied: who reads an older state, or moves the log at that moment. What has no room beside the log
// is refused then, and goes when they are done.
func TestTheBoundHoldsBesideALogThatStays(t *testing.T) {
	defer func(was time.Duration) { *checkpoint.LogWait = was }(*checkpoint.LogWait)
	*checkpoint.LogWait = time.Millisecond
	const most = 2_000_000
	for name, hold := range map[string]func(t *testing.T, dir string) (release func()){
		"somebody reads": reads, "somebody moves it": movesTheLog,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir, checkpoint.Options{MaxBytes: most})
			n := int64(0)
			saved := func() error {
				n++
				s, err := d.Save(ctx, op(edit(fmt.Sprint("/w/f", n%7), nil, randomText(5_000, n))))
				if err == nil {
					err = d.Settle(ctx, s.ID, checkpoint.Committed)
				}
				if all, log := onDisk(t, dir); all > most {
					t.Fatalf("after save %d (%v) the store takes %d bytes, its log %d", n, err, all, log)
				}
				return err
			}
			for all := int64(0); all < most/2; all, _ = onDisk(t, dir) {
				if err := saved(); err != nil {
					t.Fatal(err)
				}
			}
			release := hold(t, dir)
			refused := 0
			for range 300 {
				if err := saved(); err != nil {
					if refused++; !errors.Is(err, checkpoint.ErrBusy) {
						t.Fatal(err)
					}
				}
			}
			release()
			for range 20 {
				if err := saved(); err != nil {
					t.Fatal("the log can be emptied again:", err)
				}
			}
			if refused == 0 {
				t.Error("nothing was refused: the log did not stay")
			}
			sound(t, d)
		})
	}
}

// reads begins to read the store, and so keeps its log, until release.
func reads(t *testing.T, dir string) (release func()) {
	t.Helper()
	other, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db"))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := other.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM op").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), other.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// What the catalog gave back is still in its file until all of the log is moved.
func TestTheBoundHoldsBesideFreedPages(t *testing.T) {
	defer func(was time.Duration) { *checkpoint.LogWait = was }(*checkpoint.LogWait)
	*checkpoint.LogWait = time.Millisecond
	const most = 3_000_000
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{MaxBytes: most,
		KeepWithin: checkpoint.KeepNone, KeepLast: 1})
	saved := func(n int) error {
		s, err := d.Save(ctx, op(edit("/w/f", nil, randomText(20_000, int64(n)))))
		if err == nil {
			err = d.Settle(ctx, s.ID, checkpoint.Committed)
		}
		return err
	}
	for n := range 55 {
		if err := saved(n); err != nil {
			t.Fatal(err)
		}
	}
	release := reads(t, dir)
	if r, err := d.GC(ctx, checkpoint.GCOptions{}); err != nil || r.Checkpoints < 50 {
		t.Fatalf("%+v %v", r, err)
	}
	var err error
	for n := 55; err == nil && n < 255; n++ {
		err = saved(n)
		if all, log := onDisk(t, dir); all > most {
			t.Fatalf("after save %d (%v) the store takes %d bytes, its log %d", n, err, all, log)
		}
	}
	if !errors.Is(err, checkpoint.ErrBusy) {
		t.Error("there was room beside a log that stays:", err)
	}
	release()
	if err := saved(255); err != nil {
		t.Error("the log can be emptied again:", err)
	}
	sound(t, d)
}

// What the keeper has measured may be older than the last commit: the bound does not hang on it.
func TestTheBoundHoldsAfterAnOldMeasurement(t *testing.T) {
	const most = 2_000_000
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{MaxBytes: most})
	for n := range 150 {
		id := save(t, d, op(edit("/w/f", nil, randomText(20_000, int64(n)))))
		if err := d.Settle(ctx, id, checkpoint.Committed); err != nil {
			t.Fatal(err)
		}
		if all, log := onDisk(t, dir); all > most {
			t.Fatalf("after save %d the store takes %d bytes, its log %d", n, all, log)
		}
		d.Mismeasure()
	}
}

// Whoever made room and lost it to others makes room again: while something may go, nothing is
// refused.
func TestNoSaveIsRefusedForTheRoomOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for w := range 3 {
		d := open(t, dir, checkpoint.Options{MaxBytes: 6_000_000, MaxFileBytes: 1_000_000})
		for v := range 2 {
			all.Go(func() {
				for i := range 10 {
					body := randomText(500_000, int64(1000*w+100*v+i))
					s, err := d.Save(ctx, op(edit(fmt.Sprint("/w/", w, v), nil, body)))
					if err == nil {
						err = d.Settle(ctx, s.ID, checkpoint.Committed)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
}

// Several who save at the same time keep to it too.
func TestTheBoundHoldsForSeveral(t *testing.T) {
	const most = 3_000_000
	dir := t.TempDir()
	var all sync.WaitGroup
	for w := range 3 {
		d := open(t, dir, checkpoint.Options{MaxBytes: most})
		for v := range 2 {
			all.Go(func() {
				for i := range 40 {
					body := randomText(20_000, int64(1000*w+100*v+i))
					s, err := d.Save(ctx, op(edit(fmt.Sprint("/w/", w, v, i%5), nil, body)))
					if err == nil {
						err = d.Settle(ctx, s.ID, checkpoint.Committed)
					}
					if size, log := onDisk(t, dir); err != nil || size > most {
						t.Errorf("%v; the store takes %d bytes, its log %d", err, size, log)
						return
					}
				}
			})
		}
	}
	all.Wait()
}

// Whoever reads an older state needs the log: nobody waits for them, and when they are done it is short again.
func TestTheLogWaitsForNoReader(t *testing.T) {
	dir := t.TempDir()
	const most = 4_000_000
	d := open(t, dir, checkpoint.Options{MaxBytes: most, MaxFileBytes: 1_000_000})
	saved := func(from, to int) {
		for i := from; i < to; i++ {
			save(t, d, op(edit(fmt.Sprint("/w/f", i), nil, randomText(100_000, int64(i)))))
		}
	}
	saved(0, 1)
	release := reads(t, dir)
	saved(1, 9)
	_, log := onDisk(t, dir)
	if s := stats(t, d); log <= most/8 || s.LogBytes != log || s.UsedBytes < s.StoredBytes+log {
		t.Errorf("the reader's log is %d; stats say %+v", log, s)
	}
	release()
	saved(9, 12)
	if _, log := onDisk(t, dir); log > most/8 {
		t.Errorf("the log is still %d bytes", log)
	}
}
