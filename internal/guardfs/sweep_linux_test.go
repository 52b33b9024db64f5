//go:build !rooted

package guardfs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSweep(t *testing.T) {
	b := base(t)
	roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
		noLeak(t)
		dir := filepath.Join(b, f.Containment())
		staged, own, image, foreign, kept := tempName(), tradeName(1, hashOf([]byte("new")), ""), tradeName(1, hashOf([]byte("old")), ""),
			tradeName(1, hashOf([]byte("old")), ""), keptName()
		lay(t, dir, "f = content", staged+" = half a fi", image+" = old", foreign+" = what nobody knows", kept+" = theirs", ".moltis-notes.tmp = a user's")
		lay(t, dir, own+" = new, never published")
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(dir, own), &st))
		renamed := tradeName(st.Ino, hashOf([]byte("whatever")), "")
		must(t, os.Rename(filepath.Join(dir, own), filepath.Join(dir, renamed)))
		must(t, os.Symlink("f", filepath.Join(dir, tempName())))
		place, err := f.Place(dir + "/f")
		must(t, err)
		defer place.Close()
		removed, _, err := place.Sweep(time.Hour)
		if removed != 0 || err != nil {
			t.Errorf("removed %d that are young: %v", removed, err)
		}
		removed, left, err := place.Sweep(-time.Second)
		must(t, err)
		if removed != 3 || len(left) != 3 {
			t.Errorf("removed %d, left %v", removed, left)
		}
		for _, name := range []string{foreign, kept, "f", ".moltis-notes.tmp"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
		for _, name := range []string{staged, image, renamed} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s is there", name)
			}
		}
		if !Temporary(staged) || !Temporary(image) || Temporary(kept) || Temporary("f") || Temporary(".moltis-notes.tmp") {
			t.Error("Temporary does not know its own")
		}
	})
}

// Litter that may not be removed stays, and is named.
func TestSweepAsks(t *testing.T) {
	dir := base(t)
	name := tempName()
	lay(t, dir, "f = content", name+" = litter")
	f := open(t, &fence{root: dir, deny: []string{dir + "/" + name}})
	place, err := f.Place(dir + "/f")
	must(t, err)
	defer place.Close()
	if removed, left, err := place.Sweep(-time.Second); removed != 0 || err != nil || !slices.Equal(left, []string{name}) {
		t.Errorf("removed %d, left %v, %v", removed, left, err)
	}
}

// killed is the program that TestKill kills: it replaces a file for ever.
func killed(dir string) {
	f, err := New(Options{Judge: &fence{root: dir}})
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	for n := 0; ; n++ {
		text := fmt.Sprintf("generation %d %s\n", n, strings.Repeat("x", 3000+n%7*1000))
		if _, err := write(f, dir+"/f", text+text, StageOptions{}); err != nil {
			panic(err)
		}
	}
}

func TestMain(m *testing.M) {
	switch {
	case os.Getenv("GUARDFS_KILLED") != "":
		killed(os.Getenv("GUARDFS_KILLED"))
	case os.Getenv("GUARDFS_COUNT") != "":
		count(os.Getenv("GUARDFS_COUNT"), os.Getenv("GUARDFS_LOCKS"))
	default:
		os.Exit(m.Run())
	}
}

// A process that is killed at any moment leaves the file whole, and what it leaves beside it Sweep takes away.
func TestKill(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	dir := ramdisk(t)
	f := open(t, &fence{root: dir})
	lay(t, dir, "f = generation 0\ngeneration 0\n")
	littered := 0
	for n := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "GUARDFS_KILLED="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		out.Read(make([]byte, 6))
		time.Sleep(time.Duration(2+n*7%23) * time.Millisecond)
		must(t, cmd.Process.Kill())
		cmd.Wait() //nolint:errcheck // it was killed
		text := content(dir + "/f")
		if half := len(text) / 2; len(text) < 20 || text[:half] != text[half:] {
			t.Fatalf("round %d: torn: %.60q", n, text)
		}
		littered += len(litter(t, dir))
		place, err := f.Place(dir + "/f")
		must(t, err)
		_, left, err := place.Sweep(-time.Second)
		place.Close()
		if err != nil || len(left) > 0 {
			t.Errorf("round %d: %v left, %v", n, left, err)
		}
		if names := litter(t, dir); names != nil {
			t.Errorf("round %d: %v", n, names)
		}
	}
	t.Logf("%d kills, %d left something beside the file", rounds, littered)
}

// What a listing gives is not ours to hide: a name that Temporary knows is left out by those who walk, and Sweep finds it.
func TestListShowsTemporaries(t *testing.T) {
	b := base(t)
	name := tempName()
	lay(t, b, "f", name+" = x")
	f := open(t, &fence{root: b})
	h, err := f.Resolve(b, Look)
	must(t, err)
	defer h.Close()
	d, err := h.Dir()
	must(t, err)
	defer d.Close()
	entries, _, err := d.List(nil)
	must(t, err)
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == name }) {
		t.Error("not listed")
	}
}
