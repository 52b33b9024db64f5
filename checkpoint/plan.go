package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

// Restore picks the paths that should be as they were. Exactly one of ID, Turn, Since and Label is set.
//
//   - ID, Mode "state": every path of that checkpoint becomes what it was before it.
//   - ID, Mode "inverse": the one operation is taken out and the later ones stay; the caller merges
//     with Base as ancestor.
//   - Turn, Since, Label: a rewind. Every path that this session changed from then on becomes what
//     it was when the session first changed it. Changes of others are no part of it.
type Restore struct {
	ID    ID
	Turn  string // of several turns of one name none is meant: *AmbiguousTurnError
	Since time.Time
	Label string // of several checkpoints with it none is meant: *AmbiguousLabelError

	// Partial allows a rewind to a point after which retention took checkpoints. Each path goes back
	// as far as the store can, for itself: the files were never in that state together, and Plan.Lost
	// says so. Without it such a rewind is a *PartialError.
	Partial bool

	// Until, of a rewind, is the newest operation that counts; "" for all. See Plan.More.
	Until ID
	// Look is set where nothing is to be changed by the plan: then a path that was a file or link at one time and
	// a directory at another does not part it.
	Look bool

	Paths []string // only these; a directory stands for everything below it
	Mode  string   // "state" (also ""), "inverse"

	Principal, Session string
	AllSessions        bool
}

func (r Restore) scope() Scope { return Scope{r.Principal, r.Session, r.AllSessions} }

// Modes of a Restore.
const (
	ModeState   = "state"
	ModeInverse = "inverse"
)

// Plan lists the changes that carry out a Restore. None has been made.
type Plan struct {
	Mode   string
	Undoes []ID // the operations that it takes back, oldest first
	// UndoOf and RestoreOf go into the Op that carries the plan out. UndoOf is that of an Undo or
	// Redo: the newest operation that it takes back. An undo of a run has both, RestoreOf is the oldest.
	UndoOf, RestoreOf ID
	// Lost is set when the plan is not whole: see Restore.Partial, and DB.Undo.
	Lost *Lost
	// More is set where not all can be one change: a tree that went or came back as a whole, and what was
	// changed at, above or below it; or a path that was a file or link at one time and a directory at another.
	// The plan has the newest of it. More is the newest operation that it leaves, which is planned as
	// Restore.Until, or by the next Undo.
	More ID
	// Outside are the checkpoints of kind KindExternal since the point of a rewind, oldest first, that
	// left some path as it is now, or as the rewind leaves it. They are no part of it; each can be
	// restored by itself.
	Outside []ID
	// Items in the order to apply them: directories from the top down, then files and links, then what
	// has to go, from the bottom up.
	Items []Item
}

// Item is one path of a Plan.
type Item struct {
	Path, Role string
	Want       State  // the path should become this; for ModeInverse "theirs", as it was before
	Stored     bool   // content of Want is in the store (always true where there is none to store)
	Missing    string // why not

	// Base is the state that the operation left behind: the ancestor of the three-way merge in
	// ModeInverse, where the file on the disk is "ours". BaseStored is false where the store need not
	// have its content, because the disk has.
	Base       State
	BaseStored bool

	// Head is the last recorded state of the path by anybody. A disk that is not in it was changed
	// outside.
	Head State
	// HeadBefore is the state that the newest operation found. When HeadSettled is false that operation may
	// not have taken place.
	HeadBefore  State
	HeadSettled bool
	HeadID      ID   // "" when it belongs to another session
	HeadLost    bool // retention took what came after Head: nobody knows what the path became last
	HeadSeen    bool // the checkpoint that Head is from, and its content, may be shown
	Grown       bool `json:",omitempty"` // by an operation of the plan, whose kind is KindAppend
	Foreign     bool // somebody else changed the path since then, and it shows: see trace
	// Own, for ModeState, are all changes of the path by this session from that operation on,
	// oldest first.
	Own         []ID
	meta        ours
	Moved            // by the first of the operations that the plan takes back
	DropIfEmpty bool // a directory that was only made to hold something: remove it if it is empty
}

