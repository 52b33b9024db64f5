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

// recorded opens an FS whose temporary names are on record.
func recorded(t *testing.T, j Judge, dir string) (*FS, *Temporaries) {
	t.Helper()
	names := OpenTemporaries(dir)
	f, err := New(Options{Judge: j, Temporaries: names})
	must(t, err)
	t.Cleanup(func() { f.Close(); names.Close() })
	return f, names
}

// dies is what a killed process does: its lock is free, and its record stays.
func (t *Temporaries) dies() { t.file.Close() }

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// What a killed process left is removed, whatever its age; what is somebody's under such a name
// gets a lasting one and is listed; and a file with such a name that no record names is left alone,
// at any age.
func TestSweep(t *testing.T) {
	b := base(t)
	roads(t, &fence{root: b}, func(t *testing.T, _ *FS) {
		noLeak(t)
		dir := filepath.Join(b, t.Name())
		lay(t, dir, "ws/f = content")
		_, theirs := recorded(t, &fence{root: dir}, dir+"/record")
		tag, err := theirs.give(dir + "/ws/f")
		must(t, err)
		op, other := strings.Repeat("a", TagLen), strings.Repeat("b", TagLen)
		strangers := []string{compose(""), compose(op), HoldName(op, 0, op), HoldName(op, 1, ""), keptName(), ".moltis-notes.tmp"}
		// What was there before and has no other name is kept, and what never was there goes.
		lay(t, dir+"/ws", compose(tag)+" = half a fi", HoldName(op, 1, tag)+" = staged", HoldName(other, 0, tag)+" <= f",
			HoldName(op, 0, tag)+" = what nobody knows", compose(tag)+" => f", compose(tag)+"/")
		long := time.Now().Add(-1000 * time.Hour)
		for _, name := range strangers {
			lay(t, dir+"/ws", name+" = somebody's")
			must(t, os.Chtimes(filepath.Join(dir, "ws", name), long, long))
		}

		f, ours := recorded(t, &fence{root: dir}, dir+"/record")
		sweep := func() {
			t.Helper()
			must(t, ours.Dead(func(tag string, paths []string) bool {
				for _, p := range paths {
					place, err := f.PlaceLink(p)
					must(t, err)
					_, err = place.Sweep(tag, func(string) bool { return true })
					must(t, err)
					place.Close()
				}
				return true
			}))
		}
		sweep()
		if n := len(names(t, dir+"/ws")); n != 7+len(strangers) {
			t.Errorf("the litter of a process that lives was swept: %d names", n)
		}
		theirs.dies()
		sweep()
		left := names(t, dir+"/ws")
		for _, name := range append(strangers, "f") {
			if !slices.Contains(left, name) {
				t.Errorf("%s is gone", name)
			}
		}
		kept, err := ours.Kept(func(k KeptFile) bool { _, err := os.Lstat(k.Path); return err == nil })
		must(t, err)
		if len(kept) != 2 || len(left) != len(strangers)+3 || somewhere(t, dir, "what nobody knows") != nil {
			t.Errorf("kept %v, and there is %v", kept, left)
		}
		for _, k := range kept {
			if !IsKept(filepath.Base(k.Path)) || k.Of != dir+"/ws/f" {
				t.Errorf("kept %+v", k)
			}
			must(t, os.Remove(k.Path))
		}
		there := func(k KeptFile) bool { _, err := os.Lstat(k.Path); return err == nil }
		if kept, err = ours.Kept(there); err != nil || kept != nil || len(names(t, dir+"/record/kept")) > 0 {
			t.Errorf("what was removed is still listed: %v %v", kept, err)
		}
		if left := names(t, dir+"/record"); len(left) != 1 {
			t.Errorf("records left: %v", left)
		}
	})
}

// A file in the only hold of an operation that nobody knows may be what somebody wrote right before it: it is kept. Other holds have
// what was staged.
func TestOnlyHoldIsKept(t *testing.T) {
	b := base(t)
	f, record := recorded(t, &fence{root: b}, b+"/record")
	process := strings.Repeat("f", TagLen)
	lay(t, b, "ws/"+HoldName(someTag, 0, process)+" = theirs", "ws/"+HoldName(someTag, 1, process)+" = staged", "ws/"+HoldName(someTag, 10, process)+" = staged")
	place, err := f.PlaceLink(b + "/ws/f")
	must(t, err)
	defer place.Close()
	left, err := place.Sweep(process, func(string) bool { return true })
	must(t, err)
	kept, err := record.Kept(func(k KeptFile) bool { return content(k.Path) == "theirs" })
	if err != nil || left || len(kept) != 1 || len(names(t, b+"/ws")) != 1 {
		t.Errorf("kept %v, left %v, there is %v, %v", kept, left, names(t, b+"/ws"), err)
	}
}

