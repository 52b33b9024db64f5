package checkpoint_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/checkpointtest"
)

// partial plans a rewind and wants it refused, because retention took some of it.
func partial(t *testing.T, d *checkpoint.DB, what string, r checkpoint.Restore) checkpoint.Lost {
	t.Helper()
	_, err := d.Plan(ctx, r)
	e, ok := errors.AsType[*checkpoint.PartialError](err)
	if !ok {
		t.Fatalf("%s must be refused as partial, not %v", what, err)
	}
	r.Partial = true
	p, err := d.Plan(ctx, r)
	if err != nil || p.Lost == nil || p.Lost.Until != e.Lost.Until {
		t.Fatalf("%s, forced, must say that it is not whole: %+v %v", what, p, err)
	}
	return e.Lost
}

func whole(t *testing.T, d *checkpoint.DB, what string, r checkpoint.Restore) *checkpoint.Plan {
	t.Helper()
	p, err := d.Plan(ctx, r)
	if err != nil || p.Lost != nil {
		t.Fatalf("%s is whole: %+v %v", what, p, err)
	}
	return p
}

// A rewind past what retention took would be a state that never was: some paths of one time, some of another.
func TestRewindPastWhatRetentionTook(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	o := checkpoint.Options{KeepWithin: 1, KeepLast: 1, Now: c.now}
	dir := t.TempDir()
	d := open(t, dir, o)
	start := c.t
	do := func(session, turn string, ch ...checkpoint.Change) checkpoint.ID {
		t.Helper()
		c.t = c.t.Add(time.Minute)
		x := op(ch...)
		x.Session, x.Turn, x.Time = session, turn, c.t
		return save(t, d, x)
	}
	to := func(s string) []byte { return []byte(s) }
	turn := func(session, name string) checkpoint.Restore {
		return checkpoint.Restore{Principal: "ann", Session: session, Turn: name}
	}
	do("s1", "t1", edit("/w/a", to("v0"), to("v1")))
	do("s1", "t1", edit("/w/new", nil, to("n1")))
	do("s1", "t2", edit("/w/a", to("v1"), to("v2")))
	taken := c.t
	first := do("s1", "t2", edit("/w/new", to("n1"), to("n2")))
	mark := do("s1", "t3", edit("/w/a", to("v2"), to("v3")))
	if err := d.Label(ctx, mark, checkpoint.Scope{Principal: "ann", Session: "s1"}, "mark"); err != nil {
		t.Fatal(err)
	}
	// Of other sessions, what is no change of theirs, or was never made, is no loss.
	for i, x := range []checkpoint.Op{{Kind: checkpoint.KindRead}, {Kind: checkpoint.KindExternal}, {Kind: checkpoint.KindManual}, {Kind: checkpoint.KindEdit}} {
		x.Principal, x.Session, x.Turn, x.Time = "ann", "s2", "u1", c.t
		if x.Kind != checkpoint.KindManual {
			x.Changes = []checkpoint.Change{edit(fmt.Sprint("/w/o", i), to("1"), to("2"))}
		}
		id := save(t, d, x)
		if x.Kind == checkpoint.KindEdit {
			if err := d.Settle(ctx, id, checkpoint.Aborted); err != nil {
				t.Fatal(err)
			}
		}
	}
	do("s3", "", edit("/w/s3", to("0"), to("1")))
	for i := range 4 { // from here on there are newer ones of all their paths
		do("s2", "u2", edit(fmt.Sprint("/w/o", i), to("1"), to("3")))
	}
	do("s4", "x", edit("/w/s3", to("1"), to("2")))
	for _, name := range []string{"t1", "t2", "t3"} {
		whole(t, d, name+" before retention took anything", turn("s1", name))
	}
	c.t = c.t.Add(time.Hour)
	if _, err := d.GC(ctx, false); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		for _, name := range []string{"t1", "t2"} {
			l := partial(t, d, name, turn("s1", name))
			if !l.Until.Equal(taken) || l.First != first || l.Turn != "t3" || l.Turns != 1 {
				t.Errorf("what is left: %+v", l)
			}
			r := turn("s1", "")
			r.Since = l.Since
			if p := whole(t, d, "since what is left", r); len(p.Undoes) != 2 {
				t.Errorf("%+v", p)
			}
			r.Since = taken
			partial(t, d, "since the one that was taken", r)
			r.Since = start
			partial(t, d, "since the beginning", r)
			r.AllSessions = true
			partial(t, d, "the same for the operator", r)
		}
		whole(t, d, "the last turn", turn("s1", "t3"))
		r := turn("s1", "")
		r.Label = "mark"
		whole(t, d, "the label", r)
		whole(t, d, "a session that lost no change", turn("s2", "u1"))
		if round == 0 { // it is remembered
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d = open(t, dir, o)
		}
	}
	// A session of which nothing was left is no other one when it comes back.
	if p, err := d.List(ctx, checkpoint.Filter{Principal: "ann", Session: "s3"}); err != nil || len(p.Checkpoints) != 0 {
		t.Fatal("the test has to lose all of it", p, err)
	}
	do("s3", "w2", edit("/w/s3", to("2"), to("3")))
	r := turn("s3", "")
	r.Since = start
	partial(t, d, "a session that had lost everything", r)
	whole(t, d, "its new turn", turn("s3", "w2"))
	sound(t, d)
}

