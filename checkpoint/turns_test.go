package checkpoint_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// turnsOfOneName: each conversation may count its turns from one.
func turnsOfOneName(t *testing.T, s store) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := 0
	begin := func(who checkpoint.Scope, name string, want bool) {
		t.Helper()
		if began, err := s.BeginTurn(ctx, who, name); err != nil || began != want {
			t.Errorf("turn %s: began is %v, %v", name, began, err)
		}
	}
	do := func(who checkpoint.Scope, turn string, c ...checkpoint.Change) checkpoint.ID {
		o := opBy(who, checkpoint.KindEdit, c...)
		o.Turn, o.Time = turn, start.Add(time.Duration(step)*time.Minute)
		step++
		return save(t, s, o)
	}
	begin(me, "t1", true)
	first := do(me, "t1", textEdit("/w/a", "a0", "a1"))
	begin(me, "t1", false)
	begin(you, "t1", true)
	begin(me, "t1", false)
	do(me, "t1", textEdit("/w/a", "a1", "a2"))
	begin(me, "t2", true)
	do(me, "t2", textEdit("/w/a", "a2", "a3"))
	r := restoreOf(me)
	r.Turn = "t1"
	expectPlan(t, s, "a turn that was begun once", r, at("/w/a", "a0"))
	begin(me, "t1", true)
	do(you, "t1", textEdit("/w/y", "y0", "y1"))
	second := do(me, "t1", textEdit("/w/b", "b0", "b1"))
	do(me, "t2", textEdit("/w/c", "c0", "c1")) // a late call of the turn before begins none
	begin(me, "t1", false)
	_, err := s.Plan(ctx, r)
	e, ok := errors.AsType[*checkpoint.AmbiguousTurnError](err)
	if !ok || e.Turn != "t1" || len(e.Begun) != 2 || e.Begun[0].First != first || e.Begun[1].First != second {
		t.Fatalf("of two turns of one name none is taken, and both are told: %+v %v", e, err)
	}
	for i, want := range [][]string{{at("/w/a", "a0"), at("/w/b", "b0"), at("/w/c", "c0")}, {at("/w/b", "b0"), at("/w/c", "c0")}} {
		r := restoreOf(me)
		r.Since = e.Begun[i].Time
		expectPlan(t, s, "since its time is that turn", r, want...)
	}
	r.Turn = "t2"
	expectPlan(t, s, "another name", r, at("/w/a", "a2"), at("/w/b", "b0"), at("/w/c", "c0"))
	r = restoreOf(you)
	r.Turn = "t1"
	expectPlan(t, s, "another session's turn of that name", r, at("/w/y", "y0"))
	p, err := s.List(ctx, checkpoint.Filter{Principal: me.Principal, Session: me.Session, Turn: "t1"})
	if err != nil || len(p.Checkpoints) != 3 {
		t.Errorf("a list by turn shows all turns of that name: %+v %v", p, err)
	}
}

// outside: what others did is no part of a rewind, which leaves it there again if the session had taken it back in between.
func outside(t *testing.T, s store) {
	if _, err := s.BeginTurn(ctx, me, "t1"); err != nil {
		t.Fatal(err)
	}
	one := save(t, s, opBy(me, checkpoint.KindExternal, textEdit("/w/a", "a0", "-")))   // the session takes it back
	two := save(t, s, opBy(me, checkpoint.KindExternal, textEdit("/w/b", "b0", "b1")))  // it stays
	save(t, s, opBy(me, checkpoint.KindExternal, textEdit("/w/c", "c0", "c1")))         // another one follows
	last := save(t, s, opBy(me, checkpoint.KindExternal, textEdit("/w/c", "c1", "c2"))) // which the session changes
	save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/d", "d0", "d1")))             // the session was first:
	save(t, s, opBy(me, checkpoint.KindExternal, textEdit("/w/d", "d1", "d2")))         // that goes, or is a conflict
	save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/d", "d2", "d3")))             //
	save(t, s, opBy(me, checkpoint.KindRestore, textEdit("/w/a", "-", "a0")))           //
	save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/c", "c2", "c3")))             //
	r := restoreOf(me)
	r.Turn = "t1"
	p, err := s.Plan(ctx, r)
	if err != nil || !slices.Equal(p.Outside, []checkpoint.ID{one, two, last}) {
		t.Errorf("the rewind leaves %v, which others made: %+v %v", []checkpoint.ID{one, two, last}, p, err)
	}
	r.Paths = []string{"/w/a"}
	if p, err = s.Plan(ctx, r); err != nil || !slices.Equal(p.Outside, []checkpoint.ID{one}) {
		t.Errorf("of one path: %+v %v", p, err)
	}
}
