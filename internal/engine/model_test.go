package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var modelSteps = flag.Int("steps", 2000, "steps of TestHistoryAgainstModel; a million in a soak")

// model is what the history should be, kept in the simplest way: all operations in a list, two stacks a session.
type model struct {
	disk map[string]string // path to content; no key: absent
	ops  []*modelOp
	undo map[string][]*modelOp
	redo map[string][]*modelOp
	turn map[string]int // turn to the number of operations before it
}

type modelOp struct {
	n        int
	id       checkpoint.ID
	session  string
	external bool
	before   map[string]string // absent is "-"
	after    map[string]string
	takes    *modelOp // an undo: what it takes back
}

func (m *model) at(p string) string {
	if c, ok := m.disk[p]; ok {
		return c
	}
	return "-"
}

func (m *model) set(p, c string) {
	if c == "-" {
		delete(m.disk, p)
	} else {
		m.disk[p] = c
	}
}

func (m *model) head(p string) *modelOp {
	for _, o := range slices.Backward(m.ops) {
		if _, ok := o.after[p]; ok {
			return o
		}
	}
	return nil
}

// apply records that session makes the paths of want so. nil: nothing had to be done.
func (m *model) apply(session string, want map[string]string) *modelOp {
	o := &modelOp{n: len(m.ops), session: session, before: map[string]string{}, after: map[string]string{}}
	for p, c := range want {
		if m.at(p) != c {
			o.before[p], o.after[p] = m.at(p), c
			m.set(p, c)
		}
	}
	if len(o.after) == 0 {
		return nil
	}
	m.ops = append(m.ops, o)
	return o
}

// nothing is an operation that changed no file.
func (m *model) nothing(session string) *modelOp {
	return &modelOp{n: len(m.ops) - 1, session: session, before: map[string]string{}, after: map[string]string{}}
}

// conflict says whether p may not become want because of what happened after operation n.
func (m *model) conflict(session, p, want string, n int) bool {
	if m.at(p) == want {
		return false
	}
	if m.head(p).after[p] != m.at(p) {
		return true
	}
	for _, o := range m.ops[n+1:] {
		if _, ok := o.after[p]; ok && (o.external || o.session != session) {
			return true
		}
	}
	return false
}

// outside puts on record what session finds changed at the beginning of a turn.
func (m *model) outside(session string) {
	known := map[string]bool{}
	for _, o := range m.ops {
		for p := range o.after {
			known[p] = known[p] || o.session == session
		}
	}
	e := &modelOp{n: len(m.ops), session: session, external: true, before: map[string]string{}, after: map[string]string{}}
	for p, ok := range known {
		if was := m.head(p).after[p]; ok && was != m.at(p) {
			e.before[p], e.after[p] = was, m.at(p)
		}
	}
	if len(e.after) > 0 {
		m.ops = append(m.ops, e)
	}
}

// Random histories of two sessions and an outsider, compared with the model after each step: writes, deletions, restores of any checkpoint,
// rewinds, undo and redo under every rule for conflicts, edits behind the tools' back, restarts.
func TestHistoryAgainstModel(t *testing.T) {
	const perTree = 250
	for from := 0; from < *modelSteps; from += perTree {
		if !modelRun(t, int64(from), min(perTree, *modelSteps-from)) {
			return
		}
	}
}

