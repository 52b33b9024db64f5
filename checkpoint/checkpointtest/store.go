// Package checkpointtest has the tests that every catalog and every store of large contents has to pass:
// who puts the one into another database, or the other into an object store, runs them on it.
package checkpointtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// Store runs all that a store with default options must do, each part on an empty one that open makes.
func Store(t *testing.T, open func(t *testing.T) *checkpoint.DB) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *checkpoint.DB)
	}{
		{"RoundTrip", roundTrip},
		{"Content", content},
		{"BadOps", badOps},
		{"IDs", ids},
		{"List", list},
		{"Pages", pages},
		{"Sessions", sessions},
		{"PlanState", planState},
		{"PlanOrder", planOrder},
		{"PlanInverse", planInverse},
		{"PlanBad", planBad},
		{"Rewind", rewind},
		{"TurnsOfOneName", turnsOfOneName},
		{"Outside", outside},
		{"Isolation", isolation},
		{"Between", between},
		{"Gaps", gaps},
		{"Metadata", metadata},
		{"Outcomes", outcomes},
		{"Known", known},
		{"Concurrent", concurrent},
		{"Closed", closed},
		{"Random", random},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			defer s.Close()
			c.run(t, s)
		})
	}
}

var ctx = context.Background()

var (
	me  = checkpoint.Scope{Principal: "ann", Session: "s1"}
	you = checkpoint.Scope{Principal: "ann", Session: "s2"}
)

func textSum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func textFile(s string) checkpoint.State {
	return checkpoint.State{Kind: checkpoint.File, Mode: 0o644, Size: int64(len(s)), Hash: textSum(s)}
}

