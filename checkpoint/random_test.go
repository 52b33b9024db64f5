package checkpoint_test

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"moltisfs/checkpoint"
)

func random(t *testing.T, s store) { drive(t, s, 1, rounds(400)) }

// rounds is n, or a part of it under -short, which is how the race detector gets to see the suite.
func rounds(n int) int {
	if testing.Short() {
		return n / 4
	}
	return n
}

// drive drives the store with a random sequence of edits, creations, deletions, moves, restores, rewinds, undos and redos of
// two sessions over a simulated disk, and compares every plan with a model that remembers each state of the whole disk.
func drive(t *testing.T, s store, seed int64, steps int) {
	t.Helper()
	w := &world{t: t, s: s, rng: rand.New(rand.NewSource(seed)), disk: map[string]string{}, stacks: map[string]*stack{}}
	for i := range steps {
		w.step(i)
		if t.Failed() {
			t.Fatalf("at step %d of seed %d", i, seed)
		}
	}
	for i, e := range w.log {
		for path, body := range e.before {
			got, err := s.Content(ctx, textSum(body))
			if err != nil || string(got) != body {
				t.Fatalf("seed %d: %s before operation %d must be in the store: %v", seed, path, i, err)
			}
		}
	}
}

type world struct {
	t      *testing.T
	s      store
	rng    *rand.Rand
	disk   map[string]string // path to content; absent when not there
	log    []done
	stacks map[string]*stack
	turns  int
}

// done is one operation: the disk before it, of the paths that it changed.
type done struct {
	who     checkpoint.Scope
	id      checkpoint.ID
	paths   []string
	before  map[string]string
	turnsAt int
}

// stack is the textbook model of undo: done operations, and undone ones that can come back.
type stack struct{ done, undone []int }

func (w *world) stack(who checkpoint.Scope) *stack {
	if w.stacks[who.Session] == nil {
		w.stacks[who.Session] = &stack{}
	}
	return w.stacks[who.Session]
}

func (w *world) get(path string) string {
	if b, ok := w.disk[path]; ok {
		return b
	}
	return "-"
}

// commit saves an operation that sets paths to contents and performs it on the simulated disk.
func (w *world) commit(who checkpoint.Scope, kind string, to map[string]string, order []string, undoOf checkpoint.ID) int {
	d := done{who: who, before: map[string]string{}, turnsAt: w.turns}
	o := opBy(who, kind)
	o.UndoOf = undoOf
	for _, p := range order {
		before := w.get(p)
		c := textEdit(p, before, to[p])
		if w.rng.Intn(2) == 0 && to[p] != "-" {
			c.AfterContent = []byte(to[p])
		}
		o.Changes = append(o.Changes, c)
		d.paths = append(d.paths, p)
		if before != "-" {
			d.before[p] = before
		}
	}
	d.id = save(w.t, w.s, o)
	for p, b := range to {
		if b == "-" {
			delete(w.disk, p)
		} else {
			w.disk[p] = b
		}
	}
	w.log = append(w.log, d)
	return len(w.log) - 1
}

func (w *world) mutate(who checkpoint.Scope, kind string, to map[string]string, order []string) {
	i := w.commit(who, kind, to, order, "")
	st := w.stack(who)
	st.done, st.undone = append(st.done, i), nil
}

func (w *world) body() string {
	b := fmt.Sprintf("body %d\n", w.rng.Intn(30))
	for range w.rng.Intn(40) {
		b += fmt.Sprintf("line %d of a file\n", w.rng.Intn(5))
	}
	return b
}

func (w *world) step(i int) {
	who := me
	if w.rng.Intn(3) == 0 {
		who = you
	}
	path := func() string { return fmt.Sprintf("/w/f%d", w.rng.Intn(8)) }
	switch w.rng.Intn(10) {
	case 0, 1, 2, 3:
		p := path()
		w.mutate(who, checkpoint.KindEdit, map[string]string{p: w.body()}, []string{p})
	case 4:
		p := path()
		w.mutate(who, checkpoint.KindDelete, map[string]string{p: "-"}, []string{p})
	case 5:
		p, q := path(), path()
		if p != q {
			w.mutate(who, checkpoint.KindMove, map[string]string{p: "-", q: w.get(p)}, []string{p, q})
		}
	case 6:
		w.turns++
		for _, x := range []checkpoint.Scope{me, you} {
			if _, err := w.s.BeginTurn(ctx, x, fmt.Sprint(w.turns)); err != nil {
				w.t.Fatal(err)
			}
		}
	case 7:
		w.restore(who)
	case 8:
		w.undo(who, false)
	case 9:
		w.undo(who, true)
	}
}

