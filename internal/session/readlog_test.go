package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
)

func open(t *testing.T, dir string) *ReadLog {
	t.Helper()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

var me = Key{"p", "s"}

func look(t *testing.T, l *ReadLog, k Key, id, path string) (Seen, bool) {
	t.Helper()
	s, ok, err := l.Look(k, id, path)
	if err != nil {
		t.Fatal(err)
	}
	return s, ok
}

func saw(t *testing.T, l *ReadLog, k Key, s Seen) {
	t.Helper()
	if err := l.Saw(k, s); err != nil {
		t.Fatal(err)
	}
}

func TestRangesWidenWhileTheContentStays(t *testing.T) {
	l := open(t, t.TempDir())
	saw(t, l, me, Seen{ID: "1:1", Path: "/f", Hash: "h", Lines: 10, Ranges: []Range{{1, 4}}})
	saw(t, l, me, Seen{ID: "1:1", Path: "/f", Hash: "h", Lines: 10, Ranges: []Range{{8, 9}}})
	got, _ := look(t, l, me, "1:1", "/f")
	if want := []Range{{1, 4}, {8, 9}}; got.Whole || !reflect.DeepEqual(got.Ranges, want) {
		t.Fatalf("after two windows: %+v, want %v", got, want)
	}
	saw(t, l, me, Seen{ID: "1:1", Path: "/f", Hash: "h", Lines: 10, Ranges: []Range{{4, 10}}})
	if got, _ = look(t, l, me, "1:1", "/f"); !got.Whole {
		t.Fatalf("all lines shown in pieces is the whole file: %+v", got)
	}
	saw(t, l, me, Seen{ID: "1:1", Path: "/f", Hash: "other", Lines: 10, Ranges: []Range{{1, 1}}})
	if got, _ = look(t, l, me, "1:1", "/f"); got.Whole || got.Shown() != 1 {
		t.Fatalf("another content starts anew: %+v", got)
	}
}

// Parts counted in different units, or never counted, must not add up to a whole.
func TestPartsThatDoNotAddUp(t *testing.T) {
	l := open(t, t.TempDir())
	f := Seen{ID: "1:1", Path: "/f", Hash: "h"}
	with := func(unit string, lines int, ranges ...Range) Seen {
		s := f
		s.Unit, s.Lines, s.Ranges = unit, lines, ranges
		return s
	}
	for _, c := range []struct {
		saw   Seen
		whole bool
		shown int
	}{
		{with("", 0), false, 0},
		{with("line", -1, Range{1, 4}), false, 4},
		{with("", 0), false, 4},
		{with("cell", 8, Range{5, 8}), false, 4},
		{with("line", -1, Range{1, 4}), false, 4},
		{with("line", 9, Range{1, 4}), false, 4},
		{with("source line", -1), false, 4},
		{with("line", -1, Range{5, 9}), true, 9},
		{with("", 0), true, 0},
	} {
		saw(t, l, me, c.saw)
		if got, _ := look(t, l, me, "1:1", "/f"); got.Whole != c.whole || !c.whole && got.Shown() != c.shown {
			t.Errorf("after %v: %+v, want whole %v, %d shown", c.saw, got, c.whole, c.shown)
		}
	}
}

func TestFoundByIdentityAfterARename(t *testing.T) {
	l := open(t, t.TempDir())
	saw(t, l, me, Seen{ID: "1:1", Path: "/old", Hash: "h", Whole: true})
	if got, ok := look(t, l, me, "1:1", "/new"); !ok || got.Hash != "h" {
		t.Fatalf("renamed object: %+v %v", got, ok)
	}
	if _, ok := look(t, l, me, "1:2", "/new"); ok {
		t.Fatal("another object at another path was never seen")
	}
	if got, ok := look(t, l, me, "1:2", "/old"); !ok || got.Hash != "h" {
		t.Fatalf("a replaced object is known by its path: %+v %v", got, ok)
	}
}

func TestSessionsAreStrangers(t *testing.T) {
	l := open(t, t.TempDir())
	saw(t, l, Key{"a", "bc"}, Seen{ID: "1:1", Path: "/f", Hash: "h", Whole: true})
	for _, k := range []Key{{"ab", "c"}, {"a", "b"}, {"", "abc"}} {
		if _, ok := look(t, l, k, "1:1", "/f"); ok {
			t.Errorf("%v sees what {a bc} read", k)
		}
	}
}

func TestSurvivesARestartAndATornLine(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	saw(t, l, me, Seen{ID: "1:1", Path: "/f", Hash: "h", Whole: true})
	l.Close()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	f, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"ID":"2:2","Path":"/torn`)
	f.Close()

	l = open(t, dir)
	if _, ok := look(t, l, me, "1:1", "/f"); !ok {
		t.Fatal("forgotten by a restart")
	}
	saw(t, l, me, Seen{ID: "3:3", Path: "/g", Hash: "g", Whole: true})
	for _, l := range []*ReadLog{l, open(t, dir)} {
		if _, ok := look(t, l, me, "3:3", "/g"); !ok {
			t.Fatal("the line after a torn one was swallowed")
		}
		if _, ok := look(t, l, me, "2:2", "/torn"); ok {
			t.Fatal("a torn line counts")
		}
	}
}

func TestTwoProcessesShareASession(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	saw(t, a, me, Seen{ID: "1:1", Path: "/f", Hash: "h", Whole: true})
	if _, ok := look(t, b, me, "1:1", "/f"); !ok {
		t.Fatal("b does not see what a appended")
	}
	if err := b.Forget(me, "/f"); err != nil {
		t.Fatal(err)
	}
	if _, ok := look(t, a, me, "1:1", "/f"); ok {
		t.Fatal("a still knows what b forgot")
	}
	// One compacts; the other must follow to the new file.
	ses, done, err := a.session(me)
	if err == nil {
		err = ses.compact()
		done()
	}
	if err != nil {
		t.Fatal(err)
	}
	saw(t, a, me, Seen{ID: "2:2", Path: "/g", Hash: "g", Whole: true})
	if _, ok := look(t, b, me, "2:2", "/g"); !ok {
		t.Fatal("b reads the compacted-away journal for ever")
	}
}

func TestConcurrentUse(t *testing.T) {
	l := open(t, t.TempDir())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				saw(t, l, me, Seen{ID: fmt.Sprint(g, ":", i), Path: fmt.Sprint("/", g, "/", i), Hash: "h", Whole: true})
			}
		})
	}
	wg.Wait()
	for g := range 8 {
		for i := range 50 {
			if _, ok := look(t, l, me, fmt.Sprint(g, ":", i), ""); !ok {
				t.Fatalf("%d:%d was lost", g, i)
			}
		}
	}
}

