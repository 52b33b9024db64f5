package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
)

// MoveArgs say what gets which name.
type MoveArgs struct {
	From, To string
	// A file or link at To gives way to a file or link, and is in the checkpoint.
	Overwrite bool
	NoDirs    bool  // a directory is not moved
	Rules     Rules // Hash is that of a file at From
	DryRun    bool
}

// Move renames a file, a symbolic link (itself) or a directory with all it holds. It has a
// checkpoint whatever the config says.
//
// It is one rename as a rule. To another volume, everything is made at To and removed at From,
// still as one change. Each file is on record under both names, so its history goes on. So what the
// store can't or must not hold is not moved. From has to pass the rules of a deletion, To those of
// a new file.
func (e *Engine) Move(ctx context.Context, c *Call, a MoveArgs) (*Done, error) {
	if err := e.is(c, opRename, a.From, a.To); err != nil {
		return nil, err
	}
	for apart := false; ; apart = true {
		done, err := e.Change(ctx, c, func(ctx context.Context, d *Desk) (p *Plan, err error) {
			m := &moving{d: d, a: a, mv: &Move{pairs: map[*Target]*Target{}}, apart: apart}
			d.moves = append(d.moves, m.mv)
			if p, err = m.plan(ctx); err != nil {
				c.Trace.Paths = []string{a.From, a.To}
			}
			return p, err
		})
		if apart || !errors.Is(err, syscall.EXDEV) { // an overlay says it of directories on one mount
			return done, err
		}
	}
}

// moving is one move that is being planned.
type moving struct {
	d     *Desk
	a     MoveArgs
	mv    *Move
	apart bool // no rename leads there
	come  targets
}

// plan says how all that is at From comes to To.
func (m *moving) plan(ctx context.Context) (*Plan, error) {
	d, mv := m.d, m.mv
	d.disk = true // what is there moves
	if err := m.open(); err != nil {
		return nil, err
	}
	in, err := d.e.contentsOf(ctx, mv.place.Object(), true)
	switch {
	case NotEmpty.In(err): // something in it must not be named
		return nil, Refuse(Hidden, mv.Path, 1)
	case err != nil:
		return nil, err
	case in.special != "":
		return nil, &guardfs.NotRegularError{Path: in.special, Kind: guardfs.KindOther.String()}
	case in.entries > maxTree:
		return nil, Refuse(TooManyEntries, mv.Path, maxTree)
	case in.whole && d.e.excluded(mv.Path):
		return nil, Refuse(NotStored, mv.Path, Unstored.Of(checkpoint.SkipExcluded))
	case in.whole:
		return nil, Refuse(NotStored, mv.Path, Unstored.Of(checkpoint.SkipTooLarge))
	}
	mv.in = in
	if err := m.load(); err != nil {
		return nil, err
	}
	p := Plan{
		Summary: "move " + edit.ShownPath(mv.Path) + " to " + edit.ShownPath(mv.To), DryRun: m.a.DryRun,
		Checkpoint: true, Whole: true, Op: checkpoint.Op{Kind: checkpoint.KindMove},
	}
	if mv.slot == nil {
		if p.Steps, err = d.above(m.a.To, mv.To); err != nil {
			return nil, err
		}
	}
	if m.apart {
		return m.copied(p)
	}
	for _, u := range m.come {
		if u.Before.Exists {
			was := State{State: state(u.Before), ID: u.Before.Info.ID}
			p.Steps = append(p.Steps, Step{Path: u.True, Action: Remove, Before: was, file: u})
		}
	}
	p.Steps = append(p.Steps, mv.step())
	p.sort()
	return &p, nil
}

// open looks at both names, by handle; policy first.
func (m *moving) open() (err error) {
	e, mv, a := m.d.e, m.mv, &m.a
	if mv.place, err = e.fs.PlaceLink(a.From); err != nil {
		return err
	}
	from := mv.place.Object()
	mv.Path, mv.info = from.True, from.Info
	if err := cmp.Or(e.judge.Judge(from, guardfs.Remove), e.uproots(m.d.c, mv.Path)); err != nil {
		return err
	}
	to, err := e.fs.PlaceLink(a.To)
	near := to
	if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok && a.Rules.Parents {
		mv.To = gone.True
		if near, err = e.fs.PlaceLink(gone.Missing); err == nil {
			defer near.Close() //nolint:errcheck // nothing was written through it
		}
	}
	if err != nil {
		return err
	}
	there := guardfs.KindAbsent
	if to != nil {
		mv.slot, mv.To, there = to, to.Object().True, to.Object().Info.Kind
	}
	file := func(k guardfs.Kind) bool { return k == guardfs.KindFile || k == guardfs.KindSymlink }
	switch {
	case from.Info.Kind == guardfs.KindAbsent:
		return &guardfs.PathError{Op: "move", Path: a.From, Err: fs.ErrNotExist}
	case a.NoDirs && from.Info.Kind == guardfs.KindDir:
		return &guardfs.NotRegularError{Path: mv.Path, Kind: from.Info.Kind.String()}
	case mv.To == mv.Path || below(mv.To, mv.Path):
		return Refuse(IntoItself, mv.To, mv.Path)
	case a.Overwrite && there != guardfs.KindAbsent && !file(there) && file(from.Info.Kind):
		return &guardfs.NotRegularError{Path: mv.To, Kind: there.String()}
	case there != guardfs.KindAbsent && !(a.Overwrite && file(there) && file(from.Info.Kind)):
		return Refuse(Conflicts, mv.To, []Blocked{{Path: mv.To, Why: Occupied}})
	}
	same, err := mv.place.SameMount(near)
	m.apart = m.apart || !same
	return err
}

