package engine_test

import (
	"maps"
	"slices"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// model is what the history should be, kept in the simplest way: all operations in a list, two stacks a session, the trash as a list. A content is
// three digits, one for each of three lines that are far apart; "-" is absence. The path treePath stands for a tree that the store can't
// hold, so that it is moved as a whole; its only content is treeContent.
type model struct {
	disk  map[string]string // no key: absent
	ops   []*modelOp
	undo  map[string][]*modelOp
	redo  map[string][]*modelOp
	turn  map[string]int // turn and session to the number of operations before it
	trash []*modelEntry
	born  int // how many operations there were before the tree that is there was made
	tree  int // which tree that is
	trees int // how many there were
}

const (
	treePath    = "tree"
	treeContent = "T"
)

type modelOp struct {
	n        int
	id       checkpoint.ID
	session  string
	external bool
	before   map[string]string
	after    map[string]string
	run      int64      // of the script that made it
	takes    []*modelOp // an undo: what it takes back
	born     int        // of the tree that it moved
	tree     int        // which one that is
}

// modelEntry is the tree that one operation put into the trash.
type modelEntry struct {
	of   *modelOp
	path string
}

func newModel() *model {
	return &model{disk: map[string]string{}, undo: map[string][]*modelOp{}, redo: map[string][]*modelOp{}, turn: map[string]int{}}
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
			if p == treePath && c == "-" {
				o.born, o.tree = m.born, m.tree
			}
		}
	}
	if len(o.after) == 0 {
		return nil
	}
	m.ops = append(m.ops, o)
	return o
}

// did puts an ordinary change on the stack of its session.
func (m *model) did(o *modelOp) {
	if o != nil {
		m.undo[o.session], m.redo[o.session] = append(m.undo[o.session], o), nil
	}
}

// newest is what an undo takes back: the last change of the session, with all before it that its run made.
func (m *model) newest(session string) []*modelOp {
	all := m.undo[session]
	i := len(all) - 1
	for i > 0 && all[i].run != 0 && all[i-1].run == all[i].run {
		i--
	}
	return slices.Clone(all[i:])
}

// nothing is an operation that changed no file.
func (m *model) nothing(session string) *modelOp {
	return &modelOp{n: len(m.ops) - 1, session: session, before: map[string]string{}, after: map[string]string{}}
}

// own lists what the session did to p from operation n on.
func (m *model) own(session, p string, n int) (own []*modelOp) {
	for _, o := range m.ops[n:] {
		if _, ok := o.after[p]; ok && (o.n == n || !o.external && o.session == session) {
			own = append(own, o)
		}
	}
	return own
}

// others says whether anybody but the session changed p after operation n, recorded or not, so that it shows. Of the tree only what is recorded
// counts, because what the session found there is in the trash.
func (m *model) others(session, p string, n int) bool {
	own := m.own(session, p, n)
	for i, o := range own[1:] {
		recorded := slices.ContainsFunc(m.ops[own[i].n+1:o.n], func(o *modelOp) bool { _, ok := o.after[p]; return ok })
		if o.before[p] != own[i].after[p] && (recorded || p != treePath) {
			return true
		}
	}
	return m.head(p).after[p] != own[len(own)-1].after[p]
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
		if was := m.head(p).after[p]; ok && p != treePath && was != m.at(p) {
			e.before[p], e.after[p] = was, m.at(p)
		}
	}
	if len(e.after) > 0 {
		m.ops = append(m.ops, e)
	}
}

// modelRestore is a restore of the paths of want by session: of are the operations that it takes back, oldest first, and since is for each path the
// number of the first of them.
type modelRestore struct {
	session string
	of      []*modelOp
	want    map[string]string
	since   map[string]int
	inverse bool
	how     string // to do with conflicts
	skipped []string
}

func restoreOf(session, how string, inverse bool, of ...*modelOp) *modelRestore {
	r := &modelRestore{session: session, of: of, want: map[string]string{}, since: map[string]int{}, inverse: inverse, how: how}
	for _, o := range of {
		for p, b := range o.before {
			if _, seen := r.want[p]; !seen {
				r.want[p], r.since[p] = b, o.n
			}
		}
	}
	return r
}

// treeMoves picks the operations of ops, oldest first, that moved the tree. For a rewind it leaves out a move and the one that took the tree
// back, with those between them.
func treeMoves(ops []*modelOp, rewind bool) (moves []*modelOp) {
	for _, o := range ops {
		if _, ok := o.after[treePath]; !ok {
			continue
		}
		from := slices.IndexFunc(moves, func(m *modelOp) bool { return m.tree == o.tree && m.before[treePath] == o.after[treePath] })
		if moves = append(moves, o); rewind && from >= 0 {
			moves = moves[:from]
		}
	}
	return moves
}