func save(t testing.TB, s *checkpoint.DB, o checkpoint.Op) checkpoint.ID {
	t.Helper()
	saved, err := s.Save(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return saved.ID
}

var absent = checkpoint.State{Kind: checkpoint.Absent}

// edit is the change of a file from one content to another; "-" stands for absence.
func textEdit(path, before, after string) checkpoint.Change {
	c := checkpoint.Change{Path: path, Role: "target", Before: absent, After: absent}
	if before != "-" {
		c.Before, c.Content = textFile(before), []byte(before)
	}
	if after != "-" {
		c.After = textFile(after)
	}
	return c
}

func opBy(who checkpoint.Scope, kind string, changes ...checkpoint.Change) checkpoint.Op {
	return checkpoint.Op{Tool: strings.ToUpper(kind[:1]) + kind[1:], Kind: kind, Principal: who.Principal, Session: who.Session, Changes: changes}
}

// openBy is opBy with a tag.
func openBy(who checkpoint.Scope, kind string, changes ...checkpoint.Change) checkpoint.Op {
	o := opBy(who, kind, changes...)
	o.Tag = "t"
	return o
}

func roundTrip(t *testing.T, s *checkpoint.DB) {
	when := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	o := opBy(me, checkpoint.KindMove,
		checkpoint.Change{Path: "/w/a", Role: "src", Content: []byte("alpha"), Before: checkpoint.State{
			Kind: checkpoint.File, Mode: 0o640, UID: 7, GID: 8, ModTime: when, Size: 5, Hash: textSum("alpha"),
			Xattrs: map[string][]byte{"user.empty": {}, "user.bin": {0, 1, 255}}}, After: absent},
		checkpoint.Change{Path: "/w/b", Role: "dst", Before: absent, After: textFile("alpha")},
		checkpoint.Change{Path: "/w/l", Role: "target", Before: checkpoint.State{Kind: checkpoint.Symlink, Mode: 0o777, Target: "../x y"}, After: absent},
		checkpoint.Change{Path: "/w/d", Role: checkpoint.RoleParent, Before: absent, After: checkpoint.State{Kind: checkpoint.Dir, Mode: 0o755}},
		checkpoint.Change{Path: "/w/\xff\xfe", Before: checkpoint.State{Kind: checkpoint.Dir, Mode: 0o700}, After: absent},
		checkpoint.Change{Path: "/w/big", Before: checkpoint.State{Kind: checkpoint.File, Size: 1 << 40}, After: absent, Skipped: "too_large"},
	)
	o.Turn, o.Label, o.Time = "t1", "named", when
	saved, err := s.Save(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := []checkpoint.Skip{{Path: "/w/big", Why: "too_large", Size: 1 << 40}}; !reflect.DeepEqual(saved.Skipped, want) {
		t.Errorf("what is not stored must be said: got %+v, want %+v", saved.Skipped, want)
	}
	c, err := s.Get(ctx, saved.ID, me)
	if err != nil {
		t.Fatal(err)
	}
	if c.ID != saved.ID || !c.Time.Equal(when) || c.Tool != o.Tool || c.Kind != o.Kind || c.Principal != "ann" || c.Session != "s1" ||
		c.Turn != "t1" || c.Label != "named" || c.Outcome != checkpoint.Presumed || c.Pinned {
		t.Errorf("a checkpoint must come back as it was saved: %+v", c)
	}
	if len(c.Changes) != len(o.Changes) {
		t.Fatalf("%d changes came back of %d", len(c.Changes), len(o.Changes))
	}
	for i, got := range c.Changes {
		want := o.Changes[i]
		if got.Path != want.Path || got.Role != want.Role {
			t.Errorf("change %d must keep its place, path and role: %q %q", i, got.Path, got.Role)
		}
		sameState(t, got.Path+" before", got.Before, want.Before)
		sameState(t, got.Path+" after", got.After, want.After)
	}
	if !c.Changes[0].Stored || c.Changes[5].Stored || c.Changes[5].Skipped != "too_large" {
		t.Error("Stored and Skipped must say whether the content is there")
	}
}

func sameState(t *testing.T, what string, got, want checkpoint.State) {
	t.Helper()
	if !got.ModTime.Equal(want.ModTime) {
		t.Errorf("%s: the time must be kept to the nanosecond: %v, want %v", what, got.ModTime, want.ModTime)
	}
	got.ModTime, want.ModTime = time.Time{}, time.Time{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: the state must come back as it was: %+v, want %+v", what, got, want)
	}
}

func content(t *testing.T, s *checkpoint.DB) {
	var bodies []string
	line := "func f%d() int { return %d } // a line of a source file\n"
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, line, i, i)
	}
	for i := range 80 { // a series of edits, longer than any chain of deltas
		body := b.String()
		bodies = append(bodies, strings.Replace(body, fmt.Sprintf("f%d()", i*3), fmt.Sprintf("changed%d()", i), 1)+strings.Repeat("x", i))
	}
	bodies = append(bodies, "", "\x00\xff", "no newline", strings.Repeat("\r\n", 9), Noise(700<<10), Noise(700<<10)+"tail", bodies[3])
	prev := "-"
	for _, body := range bodies {
		save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a.go", prev, body)))
		prev = body
	}
	save(t, s, opBy(me, checkpoint.KindDelete, textEdit("/w/a.go", prev, "-")))
	for i, body := range bodies {
		got, err := s.Content(ctx, textSum(body))
		if err != nil {
			t.Fatalf("content %d that was saved must be there: %v", i, err)
		}
		if string(got) != body {
			t.Fatalf("content %d must come back byte for byte", i)
		}
	}
	if _, err := s.Content(ctx, textSum("never saved")); !errors.Is(err, checkpoint.ErrNoContent) {
		t.Errorf("a hash that was never saved is ErrNoContent, not %v", err)
	}
	for _, bad := range []string{"", "zz", strings.Repeat("g", 64), "../" + textSum("")} {
		var op *checkpoint.BadOpError
		if _, err := s.Content(ctx, bad); !errors.As(err, &op) {
			t.Errorf("%q is no hash and must be refused as such, not %v", bad, err)
		}
	}
}

// Noise is text that does not compress.
func Noise(n int) string {
	var b strings.Builder
	h := sha256.Sum256([]byte("seed"))
	for b.Len() < n {
		h = sha256.Sum256(h[:])
		b.Write(h[:])
	}
	return b.String()[:n]
}

