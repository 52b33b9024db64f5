//go:build linux

package index_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/index"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
)

var indexRounds = flag.Int("index.rounds", 100, "rounds of changes in TestIndexEqual")

// garden is a tree that a test changes at random.
type garden struct {
	*rand.Rand
	root, outside string
}

func (g garden) one(n int) bool         { return g.IntN(n) == 0 }
func (g garden) of(s ...string) string  { return s[g.IntN(len(s))] }
func (g garden) path(dir string) string { return filepath.Join(g.root, dir) }
func (g garden) dir() string {
	return g.of("", "a", "b", "a/c", "a/c/d", "b/e", "sub", "sub/deep", "sub/deep/x")
}
func (g garden) name() string {
	return g.of("one", "two.txt", "three.go", "four.log", "five.o", "six", ".hid")
}
func (g garden) file() (dir, abs string) {
	dir = g.dir()
	return dir, filepath.Join(g.root, dir, g.name())
}

var gardenWords = []string{"needle", "Haystack", "lorem", "ipsum", "größe", "return nil", "x", "\n", "\n", "foo_bar", "éclair", "zq"}

func (g garden) text() string {
	var b strings.Builder
	for range g.IntN(30) {
		b.WriteString(g.of(gardenWords...) + g.of(" ", "\n", ""))
	}
	switch g.IntN(14) {
	case 0:
		return ""
	case 1:
		return "\x00" + b.String()
	case 2:
		return strings.Repeat("padding line\n", 30_000) + b.String() // beyond one buffer
	case 3:
		return "gr\xf6\xdfe und \xe9clair\n" + b.String() // Latin-1
	case 4:
		s := "\xff\xfe"
		for _, r := range b.String() {
			s += string([]byte{byte(r), byte(r >> 8)})
		}
		return s
	case 5:
		return strings.Repeat("text\n", 60_000) + "\x00" + b.String()
	}
	return b.String()
}

