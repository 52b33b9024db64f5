package checkpoint

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Mem is a Store that keeps everything in memory and nothing for ever: for tests, and for hosts that want undo within one
// run only. It stores contents whole, knows no retention, and stops at Options.MaxBytes with *FullError.
type Mem struct {
	o Options

	mu     sync.Mutex
	closed bool
	ops    []entry // ops[i].seq == i+1
	bodies map[string][]byte
	bytes  int64
	turns  map[Scope][]memTurn
}

type memTurn struct {
	name  string
	after int64
	at    time.Time
}

var _ Store = (*Mem)(nil)

// NewMem returns an empty store. Of the options, those about durability, retention and encryption mean nothing to it.
func NewMem(o Options) (*Mem, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Mem{o: o, bodies: map[string][]byte{}, turns: map[Scope][]memTurn{}}, nil
}

func (m *Mem) lock() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	return nil
}

// Save implements Store.
func (m *Mem) Save(ctx context.Context, op Op) (Saved, error) {
	if err := ctx.Err(); err != nil {
		return Saved{}, err
	}
	skips, err := op.check(&m.o, nil)
	if err != nil {
		return Saved{}, err
	}
	if err := m.lock(); err != nil {
		return Saved{}, err
	}
	defer m.mu.Unlock()
	fresh := map[string][]byte{}
	total := m.bytes
	for i := range op.Changes {
		c := &op.Changes[i]
		if c.Trash != nil {
			return Saved{}, &BadOpError{c.Path, "this store has no trash"}
		}
		for _, b := range []struct {
			hash string
			body []byte
		}{{c.Before.Hash, c.Content}, {c.After.Hash, c.AfterContent}} {
			if b.body == nil || m.bodies[b.hash] != nil || fresh[b.hash] != nil {
				continue
			}
			fresh[b.hash] = append([]byte{}, b.body...)
			total += int64(len(b.body))
		}
	}
	if total > m.o.MaxBytes {
		return Saved{}, &FullError{total, m.o.MaxBytes}
	}
	for h, b := range fresh {
		m.bodies[h] = b
	}
	m.bytes = total
	seq := int64(len(m.ops) + 1)
	undo, _ := op.UndoOf.seq()
	c := &Checkpoint{ID: idOf(seq), Time: time.Unix(0, op.Time.UnixNano()), Tool: op.Tool, Kind: op.Kind, Principal: op.Principal,
		Session: op.Session, Turn: op.Turn, Label: op.Label}
	if op.UndoOf != "" {
		c.UndoOf = idOf(undo)
	}
	if op.RestoreOf != "" {
		of, _ := op.RestoreOf.seq()
		c.RestoreOf = idOf(of)
	}
	if op.Turn != "" {
		if k := (Scope{Principal: op.Principal, Session: op.Session}); !slices.ContainsFunc(m.turns[k], func(t memTurn) bool { return t.name == op.Turn }) {
			m.beginTurn(k, op.Turn)
		}
	}
	for _, ch := range op.Changes {
		if ch.Before.Kind == File && ch.Skipped == "" && m.bodies[ch.Before.Hash] == nil {
			ch.Skipped = skipHashOnly
			skips = append(skips, Skip{ch.Path, ch.Skipped, ch.Before.Size})
		}
		c.Changes = append(c.Changes, Recorded{Path: ch.Path, Role: ch.Role, Before: ch.Before.clone(), After: ch.After.clone(), Skipped: ch.Skipped})
	}
	m.ops = append(m.ops, entry{seq: seq, undoOf: undo, c: c})
	return Saved{ID: c.ID, Skipped: skips}, nil
}

func (s State) clone() State {
	if s.Xattrs != nil {
		x := make(map[string][]byte, len(s.Xattrs))
		for k, v := range s.Xattrs {
			x[k] = append([]byte{}, v...)
		}
		s.Xattrs = x
	}
	if len(s.Xattrs) == 0 {
		s.Xattrs = nil
	}
	if !s.ModTime.IsZero() {
		s.ModTime = time.Unix(0, s.ModTime.UnixNano())
	}
	return s
}

func (m *Mem) beginTurn(k Scope, name string) (began bool) {
	if n := len(m.turns[k]); n > 0 && m.turns[k][n-1].name == name {
		return false
	}
	m.turns[k] = append(m.turns[k], memTurn{name, int64(len(m.ops)), m.o.Now()})
	return true
}

// BeginTurn implements Store.
func (m *Mem) BeginTurn(_ context.Context, who Scope, name string) (bool, error) {
	if name == "" || len(name) > maxName {
		return false, &BadOpError{"", "a turn needs a name of reasonable length"}
	}
	if err := m.lock(); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	return m.beginTurn(Scope{Principal: who.Principal, Session: who.Session}, name), nil
}

