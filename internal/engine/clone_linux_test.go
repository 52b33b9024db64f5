//go:build linux && !rooted

package engine_test

import (
	"bytes"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// onXFS puts the trees of a test on a file system that can share extents, or skips it. used is how many
// bytes of it are taken.
func onXFS(t *testing.T) (used func() int64) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can mount an xfs to share extents on")
	}
	dir, err := os.MkdirTemp("", "xfs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "mounted")
	for _, c := range [][]string{
		{"truncate", "-s", "400M", image}, {"mkfs.xfs", "-q", "-m", "reflink=1", image}, {"mkdir", at}, {"mount", "-o", "loop", image, at},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: no xfs to share extents on: %v: %v %s", c, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	t.Setenv("TMPDIR", at)
	return func() int64 {
		unix.Sync()
		var st unix.Statfs_t
		if err := unix.Statfs(at, &st); err != nil {
			t.Fatal(err)
		}
		return int64(st.Blocks-st.Bfree) * st.Bsize
	}
}

// A copy of a file that is not held in memory shares its extents, and is what the file was when that
// changes.
func TestCopySharesExtents(t *testing.T) {
	used := onXFS(t)
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 1 << 20 })
	body := make([]byte, 30<<20)
	rand.New(rand.NewSource(1)).Read(body)
	path := x.write("a.bin", string(body))
	before := used()
	_, err := x.Copy(ctx, x.call("s"), engine.CopyArgs{From: path, To: x.ws + "/b.bin"})
	if err != nil {
		t.Fatal(err)
	}
	if took := used() - before; took > 8<<20 {
		t.Errorf("%d bytes were taken for a copy that shares the extents of %d", took, len(body))
	}
	x.write("a.bin", "short")
	if got, err := os.ReadFile(x.ws + "/b.bin"); err != nil || !bytes.Equal(got, body) {
		t.Errorf("the copy has %d bytes, %v", len(got), err)
	}
}

// On a file system that can, the checkpoint of a large file shares its extents, and keeps what was there when the file is gone.
func TestCheckpointSharesExtents(t *testing.T) {
	used := onXFS(t)
	x := grow(t, nil)
	body := make([]byte, 30<<20)
	rand.New(rand.NewSource(1)).Read(body)
	path := x.write("a.bin", string(body))
	old, err := os.Open(path) // so that its extents count until the end
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	before := used()
	done, err := x.ChangeFiles(ctx, x.call("s"), engine.Files{Paths: []string{path}, Next: func(ts []*engine.Target) error {
		ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte("short\n")}
		return nil
	}})
	if err != nil || done.Checkpoint == "" || done.Skipped != "" {
		t.Fatalf("%+v, %v", done, err)
	}
	if took := used() - before; took > 8<<20 {
		t.Errorf("%d bytes were taken for a checkpoint that shares the extents of %d", took, len(body))
	}
	if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, body) {
		t.Errorf("the undo brought %d bytes back, %v", len(got), err)
	}
	x.Close()
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if r, err := db.Check(ctx, true); err != nil || len(r.Problems) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
