package checkpointtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

func restoreOf(who checkpoint.Scope) checkpoint.Restore {
	return checkpoint.Restore{Principal: who.Principal, Session: who.Session}
}

func byID(who checkpoint.Scope, id checkpoint.ID) checkpoint.Restore {
	r := restoreOf(who)
	r.ID = id
	return r
}

// wants renders a plan as path=content for comparison.
func wants(p *checkpoint.Plan) []string {
	var out []string
	for _, it := range p.Items {
		w := string(it.Want.Kind)
		if it.Want.Kind == checkpoint.File {
			w = it.Want.Hash[:6]
		}
		out = append(out, it.Path+"="+w)
	}
	return out
}

func expectPlan(t *testing.T, s *checkpoint.DB, why string, r checkpoint.Restore, want ...string) *checkpoint.Plan {
	t.Helper()
	p, err := s.Plan(ctx, r)
	if err != nil {
		t.Fatalf("%s: %v", why, err)
	}
	if got := wants(p); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: plan %v, want %v", why, got, want)
	}
	return p
}

func at(path, content string) string { return path + "=" + textSum(content)[:6] }

func planState(t *testing.T, s *checkpoint.DB) {
	created := save(t, s, opBy(me, checkpoint.KindWrite, textEdit("/w/a", "-", "1")))
	edited := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2")))
	deleted := save(t, s, openBy(me, checkpoint.KindDelete, textEdit("/w/a", "2", "-")))
	expectPlan(t, s, "what was created must go", byID(me, created), "/w/a=absent")
	p := expectPlan(t, s, "what was edited must be as before", byID(me, edited), at("/w/a", "1"))
	it := p.Items[0]
	if !it.Stored || it.Missing != "" || it.Head.Kind != checkpoint.Absent || it.Foreign || it.HeadID != deleted || it.Base.Hash != textSum("2") {
		t.Errorf("the item must hold head (the last known state), base and whether content is DBd: %+v", it)
	}
	if !it.Expects(absent) || !it.Expects(textFile("2")) || it.Expects(textFile("1")) {
		t.Error("of an open head both its states are expected on disk, and no other")
	}
	if p.RestoreOf != edited || p.UndoOf != "" || !reflect.DeepEqual(p.Undoes, []checkpoint.ID{edited}) {
		t.Errorf("the plan must say what it takes back: %+v", p)
	}
	expectPlan(t, s, "what was deleted must come back", byID(me, deleted), at("/w/a", "2"))
	if err := s.Settle(ctx, deleted, checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
	p = expectPlan(t, s, "again", byID(me, edited), at("/w/a", "1"))
	if it := p.Items[0]; !it.Expects(absent) || it.Expects(textFile("2")) {
		t.Error("of a committed head only what it left behind is expected")
	}
	skipped := textEdit("/w/big", "x", "y")
	skipped.Content, skipped.Skipped = nil, "too_large"
	p = expectPlan(t, s, "a skipped content", byID(me, save(t, s, opBy(me, checkpoint.KindEdit, skipped))), at("/w/big", "x"))
	if p.Items[0].Stored || p.Items[0].Missing != "too_large" {
		t.Errorf("a plan must say that a content is missing and why: %+v", p.Items[0])
	}
}

func planOrder(t *testing.T, s *checkpoint.DB) {
	dir := checkpoint.State{Kind: checkpoint.Dir, Mode: 0o755}
	made := save(t, s, opBy(me, checkpoint.KindWrite,
		checkpoint.Change{Path: "/w/n", Role: checkpoint.RoleParent, Before: absent, After: dir},
		checkpoint.Change{Path: "/w/n/m", Role: checkpoint.RoleParent, Before: absent, After: dir},
		textEdit("/w/n/m/f", "-", "1")))
	p := expectPlan(t, s, "files go before the directories that were made for them, the deepest first",
		byID(me, made), "/w/n/m/f=absent", "/w/n/m=absent", "/w/n=absent")
	if p.Items[0].DropIfEmpty || !p.Items[1].DropIfEmpty || !p.Items[2].DropIfEmpty {
		t.Error("only a directory that the tool made goes, and only if it is empty")
	}
	removed := save(t, s, opBy(me, checkpoint.KindDelete,
		textEdit("/w/t/x/f", "1", "-"), textEdit("/w/t/g", "2", "-"),
		checkpoint.Change{Path: "/w/t/x", Before: dir, After: absent},
		checkpoint.Change{Path: "/w/t", Before: dir, After: absent},
		checkpoint.Change{Path: "/w/t/l", Before: checkpoint.State{Kind: checkpoint.Symlink, Target: "g"}, After: absent}))
	expectPlan(t, s, "directories come back from the top down, then what is in them",
		byID(me, removed), "/w/t=dir", "/w/t/x=dir", at("/w/t/g", "2"), "/w/t/l=symlink", at("/w/t/x/f", "1"))
	r := byID(me, removed)
	r.Paths = []string{"/w/t/x"}
	expectPlan(t, s, "paths select, and a directory stands for what is below", r, "/w/t/x=dir", at("/w/t/x/f", "1"))
	r.Paths = []string{"/w/t/xx", "/w/t/g"}
	expectPlan(t, s, "but not for what only begins alike", r, at("/w/t/g", "2"))
	src, dst := textEdit("/w/src", "m", "-"), textEdit("/w/dst", "-", "m")
	src.Role, dst.Role = "src", "dst"
	expectPlan(t, s, "a move is undone", byID(me, save(t, s, opBy(me, checkpoint.KindMove, src, dst))), at("/w/src", "m"), "/w/dst=absent")
}

func planInverse(t *testing.T, s *checkpoint.DB) {
	save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2")))
	mid := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "2", "3")))
	save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "3", "4")))
	r := byID(me, mid)
	r.Mode = checkpoint.ModeInverse
	it := expectPlan(t, s, "inverse of the middle edit", r, at("/w/a", "2")).Items[0]
	if it.Base.Hash != textSum("3") || !it.BaseStored || it.Head.Hash != textSum("4") {
		t.Errorf("a merge needs base = what the edit left behind and head = the present: %+v", it)
	}
}