// Settle implements Store.
func (m *Mem) Settle(_ context.Context, id ID, o Outcome) error {
	if o == Presumed || outcomeCode(o) < 0 {
		return &BadOpError{"", fmt.Sprintf("%q is no outcome", o)}
	}
	seq, err := id.seq()
	if err != nil {
		return err
	}
	if err := m.lock(); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if seq > int64(len(m.ops)) {
		if o == Committed { // DB notices no sooner
			return nil
		}
		return ErrNotFound
	}
	m.ops[seq-1].c.Outcome = o
	return nil
}

// view runs fn with the store locked.
func (m *Mem) view(fn func(h memHistory) error) error {
	if err := m.lock(); err != nil {
		return err
	}
	defer m.mu.Unlock()
	return fn(memHistory{m})
}

// Get implements Store.
func (m *Mem) Get(ctx context.Context, id ID, who Scope) (c *Checkpoint, err error) {
	err = m.view(func(h memHistory) error {
		e, err := visible(ctx, h, who, id)
		c = e.c
		return err
	})
	return c, err
}

// Plan implements Store.
func (m *Mem) Plan(ctx context.Context, r Restore) (p *Plan, err error) {
	err = m.view(func(h memHistory) error { p, err = makePlan(ctx, h, r); return err })
	return p, err
}

// Undo implements Store.
func (m *Mem) Undo(ctx context.Context, who Scope) (p *Plan, err error) {
	err = m.view(func(h memHistory) error { p, err = makeUndo(ctx, h, who, false); return err })
	return p, err
}

// Redo implements Store.
func (m *Mem) Redo(ctx context.Context, who Scope) (p *Plan, err error) {
	err = m.view(func(h memHistory) error { p, err = makeUndo(ctx, h, who, true); return err })
	return p, err
}

// Content implements Store.
func (m *Mem) Content(_ context.Context, hx string) ([]byte, error) {
	h, err := parseHash(hx)
	if err != nil {
		return nil, &BadOpError{"", err.Error()}
	}
	if err := m.lock(); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	b, ok := m.bodies[h.String()]
	if !ok {
		return nil, ErrNoContent
	}
	if sha256.Sum256(b) != h {
		return nil, &CorruptError{hx, "the hash is another one"}
	}
	return append([]byte{}, b...), nil
}

// List implements Store.
func (m *Mem) List(_ context.Context, f Filter) (Page, error) {
	p := Page{Checkpoints: []Checkpoint{}}
	at, err := parsePlace(f.Cursor)
	if err != nil {
		return Page{}, err
	}
	who, limit := f.scope(), f.limit()
	err = m.view(func(h memHistory) error {
		ops := slices.Clone(m.ops)
		if !f.AsSaved {
			slices.SortStableFunc(ops, func(a, b entry) int { return a.c.Time.Compare(b.c.Time) })
		}
		for _, e := range slices.Backward(ops) {
			// All of them count as late here: the place is that in time.
			ts := e.c.Time.UnixNano()
			past := ts > at.late || ts == at.late && e.seq >= at.lateSeq
			if f.AsSaved {
				past = e.seq >= at.seq
			}
			if past || !h.in(who, e.c) || !f.matches(e.c) {
				continue
			}
			if len(p.Checkpoints) == limit {
				p.Next = at.String()
				break
			}
			if at = (place{firstPlace.seq, ts, e.seq}); f.AsSaved {
				at = place{e.seq, firstPlace.late, firstPlace.lateSeq}
			}
			p.Checkpoints = append(p.Checkpoints, *h.copy(e).c)
		}
		return nil
	})
	return p, err
}

func (f *Filter) matches(c *Checkpoint) bool {
	if f.Turn != "" && f.Turn != c.Turn || f.Tool != "" && f.Tool != c.Tool && f.Tool != c.Kind || f.Kind != "" && f.Kind != c.Kind ||
		f.Label != "" && f.Label != c.Label || f.NoReads && c.Kind == KindRead ||
		!f.Since.IsZero() && c.Time.Before(f.Since) || !f.Until.IsZero() && !c.Time.Before(f.Until) {
		return false
	}
	path, part := f.Path == "", f.PathContains == ""
	for _, ch := range c.Changes {
		path = path || ch.Path == f.Path || slices.Contains(f.Also, ch.Path)
		part = part || strings.Contains(strings.ToLower(ch.Path), strings.ToLower(f.PathContains))
	}
	return path && part
}

// Known implements Store.
func (m *Mem) Known(ctx context.Context, who Scope) (out []Known, err error) {
	err = m.view(func(h memHistory) error {
		seen := map[string]bool{}
		for _, e := range m.ops {
			if !h.in(who, e.c) {
				continue
			}
			for _, c := range e.c.Changes {
				if seen[c.Path] {
					continue
				}
				seen[c.Path] = true
				k, err := knownOf(ctx, h, who, c.Path)
				if err != nil {
					return err
				}
				if k != nil {
					out = append(out, *k)
				}
			}
		}
		return nil
	})
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, err
}

