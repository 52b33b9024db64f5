package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// DeleteOptions says how a path goes.
type DeleteOptions struct {
	Recursive bool // a directory with all it holds; otherwise it must be empty
	DryRun    bool
}

// Up to this size a tree goes to the trash through the store, path by path, so that its history
// goes on. A larger one is moved as a whole.
const (
	maxTree      = 10_000   // entries
	maxTreeBytes = 64 << 20 // of content
)

// Delete moves a file, a symbolic link (itself, not what it leads to) or a directory into the trash
// of the call's principal. It has a checkpoint whatever the config says. Done.Trashed has the one
// entry.
//
// An object that the store can't or must not hold (above max_file_bytes, excluded, a large tree) is moved as
// a whole, by one rename on its own volume. Where that fails it is not deleted: NoTrash.
func (e *Engine) Delete(ctx context.Context, c *Call, path string, o DeleteOptions) (*Done, error) {
	e, err := e.begun(c)
	if err != nil {
		return nil, err
	}
	if err := e.is(c, opRemove, path, "", o.Recursive); err != nil {
		return nil, err
	}
	var name string
	done, err := e.Change(ctx, c, func(ctx context.Context, d *Desk) (p *Plan, err error) {
		p, name, err = d.delete(ctx, path, o)
		return p, err
	})
	if err != nil {
		return done, err
	}
	for _, k := range done.Kept { // what was deleted is in the checkpoint
		if k.Path == name && k.Why == InUse {
			return done, Refuse(NotEmpty, k.Path, nil) // somebody put something in meanwhile
		}
		if k.Path == name {
			return done, k.Err
		}
	}
	return done, nil
}

// delete plans how what is at path goes to the trash. name is its canonical path.
func (d *Desk) delete(ctx context.Context, path string,
	o DeleteOptions) (_ *Plan, name string, err error) {
	e, agent := d.e, !d.c.ByUser
	d.c.Trace.Paths = []string{path}
	place, err := e.fs.PlaceLink(path)
	if err != nil {
		return nil, "", err
	}
	object := place.Object()
	place.Close()
	name = object.True
	p := Plan{Summary: "delete " + name, DryRun: o.DryRun, Checkpoint: true,
		Op: checkpoint.Op{Kind: checkpoint.KindDelete}}
	var in contents
	if object.Info.Kind == guardfs.KindAbsent {
		return nil, name, &guardfs.PathError{Op: "delete", Path: path, Err: fs.ErrNotExist}
	}
	if err := e.uproots(d.c, name); err != nil {
		return nil, name, err
	}
	if in, err = e.contentsOf(ctx, object, o.Recursive); err != nil {
		return nil, name, err
	}
	moved := &guardfs.ConflictError{Path: name, Why: guardfs.DirMoved}
	if object.Info.Kind == guardfs.KindDir && in.at != name { // the entry of the trash is of one name
		return nil, name, moved
	}
	if in.whole {
		s, _, err := d.move(&Move{Path: name,
			Entry: checkpoint.Trashed{Agent: agent, Size: in.size, Files: in.files}, in: in})
		p.Steps = append(p.Steps, s)
		return &p, name, err
	}
	p.Whole, p.trash = true, map[string]*checkpoint.Trashed{
		name: {Agent: agent, Size: in.size, Files: in.files, Identity: object.Info.ID.Lasting()},
	}
	if err := checkPlaces(in.paths); err != nil {
		return nil, name, err
	}
	for _, inside := range in.paths {
		t, err := d.Load(inside, Rules{Read: ReadSome, Link: in.links[inside]})
		if err != nil {
			return nil, name, err
		}
		switch {
		case t.True != inside:
			return nil, name, moved
		case inside == name && !t.Before.Exists:
			return nil, name, &guardfs.PathError{Op: "delete", Path: path, Err: fs.ErrNotExist}
		case in.links[inside] && t.Before.Exists && t.Before.Info.Kind != guardfs.KindSymlink:
			return nil, name, &guardfs.ConflictError{Path: t.True, Why: guardfs.WasLink}
		}
		t.After = After{Kind: guardfs.KindAbsent}
	}
	for _, dir := range in.dirs {
		s, err := d.rmdir(dir)
		if err != nil {
			return nil, name, err
		}
		p.Steps = append(p.Steps, s)
	}
	plan, err := d.plan(p)
	return plan, name, err
}

