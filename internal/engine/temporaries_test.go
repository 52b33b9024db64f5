package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

// anything allows everything.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

// nothing allows nothing.
type nothing struct{ anything }

func (nothing) Judge(guardfs.Object, guardfs.Access) error { return os.ErrPermission }

// The next start removes what the record of a killed process names, in directories that nobody
// changes too; where policy does not let it, it is left to another start. What no record names
// stays.
func TestTheNextStartSweeps(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	const tag = "0123456789abcdef"
	record := filepath.Join(data, temporariesName, tag)
	litter := []string{"a/.moltis-0123456789abcdef01234567-" + tag + ".tmp", "b/" + guardfs.HoldName("fedcba9876543210", 1, tag)}
	stay := []string{"a/f", "a/.moltis-0123456789abcdef01234567.tmp", "a/.moltis-0123456789abcdef01234567-fedcba9876543210.tmp"}
	for _, dir := range []string{root + "/a", root + "/b", filepath.Dir(record)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Concat(litter, stay) {
		if err := os.WriteFile(filepath.Join(root, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines := `"` + root + `/a/f"` + "\n" + `"` + root + `/b/gone"` + "\n" + `"` + root + `/removed/f"` + "\n" + `"cut`
	if err := os.WriteFile(record, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	there := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	for _, judge := range []guardfs.Judge{nothing{}, anything{}} {
		e, err := OpenOver(Options{Config: config.Default().Tools.FS, Judge: judge, DataDir: data})
		if err != nil {
			t.Fatal(err)
		}
		e.Close()
		_, denied := judge.(nothing)
		for _, name := range litter {
			if there(filepath.Join(root, name)) != denied {
				t.Errorf("denied: %v: %s is there: %v", denied, name, !denied)
			}
		}
		if there(record) != denied {
			t.Errorf("denied: %v: the record is there: %v", denied, !denied)
		}
		for _, name := range stay {
			if !there(filepath.Join(root, name)) {
				t.Errorf("%s is gone", name)
			}
		}
	}
}

// What could not be put back in its place is listed as long as it is there, and can be removed.
func TestKept(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names := guardfs.OpenTemporaries(filepath.Join(dir, temporariesName))
	f, err := guardfs.New(guardfs.Options{Judge: anything{}, Temporaries: names})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	theirs := filepath.Join(dir, guardfs.HoldName("fedcba9876543210", 0, "0123456789abcdef"))
	if err := os.WriteFile(theirs, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	place, err := f.PlaceLink(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	if _, err := place.Sweep("0123456789abcdef", func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for _, remove := range []bool{false, true, false} {
		kept, err := Kept(t.Context(), dir, Place{}, remove)
		if err != nil {
			t.Fatal(err)
		}
		if len(kept) == 1 && kept[0].Of == filepath.Join(dir, "f") {
			if b, err := os.ReadFile(kept[0].Path); remove == (err == nil) || !remove && string(b) != "theirs" {
				t.Errorf("remove %v: %q %v", remove, b, err)
			}
		} else if len(kept) > 0 || remove {
			t.Errorf("remove %v: %+v", remove, kept)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, temporariesName, "kept", "*")); !remove && (len(left) > 0) != (len(kept) > 0) {
			t.Errorf("records %v of %v", left, kept)
		}
	}
}