// load looks at each file and link, under both names, and at the directories.
func (m *moving) load() error {
	d, mv := m.d, m.mv
	if err := checkPlaces(mv.in.paths); err != nil {
		return err
	}
	for _, name := range mv.in.paths {
		link := mv.in.links[name]
		t, err := d.Load(name, Rules{Read: ReadSome, Link: link, Hash: m.a.Rules.Hash})
		if err != nil {
			return err
		}
		if link && t.Before.Exists && t.Before.Info.Kind != guardfs.KindSymlink {
			return &guardfs.ConflictError{Path: t.True, Why: guardfs.WasLink}
		}
		t.After = After{Kind: guardfs.KindAbsent}
		if err := m.arrives(t); err != nil {
			return err
		}
	}
	for _, dir := range mv.in.dirs {
		was, err := d.e.dirState(dir)
		if err == nil {
			err = m.mayCome(mv.newName(dir))
		}
		if err != nil {
			return err
		}
		mv.dirs = append(mv.dirs,
			checkpoint.Change{Path: dir, Role: checkpoint.RoleParent, Before: was},
			checkpoint.Change{Path: mv.newName(dir), Role: checkpoint.RoleParent, After: was})
	}
	if mv.info.Kind == guardfs.KindDir {
		d.files = append(d.files, m.come...)
	}
	return nil
}

// arrives plans the arrival of t under its new name.
func (m *moving) arrives(t *Target) (err error) {
	u := &Target{Path: m.mv.newName(t.True), Before: &guardfs.Before{}}
	if u.True = u.Path; m.mv.info.Kind == guardfs.KindDir {
		err = m.mayCome(u.True)
	} else {
		r := m.a.Rules
		r.Read, r.Link, r.Hash = ReadWhole, true, "" // all that is there is replaced
		u, err = m.d.Load(m.a.To, r)
	}
	if err != nil {
		return err
	}
	b := t.Before
	u.After = After{Kind: b.Info.Kind, Content: b.Content, Hash: b.Hash, Meta: &b.Meta}
	switch {
	case b.Info.Kind == guardfs.KindSymlink:
		u.After = After{Kind: guardfs.KindSymlink, Target: string(b.Content)}
	case !m.apart && !u.Before.Exists: // it is the very file, whatever we could give a new one
		u.After.Meta, u.fresh = nil, b.Meta
	}
	m.mv.pairs[u] = t
	m.come = append(m.come, u)
	return nil
}

// mayCome asks the policy about a name below To.
func (m *moving) mayCome(name string) error {
	return m.d.e.judge.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create)
}

// copied plans a move by contents: all is made anew at To, and removed at From.
func (m *moving) copied(p Plan) (*Plan, error) {
	for i := range m.mv.dirs {
		ch := &m.mv.dirs[i]
		if ch.Before.Kind != checkpoint.Dir {
			p.Steps = append([]Step{mkdirAs(ch.Path, ch.After)}, p.Steps...)
			continue
		}
		s, err := m.d.rmdir(ch.Path)
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, s)
	}
	return m.d.plan(p)
}

// newName gives the name that a path at or below From has then.
func (mv *Move) newName(name string) string { return mv.To + name[len(mv.Path):] }

// refilled says that a directory that is to move holds other things by now.
func (e *Engine) refilled(ctx context.Context, mv *Move) (_ bool, err error) {
	var now contents
	switch {
	case mv.info.Kind != guardfs.KindDir:
	case mv.Back:
		now.names, err = e.lookInto(ctx, mv, mv.Entry.Parked, nil)
	default:
		now, err = e.census(ctx, mv.Path, true, nil)
	}
	return now.names != mv.in.names, err
}

// asPlanned makes sure that the tree of mv, which has a name of ours now, holds what the plan was made
// of: that was judged under the name that it gets, and shown to whoever was asked.
func (e *Engine) asPlanned(ctx context.Context, mv *Move, name string) error {
	if mv.info.Kind != guardfs.KindDir {
		return nil
	}
	names, err := e.lookInto(ctx, mv, name, nil)
	if err == nil && names != mv.in.names {
		err = &guardfs.ConflictError{Path: mv.Path, Why: guardfs.ContentChanged}
	}
	return err
}

// lookInto hands over, unless use is nil, the names in a tree that has a name of ours, as they are
// called where it belongs. names is a digest of them.
func (e *Engine) lookInto(ctx context.Context, mv *Move, name string,
	use func(name string, k guardfs.Kind)) (names string, err error) {
	h, err := e.trash.Resolve(name, guardfs.Walk)
	if err != nil {
		return "", err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	top, err := h.Dir()
	if err != nil {
		return "", err
	}
	defer top.Close() //nolint:errcheck // nothing was written through it
	if top.Info().ID != mv.info.ID {
		return "", &guardfs.ConflictError{Path: mv.Path, Why: guardfs.Replaced}
	}
	return walk(ctx, top, func(d *guardfs.Dir, entries []guardfs.Entry, _ int) error {
		for _, entry := range entries {
			if use != nil {
				use(mv.Path+d.True()[len(name):]+"/"+entry.Name, entry.Kind)
			}
		}
		return nil
	})
}

// hashes gives the hashes of the contents that get another name, in the order of their names.
func (mv *Move) hashes() (out string) {
	all := map[string]string{}
	for _, from := range mv.pairs {
		all[from.True] = from.Before.Hash
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out += all[name]
	}
	return out
}

// rememberMoved has the session know of a file under its new name what it knew of it. from is that
// file under the old one.
func (e *Engine) rememberMoved(c *Call, t, from *Target) error {
	if from.Known.Seen == nil || t.Published == nil {
		return e.ledger.Forget(c.key(), t.True)
	}
	seen := *from.Known.Seen
	seen.ID, seen.Path = t.Published.Info.ID.String(), t.True
	return e.ledger.Saw(c.key(), seen)
}