// Expects reports whether the disk may be in state s without anybody outside having changed it. The
// last recorded operation left that behind; or it found that, and nobody ever said whether it took
// place.
func (it *Item) Expects(s State) bool {
	return s.Same(it.Head) || (!it.HeadSettled && s.Same(it.HeadBefore))
}

// entry is one checkpoint as the planner sees it.
type entry struct {
	seq               int64
	undoOf, restoreOf int64
	run               int64 // below 0: retention took some of it
	undone            bool  // an undo of it holds
	c                 *Checkpoint
}

// change is the one of path; the zero Recorded when there is none.
func (e entry) change(path string) Recorded {
	for _, c := range e.c.Changes {
		if c.Path == path {
			return c
		}
	}
	return Recorded{}
}

func (e entry) changes() bool { return e.c.Outcome != Aborted && mutates(e.c.Kind) }

// mutates reports whether operations of this kind change something on behalf of a session.
func mutates(kind string) bool {
	return kind != KindExternal && kind != KindRead && kind != KindManual
}

// Plan answers what a Restore has to do. Nothing is changed.
func (d *DB) Plan(ctx context.Context, r Restore) (p *Plan, err error) {
	err = d.planning(ctx, func(h *history) error {
		p, err = makePlan(ctx, h, r)
		return err
	})
	return p, err
}

// afterAll is above the number of any checkpoint.
const afterAll = math.MaxInt64

// anybody is the scope of what the planner compares with, and shows nobody.
var anybody = Scope{AllSessions: true}

func makePlan(ctx context.Context, h *history, r Restore) (*Plan, error) {
	given := 0
	for _, set := range []bool{r.ID != "", r.Turn != "", !r.Since.IsZero(), r.Label != ""} {
		if set {
			given++
		}
	}
	if given != 1 {
		return nil, &BadOpError{"", "exactly one of id, turn, since and label must be given"}
	}
	for _, p := range r.Paths {
		if p == "" { // it would be the beginning of all
			return nil, &BadOpError{"", "one of the paths is empty"}
		}
	}
	mode := cmp.Or(r.Mode, ModeState)
	if mode != ModeState && mode != ModeInverse {
		return nil, &BadOpError{"", fmt.Sprintf("mode %q is neither state nor inverse", mode)}
	}
	if mode == ModeInverse && r.ID == "" {
		return nil, &BadOpError{"", "inverse needs an id"}
	}
	who := r.scope()
	var ops []entry
	plan := &Plan{Mode: mode}
	var err error
	if r.ID != "" {
		e, err := visible(ctx, h, who, r.ID)
		if err != nil {
			return nil, err
		}
		ops, plan.RestoreOf = []entry{e}, e.c.ID
	} else {
		var start int64
		switch {
		case r.Turn != "":
			start, err = h.turnStart(ctx, who, r.Turn)
		case r.Label != "":
			start, err = h.labelStart(ctx, who, r.Label)
		default:
			start, err = h.sinceStart(ctx, who, r.Since)
		}
		if err == nil {
			plan.Lost, err = r.lostSince(ctx, h, start)
		}
		if err != nil {
			return nil, err
		}
		all, err := h.those(ctx, who, "op.seq > ?", start)
		if err != nil {
			return nil, err
		}
		until := int64(afterAll)
		if r.Until != "" {
			e, err := visible(ctx, h, who, r.Until)
			if err != nil {
				return nil, err
			}
			until = e.seq
		}
		for _, e := range all {
			if e.changes() {
				ops = append(ops, e)
			}
		}
		if plan.Outside, err = outside(ctx, h, all, r.Paths); err != nil {
			return nil, err
		}
		if len(ops) > 0 {
			plan.RestoreOf = ops[0].c.ID
		}
		ops = slices.DeleteFunc(unmoved(ops), func(e entry) bool { return e.seq > until })
		ops = plan.cut(ops, r.Paths, r.Look)
	}
	return plan, plan.fill(ctx, h, who, ops, r.Paths)
}