func planBad(t *testing.T, s *checkpoint.DB) {
	id := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2")))
	var bad *checkpoint.BadOpError
	for name, r := range map[string]checkpoint.Restore{
		"nothing":        restoreOf(me),
		"two of them":    {ID: id, Turn: "t", Principal: "ann", Session: "s1"},
		"unknown mode":   {ID: id, Mode: "sideways", Principal: "ann", Session: "s1"},
		"inverse rewind": {Turn: "t", Mode: checkpoint.ModeInverse, Principal: "ann", Session: "s1"},
	} {
		if _, err := s.Plan(ctx, r); !errors.As(err, &bad) {
			t.Errorf("%s must be a BadOpError, not %v", name, err)
		}
	}
	if _, err := s.Undo(ctx, checkpoint.Scope{AllSessions: true}); !errors.As(err, &bad) {
		t.Errorf("undo belongs to one session: %v", err)
	}
	var badID *checkpoint.BadIDError
	if _, err := s.Plan(ctx, byID(me, "ck-42")); !errors.As(err, &badID) {
		t.Errorf("a mistyped id must be a BadIDError, not %v", err)
	}
	for name, r := range map[string]checkpoint.Restore{
		"another session": byID(you, id),
		"unknown turn":    {Turn: "no", Principal: "ann", Session: "s1"},
		"unknown label":   {Label: "no", Principal: "ann", Session: "s1"},
	} {
		if _, err := s.Plan(ctx, r); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("%s must be ErrNotFound, not %v", name, err)
		}
	}
}