func badOps(t *testing.T, s *checkpoint.DB) {
	good := textEdit("/w/a", "x", "y")
	for name, change := range map[string]func(*checkpoint.Op){
		"relative path":    func(o *checkpoint.Op) { o.Changes[0].Path = "w/a" },
		"empty path":       func(o *checkpoint.Op) { o.Changes[0].Path = "" },
		"path with dots":   func(o *checkpoint.Op) { o.Changes[0].Path = "/w/../a" },
		"path with slash":  func(o *checkpoint.Op) { o.Changes[0].Path = "/w/a/" },
		"path with NUL":    func(o *checkpoint.Op) { o.Changes[0].Path = "/w/a\x00b" },
		"huge path":        func(o *checkpoint.Op) { o.Changes[0].Path = "/" + strings.Repeat("a", 1<<20) },
		"path twice":       func(o *checkpoint.Op) { o.Changes = append(o.Changes, good) },
		"another's hash":   func(o *checkpoint.Op) { o.Changes[0].Before.Hash = textSum("z") },
		"short hash":       func(o *checkpoint.Op) { o.Changes[0].After.Hash = "abc" },
		"no hex":           func(o *checkpoint.Op) { o.Changes[0].After.Hash = strings.Repeat("z", 64) },
		"unknown kind":     func(o *checkpoint.Op) { o.Changes[0].After.Kind = "fifo" },
		"content of a dir": func(o *checkpoint.Op) { o.Changes[0].Before = checkpoint.State{Kind: checkpoint.Dir} },
		"target of a file": func(o *checkpoint.Op) { o.Changes[0].Before.Target = "x" },
		"negative size":    func(o *checkpoint.Op) { o.Changes[0].After.Size = -1 },
		"silent omission":  func(o *checkpoint.Op) { o.Changes[0].Content, o.Changes[0].Before.Hash = nil, "" },
		"bad undo":         func(o *checkpoint.Op) { o.UndoOf = "ck-nonsense" },
		"tool no UTF-8":    func(o *checkpoint.Op) { o.Tool = "\xff" },
		"label with NUL":   func(o *checkpoint.Op) { o.Label = "a\x00b" },
		"role no UTF-8":    func(o *checkpoint.Op) { o.Changes[0].Role = "\xff" },
		"skip no UTF-8":    func(o *checkpoint.Op) { o.Changes[0].Skipped = "\xff" },
		"ident no UTF-8":   func(o *checkpoint.Op) { o.Changes[0].Identity = "\xff" },
		"far time":         func(o *checkpoint.Op) { o.Time = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
		"huge label":       func(o *checkpoint.Op) { o.Label = strings.Repeat("l", 1<<20) },
	} {
		o := opBy(me, checkpoint.KindEdit, good)
		change(&o)
		_, err := s.Save(ctx, o)
		var bad *checkpoint.BadOpError
		var id *checkpoint.BadIDError
		if !errors.As(err, &bad) && !errors.As(err, &id) {
			t.Errorf("%s: an op that contradicts itself must be refused with a typed error, not %v", name, err)
		}
	}
	for _, bad := range []string{"\xff", "a\x00b"} { // nobody has such a name: none is found, or it is refused
		p, err := s.List(ctx, checkpoint.Filter{Principal: bad, Session: bad, Turn: bad, Tool: bad, Kind: bad, Label: bad})
		if len(p.Checkpoints) != 0 || err != nil && !errors.As(err, new(*checkpoint.BadOpError)) {
			t.Errorf("%q: %v %v", bad, p, err)
		}
	}
	p, err := s.List(ctx, checkpoint.Filter{AllSessions: true})
	if err != nil || len(p.Checkpoints) != 0 {
		t.Errorf("a refused op must leave nothing behind: %v %v", p.Checkpoints, err)
	}
	o := opBy(me, checkpoint.KindEdit, good)
	o.Changes[0].Before.Hash = ""
	o.Changes[0].Before.Size = 99
	id := save(t, s, o)
	c, err := s.Get(ctx, id, me)
	if err != nil || c.Changes[0].Before.Hash != textSum("x") || c.Changes[0].Before.Size != 1 {
		t.Errorf("hash and size of given content are the store's to find out: %+v %v", c, err)
	}
	if o.Changes[0].Before.Hash != "" {
		t.Error("a save must not write into the caller's op")
	}
}

func ids(t *testing.T, s *checkpoint.DB) {
	id := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2")))
	next := save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "2", "3")))
	if id == next {
		t.Fatal("two saves must have two ids")
	}
	for _, same := range []string{strings.ToLower(string(id)), strings.ToUpper(string(id)), " " + string(id) + "\n"} {
		if c, err := s.Get(ctx, checkpoint.ID(same), me); err != nil || c.ID != id {
			t.Errorf("%q must be read as %s: %v", same, id, err)
		}
	}
	var bad *checkpoint.BadIDError
	for _, x := range []string{"", "ck-", "ck-0", "ck-1", string(id)[3:], "tr-" + string(id)[3:], "../../x", "/etc/passwd", "a/b", strings.Repeat("9", 1000),
		"ck-" + strings.Repeat("Z", 15), string(id) + "0", "ck-0" + string(id)[3:], string(id[:8]) + "U" + string(id[9:])} {
		if _, err := s.Get(ctx, checkpoint.ID(x), me); !errors.As(err, &bad) {
			t.Errorf("%q is no id and must be a BadIDError, not %v", x, err)
		}
	}
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	for i := 3; i < len(id); i++ {
		for _, d := range digits {
			x := string(id[:i]) + string(d) + string(id[i+1:])
			if x == string(id) || x == string(next) {
				continue
			}
			if _, err := s.Get(ctx, checkpoint.ID(x), me); !errors.Is(err, checkpoint.ErrNotFound) {
				t.Errorf("%s, one character from %s, must name nothing: %v", x, id, err)
			}
		}
	}
	for _, who := range []checkpoint.Scope{you, {Principal: "bob", Session: "s1"}, {}, {AllSessions: true, Principal: "bob"}} {
		if _, err := s.Get(ctx, id, who); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("somebody else's checkpoint must be ErrNotFound for %+v, not %v", who, err)
		}
	}
	for _, who := range []checkpoint.Scope{me, {AllSessions: true}, {AllSessions: true, Principal: "ann"}} {
		if _, err := s.Get(ctx, id, who); err != nil {
			t.Errorf("%+v may see it: %v", who, err)
		}
	}
}

