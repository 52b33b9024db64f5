package checkpointtest

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"moltisfs/checkpoint"
)

func random(t *testing.T, s *checkpoint.DB) { Drive(t, s, 1, Rounds(400)) }

// Rounds is n, or a part of it under -short, as the race detector runs the suite.
func Rounds(n int) int {
	if testing.Short() {
		return n / 4
	}
	return n
}

// Drive drives the store with a random sequence of edits, creations, deletions, moves, restores, rewinds, undos and redos of
// two sessions over a simulated disk, and compares every plan with a model that remembers each state of the whole disk.
func Drive(t *testing.T, s *checkpoint.DB, seed int64, steps int) {
	t.Helper()
	DriveOver(t, func(int) *checkpoint.DB { return s }, seed, steps)
}

// DriveOver is Drive for a history that moves: at gives the store that has it at a step.
func DriveOver(t *testing.T, at func(step int) *checkpoint.DB, seed int64, steps int) {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewSource(seed)), disk: map[string]string{}, stacks: map[string]*stack{}}
	for i := range steps {
		w.s = at(i)
		w.step(i)
		if t.Failed() {
			t.Fatalf("at step %d of seed %d", i, seed)
		}
	}
	for i, e := range w.log {
		for path, body := range e.before {
			got, err := w.s.Content(ctx, textSum(body))
			if err != nil || string(got) != body {
				t.Fatalf("seed %d: %s before operation %d must be in the store: %v", seed, path, i, err)
			}
		}
	}
}

type world struct {
	t      *testing.T
	s      *checkpoint.DB
	rng    *rand.Rand
	disk   map[string]string // path to content; absent when not there
	log    []done
	stacks map[string]*stack
	turns  int
	runs   int64
}

// done is one operation: the disk before it, of the paths that it changed.
type done struct {
	who     checkpoint.Scope
	id      checkpoint.ID
	run     int64
	paths   []string
	before  map[string]string
	turnsAt int
}

// stack is the textbook model of undo: done operations in their order, and undos that can be taken back.
type stack struct {
	done   []int
	undone []undone
	run    int64 // whose script runs; 0: none
}

type undone struct {
	by int // the undo
	of []int
}

func (w *world) stack(who checkpoint.Scope) *stack {
	if w.stacks[who.Session] == nil {
		w.stacks[who.Session] = &stack{}
	}
	return w.stacks[who.Session]
}

// together is the newest operation that is not undone, with what else its run did, down to where the session did something else to the same
// paths in between.
func (w *world) together(who checkpoint.Scope) (group []int) {
	done := w.stack(who).done
	group = slices.Clone(done[len(done)-1:])
	var between []string
	for i := group[0] - 1; i >= 0 && w.log[group[0]].run != 0; i-- {
		d := w.log[i]
		if d.who != who {
			continue
		}
		if d.run != w.log[group[0]].run || !slices.Contains(done, i) {
			between = append(between, d.paths...)
			continue
		}
		if slices.ContainsFunc(d.paths, func(p string) bool { return slices.Contains(between, p) }) {
			break
		}
		group = append([]int{i}, group...)
	}
	return group
}

func (w *world) get(path string) string {
	if b, ok := w.disk[path]; ok {
		return b
	}
	return "-"
}

// commit saves an operation that sets paths to contents and performs it on the simulated disk.
func (w *world) commit(who checkpoint.Scope, kind string, to map[string]string, order []string, undo *checkpoint.Plan) int {
	d := done{who: who, before: map[string]string{}, turnsAt: w.turns}
	o := opBy(who, kind)
	if undo != nil {
		o.UndoOf, o.RestoreOf = undo.UndoOf, undo.RestoreOf
	} else if kind != checkpoint.KindRestore {
		if w.rng.Intn(8) > 0 { // else it is another call, while a script may run
			o.Run = w.stack(who).run
		}
		d.run = o.Run
	}
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
	i := w.commit(who, kind, to, order, nil)
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
	if st := w.stack(who); w.rng.Intn(4) == 0 { // a script begins, or goes on, or ends
		w.runs++
		st.run = []int64{0, w.runs}[w.rng.Intn(2)]
	}
	path := func() string { return fmt.Sprintf("/w/f%d", w.rng.Intn(8)) }
	switch w.rng.Intn(11) {
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
	case 10: // it is nothing to undo, and cuts off no redo
		if p := path(); w.get(p) != "-" {
			save(w.t, w.s, opBy(who, checkpoint.KindRead, textEdit(p, w.get(p), w.get(p))))
		}
	}
}

// restore goes back to before one operation, or to the beginning of a turn.
func (w *world) restore(who checkpoint.Scope) {
	r := restoreOf(who)
	var of []done
	if w.rng.Intn(2) == 0 && w.turns > 0 {
		turn := 1 + w.rng.Intn(w.turns)
		r.Turn = fmt.Sprint(turn)
		for _, d := range w.log {
			if d.who == who && d.turnsAt >= turn {
				of = append(of, d)
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
		of = []done{d}
	}
	want := before(of)
	p, err := w.s.Plan(ctx, r)
	if err != nil {
		w.t.Errorf("planning %+v: %v", r, err)
		return
	}
	if order := w.compare(p, want, fmt.Sprintf("restore %+v", r)); len(order) > 0 {
		w.mutate(who, checkpoint.KindRestore, want, order)
	}
}

// before gives the contents of all paths of ops before the oldest of them, "-" for absence.
func before(ops []done) map[string]string {
	out := map[string]string{}
	for _, d := range slices.Backward(ops) {
		for _, p := range d.paths {
			out[p] = "-"
			if b, ok := d.before[p]; ok {
				out[p] = b
			}
		}
	}
	return out
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
	what, plan := "undo", w.s.Undo
	var of []int
	if redo {
		what, plan = "redo", w.s.Redo
		if n := len(st.undone); n > 0 {
			of = []int{st.undone[n-1].by}
		}
	} else if len(st.done) > 0 {
		of = w.together(who)
	}
	p, err := plan(ctx, who)
	if len(of) == 0 {
		if !errors.Is(err, checkpoint.ErrNothing) {
			w.t.Errorf("%s with nothing left: %+v %v", what, p, err)
		}
		return
	}
	if err != nil {
		w.t.Errorf("%s: %v", what, err)
		return
	}
	ops := make([]done, len(of))
	for i, n := range of {
		ops[i] = w.log[n]
	}
	want := before(ops)
	order := w.compare(p, want, what)
	if oldest, newest := ops[0].id, ops[len(ops)-1].id; p.UndoOf != newest || len(of) > 1 && p.RestoreOf != oldest || len(of) == 1 && p.RestoreOf != "" {
		w.t.Errorf("%s takes back %s to %s, not %s to %s", what, p.RestoreOf, p.UndoOf, oldest, newest)
	}
	if w.t.Failed() {
		return
	}
	w.stack(who).run *= int64(w.rng.Intn(2)) // a script may go on meanwhile
	i := w.commit(who, checkpoint.KindRestore, want, order, p)
	if redo {
		st.done = append(st.done, st.undone[len(st.undone)-1].of...)
		slices.Sort(st.done)
		st.undone = st.undone[:len(st.undone)-1]
		return
	}
	st.done = slices.DeleteFunc(st.done, func(i int) bool { return slices.Contains(of, i) })
	st.undone = append(st.undone, undone{i, of})
}
