package approval

import (
	"context"
	"testing"
	"time"
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

// A grant goes as far as it says and not one step further.
func TestGrants(t *testing.T) {
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
		g := Remember(of)
		if a, err := g.Ask(bg, c.first); err != nil || a.Decision != c.d {
			t.Errorf("%s: %+v %v", c.name, a, err)
		}
		a, err := g.Ask(bg, c.then)
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
	g := &Grants{}
	now := time.Now()
	if end := g.Add(first, ThisSession, now); !end.Equal(now.Add(GrantFor)) {
		t.Errorf("it ends at %v", end)
	}
	for at, want := range map[time.Duration]Grant{0: ThisSession, GrantFor - 1: ThisSession, GrantFor: Once} {
		if got, _ := g.Holds(first, now.Add(at)); got != want {
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