func rewind(t *testing.T, s *checkpoint.DB) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := 0
	do := func(turn, label, kind string, c ...checkpoint.Change) checkpoint.ID {
		o := opBy(me, kind, c...)
		o.Turn, o.Label, o.Time = turn, label, start.Add(time.Duration(step)*time.Minute)
		step++
		return save(t, s, o)
	}
	do("t1", "", checkpoint.KindEdit, textEdit("/w/a", "a0", "a1"))
	if _, err := s.BeginTurn(ctx, me, "t2"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BeginTurn(ctx, me, "t2"); err != nil {
		t.Errorf("beginning a turn twice changes nothing: %v", err)
	}
	do("t2", "", checkpoint.KindEdit, textEdit("/w/a", "a1", "a2"))
	do("t2", "", checkpoint.KindRead, textEdit("/w/r", "r0", "r0"))
	do("t2", "", checkpoint.KindExternal, textEdit("/w/e", "e0", "e1"))
	do("t2", "", checkpoint.KindWrite, textEdit("/w/b", "-", "b1"))
	mark := do("", "before cleanup", checkpoint.KindManual)
	do("t3", "", checkpoint.KindEdit, textEdit("/w/a", "a2", "a3"))
	do("t3", "", checkpoint.KindDelete, textEdit("/w/c", "c0", "-"))
	do("t3", "", checkpoint.KindEdit, textEdit("/w/b", "b1", "b2"))
	turn := func(name string) checkpoint.Restore { r := restoreOf(me); r.Turn = name; return r }
	expectPlan(t, s, "rewind to the last turn", turn("t3"), at("/w/a", "a2"), at("/w/b", "b1"), at("/w/c", "c0"))
	p := expectPlan(t, s, "rewind further: the first state of each path since then, what was read or changed by others left alone",
		turn("t2"), at("/w/a", "a1"), at("/w/c", "c0"), "/w/b=absent")
	if len(p.Undoes) != 5 || p.Items[0].Head.Hash != textSum("a3") || p.Items[0].Base.Hash != textSum("a3") {
		t.Errorf("a rewind takes back every change since: %+v", p)
	}
	r := turn("t2")
	r.Paths = []string{"/w/b"}
	expectPlan(t, s, "of one path", r, "/w/b=absent")
	r = restoreOf(me)
	r.Label = "before cleanup"
	expectPlan(t, s, "rewind to a mark", r, at("/w/a", "a2"), at("/w/b", "b1"), at("/w/c", "c0"))
	theirs := opBy(you, checkpoint.KindManual)
	theirs.Label = "before cleanup"
	save(t, s, theirs)
	expectPlan(t, s, "another session's mark of that name is nothing to this one", r, at("/w/a", "a2"), at("/w/b", "b1"), at("/w/c", "c0"))
	r = restoreOf(me)
	r.Since = start.Add(7 * time.Minute)
	expectPlan(t, s, "rewind to a time", r, at("/w/b", "b1"), at("/w/c", "c0"))
	r.Since = start.Add(time.Hour)
	expectPlan(t, s, "nothing happened since", r)
	expectPlan(t, s, "a mark has no paths of its own", byID(me, mark))
	if _, err := s.BeginTurn(ctx, me, "t4"); err != nil {
		t.Fatal(err)
	}
	expectPlan(t, s, "a turn without changes", turn("t4"))
	second := do("t4", "before cleanup", checkpoint.KindManual)
	r = restoreOf(me)
	r.Label = "before cleanup"
	_, err := s.Plan(ctx, r)
	if e, ok := errors.AsType[*checkpoint.AmbiguousLabelError](err); !ok || len(e.Carry) != 2 || e.Carry[0].ID != mark || e.Carry[1].ID != second ||
		e.Carry[1].Session != me.Session || !e.Carry[0].Time.Before(e.Carry[1].Time) {
		t.Errorf("of two marks of one name none is taken, and both are told: %v", err)
	}
}