// restore goes back to before one operation, or to the beginning of a turn.
func (w *world) restore(who checkpoint.Scope) {
	r := restoreOf(who)
	want := map[string]string{}
	note := func(d done) {
		for _, p := range d.paths {
			if _, ok := want[p]; ok {
				continue
			}
			want[p] = "-"
			if b, ok := d.before[p]; ok {
				want[p] = b
			}
		}
	}
	if w.rng.Intn(2) == 0 && w.turns > 0 {
		turn := 1 + w.rng.Intn(w.turns)
		r.Turn = fmt.Sprint(turn)
		for _, d := range w.log {
			if d.who == who && d.turnsAt >= turn {
				note(d)
			}
		}
	} else {
		if len(w.log) == 0 {
			return
		}
		d := w.log[w.rng.Intn(len(w.log))]
		r.ID = d.id
		if d.who != who {
			if _, err := w.s.Plan(ctx, r); !errors.Is(err, checkpoint.ErrNotFound) {
				w.t.Errorf("another session's checkpoint is ErrNotFound, not %v", err)
			}
			return
		}
		note(d)
	}
	p, err := w.s.Plan(ctx, r)
	if err != nil {
		w.t.Errorf("planning %+v: %v", r, err)
		return
	}
	if order := w.compare(p, want, fmt.Sprintf("restore %+v", r)); len(order) > 0 {
		w.mutate(who, checkpoint.KindRestore, want, order)
	}
}

// compare checks a plan against what the model wants and returns the paths in the plan's order.
func (w *world) compare(p *checkpoint.Plan, want map[string]string, what string) (order []string) {
	if len(p.Items) != len(want) {
		w.t.Errorf("%s: plan of %v for %d paths", what, wants(p), len(want))
		return nil
	}
	for _, it := range p.Items {
		b, ok := want[it.Path]
		if !ok || (b == "-") != (it.Want.Kind == checkpoint.Absent) || (b != "-" && (it.Want.Hash != textSum(b) || !it.Stored)) {
			w.t.Errorf("%s: %s should become %q, the plan says %+v", what, it.Path, b, it.Want)
			return nil
		}
		now := absent
		if b := w.get(it.Path); b != "-" {
			now = textFile(b)
		}
		if !it.Expects(now) {
			w.t.Errorf("%s: the disk of %s is as the last operation left it, but the plan expects %+v", what, it.Path, it.Head)
			return nil
		}
		order = append(order, it.Path)
	}
	return order
}

func (w *world) undo(who checkpoint.Scope, redo bool) {
	st := w.stack(who)
	from, to, plan := &st.done, &st.undone, w.s.Undo
	if redo {
		from, to, plan = &st.undone, &st.done, w.s.Redo
	}
	p, err := plan(ctx, who, nil)
	if len(*from) == 0 {
		if !errors.Is(err, checkpoint.ErrNothing) {
			w.t.Errorf("undo (redo: %v) with nothing left: %+v %v", redo, p, err)
		}
		return
	}
	if err != nil {
		w.t.Errorf("undo (redo: %v): %v", redo, err)
		return
	}
	top := (*from)[len(*from)-1]
	d := w.log[top]
	want := map[string]string{}
	for _, path := range d.paths {
		want[path] = "-"
		if b, ok := d.before[path]; ok {
			want[path] = b
		}
	}
	order := w.compare(p, want, fmt.Sprintf("undo (redo: %v)", redo))
	if w.t.Failed() {
		return
	}
	i := w.commit(who, checkpoint.KindRestore, want, order, p.UndoOf)
	*from = (*from)[:len(*from)-1]
	// What comes back with a redo is undone again by going to the state before the redo, which i holds; and the
	// other way round.
	*to = append(*to, i)
}
