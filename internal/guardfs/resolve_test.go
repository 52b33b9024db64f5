//go:build unix

package guardfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pathCase is one path against one tree. naked says whether reading the path with package os would give
// the content of something, that is, whether it is the guard that makes the difference.
type pathCase struct {
	name  string
	tree  []string
	path  string // $W is the allowed tree, $B what holds it and the forbidden ones
	want  string // content after "=", or the outcome
	hops  string // base names of the links passed, with blanks
	naked bool
	// best is the answer that the road without the kernel's help may give instead.
	best string
}

var pathCases = []pathCase{
	{name: "plain file", tree: []string{"ws/f = A"}, path: "$W/f", want: "=A", naked: true},
	{name: "dots and slashes", tree: []string{"ws/d/f = A"}, path: "$W//d/./../d/f", want: "=A", naked: true},
	{name: "parent outside", tree: []string{"out/s = S"}, path: "$W/../out/s", want: "denied", naked: true},
	{name: "sibling with the same beginning", tree: []string{"wsx/s = S"}, path: "$Wx/s", want: "denied", naked: true},
	{name: "denied tree", tree: []string{"ws/secrets/s = S"}, path: "$W/secrets/s", want: "denied", naked: true},
	{name: "denied tree itself", tree: []string{"ws/secrets/s = S"}, path: "$W/secrets", want: "denied"},
	{name: "through a denied directory and back", tree: []string{"ws/d/f = A", "ws/secrets/"}, path: "$W/secrets/../d/f", want: "denied", hops: "secrets", naked: true},
	{name: "through a denied directory and back, missing", tree: []string{"ws/d/f = A"}, path: "$W/secrets/../d/f", want: "denied", hops: "secrets"},
	{name: "through the outside and back", tree: []string{"ws/f = A", "out/d/"}, path: "$B/out/d/../../ws/f", want: "denied", hops: "d", naked: true},
	{name: "through the outside and back, no directory", tree: []string{"ws/f = A", "out/d"}, path: "$B/out/d/../../ws/f", want: "denied", hops: "d"},
	{name: "through a link to the outside and back", tree: []string{"ws/f = A", "ws/l => ../out/d", "out/d/"}, path: "$W/l/../../ws/f", want: "denied", hops: "l d", naked: true},
	{name: "up twice", tree: []string{"ws/d/e/", "ws/f = A"}, path: "$W/d/e/.././..//f", want: "=A", hops: "e", naked: true},
	{name: "up, down and up", tree: []string{"ws/d/", "ws/e/", "ws/f = A"}, path: "$W/d/../e/../f", want: "=A", hops: "d e", naked: true},
	{name: "link inside", tree: []string{"ws/f = A", "ws/l => f"}, path: "$W/l", want: "=A", hops: "l", naked: true},
	{name: "absolute link inside", tree: []string{"ws/f = A", "ws/l => $B/ws/f"}, path: "$W/l", want: "=A", hops: "l", naked: true},
	{name: "link outside", tree: []string{"out/s = S", "ws/l => ../out/s"}, path: "$W/l", want: "denied", hops: "l", naked: true},
	{name: "absolute link outside", tree: []string{"out/s = S", "ws/l => $B/out/s"}, path: "$W/l", want: "denied", hops: "l", naked: true},
	{name: "linked directory outside", tree: []string{"out/s = S", "ws/l => ../out"}, path: "$W/l/s", want: "denied", hops: "l", naked: true},
	{name: "link to a denied file", tree: []string{"ws/secrets/s = S", "ws/l => secrets/s"}, path: "$W/l", want: "denied", hops: "l", naked: true},
	{name: "denied name of an allowed file", tree: []string{"ws/f = A", "ws/secrets => d", "ws/d/f = A"}, path: "$W/secrets/f", want: "denied", hops: "secrets", naked: true},
	{name: "through a denied hop", tree: []string{"ws/d/f = A", "ws/secrets/l => ../d", "ws/m => secrets/l"}, path: "$W/m/f", want: "denied", hops: "m l", naked: true},
	{name: "chain of links", tree: []string{"ws/a => b", "ws/b => c", "ws/c = A"}, path: "$W/a", want: "=A", hops: "a b", naked: true},
	{name: "up through a link means the target's parent", tree: []string{"ws/d/e/", "ws/l => d/e", "ws/d/f = A", "ws/f = B"}, path: "$W/l/../f", want: "=A", hops: "l e", naked: true},
	{name: "up through a link to the outside", tree: []string{"out/e/", "ws/l => ../out/e", "out/s = S"}, path: "$W/l/../s", want: "denied", hops: "l e", naked: true},
	{name: "link from outside whose text goes up", tree: []string{"ws/f = A", "out/l => ../ws"}, path: "$B/out/l/f", want: "=A", hops: "l", naked: true},
	{name: "up from a link outside that leads inside", tree: []string{"ws/d/", "ws/f = A", "out/l => ../ws/d"}, path: "$B/out/l/../f", want: "denied", hops: "l d", naked: true},
	{name: "out and in again", tree: []string{"ws/f = A"}, path: "$W/../ws/f", want: "=A", naked: true},
	{name: "beyond the root", tree: []string{"ws/f = A"}, path: "/../../..$W/f", want: "=A", naked: true},
	{name: "missing", path: "$W/none", want: "absent"},
	{name: "missing directory", path: "$W/none/none", want: "absent"},
	{name: "missing outside", path: "$B/out/none", want: "denied"},
	{name: "missing in a denied tree", tree: []string{"ws/secrets/"}, path: "$W/secrets/none", want: "denied"},
	{name: "dangling link inside", tree: []string{"ws/l => none"}, path: "$W/l", want: "absent", hops: "l"},
	{name: "dangling link outside", tree: []string{"ws/l => ../out/none"}, path: "$W/l", want: "denied", hops: "l"},
	{name: "missing, then up", tree: []string{"ws/f = A"}, path: "$W/none/../f", want: "absent"},
	{name: "file as a directory", tree: []string{"ws/f = A"}, path: "$W/f/g", want: "notdir"},
	{name: "file as a directory outside", tree: []string{"out/s = S"}, path: "$B/out/s/g", want: "denied"},
	{name: "slash after a file", tree: []string{"ws/f = A"}, path: "$W/f/", want: "notdir"},
	{name: "dot after a file", tree: []string{"ws/f = A"}, path: "$W/f/.", want: "notdir"},
	{name: "up from a file", tree: []string{"ws/f = A"}, path: "$W/f/../f", want: "notdir"},
	{name: "slash after a linked file", tree: []string{"ws/f = A", "ws/l => f"}, path: "$W/l/", want: "notdir", hops: "l"},
	{name: "slash in a link's text", tree: []string{"ws/f = A", "ws/l => f/"}, path: "$W/l", want: "notdir", hops: "l"},
	{name: "link to itself", tree: []string{"ws/l => l"}, path: "$W/l", want: "loop"},
	{name: "two links in a circle", tree: []string{"ws/a => b", "ws/b => a"}, path: "$W/a/x", want: "loop"},
	{name: "directory", tree: []string{"ws/d/"}, path: "$W/d", want: "directory"},
	{name: "directory by its link", tree: []string{"ws/d/", "ws/l => d"}, path: "$W/l", want: "directory", hops: "l"},
	{name: "fifo", tree: []string{"ws/p |"}, path: "$W/p", want: "fifo"},
	{name: "link to a fifo", tree: []string{"ws/p |", "ws/l => p"}, path: "$W/l", want: "fifo", hops: "l"},
	{name: "name like that of a deleted file", tree: []string{"ws/f (deleted) = A"}, path: "$W/f (deleted)", want: "=A", naked: true},
	{name: "glob characters are letters", tree: []string{"ws/[a]*{b}?\\ = A"}, path: "$W/[a]*{b}?\\", want: "=A", naked: true},
	{name: "control characters are letters", tree: []string{"ws/a\nb\x1b = A"}, path: "$W/a\nb\x1b", want: "=A", naked: true},
	{name: "tilde is a letter", tree: []string{"ws/~/f = A"}, path: "$W/~/f", want: "=A", naked: true},
	{name: "hard link to an allowed file", tree: []string{"ws/f = A", "ws/h <= ws/f"}, path: "$W/h", want: "=A", naked: true},
	{name: "relative", path: "ws/f", want: "bad"},
	{name: "empty", path: "", want: "bad"},
	{name: "tilde", path: "~/f", want: "bad"},
	{name: "address", path: "file:///etc/passwd", want: "bad"},
	{name: "NUL", path: "$W/a\x00b", want: "bad"},
	{name: "broken UTF-8", path: "$W/a\xff", want: "bad"},
	{name: "long component", path: "$W/" + strings.Repeat("x", 256), want: "bad"},
	{name: "longest component", path: "$W/" + strings.Repeat("x", 255), want: "absent"},
	{name: "long path", path: "$W/" + strings.Repeat("x/", 2048), want: "bad"},
	{name: "deep missing path", path: "$W/" + strings.Repeat("x/", 1900) + "x", want: "absent"},
	{name: "magic link", path: "/proc/self/root/$W/f", tree: []string{"ws/f = A"}, want: "denied", best: "=A", naked: true},
	{name: "link to a magic link", tree: []string{"ws/f = A", "ws/l => /proc/self/root/$B/ws/f"}, path: "$W/l", want: "denied", best: "=A", naked: true},
	{name: "kernel interface", path: "/proc/self/environ", want: "denied", naked: true},
}