func isolation(t *testing.T, s *checkpoint.DB) {
	if _, err := s.BeginTurn(ctx, me, "t"); err != nil {
		t.Fatal(err)
	}
	mine := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2"), textEdit("/w/b", "1", "2")))
	theirs := save(t, s, opBy(you, checkpoint.KindEdit, textEdit("/w/a", "2", "3"), textEdit("/w/c", "1", "2")))
	r := restoreOf(me)
	r.Turn = "t"
	p := expectPlan(t, s, "a rewind never touches what only another session changed", r, at("/w/a", "1"), at("/w/b", "1"))
	if !p.Items[0].Foreign || p.Items[0].HeadID != "" || p.Items[0].Head.Hash != textSum("3") {
		t.Errorf("what another session changed after must be marked, without naming its checkpoint: %+v", p.Items[0])
	}
	if p.Items[1].Foreign || p.Items[1].HeadID != mine {
		t.Errorf("what only this session changed is not foreign: %+v", p.Items[1])
	}
	r = restoreOf(you)
	r.Turn = "t"
	if _, err := s.Plan(ctx, r); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("another session's turn must be ErrNotFound, not %v", err)
	}
	if _, err := s.Plan(ctx, byID(me, theirs)); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("another session's checkpoint must be ErrNotFound, not %v", err)
	}
	all := byID(me, theirs)
	all.AllSessions = true
	expectPlan(t, s, "unless the operator says so", all, at("/w/a", "2"), at("/w/c", "1"))
	if u, err := s.Undo(ctx, me); err != nil || u.UndoOf != mine {
		t.Errorf("undo takes back this session's newest: %+v %v", u, err)
	}
}

// A rewind takes a change of others between two changes of this session along, so that must be marked; a read of others is no such change.
func between(t *testing.T, s *checkpoint.DB) {
	first := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2"), textEdit("/w/b", "1", "2"), textEdit("/w/c", "1", "2"), textEdit("/w/d", "1", "2")))
	save(t, s, opBy(you, checkpoint.KindEdit, textEdit("/w/a", "2", "3")))
	save(t, s, opBy(me, checkpoint.KindExternal, textEdit("/w/b", "2", "3")))
	save(t, s, opBy(you, checkpoint.KindRead, textEdit("/w/c", "2", "2")))
	last := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "3", "4"), textEdit("/w/b", "3", "4"), textEdit("/w/d", "2", "3")))
	p := expectPlan(t, s, "all four", byID(me, first), at("/w/a", "1"), at("/w/b", "1"), at("/w/c", "1"), at("/w/d", "1"))
	for i, want := range []bool{true, true, false, false} {
		if p.Items[i].Foreign != want {
			t.Errorf("%s: Foreign is %v", p.Items[i].Path, p.Items[i].Foreign)
		}
	}
	if it := p.Items[2]; it.Head.Hash != textSum("2") || it.HeadID != first {
		t.Errorf("a read is not what became of a path: %+v", it)
	}
	for _, it := range expectPlan(t, s, "the last", byID(me, last), at("/w/a", "3"), at("/w/b", "3"), at("/w/d", "2")).Items {
		if it.Foreign {
			t.Errorf("%s: nobody changed it after that", it.Path)
		}
	}
}

