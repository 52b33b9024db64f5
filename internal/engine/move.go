package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"path"
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
// On one volume it is one rename, of whatever size, and nothing is read or stored. A file or link at To goes into the trash. To another
// volume, all is made at To, and From is deleted, by one change. From has to pass the rules of a deletion, To those of a new file.
func (c *Call) Move(ctx context.Context, a MoveArgs) (*Done, error) {
	if err := c.askPolicy(opRename, a.From, a.To); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		var m *moving
		done, err := c.Change(ctx, func(ctx context.Context, d *Planner) (p *Plan, err error) {
			m = &moving{d: d, a: a, mv: &Move{}, apart: try > 0, each: try > 1}
			d.moves = append(d.moves, m.mv)
			if p, err = m.plan(ctx); err != nil {
				c.Trace.Paths = []string{a.From, a.To}
			}
			return p, err
		})
		if err == nil && m.apart {
			done.Moved = append(done.Moved, *m.mv)
		}
		if try > 1 || !errors.Is(err, syscall.EXDEV) { // an overlay says it of directories on one mount
			return done, err
		}
	}
}

// moving is one move that is being planned.
type moving struct {
	d     *Planner
	a     MoveArgs
	mv    *Move
	apart bool // no rename leads there
	each  bool // nor to the trash
}

// plan says how all that is at From comes to To.
func (m *moving) plan(ctx context.Context) (*Plan, error) {
	d, mv := m.d, m.mv
	d.disk = true // what is there moves
	if err := m.open(); err != nil {
		return nil, err
	}
	over := ""
	if mv.over {
		over = " over"
	}
	p := Plan{
		Summary: "move " + edit.ShownPath(mv.Path) + cmp.Or(over, " to") + " " + edit.ShownPath(mv.To), DryRun: m.a.DryRun,
		Checkpoint: true, Whole: true, Op: checkpoint.Op{Kind: checkpoint.KindMove},
	}
	r := m.a.Rules
	r.Read = ReadSome
	if err := d.known(mv.place, r); err != nil {
		return nil, err
	}
	if err := d.judgeInside(ctx, mv); err != nil {
		return nil, err
	}
	if m.apart {
		return m.copied(ctx, p)
	}
	var err error
	if mv.slot == nil {
		if p.Steps, err = d.above(m.a.To, mv.To); err != nil {
			return nil, err
		}
	}
	if mv.over {
		if err := d.known(mv.slot, Rules{Read: ReadWhole, Meant: r.Meant}); err != nil { // all that is there is replaced
			return nil, err
		}
		s, _, err := d.move(&Move{Path: mv.To, Entry: checkpoint.Trashed{Agent: !d.c.ByUser, Size: mv.slot.Object().Info.Size, Files: 1}})
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, s)
	}
	p.Steps = append(p.Steps, mv.step())
	p.sort()
	return &p, nil
}

// known refuses the file at a place that the session must not move or replace by these rules. It is read only where the caller, or what
// the session has seen of it, has a hash.
func (d *Planner) known(at *guardfs.Entry, r Rules) error {
	o := at.Object()
	t := &Target{Path: o.True, True: o.True, rules: r, Before: &guardfs.Before{Exists: true, Info: o.Info}}
	if o.Info.Kind != guardfs.KindFile {
		return nil
	}
	if err := d.c.changeable(t); err != nil {
		return err
	}
	seen := false
	if d.c.ledger != nil {
		s, ok, err := d.c.ledger.Look(d.c.key(), o.Info.ID.String(), o.True)
		if err != nil {
			return &hostError{"looking up what was read", err}
		}
		seen = ok && s.Hash != ""
	}
	var err error
	switch {
	case !seen && r.Hash == "":
	case o.Info.Size <= d.c.cfg.Checkpoint.MaxFileBytes:
		t.Before, err = at.Load(maxLoad) // to show what changed
	default:
		t.Before, err = at.Sum()
	}
	if err == nil && t.Before.Hash != "" {
		_, _, err = d.overlay(t, t.Before)
	}
	if err == nil {
		t.Known, err = d.c.know(t)
	}
	if err != nil {
		return err
	}
	return d.c.fresh(t)
}

