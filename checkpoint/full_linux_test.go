package checkpoint_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/checkpoint"
)

// outcomes of the saves below: "ok ID HASH HASH" or "failed".
func saveAndTell(d *checkpoint.DB, path string, seed int64, n int, tell func(...any)) (failed int) {
	b := source(20_000, seed*1000-1)
	for i := range n {
		next := source(20_000, seed*1000+int64(i))
		if i%5 == 4 {
			next = randomText(400<<10, seed*1000+int64(i)) // in a file of its own
		}
		o := op(edit(path, b, next))
		o.Tag, o.Label = "t", "open"
		s, err := d.Save(ctx, o)
		if err != nil {
			tell("failed", err)
			if failed++; failed > 3 {
				return failed
			}
			continue
		}
		tell("ok", s.ID, sum(b), sum(next))
		b = next
	}
	return failed
}

// limited saves while no file may grow beyond seed bytes, and then again without that limit.
func limited(dir string, limit int64) error {
	signal.Ignore(syscall.SIGXFSZ)
	d, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		return err
	}
	tell := func(a ...any) { fmt.Println(a...) }
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(limit), Max: old.Max}); err != nil {
		return err
	}
	saveAndTell(d, "/w/a", limit, 12, tell)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if n := saveAndTell(d, "/w/b", limit+1, 3, tell); n > 0 {
		return fmt.Errorf("%d saves failed when there was room again", n)
	}
	return d.Close()
}

// Writes fail in the middle, at one size of the files after the other: a save then fails as a whole, what was saved before is there,
// and when writes work again saves do too.
func TestWritesFail(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	t.Parallel()
	oks, fails, sizes := 0, 0, min(int64(8**faults), 560)
	for limit := int64(40_000); limit < 600_000; limit += 560_000 / sizes {
		dir := t.TempDir()
		d, err := checkpoint.Open(dir, checkpoint.Options{}) // with the tables, so that Open is not what fails
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		p := spawn(t, "limited", limit, dir)
		<-p.done
		if err := p.Wait(); err != nil {
			t.Fatalf("at %d bytes: %v\n%q", limit, err, p.lines)
		}
		if d, err = checkpoint.Open(dir, checkpoint.Options{}); err != nil {
			t.Fatal(err)
		}
		acks, lost := acknowledged(d, p.lines)
		if err := openAsSaved(d); err != nil || lost != nil {
			t.Errorf("at %d bytes: lost are %q: %v", limit, lost, err)
		}
		sound(t, d)
		d.Close()
		oks, fails = oks+acks, fails+len(p.lines)-acks
	}
	t.Logf("%d saves, %d failed", oks, fails)
	if oks == 0 || fails == 0 {
		t.Error("nothing failed, or everything: the test tests nothing")
	}
}

// On a full disk a store that was closed in order can be looked at or says why not, nothing is saved and nothing is lost; it is
// cleaned and saves again when there is a little room. Open operations stay.
func TestFullDiskCanBeReadAndCleaned(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m,mode=0700"); err != nil {
		t.Skip("SKIPPED: a small file system can only be mounted by root:", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	now := &clock{time.Now()}
	o := checkpoint.Options{KeepWithin: time.Minute, KeepLast: 1, Now: now.now}
	d, err := checkpoint.Open(dir+"/store", o)
	if err != nil {
		t.Fatal(err)
	}
	half := randomText(60<<10, 1000)
	save(t, d, tagged("t", edit("/w/a", half, nil)))
	const n = 60
	for i := range n {
		save(t, d, op(edit("/w/a", randomText(60<<10, int64(i)), randomText(60<<10, int64(i+1)))))
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	fill := func() {
		f, err := os.OpenFile(dir+"/fill", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for b := make([]byte, 4096); err == nil; {
			_, err = f.Write(b)
		}
	}
	fill()
	now.t = now.t.Add(time.Hour)
	for range 3 {
		var full *checkpoint.DiskFullError
		d, err := checkpoint.Open(dir+"/store", o)
		if err != nil {
			if !errors.As(err, &full) || !errors.Is(err, unix.ENOSPC) {
				t.Error("opening on a full disk:", err)
			}
			continue
		}
		if page, err := d.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 100}); err != nil || len(page.Checkpoints) == 0 {
			t.Error("a list on a full disk:", len(page.Checkpoints), err)
		}
		if _, err := d.Save(ctx, op(edit("/w/b", randomText(1000, 7), nil))); !errors.As(err, &full) || !errors.Is(err, unix.ENOSPC) {
			t.Error("a save on a full disk:", err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if fi, err := os.Stat(dir + "/fill"); err != nil || os.Truncate(dir+"/fill", fi.Size()-4<<20) != nil {
		t.Fatal(err)
	}
	d = open(t, dir+"/store", o)
	if r, err := d.GC(ctx, false); err != nil {
		t.Errorf("cleaning on a full disk: %+v %v", r, err)
	}
	if s := stats(t, d); s.Checkpoints > 3 {
		t.Errorf("%d checkpoints are left", s.Checkpoints)
	}
	if ops, err := d.Open(ctx); err != nil || len(ops) != 1 {
		t.Errorf("open are %+v: %v", ops, err)
	}
	if _, err := d.Content(ctx, sum(half)); err != nil {
		t.Error("what is open needs it:", err)
	}
	save(t, d, op(edit("/w/b", randomText(1000, 7), nil)))
	sound(t, d)
}
