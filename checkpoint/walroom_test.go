package checkpoint_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"moltisfs/checkpoint"
)

// onDisk is how long the files of a store are together, and how long its log is.
func onDisk(t *testing.T, dir string) (all, log int64) {
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
	}{{2_000_000, 60, 100_000}, {2_000_000, 300, 5_000}, {12_000_000, 120, 100_000}} {
		dir := t.TempDir()
		d := open(t, dir, checkpoint.Options{MaxBytes: c.most, MaxFileBytes: 1_000_000, Settles: true})
		var widest, longest int64
		for i := range c.saves {
			id := save(t, d, op(edit(fmt.Sprint("/w/f", i%7), randomText(c.size, int64(2*i)), randomText(c.size, int64(2*i+1)))))
			if err := d.Settle(ctx, id, checkpoint.Committed); err != nil {
				t.Fatal(err)
			}
			all, log := onDisk(t, dir)
			widest, longest = max(widest, all), max(longest, log)
		}
		// The last batch may stay while the store itself looks at an older state.
		if widest > c.most || longest > c.most/8+int64(2*c.size)+64<<10 {
			t.Errorf("%+v: the store took %d bytes, its log %d", c, widest, longest)
		}
		sound(t, d)
	}
}

// Whoever reads an older state needs the log: nobody waits for them, and when they are done it is short again.
func TestTheLogWaitsForNoReader(t *testing.T) {
	dir := t.TempDir()
	const most = 4_000_000
	d := open(t, dir, checkpoint.Options{MaxBytes: most, MaxFileBytes: 1_000_000, Settles: true})
	saved := func(from, to int) {
		for i := from; i < to; i++ {
			save(t, d, op(edit(fmt.Sprint("/w/f", i), nil, randomText(100_000, int64(i)))))
		}
	}
	saved(0, 1)
	other, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM op").Scan(&n); err != nil {
		t.Fatal(err)
	}
	saved(1, 20)
	_, log := onDisk(t, dir)
	if s := stats(t, d); log <= most/8 || s.LogBytes != log || s.UsedBytes < s.StoredBytes+log {
		t.Errorf("the reader's log is %d; stats say %+v", log, s)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	saved(20, 23)
	if _, log := onDisk(t, dir); log > most/8 {
		t.Errorf("the log is still %d bytes", log)
	}
}