func TestResolve(t *testing.T) {
	for _, c := range pathCases {
		t.Run(c.name, func(t *testing.T) {
			b := base(t)
			w := b + "/ws"
			lay(t, b, "ws/", "out/")
			lay(t, b, c.tree...)
			p := strings.ReplaceAll(strings.ReplaceAll(c.path, "$W", w), "$B", b)
			j := &fence{root: w, deny: []string{w + "/secrets"}}
			was := snapshot(t, b)
			roads(t, j, func(t *testing.T, f *FS) {
				noLeak(t)
				start := time.Now()
				got, err := read(f, p)
				if d := time.Since(start); d > time.Minute {
					t.Errorf("took %v", d)
				}
				answer := outcome(err)
				if err == nil {
					answer = "=" + got
				}
				if answer != c.want && (c.best == "" || f.Containment() != "best_effort" || answer != c.best) {
					t.Errorf("got %s (%v), want %s", answer, err, c.want)
				}
				if c.hops != "" && answer != "bad" {
					_, o, _ := resolved(f, j, p)
					var hops []string
					for _, h := range o.Hops {
						hops = append(hops, filepath.Base(h.Name))
					}
					if strings.Join(hops, " ") != c.hops {
						t.Errorf("hops %v, want %s", o.Hops, c.hops)
					}
				}
			})
			if now := snapshot(t, b); now != was {
				t.Errorf("the tree has changed:\n%s\nwas\n%s", now, was)
			}
			if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() != c.naked || err != nil && c.naked {
				t.Errorf("unguarded: %v %v, the table says %v", fi, err, c.naked)
			}
		})
	}
}