// A footprint has the paths of operations: true for a path of one, false for a directory above one.
type footprint map[string]bool

func (f footprint) add(path string) {
	f[path] = true
	for dir := above(path); dir != ""; dir = above(dir) {
		if _, known := f[dir]; known {
			return
		}
		f[dir] = false
	}
}

// touches says that a path is at, above or below one of f.
func (f footprint) touches(path string) bool {
	_, is := f[path]
	return is || f.holds(path)
}

// holds says that a path is below one of f.
func (f footprint) holds(path string) bool {
	for dir := above(path); dir != ""; dir = above(dir) {
		if f[dir] {
			return true
		}
	}
	return false
}

// was says that the path is of one of these kinds before or after the change.
func (c *Recorded) was(kinds ...Kind) bool {
	return slices.Contains(kinds, c.Before.kind()) || slices.Contains(kinds, c.After.kind())
}

// cut keeps of ops, oldest first, the newest that one change can take back, and notes in the plan what it
// leaves: see Plan.More. only are the paths that count; look is Restore.Look.
func (p *Plan) cut(ops []entry, only []string, look bool) []entry {
	all, trees, leaves, dirs := footprint{}, footprint{}, footprint{}, footprint{}
	roles := map[string]string{}
	for i, e := range slices.Backward(ops) {
		if slices.ContainsFunc(e.c.Changes, func(c Recorded) bool {
			role, known := roles[c.Path]
			_, isDir := dirs[c.Path]
			return within(c.Path, only) && (trees.touches(c.Path) || c.Role == RoleTree && all.touches(c.Path) ||
				known && (role == RoleAppended) != (c.Role == RoleAppended) ||
				!look && (c.was(File, Symlink) && isDir || c.was(Dir) && leaves[c.Path] || leaves.holds(c.Path)))
		}) {
			p.More = e.c.ID
			return ops[i+1:]
		}
		for _, c := range e.c.Changes {
			if !within(c.Path, only) {
				continue
			}
			roles[c.Path] = c.Role
			if all.add(c.Path); c.Role == RoleTree {
				trees.add(c.Path)
			}
			if dirs.add(above(c.Path)); c.was(Dir) {
				dirs.add(c.Path)
			}
			if c.was(File, Symlink) {
				leaves[c.Path] = true
			}
		}
	}
	return ops
}

// unmoved takes out of ops, oldest first, each tree that went and came back, or the reverse, with all that went and
// came at its path in between, while nothing was changed above or below it. What others had put there and went to the
// trash stays in the trash: the path is as it was.
func unmoved(ops []entry) []entry {
	moves := map[string][]int{} // by path of a tree: the operations that moved one, and are not taken out
	out := slices.Clone(ops)
	for i := range out {
		for _, c := range out[i].c.Changes {
			at := moves[c.Path]
			one := footprint{}
			one.add(c.Path)
			maps.DeleteFunc(moves, func(tree string, _ []int) bool { return one.touches(tree) })
			if c.Role != RoleTree {
				continue
			}
			from := slices.IndexFunc(at, func(i int) bool {
				was := out[i].change(c.Path)
				return was.Identity == c.Identity && was.Before.kind() == c.After.kind() && was.After.kind() == c.Before.kind()
			})
			at = append(at, i)
			if from >= 0 {
				for _, i := range at[from:] {
					e := *out[i].c
					e.Changes = slices.DeleteFunc(slices.Clone(e.Changes), func(o Recorded) bool { return o.Path == c.Path })
					out[i].c = &e
				}
				at = at[:from]
			}
			moves[c.Path] = at
		}
	}
	return out
}

