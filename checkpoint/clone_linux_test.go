package checkpoint_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/checkpoint"
)

// mountXFS makes a small file system whose files can share extents and mounts it until the test ends; temporary directories of
// the test lie there from now on. image is the disk that it lies on.
func mountXFS(t testing.TB) (image string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can mount an xfs to share extents on")
	}
	dir, err := os.MkdirTemp("", "xfs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	image = filepath.Join(dir, "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 400<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.xfs", "-q", "-m", "reflink=1", image).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no xfs to share extents on: %v %s", err, out)
	}
	t.Setenv("TMPDIR", mount(t, image, "loop"))
	return image
}

func mount(t testing.TB, image, options string) (at string) {
	t.Helper()
	at = image + ".mounted"
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "xfs", "-o", options, image, at).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: an xfs to share extents on can't be mounted: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return at
}

// usedBytes is what is taken of the file system that dir lies on.
func usedBytes(t testing.TB, dir string) int64 {
	t.Helper()
	unix.Sync()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}

func cloner(src *os.File) func(*os.File) error {
	return func(dst *os.File) error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) }
}

func create(t testing.TB, path string, body []byte) *os.File {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(body); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCloneSharesExtents(t *testing.T) {
	disk := mountXFS(t)
	dir := filepath.Join(t.TempDir(), "store")
	d := open(t, dir, checkpoint.Options{})
	want := func(body []byte) {
		t.Helper()
		if got, err := d.Content(ctx, sum(body)); err != nil || !bytes.Equal(got, body) {
			t.Errorf("the content must come back: %d bytes, %v", len(got), err)
		}
	}
	size := 30 << 20
	if testing.Short() {
		size = 12 << 20
	}
	body := randomText(size, 1)
	src := create(t, filepath.Join(t.TempDir(), "a.bin"), body) // not synced: that is the store's business
	before := usedBytes(t, dir)
	c := edit("/w/a.bin", body, nil)
	c.Clone = cloner(src)
	save(t, d, op(c))

	// The power fails: what the disk has now is all there is.
	img, err := os.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	cut, err := os.OpenFile(disk+".cut", os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(cut, img); err != nil {
		t.Fatal(err)
	}
	cut.Close()

	if took := usedBytes(t, dir) - before; took > int64(size)/4 {
		t.Errorf("%d bytes were taken for what shares the extents of %d", took, len(body))
	}
	t.Run("power cut", func(t *testing.T) {
		rel, err := filepath.Rel(os.Getenv("TMPDIR"), dir)
		if err != nil {
			t.Fatal(err)
		}
		d := open(t, filepath.Join(mount(t, disk+".cut", "loop,nouuid"), rel), checkpoint.Options{})
		if got, err := d.Content(ctx, sum(body)); err != nil || !bytes.Equal(got, body) {
			t.Errorf("the content must be on the disk: %d bytes, %v", len(got), err)
		}
	})

	if _, err := src.WriteAt(randomText(size/3, 2), int64(size)/6); err != nil { // in place
		t.Fatal(err)
	}
	want(body)
	if err := os.Remove(src.Name()); err != nil {
		t.Fatal(err)
	}
	src.Close()
	want(body)

	// What is written between the reading and the cloning is not what the checkpoint is of.
	now := create(t, filepath.Join(t.TempDir(), "b.bin"), randomText(5<<20, 3))
	read := randomText(5<<20, 3)
	c = edit("/w/b.bin", read, nil)
	c.Clone = func(dst *os.File) error {
		if _, err := now.WriteAt([]byte{read[4<<20] ^ 1}, 4<<20); err != nil {
			t.Fatal(err)
		}
		return cloner(now)(dst)
	}
	save(t, d, op(c))
	want(read)

	// From another file system.
	far := randomText(5<<20, 4)
	other := create(t, filepath.Join(filepath.Dir(disk), "c.bin"), far)
	c = edit("/w/c.bin", far, nil)
	var failed error
	c.Clone = func(dst *os.File) error { failed = cloner(other)(dst); return failed }
	save(t, d, op(c))
	want(far)
	if failed != unix.EXDEV {
		t.Errorf("cloning from another file system: %v", failed)
	}

	if n := blobs(t, dir); len(n) != 3 {
		t.Errorf("three blob files must be there: %v", n)
	}
	if r, err := d.Check(ctx, true); err != nil || len(r.Problems) > 0 || r.Read != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(body)}); err != nil || r.Contents != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if n := blobs(t, dir); len(n) != 2 {
		t.Errorf("a purge must remove a clone: %v", n)
	}
}

// lending is a store that gets a file to clone with every content. What is large reaches it as old content only, for that alone is cloned.
type lending struct {
	*checkpoint.DB
	t      *testing.T
	cloned *atomic.Int64
}

func (l lending) Save(ctx context.Context, o checkpoint.Op) (checkpoint.Saved, error) {
	o.Changes = append([]checkpoint.Change(nil), o.Changes...)
	for i := range o.Changes {
		c := &o.Changes[i]
		if len(c.AfterContent) > 256<<10 {
			c.AfterContent = nil
		}
		if c.Content == nil {
			continue
		}
		body := c.Content
		c.Clone = func(dst *os.File) error {
			err := cloner(create(l.t, filepath.Join(l.t.TempDir(), "lent"), body))(dst)
			if err == nil {
				l.cloned.Add(1)
			}
			return err
		}
	}
	return l.DB.Save(ctx, o)
}

func TestCloningDBConforms(t *testing.T) {
	mountXFS(t)
	var cloned atomic.Int64
	t.Run("all", func(t *testing.T) { // which ends when its parallel parts have
		promises(t, func(t *testing.T) store {
			return lending{open(t, t.TempDir(), checkpoint.Options{}), t, &cloned}
		})
	})
	if cloned.Load() == 0 {
		t.Error("nothing was cloned")
	}
}

// BenchmarkClone saves the old content of a file that doesn't compress, as a delete does, with and without its extents, in turns. Report: the
// median of each in ms, and what each takes of the disk while the file is there. Only as root.
func BenchmarkClone(b *testing.B) {
	mountXFS(b)
	for _, size := range []int{512 << 10, 1 << 20, 2 << 20, 4 << 20, 50 << 20} {
		b.Run(fmt.Sprintf("%dK", size>>10), func(b *testing.B) {
			dir := b.TempDir()
			d := open(b, filepath.Join(dir, "store"), checkpoint.Options{})
			var spent [2]times
			var room [2]int64
			for i := range 2 * b.N {
				body := randomText(size, int64(i))
				src := create(b, filepath.Join(dir, "src"), body)
				must(b, src.Sync())
				before := usedBytes(b, dir)
				c := edit(fmt.Sprintf("/w/%d", i), body, nil)
				if i%2 == 1 {
					c.Clone = cloner(src)
				}
				save(b, d, op(edit("/w/small", nil, randomText(10, int64(i))))) // after a purge the first try is in vain
				start := time.Now()
				id := save(b, d, op(c))
				spent[i%2] = append(spent[i%2], time.Since(start))
				room[i%2] += usedBytes(b, dir) - before
				src.Close()
				must(b, os.Remove(src.Name()))
				must(b, d.Settle(ctx, id, checkpoint.Committed))
				if _, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(body)}); err != nil {
					b.Fatal(err)
				}
			}
			for i, what := range []string{"written", "cloned"} {
				b.ReportMetric(spent[i].at(.5)/1e3, what+"-ms")
				b.ReportMetric(float64(room[i])/float64(b.N)/1e6, what+"-MB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