func BenchmarkSaw(b *testing.B) {
	l, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for i := 0; b.Loop(); i++ {
		if err := l.Saw(me, Seen{ID: "1:1", Path: "/f", Hash: fmt.Sprint(i), Whole: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// A process that stored a content finds it, also while others are storing the same.
func TestKeptByMany(t *testing.T) {
	l := open(t, t.TempDir())
	for round := range 20 {
		content := bytes.Repeat([]byte{byte(round)}, maxContent)
		sum := sha256.Sum256(content)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				err := l.Keep(me, "/f", hex.EncodeToString(sum[:]), content)
				if _, ok := l.Content(hex.EncodeToString(sum[:])); err != nil || !ok {
					t.Error("kept and not found:", err)
				}
			})
		}
		wg.Wait()
	}
}

// A purged hash is in no journal any more. A process that has the journal open notices, and
// everything else is still known.
func TestPurgeHashes(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	for i, h := range []string{"aa", "bb", "cc"} {
		saw(t, l, me, Seen{ID: fmt.Sprint("1:", i), Path: fmt.Sprint("/", i), Hash: h, Lines: 1, Whole: true})
	}
	saw(t, l, Key{"p", "other"}, Seen{ID: "1:1", Path: "/1", Hash: "bb", Lines: 1, Whole: true})
	if err := PurgeHashes(dir, []string{"bb", "dd"}); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if b, err := os.ReadFile(name); err != nil || bytes.Contains(b, []byte("bb")) {
			t.Errorf("%s holds the hash: %s %v", name, b, err)
		}
	}
	for i, want := range []bool{true, false, true} {
		if _, ok := look(t, l, me, fmt.Sprint("1:", i), fmt.Sprint("/", i)); ok != want {
			t.Errorf("entry %d is known: %v", i, ok)
		}
	}
	saw(t, l, me, Seen{ID: "1:1", Path: "/1", Hash: "ee", Lines: 1, Whole: true})
	if s, ok := look(t, open(t, dir), me, "1:1", "/1"); !ok || s.Hash != "ee" {
		t.Error("life goes on:", s, ok)
	}
}