// labelStart is the number before the one checkpoint that carries the label.
func (h *history) labelStart(ctx context.Context, who Scope, label string) (int64, error) {
	w, err := h.scope(ctx, who, "+op.session")
	if err != nil {
		return 0, err
	}
	w.and("op.label = ?", label)
	es, err := h.entries(ctx, "op"+opJoins+w.sql()+" ORDER BY op.seq", w.args...)
	switch {
	case err != nil:
		return 0, err
	case len(es) == 0:
		return 0, ErrNotFound
	case len(es) == 1:
		return es[0].seq - 1, nil
	}
	many := &AmbiguousLabelError{Label: label}
	for _, e := range es {
		many.Carry = append(many.Carry, Labelled{e.c.ID, e.c.Time, e.c.Session})
	}
	return 0, many
}

// sinceStart is the number before the first checkpoint at or after t.
func (h *history) sinceStart(ctx context.Context, who Scope, t time.Time) (int64, error) {
	w, err := h.scope(ctx, who, "+op.session")
	if err != nil {
		return 0, err
	}
	w.and("op.ts >= ?", clampNs(t))
	const before = "SELECT coalesce(min(+op.seq)-1, 4611686018427387904) FROM op"
	return one[int64](ctx, h.q, before+w.sql(), w.args...)
}

// fill turns operations (oldest first) into items: for each path the first pre-state counts.
func (p *Plan) fill(ctx context.Context, h *history, who Scope, ops []entry, only []string) error {
	at := map[string]int{}
	var firsts []entry // of each item the first operation
	for _, e := range ops {
		touched := false
		for _, c := range e.c.Changes {
			if !within(c.Path, only) {
				continue
			}
			touched = true
			if i, ok := at[c.Path]; ok {
				p.Items[i].Grown = p.Items[i].Grown || e.c.Kind == KindAppend
				p.Items[i].Base, p.Items[i].BaseStored = c.After, c.AfterStored
				continue
			}
			at[c.Path] = len(p.Items)
			firsts = append(firsts, e)
			p.Items = append(p.Items, Item{
				Path: c.Path, Role: c.Role, Want: c.Before, Stored: c.Stored, Missing: c.Skipped,
				Base: c.After, BaseStored: c.AfterStored, Moved: c.Moved,
				DropIfEmpty: c.Role == RoleParent && c.Before.kind() == Absent, Grown: e.c.Kind == KindAppend,
			})
		}
		if touched {
			p.Undoes = append(p.Undoes, e.c.ID)
		}
	}
	for i := range p.Items {
		it := &p.Items[i]
		if it.Want.kind() != File {
			it.Stored, it.Missing = true, ""
		} else if !it.Stored && it.Missing == "" {
			it.Missing = "not_stored"
		}
		if err := it.follow(ctx, h, who, firsts[i]); err != nil {
			return err
		}
	}
	sort.SliceStable(p.Items, func(i, j int) bool {
		a, b := &p.Items[i], &p.Items[j]
		if ra, rb := a.rank(), b.rank(); ra != rb {
			return ra < rb
		}
		if a.Want.kind() == Absent {
			return a.Path > b.Path // a child sorts after its parent, so this takes children first
		}
		return a.Path < b.Path
	})
	return nil
}

// follow finds what became of the path since first, the first operation that the plan takes back, and who may see it.
func (it *Item) follow(ctx context.Context, h *history, who Scope, first entry) error {
	moves, err := h.moves(ctx, it.Path)
	if err != nil {
		return err
	}
	line, err := h.lineage(ctx, it.Path, first.seq)
	if err != nil {
		return err
	}
	head, away, err := h.headAt(ctx, it.Path, line, moves)
	if err != nil {
		return err
	}
	it.Head, it.HeadBefore, it.HeadSettled, it.HeadSeen = it.Want, it.Want, true, true // the only operations on it were aborted
	if head != nil {
		if err := it.trace(ctx, h, line, first, moves); err != nil {
			return err
		}
		gone, err := h.goneOf(ctx, it.Path)
		if err != nil {
			return err
		}
		if head.c.Principal == first.c.Principal && head.c.Session == first.c.Session {
			it.HeadID = head.c.ID
		}
		c := head.change(it.Path)
		it.Head, it.HeadBefore, it.HeadSettled = c.After, c.Before, !h.open[head.seq]
		it.HeadLost, it.HeadSeen = gone > head.seq, who.sees(head.c.Principal, head.c.Session)
	}
	if away {
		it.Head, it.HeadBefore, it.HeadSettled = State{Kind: Absent}, State{Kind: Absent}, true
	}
	return nil
}

