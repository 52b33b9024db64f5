package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
)

// What a restore does with a path that others changed since its checkpoint.
const (
	OnConflictRefuse = "refuse" // nothing at all is changed
	OnConflictSkip   = "skip"   // that path is left alone
	OnConflictForce  = "force"  // it is overwritten; its content now is in the restore's own checkpoint
	OnConflictMerge  = "merge"  // three-way merge; what overlaps is a conflict still
)

// RestoreOptions says how a restore is carried out.
type RestoreOptions struct {
	OnConflict string // "" is OnConflictRefuse
	DryRun     bool
}

// Restored is what became of a restore.
type Restored struct {
	*Done
	Plan    *checkpoint.Plan
	Skipped []Left
	Merged  map[string]bool // by true path
}

// Left is a path that a restore left alone, and why.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// ConflictsError: others changed paths since the checkpoint, or later changes stand on what it did, so nothing was restored.
type ConflictsError struct{ Conflicts []PathConflict }

// PathConflict is one path of a ConflictsError.
type PathConflict struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	Diff string `json:"diff,omitempty"` // from what the store knows to what is there
}

func (e *ConflictsError) Error() string {
	if len(e.Conflicts) == 1 {
		return e.Conflicts[0].Path + " can't be restored without losing other changes"
	}
	return fmt.Sprintf("%d paths can't be restored without losing other changes", len(e.Conflicts))
}

// MissingContentError: the checkpoint knows of the path but does not hold its content.
type MissingContentError struct{ Path, Why string }

func (e *MissingContentError) Error() string {
	return "the content of " + e.Path + " is not in the checkpoint (" + e.Why + ")"
}

// Restore carries out a plan of the store as an ordinary guarded mutation under today's policy: all paths or none,
// checkpointed itself, so that it can be undone. Who asks is taken from c.
func (e *Engine) Restore(ctx context.Context, c *Call, r checkpoint.Restore, o RestoreOptions) (*Restored, error) {
	return e.carryOut(ctx, c, o, func(db *checkpoint.DB) (*checkpoint.Plan, error) {
		who := e.scope(c)
		r.Principal, r.Session, r.AllSessions = who.Principal, who.Session, who.AllSessions
		plan, err := db.Plan(ctx, r)
		if err != nil || len(r.Paths) == 0 {
			return plan, err
		}
		for _, path := range r.Paths {
			if !slices.ContainsFunc(plan.Items, func(it checkpoint.Item) bool { return within(it.Path, path) }) {
				return nil, unplanned(ctx, db, r, path)
			}
		}
		return plan, nil
	})
}

// NotInPlanError: a restore is asked for a path that it has nothing to say of.
type NotInPlanError struct {
	Path string
	Held []string // what it could restore
}

func (e *NotInPlanError) Error() string { return "there is nothing to restore at " + e.Path }

func unplanned(ctx context.Context, db *checkpoint.DB, r checkpoint.Restore, path string) error {
	r.Paths = nil
	whole, err := db.Plan(ctx, r)
	if err != nil {
		return err
	}
	e := &NotInPlanError{Path: path}
	for _, it := range whole.Items {
		if it.Role != checkpoint.RoleParent {
			e.Held = append(e.Held, it.Path)
		}
	}
	return e
}

// within says whether path is dir, as a caller spelled it, or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimRight(dir, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// Undo takes back the newest change of the call's session that is not undone; again and again, it walks back.
func (e *Engine) Undo(ctx context.Context, c *Call, o RestoreOptions) (*Restored, error) {
	return e.carryOut(ctx, c, o, func(db *checkpoint.DB) (*checkpoint.Plan, error) {
		return db.Undo(ctx, checkpoint.Scope{Principal: c.Principal, Session: c.Session})
	})
}

// Redo takes back the newest undo of the call's session, if nothing was changed after it.
func (e *Engine) Redo(ctx context.Context, c *Call, o RestoreOptions) (*Restored, error) {
	return e.carryOut(ctx, c, o, func(db *checkpoint.DB) (*checkpoint.Plan, error) {
		return db.Redo(ctx, checkpoint.Scope{Principal: c.Principal, Session: c.Session})
	})
}

// restore is one restore on its way through the chain.
type restore struct {
	e     *Engine
	db    *checkpoint.DB
	plan  *checkpoint.Plan
	o     RestoreOptions
	items map[string]*checkpoint.Item
	left  []Left // for what stands there, before anything is loaded
	out   *Restored
}