func list(t *testing.T, s *checkpoint.DB) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var want []checkpoint.ID
	for i := range 6 {
		who := me
		if i == 4 {
			who = you
		}
		o := opBy(who, checkpoint.KindEdit, textEdit(fmt.Sprintf("/w/Dir%d/Ünïx.go", i%3), fmt.Sprint(i), fmt.Sprint(i+1)))
		o.Time = base.Add(time.Duration(i) * time.Hour)
		o.Turn = fmt.Sprintf("t%d", i/2)
		if i == 2 {
			o.Tool, o.Label = "Other", "mark"
		}
		want = append(want, save(t, s, o))
	}
	mine := checkpoint.Filter{Principal: "ann", Session: "s1"}
	for _, c := range []struct {
		why    string
		change func(*checkpoint.Filter)
		want   []int
	}{
		{"own session, newest first", func(f *checkpoint.Filter) {}, []int{5, 3, 2, 1, 0}},
		{"all sessions", func(f *checkpoint.Filter) { *f = checkpoint.Filter{AllSessions: true} }, []int{5, 4, 3, 2, 1, 0}},
		{"all of one session by name", func(f *checkpoint.Filter) { *f = checkpoint.Filter{AllSessions: true, Session: "s2"} }, []int{4}},
		{"nobody's", func(f *checkpoint.Filter) { *f = checkpoint.Filter{} }, nil},
		{"path", func(f *checkpoint.Filter) { f.Path = "/w/Dir1/Ünïx.go" }, []int{1}},
		{"path of all", func(f *checkpoint.Filter) { f.Path, f.AllSessions, f.Session = "/w/Dir1/Ünïx.go", true, "" }, []int{4, 1}},
		{"other names of a path", func(f *checkpoint.Filter) {
			f.Path, f.Also = "/w/Dir0/Ünïx.go", []string{"/w/Dir1/Ünïx.go", "/w/none", "/w/Dir0/Ünïx.go"}
		}, []int{3, 1, 0}},
		{"no such path", func(f *checkpoint.Filter) { f.Path = "/w/Dir1" }, nil},
		{"part of a path, folded", func(f *checkpoint.Filter) { f.PathContains = "dir2/üNÏ" }, []int{5, 2}},
		{"part that is no pattern", func(f *checkpoint.Filter) { f.PathContains = "Dir%" }, nil},
		{"turn", func(f *checkpoint.Filter) { f.Turn = "t1" }, []int{3, 2}},
		{"tool", func(f *checkpoint.Filter) { f.Tool = "Other" }, []int{2}},
		{"no such tool", func(f *checkpoint.Filter) { f.Tool = "other" }, nil},
		{"a kind for a tool", func(f *checkpoint.Filter) { f.Tool = checkpoint.KindEdit }, []int{5, 3, 2, 1, 0}},
		{"a kind that is none of", func(f *checkpoint.Filter) { f.Tool = checkpoint.KindExternal }, nil},
		{"label", func(f *checkpoint.Filter) { f.Label = "mark" }, []int{2}},
		{"kind", func(f *checkpoint.Filter) { f.Kind = checkpoint.KindMove }, nil},
		{"since is inclusive", func(f *checkpoint.Filter) { f.Since = base.Add(3 * time.Hour) }, []int{5, 3}},
		{"until is exclusive", func(f *checkpoint.Filter) { f.Until = base.Add(3 * time.Hour) }, []int{2, 1, 0}},
		{"far times", func(f *checkpoint.Filter) { f.Since, f.Until = time.Unix(-1<<40, 0), time.Unix(1<<40, 0) }, []int{5, 3, 2, 1, 0}},
		{"all at once", func(f *checkpoint.Filter) { f.Path, f.Turn, f.Tool = "/w/Dir0/Ünïx.go", "t1", "Edit" }, []int{3}},
	} {
		f := mine
		c.change(&f)
		p, err := s.List(ctx, f)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		var got []checkpoint.ID
		for _, k := range p.Checkpoints {
			got = append(got, k.ID)
		}
		var wanted []checkpoint.ID
		for _, i := range c.want {
			wanted = append(wanted, want[i])
		}
		if !reflect.DeepEqual(got, wanted) || p.Next != "" {
			t.Errorf("%s: got %v (next %q), want %v", c.why, got, p.Next, wanted)
		}
	}
	p, err := s.List(ctx, checkpoint.Filter{Principal: "ann", Session: "s1", Limit: 1})
	if err != nil || len(p.Checkpoints) != 1 || len(p.Checkpoints[0].Changes) != 1 || p.Checkpoints[0].Changes[0].Path != "/w/Dir2/Ünïx.go" {
		t.Errorf("a listed checkpoint must carry its changes: %+v %v", p, err)
	}
}