func modelRun(t *testing.T, seed int64, steps int) bool {
	rng := rand.New(rand.NewSource(seed))
	x := grow(t, nil)
	defer func() { os.RemoveAll(filepath.Dir(x.ws)) }()
	m := &model{disk: map[string]string{}, undo: map[string][]*modelOp{}, redo: map[string][]*modelOp{}, turn: map[string]int{}}
	var paths []string
	for _, name := range []string{"a", "b", "d/a", "d/e/a", "d/e/b"} {
		paths = append(paths, x.ws+"/"+name)
	}
	turns, last := 0, map[string]string{}
	var log []string
	for range steps {
		session := []string{"s", "s", "u"}[rng.Intn(3)]
		c := x.call(session)
		c.Turn = last[session]
		p := paths[rng.Intn(len(paths))]
		how := []string{"", engine.OnConflictSkip, engine.OnConflictForce}[rng.Intn(3)]
		opt := engine.RestoreOptions{OnConflict: how}
		var what string
		var err error
		var id string
		var o *modelOp
		wantErr := false
		switch k := rng.Intn(20); {
		case k < 7:
			content := fmt.Sprintf("%d\n", rng.Intn(4))
			what = "write " + content[:1]
			m2 := engine.Mutation{Paths: []string{p}, CreateParents: true, Blind: true, Next: func(ts []*engine.Target) error {
				ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
				return nil
			}}
			var done *engine.Done
			if done, err = x.Mutate(ctx, c, m2); err == nil {
				id = done.Checkpoint
			}
			if o = m.apply(session, map[string]string{p: content}); o != nil {
				m.undo[session], m.redo[session] = append(m.undo[session], o), nil
			}
		case k < 9:
			what = "delete"
			wantErr = m.at(p) == "-"
			var done *engine.Done
			if done, err = x.Delete(ctx, c, p, engine.DeleteOptions{}); err == nil {
				id = done.Checkpoint
			}
			if !wantErr {
				o = m.apply(session, map[string]string{p: "-"})
				m.undo[session], m.redo[session] = append(m.undo[session], o), nil
			}
		case k < 11:
			what = "outside"
			if rng.Intn(3) == 0 {
				os.Remove(p)
				m.set(p, "-")
			} else {
				content := fmt.Sprintf("%d\n", rng.Intn(4))
				// With the mode that the tools' new files have: the model knows nothing of modes.
				if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o777), os.WriteFile(p, []byte(content), 0o666)); err != nil {
					t.Fatal(err)
				}
				m.set(p, content)
			}
		case k < 13:
			turns++
			c.Turn = fmt.Sprint("t", turns)
			what = "turn " + c.Turn
			last[session], m.turn[c.Turn+session] = c.Turn, len(m.ops)
			x.BeginTurn(ctx, c)
			m.outside(session)
		case k < 15 && len(m.ops) > 0:
			of := m.ops[rng.Intn(len(m.ops))]
			if of.external { // its id is not known to the model
				continue
			}
			what = fmt.Sprintf("restore %s %q", of.id, how)
			var r *engine.Restored
			if r, err = x.Restore(ctx, c, checkpoint.Restore{ID: of.id}, opt); err == nil {
				id = r.Checkpoint
			}
			if wantErr = of.session != session; !wantErr {
				wantErr, o = m.restore(session, of.before, func(string) int { return of.n }, how)
			}
			if o == nil && id != "" { // it took empty directories away, which the model knows nothing of
				o = m.nothing(session)
			}
			if o != nil {
				m.undo[session], m.redo[session] = append(m.undo[session], o), nil
			}
		case k < 16 && last[session] != "":
			name := fmt.Sprint("t", 1+rng.Intn(turns))
			start, ok := m.turn[name+session]
			what = fmt.Sprintf("rewind to %s %q", name, how)
			var r *engine.Restored
			if r, err = x.Restore(ctx, c, checkpoint.Restore{Turn: name}, opt); err == nil {
				id = r.Checkpoint
			}
			if wantErr = !ok; ok {
				want, since := map[string]string{}, map[string]int{}
				for _, op := range m.ops[start:] {
					for q, b := range op.before {
						if _, seen := want[q]; !seen && op.session == session && !op.external {
							want[q], since[q] = b, op.n
						}
					}
				}
				wantErr, o = m.restore(session, want, func(q string) int { return since[q] }, how)
			}
			if o == nil && id != "" { // it took empty directories away, which the model knows nothing of
				o = m.nothing(session)
			}
			if o != nil {
				m.undo[session], m.redo[session] = append(m.undo[session], o), nil
			}
		case k < 19:
			if how == engine.OnConflictSkip {
				opt.OnConflict, how = "", ""
			}
			from, to, name := m.undo, m.redo, "undo"
			carry := x.Undo
			if k == 18 {
				from, to, name, carry = m.redo, m.undo, "redo", x.Redo
			}
			what = fmt.Sprintf("%s %q", name, how)
			var r *engine.Restored
			if r, err = carry(ctx, c, opt); err == nil {
				id = r.Checkpoint
			}
			n := len(from[session])
			if wantErr = n == 0; wantErr {
				break
			}
			of := from[session][n-1]
			if wantErr, o = m.restore(session, of.before, func(string) int { return of.n }, how); wantErr {
				break
			}
			from[session] = from[session][:n-1]
			back := of.takes // a redo puts the change itself back
			if k != 18 {
				if back = o; back == nil { // it was so already; that is walked over
					back = m.nothing(session)
				}
				back.takes = of
			}
			to[session] = append(to[session], back)
		default:
			what = "restart"
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x.open()
		}
		if o != nil {
			o.id = checkpoint.ID(id)
		}
		log = append(log, fmt.Sprintf("%s %s %s -> %v (%s)", session, what, p[len(x.ws):], err, id))
		bad := ""
		if (err != nil) != wantErr {
			bad = fmt.Sprintf("error %v, and an error is expected: %v", err, wantErr)
		} else if o != nil && id == "" {
			bad = "changed without a checkpoint"
		}
		for _, q := range paths {
			b, err := os.ReadFile(q)
			got := string(b)
			if errors.Is(err, os.ErrNotExist) {
				got = "-"
			} else if err != nil {
				t.Fatal(err)
			}
			if got != m.at(q) {
				bad += fmt.Sprintf("; %s holds %q, want %q", q[len(x.ws):], got, m.at(q))
			}
		}
		if bad != "" {
			for _, l := range log[max(0, len(log)-40):] {
				t.Log(l)
			}
			t.Errorf("seed %d, step %d: %s", seed, len(log), bad)
			return false
		}
	}
	return true
}

// restore is what a restore to want has to do: fails says that it is refused.
func (m *model) restore(session string, want map[string]string, since func(string) int, how string) (fails bool, o *modelOp) {
	todo := map[string]string{}
	for p, c := range want {
		if m.conflict(session, p, c, since(p)) && how != engine.OnConflictForce {
			if how != engine.OnConflictSkip {
				return true, nil
			}
			continue
		}
		todo[p] = c
	}
	return false, m.apply(session, todo)
}
