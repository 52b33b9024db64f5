package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestRecent(t *testing.T) {
	r := Recent[int]{Most: 3}
	k := func(i int) Key { return Key{"p", fmt.Sprint(i)} }
	expect := func(want string) {
		t.Helper()
		got := ""
		for i := range 6 {
			if e := r.of[k(i)]; e != nil {
				got += fmt.Sprint(i)
			}
		}
		if got != want || len(r.of) != len(want) || r.order.Len() != len(want) {
			t.Errorf("kept are %s, want %s", got, want)
		}
	}
	for i := range 4 {
		r.Set(k(i), i)
	}
	expect("123")
	r.Get(k(1))
	r.Set(k(4), 4)
	expect("134")
	r.SetHeavy(k(5), 5, 2)
	expect("45")
	r.SetHeavy(k(5), 5, 9)
	expect("5")
	r.End(k(5))
	r.End(k(5))
	expect("")
	if r.weight != 0 || r.Get(k(5)) != 0 {
		t.Errorf("left is a weight of %d", r.weight)
	}
}

// Contents take so many bytes and no more, the newest stay, and what the session knows already is not kept again.
func TestContentsAreBounded(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	size := func() (n int64) {
		all, _ := filepath.Glob(filepath.Join(dir, "content", "*"))
		for _, f := range all {
			info, err := os.Stat(f)
			must(err)
			n += info.Size()
		}
		return n
	}
	content := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, maxContent/2) }
	const n = 2 * maxContents / maxContent
	for i := range n {
		must(l.Keep(me, "/f", hashOf(content(i)), content(i)))
	}
	for i, want := range map[int]bool{0: false, n - 2: true, n - 1: true} {
		if got, ok := l.Content(hashOf(content(i))); ok != want || want && !bytes.Equal(got, content(i)) {
			t.Errorf("content %d is found: %v", i, ok)
		}
	}
	full := size()
	if most := int64(maxContents + 2*(maxContent+contentHead)); full > most || full < most/2 {
		t.Errorf("they take %d bytes, and may take %d", full, most)
	}
	must(l.Keep(me, "/f", hashOf(content(n-1)), content(n-1))) // by this process a moment ago
	saw(t, l, me, Seen{ID: "1:1", Path: "/f", Hash: hashOf([]byte("known")), Whole: true})
	must(l.Keep(me, "/f", hashOf([]byte("known")), []byte("known")))
	must(l.Keep(me, "/f", "no hash", []byte("x")))
	must(l.Keep(me, "/f", hashOf(make([]byte, maxContent+1)), make([]byte, maxContent+1)))
	if size() != full {
		t.Errorf("%d bytes became %d", full, size())
	}
	must(appendTo(filepath.Join(dir, "content", "new"), make([]byte, 20))) // torn
	if _, ok := l.Content(hashOf(content(n - 1))); !ok {
		t.Error("lost by what is torn behind it")
	}
	must(PurgeContents(dir))
	must(PurgeContents(dir))
	if _, ok := l.Content(hashOf(content(n - 1))); ok {
		t.Error("a purged content is found")
	}
	must(l.Keep(me, "/f", hashOf(content(n-1)), content(n-1)))
	if _, ok := l.Content(hashOf(content(n - 1))); !ok {
		t.Error("what was read after a purge is not kept")
	}
}

// The first call of a day removes entries and contents that are too old, in one process only.
func TestSweptOnceADay(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	make := func(name string, age time.Duration) {
		t.Helper()
		name = filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("x"), 0o600), os.Chtimes(name, now.Add(-age), now.Add(-age)))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, age := range []time.Duration{contentTTL/2 + day, contentTTL/2 - day} {
		turned := age > contentTTL/2
		old := map[string]bool{"a.jsonl": true, "content/new": turned, "content/old": false, "b.jsonl": false}
		for name, is := range old {
			if strings.HasPrefix(name, "content/") {
				make(name, age)
			} else {
				make(name, map[bool]time.Duration{true: staleAfter + day, false: staleAfter - day}[is])
			}
		}
		for range 2 {
			l := open(t, dir)
			if _, ok := look(t, l, me, "1:1", "/f"); ok {
				t.Error("known is what nobody saw")
			}
			l.sweeping.Wait()
			l.Close()
			for name, is := range old {
				if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) != is {
					t.Errorf("%s: %v, and it should be gone: %v", name, err, is)
				}
			}
			make("c.jsonl", staleAfter+day)
			old["c.jsonl"] = false // it was swept today
		}
		make("swept", 25*time.Hour)
	}
}

// A content goes after a week, though others are read every day.
func TestContentsGoAfterAWeek(t *testing.T) {
	c := contents{dir: filepath.Join(t.TempDir(), "content")}
	first := []byte("first")
	for i, want := range []bool{true, true, false} {
		if i > 0 {
			halfAWeek := time.Now().Add(-contentTTL/2 - time.Minute)
			if err := os.Chtimes(filepath.Join(c.dir, "old"), halfAWeek, halfAWeek); err != nil {
				t.Fatal(err)
			}
			c.expire()
		} else if err := c.keep(hashOf(first), first); err != nil {
			t.Fatal(err)
		}
		today := fmt.Append(nil, i)
		if err := c.keep(hashOf(today), today); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.find(hashOf(first)); ok != want {
			t.Errorf("after %d half weeks it is found: %v", i, ok)
		}
	}
}

// A journal whose entries alone are longer than it may grow is compacted once, and not at each call. One of too many entries forgets the oldest.
func TestLongJournals(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	var lines bytes.Buffer
	long := "/" + strings.Repeat("x", 500)
	now := time.Now()
	for i := range maxEntries + 1 {
		raw, _ := json.Marshal(Seen{ID: fmt.Sprint("1:", i), Path: fmt.Sprint(long, i), Hash: "h", Whole: true, When: now.Add(time.Duration(i))})
		lines.Write(append(raw, '\n'))
	}
	name := filepath.Join(dir, journalOf(me))
	if err := os.WriteFile(name, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]bool{0: false, maxEntries / 20: false, maxEntries / 5: true, maxEntries: true} {
		if _, ok := look(t, l, me, fmt.Sprint("1:", i), ""); ok != want {
			t.Errorf("entry %d is known: %v", i, ok)
		}
	}
	was, err := os.Stat(name)
	if err != nil || was.Size() >= int64(lines.Len()) || was.Size() < rewriteAfter {
		t.Fatalf("%v; it has %d bytes of %d", err, was.Size(), lines.Len())
	}
	for i := range 20 {
		saw(t, l, me, Seen{ID: fmt.Sprint("2:", i), Path: fmt.Sprint("/", i), Hash: "h", Whole: true, When: now.Add(time.Hour)})
	}
	if is, err := os.Stat(name); err != nil || !os.SameFile(was, is) {
		t.Error("it was rewritten")
	}
}

// With a session end its entries in memory, and its journal if none of its name comes again.
func TestEnd(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	for _, forever := range []bool{false, true, true} {
		saw(t, l, me, Seen{ID: "1:1", Path: "/f", Hash: "h", Whole: true})
		if err := l.End(me, forever); err != nil {
			t.Fatal(err)
		}
		if l.sessions.Get(me) != nil {
			t.Error("it is in memory")
		}
		if _, ok := look(t, l, me, "1:1", "/f"); ok == forever {
			t.Errorf("it is known: %v", ok)
		}
	}
	if err := l.End(Key{"p", "none"}, true); err != nil {
		t.Error(err)
	}
}