// uproots refuses to take the workspace root away from under the calls to come, or what it is in.
func (e *Engine) uproots(c *Call, name string) error {
	root := cmp.Or(e.root, e.cfg.WorkspaceRoot)
	if root == "" || c.ByUser {
		return nil
	}
	if root = e.fs.Canonical(root); root != name && !below(root, name) {
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
	at          string // the directory
	size        int64
	files       int
	paths, dirs []string // files and links; directories, innermost first. Not kept when whole
	links       map[string]bool
	whole       bool   // the store can't hold it all
	special     string // one that is neither file, link nor directory
	entries     int
	names       string // a digest of all names and kinds in the directory
}

// contentsOf counts the contents of an object.
func (e *Engine) contentsOf(
	ctx context.Context, o guardfs.Object, recursive bool,
) (contents, error) {
	if o.Info.Kind == guardfs.KindDir {
		return e.census(ctx, o.True, recursive, nil)
	}
	return contents{
		size: o.Info.Size, files: 1, paths: []string{o.True},
		links: map[string]bool{o.True: o.Info.Kind == guardfs.KindSymlink},
		whole: o.Info.Kind == guardfs.KindFile && !e.storable(o.True, o.Info.Size),
	}, nil
}

// census walks what a change would take away. Policy judges each entry, and a denied one stays.
// use, which may be nil, gets each name.
func (e *Engine) census(ctx context.Context, dir string, recursive bool,
	use func(name string)) (in contents, err error) {
	h, err := e.fs.Resolve(dir, guardfs.Remove)
	if err != nil {
		return in, err
	}
	defer h.Close()
	if h.Object().Info.Kind != guardfs.KindDir {
		return contents{at: dir, size: h.Object().Info.Size, files: 1, whole: true}, nil
	}
	d, err := h.Dir()
	if err != nil {
		return in, err
	}
	defer d.Close()
	in.at, in.links = d.True(), map[string]bool{}
	in.names, err = walk(ctx, d, func(d *guardfs.Dir, entries []guardfs.Entry, denied int) error {
		if len(entries)+denied > 0 && !recursive || denied > 0 {
			return Refuse(NotEmpty, d.True(), nil) // what is denied is not even counted aloud
		}
		for _, entry := range entries {
			name := d.True() + "/" + entry.Name
			if in.entries++; in.entries > maxTree {
				in.whole = true
			}
			if use != nil {
				use(name)
			}
			if entry.Kind == guardfs.KindDir {
				continue
			}
			info, err := d.Stat(entry.Name)
			if err != nil {
				return err
			}
			in.size, in.files = in.size+info.Size, in.files+1
			if info.Kind == guardfs.KindOther {
				in.special = name
			}
			if info.Kind == guardfs.KindOther || in.size > maxTreeBytes ||
				info.Kind == guardfs.KindFile && !e.storable(name, info.Size) {
				in.whole = true
			}
			if !in.whole {
				in.paths = append(in.paths, name)
				in.links[name] = info.Kind == guardfs.KindSymlink
			}
		}
		if !in.whole {
			in.dirs = append(in.dirs, d.True())
		}
		return nil
	})
	slices.Reverse(in.dirs)
	return in, err
}

// walk hands over each directory of a tree, with what is in it, those above before those below. names
// is a digest of all names and kinds. Other mounts are refused.
func walk(ctx context.Context, top *guardfs.Dir,
	use func(d *guardfs.Dir, entries []guardfs.Entry, denied int) error) (names string, err error) {
	sum := sha256.New()
	var down func(d *guardfs.Dir) error
	down = func(d *guardfs.Dir) error {
		entries, denied, err := d.List(nil)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		slices.SortFunc(entries, func(a, b guardfs.Entry) int { return strings.Compare(a.Name, b.Name) })
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
func (e *Engine) Trash(ctx context.Context, c *Call,
	f checkpoint.TrashFilter) (checkpoint.TrashPage, error) {
	e, err := e.begun(c)
	if err != nil {
		return checkpoint.TrashPage{}, err
	}
	db, err := e.checkpoints.open()
	if err != nil {
		return checkpoint.TrashPage{}, err
	}
	f.Principal, f.AllPrincipals, f.Unsettled = c.Principal, false, false
	return db.TrashList(ctx, f)
}

// Untrash brings an entry of the call's principal back to its path, under today's policy, and never
// over something that is there.
func (e *Engine) Untrash(ctx context.Context, c *Call, id checkpoint.TrashID,
	dryRun bool) (*Restored, error) {
	e, err := e.begun(c)
	if err != nil {
		return nil, err
	}
	db, err := e.checkpoints.open()
	if err != nil {
		return nil, err
	}
	t, err := db.TrashGet(ctx, id, c.Principal, false)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(t.Parked, goneSuffix) { // it is being removed
		return nil, checkpoint.ErrNotFound
	}
	// A caller that has the entry may see its checkpoint.
	op, err := db.Get(ctx, t.Checkpoint, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return nil, err
	}
	plan := &checkpoint.Plan{Mode: checkpoint.ModeState, RestoreOf: op.ID}
	r := &restore{e: e, db: db, plan: plan, entry: &t,
		o: RestoreOptions{DryRun: dryRun, KeepTimes: true}}
	for _, ch := range op.Changes {
		if k := ch.Before.Kind; t.Parked == "" && (ch.Path == t.Path || below(ch.Path, t.Path)) &&
			(leaf(k) || k == checkpoint.Dir) {
			// Head absent: anything that is there is a conflict.
			plan.Items = append(plan.Items, checkpoint.Item{
				Path: ch.Path, Want: ch.Before,
				Stored: ch.Stored || k != checkpoint.File, Missing: ch.Skipped,
				Head: checkpoint.State{Kind: checkpoint.Absent}, HeadSettled: true,
			})
		}
	}
	done, err := e.Change(ctx, c, func(ctx context.Context, d *Desk) (*Plan, error) {
		if t.Kind == checkpoint.Dir && t.Parked == "" {
			if now, err := e.stateOf(t.Path); err != nil || now.Kind != checkpoint.Absent {
				return nil, cmp.Or(err, Refuse(Conflicts, "", []Blocked{{Path: t.Path, Why: Occupied}}))
			}
		}
		return r.make(ctx, d)
	})
	if err != nil {
		return nil, err
	}
	r.out.Done, r.out.Entry = done, t
	if dryRun || t.Parked != "" {
		return r.out, nil
	}
	if err := errors.Join(db.TrashSettle(ctx, id, checkpoint.Gone),
		db.TrashDrop(ctx, id)); err != nil {
		// It is back, and a second try is refused because something is there.
		e.logger.Warn("a trash entry that was restored could not be removed", "id", id, "err", err)
	}
	return r.out, nil
}

func below(path, dir string) bool {
	return len(path) > len(dir)+1 && path[:len(dir)] == dir && path[len(dir)] == '/'
}
