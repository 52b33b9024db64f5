package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"moltisfs/checkpoint"
)

// incompressible is content that no codec makes small: it becomes a file of its own.
func incompressible(seed byte, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// A backup that is made beside writers is a store of one moment: sound, and every content in it can be read.
func TestBackupBesideWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Retention goes to work all the time: files that were to be copied disappear.
	db, err := checkpoint.Open(filepath.Join(dir, "store"), checkpoint.Options{MaxBytes: 24 << 20, KeepWithin: checkpoint.KeepNone, KeepLast: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	saved := make(chan struct{}, 1<<16)
	for w := range 2 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil && i < 60; i++ {
				content := incompressible(byte(w), 280<<10+i)
				if i%3 > 0 {
					content = fmt.Appendf(nil, "small %d of %d", i, w)
				}
				path := fmt.Sprintf("/w/%d/%d", w, i%5)
				before := file(content)
				op := checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Principal: "p", Session: "s", Opening: checkpoint.Opening{Tag: fmt.Sprint(w, i)},
					Changes: []checkpoint.Change{{Path: path, Before: before, After: file([]byte("after")), Content: content}}}
				s, err := db.Save(ctx, op)
				if err == nil {
					err = db.Settle(ctx, s.ID, checkpoint.Committed)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				saved <- struct{}{}
			}
		})
	}
	for range 5 {
		<-saved
	}
	for n := range 2 {
		to := filepath.Join(dir, fmt.Sprint("copy", n))
		if _, err := db.Backup(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		soundCopy(t, to)
	}
	stop()
	writers.Wait()
	half := checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Opening: checkpoint.Opening{Tag: "under way"}}
	if _, err := db.Save(t.Context(), half); err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(dir, "last")
	if _, err := db.Backup(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	soundCopy(t, last)
	sameCopy(t, db, last)
	if _, err := db.Backup(t.Context(), last); !errors.Is(err, checkpoint.ErrNotEmpty) {
		t.Errorf("over another backup: %v", err)
	}
	if left, _ := os.ReadDir(last); len(left) < 2 {
		t.Errorf("the backup before was touched: %v", left)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	// A store that has lost a file is not copied as if it were whole.
	lost, _ := filepath.Glob(filepath.Join(dir, "store", "blobs", "*", "*"))
	if len(lost) == 0 || os.Remove(lost[0]) != nil {
		t.Fatalf("no file to lose among %d", len(lost))
	}
	for ctx, want := range map[context.Context]error{gone: context.Canceled, t.Context(): nil} {
		to := filepath.Join(dir, "failed")
		if _, err := db.Backup(ctx, to); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("it failed with %v, not %v", err, want)
		}
		if left, _ := os.ReadDir(to); len(left) > 0 {
			t.Errorf("a backup that failed left %v", left)
		}
	}
}

// soundCopy opens a backup, checks it with every content, and finds no operation under way in it.
func soundCopy(t *testing.T, dir string) {
	t.Helper()
	db, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := db.Check(t.Context(), true)
	if err != nil || len(r.Problems) > 0 || r.Checkpoints < 5 || r.Read == 0 {
		t.Fatalf("%s: %+v %v", dir, r, err)
	}
	if open, err := db.Open(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("%s: under way: %v %v", dir, open, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "checkpoints.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// sameCopy finds each checkpoint and content of db in the backup.
func sameCopy(t *testing.T, db *checkpoint.DB, dir string) {
	t.Helper()
	copied, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	f := checkpoint.Filter{AllSessions: true, Limit: 1000}
	a, err := db.List(t.Context(), f)
	b, berr := copied.List(t.Context(), f)
	if err := errors.Join(err, berr); err != nil || len(a.Checkpoints) != len(b.Checkpoints) || len(a.Checkpoints) == 0 {
		t.Fatal(len(a.Checkpoints), len(b.Checkpoints), err)
	}
	for i, c := range a.Checkpoints {
		for j, ch := range c.Changes {
			if b.Checkpoints[i].Changes[j].Before.Hash != ch.Before.Hash {
				t.Fatalf("%s differs", c.ID)
			}
			x, err := db.Content(t.Context(), ch.Before.Hash)
			y, yerr := copied.Content(t.Context(), ch.Before.Hash)
			if err != nil || yerr != nil || !bytes.Equal(x, y) {
				t.Errorf("%s: %v %v", c.ID, err, yerr)
			}
		}
	}
}