// judgeInside walks what moves with mv. Policy judges each name, the old one and the new one.
func (d *Planner) judgeInside(ctx context.Context, mv *Move) (err error) {
	if mv.in = (contents{files: 1, size: mv.info.Size}); mv.info.Kind != guardfs.KindDir {
		return nil
	}
	var denied error
	mv.in, err = d.c.walkForDelete(ctx, mv.Path, true, func(name string) {
		if to := mv.newName(name); denied == nil {
			denied = d.c.judge.Judge(guardfs.Object{Spelled: to, True: to}, guardfs.Create)
		}
	})
	if NotEmpty.In(err) { // something in it must not be named
		return Refuse(Hidden, mv.Path, 1)
	}
	return cmp.Or(err, denied)
}

// open looks at both names, by handle; policy first.
func (m *moving) open() (err error) {
	e, mv, a := m.d.c, m.mv, &m.a
	if mv.place, err = e.fs.EntryLink(a.From); err != nil {
		return err
	}
	from := mv.place.Object()
	mv.Path, mv.info = from.True, from.Info
	if err := cmp.Or(e.judge.Judge(from, guardfs.Remove), m.d.c.removesRoot(mv.Path)); err != nil {
		return err
	}
	to, err := e.fs.EntryLink(a.To)
	near := to
	if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok && a.Rules.Parents {
		mv.To = gone.True
		if near, err = e.fs.EntryLink(gone.Missing); err == nil {
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
	mv.over = there != guardfs.KindAbsent
	same, err := mv.place.SameMount(near)
	m.apart = m.apart || !same
	return err
}

// copied plans a move by contents: all is made anew at To, and From is deleted.
func (m *moving) copied(ctx context.Context, p Plan) (*Plan, error) {
	d, mv := m.d, m.mv
	gone, err := d.delete(ctx, m.a.From, DeleteOptions{Recursive: true}, m.each)
	if err != nil {
		return nil, err
	}
	p.Steps = append(p.Steps, gone.Steps...)
	b := &copying{d: d, dirs: map[string]fs.FileMode{}, meta: map[fs.FileMode]*guardfs.Metadata{}, exact: true,
		a: CopyArgs{From: mv.Path, To: m.a.To, Overwrite: m.a.Overwrite, Recursive: mv.info.Kind == guardfs.KindDir, Rules: m.a.Rules}}
	b.a.Rules.Hash = ""
	if mv.info.Kind == guardfs.KindSymlink {
		was, err := mv.place.Load(maxLoad)
		if err == nil {
			err = b.put(copied{to: m.a.To, link: string(was.Content)})
		}
		if err != nil {
			return nil, err
		}
		return d.plan(p)
	}
	h, err := d.c.fs.Resolve(mv.Path, guardfs.Read)
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	if b.a.Recursive {
		return b.tree(ctx, h, p)
	}
	f, err := h.Open()
	if err != nil {
		return nil, err
	}
	i := copied{to: m.a.To, of: mv.Path, mode: f.Info().Mode}
	if err = b.read(mv.Path, f, &i); err == nil {
		err = b.put(i)
	}
	if err != nil {
		return nil, err
	}
	return d.plan(p)
}

// newName gives the name that a path at or below From has then.
func (mv *Move) newName(name string) string { return mv.To + name[len(mv.Path):] }

// refilled says that a directory that is to move holds other things by now.
func (c *Call) refilled(ctx context.Context, mv *Move) (_ bool, err error) {
	var now contents
	switch {
	case mv.info.Kind != guardfs.KindDir:
	case mv.Back:
		now.names, err = c.lookInto(ctx, mv, mv.Entry.Parked, nil)
	default:
		now, err = c.walkForDelete(ctx, mv.Path, true, nil)
	}
	return now.names != mv.in.names, err
}

// touched says that somebody wrote to the file that is to move, which is now as info says.
func (mv *Move) touched(now guardfs.Info) bool {
	return now.Kind == guardfs.KindFile && (now.Size != mv.info.Size || !now.ModTime.Equal(mv.info.ModTime))
}

// lookIntoHeld is asPlanned. Tests replace it to see what happens without.
var lookIntoHeld = (*Engine).asPlanned

// asPlanned makes sure that the file or tree of mv, which has a name of ours now, holds what the plan was
// made of: that was judged under the name that it gets, and shown to the approver.
func (e *Engine) asPlanned(ctx context.Context, mv *Move, name string) error {
	if mv.info.Kind != guardfs.KindDir {
		if mv.To == "" {
			return nil
		}
		at, err := e.trash.EntryLink(name)
		if err != nil {
			return err
		}
		defer at.Close() //nolint:errcheck // nothing was written through it
		if mv.touched(at.Object().Info) {
			return &guardfs.ConflictError{Path: mv.Path, Why: guardfs.ContentChanged}
		}
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
	return walk(ctx, top, func(d *guardfs.Dir, entries []guardfs.DirEntry, _ int) error {
		for _, entry := range entries {
			if use != nil {
				use(mv.Path+d.True()[len(name):]+"/"+entry.Name, entry.Kind)
			}
		}
		return nil
	})
}

// Size is how large the file is that was moved, or the text of the link.
func (mv *Move) Size() int64 { return mv.info.Size }

// rememberMoved has the session know under the new names what it knew under the old ones.
func (c *Call) rememberMoved(mv *Move) error {
	all, err := c.ledger.Latest(c.key(), math.MaxInt)
	for _, s := range all {
		top := s.Path == mv.Path
		if !top && !below(s.Path, mv.Path) {
			continue
		}
		err = errors.Join(err, c.ledger.Forget(c.key(), s.Path))
		s.Path = mv.newName(s.Path)
		o, _, lerr := c.fs.Lstat(s.Path)
		if lerr != nil || s.Hash == "" && !top { // of what has no hash only the times tell, and nobody compared them
			continue
		}
		if s.ID = o.Info.ID.String(); s.Hash == "" {
			s.Stamp = stamp(o.Info, "")
		}
		err = errors.Join(err, c.ledger.Saw(c.key(), s))
	}
	return err
}

// CopyArgs say what is copied.
type CopyArgs struct {
	From, To  string
	Overwrite bool // a file that is there gives way to the copy of a file
	Recursive bool // a directory is copied too, with all in it; nothing may be at To then
	Rules     Rules
	DryRun    bool
}

// The bounds of one copy.
const (
	maxCopied     = 10_000  // files, links and directories
	maxCopiedSize = maxLoad // of contents in memory; what goes beyond is copied file by file
)

// Copy makes a file or a tree at To that is as the one at From: contents, links as links, and the
// permission bits as far as the umask lets a new file have them. What is at From is only read: it
// need not have been read before, and may be read-only. A link at From is followed. A tree with an
// entry that policy hides is not copied: a part of it would pass for the whole.
func (c *Call) Copy(ctx context.Context, a CopyArgs) (*Done, error) {
	if err := c.askPolicy(opCopy, a.From, a.To); err != nil {
		return nil, err
	}
	return c.Change(ctx, func(ctx context.Context, d *Planner) (*Plan, error) {
		h, err := d.c.fs.Resolve(a.From, guardfs.Read)
		if err != nil {
			return nil, err
		}
		defer h.Close() //nolint:errcheck // nothing was written through it
		from := h.Object()
		p := Plan{
			Summary: "copy " + edit.ShownPath(from.True), Source: from.True,
			DryRun: a.DryRun, Op: checkpoint.Op{Kind: checkpoint.KindCopy},
		}
		b := &copying{d: d, a: a, dirs: map[string]fs.FileMode{}}
		b.meta = map[fs.FileMode]*guardfs.Metadata{}
		if from.Info.Kind == guardfs.KindDir && a.Recursive {
			return b.tree(ctx, h, p)
		}
		f, err := h.Open()
		if err != nil {
			return nil, err
		}
		i := copied{to: a.To, mode: f.Info().Mode}
		if err = b.read(from.True, f, &i); err != nil {
			return nil, err
		}
		if err := b.put(i); err != nil {
			return nil, err
		}
		return d.plan(p)
	})
}

// copying is one copy that is being planned.
type copying struct {
	d    *Planner
	a    CopyArgs
	size int64
	meta map[fs.FileMode]*guardfs.Metadata // of new files, by the mode of what they are a copy of

	files []copied
	dirs  map[string]fs.FileMode // to be made
	exact bool                   // owner, times and all else come along
}

// copied is one file or link of a copy.
type copied struct {
	to, of  string
	mode    fs.FileMode
	content []byte
	from    *From  // in the place of content
	link    string // text of a link; "" for a file
}

// tree plans the copy of a directory.
func (b *copying) tree(ctx context.Context, h *guardfs.Handle, p Plan) (*Plan, error) {
	place, err := b.d.c.fs.EntryLink(b.a.To)
	gone, ok := errors.AsType[*guardfs.MissingParentError](err)
	var to string
	switch {
	case ok && b.a.Rules.Parents:
		to = gone.True
	case err != nil:
		return nil, err
	default:
		defer place.Close() //nolint:errcheck // nothing was written through it
		to = place.Object().True
		if place.Object().Info.Kind != guardfs.KindAbsent {
			return nil, Refuse(Conflicts, to, []Blocked{{Path: to, Why: Occupied}})
		}
	}
	if from := h.Object().True; to == from || below(to, from) {
		return nil, Refuse(IntoItself, to, from)
	}
	dir, err := h.Dir()
	if err != nil {
		return nil, err
	}
	if err := b.collect(ctx, dir, to); err != nil {
		return nil, err
	}
	var names []string
	for _, i := range b.files {
		names = append(names, i.to)
	}
	if err := checkPlaces(names); err != nil {
		return nil, err
	}
	for _, i := range b.files {
		if err := b.put(i); err != nil {
			return nil, err
		}
	}
	for name := range b.dirs { // empty ones too
		above, err := b.d.above(path.Join(name, "x"), path.Join(name, "x"))
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, above...)
	}
	plan, err := b.d.plan(p)
	for i := 0; err == nil && i < len(plan.Steps); i++ {
		s := &plan.Steps[i]
		if mode, ok := b.dirs[s.Path]; ok && s.Action == Mkdir {
			s.After.Mode = mode | 0o700 // something has to be made in it
			if b.exact {
				was, err := b.d.c.dirState(b.a.From + s.Path[len(to):])
				if err != nil {
					return nil, err
				}
				*s = mkdirAs(s.Path, was)
			}
		}
	}
	return plan, err
}

// collect reads dir, which it closes, and what lies below, to be copied to the name to.
func (b *copying) collect(ctx context.Context, dir *guardfs.Dir, to string) error {
	defer dir.Close() //nolint:errcheck // nothing was written through it
	b.dirs[to] = dir.Info().Mode.Perm()
	entries, denied, err := dir.List(nil)
	switch {
	case err != nil:
		return err
	case denied > 0:
		return Refuse(Hidden, dir.True(), denied)
	case len(b.files)+len(b.dirs)+len(entries) > maxCopied:
		return Refuse(TooManyEntries, b.a.From, maxCopied)
	}
	for _, n := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		i := copied{to: joined(to, n.Name), of: joined(dir.True(), n.Name)}
		switch n.Kind {
		case guardfs.KindDir:
			sub, err := dir.OpenDir(n.Name, true)
			if err == nil {
				err = b.collect(ctx, sub, i.to)
			}
			if err != nil {
				return err
			}
			continue
		case guardfs.KindSymlink:
			i.link, err = dir.Readlink(n.Name)
		default:
			var f *guardfs.File
			if f, err = dir.OpenFile(n.Name); err == nil {
				i.mode = f.Info().Mode
				err = b.read(joined(dir.True(), n.Name), f, &i)
			}
		}
		if err != nil {
			return err
		}
		b.files = append(b.files, i)
	}
	return nil
}

// read reads all of f, and closes it, or what a client holds that is not saved. What is too large for the
// store, or for memory, is only noted: it is copied when the plan is carried out.
func (b *copying) read(name string, f *guardfs.File, i *copied) error {
	defer f.Close() //nolint:errcheck // nothing was written through it
	content, held, err := b.d.apart(name)
	if err != nil {
		return err
	}
	if size := f.Info().Size; !held && (size > b.d.c.cfg.Checkpoint.MaxFileBytes ||
		b.size+size > maxCopiedSize) {
		i.from = &From{path: name, info: f.Info(), size: size}
		return nil
	}
	if !held {
		content, err = io.ReadAll(io.NewSectionReader(f, 0, maxCopiedSize-b.size+1))
	}
	if b.size += int64(len(content)); err == nil && b.size > maxCopiedSize {
		err = &edit.TooLargeError{Size: max(b.size, f.Info().Size), Max: maxCopiedSize}
	}
	i.content = content
	return err
}

// put plans one file or link.
func (b *copying) put(i copied) error {
	r := b.a.Rules
	r.Read, r.Link, r.Parents = ReadNone, i.link != "" || b.exact, r.Parents || b.a.Recursive
	if b.a.Overwrite {
		r.Read = ReadWhole // all that is there is replaced
	}
	t, err := b.d.Load(i.to, r)
	if err != nil {
		return err
	}
	switch {
	case t.Before.Exists && (!b.a.Overwrite || len(b.dirs) > 0):
		return Refuse(Conflicts, t.True, []Blocked{{Path: t.True, Why: Occupied}})
	case i.link != "":
		t.After = After{Kind: guardfs.KindSymlink, Target: i.link}
		return nil
	}
	if i.from != nil && i.from.path == t.True {
		t.leaveAsIs()
		return nil
	}
	t.After = After{Kind: guardfs.KindFile, Content: i.content, From: i.from}
	if b.exact {
		t.After.Meta, err = b.metadata(i.of)
	} else if !t.Before.Exists {
		t.After.Meta, err = b.fresh(t, i.mode.Perm())
	}
	return err
}

// metadata reads the metadata of the file name, without its content.
func (b *copying) metadata(name string) (*guardfs.Metadata, error) {
	at, err := b.d.c.fs.EntryLink(name)
	if err != nil {
		return nil, err
	}
	defer at.Close() //nolint:errcheck // nothing was written through it
	was, err := at.Peek(nil, 1)
	if err != nil {
		return nil, err
	}
	return &was.Meta, nil
}

// fresh gives the metadata that the system gives to a new file, a copy of one with mode.
func (b *copying) fresh(t *Target, mode fs.FileMode) (*guardfs.Metadata, error) {
	if m := b.meta[mode]; m != nil {
		return m, nil
	}
	place := t.place
	if place == nil { // in a directory that has to be made: as beside the topmost of these
		dirs, _, err := b.d.c.treeForMkdir(t.Path).Missing(t.Path)
		if err != nil || len(dirs) == 0 {
			return nil, err
		}
		if place, err = b.d.c.fs.EntryLink(dirs[0]); err != nil {
			return nil, err
		}
		defer place.Close() //nolint:errcheck // nothing was written through it
	}
	m, err := place.Fresh(mode)
	b.meta[mode] = &m
	return &m, err
}