func (e *Engine) carryOut(ctx context.Context, c *Call, o RestoreOptions, find func(*checkpoint.DB) (*checkpoint.Plan, error)) (*Restored, error) {
	db, err := e.points.open()
	if err != nil {
		return nil, err
	}
	if err := e.settleNewest(ctx, db, c); err != nil {
		return nil, err
	}
	plan, err := find(db)
	if err != nil {
		return nil, err
	}
	r := &restore{e: e, db: db, plan: plan, o: o, items: map[string]*checkpoint.Item{}, out: &Restored{Plan: plan}}
	m := Mutation{
		Summary: fmt.Sprintf("restore %d paths", len(plan.Items)), DryRun: o.DryRun, Blind: true, CreateParents: true,
		Links: map[string]bool{}, Checkpoint: true, Trash: trashFiles(c),
		Op: checkpoint.Op{Kind: checkpoint.KindRestore, RestoreOf: plan.RestoreOf, UndoOf: plan.UndoOf},
	}
	goes := map[string]bool{}
	for i := range plan.Items {
		item := &plan.Items[i]
		if o.OnConflict == OnConflictSkip {
			if why := e.obstacle(item); why != "" {
				r.left = append(r.left, Left{item.Path, why})
				continue
			}
		}
		goes[item.Path] = item.Want.Kind == checkpoint.Absent
		switch {
		case item.Want.Kind == checkpoint.Dir:
			m.Dirs = append(m.Dirs, NewDir{item.Path, item.Want.Mode})
		case item.Want.Kind == checkpoint.Absent && (item.Role == checkpoint.RoleParent || item.Head.Kind == checkpoint.Dir):
			m.Drop = append(m.Drop, item.Path)
		default:
			r.items[item.Path] = item
			m.Paths = append(m.Paths, item.Path)
			m.Links[item.Path] = item.Want.Kind == checkpoint.Symlink || item.Head.Kind == checkpoint.Symlink
		}
	}
	if err := e.onlyNew(&m, goes); err != nil {
		return nil, err
	}
	m.Next = func(ts []*Target) error { return r.next(ctx, ts) }
	r.out.Done, err = e.Mutate(ctx, c, m)
	if err != nil {
		return nil, err
	}
	if plan.UndoOf != "" && !o.DryRun && r.out.Checkpoint == "" && len(r.out.Skipped) == 0 {
		// Everything is as it was already. That is on record all the same, or undo would stay here for ever.
		saved, err := db.Save(ctx, checkpoint.Op{Tool: c.Tool, Kind: checkpoint.KindRestore, Principal: c.Principal, Session: c.Session, Turn: c.Turn,
			Time: e.now(), UndoOf: plan.UndoOf})
		if err != nil {
			return nil, &CheckpointError{Err: err}
		}
		r.out.Checkpoint = string(saved.ID)
	}
	return r.out, nil
}

// settleNewest looks whether the newest change of the session took place at all, if nobody ever said so: its process may have died
// between the checkpoint and the change. One that did not must not be planned with.
func (e *Engine) settleNewest(ctx context.Context, db *checkpoint.DB, c *Call) error {
	for {
		page, err := db.List(ctx, checkpoint.Filter{Principal: c.Principal, Session: c.Session, NoReads: true, AsSaved: true, Limit: 1})
		if err != nil || len(page.Checkpoints) == 0 {
			return err
		}
		op := &page.Checkpoints[0]
		if op.Outcome != checkpoint.Presumed || op.Kind == checkpoint.KindExternal || op.Kind == checkpoint.KindManual || len(op.Changes) == 0 {
			return nil
		}
		never, err := e.never(ctx, db, op.ID)
		if err != nil || !never {
			return err
		}
	}
}

// never settles an operation of which nothing can be seen as aborted.
func (e *Engine) never(ctx context.Context, db *checkpoint.DB, id checkpoint.ID) (bool, error) {
	op, err := db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
	if err != nil {
		return false, err
	}
	unlock, err := e.lockAll(ctx, op) // whoever carries it out holds these
	if err != nil {
		return false, err
	}
	defer unlock()
	if op, err = db.Get(ctx, id, checkpoint.Scope{AllSessions: true}); err != nil || op.Outcome != checkpoint.Presumed {
		return false, err
	}
	for _, c := range op.Changes {
		if c.Role == checkpoint.RoleParent {
			continue
		}
		now, err := e.stateOf(c.Path)
		if err != nil || !now.Same(c.Before) || now.Same(c.After) {
			return false, nil // it took place, or it can't be told: presumed
		}
	}
	return true, db.Settle(ctx, id, checkpoint.Aborted)
}