// trace goes along line, the operations on the path from first on, the oldest first. Say the session left "b" there,
// and its next change found "c": then somebody else was at it. That is another session, whose
// changes are recorded, or somebody outside, of whom only the gap is. The same holds when the
// newest state of all is not the one that the session left last. Changes that others made and took back do not
// count.
func (it *Item) trace(ctx context.Context, h *history, line []entry, first entry, moves []treeMove) (err error) {
	var last *entry // of the session
	others := false // recorded since then
	for i := range line {
		e := &line[i]
		if e.seq != first.seq && (e.c.Kind == KindExternal ||
			e.c.Principal != first.c.Principal || e.c.Session != first.c.Session) {
			others = true
			continue
		}
		it.Own = append(it.Own, e.c.ID)
		if last != nil && !it.Foreign {
			if it.Foreign, err = gap(ctx, h, last, e, others, moves); err != nil {
				return err
			}
		}
		last, others = e, false
		it.meta.note(&e.c.Changes[0])
	}
	if others && last != nil &&
		!line[len(line)-1].c.Changes[0].After.Same(last.c.Changes[0].After) {
		it.Foreign = true
	}
	return nil
}

// gap reports whether somebody else's change lies between two changes of one session. others says
// that one is recorded; then what can't be told counts as changed.
func gap(ctx context.Context, h *history, a, b *entry, others bool, moves []treeMove) (bool, error) {
	left, found := &a.c.Changes[0], &b.c.Changes[0]
	if left.After.Same(found.Before) {
		return false, nil
	}
	if h.open[a.seq] && left.Before.Same(found.Before) {
		return false, nil // it may never have taken place
	}
	if others {
		return true, nil
	}
	if left.After.maybe(found.Before) || found.Role == RoleTree {
		return false, nil // a tree that is moved is in the trash: nothing of it is overwritten
	}
	if slices.ContainsFunc(moves, func(m treeMove) bool { return a.seq < m.seq && m.seq < b.seq }) {
		return false, nil
	}
	// The checkpoints that retention took may hold a change of this session. Numbers are given out without gaps.
	n, err := one[int64](ctx, h.q, "SELECT count(*) FROM op WHERE seq>? AND seq<?", a.seq, b.seq)
	return n == b.seq-a.seq-1, err
}

// maybe reports whether s and o can be the same, as far as they are known. The store has no hash of
// a file that was purged or moved as a whole, and no target of such a link.
func (s State) maybe(o State) bool {
	if s.kind() != o.kind() {
		return false
	}
	switch s.kind() {
	case File:
		return (s.Hash == "" || o.Hash == "") && s.Size == o.Size
	case Symlink:
		return s.Target == "" || o.Target == ""
	}
	return true
}

func (it *Item) rank() int {
	switch {
	case it.Want.kind() == Dir:
		return 0
	case it.DropIfEmpty:
		return 3
	case it.Want.kind() == Absent:
		return 2
	}
	return 1
}

// within reports whether path is one of only, or below one; an empty list holds everything.
func within(path string, only []string) bool {
	for _, o := range only {
		dir := strings.TrimRight(o, "/\\")
		if path == o || strings.HasPrefix(path, dir+"/") || strings.HasPrefix(path, dir+"\\") {
			return true
		}
	}
	return len(only) == 0
}

// visible finds the checkpoint id if who may see it.
func visible(ctx context.Context, h *history, who Scope, id ID) (entry, error) {
	id, err := ParseID(string(id))
	if err != nil {
		return entry{}, err
	}
	e, err := h.entry(ctx, "id", id)
	if err != nil {
		return entry{}, err
	}
	if !who.sees(e.c.Principal, e.c.Session) {
		return entry{}, ErrNotFound
	}
	return e, nil
}