// Each session is listed with what it has changed itself: no reads, no restores, nothing that was aborted.
func sessions(t *testing.T, s *checkpoint.DB) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	other := checkpoint.Scope{Principal: "bob", Session: me.Session}
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	at := func(who checkpoint.Scope, kind string, n int) checkpoint.ID {
		o := opBy(who, kind, textEdit("/w/a", fmt.Sprint(n), fmt.Sprint(n+1)))
		o.Time = minute(n)
		return save(t, s, o)
	}
	at(me, checkpoint.KindEdit, 0)
	at(me, checkpoint.KindWrite, 5)
	at(me, checkpoint.KindExternal, 6)
	at(me, checkpoint.KindRestore, 7)
	if err := s.Settle(ctx, at(me, checkpoint.KindEdit, 8), checkpoint.Aborted); err != nil {
		t.Fatal(err)
	}
	at(other, checkpoint.KindEdit, 3)
	row := func(who checkpoint.Scope, changes, first, last int) checkpoint.SessionChanges {
		return checkpoint.SessionChanges{Principal: who.Principal, Session: who.Session, Changes: changes, First: minute(first).Local(), Last: minute(last).Local()}
	}
	for _, c := range []struct {
		f    checkpoint.Filter
		want []checkpoint.SessionChanges
	}{
		{checkpoint.Filter{}, []checkpoint.SessionChanges{row(me, 2, 0, 5), row(other, 1, 3, 3)}},
		{checkpoint.Filter{Principal: "bob"}, []checkpoint.SessionChanges{row(other, 1, 3, 3)}},
		{checkpoint.Filter{Since: minute(4)}, []checkpoint.SessionChanges{row(me, 1, 5, 5)}},
		{checkpoint.Filter{Until: minute(3)}, []checkpoint.SessionChanges{row(me, 1, 0, 0)}},
	} {
		if got, err := s.Sessions(ctx, c.f); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %+v, want %+v; %v", c.f, got, c.want, err)
		}
	}
}

