//go:build unix

package guardfs

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dirOf opens a directory for listing.
func dirOf(t *testing.T, f *FS, p string) *Dir {
	t.Helper()
	h, err := f.Resolve(p, Look)
	must(t, err)
	defer h.Close()
	d, err := h.Dir()
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// Each kind of entry has one answer to each way of opening it below a directory. Nothing is followed, and what is no file or
// directory is never opened.
func TestEntries(t *testing.T) {
	b := base(t)
	lay(t, b, "ws/f = A", "ws/d/g = B", "ws/lf => f", "ws/ld => d", "ws/away => ../out", "ws/p |", "ws/secret = S", "ws/denied/x = S", "out/s = S",
		"ws/h <= ws/f")
	l, err := net.Listen("unix", filepath.Join(b, "ws/s"))
	must(t, err)
	defer l.Close()
	roads(t, &fence{root: b + "/ws", deny: []string{b + "/ws/secret", b + "/ws/denied"}}, func(t *testing.T, f *FS) {
		noLeak(t)
		d := dirOf(t, f, b+"/ws")
		for _, c := range []struct{ name, file, dir, stat string }{
			{"f", "=A", "notdir", "file"},
			{"h", "=A", "notdir", "file"},
			{"d", "directory", "ok", "directory"},
			{"lf", "symlink", "link", "symlink"},
			{"ld", "symlink", "link", "symlink"},
			{"away", "symlink", "link", "symlink"},
			{"p", "fifo", "notdir", "special file"},
			{"s", "socket", "notdir", "special file"},
			{"secret", "denied", "denied", "denied"},
			{"denied", "denied", "denied", "denied"},
			{"none", "absent", "absent", "absent"},
			{"..", "bad", "bad", "bad"},
			{".", "bad", "bad", "bad"},
			{"", "bad", "bad", "bad"},
			{"d/g", "bad", "bad", "bad"},
			{"f\x00", "bad", "bad", "bad"},
			{strings.Repeat("x", 256), "bad", "bad", "bad"},
		} {
			for way, open := range map[string]func(string) (*File, error){"file": d.OpenFile, "listed": d.OpenListed} {
				file, err := open(c.name)
				got := outcome(err)
				if err == nil {
					text, _ := io.ReadAll(file)
					got = "=" + string(text)
					must(t, file.Close())
				}
				if got != c.file {
					t.Errorf("%s as a %s: %s, want %s", c.name, way, got, c.file)
				}
			}
			sub, err := d.OpenDir(c.name, false)
			got := outcome(err)
			if err == nil {
				must(t, sub.Close())
			}
			if got != c.dir && (c.dir != "link" || got != "loop" && got != "notdir") {
				t.Errorf("%s as a directory: %s, want %s", c.name, got, c.dir)
			}
			info, err := d.Stat(c.name)
			if got = outcome(err); err == nil {
				got = info.Kind.String()
			}
			if got != c.stat {
				t.Errorf("stat %s: %s, want %s", c.name, got, c.stat)
			}
		}
		for range 2 { // a second time as well
			entries, denied, err := d.List(nil)
			must(t, err)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != "away d f h ld lf p s" || denied != 2 {
				t.Errorf("listed %s, and %d are denied", got, denied)
			}
		}
		if got, err := d.ReadSmall("f", 1); string(got) != "A" || err != nil {
			t.Errorf("%q %v", got, err)
		}
		if _, err := d.ReadSmall("f", 0); outcome(err) != "large" {
			t.Error(err)
		}
		sub, err := d.OpenDir("d", false)
		must(t, err)
		defer sub.Close()
		up, err := sub.Parent()
		must(t, err)
		defer up.Close()
		if up.True() != d.True() {
			t.Errorf("the parent is %s", up.True())
		}
		if over, err := up.Parent(); err == nil || outcome(err) != "denied" {
			t.Errorf("above the allowed tree: %v", err)
			over.Close()
		}
	})
}

// deepJudge counts how often the verdict for a directory is asked for by its whole path.
type deepJudge struct{ whole, steps int }

func (*deepJudge) Judge(Object, Access) error { return nil }
func (j *deepJudge) Dir(string, ...string) DirVerdict {
	j.whole++
	return DirVerdict{Entry: func(string, Kind) bool { return true }, Below: j.below}
}

func (j *deepJudge) below(string) (DirVerdict, bool) {
	j.steps++
	return DirVerdict{Entry: func(string, Kind) bool { return true }, Below: j.below}, j.steps%100 != 0
}

// A walk down a chain of directories does not have the whole path judged for each.
func TestDeepChain(t *testing.T) {
	b := base(t)
	const deep = 300
	must(t, os.MkdirAll(filepath.Join(b, strings.Repeat("d/", deep)), 0o755))
	j := &deepJudge{}
	f, err := New(Options{Judge: j})
	must(t, err)
	defer f.Close()
	d := dirOf(t, f, b)
	before := j.whole
	for range deep {
		below, err := d.OpenDir("d", false)
		must(t, err)
		d.Close()
		d = below
	}
	defer d.Close()
	if j.steps != deep || j.whole-before != deep/100 {
		t.Errorf("%d steps, %d whole paths", j.steps, j.whole-before)
	}
}

func TestParentOfTheRoot(t *testing.T) {
	f := open(t, &fence{root: "/"})
	if _, err := dirOf(t, f, "/").Parent(); err != io.EOF {
		t.Error(err)
	}
}
