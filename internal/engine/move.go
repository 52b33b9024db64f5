package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
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
	for apart := false; ; apart = true {
		var m *moving
		done, err := c.Change(ctx, func(ctx context.Context, d *Planner) (p *Plan, err error) {
			m = &moving{d: d, a: a, mv: &Move{}, apart: apart, copies: apart}
			d.moves = append(d.moves, m.mv)
			if p, err = m.plan(ctx); err != nil {
				c.Trace.Paths = []string{a.From, a.To}
			}
			return p, err
		})
		if err == nil && m.copies {
			done.Moved = append(done.Moved, *m.mv)
		}
		if apart || !errors.Is(err, syscall.EXDEV) {
			return done, err
		}
	}
}

// moving is one move that is being planned.
type moving struct {
	d      *Planner
	a      MoveArgs
	mv     *Move
	apart  bool // a directory can't be renamed at all: it is deleted one by one
	copies bool // no rename leads there
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
	if m.copies {
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
	m.copies = m.copies || !same
	return err
}

// copied plans a move by contents: all is made anew at To, and From is deleted.
func (m *moving) copied(ctx context.Context, p Plan) (*Plan, error) {
	d, mv := m.d, m.mv
	gone, err := d.delete(ctx, m.a.From, DeleteOptions{Recursive: true}, m.apart)
	if err != nil {
		return nil, err
	}
	p.Steps = append(p.Steps, gone.Steps...)
	b := newCopying(d, CopyArgs{From: mv.Path, To: m.a.To, Overwrite: m.a.Overwrite, Recursive: mv.info.Kind == guardfs.KindDir, Rules: m.a.Rules})
	b.exact, b.a.Rules.Hash = true, ""
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
	return b.all(ctx, h, p)
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
// permission bits as far as the umask lets a new file have them. From is only read: it
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
		return newCopying(d, a).all(ctx, h, p)
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

func newCopying(d *Planner, a CopyArgs) *copying {
	return &copying{d: d, a: a, dirs: map[string]fs.FileMode{}, meta: map[fs.FileMode]*guardfs.Metadata{}}
}

// all plans the copy of what h is.
func (b *copying) all(ctx context.Context, h *guardfs.Handle, p Plan) (*Plan, error) {
	if h.Object().Info.Kind == guardfs.KindDir && b.a.Recursive {
		return b.tree(ctx, h, p)
	}
	f, err := h.Open()
	if err != nil {
		return nil, err
	}
	i := copied{to: b.a.To, of: h.Object().True, mode: f.Info().Mode}
	if err = b.read(i.of, f, &i); err == nil {
		err = b.put(i)
	}
	if err != nil {
		return nil, err
	}
	return b.d.plan(p)
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

// read reads all of f, and closes it, or what a client holds that is not saved. A content that is too large for the
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
