//go:build !rooted

package run

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"moltisfs/internal/testdir"
)

// derives says what a derivation comes to, one line a change.
func derives(t *testing.T, u Upper) string {
	t.Helper()
	u.Stamp = time.Now().Add(time.Hour)
	d, err := Derive(u)
	testdir.Must(t, err)
	defer d.Close()
	var out []string
	for _, c := range d.Changes {
		is := func(s State) string {
			if !s.Exists {
				return "-"
			}
			return s.Mode.String()
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Path, is(c.Before), is(c.After), c.Why)))
	}
	return strings.Join(out, "\n")
}

// The kernel's whiteouts are names of one object: a derivation that asks for names first takes them for a device with several.
func TestWhiteoutsHaveSeveralNames(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root makes whiteouts outside of an overlay")
	}
	dir := t.TempDir()
	u := Upper{Root: dir + "/ws", Dir: dir + "/" + UpperName}
	for _, d := range []string{u.Root, u.Dir} {
		testdir.Must(t, os.Mkdir(d, 0o755))
	}
	for _, name := range []string{"a", "b"} {
		testdir.Must(t, os.WriteFile(u.Root+"/"+name, nil, 0o644))
	}
	testdir.Must(t, unix.Mknod(u.Dir+"/a", unix.S_IFCHR, 0))
	testdir.Must(t, os.Link(u.Dir+"/a", u.Dir+"/b"))
	const want = "a -rw-r--r-- -\nb -rw-r--r-- -"
	if got := derives(t, u); got != want {
		t.Errorf("it came to\n%s\nand not to\n%s", got, want)
	}
	was := whiteout00
	t.Cleanup(func() { whiteout00 = was })
	whiteout00 = func(st *unix.Stat_t) bool { return was(st) && st.Nlink == 1 }
	if got := derives(t, u); got == want {
		t.Error("a derivation that is known to be bad is as good: the test tests nothing")
	}
}

// An ordinary user's program may close directories to its own user. They are looked into all the same, and have their modes again in the end.
func TestClosedInUpper(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	dir := t.TempDir()
	testdir.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	testdir.Must(t, os.Chown(dir, testdir.Nobody, testdir.Nobody))
	testdir.BeNobody(t)
	u := Upper{Root: dir + "/ws", Dir: dir + "/" + UpperName, User: true}
	testdir.Must(t, os.Mkdir(u.Root, 0o755))
	testdir.Must(t, os.MkdirAll(u.Dir+"/closed/in", 0o755))
	testdir.Must(t, os.WriteFile(u.Dir+"/closed/in/f", []byte("f"), 0))
	testdir.Must(t, unix.Mkfifo(u.Dir+"/closed/fifo", 0o600))
	modes := map[string]fs.FileMode{"closed/in": 0o500, "closed": 0, "": 0o755}
	for _, name := range []string{"closed/in", "closed"} {
		testdir.Must(t, os.Chmod(u.Dir+"/"+name, modes[name]))
	}
	t.Cleanup(func() { os.Chmod(u.Dir+"/closed", 0o700); os.Chmod(u.Dir+"/closed/in", 0o700) })
	want := "closed - d---------\nclosed/fifo - prw------- special\nclosed/in - dr-x------\nclosed/in/f - ----------"
	if got := derives(t, u); got != want {
		t.Errorf("it came to\n%s\nand not to\n%s", got, want)
	}
	d, err := Derive(u)
	testdir.Must(t, err)
	at := slices.IndexFunc(d.Changes, func(c Change) bool { return c.Path == "closed/in/f" })
	f, err := d.Open(&d.Changes[at])
	testdir.Must(t, err)
	f.Close()
	d.Close()
	if i, err := os.Stat(u.Dir + "/closed"); err != nil || i.Mode().Perm() != 0 {
		t.Errorf("%v, %v", i, err)
	}
}
