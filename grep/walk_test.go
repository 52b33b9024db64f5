//go:build linux

package grep

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
)

var (
	churnDir  = flag.String("churn.dir", "", "what TestChurn creates and deletes in, as a process of its own")
	churnTime = flag.Duration("churn.time", time.Second, "how long TestWalkAmidChurn goes on")
)

// TestChurn is the other process of TestWalkAmidChurn: it makes and removes files and directories
// until its standard input ends.
func TestChurn(t *testing.T) {
	if *churnDir == "" {
		t.Skip("not a test of its own")
	}
	done := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(done)
	}()
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	for {
		select {
		case <-done:
			return
		default:
		}
		d := filepath.Join(*churnDir, fmt.Sprint("d", r.IntN(8)))
		c := filepath.Join(d, fmt.Sprint("churn-dir", r.IntN(5)))
		switch f := filepath.Join(d, fmt.Sprint("churn", r.IntN(400))); r.IntN(6) {
		case 0, 1:
			os.WriteFile(f, []byte("needle\n"), 0o644)
		case 2:
			os.Remove(f)
		case 3:
			os.MkdirAll(filepath.Join(c, "deep"), 0o755)
			os.WriteFile(filepath.Join(c, "deep", "churn"), []byte("needle\n"), 0o644)
		case 4:
			os.RemoveAll(c)
		case 5:
			os.Rename(f, filepath.Join(d, fmt.Sprint("churn", r.IntN(400))))
		}
	}
}

// TestWalkAmidChurn: while another process creates and deletes around them, files that stay are
// found by each walk, and found to match by each search; nothing is found that never
// was; and what vanishes is no error.
func TestWalkAmidChurn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var stay []string
	for d := range 8 {
		for i := range 300 {
			rel := fmt.Sprintf("d%d/stay%d", d, i)
			if i%50 == 0 {
				rel = fmt.Sprintf("d%d/sub%d/stay", d, i)
			}
			p := filepath.Join(root, rel)
			os.MkdirAll(filepath.Dir(p), 0o755)
			must(t, os.WriteFile(p, []byte("needle\n"), 0o644))
			stay = append(stay, rel)
		}
	}
	slices.Sort(stay)
	for range 2 {
		c := exec.Command(os.Args[0], "-test.run=^TestChurn$", "-churn.dir="+root)
		in, err := c.StdinPipe()
		must(t, err)
		must(t, c.Start())
		defer func() {
			in.Close()
			c.Wait()
		}()
	}
	fs := testFS(t)
	m := compile(t, "needle", match.Options{})
	rounds := 0
	for until := time.Now().Add(*churnTime); time.Now().Before(until); rounds++ {
		d, err := openGuarded(fs, root)
		must(t, err)
		w := Walk{Dir: d, Workers: 1 + rounds%4}
		check := func(what string, files []FileHit, s Skipped) {
			var still []string
			for _, f := range files {
				rel := strings.TrimPrefix(f.Path, d.True()+"/")
				if !strings.Contains(rel, "churn") {
					still = append(still, rel)
				}
			}
			slices.Sort(still)
			if !slices.Equal(still, stay) {
				t.Fatalf("round %d, %s: %d of %d files that stay; missing %q, made up %q", rounds, what, len(still), len(stay), without(stay, still), without(still, stay))
			}
			if (s != Skipped{}) {
				t.Fatalf("round %d, %s: skipped %+v", rounds, what, s)
			}
		}
		l, err := Files(context.Background(), w, GlobQuery{})
		must(t, err)
		check("walk", l.Files, l.Skipped)
		r := searched(t, w, Query{Matcher: m})
		check("search", r.Files, r.Skipped)
		d.Close()
	}
	t.Logf("%d walks and searches amid two processes", rounds)
}

// FuzzWalk compares a walk with a plain one over trees that fuzzing makes: each byte is an action.
func FuzzWalk(f *testing.F) {
	f.Add([]byte("abcdefgh"), uint8(1))
	f.Add([]byte{0, 10, 20, 30, 200, 250, 7, 7, 7}, uint8(3))
	f.Fuzz(func(t *testing.T, acts []byte, workers uint8) {
		if len(acts) > 400 {
			t.Skip()
		}
		root := t.TempDir()
		dir := root
		for i, a := range acts {
			switch p := filepath.Join(dir, fmt.Sprintf("%c%d", 'a'+a%26, i)); {
			case a < 150:
				os.WriteFile(p, []byte("needle\n"), 0o644)
			case a < 200:
				if os.Mkdir(p, 0o755) == nil {
					dir = p
				}
			case a < 230:
				if dir != root {
					dir = filepath.Dir(dir)
				}
			case a < 240:
				os.Symlink("..", p)
			default:
				for k := range int(a) {
					os.WriteFile(fmt.Sprint(p, "-", k), nil, 0o644)
				}
			}
		}
		var want []string
		filepath.WalkDir(root, func(p string, e os.DirEntry, err error) error {
			if e.Type().IsRegular() {
				want = append(want, p)
			}
			return err
		})
		d, err := openGuarded(testFS(t), root)
		must(t, err)
		defer d.Close()
		r, err := Files(context.Background(), Walk{Dir: d, Workers: 1 + int(workers%4)}, GlobQuery{})
		must(t, err)
		var got []string
		for _, h := range r.Files {
			got = append(got, h.Path)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("only ours %q, only the plain walk's %q", without(got, want), without(want, got))
		}
	})
}

