//go:build !rooted

package guardfs

import (
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// layered mounts an overlay file system, with what fill puts into its lower layer.
func layered(t *testing.T, lower, upper, options string, fill func(dir string)) (merged string) {
	t.Helper()
	merged = upper + "/merged"
	for _, d := range []string{upper + "/up", upper + "/work", merged} {
		must(t, os.Mkdir(d, 0o755))
	}
	fill(lower)
	err := unix.Mount("overlay", merged, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+"/up,workdir="+upper+"/work"+options)
	if err != nil {
		t.Skip("SKIPPED: no overlay file system can be mounted here: ", err)
	}
	t.Cleanup(func() { unix.Unmount(merged, unix.MNT_DETACH) })
	return merged
}

// A file in the lower layer of an overlay file system, as a container's image is, gets another identity by the very change; the first change is
// no conflict for that, and one of somebody else still is.
func TestLowerLayer(t *testing.T) {
	layers := map[string]struct {
		lower, upper func(t testing.TB) string
		options      string
	}{
		"one file system":  {ramdisk, ramdisk, ""},
		"disk below":       {base, ramdisk, ""},
		"memory below":     {ramdisk, base, ""},
		"no extended inos": {base, ramdisk, ",xino=off"},
		"index":            {base, ramdisk, ",index=on"},
		"metacopy":         {base, ramdisk, ",metacopy=on"},
	}
	for i := range len(ways) * len(layers) {
		name, way := slices.Sorted(maps.Keys(layers))[i/2], ways[i%2]
		c := layers[name]
		t.Run(name+way, func(t *testing.T) {
			dir := layered(t, c.lower(t), c.upper(t), c.options, func(dir string) {
				lay(t, dir, "a = low", "same = low", "swapped = low", "gone = low", "d/deep/f = low", "one = low", "link => one", "locked = low", "kept = low")
				must(t, os.Link(dir+"/one", dir+"/two"))
				must(t, os.Link(dir+"/one", dir+"/three"))
				must(t, os.Chmod(dir+"/locked", 0o444))
			})
			f := open(t, &fence{root: dir})
			load := func(name string) (*Entry, *Before) {
				t.Helper()
				p, err := f.EntryLink(dir + "/" + name)
				must(t, err)
				t.Cleanup(func() { p.Close() })
				b, err := p.Load(-1)
				must(t, err)
				return p, b
			}
			mine := func(p *Entry, b *Before) error {
				_, err := publish(p, b, "mine", options{way: way})
				return err
			}
			for _, name := range []string{"a", "d/deep/f", "one", "two", "locked", "new", "d/deep/new"} {
				p, b := load(name)
				if err := mine(p, b); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got, _ := os.ReadFile(dir + "/" + name); string(got) != "mine" {
					t.Errorf("%s: %q", name, got)
				}
				if again, err := p.Load(-1); err != nil || again.Hash != hashOf([]byte("mine")) {
					t.Errorf("%s: %v", name, err)
				}
				p.Close()
			}
			for _, name := range []string{"gone", "three", "link"} {
				p, err := f.EntryLink(dir + "/" + name)
				must(t, err)
				b, err := p.Load(-1)
				must(t, err)
				if err := remove(p, b); err != nil {
					t.Errorf("removing %s: %v", name, err)
				}
				p.Close()
				if _, err := os.Lstat(dir + "/" + name); err == nil {
					t.Errorf("%s is still there", name)
				}
			}
			// Copied up by somebody else, but not changed.
			p, b := load("same")
			w, err := os.OpenFile(dir+"/same", os.O_WRONLY, 0)
			must(t, err)
			must(t, w.Close())
			if err := mine(p, b); err != nil {
				t.Errorf("copied up: %v", err)
			}
			// Changed by somebody else, in place and by another file.
			var conflict *ConflictError
			p, b = load("kept")
			must(t, os.WriteFile(dir+"/kept", []byte("new"), 0o644))
			if err := mine(p, b); !errors.As(err, &conflict) {
				t.Errorf("a foreign change: %v", err)
			}
			p, b = load("swapped")
			must(t, os.WriteFile(dir+"/other", []byte("low"), 0o644))
			must(t, os.Rename(dir+"/other", dir+"/swapped"))
			if err := mine(p, b); !errors.As(err, &conflict) {
				t.Errorf("a foreign file: %v", err)
			}
			for name, want := range map[string]string{"kept": "new", "swapped": "low"} {
				if got, _ := os.ReadFile(dir + "/" + name); string(got) != want {
					t.Errorf("%s was lost: %q", name, got)
				}
			}
		})
	}
}

// A file swapped in just before the trade is not taken for the one that was held and copied up.
func TestLowerLayerSwappedAtTheTrade(t *testing.T) {
	for _, way := range ways {
		dir := layered(t, base(t), ramdisk(t), "", func(dir string) { lay(t, dir, "f = low") })
		lay(t, dir, "theirs = low")
		f := open(t, &fence{root: dir})
		p, err := f.Entry(dir + "/f")
		must(t, err)
		defer p.Close()
		b, err := p.Load(-1)
		must(t, err)
		swapped := false
		f.kernel.hook = func(op string) *Fault {
			if op == "rename" && !swapped {
				swapped = true
				must(t, os.Rename(dir+"/theirs", dir+"/f"))
			}
			return nil
		}
		_, err = publish(p, b, "mine", options{way: way})
		f.kernel.hook = nil
		var conflict *ConflictError
		if !errors.As(err, &conflict) || !swapped {
			t.Errorf("%v", err)
		}
		if got, _ := os.ReadFile(dir + "/f"); string(got) != "low" {
			t.Errorf("theirs was lost: %q", got)
		}
	}
}

// A file that goes to the trash keeps the identity that its entry has.
func TestCopyUp(t *testing.T) {
	for _, options := range []string{"", ",redirect_dir=on"} {
		dir := layered(t, base(t), ramdisk(t), options, func(dir string) {
			lay(t, dir, "f = low", "d/sub/g = low", "linked = low")
			must(t, os.Link(dir+"/linked", dir+"/other"))
		})
		f := open(t, &fence{root: dir})
		for _, name := range []string{"f", "linked", "d"} {
			if name == "d" && options == "" {
				continue // EXDEV
			}
			p, err := f.EntryLink(dir + "/" + name)
			must(t, err)
			to, err := f.EntryLink(dir + "/moved-" + name)
			must(t, err)
			info, err := p.CopyUp()
			must(t, err)
			if _, err = p.Publish(t.Context(), to, Precondition{ID: info.ID}, Precondition{}); err != nil {
				t.Errorf("%s%s: %v", name, options, err)
			}
			p.Close()
			to.Close()
		}
	}
}