// Retention took what a path became last, and an older checkpoint of it is pinned: that the disk is another than that is nobody's change.
func TestNoChangeFromOutsideWhereRetentionTookTheNewest(t *testing.T) {
	for _, aborted := range []bool{false, true} { // the newest that stays was never made
		c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		d := open(t, t.TempDir(), checkpoint.Options{KeepWithin: 24 * time.Hour, KeepLast: checkpoint.KeepNone, Now: c.now})
		v := [][]byte{[]byte("v0"), []byte("v1"), []byte("v2"), []byte("v3")}
		pinned := save(t, d, op(edit("/w/f", v[0], v[1])))
		if err := d.Pin(ctx, pinned, ann); err != nil {
			t.Fatal(err)
		}
		save(t, d, op(edit("/w/f", v[1], v[2])))
		c.t = c.t.Add(48 * time.Hour)
		if aborted {
			id := save(t, d, op(edit("/w/f", v[2], v[3])))
			if err := d.Settle(ctx, id, checkpoint.Aborted); err != nil {
				t.Fatal(err)
			}
		}
		save(t, d, op(edit("/w/other", v[0], v[1])))
		if _, err := d.GC(ctx, false); err != nil {
			t.Fatal(err)
		}
		seen := []checkpointtest.Observed{{Path: "/w/f", State: file(v[2]), Content: v[2]}}
		if s, err := checkpointtest.SeenOutside(ctx, d, ann, "t", seen); err != nil || s.ID != "" {
			t.Errorf("aborted %v: nobody else was at it: %+v %v", aborted, s, err)
		}
		r := checkpoint.Restore{Principal: "ann", Session: ann.Session, ID: pinned}
		p, err := d.Plan(ctx, r)
		if err != nil || len(p.Items) != 1 || !p.Items[0].HeadLost {
			t.Errorf("aborted %v: the plan must say that what came last is not known: %+v %v", aborted, p, err)
		}
		save(t, d, op(edit("/w/f", v[2], v[3])))
		if p, err = d.Plan(ctx, r); err != nil || p.Items[0].HeadLost {
			t.Errorf("from the next change on it is known: %+v %v", p, err)
		}
		seen[0].State, seen[0].Content = file(v[0]), v[0]
		if s, err := checkpointtest.SeenOutside(ctx, d, ann, "t", seen); err != nil || s.ID == "" {
			t.Errorf("and what others do is noticed: %+v %v", s, err)
		}
	}
}

// Of the turns of one name those that nothing is left of go; the last stays.
func TestTurnsOfOneNameGo(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d := open(t, t.TempDir(), checkpoint.Options{KeepWithin: time.Hour, KeepLast: 1, Now: c.now})
	who := checkpoint.Scope{Principal: "ann", Session: "s1"}
	for i := range 10 {
		for _, name := range []string{"t1", "t2"} {
			if began, err := d.BeginTurn(ctx, who, name); err != nil || !began {
				t.Fatal(began, err)
			}
			c.t = c.t.Add(time.Minute)
			x := op(edit("/w/a", []byte(fmt.Sprint(i, name, 1)), []byte(fmt.Sprint(i, name, 2))))
			x.Session, x.Turn, x.Time = "s1", name, c.t
			save(t, d, x)
		}
	}
	r := checkpoint.Restore{Principal: "ann", Session: "s1", Turn: "t2"}
	var many *checkpoint.AmbiguousTurnError
	if _, err := d.Plan(ctx, r); !errors.As(err, &many) || len(many.Begun) != 10 {
		t.Fatal(err)
	}
	c.t = c.t.Add(2 * time.Hour)
	if _, err := d.GC(ctx, false); err != nil {
		t.Fatal(err)
	}
	if p := whole(t, d, "the last one", r); len(p.Undoes) != 1 {
		t.Errorf("%+v", p)
	}
	r.Turn = "t1"
	partial(t, d, "the turn before", r)
}

func TestSeen(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	x := op(edit("/w/a", []byte("1"), []byte("2")))
	x.Principal, x.Session = "ann", "s1"
	save(t, d, x)
	for _, c := range []struct {
		principal, session string
		want               bool
	}{{"ann", "s1", true}, {"ann", "", true}, {"", "s1", true}, {"", "", true}, {"bob", "s1", false}, {"ann", "s11", false}, {"", "s11", false}, {"bob", "", false}} {
		if got, err := d.Seen(ctx, c.principal, c.session); err != nil || got != c.want {
			t.Errorf("%q %q: %v %v", c.principal, c.session, got, err)
		}
	}
}
