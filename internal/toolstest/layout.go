package toolstest

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/edit/diff"
)

// Tree is an empty directory by its canonical name. Its parent is the
// test's own too, so that a case can escape into it.
func Tree(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "ws")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// Layout carries out lines of a tiny language below root, one a line:
//
//	NAME/                a directory
//	NAME = TEXT          a file; TEXT is a Go string literal when it is quoted
//	NAME = hex 00ff…     a file of these bytes
//	NAME = size 12345    a sparse file
//	NAME => TARGET       a symbolic link; $ROOT in TARGET is the root
//	NAME == OTHER        a hard link to OTHER
//	NAME fifo            also: socket
//	NAME mode 0600       change the mode
//	NAME age 2h          set the modification time that far back
//	NAME gone            remove it, with all below
//
// NAME may start with ../ to lie beside the root.
func Layout(t testing.TB, root, lines string) {
	t.Helper()
	for _, line := range strings.Split(lines, "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			if err := lay(t, root, line); err != nil {
				t.Fatalf("layout %q: %v", line, err)
			}
		}
	}
}

func lay(t testing.TB, root, line string) error {
	at := func(name string) string { return filepath.Join(root, name) }
	if name, text, ok := strings.Cut(line, " = "); ok {
		return layFile(at(name), text)
	}
	if name, target, ok := strings.Cut(line, " => "); ok {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			return err
		}
		return os.Symlink(strings.ReplaceAll(target, "$ROOT", root), at(name))
	}
	if name, other, ok := strings.Cut(line, " == "); ok {
		return os.Link(at(other), at(name))
	}
	words := strings.Fields(line)
	switch {
	case len(words) == 1 && strings.HasSuffix(line, "/"):
		return os.MkdirAll(at(line), 0o755)
	case len(words) == 2 && words[1] == "fifo":
		return mkfifo(at(words[0]))
	case len(words) == 2 && words[1] == "socket":
		l, err := net.Listen("unix", at(words[0]))
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	case len(words) == 2 && words[1] == "gone":
		return os.RemoveAll(at(words[0]))
	case len(words) == 3 && words[1] == "mode":
		mode, err := strconv.ParseUint(words[2], 8, 32)
		if err != nil {
			return err
		}
		bits := os.FileMode(mode & 0o777)
		if mode&0o4000 != 0 {
			bits |= os.ModeSetuid
		}
		if mode&0o2000 != 0 {
			bits |= os.ModeSetgid
		}
		return os.Chmod(at(words[0]), bits)
	case len(words) == 3 && words[1] == "age":
		d, err := time.ParseDuration(words[2])
		if err != nil {
			return err
		}
		then := time.Now().Add(-d)
		return os.Chtimes(at(words[0]), then, then)
	}
	return fmt.Errorf("not a line of the layout language")
}

func layFile(path, text string) error {
	data := []byte(text)
	switch {
	case strings.HasPrefix(text, "hex "):
		var err error
		if data, err = hex.DecodeString(strings.ReplaceAll(text[4:], " ", "")); err != nil {
			return err
		}
	case strings.HasPrefix(text, "size "):
		n, err := strconv.ParseInt(text[5:], 10, 64)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
		return os.Truncate(path, n)
	case strings.HasPrefix(text, `"`):
		s, err := strconv.Unquote(text)
		if err != nil {
			return err
		}
		data = []byte(s)
	}
	return writeFile(path, data)
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// Snapshot is every entry below the parent of root, by its name relative to
// root: the content of a file, "-> target" of a link, the type of anything
// else. Large files stand by their size.
func Snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Dir(root), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			out[name] = "directory\n"
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			out[name] = "-> " + target + "\n"
		case !info.Mode().IsRegular():
			out[name] = "special\n"
		case info.Size() > 1<<20:
			out[name] = fmt.Sprintf("%d bytes\n", info.Size())
		default:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[name] = string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// changed shows the lines of got that differ from want.
func changed(want, got string) string {
	return diff.Unified("want", diff.Edited, diff.Patch([]byte(want), []byte(got)))
}
