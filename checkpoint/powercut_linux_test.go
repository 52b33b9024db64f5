package checkpoint_test

import (
	"flag"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

var (
	cuts   = flag.Int("cuts", 40, "power cuts tried by TestPowerCut on each of its recordings; 10000 in a soak")
	faults = flag.Int("faults", 2, "failing calls tried by TestDiskFails of each kind; 10000, which is every one, in a soak")
)

// tryCuts cuts the power at n moments of a recording and counts the cuts after which something that was said to be saved is not there,
// and those after which the store is not sound.
func tryCuts(t *testing.T, rec recording, n int, seed int64, strict bool) (lost, unsound int) {
	t.Helper()
	rng := rand.New(rand.NewSource(seed))
	wanted := map[int]int{}
	for range n {
		wanted[rng.Intn(len(rec)+1)]++
	}
	wanted[len(rec)]++
	d := newDisk()
	var said []string
	dir := filepath.Join(t.TempDir(), "after")
	for i := 0; i <= len(rec); i++ {
		for range wanted[i] {
			d.cut(t, rng, dir)
			l, u := afterCut(t, dir, said)
			if u != "" {
				unsound++
				t.Logf("cut before event %d of %d: %s", i, len(rec), u)
			} else if l != "" {
				if lost++; strict {
					t.Logf("cut before event %d of %d: %s", i, len(rec), l)
				}
			}
		}
		if i == len(rec) {
			break
		}
		if e := rec[i]; e.call == "say" {
			said = append(said, strings.Split(strings.TrimSpace(string(e.data)), "\n")...)
		} else {
			d.step(e, rng)
		}
	}
	return lost, unsound
}

func afterCut(t *testing.T, dir string, said []string) (lost, unsound string) {
	t.Helper()
	d, err := checkpoint.Open(dir, checkpoint.Options{KeepWithin: 1000 * time.Hour})
	if err != nil {
		return "", "the store does not open: " + err.Error()
	}
	defer d.Close()
	r, err := d.Check(ctx, true)
	if err != nil || len(r.Problems) > 0 {
		return "", fmt.Sprintf("not sound: %+v %v", r, err)
	}
	if err := openAsSaved(d); err != nil {
		return "", err.Error()
	}
	if _, lost := acknowledged(d, said); lost != nil {
		return lost[0], ""
	}
	if _, err := d.Save(ctx, op(edit("/w/after", []byte("1"), []byte("2")))); err != nil {
		return "", "nothing can be saved: " + err.Error()
	}
	return "", ""
}

// early lists the files of contents that were removed before what says that no row names them any more was on the disk.
func early(rec recording) (out []string) {
	const log = "checkpoints.db-wal"
	written := -1 // where the last write to the log ended that no sync covers
	for _, e := range rec {
		switch {
		case e.call == "write" && e.path == log:
			written = e.ended
		case e.call == "sync" && e.path == log && e.begun > written:
			written = -1
		case e.call == "remove" && strings.HasPrefix(e.path, "blobs/") && written >= 0:
			out = append(out, e.path)
		}
	}
	return out
}

// The power is cut at any moment, and of what had not been synced any part is lost. Each acknowledged save is
// there. A store that does not sync its log is played by a recording without those syncs, and is caught.
func TestPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	t.Parallel()
	recordings := max(1, *cuts/1000)
	for r := range recordings {
		rec, _ := record(t, "cutter", int64(r), t.TempDir(), "")
		lost, unsound := tryCuts(t, rec, *cuts/recordings, int64(r), true)
		if lost+unsound > 0 {
			t.Errorf("recording %d: of %d cuts %d lost something and %d left a store that is not sound", r, *cuts/recordings, lost, unsound)
		}
		if names := early(rec); names != nil {
			t.Errorf("removed before it was on the disk that nothing names them: %q", names)
		}
		bad := slices.DeleteFunc(slices.Clone(rec), func(e event) bool { return e.call == "sync" && e.path == "checkpoints.db-wal" })
		lost, unsound = tryCuts(t, bad, *cuts/recordings, int64(r), false)
		if lost+unsound == 0 {
			t.Error("without the syncs of the log nothing was lost in all the cuts: the test tests nothing")
		}
		t.Logf("recording %d: %d events, %d cuts; a store that does not sync its log lost something in %d", r, len(rec), *cuts/recordings, lost+unsound)
	}
}

// A call fails once, or from then on, for every kind of call and every time that it is made: what was said to be saved in spite of it is
// there, also when the power goes later on, and the store is sound. The system forgets what it could not write in a sync that failed, and so does this disk.
func TestDiskFails(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	t.Parallel()
	plain, _ := record(t, "faulty", 1, t.TempDir(), "")
	for _, c := range []struct{ call, errno string }{{"fsync", "EIO"}, {"pwrite64", "ENOSPC"}, {"pwrite64", "EIO"}, {"ftruncate", "EIO"}, {"mkdirat", "ENOSPC"},
		{"write", "ENOSPC"}} {
		n := 0
		for _, e := range plain {
			if e.call == map[string]string{"fsync": "sync", "pwrite64": "write", "ftruncate": "truncate", "mkdirat": "mkdir", "write": "write"}[c.call] {
				n++
			}
		}
		tries, hits, said := min(n+2, *faults), 0, 0
		for k := range tries {
			when := 1 + k*(n+2)/tries
			for _, onwards := range []string{"", "+"} {
				inject := fmt.Sprintf("%s:error=%s:when=%d%s", c.call, c.errno, when, onwards)
				rec, hit := record(t, "faulty", int64(k), t.TempDir(), inject)
				if !hit {
					continue
				}
				hits++
				for _, e := range rec {
					if e.call == "say" {
						said++
					}
				}
				if lost, unsound := tryCuts(t, rec, 2, int64(k), true); lost+unsound > 0 {
					t.Errorf("%s: lost or not sound after %d cuts of 3", inject, lost+unsound)
				}
			}
		}
		t.Logf("%s %s: %d failures of up to %d calls, %d saves went through beside them", c.call, c.errno, hits, n, said)
		if hits == 0 && n > 0 {
			t.Errorf("%s never failed: the test tests nothing", c.call)
		}
	}
	lost := 0
	for k := 0; k < 10 && lost == 0; k++ {
		rec, _ := record(t, "pretender", int64(k), t.TempDir(), fmt.Sprintf("fsync:error=EIO:when=%d+", 10+k))
		l, u := tryCuts(t, rec, 2, int64(k), false)
		lost += l + u
	}
	if lost == 0 {
		t.Error("a store that takes no notice of a failed sync was not caught: the test tests nothing")
	}
}