// A change that nobody recorded shows as a gap between two changes of this session.
func gaps(t *testing.T, s *checkpoint.DB) {
	var first checkpoint.ID
	own := func(path string, states ...string) {
		for i := 0; i+1 < len(states); i += 2 {
			c := textEdit(path, states[i], states[i+1])
			if states[i+1] != "-" {
				c.After.Mode, c.AfterContent = 0o600, []byte(states[i+1])
			}
			id := save(t, s, opBy(me, checkpoint.KindEdit, c))
			if first == "" {
				first = id
			}
			if err := s.Settle(ctx, id, checkpoint.Committed); err != nil {
				t.Fatal(err)
			}
		}
	}
	tree := func(path string, before, after checkpoint.State) checkpoint.Change {
		before.Hash, after.Hash = "", "" // what is moved as a whole is not read
		c := checkpoint.Change{Path: path, Role: checkpoint.RoleTree, Before: before, After: after}
		if before.Kind == checkpoint.File {
			c.Skipped = checkpoint.SkipParked
		}
		return c
	}
	for _, c := range []struct {
		name    string
		foreign bool
		do      func()
	}{
		{"an edit outside", true, func() { own("/w/a", "1", "2", "2x", "3x") }},
		{"an edit outside of what was created", true, func() { own("/w/a", "-", "2", "2x", "3x") }},
		{"a removal outside", true, func() { own("/w/a", "1", "2", "-", "3") }},
		{"made outside after a deletion", true, func() { own("/w/a", "1", "-", "2", "3") }},
		{"no gap", false, func() { own("/w/a", "1", "2", "2", "3", "3", "-", "-", "4") }},
		{"outside, and back again", false, func() { own("/w/a", "1", "2", "2", "3") }},
		{"others, and back again", false, func() {
			own("/w/a", "1", "2")
			save(t, s, opBy(you, checkpoint.KindEdit, textEdit("/w/a", "2", "3")))
			save(t, s, opBy(you, checkpoint.KindRestore, textEdit("/w/a", "3", "2")))
		}},
		{"others, and half back", true, func() {
			own("/w/a", "1", "2")
			save(t, s, opBy(you, checkpoint.KindEdit, textEdit("/w/a", "2", "3")))
			save(t, s, opBy(you, checkpoint.KindRestore, textEdit("/w/a", "3", "4")))
		}},
		{"parked and back", false, func() {
			own("/w/a", "1", "2")
			save(t, s, opBy(me, checkpoint.KindDelete, tree("/w/a", textFile("2"), absent)))
			save(t, s, opBy(me, checkpoint.KindRestore, tree("/w/a", absent, textFile("2"))))
			own("/w/a", "2", "3")
		}},
		{"one that never took place", false, func() {
			own("/w/a", "1", "2")
			save(t, s, openBy(me, checkpoint.KindEdit, textEdit("/w/a", "2", "3")))
			own("/w/a", "2", "4")
		}},
		{"one that was aborted", false, func() {
			own("/w/a", "1", "2")
			id := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "2", "3")))
			if err := s.Settle(ctx, id, checkpoint.Aborted); err != nil {
				t.Fatal(err)
			}
			own("/w/a", "2", "4")
		}},
	} {
		if _, err := s.BeginTurn(ctx, me, c.name); err != nil {
			t.Fatal(err)
		}
		first = ""
		c.do()
		r := restoreOf(me)
		r.Turn = c.name
		for _, r := range []checkpoint.Restore{byID(me, first), r} {
			p, err := s.Plan(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range p.Items {
				if it.Path == "/w/a" && (it.Foreign != c.foreign || len(it.Own) == 0 || it.Own[0] != first) {
					t.Errorf("%s: Foreign is %v, Own %v", c.name, it.Foreign, it.Own)
				}
				own, err := s.Changes(ctx, it.Path, it.Own)
				if n := len(own); err != nil || n != len(it.Own) || !own[0].Before.Same(it.Want) || slices.ContainsFunc(own, func(c checkpoint.Recorded) bool { return c.Path != it.Path }) {
					t.Errorf("%s: the changes of %v are %+v %v", c.name, it.Own, own, err)
				}
			}
		}
	}
}

func mustPlan(p *checkpoint.Plan, err error) *checkpoint.Plan {
	if err != nil {
		panic(err)
	}
	return p
}