// A record that takes the place of an abandoned one is synced anew.
func TestAbandonedRecord(t *testing.T) {
	b := base(t)
	_, record := recorded(t, &fence{root: b}, b+"/record")
	give := func() string {
		tag, err := record.give(b + "/f")
		must(t, err)
		return tag
	}
	first := give()
	must(t, record.Sync())
	record.Abandon()
	second := give()
	if second == first || record.synced || record.Alive(first) || !record.Alive(second) || !record.AnyDead() {
		t.Errorf("%s, then %s; synced: %v", first, second, record.synced)
	}
}

// A process that ends in order leaves no record, and one that could not remove a name does.
func TestRecordOfAnEnd(t *testing.T) {
	for _, fails := range []bool{false, true} {
		dir := ramdisk(t)
		lay(t, dir, "ws/f = old")
		f, record := recorded(t, &fence{root: dir + "/ws"}, dir+"/record")
		f.kernel.hook = func(op string) *Fault {
			if op == "unlink" && fails {
				return &Fault{Err: unix.EIO}
			}
			return nil
		}
		_, err := write(f, dir+"/ws/f", "new", options{})
		must(t, err)
		f.kernel.hook = nil
		must(t, record.Close())
		if left := names(t, dir+"/record"); (len(left) > 0) != fails || (litter(t, dir+"/ws") != nil) != fails {
			t.Errorf("unlink fails: %v, records %v, litter %v", fails, left, litter(t, dir+"/ws"))
		}
	}
}

// Names of our own are left out of a listing while they are on record. Those that only look like it
// are counted: nothing is hidden.
func TestListCountsWhatLooksTemporary(t *testing.T) {
	b := base(t)
	f, record := recorded(t, &fence{root: b}, b+"/record")
	tag, err := record.give(b + "/d/f")
	must(t, err)
	lay(t, b, "d/f", "d/"+compose(tag)+" = ours", "d/"+compose("")+" = theirs", "d/"+keptName()+" = kept")
	h, err := f.Resolve(b+"/d", Look)
	must(t, err)
	defer h.Close()
	d, err := h.Dir()
	must(t, err)
	defer d.Close()
	entries, denied, err := d.List(nil)
	must(t, err)
	if len(entries) != 2 || denied != 1 {
		t.Errorf("%v, and %d denied", entries, denied)
	}
}

func TestReserved(t *testing.T) {
	for name, want := range map[string]bool{
		compose(""): true, compose(strings.Repeat("a", TagLen)): true, strings.ToUpper(HoldName(someTag, 1, someTag)): true,
		TrashPrefix + "-0": true, ".Moltis-Trash": true, keptName(): false, "f": false, ".moltis-notes.tmp": false, ".moltis-": false, ".moltis": false,
	} {
		folded := strings.ToLower(name)
		if Reserved(name) != want || ReservedPath("/a/"+folded) != want || ReservedPath("/.moltis-x/"+folded+"/b") != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// killed is the program that TestKill kills: it replaces a file for ever.
func killed(dir string) {
	f, err := New(Options{Judge: &fence{root: dir}, Temporaries: OpenTemporaries(dir + "/record")})
	if err != nil {
		panic(err)
	}
	for n := 0; ; n++ {
		text := fmt.Sprintf("generation %d %s\n", n, strings.Repeat("x", 3000+n%7*1000))
		if _, err := write(f, dir+"/f", text+text, options{way: ways[n%2]}); err != nil {
			panic(err)
		}
		if n == 0 {
			fmt.Println("ready") // its record is there
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
	f, record := recorded(t, &fence{root: dir}, dir+"/record")
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
		must(t, record.Dead(func(tag string, paths []string) bool {
			for _, p := range paths {
				place, err := f.Place(p)
				must(t, err)
				_, err = place.Sweep(tag, func(string) bool { return true })
				must(t, err)
				place.Close()
			}
			return true
		}))
		if names := litter(t, dir); names != nil {
			t.Errorf("round %d: %v", n, names)
		}
		if left := names(t, dir+"/record"); left != nil {
			t.Errorf("round %d: records %v", n, left)
		}
	}
	t.Logf("%d kills, %d left something beside the file", rounds, littered)
}
