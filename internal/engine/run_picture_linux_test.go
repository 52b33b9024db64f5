package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"moltisfs/internal/guardfs"
)

// pictured is a tree by name: what each is, with mode, owner, content, attributes and the first of its names.
func pictured(t testing.TB, root string) map[string]string {
	t.Helper()
	out, first := map[string]string{}, map[uint64]string{}
	must(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, unix.ENAMETOOLONG) || len(p) > 4000 {
			return fs.SkipDir
		}
		must(t, err)
		name := strings.TrimPrefix(p, root)
		if guardfs.Reserved(filepath.Base(p)) {
			return fs.SkipDir
		}
		var st unix.Stat_t
		must(t, unix.Lstat(p, &st))
		is := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			b, err := os.ReadFile(p)
			must(t, err)
			if is += fmt.Sprintf(" %q", b[:min(len(b), 100)]); len(b) > 100 {
				is += fmt.Sprintf("… %d", len(b))
			}
			if st.Mtim.Sec < 1.7e9 {
				is += fmt.Sprint(" at ", st.Mtim.Sec)
			}
		case unix.S_IFLNK:
			to, err := os.Readlink(p)
			must(t, err)
			is += " -> " + to
		}
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if f, known := first[st.Ino]; known {
				is += " = " + f
			} else {
				first[st.Ino] = name
			}
		}
		buf := make([]byte, 4096)
		n, err := unix.Llistxattr(p, buf)
		must(t, err)
		for _, key := range slices.Sorted(strings.SplitSeq(string(buf[:n]), "\x00")) {
			if key != "" {
				v := make([]byte, 4096)
				n, err := unix.Lgetxattr(p, key, v)
				must(t, err)
				is += fmt.Sprintf(" %s=%q", key, v[:n])
			}
		}
		out[name] = is
		return nil
	}))
	return out
}

// without has program change a copy of the workspace, and gives its picture.
func (r *ranIn) without(t testing.TB, program func(dir string)) map[string]string {
	t.Helper()
	r.runs++
	copied := filepath.Join(r.data, fmt.Sprint("copy", r.runs))
	if out, err := exec.Command("cp", "-a", r.ws, copied).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	program(copied)
	return pictured(t, copied)
}

// timeless is a picture without times, which no undo brings back.
func timeless(picture map[string]string) map[string]string {
	for name, is := range picture {
		before, after, _ := strings.Cut(is, " at ")
		_, after, _ = strings.Cut(after, " ")
		picture[name] = strings.TrimSpace(before + " " + after)
	}
	return picture
}

func same(t testing.TB, when string, got, want map[string]string) {
	t.Helper()
	names := map[string]bool{}
	for name := range got {
		names[name] = true
	}
	for name := range want {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if got[name] != want[name] {
			t.Errorf("%s: %q\n  is   %s\n  want %s", when, name, got[name], want[name])
		}
	}
}