// TestStopsInABigFile: a search of one big file ends soon after its context does. A cancelled one
// is an error, one that met its deadline a partial result that says so.
func TestStopsInABigFile(t *testing.T) {
	for _, q := range []Query{{Mode: Count}, {Mode: Content, Before: 2, Limit: 10}, {Mode: Count, Multiline: true}} {
		q.Matcher = compile(t, "zz(top|bottom)", match.Options{Multiline: q.Multiline})
		for _, workers := range []int{1, 4} {
			ctx, cancel := context.WithCancel(context.Background())
			f := &endless{cancel: cancel, after: 40 << 20}
			_, err := Search(ctx, Walk{File: f, Name: "/endless", Workers: workers}, q)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%+v: %v", q, err)
			}
			if n := f.read.Load(); n > f.after+64<<20 {
				t.Errorf("%d MB were read after the cancellation", (n-f.after)>>20)
			}
			for _, left := range []time.Duration{-time.Second, 30 * time.Millisecond} {
				ctx, cancel := context.WithTimeout(context.Background(), left)
				r, err := Search(ctx, Walk{File: &endless{}, Name: "/endless", Workers: workers}, q)
				if err != nil || !r.Partial || r.Skipped.Deadline != 1 {
					t.Errorf("%+v, %v: %+v %v", q, left, r, err)
				}
				cancel()
			}
		}
	}
}

// TestLegacyBehindTheBuffer: that a file is not UTF-8 may show only after the search of several
// lines has taken the one big buffer, which the search of the decoded text wants as well.
func TestLegacyBehindTheBuffer(t *testing.T) {
	text := strings.Repeat("plain\n", 100_000) + strings.Repeat("stra\xdfe gr\xf6\xdfe m\xfcde\n", 1000) // ISO 8859-1
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "late.txt"), []byte(text), 0o644)
	m := compile(t, `straße größe`, match.Options{Multiline: true})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan *Result)
	go func() {
		r, _ := Search(ctx, Walk{Dir: guarded(t, dir, anything{})}, Query{Matcher: m, Multiline: true, Mode: Count})
		done <- r
	}()
	select {
	case r := <-done:
		if r == nil || r.Totals.Lines != 1000 {
			t.Errorf("%+v", r)
		}
	case <-ctx.Done():
		t.Fatal("waits for the buffer that it holds")
	}
}

// hides lets a test deny by path.
type hides func(path string) bool

var errHidden = errors.New("hidden")

func (h hides) Judge(o guardfs.Object, _ guardfs.Access) error {
	if h(o.True) {
		return errHidden
	}
	return nil
}

func (h hides) Dir(dir string, _ ...string) guardfs.DirVerdict {
	return guardfs.DirVerdict{Entry: func(name string, _ guardfs.Kind) bool { return !h(filepath.Join(dir, name)) }}
}

// TestDeniedAbove: directories above the root that policy hides are where the climb for rules ends.
// They were not skipped.
func TestDeniedAbove(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	root := filepath.Join(top, "up", "root")
	for name, text := range map[string]string{"up/.gitignore": "*.txt\n", "up/root/a.txt": "needle\n", "up/root/b/secret": "needle\n", "up/root/.gitignore": "*.log\n", "up/root/c.log": ""} {
		p := filepath.Join(top, name)
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.WriteFile(p, []byte(text), 0o644)
	}
	judge := hides(func(p string) bool {
		return p != root && !strings.HasPrefix(p, root+"/") || strings.Contains(p, "secret")
	})
	r := searched(t, Walk{Dir: guarded(t, root, judge)}, Query{Matcher: compile(t, "needle", match.Options{})})
	if want := (Skipped{Ignored: 1, Denied: 1}); r.Skipped != want || len(r.Files) != 1 {
		t.Errorf("skipped %+v, want %+v; files %v", r.Skipped, want, r.Files)
	}
}

// TestNotes: each reason has its note.
func TestNotes(t *testing.T) {
	if n := len((Skipped{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}).Notes()); n != 16 {
		t.Errorf("%d notes for 16 reasons", n)
	}
}

func testFS(t testing.TB) *guardfs.FS {
	t.Helper()
	fs, err := guardfs.New(guardfs.Options{Judge: anything{}})
	must(t, err)
	return fs
}

func openGuarded(fs *guardfs.FS, root string) (Dir, error) {
	h, err := fs.Resolve(root, guardfs.Walk)
	if err != nil {
		return nil, guardedErr(err)
	}
	defer h.Close()
	d, err := h.Dir()
	if err != nil {
		return nil, guardedErr(err)
	}
	return Guarded(d), nil
}

func searchIn(t testing.TB, fs *guardfs.FS, root string, w Walk, q Query) *Result {
	t.Helper()
	d, err := openGuarded(fs, root)
	must(t, err)
	defer d.Close()
	w.Dir = d
	r := searched(t, w, q)
	return r
}