// A restore brings back what this session did to mode, owner and extended attributes, and leaves alone what others set.
func metadata(t *testing.T, s *checkpoint.DB) {
	with := func(body string, mode fs.FileMode, gid uint32, x string) checkpoint.State {
		st := textFile(body)
		st.Mode, st.GID, st.Xattrs = mode, gid, map[string][]byte{"user.x": []byte(x)}
		return st
	}
	change := func(before, after checkpoint.State, b, a string) checkpoint.Change {
		c := checkpoint.Change{Path: "/w/m", Role: "target", Before: before, After: after, Content: []byte(b), AfterContent: []byte(a)}
		if before.Kind == checkpoint.Absent {
			c.Content = nil
		}
		return c
	}
	is := func(why string, id checkpoint.ID, now, want checkpoint.State) {
		t.Helper()
		got, known := mustPlan(s.Plan(ctx, byID(me, id))).Items[0].Metadata(now)
		if !known || !got.SameMetadata(want) {
			t.Errorf("%s: %+v %v, want %+v", why, got, known, want)
		}
	}
	plain := save(t, s, opBy(me, checkpoint.KindEdit, change(with("1", 0o644, 5, "a"), with("2", 0o644, 5, "a"), "1", "2")))
	is("nobody set anything", plain, with("2", 0o644, 5, "a"), with("", 0o644, 5, "a"))
	is("others set it all", plain, with("2", 0o600, 6, "b"), with("", 0o600, 6, "b"))
	is("it is gone", plain, absent, with("", 0o644, 5, "a"))
	mine := save(t, s, opBy(me, checkpoint.KindEdit, change(with("2", 0o600, 6, "b"), with("3", 0o640, 7, "c"), "2", "3")))
	is("the session set it", mine, with("3", 0o640, 7, "c"), with("", 0o600, 6, "b"))
	is("and others since", mine, with("3", 0o666, 7, "d"), with("", 0o666, 6, "d"))
	ext := save(t, s, opBy(me, checkpoint.KindExternal, change(with("4", 0o644, 5, "a"), with("5", 0o600, 5, "a"), "4", "5")))
	is("what was done outside is taken back by its own checkpoint", ext, with("5", 0o600, 5, "a"), with("", 0o644, 5, "a"))
	bare := save(t, s, opBy(me, checkpoint.KindExternal, checkpoint.Change{Path: "/w/m", Role: "target", Before: checkpoint.State{Kind: checkpoint.File, Hash: textSum("5"), Size: 1}, After: absent, Content: []byte("5")}))
	if _, known := mustPlan(s.Plan(ctx, byID(me, bare))).Items[0].Metadata(absent); known {
		t.Error("what nobody recorded is not known")
	}
}

func outcomes(t *testing.T, s *checkpoint.DB) {
	first := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2")))
	second := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "2", "3")))
	if err := s.Settle(ctx, second, checkpoint.Aborted); err != nil {
		t.Fatal(err)
	}
	if it := expectPlan(t, s, "after an aborted one", byID(me, first), at("/w/a", "1")).Items[0]; it.Head.Hash != textSum("2") || it.HeadID != first {
		t.Errorf("an aborted operation is not the head: %+v", it)
	}
	if u, err := s.Undo(ctx, me); err != nil || u.UndoOf != first {
		t.Errorf("an aborted operation is not there to be undone: %+v %v", u, err)
	}
	for _, o := range []checkpoint.Outcome{checkpoint.Committed, checkpoint.Foreign} {
		if err := s.Settle(ctx, first, o); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Get(ctx, first, me); err != nil || c.Outcome != o {
			t.Errorf("the outcome must be kept: %v %v, want %v", c, err, o)
		}
	}
	var bad *checkpoint.BadOpError
	if err := s.Settle(ctx, first, "perhaps"); !errors.As(err, &bad) {
		t.Errorf("an unknown outcome must be refused, not %v", err)
	}
	var badID *checkpoint.BadIDError
	if err := s.Settle(ctx, "ck-1", checkpoint.Committed); !errors.As(err, &badID) {
		t.Errorf("a mistyped id must be refused, not %v", err)
	}
}

