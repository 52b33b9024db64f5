//go:build linux && !rooted

package engine_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/internal/engine"
)

// What is moved to the trash from the lower layer of an overlay file system becomes another object by that, and is known there all the same.
func TestParkedFromTheLowerLayer(t *testing.T) {
	for _, options := range []string{"", ",redirect_dir=on"} {
		x := grow(t, small)
		lower := t.TempDir()
		upper, err := os.MkdirTemp("/dev/shm", "overlay")
		if err != nil {
			t.Skip("SKIPPED: no place for the layers: ", err)
		}
		t.Cleanup(func() { os.RemoveAll(upper) })
		big := strings.Repeat("b", 101)
		at := x.ws + "/ov"
		for _, d := range []string{at, upper + "/up", upper + "/work", lower + "/w", lower + "/w/tree"} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []string{"big", "tree/big"} {
			if err := os.WriteFile(lower+"/w/"+f, []byte(big), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(lower+"/w/big", lower+"/w/second"); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("overlay", at, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+"/up,workdir="+upper+"/work"+options); err != nil {
			t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		for _, name := range []string{"/w/big", "/w/second", "/w/tree"} {
			if name == "/w/tree" && options == "" {
				continue // such a directory can't be renamed there at all
			}
			done, err := x.Delete(ctx, x.call("s"), at+name, engine.DeleteOptions{Recursive: true})
			if err != nil || len(done.Trashed) != 1 {
				t.Fatalf("deleting %s%s: %+v %v", name, options, done, err)
			}
			if _, err := os.Lstat(at + name); err == nil {
				t.Errorf("%s is still there", name)
			}
			if _, err := x.Untrash(ctx, x.call("s"), done.Trashed[0].ID, false); err != nil {
				t.Fatalf("%s%s does not come back: %v", name, options, err)
			}
			if _, err := os.Lstat(at + name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
