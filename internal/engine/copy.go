package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
)

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
func (e *Engine) Copy(ctx context.Context, c *Call, a CopyArgs) (*Done, error) {
	if err := e.is(c, opCopy, a.From, a.To); err != nil {
		return nil, err
	}
	return e.Change(ctx, c, func(ctx context.Context, d *Desk) (*Plan, error) {
		h, err := d.e.fs.Resolve(a.From, guardfs.Read)
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
	d    *Desk
	a    CopyArgs
	size int64
	meta map[fs.FileMode]*guardfs.Metadata // of new files, by the mode of what they are a copy of

	files []copied
	dirs  map[string]fs.FileMode // to be made
}

// copied is one file or link of a copy.
type copied struct {
	to      string
	mode    fs.FileMode
	content []byte
	from    *From  // in the place of content
	link    string // text of a link; "" for a file
}

// tree plans the copy of a directory.
func (b *copying) tree(ctx context.Context, h *guardfs.Handle, p Plan) (*Plan, error) {
	place, err := b.d.e.fs.PlaceLink(b.a.To)
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
		i := copied{to: joined(to, n.Name)}
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
	if size := f.Info().Size; !held && (size > b.d.e.cfg.Checkpoint.MaxFileBytes ||
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
	r.Read, r.Link, r.Parents = ReadNone, i.link != "", r.Parents || b.a.Recursive
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
	if !t.Before.Exists {
		t.After.Meta, err = b.fresh(t, i.mode.Perm())
	}
	return err
}

// fresh gives the metadata that the system gives to a new file, a copy of one with mode.
func (b *copying) fresh(t *Target, mode fs.FileMode) (*guardfs.Metadata, error) {
	if m := b.meta[mode]; m != nil {
		return m, nil
	}
	place := t.place
	if place == nil { // in a directory that has to be made: as beside the topmost of these
		dirs, _, err := b.d.e.makes(t.Path).Missing(t.Path)
		if err != nil || len(dirs) == 0 {
			return nil, err
		}
		if place, err = b.d.e.fs.PlaceLink(dirs[0]); err != nil {
			return nil, err
		}
		defer place.Close() //nolint:errcheck // nothing was written through it
	}
	m, err := place.Fresh(mode, false)
	b.meta[mode] = &m
	return &m, err
}