// obstacle says what stands at a path that is of another kind than the plan knows, or on the way to it, so that it can't even be
// loaded; "" when nothing does, or when it is the chain that should refuse.
func (e *Engine) obstacle(item *checkpoint.Item) string {
	place, err := e.fs.PlaceLink(item.Path)
	if errors.Is(err, syscall.ENOTDIR) {
		return "something that is no directory is on the way to it"
	}
	if err != nil {
		return ""
	}
	defer place.Close()
	o := place.Object()
	if o.True != item.Path {
		return "a directory on the way to it has become a symbolic link"
	}
	known := func(k checkpoint.Kind) bool { return item.Want.Kind == k || item.Head.Kind == k }
	ok := true
	switch o.Info.Kind {
	case guardfs.KindDir:
		// A plan of a directory does nothing to one that is there but remove it when nothing is in it.
		ok = known(checkpoint.Dir) || item.Role == checkpoint.RoleParent
	case guardfs.KindSymlink:
		ok = known(checkpoint.Symlink)
	case guardfs.KindFile:
		ok = item.Want.Kind != checkpoint.Dir
	case guardfs.KindAbsent:
	default:
		ok = false
	}
	if ok {
		return ""
	}
	return "a " + o.Info.Kind.String() + " is there now"
}

// onlyNew keeps of a plan's directories those that have to be made or can go, so that a restore of what is there already
// changes nothing. Policy speaks on every one that is made. goes are the paths that the plan removes.
func (e *Engine) onlyNew(m *Mutation, goes map[string]bool) error {
	var make []NewDir
	for _, d := range m.Dirs {
		place, err := e.fs.Place(d.Path)
		if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
			make = append(make, d)
			continue
		}
		if err != nil {
			return err
		}
		kind := place.Object().Info.Kind
		place.Close()
		switch kind {
		case guardfs.KindDir:
		case guardfs.KindAbsent:
			make = append(make, d)
		default:
			return &ConflictsError{[]PathConflict{{Path: d.Path, Why: "a " + kind.String() + " is in the place of the directory"}}}
		}
	}
	var drop []string
	for _, d := range m.Drop {
		goes[d] = false // until it is seen that it can
	}
	for _, d := range m.Drop { // innermost first
		if e.onlyHolds(d, goes) {
			goes[d] = true
			drop = append(drop, d)
		}
	}
	m.Dirs, m.Drop = make, drop
	return nil
}

// onlyHolds says whether dir is a directory with nothing in it but what goes.
func (e *Engine) onlyHolds(dir string, goes map[string]bool) bool {
	h, err := e.fs.Resolve(dir, guardfs.Look)
	if err != nil {
		return false
	}
	defer h.Close()
	if h.Object().True != dir || h.Object().Info.Kind != guardfs.KindDir {
		return false
	}
	d, err := h.Dir()
	if err != nil {
		return false
	}
	defer d.Close()
	entries, denied, err := d.List(nil)
	if err != nil || denied > 0 {
		return false
	}
	for _, entry := range entries {
		if !goes[dir+"/"+entry.Name] {
			return false
		}
	}
	return true
}

// next says what each target becomes. It is pure: it may be called again when the files moved on.
func (r *restore) next(ctx context.Context, ts []*Target) error {
	r.out.Skipped, r.out.Merged = slices.Clone(r.left), map[string]bool{}
	var conflicts []PathConflict
	for _, t := range ts {
		conflict, err := r.wanted(ctx, t, r.items[t.Path])
		if err != nil {
			return err
		}
		if conflict != nil {
			conflicts = append(conflicts, *conflict)
		}
	}
	if conflicts != nil {
		return &ConflictsError{conflicts}
	}
	return nil
}

// wanted sets what one target becomes.
func (r *restore) wanted(ctx context.Context, t *Target, item *checkpoint.Item) (*PathConflict, error) {
	if t.True != item.Path {
		// A directory on the way has become a link: this is another place than the one that was recorded.
		return nil, &guardfs.SymlinkError{Path: item.Path, Target: t.True}
	}
	now := state(t.Before)
	why := r.conflict(now, item)
	// A mode that others set is theirs, and not worth a conflict.
	if now.Same(item.Want) && (now.Mode == item.Want.Mode || now.Kind != checkpoint.File || why != "") {
		t.keep()
		return nil, nil
	}
	if why != "" && r.o.OnConflict == OnConflictMerge || r.plan.Mode == checkpoint.ModeInverse && !now.Same(item.Base) {
		merged, err := r.merge(ctx, t, item)
		if err != nil {
			return nil, err
		}
		if merged != nil {
			t.After = After{Kind: guardfs.KindFile, Content: merged}
			r.out.Merged[t.True] = true
			return nil, nil
		}
		if why == "" {
			why = "later changes touch the same lines"
		}
	}
	if why != "" {
		switch r.o.OnConflict {
		case OnConflictSkip:
			t.keep()
			r.out.Skipped = append(r.out.Skipped, Left{t.True, why})
			return nil, nil
		case OnConflictForce:
		default:
			return &PathConflict{Path: t.True, Why: why, Diff: r.drift(ctx, t, item)}, nil
		}
	}
	if !item.Stored {
		if r.o.OnConflict == OnConflictSkip {
			t.keep()
			r.out.Skipped = append(r.out.Skipped, Left{t.True, "its content was not stored: " + item.Missing})
			return nil, nil
		}
		return nil, &MissingContentError{item.Path, item.Missing}
	}
	switch item.Want.Kind {
	case checkpoint.File:
		content, err := r.db.Content(ctx, item.Want.Hash)
		if err != nil {
			return nil, err
		}
		t.After = After{Kind: guardfs.KindFile, Content: content, Meta: metadata(item.Want)}
	case checkpoint.Symlink:
		t.After = After{Kind: guardfs.KindSymlink, Target: item.Want.Target}
	default:
		t.After = After{Kind: guardfs.KindAbsent}
	}
	return nil, nil
}

