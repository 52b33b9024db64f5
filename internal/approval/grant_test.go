package approval

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/state"
)

// counting is an approver that counts and answers with a grant.
type counting struct {
	n     int
	grant Grant
	d     Decision
}

func (a *counting) Ask(context.Context, Question) (Answer, error) {
	a.n++
	return Answer{Decision: a.d, Grant: a.grant}, nil
}

// A grant goes as far as it says and not one step further: in memory, and in files, where it holds for another process too.
func TestGrants(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		testGrants(t, func() (_, _ *Grants) { g := &Grants{}; return g, g })
	})
	t.Run("files", func(t *testing.T) {
		testGrants(t, func() (_, _ *Grants) {
			d := state.Dir{Path: t.TempDir()}
			return &Grants{Files: d}, &Grants{Files: d}
		})
	})
}

func testGrants(t *testing.T, two func() (here, there *Grants)) {
	first := Question{Principal: "p", Session: "s", Paths: []string{"/a", "/b"}}
	other := func(change func(*Question)) Question {
		q := first
		change(&q)
		return q
	}
	for _, c := range []struct {
		name  string
		grant Grant
		d     Decision
		first Question
		then  Question
		again bool
	}{
		{"once", Once, Approved, first, first, true},
		{"the same files", ThisFile, Approved, first, first, false},
		{"not UTF-8", ThisFile, Approved, other(func(q *Question) { q.Paths = []string{"/\xff"} }), other(func(q *Question) { q.Paths = []string{"/\ufffd"} }), true},
		{"not UTF-8, the same", ThisFile, Approved, other(func(q *Question) { q.Paths = []string{"/\xff"} }), other(func(q *Question) { q.Paths = []string{"/\xff"} }), false},
		{"one of them", ThisFile, Approved, first, other(func(q *Question) { q.Paths = []string{"/b"} }), false},
		{"one more", ThisFile, Approved, first, other(func(q *Question) { q.Paths = []string{"/a", "/c"} }), true},
		{"no path", ThisFile, Approved, first, other(func(q *Question) { q.Paths = nil }), true},
		{"any file", ThisSession, Approved, first, other(func(q *Question) { q.Paths = []string{"/c"} }), false},
		{"a warning", ThisSession, Approved, first, other(func(q *Question) { q.Warnings = []string{"!"} }), true},
		{"a warning, its file", ThisFile, Approved, first, other(func(q *Question) { q.Warnings = []string{"!"} }), true},
		{"after a warning", ThisFile, Approved, other(func(q *Question) { q.Warnings = []string{"!"} }), first, false},
		{"another session", ThisSession, Approved, first, other(func(q *Question) { q.Session = "t" }), true},
		{"another principal", ThisSession, Approved, first, other(func(q *Question) { q.Principal = "q" }), true},
		{"names that join alike", ThisSession, Approved, first, other(func(q *Question) { q.Principal, q.Session = "p\x00s", "" }), true},
		{"a no", ThisSession, Denied, first, first, true},
		{"nobody answered", ThisSession, TimedOut, first, first, true},
	} {
		of := &counting{grant: c.grant, d: c.d}
		here, there := two()
		if a, err := RememberIn(of, here).Ask(bg, c.first); err != nil || a.Decision != c.d {
			t.Errorf("%s: %+v %v", c.name, a, err)
		}
		a, err := RememberIn(of, there).Ask(bg, c.then)
		if err != nil || a.Decision != c.d {
			t.Errorf("%s: %+v %v", c.name, a, err)
		}
		if again := of.n == 2; again != c.again {
			t.Errorf("%s: counting again: %v", c.name, again)
		}
		if !c.again && a.By == "" {
			t.Errorf("%s: the record does not say who approved: %+v", c.name, a)
		}
	}
	g, there := two()
	now := time.Now()
	if end, err := g.Add(first, ThisSession, now); err != nil || !end.Equal(now.Add(GrantFor)) {
		t.Errorf("it ends at %v, %v", end, err)
	}
	for at, want := range map[time.Duration]Grant{0: ThisSession, GrantFor - 1: ThisSession, GrantFor: Once} {
		if got, _ := there.Holds(first, now.Add(at)); got != want {
			t.Errorf("after %v: %v", at, got)
		}
	}
	over, cancel := context.WithCancel(bg)
	r := Remember(&counting{grant: ThisSession, d: Approved})
	if _, err := r.Ask(bg, first); err != nil {
		t.Error(err)
	}
	cancel()
	if a, _ := r.Ask(over, first); a.Decision != Cancelled {
		t.Errorf("a cancelled call was approved: %+v", a)
	}
}

// A grant that can't be kept is for the one change, and the record says so. One that can't be read does not hold. Files go once all grants
// in them have ended.
func TestGrantsInFiles(t *testing.T) {
	d := state.Dir{Path: t.TempDir()}
	q := Question{Principal: "p", Session: "s", Paths: []string{"/a"}}
	g := &Grants{Files: state.Dir{Path: filepath.Join(d.Path, "none")}}
	a, err := RememberIn(&counting{grant: ThisSession, d: Approved}, g).Ask(bg, q)
	if err != nil || a.Decision != Approved || !strings.Contains(a.By, "this change alone") {
		t.Errorf("%+v, %v", a, err)
	}
	if got, _ := g.Holds(q, time.Now()); got != Once {
		t.Error("it holds, and is nowhere")
	}
	g = &Grants{Files: d}
	for _, text := range []string{"", "x", "{}", `{"Principal":"p","Session":"s","Scope":7,"End":"2999-01-01T00:00:00Z"}`, `{"Principal":"p","Session":"s","Scope":2,"End":"29`} {
		if err := os.WriteFile(filepath.Join(d.Path, fileOf("p", "s")), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := g.Holds(q, time.Now()); got != Once {
			t.Errorf("%s holds: %v", text, got)
		}
	}
	name := filepath.Join(d.Path, fileOf("p", "s"))
	old := time.Now().Add(-3 * GrantFor)
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	q.Session = "t"
	if _, err := g.Add(q, ThisSession, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an old file is there: ", err)
	}
	if got, _ := g.Holds(q, time.Now()); got != ThisSession {
		t.Error("and the new one went with it")
	}
}
