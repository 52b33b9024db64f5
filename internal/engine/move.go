package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
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
	if err := d.known(mv.from, r); err != nil {
		return nil, err
	}
	if err := d.judgeInside(ctx, mv); err != nil {
		return nil, err
	}
	if m.copies {
		return m.copied(ctx, p)
	}
	var err error
	if mv.to == nil {
		if p.Steps, err = d.above(m.a.To, mv.To); err != nil {
			return nil, err
		}
	}
	if mv.over {
		if err := d.known(mv.to, Rules{Read: ReadWhole, Meant: r.Meant}); err != nil { // all that is there is replaced
			return nil, err
		}
		s, _, err := d.move(d.c.toTrash(mv.To, contents{size: mv.to.Object().Info.Size, files: 1}))
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
	if mv.from, err = e.fs.EntryLink(a.From); err != nil {
		return err
	}
	from := mv.from.Object()
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
		mv.to, mv.To, there = to, to.Object().True, to.Object().Info.Kind
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
	same, err := mv.from.SameMount(near)
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
		was, err := mv.from.Load(maxLoad)
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

// DeleteOptions says how a path goes.
type DeleteOptions struct {
	Recursive bool // a directory with all it holds; otherwise it must be empty
	DryRun    bool

	byRun bool // no link may lead to the path, and the session need not have read what is there
}

// Delete moves a file, a symbolic link (itself, not what it leads to) or a directory with all it holds into the
// trash of the call's principal, by one rename on its own volume. It has a checkpoint whatever the config says.
// Done.Trashed has the one entry. A path that can't be moved there is not deleted: NoTrash.
//
// A directory in the lower layer of an overlay, as a container's image is, can't be renamed. Its files and
// links go one by one then, each with an entry of its own, and its directories when they are empty.
func (c *Call) Delete(ctx context.Context, path string, o DeleteOptions) (*Done, error) {
	if err := c.askPolicy(opRemove, path, "", o.Recursive); err != nil {
		return nil, err
	}
	for apart := false; ; apart = true {
		done, err := c.Change(ctx, func(ctx context.Context, d *Planner) (*Plan, error) { return d.delete(ctx, path, o, apart) })
		if apart || !errors.Is(err, syscall.EXDEV) { // an overlay says it of directories on one mount
			return done, err
		}
	}
}

// delete plans how what is at path goes to the trash; with apart, if it is a directory, one by one.
func (d *Planner) delete(ctx context.Context, path string, o DeleteOptions, apart bool) (*Plan, error) {
	d.disk = true // what is there goes
	d.c.Trace.Paths = []string{path}
	place, err := d.c.fs.EntryLink(path)
	if err != nil {
		return nil, err
	}
	defer place.Close() //nolint:errcheck // nothing was written through it
	object := place.Object()
	name, kind := object.True, object.Info.Kind
	switch {
	case o.byRun && name != path:
		return nil, &guardfs.SymlinkError{Path: path, Target: name}
	case kind == guardfs.KindAbsent:
		return nil, &guardfs.PathError{Op: "delete", Path: path, Err: fs.ErrNotExist}
	case kind == guardfs.KindOther:
		return nil, &guardfs.NotRegularError{Path: name, Kind: kind.String()}
	}
	if err := cmp.Or(d.c.judge.Judge(object, guardfs.Remove), d.c.removesRoot(name)); err != nil {
		return nil, err
	}
	in := contents{size: object.Info.Size, files: 1}
	if kind == guardfs.KindDir {
		if in, err = d.c.walkForDelete(ctx, name, o.Recursive, nil); err != nil {
			return nil, err
		}
		if in.at != name { // the entry of the trash is of one name
			return nil, &guardfs.ConflictError{Path: name, Why: guardfs.DirMoved}
		}
	}
	if !o.byRun {
		if err := d.known(place, Rules{Read: ReadSome}); err != nil {
			return nil, err
		}
	}
	if apart && kind == guardfs.KindDir {
		return d.deleteApart(ctx, name, o)
	}
	mv := d.c.toTrash(name, in)
	s, _, err := d.move(mv)
	if err == nil && (mv.info.ID != object.Info.ID || mv.info.Kind != kind) {
		err = &guardfs.ConflictError{Path: name, Why: guardfs.Replaced}
	}
	return &Plan{Summary: "delete " + name, DryRun: o.DryRun, Checkpoint: true,
		Op: checkpoint.Op{Kind: checkpoint.KindDelete}, Steps: []Step{s}}, err
}

// deleteApart plans how all that is in the directory name goes to the trash one by one, and then the directories.
func (d *Planner) deleteApart(ctx context.Context, name string, o DeleteOptions) (*Plan, error) {
	names := []string{name}
	if _, err := d.c.walkForDelete(ctx, name, o.Recursive, func(name string) { names = append(names, name) }); err != nil {
		return nil, err
	}
	p := Plan{Summary: "delete " + name, DryRun: o.DryRun, Checkpoint: true, Op: checkpoint.Op{Kind: checkpoint.KindDelete}}
	for _, name := range names {
		at, _, err := d.c.fs.Lstat(name)
		if err != nil {
			return nil, err
		}
		var s Step
		if at.Info.Kind == guardfs.KindDir {
			s, err = d.rmdir(name)
		} else {
			s, _, err = d.move(d.c.toTrash(name, contents{size: at.Info.Size, files: 1}))
		}
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, s)
	}
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
	seen, err := d.c.seenByHash(t)
	switch {
	case err != nil, !seen && r.Hash == "":
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

// removesRoot refuses to take the workspace root away from under the calls to come, or what it is in.
func (c *Call) removesRoot(name string) error {
	root := cmp.Or(c.root, c.cfg.WorkspaceRoot)
	if root == "" || c.ByUser {
		return nil
	}
	if root = c.fs.Canonical(root); root != name && !below(root, name) {
		return nil
	}
	return &policy.Denied{Path: name, Rule: "workspace_root"}
}

// storable says whether the store may hold the content of a file.
func (e *Engine) storable(path string, size int64) bool {
	return size <= e.cfg.Checkpoint.MaxFileBytes && !e.excluded(path)
}

// contents counts the objects below a directory, or at a path.
type contents struct {
	at    string // the directory
	size  int64
	files int
	names string // a digest of all names and kinds in the directory
}

// walkForDelete walks the directory dir, which a change would move away. Policy judges each entry; one that is
// denied refuses the change. use, which may be nil, gets each name.
func (c *Call) walkForDelete(ctx context.Context, dir string, recursive bool,
	use func(name string)) (in contents, err error) {
	h, err := c.fs.Resolve(dir, guardfs.Remove)
	if err != nil {
		return in, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	if h.Object().Info.Kind != guardfs.KindDir {
		return contents{at: dir, size: h.Object().Info.Size, files: 1}, nil
	}
	d, err := h.Dir()
	if err != nil {
		return in, err
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	in.at = d.True()
	in.names, err = walk(ctx, d, func(d *guardfs.Dir, entries []guardfs.DirEntry, denied int) error {
		if len(entries)+denied > 0 && !recursive || denied > 0 {
			return Refuse(NotEmpty, d.True(), nil) // what is denied is not even counted aloud
		}
		for _, entry := range entries {
			if use != nil {
				use(d.True() + "/" + entry.Name)
			}
			if entry.Kind == guardfs.KindDir {
				continue
			}
			info, err := d.Stat(entry.Name)
			if err != nil {
				return err
			}
			in.size, in.files = in.size+info.Size, in.files+1
		}
		return nil
	})
	return in, err
}

// walk hands over each directory of a tree, with what is in it, those above before those below. names
// is a digest of all names and kinds. Other mounts are refused.
func walk(ctx context.Context, top *guardfs.Dir,
	use func(d *guardfs.Dir, entries []guardfs.DirEntry, denied int) error) (names string, err error) {
	sum := sha256.New()
	var down func(d *guardfs.Dir) error
	down = func(d *guardfs.Dir) error {
		entries, denied, err := d.List(nil)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		slices.SortFunc(entries, func(a, b guardfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
		if err := use(d, entries, denied); err != nil {
			return err
		}
		for _, entry := range entries {
			field(sum, d.True()[len(top.True()):]+"/"+entry.Name)
			field(sum, entry.Kind.String())
			if entry.Kind != guardfs.KindDir {
				continue
			}
			sub, err := d.OpenDir(entry.Name, false)
			if err != nil {
				return err
			}
			err = down(sub)
			sub.Close() //nolint:errcheck // nothing was written through it
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = down(top)
	return string(sum.Sum(nil)), err
}

// Trash lists the entries of the call's principal in the trash.
func (c *Call) Trash(ctx context.Context, f checkpoint.TrashFilter) (checkpoint.TrashPage, error) {
	db, err := c.checkpoints.open()
	if err != nil {
		return checkpoint.TrashPage{}, err
	}
	f.Principal, f.AllPrincipals, f.Unsettled = c.Principal, false, false
	return db.TrashList(ctx, f)
}

// Untrash brings an entry of the call's principal back to its path, under today's policy, and never
// over something that is there.
func (c *Call) Untrash(ctx context.Context, id checkpoint.TrashID,
	dryRun bool) (*Restored, error) {
	db, err := c.checkpoints.open()
	if err != nil {
		return nil, err
	}
	t, err := db.TrashGet(ctx, id, c.Principal, false)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(t.Parked, goneSuffix) || t.Expires.Before(c.now()) { // it is being removed, or will be
		return nil, checkpoint.ErrNotFound
	}
	// A caller that has the entry may see its checkpoint.
	op, err := db.Get(ctx, t.Checkpoint, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return nil, err
	}
	r := &restore{c: c, db: db, plan: &checkpoint.Plan{Mode: checkpoint.ModeState, RestoreOf: op.ID},
		entry: &t, o: RestoreOptions{DryRun: dryRun, KeepTimes: true}}
	done, err := c.Change(ctx, r.make)
	if err != nil {
		return nil, err
	}
	r.out.Done, r.out.Entry = done, t
	return r.out, nil
}

// A deleted path goes to the trash: one rename moves it into a directory of our own on its own volume, and one
// rename brings it back.
//
// That directory is <data directory>/.moltis-trash-UID where that is on the volume. Else it has the
// same name in the topmost directory on the way to the path in which we may make one. A fleet goes by the second rule alone, and no
// higher than workspace_root: every machine that has the workspace has its trash. In it lie files/NAME and info/NAME.trashinfo, as
// freedesktop.org has it. NAME is random. Policy refuses every path with such a directory in it.
//
// The order makes sure that a crash loses nothing. First the checkpoint is durable, with the entry
// of the trash (phase parking) and the steps. Then comes the sidecar, then the rename and the sync
// of both directories, then the phase parked. The way back is: returning, rename, gone. Whoever
// finds the row of a dead process looks where the object is.

const roleTree = checkpoint.RoleTree

// A Move is one path of a mutation that goes as a whole: into the trash, back from it, or to
// another name.
type Move struct {
	Path string
	To   string // its other name in the tree; "" of one to or from the trash
	Back bool
	// Entry is, with Back, the one that comes back. Else it has Size, Files and Agent, and after the
	// change it is the entry that was made.
	Entry checkpoint.Trashed

	// from is the entry where it is, to the one of the name that it gets: nil while the parent, or the place in the
	// trash, is still to be made.
	from, to *guardfs.Entry
	info     guardfs.Info // of what is moved

	in    contents       // of what is moved
	shown *Target        // of a file or link that goes to the trash: for who approves it
	mid   *guardfs.Entry // with To: our own name that it has in between
	over  bool           // something is where it comes to, which goes before by the same plan
	fresh func() error   // with Back: it comes from the upper layer of a run, at Entry.Parked, and this makes it ready
}

// toTrash moves what is at path, with what is in it, into the trash.
func (c *Call) toTrash(path string, in contents) *Move {
	return &Move{Path: path, in: in, Entry: checkpoint.Trashed{Agent: !c.ByUser, Size: in.size, Files: in.files}}
}

// newName gives the name that a path at or below From has then.
func (mv *Move) newName(name string) string { return mv.To + name[len(mv.Path):] }

// touched says that somebody wrote to the file that is to move, which is now as info says.
func (mv *Move) touched(now guardfs.Info) bool {
	return now.Kind == guardfs.KindFile && (now.Size != mv.info.Size || !now.ModTime.Equal(mv.info.ModTime))
}

// Size is how large the file is that was moved, or the text of the link.
func (mv *Move) Size() int64 { return mv.info.Size }

var errNoPlace = errors.New("there is no directory on its volume that a trash can be made in")

// ownTrash lets our own looks into what has a name of ours, as the trash directories, and nowhere
// else.
type ownTrash struct{}

func (ownTrash) Judge(o guardfs.Object, _ guardfs.Access) error {
	if guardfs.ReservedPath(o.True) {
		return nil
	}
	return fs.ErrPermission
}

func (ownTrash) Dir(name string, _ ...string) guardfs.DirVerdict {
	return guardfs.DirVerdict{All: guardfs.ReservedPath(name)}
}

// open looks at both ends of what is to be moved, by handle; policy first. back: it has come back already.
func (mv *Move) open(ctx context.Context, d *Planner) (back bool, err error) {
	at, err := d.c.openAt(mv.Path)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing && mv.Back {
		return false, d.c.openTrashed(ctx, mv)
	}
	if err != nil {
		return false, err
	}
	o := at.Object()
	there := o.Info.Kind != guardfs.KindAbsent
	if mv.Back {
		switch mv.to = at; {
		case !there || mv.over:
			return false, d.c.openTrashed(ctx, mv)
		case o.Info.ID.Lasting() == mv.Entry.Identity:
			return true, nil
		}
		return false, Refuse(Conflicts, "", []Blocked{{Path: mv.Path, Why: Occupied}})
	}
	mv.from, mv.info = at, o.Info
	switch {
	case !there:
		op := map[bool]string{true: "delete", false: "move"}[mv.To == ""]
		return false, &guardfs.PathError{Op: op, Path: mv.Path, Err: fs.ErrNotExist}
	case mv.To == "":
		return false, nil
	}
	if err := cmp.Or(d.c.judge.Judge(o, guardfs.Remove), d.c.removesRoot(mv.Path)); err != nil {
		return false, err
	}
	mv.to, err = d.c.openAt(mv.To)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing {
		err = nil // it is made
	}
	if err == nil && mv.to != nil && !mv.over && mv.to.Object().Info.Kind != guardfs.KindAbsent {
		err = Refuse(Conflicts, "", []Blocked{{Path: mv.To, Why: Occupied}})
	}
	return false, cmp.Or(err, d.judgeInside(ctx, mv))
}

// comesTo is the name in the tree that something comes to by the move; "" for none.
func (mv *Move) comesTo() string {
	if mv.Back {
		return mv.Path
	}
	return mv.To
}

// openTrashed finds what comes back in the trash, and makes sure that it is what went there.
func (c *Call) openTrashed(ctx context.Context, mv *Move) error {
	from, err := c.trash.EntryLink(mv.Entry.Parked)
	if errors.Is(err, guardfs.ErrUnavailable) {
		return err
	}
	if err != nil {
		return Refuse(NotStored, mv.Path, TrashUnopened.Of(err))
	}
	mv.from, mv.info = from, from.Object().Info
	if mv.info.Kind == guardfs.KindAbsent || mv.info.ID.Lasting() != mv.Entry.Identity {
		return Refuse(NotStored, mv.Path, NotInTrash)
	}
	if mv.info.Kind != guardfs.KindDir {
		return nil
	}
	denied := c.canCreate(mv.Path) // what is in it is judged as it will be called
	mv.in.names, err = c.lookInto(ctx, mv, mv.Entry.Parked, func(name string, k guardfs.Kind) {
		if k == guardfs.KindDir && denied == nil {
			denied = c.canCreate(name)
		} else if denied == nil {
			denied = c.judge.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create)
		}
	})
	return cmp.Or(denied, err)
}

func (mv *Move) close() {
	for _, p := range []*guardfs.Entry{mv.from, mv.to, mv.mid} {
		if p != nil {
			p.Close()
		}
	}
}

// openAt opens the entry of the canonical path name, once its directory is there. Until then the error is a
// *guardfs.MissingParentError; where a link leads elsewhere it is a *guardfs.SymlinkError.
func (c *Call) openAt(name string) (*guardfs.Entry, error) {
	entry, err := c.fs.EntryLink(name)
	if err != nil {
		return nil, err
	}
	if o := entry.Object(); o.True != name {
		entry.Close() //nolint:errcheck // nothing was written through it
		return nil, &guardfs.SymlinkError{Path: name, Target: o.True}
	}
	return entry, nil
}

// other says that what is to move, what is in it, or what comes in its way is another than the plan was made of, so that it has to be made anew.
func (mv *Move) other(ctx context.Context, c *Call) (bool, error) {
	var now guardfs.Info
	place, err := c.fs.EntryLink(mv.Path)
	_, missing := errors.AsType[*guardfs.MissingParentError](err)
	if err != nil && !(missing && mv.Back) {
		return false, err
	}
	if err == nil {
		now = place.Object().Info
		place.Close() //nolint:errcheck // nothing was written through it
	}
	if mv.Back {
		if back, err := c.isBack(ctx, mv, now); back || err != nil {
			return back, err
		}
	} else if now.ID != mv.info.ID || now.Kind != mv.info.Kind {
		return false, &guardfs.ConflictError{Path: mv.Path, Why: guardfs.Replaced}
	}
	if mv.info.Kind != guardfs.KindDir {
		return !mv.Back && mv.touched(now), nil
	}
	in := contents{}
	if mv.Back {
		in.names, err = c.lookInto(ctx, mv, mv.Entry.Parked, nil)
	} else {
		in, err = c.walkForDelete(ctx, mv.Path, true, nil)
	}
	return in.names != mv.in.names, err
}

// isBack says that somebody else has brought it back already: now is what is at its path. If not, it must still be in
// the trash, and nothing in its place.
func (c *Call) isBack(ctx context.Context, mv *Move, now guardfs.Info) (bool, error) {
	there := now.Kind != guardfs.KindAbsent && !mv.over
	if mv.fresh == nil {
		db, err := c.checkpoints.open()
		if err != nil {
			return false, notSaved(err)
		}
		entry, err := db.TrashGet(ctx, mv.Entry.ID, "", true) // whose it is was asked when it was found
		gone := errors.Is(err, checkpoint.ErrNotFound)
		switch {
		case gone && there && now.ID.Lasting() == mv.Entry.Identity:
			return true, nil
		case err != nil && !gone:
			return false, notSaved(err)
		case gone || entry.Parked != mv.Entry.Parked: // it has expired, or is about to
			return false, Refuse(NotStored, mv.Path, NotInTrash)
		}
	}
	if there {
		return false, Refuse(Conflicts, "", []Blocked{{Path: mv.Path, Why: Occupied}})
	}
	return false, nil
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

// readySlot makes a place in the trash for what goes. The directories that it makes are our own,
// and stay.
func (e *Engine) readySlot(mv *Move) (err error) {
	if mv.to, err = e.newSlot(mv.from); err != nil {
		return noTrash(mv.Path, err)
	}
	if mv.info, err = mv.from.CopyUp(); err != nil {
		return err
	}
	mv.Entry.Parked, mv.Entry.Identity = mv.to.Object().True, mv.info.ID.Lasting()
	return nil
}

// newSlot finds or makes a place in the trash on the volume of p.
func (e *Engine) newSlot(p *guardfs.Entry) (*guardfs.Entry, error) {
	name := e.trash.TrashName()
	dirs, root := []string{e.dataDir}, "/"
	if e.place.Calls != nil { // which is not there
		dirs = nil
	}
	if e.fleet != nil { // other machines do not see it
		dirs, root = nil, filepath.ToSlash(e.tree.Canonical(e.cfg.WorkspaceRoot))
	}
	first := len(dirs)
	for dir := p.ParentTrue(); ; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if path.Dir(dir) == dir || dir == root {
			break
		}
	}
	for i, j := first, len(dirs)-1; i < j; i, j = i+1, j-1 { // the volume's top first
		dirs[i], dirs[j] = dirs[j], dirs[i]
	}
	for _, dir := range dirs {
		trash := path.Join(filepath.ToSlash(dir), name)
		same, err := e.ownDir(trash, p)
		if err != nil && (dir == e.dataDir || errors.Is(err, guardfs.ErrUnavailable)) {
			return nil, err
		}
		if err != nil || !same { // of the others, one that can't be used is passed over
			continue
		}
		for _, sub := range []string{"files", "info"} {
			if _, err := e.ownDir(trash+"/"+sub, nil); err != nil {
				return nil, err
			}
		}
		return e.trash.EntryLink(trash + "/files/" + rand.Text())
	}
	return nil, errNoPlace
}

// ownDir makes a directory that only we can read, if there is none and it is on the mount of near.
// If others can use it, that is an error.
func (e *Engine) ownDir(name string, near *guardfs.Entry) (same bool, err error) {
	p, err := e.trash.EntryLink(name)
	if err != nil {
		return false, err
	}
	defer func() { p.Close() }()
	if near != nil {
		if same, err = p.SameMount(near); err != nil || !same {
			return false, err
		}
	}
	if p.Object().Info.Kind == guardfs.KindAbsent {
		if err := p.Mkdir(0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		if err := p.SyncNames(); err != nil {
			return false, err
		}
		fresh, err := e.trash.EntryLink(name)
		if err != nil {
			return false, err
		}
		p.Close()
		p = fresh
		if near != nil { // it may lie in a work tree
			if err := e.setOwn(name+"/.gitignore", []byte("*\n")); err != nil {
				return false, err
			}
		}
	}
	if !p.Private() {
		return false, fmt.Errorf("%s: %w", name, fs.ErrPermission)
	}
	return true, nil
}

// noTrash is the refusal of what can't go to the trash, unless nobody is there to take it.
func noTrash(path string, err error) error {
	if errors.Is(err, guardfs.ErrUnavailable) {
		return err
	}
	return &Refusal{NoTrash.Code, NoTrash, path, err, err}
}

// setOwn writes a small file of ours in the trash; with content nil it removes it.
func (e *Engine) setOwn(name string, content []byte) error {
	p, err := e.trash.EntryLink(name)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // nothing was written through it
	before, err := p.Load(1 << 20)
	if err != nil || content == nil && !before.Exists {
		return err
	}
	what := guardfs.NewObject{}
	if content != nil {
		what = guardfs.NewObject{Kind: guardfs.KindFile, Content: content, Sync: true}
	}
	tag := guardfs.NewTag()
	hold, made, err := p.Stage(context.Background(), guardfs.TempName(tag, 0), what)
	if err != nil {
		return err
	}
	defer e.journal.Forget(tag)
	defer hold.Close() //nolint:errcheck // nothing was written through it
	if what.Sync {
		err = hold.Sync()
	}
	var pub *guardfs.Published
	if err == nil {
		pub, err = p.Publish(context.Background(), hold, guardfs.Found(before), made.Precondition())
	}
	if err != nil {
		return errors.Join(err, hold.Drop(made.Precondition()))
	}
	if err = hold.Drop(pub.Displaced); what.Sync {
		err = errors.Join(err, p.SyncNames())
	}
	return err
}

// sidecarOf is where the sidecar of a payload lies.
func sidecarOf(payload string) string {
	return path.Dir(path.Dir(payload)) + "/info/" + path.Base(payload) + ".trashinfo"
}

// settleEntry brings one entry up to date: what it is of lies in the trash, or does not any more.
func (e *Engine) settleEntry(ctx context.Context, db *checkpoint.DB, t *checkpoint.Trashed,
	there bool) error {
	if there {
		return db.TrashSettle(ctx, t.ID, true)
	}
	err := db.TrashDrop(ctx, t.ID)
	if err == nil {
		if err := e.setOwn(sidecarOf(t.Parked), nil); err != nil {
			e.logger.Warn("a sidecar could not be removed from the trash", "id", t.ID, "err", err)
		}
	}
	return err
}

// moveState is a thing that is moved, as the store keeps it.
func moveState(i guardfs.Info) checkpoint.State {
	s := checkpoint.State{Kind: checkpoint.File, Mode: i.Mode, UID: i.UID, GID: i.GID,
		ModTime: i.ModTime, Size: i.Size}
	switch i.Kind {
	case guardfs.KindDir:
		s.Kind, s.Size = checkpoint.Dir, 0
	case guardfs.KindSymlink:
		s.Kind, s.Size = checkpoint.Symlink, 0
	}
	return s
}

// moveChanges gives the changes of a move, for the checkpoint.
func moveChanges(mv *Move) []checkpoint.Change {
	if mv.To == "" {
		return []checkpoint.Change{trashChange(mv)}
	}
	was, none, id := moveState(mv.info), checkpoint.State{Kind: checkpoint.Absent}, mv.info.ID.Lasting()
	if mv.info.Kind == guardfs.KindSymlink {
		if b, err := mv.from.Load(maxLoad); err == nil {
			was = state(b)
		}
	}
	gone := checkpoint.Change{Path: mv.Path, Role: roleTree, Before: was, After: none, Moved: checkpoint.Moved{To: mv.To, Identity: id}}
	if was.Kind == checkpoint.File {
		gone.Skipped = checkpoint.SkipParked
	}
	return []checkpoint.Change{gone,
		{Path: mv.To, Role: roleTree, Before: none, After: was, Moved: checkpoint.Moved{From: mv.Path, Identity: id}}}
}

// trashChange is moveChanges of what goes to the trash, or comes back.
func trashChange(mv *Move) checkpoint.Change {
	ch := checkpoint.Change{Path: mv.Path, Role: roleTree, Moved: checkpoint.Moved{Identity: mv.info.ID.Lasting()}, Before: moveState(mv.info),
		After: checkpoint.State{Kind: checkpoint.Absent}}
	if mv.Back {
		ch.Before, ch.After = ch.After, ch.Before
		return ch
	}
	if ch.Before.Kind == checkpoint.File {
		ch.Skipped = checkpoint.SkipParked
	}
	t := mv.Entry
	ch.Trash = &checkpoint.Trashed{Agent: t.Agent, Parked: t.Parked, Size: t.Size, Files: t.Files,
		Identity: t.Identity}
	return ch
}

// entriesAt lists the entries of a path, newest first: those in the trash, or with unsettled those
// that a crash left on their way.
func (e *Engine) entriesAt(ctx context.Context, db *checkpoint.DB, path string,
	unsettled bool) (out []checkpoint.Trashed, err error) {
	f := checkpoint.TrashFilter{AllPrincipals: true, Path: path, Unsettled: unsettled, Limit: 1000}
	for {
		page, err := db.TrashList(ctx, f)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Entries...)
		if f.Cursor = page.Next; f.Cursor == "" {
			return out, nil
		}
	}
}

// A tree in the trash may take long to remove. So the catalog first gets this suffix at the end of
// its place, and nobody brings half a tree back. Then the tree goes in slices.
const goneSuffix = ".gone"

const (
	expireEvery = time.Hour
	expireSlice = 200 * time.Millisecond
)

// expire removes what has been in the trash for longer than its time. It stops before it delays the
// change that called it; the next change goes on. The store expires its own.
func (e *Engine) expire(ctx context.Context) {
	last, now := e.expired.Load(), e.now()
	if age := now.Sub(time.Unix(0, last)); age >= 0 && age < expireEvery || !e.expired.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), expireSlice)
	defer cancel()
	db, err := e.checkpoints.open()
	if err == nil {
		f := checkpoint.TrashFilter{AllPrincipals: true, Expired: e.now(), Limit: 1000}
		for more := true; more && err == nil; {
			var page checkpoint.TrashPage
			if page, err = db.TrashList(ctx, f); err == nil {
				for i := range page.Entries {
					err = errors.Join(err, purgeTrashed(ctx, e.trash, db, &page.Entries[i]))
				}
			}
			f.Cursor, more = page.Next, page.Next != ""
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.expired.Store(0) // the next change goes on
	case err != nil:
		e.logger.Warn("what has expired could not all be removed from the trash", "err", err)
	}
}

// purgeTrashed removes one tree in the trash for good.
func purgeTrashed(ctx context.Context, trash *guardfs.FS, db *checkpoint.DB,
	t *checkpoint.Trashed) error {
	name, marked := strings.CutSuffix(t.Parked, goneSuffix)
	place, err := trash.EntryLink(name) // a volume that is not there now keeps its entries
	if err != nil {
		return err
	}
	defer place.Close()
	if !marked {
		if err := db.TrashRename(ctx, t.ID, name+goneSuffix); err != nil {
			return err
		}
	}
	if err := place.RemoveTree(ctx, t.Identity); err != nil {
		return err
	}
	card, err := trash.EntryLink(sidecarOf(name))
	if err != nil {
		return err
	}
	defer card.Close()
	if i := card.Object().Info; i.Kind != guardfs.KindAbsent {
		if err := card.RemoveTree(ctx, i.ID.Lasting()); err != nil {
			return err
		}
	}
	return db.TrashDrop(ctx, t.ID)
}

// EmptyTrash forgets entries of the trash, and removes for good what was moved there. It is for an
// operator: neither a person nor the policy is asked. at is where the trash is.
func EmptyTrash(ctx context.Context, at Location, db *checkpoint.DB,
	entries []checkpoint.Trashed) error {
	trash, err := guardfs.New(guardfs.Options{Judge: ownTrash{}, Calls: at.Calls})
	if err != nil {
		return err
	}
	defer trash.Close()
	var errs []error
	for i := range entries {
		errs = append(errs, purgeTrashed(ctx, trash, db, &entries[i]))
	}
	return errors.Join(errs...)
}