// change makes one random change; what cannot be done is not.
func (g garden) change() {
	dir, abs := g.file()
	switch g.IntN(21) {
	case 0, 1, 2, 3, 4:
		os.MkdirAll(g.path(dir), 0o755)
		os.WriteFile(abs, []byte(g.text()), 0o644)
	case 5, 6:
		if f, err := os.OpenFile(abs, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			f.WriteString("needle " + g.of(gardenWords...) + "\n")
			f.Close()
		}
	case 7:
		os.Truncate(abs, int64(g.IntN(20)))
	case 8:
		os.Remove(abs)
	case 9:
		_, to := g.file()
		os.Rename(abs, to)
	case 10:
		os.Rename(g.path(g.dir()), g.path(g.dir()))
	case 11:
		if g.one(2) && dir != "" {
			os.RemoveAll(g.path(dir))
		}
	case 12:
		os.MkdirAll(g.path(dir), 0o755)
		os.WriteFile(filepath.Join(g.path(dir), g.of(".gitignore", ".gitignore", ".ignore")), []byte(g.of("*.log\n", "/sub\n", "*.o\n!five.o\n", "", "deep/\n")), 0o644)
	case 13:
		os.Remove(filepath.Join(g.path(dir), ".gitignore"))
	case 14:
		os.Remove(abs)
		os.Symlink("one", abs)
	case 15: // through a name that nobody watches
		out := filepath.Join(g.outside, fmt.Sprint(g.IntN(1<<30)))
		if i, err := os.Lstat(abs); err == nil && i.Mode().IsRegular() {
			os.Link(abs, out)
			os.Chmod(abs, 0o644)
			os.WriteFile(out, []byte(g.text()), 0o644)
		}
	case 16:
		os.Chtimes(abs, time.Time{}, time.Unix(int64(g.IntN(1<<30)), 0))
	case 17: // same size, same modification time
		if i, err := os.Lstat(abs); err == nil && i.Mode().IsRegular() && i.Size() > 0 {
			os.WriteFile(abs, []byte(strings.Repeat("needle\n", int(i.Size())/7+1))[:i.Size()], 0o644)
			os.Chtimes(abs, time.Time{}, i.ModTime())
		}
	case 18: // swapped with what was prepared elsewhere
		tmp := filepath.Join(g.outside, "tmp")
		os.RemoveAll(tmp)
		os.MkdirAll(filepath.Join(tmp, "deep"), 0o755)
		os.WriteFile(filepath.Join(tmp, "deep", "two.txt"), []byte(g.text()), 0o644)
		os.Rename(g.path("sub"), filepath.Join(g.outside, fmt.Sprint(g.IntN(1<<30))))
		os.Rename(tmp, g.path("sub"))
	case 19:
		os.MkdirAll(g.path(".git/info"), 0o755)
		os.WriteFile(g.path(".git/HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
		os.WriteFile(g.path(".git/info/exclude"), []byte(g.of("six\n", "one\n", "")), 0o644)
	case 20: // rules that lie outside, by way of an include
		os.WriteFile(g.path(".git/config"), []byte(g.of("", "[include]\n\tpath = "+g.outside+"/config\n")), 0o644)
		os.WriteFile(filepath.Join(g.outside, "config"), []byte(g.of("[core]\n\tignoreCase = true\n", "[core]\n\texcludesFile = "+g.outside+"/rules\n")), 0o644)
		os.WriteFile(filepath.Join(g.outside, "rules"), []byte(g.of("three\n", "*.txt\n")), 0o644)
	}
}

func newGarden(t testing.TB, seed uint64) garden {
	dir := t.TempDir()
	g := garden{rand.New(rand.NewPCG(seed, 3)), filepath.Join(dir, "root"), filepath.Join(dir, "out")}
	os.Mkdir(g.root, 0o755)
	os.Mkdir(g.outside, 0o755)
	for range 60 {
		g.change()
	}
	return g
}

func (g garden) query(t testing.TB) grep.Query {
	p := g.of("needle", "Haystack", "lorem.*needle", "größe|éclair", "foo_bar", "return nil", "needle|ipsum", "zq", "(?i)NEEDLE", "[a-z]eedle", "padding line")
	q := grep.Query{Mode: grep.Mode(g.IntN(3)), Multiline: g.one(4)}
	q.Matcher = compile(t, p, match.Options{Multiline: q.Multiline})
	switch g.IntN(6) {
	case 0:
		q.Glob = []string{g.of("*.go", "sub/**", "!*.txt", "a/*", "!sub", "!sub/, two.txt", "!*, one", "s*/**/*.txt")}
	case 1:
		q.MaxFileBytes = 1000
	case 2:
		q.Limit, q.Offset = 3, g.IntN(3)
	}
	return q
}

func compile(t testing.TB, p string, o match.Options) *match.Matcher {
	t.Helper()
	m, err := match.Compile(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// anything is a judge that allows all.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

var errHidden = errors.New("hidden")

// ways allows the directory that it names, and below it files of whatever name but *.txt. All other
// directories there are only passed through.
type ways string

func (root ways) Judge(o guardfs.Object, a guardfs.Access) error {
	dir := o.Info.Kind == guardfs.KindDir
	inside := o.True == string(root) || strings.HasPrefix(o.True, string(root)+"/")
	if !inside || !dir && strings.HasSuffix(o.True, ".txt") || dir && a != guardfs.Walk && o.True != string(root) {
		return errHidden
	}
	return nil
}

func (root ways) Dir(string, ...string) guardfs.DirVerdict {
	return guardfs.DirVerdict{
		Entry: func(name string, k guardfs.Kind) bool {
			return k != guardfs.KindDir && !strings.HasSuffix(name, ".txt")
		},
		Way: func(name string) bool { return name != "closed" },
	}
}

func testFS(t testing.TB) *guardfs.FS {
	t.Helper()
	fs, err := guardfs.New(guardfs.Options{Judge: anything{}})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func searchIn(t testing.TB, fs *guardfs.FS, root string, w grep.Walk, q grep.Query) *grep.Result {
	t.Helper()
	d, err := grep.GuardedOpen(fs)(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w.Dir = d
	r, err := grep.Search(context.Background(), w, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// warm searches until the index of root is there.
func warm(t testing.TB, fs *guardfs.FS, x *grep.Index, root string) {
	t.Helper()
	q := grep.Query{Matcher: compile(t, "nowhere to be found", match.Options{}), Index: x}
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if searchIn(t, fs, root, grep.Walk{}, q).Indexed {
			return
		}
	}
	t.Fatal("no index was made")
}

// tampered is a Watcher with its events changed on the way.
type tampered struct {
	grep.Watcher
	event func(grep.Event) (grep.Event, bool)
}

func (w tampered) Events(fn func(grep.Event)) error {
	return w.Watcher.Events(func(e grep.Event) {
		if e, ok := w.event(e); ok {
			fn(e)
		}
	})
}

// growWith compares searches with and without the index in a tree that changes between them, and
// says how many used it and the first difference.
func growWith(t *testing.T, o grep.IndexOptions, seed uint64, rounds int, tamper func(grep.Event) (grep.Event, bool)) (indexed int, differs string) {
	fs, g := testFS(t), newGarden(t, seed)
	if seed%2 == 1 { // where most directories are only passed through
		fs, _ = guardfs.New(guardfs.Options{Judge: ways(guardfs.Canonical(g.root))})
	}
	o.Open, o.MinFiles = grep.GuardedOpen(fs), 1
	o.Watch = func() (grep.Watcher, error) {
		w, err := grep.GuardedWatch(fs)()
		if tamper != nil && err == nil {
			w = tampered{w, tamper}
		}
		return w, err
	}
	x := grep.NewIndex(o)
	defer x.Close()
	for i := range rounds {
		for range g.IntN(4) {
			g.change()
		}
		if g.one(3) {
			index.Wait(x) // else the search meets a build or a refill under way
		}
		q := g.query(t)
		w := grep.Walk{Workers: 1 + g.IntN(3), NoIgnore: g.one(6)}
		if g.one(5) {
			w.MaxDepth = 2
		}
		want := searchIn(t, fs, g.root, w, q)
		q.Index = x
		got := searchIn(t, fs, g.root, w, q)
		if got.Indexed {
			indexed++
		}
		got.Indexed = false
		if !reflect.DeepEqual(got, want) {
			return indexed, fmt.Sprintf("seed %d round %d: query %+v\nby index %+v\nwithout  %+v", seed, i, q, got, want)
		}
	}
	return indexed, ""
}

// TestIndexEqual: whatever happens to a tree, a search by the index finds and counts what a plain
// one does.
func TestIndexEqual(t *testing.T) {
	t.Parallel()
	total, seeds := 0, 4
	if testing.Short() {
		seeds = 1
	}
	for seed := range uint64(seeds) {
		n, why := growWith(t, grep.IndexOptions{}, seed, *indexRounds, nil)
		if why != "" {
			t.Fatal(why)
		}
		total += n
	}
	if total < seeds**indexRounds/8 {
		t.Fatalf("only %d of %d searches used the index", total, seeds**indexRounds)
	}
	t.Logf("%d of %d searches by the index", total, seeds**indexRounds)
}

// TestIndexUnreported: with the reports swallowed an index that never sweeps must be caught by this
// test, and one that always sweeps must not need them.
func TestIndexUnreported(t *testing.T) {
	t.Parallel()
	swallow := func(e grep.Event) (grep.Event, bool) { return e, false }
	if _, why := growWith(t, grep.IndexOptions{Sweep: time.Hour}, 1, 400, swallow); why == "" {
		t.Error("an index that hears of no change passed for a good one: the test is worth nothing")
	}
	n, why := growWith(t, grep.IndexOptions{Sweep: 1}, 2, 200, swallow)
	if why != "" || n == 0 {
		t.Errorf("sweep: %d by the index; %s", n, why)
	}
}

// TestIndexAfterAWrite: who wrote to a file once may do it again through a mapping, which nobody
// reports; so it is looked at from then on.
func TestIndexAfterAWrite(t *testing.T) {
	fs, dir := testFS(t), t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("nothing\n")
	var deaf atomic.Bool
	x := grep.NewIndex(grep.IndexOptions{Open: grep.GuardedOpen(fs), MinFiles: 1, Sweep: time.Hour, Watch: func() (grep.Watcher, error) {
		w, err := grep.GuardedWatch(fs)()
		return tampered{w, func(e grep.Event) (grep.Event, bool) { return e, !deaf.Load() }}, err
	}})
	defer x.Close()
	warm(t, fs, x, dir)
	q := grep.Query{Matcher: compile(t, "needle", match.Options{}), Index: x}
	found := func() int {
		t.Helper()
		r := searchIn(t, fs, dir, grep.Walk{}, q)
		if !r.Indexed {
			t.Fatal("not by the index")
		}
		return r.Totals.Files
	}
	write("nothing still\n")
	if n := found(); n != 0 {
		t.Fatalf("%d files", n)
	}
	for until := time.Now().Add(20 * time.Second); !index.Knows(x, "f"); time.Sleep(time.Millisecond) { // it is read again in the background
		if time.Now().After(until) {
			t.Fatal("what was reported is not read again")
		}
	}
	deaf.Store(true)
	write("the needle now\n")
	if n := found(); n != 1 {
		t.Errorf("%d files hold what was written unreported", n)
	}
}

// TestIndexLost: dropped events make the tree be listed again, by way of plain searches.
func TestIndexLost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 1))
	lose := func(e grep.Event) (grep.Event, bool) {
		mu.Lock()
		defer mu.Unlock()
		if r.IntN(30) == 0 {
			return grep.Event{Lost: true}, true
		}
		return e, true
	}
	if n, why := growWith(t, grep.IndexOptions{}, 5, 200, lose); why != "" || n == 0 {
		t.Errorf("%d by the index; %s", n, why)
	}
}

// TestIndexRefused: without a watcher, beyond the memory allowed, or with too few files there is no
// index, and no harm.
func TestIndexRefused(t *testing.T) {
	t.Parallel()
	fs := testFS(t)
	g := newGarden(t, 9)
	for i := range 300 {
		os.WriteFile(filepath.Join(g.root, fmt.Sprint("f", i)), []byte(strings.Repeat(fmt.Sprint(i), 1000)), 0o644)
	}
	bad := errors.New("no watches left")
	for name, o := range map[string]grep.IndexOptions{
		"no watcher": {MinFiles: 1, Watch: func() (grep.Watcher, error) { return nil, bad }},
		"no watch": {MinFiles: 1, Watch: func() (grep.Watcher, error) {
			w, err := grep.GuardedWatch(fs)()
			return refusing{w, bad}, err
		}},
		"memory": {MinFiles: 1, MaxBytes: 10_000},
		"small":  {},
	} {
		o.Open = grep.GuardedOpen(fs)
		if o.Watch == nil {
			o.Watch = grep.GuardedWatch(fs)
		}
		x := grep.NewIndex(o)
		q := grep.Query{Matcher: compile(t, "needle", match.Options{}), Index: x}
		for range 6 {
			if searchIn(t, fs, g.root, grep.Walk{}, q).Indexed {
				t.Errorf("%s: indexed", name)
			}
			index.Wait(x)
		}
		if n := index.Watches(x); n > 0 {
			t.Errorf("%s: %d watches left", name, n)
		}
		if err := x.Close(); err != nil {
			t.Error(name, err)
		}
	}
}

type refusing struct {
	grep.Watcher
	err error
}

func (w refusing) Watch(d grep.Dir) (int, error) { return 0, w.err }

// TestIndexRoom: of two trees that do not fit together the one used last stays.
func TestIndexRoom(t *testing.T) {
	fs := testFS(t)
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		os.Mkdir(filepath.Join(dir, name), 0o755)
		for i := range 50 {
			os.WriteFile(filepath.Join(dir, name, fmt.Sprint(i)), []byte("text\n"), 0o644)
		}
	}
	x := grep.NewIndex(grep.IndexOptions{Open: grep.GuardedOpen(fs), Watch: grep.GuardedWatch(fs), MinFiles: 1, MaxBytes: 12_000})
	defer x.Close()
	warm(t, fs, x, filepath.Join(dir, "a"))
	warm(t, fs, x, filepath.Join(dir, "b"))
	if index.Holds(x, filepath.Join(dir, "a")) {
		t.Error("both trees are held")
	}
}

// TestIndexEscaped: a file in ISO-2022-JP is ASCII to look at, and is not passed over for that.
func TestIndexEscaped(t *testing.T) {
	fs := testFS(t)
	root := t.TempDir()
	for name, text := range map[string]string{
		"jis": "\x1b$B8l\x1b(Bzqneedle\n", "plain": "zqneedle\n", "late": strings.Repeat("plain\n", 100_000) + "\x1b$B8l\x1b(Bzqneedle\n",
	} {
		os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)
	}
	x := grep.NewIndex(grep.IndexOptions{Open: grep.GuardedOpen(fs), Watch: grep.GuardedWatch(fs), MinFiles: 1})
	defer x.Close()
	warm(t, fs, x, root)
	r := searchIn(t, fs, root, grep.Walk{}, grep.Query{Matcher: compile(t, "語zqneedle", match.Options{}), Index: x})
	if !r.Indexed || r.Totals.Files != 2 {
		t.Errorf("indexed %v, %d files", r.Indexed, r.Totals.Files)
	}
}

// TestIndexReplaced: another tree of the same name is not the one that was indexed.
func TestIndexReplaced(t *testing.T) {
	fs := testFS(t)
	dir := t.TempDir()
	root := filepath.Join(dir, "up", "root")
	plant := func(word string) {
		os.MkdirAll(root, 0o755)
		os.WriteFile(filepath.Join(root, "f"), []byte(word+"\n"), 0o644)
	}
	plant("first")
	x := grep.NewIndex(grep.IndexOptions{Open: grep.GuardedOpen(fs), Watch: grep.GuardedWatch(fs), MinFiles: 1})
	defer x.Close()
	warm(t, fs, x, root)
	os.Rename(filepath.Join(dir, "up"), filepath.Join(dir, "away"))
	plant("second")
	for word, want := range map[string]int{"first": 0, "second": 1} {
		q := grep.Query{Matcher: compile(t, word, match.Options{}), Index: x}
		if got := searchIn(t, fs, root, grep.Walk{}, q).Totals.Files; got != want {
			t.Errorf("%s: %d files, want %d", word, got, want)
		}
	}
}

// TestIndexConcurrent: what nobody touches is found by everybody, while the rest changes.
func TestIndexConcurrent(t *testing.T) {
	t.Parallel()
	fs := testFS(t)
	g := newGarden(t, 11)
	still := filepath.Join(g.root, "still", "here")
	os.MkdirAll(still, 0o755)
	for i := range 20 {
		os.WriteFile(filepath.Join(still, fmt.Sprint(i)), []byte("steadfast\n"), 0o644)
	}
	x := grep.NewIndex(grep.IndexOptions{Open: grep.GuardedOpen(fs), Watch: grep.GuardedWatch(fs), MinFiles: 1})
	defer x.Close()
	warm(t, fs, x, g.root)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			g.change()
		}
	})
	for range 3 {
		wg.Go(func() {
			q := grep.Query{Matcher: compile(t, "steadfast", match.Options{}), Index: x}
			for ctx.Err() == nil {
				if n := searchIn(t, fs, g.root, grep.Walk{}, q).Totals.Files; n != 20 {
					t.Errorf("%d of 20 files found", n)
					return
				}
			}
		})
	}
	wg.Wait()
}