// newestPiece gives the index in ops, oldest first, where the newest piece of a rewind begins: one change takes ops from there on back, in
// which the tree moves once at most. moves is of treeMoves.
func newestPiece(ops, moves []*modelOp) int {
	trees := 0
	for i, o := range slices.Backward(ops) {
		if slices.Contains(moves, o) {
			trees++
		}
		if trees > 1 {
			return i + 1
		}
	}
	return 0
}

// restore carries out r: fails says that it is refused, o is nil when nothing had to be done.
func (m *model) restore(r *modelRestore) (fails bool, o *modelOp) {
	todo := map[string]string{}
	for _, p := range slices.Sorted(maps.Keys(r.want)) {
		become, ok := m.become(r, p)
		switch {
		case ok:
			todo[p] = become
		case r.how != engine.OnConflictSkip:
			return true, nil
		default:
			r.skipped = append(r.skipped, p)
		}
	}
	back := map[string]string{}
	if todo[treePath] == treeContent && m.at(treePath) == "-" {
		back[treePath] = treeContent
	}
	o = m.apply(r.session, todo)
	if o != nil {
		if back[treePath] != "" {
			parked := m.parked(r)
			m.born, m.tree = parked.of.born, parked.of.tree
			o.born, o.tree = m.born, m.tree
			m.forget(parked)
		}
		if o.after[treePath] == "-" {
			m.trash = append(m.trash, &modelEntry{of: o, path: treePath})
		}
	}
	return false, o
}

// become says what p becomes; not ok is a conflict.
func (m *model) become(r *modelRestore, p string) (string, bool) {
	now, want := m.at(p), r.want[p]
	foreign := m.others(r.session, p, r.since[p])
	if p == treePath {
		switch {
		case foreign && r.how != engine.OnConflictForce:
			return "", false
		case want == "-":
			head := m.head(p)
			last := head.n
			if head.session != r.session { // which is nothing that this one is told of
				last = r.since[p]
			}
			return "-", now == "-" || r.how == engine.OnConflictForce || head.after[p] == now && m.born <= last
		case m.parked(r) != nil:
			return treeContent, now == "-"
		}
		// Another one in its place does not count as back.
		return treeContent, now != "-" && m.born <= r.since[p]
	}
	conflict := m.head(p).after[p] != now || foreign && !r.inverse
	last := ""
	for _, o := range r.of {
		if a, ok := o.after[p]; ok {
			last = a
		}
	}
	if now == want {
		return now, true
	}
	if conflict && r.how == engine.OnConflictMerge || r.inverse && now != last {
		if merged, ok := m.merge(r, p, foreign); ok {
			return merged, true
		}
		conflict = true
	}
	return want, !conflict || r.how == engine.OnConflictForce
}

func (m *model) merge(r *modelRestore, p string, foreign bool) (string, bool) {
	content := m.at(p)
	if content == "-" {
		return "", false
	}
	if !r.inverse && !foreign {
		return threeWay(m.head(p).after[p], content, r.want[p])
	}
	of := r.of
	if !r.inverse {
		of = m.own(r.session, p, r.since[p])
	}
	for _, o := range slices.Backward(of) {
		if b, ok := o.before[p]; ok {
			if content, ok = threeWay(o.after[p], content, b); !ok {
				return "", false
			}
		}
	}
	return content, true
}

// threeWay merges digit by digit.
func threeWay(base, ours, theirs string) (string, bool) {
	if base == "-" || theirs == "-" {
		return "", false
	}
	var out strings.Builder
	for i := range base {
		switch b, o, t := base[i], ours[i], theirs[i]; {
		case o == b:
			out.WriteByte(t)
		case t == b || o == t:
			out.WriteByte(o)
		default:
			return "", false
		}
	}
	return out.String(), true
}

// parked is the entry that a restore brings the tree back from, nil when there is none: that of the oldest operation that it takes back, else the newest.
func (m *model) parked(r *modelRestore) (found *modelEntry) {
	for _, e := range m.trash {
		if e.of.n == r.since[treePath] {
			return e
		}
		found = e
	}
	return found
}

func (m *model) forget(e *modelEntry) {
	m.trash = slices.DeleteFunc(m.trash, func(o *modelEntry) bool { return o == e })
}