// Close implements Store.
func (m *Mem) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// memHistory answers the planner; the store is locked.
type memHistory struct{ m *Mem }

var _ history = memHistory{}

// in is Scope.sees, with Session as a filter when AllSessions is set.
func (h memHistory) in(who Scope, c *Checkpoint) bool {
	return who.sees(c.Principal, c.Session) && (!who.AllSessions || who.Session == "" || who.Session == c.Session)
}

func (h memHistory) copy(e entry) entry {
	c := *e.c
	c.Changes = append([]Recorded(nil), c.Changes...)
	for i := range c.Changes {
		r := &c.Changes[i]
		r.Before, r.After = r.Before.clone(), r.After.clone()
		_, r.Stored = h.m.bodies[r.Before.Hash]
		_, r.AfterStored = h.m.bodies[r.After.Hash]
	}
	e.c = &c
	return e
}

func (h memHistory) entry(_ context.Context, seq int64) (entry, error) {
	if seq < 1 || seq > int64(len(h.m.ops)) {
		return entry{}, ErrNotFound
	}
	return h.copy(h.m.ops[seq-1]), nil
}

func (h memHistory) after(_ context.Context, who Scope, seq int64) (out []entry, err error) {
	for _, e := range h.m.ops {
		if e.seq > seq && h.in(who, e.c) {
			out = append(out, h.copy(e))
		}
	}
	return out, nil
}

func (h memHistory) newest(_ context.Context, who Scope, fn func(entry) bool) error {
	for i := len(h.m.ops) - 1; i >= 0; i-- {
		if e := h.m.ops[i]; h.in(who, e.c) && !fn(e) {
			break
		}
	}
	return nil
}

func (h memHistory) begun(_ context.Context, who Scope, turn string) (out []Begun, err error) {
	who.AllSessions = false
	for _, t := range h.m.turns[who] {
		if t.name != turn {
			continue
		}
		b := Begun{Time: t.at, after: t.after}
		for _, e := range h.m.ops[t.after:] {
			if h.in(who, e.c) {
				b.First, b.Time = e.c.ID, e.c.Time
				break
			}
		}
		out = append(out, b)
	}
	return out, nil
}

// Nothing is ever taken here.
func (h memHistory) lost(context.Context, Scope) (*Lost, error) { return nil, nil }

func (h memHistory) goneOf(context.Context, string) (int64, error) { return 0, nil }

func (h memHistory) sinceStart(_ context.Context, who Scope, t time.Time) (int64, error) {
	for _, e := range h.m.ops {
		if h.in(who, e.c) && !e.c.Time.Before(t) {
			return e.seq - 1, nil
		}
	}
	return 1 << 62, nil
}

func (h memHistory) labelled(_ context.Context, who Scope, label string) (out []Labelled, err error) {
	for _, e := range h.m.ops {
		if h.in(who, e.c) && e.c.Label == label {
			out = append(out, Labelled{e.c.ID, e.c.Time, e.c.Session})
		}
	}
	return out, nil
}

func (h memHistory) head(_ context.Context, who Scope, path string) (*entry, error) {
	for _, reads := range []bool{false, true} {
		for i := len(h.m.ops) - 1; i >= 0; i-- {
			e := h.m.ops[i]
			if e.c.Outcome == Aborted || (e.c.Kind == KindRead) != reads || !h.in(who, e.c) {
				continue
			}
			for _, c := range e.c.Changes {
				if c.Path == path {
					e = h.copy(e)
					return &e, nil
				}
			}
		}
	}
	return nil, nil
}

func (h memHistory) lineage(_ context.Context, path string, seq int64) (out []entry, err error) {
	for _, e := range h.m.ops {
		if e.seq < seq || e.c.Outcome == Aborted || e.c.Kind == KindRead {
			continue
		}
		for i := range e.c.Changes {
			if e.c.Changes[i].Path == path {
				e = h.copy(e)
				e.c.Changes = e.c.Changes[i : i+1]
				out = append(out, e)
				break
			}
		}
	}
	return out, nil
}

// underWay of what nobody else can say anything about: it may be.
func (h memHistory) underWay(int64) bool { return true }

func (h memHistory) whole(context.Context, int64, int64) (bool, error) { return true, nil }

func (h memHistory) movedAway(_ context.Context, path string, after, before int64) (bool, error) {
	for _, e := range h.m.ops {
		for _, c := range e.c.Changes {
			if e.seq > after && e.seq < before && e.c.Outcome != Aborted && c.Role == RoleTree && path != c.Path && within(path, []string{c.Path}) {
				return true, nil
			}
		}
	}
	return false, nil
}