// watcher remembers what it was asked about.
type watcher struct {
	fence
	seen []Object
}

func (w *watcher) Judge(o Object, a Access) error {
	w.seen = append(w.seen, o)
	return w.fence.Judge(o, a)
}

// resolved tells what a Judge is told about a path.
func resolved(f *FS, j *fence, p string) (*Handle, Object, error) {
	w := &watcher{fence: *j}
	g := *f
	g.judge = w
	h, err := g.Resolve(p, Look)
	if h != nil {
		h.Close()
	}
	if len(w.seen) != 1 {
		return nil, Object{}, fmt.Errorf("asked %d times", len(w.seen))
	}
	return h, w.seen[0], err
}

// A refused path must not tell whether anything is there, nor what.
func TestNoOracle(t *testing.T) {
	b := base(t)
	w := b + "/ws"
	lay(t, b, "ws/", "out/file = S", "out/dir/f", "out/p |", "out/l => dir", "ws/secrets/f", "ws/lf => ../out/file",
		"ws/ln => ../out/none")
	groups := [][]string{
		{b + "/out/file", b + "/out/none", b + "/out/dir", b + "/out/p", b + "/out/l/f", b + "/out/file/x", b + "/out/dir/f/"},
		{w + "/secrets/f", w + "/secrets/g", w + "/secrets"},
		{w + "/lf", w + "/ln"},
	}
	for _, x := range []string{"file", "none", "dir", "dir/f", "dir/f/x", "p", "l", "l/f", "none/x"} {
		groups = append(groups, []string{b + "/out/" + x + "/../../ws/a", b + "/out/" + x + "/./..//" + strings.Repeat("../", 20) + w + "/a"})
	}
	roads(t, &fence{root: w, deny: []string{w + "/secrets"}}, func(t *testing.T, f *FS) {
		noLeak(t)
		for _, group := range groups {
			for _, p := range group {
				for a := Look; a <= Remove; a++ {
					if _, err := f.Resolve(p, a); err != errDenied {
						t.Errorf("%s %s: %v", a, p, err)
					}
				}
				if strings.HasSuffix(p, "/") {
					continue
				}
				if _, err := f.Entry(p); err != errDenied && !strings.HasPrefix(p, w+"/l") {
					t.Errorf("place %s: %v", p, err)
				}
				if _, err := makeParents(f, p+"/x/y"); err != errDenied {
					t.Errorf("make parents of %s: %v", p, err)
				}
			}
		}
	})
}

func TestResolveUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	b := base(t)
	lay(t, b, "ws/closed/f", "ws/f = A")
	must(t, os.Chmod(b+"/ws/closed", 0))
	must(t, os.Chmod(b+"/ws/f", 0))
	defer os.Chmod(b+"/ws/closed", 0o755)
	roads(t, &fence{root: b + "/ws"}, func(t *testing.T, f *FS) {
		for _, p := range []string{"/ws/closed/f", "/ws/f"} {
			if _, err := read(f, b+p); outcome(err) != "permission" {
				t.Errorf("%s: %v", p, err)
			}
		}
	})
}

// A handle is the object, not the name.
func TestHandleSurvivesSwaps(t *testing.T) {
	b := base(t)
	roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
		if f.Containment() == "best_effort" {
			t.Skip("names only")
		}
		noLeak(t)
		lay(t, b, "d/f = A", "e/f = B")
		defer os.RemoveAll(b + "/d")
		h, err := f.Resolve(b+"/d/f", Read)
		must(t, err)
		defer h.Close()
		must(t, os.Rename(b+"/d", b+"/x"))
		defer os.RemoveAll(b + "/x")
		must(t, os.Symlink("e", b+"/d"))
		file, err := h.Open()
		must(t, err)
		defer file.Close()
		var buf [4]byte
		n, _ := file.ReadAt(buf[:], 0)
		if string(buf[:n]) != "A" {
			t.Errorf("read %q", buf[:n])
		}
	})
}

func TestCloseTwice(t *testing.T) {
	b := base(t)
	lay(t, b, "f = A")
	roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
		noLeak(t)
		h, err := f.Resolve(b+"/f", Read)
		must(t, err)
		file, err := h.Open()
		must(t, err)
		p, err := f.Entry(b + "/f")
		must(t, err)
		for range 3 {
			must(t, h.Close())
			must(t, file.Close())
			must(t, p.Close())
		}
		other, err := os.Open(b + "/f") // takes the number over
		must(t, err)
		defer other.Close()
		if n, err := file.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("read after close: %d %v", n, err)
		}
		if n, err := file.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
			t.Errorf("read after close: %d %v", n, err)
		}
		if _, err := p.Load(-1); err == nil {
			t.Error("load after close")
		}
	})
}

func TestCanonical(t *testing.T) {
	b := base(t)
	lay(t, b, "d/f", "l => d", "dangling => none/x")
	for spelled, want := range map[string]string{
		b + "/l/f":         b + "/d/f",
		b + "/l/../d":      b + "/d",
		b + "/l/none/x":    b + "/d/none/x",
		b + "/dangling/y":  b + "/none/x/y",
		b + "/d/f/x":       b + "/d/f/x",
		"/":                "/",
		"relative/../x":    "x",
		b + "/l//":         b + "/d",
		"/none/none/../..": "/",
	} {
		if got := Canonical(spelled); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", spelled, got, want)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, c := range pathCases {
		f.Add(c.path)
	}
	f.Add("//0")
	f.Fuzz(func(t *testing.T, p string) {
		if checkPath(p) != nil {
			if _, err := (&FS{}).Entry(p); err == nil {
				t.Fatal("a bad path was placed")
			}
			return
		}
		if p[0] != '/' || strings.ContainsRune(p, 0) || len(p) > MaxPath {
			t.Fatalf("%q passed", p)
		}
		dir, base, err := splitEntry(p)
		if err != nil {
			return
		}
		if checkName(base) != nil || dir+"/"+base != p && dir+base != p {
			t.Fatalf("%q split into %q and %q", p, dir, base)
		}
		if len(foldBase(base)) > len(base) || foldBase(strings.ToUpper(base)) != foldBase(strings.ToLower(base)) && isASCII(base) {
			t.Fatalf("%q folds to %q", base, foldBase(base))
		}
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 127 }) < 0
}

func TestFoldBase(t *testing.T) {
	for _, pair := range [][2]string{
		{"README.md", "readme.MD"},
		{"caf\u00e9.txt", "cafe\u0301.txt"},
		{"name. ", "name"},
	} {
		if foldBase(pair[0]) != foldBase(pair[1]) {
			t.Errorf("%q and %q fold apart: %q, %q", pair[0], pair[1], foldBase(pair[0]), foldBase(pair[1]))
		}
	}
	if foldBase("a") == foldBase("b") {
		t.Error("everything folds into one")
	}
}