// outside picks the checkpoints for Plan.Outside out of all, the ones that a rewind looks at.
func outside(ctx context.Context, h *history, all []entry, only []string) (out []ID, err error) {
	// The first change of a path by the session, and the last one from outside before that.
	type own struct{ external, first *entry }
	paths := map[string]own{}
	for i := range all {
		e := &all[i]
		for _, c := range e.c.Changes {
			switch o := paths[c.Path]; {
			case o.first != nil || e.c.Outcome == Aborted:
			case e.changes():
				paths[c.Path] = own{o.external, e}
			case e.c.Kind == KindExternal:
				paths[c.Path] = own{e, nil}
			}
		}
	}
	for i := range all {
		e := &all[i]
		if e.c.Kind != KindExternal || e.c.Outcome == Aborted {
			continue
		}
		for _, c := range e.c.Changes {
			if !within(c.Path, only) {
				continue
			}
			o := paths[c.Path]
			left := o.external == e && o.first != nil && o.first.change(c.Path).Before.Same(c.After)
			if !left {
				hd, err := h.head(ctx, anybody, c.Path, afterAll)
				if err != nil {
					return nil, err
				}
				left = hd != nil && hd.seq == e.seq
			}
			if left {
				out = append(out, e.c.ID)
				break
			}
		}
	}
	return out, nil
}

// RoleTree is the role of a path that was moved as a whole, with all it holds. The store knows what
// it was, not its content.
const RoleTree = "tree"

// ours holds the changes that a session made to the metadata of a file.
type ours struct {
	mode, owner, xattrs bool
	left                State // by the last of them
}

func (o *ours) note(c *Recorded) {
	b, a := c.Before, c.After
	o.left = a
	if b.kind() != File || a.kind() != File { // it was made anew in between
		o.mode, o.owner, o.xattrs = true, true, true
		return
	}
	if a.bare() || b.bare() {
		return
	}
	o.mode = o.mode || a.Mode != b.Mode
	o.owner = o.owner || a.UID != b.UID || a.GID != b.GID
	o.xattrs = o.xattrs || !sameXattrs(a, b)
}

// SameMetadata compares mode, owner and extended attributes, and nothing else.
func (s State) SameMetadata(o State) bool {
	return s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID && sameXattrs(s, o)
}

func sameXattrs(s, o State) bool {
	return string(encodeXattrs(s.Xattrs)) == string(encodeXattrs(o.Xattrs))
}

// bare reports that nobody recorded the file's metadata.
func (s State) bare() bool {
	return s.Mode == 0 && s.UID == 0 && s.GID == 0 && len(s.Xattrs) == 0 && s.ModTime.IsZero()
}

// Recorded reports whether somebody recorded what metadata the file had.
func (it *Item) Recorded() bool { return it.Want.kind() == File && !it.Want.bare() }

// Metadata gives the mode, the owner and the extended attributes that a restore gives to the file
// that is there now. A part that the session's changes made different becomes as it was, unless somebody
// else set it since; the rest stays. A file that is made anew gets all it had. With known false
// nobody recorded what it had, and it gets what a new file gets.
func (it *Item) Metadata(now State) (meta State, known bool) {
	if now.kind() != File {
		return it.Want, !it.Want.bare()
	}
	meta = now
	if it.Want.bare() || it.Want.kind() != File {
		return meta, true
	}
	o := &it.meta
	if o.mode && now.Mode == o.left.Mode {
		meta.Mode = it.Want.Mode
	}
	if o.owner && now.UID == o.left.UID && now.GID == o.left.GID {
		meta.UID, meta.GID = it.Want.UID, it.Want.GID
	}
	if o.xattrs && sameXattrs(now, o.left) {
		meta.Xattrs = it.Want.Xattrs
	}
	return meta, true
}