func known(t *testing.T, s *checkpoint.DB) {
	save(t, s, opBy(me, checkpoint.KindRead, textEdit("/w/r", "r", "r")))
	save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2")))
	save(t, s, openBy(you, checkpoint.KindEdit, textEdit("/w/a", "2", "3"), textEdit("/w/o", "1", "2")))
	id := save(t, s, opBy(me, checkpoint.KindDelete, textEdit("/w/d", "1", "-")))
	if err := s.Settle(ctx, id, checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
	k, err := s.Known(ctx, me)
	if err != nil {
		t.Fatal(err)
	}
	if len(k) != 3 || k[0].Path != "/w/a" || k[1].Path != "/w/d" || k[2].Path != "/w/r" {
		t.Fatalf("known are the paths that this session read or changed, sorted: %+v", k)
	}
	if k[0].State.Hash != textSum("3") || k[0].Settled || k[0].Before.Hash != textSum("2") || k[0].Stored {
		t.Errorf("the state is the last one that anybody recorded: %+v", k[0])
	}
	if k[1].State.Kind != checkpoint.Absent || !k[1].Settled || !k[1].Stored {
		t.Errorf("absence is a state: %+v", k[1])
	}
	if k[2].State.Hash != textSum("r") || !k[2].Stored {
		t.Errorf("what was read is known and kept: %+v", k[2])
	}
	// The disk may be in either state of an open edit, and as it was read.
	is := func(path, text string) Observed { return Observed{path, textFile(text), []byte(text)} }
	calm, err := SeenOutside(ctx, s, me, "t", []Observed{is("/w/a", "2"), is("/w/r", "r"), {Path: "/w/d"}, is("/w/unknown", "u")})
	if err != nil || calm.ID != "" {
		t.Errorf("nothing was changed outside: %+v %v", calm, err)
	}
	// A file that was only read, and that others removed, can be brought back. That it is gone is noticed once.
	for i, want := range []bool{true, false} {
		got, err := SeenOutside(ctx, s, me, "t", []Observed{{Path: "/w/r"}})
		if err != nil || (got.ID != "") != want {
			t.Errorf("look %d at a file that is gone: %+v %v", i, got, err)
		}
		if want {
			expectPlan(t, s, "what was only read", byID(me, got.ID), at("/w/r", "r"))
		}
	}
	// A change from outside took place: taking it back is a change again.
	for i, to := range []string{"4", "3"} {
		seen := []Observed{{Path: "/w/a", State: checkpoint.State{Kind: checkpoint.File, Hash: textSum(to), Size: 1}, Content: []byte(to)}}
		if saved, err := SeenOutside(ctx, s, me, fmt.Sprint("t", i), seen); err != nil || saved.ID == "" {
			t.Fatalf("change %d from outside is not recorded: %v", i, err)
		}
	}
}

// Observed is the state of Path, and its Content if it is a file, as a look at the tree found it.
type Observed struct {
	Path    string
	State   checkpoint.State
	Content []byte
}

// SeenOutside records what changed behind the tools, as a host does at the beginning of a turn.
func SeenOutside(ctx context.Context, d *checkpoint.DB, who checkpoint.Scope, turn string, seen []Observed) (checkpoint.Saved, error) {
	known, err := d.Known(ctx, who)
	op := checkpoint.Op{Kind: checkpoint.KindExternal, Principal: who.Principal, Session: who.Session, Turn: turn}
	for _, k := range known {
		for _, o := range seen {
			if o.Path == k.Path && !k.Expects(o.State) {
				op.Changes = append(op.Changes, checkpoint.Change{Path: k.Path, Role: "target", Before: k.Own, After: o.State, AfterContent: o.Content})
			}
		}
	}
	if err != nil || len(op.Changes) == 0 {
		return checkpoint.Saved{}, err
	}
	return d.Save(ctx, op)
}

// turnsOfOneName: each conversation may count its turns from one.
func turnsOfOneName(t *testing.T, s *checkpoint.DB) {
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
func outside(t *testing.T, s *checkpoint.DB) {
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