// pages: a list is in the order of saving, on every page of it, though an imported history is older than what is there
// already, and a clock may be set back. What is saved meanwhile does not shift the pages.
func pages(t *testing.T, s *checkpoint.DB) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	want := map[string][]checkpoint.ID{}
	for i := range 60 {
		o := opBy(me, checkpoint.KindEdit, textEdit(fmt.Sprint("/w/", i%2), fmt.Sprint(i), fmt.Sprint(i+1)))
		// Forwards, then a stretch of the past backwards, then forwards again, some at the same time.
		switch {
		case i < 20:
			o.Time = start.Add(time.Duration(i) * time.Minute)
		case i < 40:
			o.Time = start.Add(time.Duration(-i) * time.Hour)
		default:
			o.Time = start.Add(time.Duration(i/4) * time.Minute)
		}
		id := save(t, s, o)
		for _, path := range []string{"", "either", o.Changes[0].Path} {
			want[path] = append(want[path], id)
		}
	}
	names := map[string][]string{"/w/0": {"/w/0"}, "/w/1": {"/w/1"}, "either": {"/w/0", "/w/1"}}
	for path, ids := range want {
		slices.Reverse(ids)
		for _, limit := range []int{1, 7, 100, 0} {
			var got []checkpoint.ID
			f := checkpoint.Filter{Principal: "ann", Session: "s1", Limit: limit}
			if n := names[path]; len(n) > 0 {
				f.Path, f.Also = n[0], n[1:]
			}
			for more := true; more; more = f.Cursor != "" {
				p, err := s.List(ctx, f)
				if err != nil || limit == 0 && len(p.Checkpoints) > 20 {
					t.Fatal(len(p.Checkpoints), err)
				}
				for _, c := range p.Checkpoints {
					got = append(got, c.ID)
				}
				if f.Cursor = p.Next; len(got) == limit {
					save(t, s, opBy(me, checkpoint.KindEdit, textEdit("/w/0", "x", "y")))
				}
			}
			if !slices.Equal(got[max(len(got)-len(ids), 0):], ids) {
				t.Errorf("path %q, pages of %d: not as saved:\n%v\n%v", path, limit, got, ids)
			}
		}
	}
	var bad *checkpoint.BadOpError
	if _, err := s.List(ctx, checkpoint.Filter{Cursor: "5; DROP TABLE op"}); !errors.As(err, &bad) {
		t.Errorf("a made-up cursor must be refused, not %v", err)
	}
}

func concurrent(t *testing.T, s *checkpoint.DB) {
	workers, each := 16, Rounds(20)
	var wg sync.WaitGroup
	got := make([][]checkpoint.ID, workers)
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			who := checkpoint.Scope{Session: fmt.Sprint(w)}
			prev := "-"
			for i := range each {
				next := fmt.Sprintf("worker %d, step %d\n", w, i) + strings.Repeat("same lines for all\n", 50)
				saved, err := s.Save(ctx, opBy(who, checkpoint.KindEdit, textEdit("/w/shared", prev, next), textEdit(fmt.Sprintf("/w/own%d", w), prev, next)))
				if err != nil {
					t.Errorf("saves must not disturb each other: %v", err)
					return
				}
				got[w] = append(got[w], saved.ID)
				prev = next
			}
		}()
	}
	wg.Wait()
	all := map[checkpoint.ID]bool{}
	for w := range workers {
		who := checkpoint.Scope{Session: fmt.Sprint(w)}
		for i, id := range got[w] {
			all[id] = true
			c, err := s.Get(ctx, id, who)
			if err != nil {
				t.Fatalf("what was saved must be there: %v", err)
			}
			if i > 0 {
				if _, err := s.Content(ctx, c.Changes[0].Before.Hash); err != nil {
					t.Fatalf("and its content: %v", err)
				}
			}
		}
	}
	if len(all) != workers*each {
		t.Errorf("%d saves gave %d ids", workers*each, len(all))
	}
}

func closed(t *testing.T, s *checkpoint.DB) {
	dead, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Save(dead, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2"))); !errors.Is(err, context.Canceled) {
		t.Errorf("a save under a dead context must not take place: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice is no error: %v", err)
	}
	_, err1 := s.Save(ctx, opBy(me, checkpoint.KindEdit, textEdit("/w/a", "1", "2")))
	_, err2 := s.List(ctx, checkpoint.Filter{})
	_, err3 := s.Content(ctx, textSum(""))
	_, err4 := s.Known(ctx, me)
	for _, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("a closed store must say ErrClosed, not %v", err)
		}
	}
}