// conflict says why the path is not this session's to change, "" when it is.
func (r *restore) conflict(now checkpoint.State, item *checkpoint.Item) string {
	switch {
	case !item.Expects(now):
		return "changed outside"
	case item.Foreign && r.plan.Mode != checkpoint.ModeInverse:
		return "changed by others in between"
	}
	return ""
}

// keep leaves the target as it is.
func (t *Target) keep() {
	b := t.Before
	if !b.Exists {
		t.After = After{Kind: guardfs.KindAbsent}
		return
	}
	t.After = After{Kind: b.Info.Kind, Content: b.Content}
	if b.Info.Kind == guardfs.KindSymlink {
		t.After.Content, t.After.Target = nil, string(b.Content)
	}
}

// merge keeps what others changed and takes out what this session did. nil: it can't be merged, and is a conflict.
//
//   - Changed outside since the last record: a three-way merge over what was recorded last.
//   - Others are recorded in between, or one change in the middle is meant: each of the session's changes is taken out of what is there
//     now, the newest first, by a three-way merge over what it left behind.
func (r *restore) merge(ctx context.Context, t *Target, item *checkpoint.Item) ([]byte, error) {
	if !t.Before.Exists || t.Before.Info.Kind != guardfs.KindFile {
		return nil, nil
	}
	if r.plan.Mode != checkpoint.ModeInverse && !item.Foreign {
		return r.threeWay(ctx, item.Head, t.Before.Content, item.Want)
	}
	content := t.Before.Content
	for i := len(r.plan.Undoes) - 1; i >= 0; i-- {
		op, err := r.db.Get(ctx, r.plan.Undoes[i], checkpoint.Scope{AllSessions: true}) // the plan is for whoever may see it
		if err != nil {
			return nil, err
		}
		for _, c := range op.Changes {
			if c.Path != item.Path {
				continue
			}
			if content, err = r.threeWay(ctx, c.After, content, c.Before); err != nil || content == nil {
				return nil, err
			}
		}
	}
	return content, nil
}

// threeWay merges ours with theirs over their ancestor. nil: one of them is no text that is at hand, or they overlap.
func (r *restore) threeWay(ctx context.Context, base checkpoint.State, ours []byte, theirs checkpoint.State) ([]byte, error) {
	var sides [2][]byte
	for i, s := range []checkpoint.State{base, theirs} {
		if s.Kind != checkpoint.File {
			return nil, nil
		}
		content, err := r.db.Content(ctx, s.Hash)
		if errors.Is(err, checkpoint.ErrNoContent) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		sides[i] = content
	}
	for _, b := range [][]byte{sides[0], ours, sides[1]} {
		if bytes.IndexByte(b, 0) >= 0 {
			return nil, nil // no lines to merge by
		}
	}
	merged, conflicts := edit.Merge(sides[0], ours, sides[1])
	if len(conflicts) > 0 {
		return nil, nil
	}
	if merged == nil {
		merged = []byte{} // an empty file is a result too
	}
	return merged, nil
}

// drift is a diff from the last content that the store knows to what is
// there, "" when the store does not hold it.
func (r *restore) drift(ctx context.Context, t *Target, item *checkpoint.Item) string {
	if item.Head.Kind != checkpoint.File || !t.Before.Exists {
		return ""
	}
	known, err := r.db.Content(ctx, item.Head.Hash)
	if err != nil {
		return ""
	}
	return edit.Unified(t.True, edit.Edited, edit.Patch(text(known), text(t.Before.Content)))
}
