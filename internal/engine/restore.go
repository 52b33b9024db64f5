package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	encodings "moltisfs/internal/text"
)

// The rules for a path that others changed since its checkpoint.
const (
	OnConflictRefuse = "refuse" // nothing at all is changed
	OnConflictSkip   = "skip"   // that path is left alone
	// it is overwritten; its content now is in the restore's own checkpoint
	OnConflictForce = "force"
	OnConflictMerge = "merge" // three-way merge; what overlaps is a conflict still
)

// RestoreOptions says how a restore is carried out.
type RestoreOptions struct {
	OnConflict string // "" is OnConflictRefuse
	DryRun     bool
	// KeepTimes gives files the modification times that they had. Else it is now, so that builds
	// notice.
	KeepTimes bool

	pass bool     // what is out of reach is left alone, and counted
	left []string // trees that an earlier piece skipped: what is in them is left alone too
}

// Restored is the result of a restore.
type Restored struct {
	*Done
	Plan    *checkpoint.Plan
	Skipped []Blocked
	Merged  map[string]bool // by canonical path
	// Outside are, of a rewind, checkpoints of what others changed meanwhile. That stays.
	Outside []checkpoint.ID
	// Denied counts paths of the plan that policy does not let us name. They were skipped.
	Denied int
	// Passed: an undo or redo had only what it skipped. The next one goes on beyond it.
	Passed bool
	// Metadata is, by canonical path, what came back of the metadata of files that were there. What
	// did not differ is not told.
	Metadata map[string]rewind.Metadata
	Entry    checkpoint.Trashed // of Untrash: what came back
}

// Restore carries out a plan of the store as an ordinary change under today's policy: all paths or
// none. It has a checkpoint of its own, so it can be undone. The plan is that of the call's session.
func (c *Call) Restore(ctx context.Context, r checkpoint.Restore,
	o RestoreOptions) (*Restored, error) {
	r.Partial = o.OnConflict == OnConflictForce
	if c.ByUser && !o.DryRun && (o.OnConflict == OnConflictSkip || o.OnConflict == OnConflictForce) {
		c.givesUp, _ = checkpoint.ParseID(string(r.ID)) // the plan tells of one that is none
		defer func() { c.givesUp = "" }()
	}
	// The pieces of a rewind have a run in common, so that one undo takes back all of them.
	if o.pass = r.ID == ""; o.pass && c.Run == 0 {
		c.Run = 1 + rand.Int64N(math.MaxInt64)
		defer func() { c.Run = 0 }()
	}
	out, err := c.pieces(ctx, o, func(o RestoreOptions, until checkpoint.ID) (*Restored, error) {
		r.Until = until
		return c.runRestore(ctx, o,
			func(db *checkpoint.DB) (*checkpoint.Plan, error) { return c.planFor(ctx, db, r) })
	})
	if err == nil && r.ID == "" {
		out.Outside = out.Plan.Outside
		if !o.DryRun && c.cfg.CheckpointBeforeMutation {
			c.alsoOutside(ctx, r.Paths, out)
		}
	}
	return out, err
}

// pieces carries out a plan of the store, and what it leaves (checkpoint.Plan.More), each piece as a change of
// its own: a tree that moved, and what was changed in it, are taken back one after the other. one carries out
// the piece until an operation. A piece that fails does nothing; those before it stand, which the error says.
// A dry run has the first piece only.
func (c *Call) pieces(ctx context.Context, o RestoreOptions,
	one func(o RestoreOptions, until checkpoint.ID) (*Restored, error)) (*Restored, error) {
	out, err := one(o, "")
	if err != nil || out.Plan.More == "" || o.DryRun {
		return out, err
	}
	done := []string{out.Checkpoint}
	for last := out; last.Plan.More != ""; {
		for _, l := range last.Skipped {
			o.left = append(o.left, l.Path)
		}
		if last, err = one(o, last.Plan.More); err != nil {
			return nil, partTaken(err, done, out)
		}
		done = append(done, last.Checkpoint)
		out.and(last)
	}
	return out, nil
}

// and adds a later piece to the answer. The checkpoint is that of the last one.
func (r *Restored) and(o *Restored) {
	r.Targets, r.Moved = append(r.Targets, o.Targets...), append(r.Moved, o.Moved...)
	r.Made, r.Dropped = append(r.Made, o.Made...), append(r.Dropped, o.Dropped...)
	r.Trashed, r.Kept = append(r.Trashed, o.Trashed...), append(r.Kept, o.Kept...)
	r.Skipped, r.Denied = append(r.Skipped, o.Skipped...), r.Denied+o.Denied
	maps.Copy(r.Merged, o.Merged)
	maps.Copy(r.Metadata, o.Metadata)
	r.Done.Skipped, r.Approval = cmp.Or(r.Done.Skipped, o.Done.Skipped), cmp.Or(r.Approval, o.Approval)
	r.Checkpoint, r.Idle, r.Passed = cmp.Or(o.Checkpoint, r.Checkpoint), r.Idle && o.Idle, r.Passed && o.Passed
	plan := *r.Plan
	plan.Undoes, plan.More = slices.Concat(o.Plan.Undoes, plan.Undoes), ""
	if plan.RestoreOf = cmp.Or(o.Plan.RestoreOf, o.Plan.UndoOf); plan.RestoreOf == plan.UndoOf {
		plan.RestoreOf = ""
	}
	r.Plan = &plan
}

// partTaken is the error of a restore of which the pieces of out, with the checkpoints done, were made before
// another one failed.
func partTaken(cause error, done []string, out *Restored) error {
	f := PartFacts{Err: cause, Checkpoints: slices.DeleteFunc(done, func(id string) bool { return id == "" })}
	for _, t := range targets(out.Targets).changing() {
		f.Back = append(f.Back, t.True)
	}
	for _, mv := range out.Moved {
		f.Back = append(f.Back, mv.Path)
	}
	if len(f.Checkpoints) == 0 {
		return cause
	}
	r := &Refusal{Code: PartTaken.Code, Cause: PartTaken, Facts: f}
	if of := Reason(cause); of != nil {
		r.Code, r.Path = of.Code, of.Path
	}
	return r
}

// alsoOutside records what else others changed of what the session knows, and adds it to the answer
// of a rewind. The rewind was made, so an error is only logged.
func (c *Call) alsoOutside(ctx context.Context, only []string, out *Restored) {
	just := map[string]bool{}
	for _, t := range out.Targets {
		just[t.True] = t.Published != nil
	}
	db, err := c.checkpoints.open()
	var id checkpoint.ID
	if err == nil {
		id, err = c.recordOutside(ctx, db, func(path string) bool {
			return just[path] ||
				len(only) > 0 && !slices.ContainsFunc(only, func(dir string) bool { return within(path, dir) })
		})
	}
	if err != nil {
		c.logger.Warn("what was changed outside could not be recorded", "err", err)
	} else if id != "" {
		out.Outside = append(out.Outside, id)
	}
}

// planFor is the plan of r for the call's session. A path in r that policy denies is refused first,
// so nobody learns whether the plan has it. One that the plan does not have is NotInPlan.
func (c *Call) planFor(ctx context.Context, db *checkpoint.DB,
	r checkpoint.Restore) (*checkpoint.Plan, error) {
	who := c.scope()
	r.Principal, r.Session, r.AllSessions = who.Principal, who.Session, who.AllSessions
	for _, path := range r.Paths {
		if err := c.denied(path); err != nil {
			return nil, err
		}
	}
	plan, err := db.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, path := range r.Paths {
		if !slices.ContainsFunc(plan.Items,
			func(it checkpoint.Item) bool { return within(it.Path, path) }) {
			return nil, c.unplanned(ctx, db, r, path)
		}
	}
	return plan, nil
}

func (c *Call) unplanned(ctx context.Context, db *checkpoint.DB, r checkpoint.Restore,
	path string) error {
	r.Paths = nil
	whole, err := db.Plan(ctx, r)
	if err != nil {
		return err
	}
	var no PlanFacts
	for _, it := range whole.Items {
		switch {
		case it.Role == checkpoint.RoleParent:
		case c.denied(it.Path) != nil:
			no.Denied++
		default:
			no.Held = append(no.Held, it.Path)
		}
	}
	return Refuse(NotInPlan, path, no)
}

// within says whether path is dir, as a caller spelled it, or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimRight(dir, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// Undo takes back the newest change of the call's session that is not undone; if a script made it,
// all that this run did. Called again and again, it walks back. A change of which no path is within
// reach is refused as Hidden, unless conflicts are skipped: then it counts as undone.
func (c *Call) Undo(ctx context.Context, o RestoreOptions) (*Restored, error) {
	return c.walk(ctx, o, (*checkpoint.DB).Undo)
}

func (c *Call) walk(ctx context.Context, o RestoreOptions, to func(*checkpoint.DB,
	context.Context, checkpoint.Scope) (*checkpoint.Plan, error)) (*Restored, error) {
	o.pass = true
	find := func(db *checkpoint.DB) (*checkpoint.Plan, error) {
		who := checkpoint.Scope{Principal: c.Principal, Session: c.Session}
		plan, err := to(db, ctx, who)
		switch {
		case err != nil:
		case plan.Lost != nil && o.OnConflict != OnConflictForce:
			err = &checkpoint.PartialError{Lost: *plan.Lost}
		case o.OnConflict != OnConflictSkip:
			err = c.outOfReach(plan)
		}
		return plan, err
	}
	return c.pieces(ctx, o, func(o RestoreOptions, _ checkpoint.ID) (*Restored, error) {
		return c.runRestore(ctx, o, find)
	})
}

// outOfReach refuses a plan of which no path is within the reach of c.
func (c *Call) outOfReach(plan *checkpoint.Plan) error {
	n := 0
	for i := range plan.Items {
		if it := &plan.Items[i]; it.Role == checkpoint.RoleParent {
			continue
		} else if !c.Denies(it.Path) {
			return nil
		}
		n++
	}
	if n == 0 { // it changed nothing
		return nil
	}
	return Refuse(Hidden, "", n)
}

// Redo takes back the newest undo of the call's session, if nothing was changed after it.
func (c *Call) Redo(ctx context.Context, o RestoreOptions) (*Restored, error) {
	return c.walk(ctx, o, (*checkpoint.DB).Redo)
}

// restore is one restore on its way through the chain.
type restore struct {
	c       *Call
	db      *checkpoint.DB
	find    planner
	o       RestoreOptions
	plan    *checkpoint.Plan
	entry   *checkpoint.Trashed // that is to come back; nil for all else
	unnamed []string            // what can't be named and is not restored
	out     *Restored
	d       *Planner
	reading sync.Mutex // one at a time: each more takes a connection to the store, with a cache of pages
	todo
	asked map[string]bool // directories to be made, which the system lets us make
}

// A planner asks the store what has to be done.
type planner func(*checkpoint.DB) (*checkpoint.Plan, error)

// todo holds the decisions on the items of a plan, as far as they are made.
type todo struct {
	items map[string]*checkpoint.Item // by path: those of paths
	paths []string                    // files and links
	dirs  []Step                      // to be there, from the top down
	// directories to go if they are empty, the deepest first
	drop  []string
	sets  []*checkpoint.Item // directories that get other attributes
	moves []*Move            // what goes to the trash as a whole, or comes back
	goes  map[string]bool    // whether it is removed, as far as it was looked at

	decided   []decided // on the targets that were loaded, in their order
	conflicts []Blocked // conflicts
	kept      []Blocked // directories that can't go
}

// decided is a decision on a target: it is left alone for a reason, or the restore can't be.
type decided struct {
	why Why
	err error
}

func (c *Call) runRestore(ctx context.Context, o RestoreOptions,
	find planner) (*Restored, error) {
	db, err := c.checkpoints.open()
	if err != nil {
		return nil, err
	}
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		done, err := c.restoreOnce(ctx, db, o, find)
		if _, cut := errors.AsType[*interruptedError](err); !cut || time.Since(start) > c.lockWait ||
			ctx.Err() != nil {
			return done, err
		}
	}
}

func (c *Call) restoreOnce(ctx context.Context, db *checkpoint.DB, o RestoreOptions,
	find planner) (*Restored, error) {
	if !o.DryRun { // also what this very process had to leave half-way
		// It does what it can at once. Only what this plan is about is waited for.
		if err := c.own().recover(ctx, time.Now()); err != nil {
			return nil, err
		}
	}
	plan, err := find(db) // once: what others undo or redo meanwhile is not to be done again
	if err == nil && !o.DryRun {
		err = c.unsettled(ctx, plan)
	}
	if err != nil {
		return nil, err
	}
	r := &restore{c: c, db: db, find: find, plan: plan, o: o}
	if o.OnConflict == OnConflictSkip || o.pass {
		r.hide()
	}
	plan.Items = slices.DeleteFunc(plan.Items, func(it checkpoint.Item) bool {
		return slices.ContainsFunc(o.left, func(tree string) bool { return within(it.Path, tree) })
	})
	done, err := c.Change(ctx, r.make)
	if err != nil {
		return nil, c.hiding(plan.Items, err)
	}
	r.out.Done = done
	if c.givesUp != "" {
		if err := c.endGivenUp(ctx); err != nil { // what the answer says is made all the same
			c.logger.Error("an interrupted change could not be given up", "id", c.givesUp, "err", err)
		}
	}
	if !o.DryRun {
		// Another may have taken it away before it was our turn.
		r.kept = slices.DeleteFunc(r.kept, func(k Blocked) bool {
			now, err := c.stateOf(k.Path)
			return err == nil && now.Kind != checkpoint.Dir
		})
	}
	r.out.Kept = append(r.kept, r.out.Kept...)
	if r.plan.UndoOf != "" && !o.DryRun && done.Checkpoint == "" {
		return r.out, r.idle(ctx, c)
	}
	return r.out, nil
}

// hide takes denied paths out of the plan of a restore with "skip".
func (r *restore) hide() {
	r.plan.Items = slices.DeleteFunc(r.plan.Items, func(it checkpoint.Item) bool {
		no := r.c.denied(it.Path) != nil
		if no && it.Role != checkpoint.RoleParent {
			r.unnamed = append(r.unnamed, it.Path)
		}
		return no
	})
}

// hiding takes the name out of a denial: the session knows the path only from its history.
func (c *Call) hiding(items []checkpoint.Item, err error) error {
	no, ok := errors.AsType[*policy.Denied](err)
	if !ok || c.denied(no.Path) == nil {
		return err
	}
	n := 0
	for i := range items {
		if items[i].Role != checkpoint.RoleParent && c.denied(items[i].Path) != nil {
			n++
		}
	}
	return &Refusal{Hidden.Code, Hidden, "", max(n, 1), err}
}

// idle records an undo or redo that had nothing to do, since all is as it was or all was skipped.
// Without that record the next undo would find the same change again.
func (r *restore) idle(ctx context.Context, c *Call) error {
	// Unless somebody else has just done it, and has it on record.
	if now, err := r.find(r.db); errors.Is(err, checkpoint.ErrNothing) ||
		err == nil && now.UndoOf != r.plan.UndoOf {
		return nil
	}
	saved, err := r.db.Save(ctx, checkpoint.Op{
		Tool: c.Tool, Kind: checkpoint.KindRestore, Principal: c.Principal, Session: c.Session,
		Turn: c.Turn, Time: r.c.now(), UndoOf: r.plan.UndoOf,
		RestoreOf: r.plan.RestoreOf,
	})
	if err != nil {
		return notSaved(err)
	}
	if r.out.Passed = len(r.out.Skipped)+r.out.Denied > 0; !r.out.Passed {
		r.out.Checkpoint = string(saved.ID)
	}
	return nil
}

// make is the maker of restores. It looks what is there, and says what becomes of each path of the
// store's plan, or why nothing does.
func (r *restore) make(ctx context.Context, d *Planner) (_ *Plan, err error) {
	r.begin(d)
	defer func() {
		if err != nil {
			d.c.Trace.Paths = slices.Sorted(maps.Keys(r.goes))
		}
	}()
	items, err := r.takeMoves(ctx)
	if err != nil {
		return nil, err
	}
	if r.entry != nil {
		r.moves = []*Move{{Path: r.entry.Path, Back: true, Entry: *r.entry}}
	}
	for _, mv := range r.moves {
		if r.goes[mv.Path] = !mv.Back; mv.To != "" {
			r.goes[mv.To] = false
		}
	}
	if err := r.split(ctx, items); err != nil {
		return nil, err
	}
	r.oneOrTheOther()
	p := Plan{
		Summary: restoring(len(r.plan.Items)), DryRun: r.o.DryRun, Checkpoint: true,
		Whole: true, sure: r.sure,
		Op: checkpoint.Op{Kind: checkpoint.KindRestore, RestoreOf: r.plan.RestoreOf,
			UndoOf: r.plan.UndoOf},
	}
	if r.entry != nil {
		p.Summary, p.Whole = "bring "+r.entry.Path+" back from the trash", false
	}
	if err := r.look(ctx, &p); err != nil {
		return nil, err
	}
	if err := r.next(); err != nil {
		return nil, err
	}
	r.settleDirs()
	return r.steps(ctx, p)
}

// sure drops the plan of the store and the decisions, which take as much memory as all else that is held of many files.
func (r *restore) sure() { r.plan.Items, r.todo = nil, todo{kept: r.kept} }

// takeMoves makes moves of the items that move as a whole, and returns the others.
func (r *restore) takeMoves(ctx context.Context) (rest []*checkpoint.Item, err error) {
	var trees []*checkpoint.Item
	for i := range r.plan.Items {
		item := &r.plan.Items[i]
		if item.Role == roleTree {
			trees = append(trees, item)
		} else {
			rest = append(rest, item)
		}
	}
	for _, item := range trees {
		if partner(trees, item, true) != nil {
			continue // it goes back with that
		}
		moves, why, err := r.treeMoves(ctx, item, trees)
		if err != nil && why == none {
			return nil, err
		}
		if why != none && r.o.OnConflict != OnConflictSkip {
			return nil, Refuse(Conflicts, "", []Blocked{{Path: item.Path, Why: why}})
		}
		if why != none {
			r.skip(item.Path, why)
		}
		if why != none || item.To == "" && item.Want.Kind != checkpoint.Absent && item.Base.Kind != checkpoint.Absent {
			rest = slices.DeleteFunc(rest, func(other *checkpoint.Item) bool { return below(other.Path, item.Path) })
		}
		r.moves = append(r.moves, moves...)
	}
	return rest, nil
}

// partner is the other name of what item gave another name, or with came, of what came to item by that; nil: the plan does not have it.
func partner(trees []*checkpoint.Item, item *checkpoint.Item, came bool) *checkpoint.Item {
	for _, o := range trees {
		if came && o.To == item.Path && item.From == o.Path || !came && o.Path == item.To && o.From == item.Path {
			return o
		}
	}
	return nil
}

// treeMoves gives the moves that bring back what was at the path of item as a whole, from the trash or from the name that it got;
// none: all is as it should be. What came there in the changes that are undone goes to the trash before. why is a conflict.
func (r *restore) treeMoves(ctx context.Context, item *checkpoint.Item, trees []*checkpoint.Item) (moves []*Move, why Why, err error) {
	force := r.o.OnConflict == OnConflictForce
	now, err := r.c.objectAt(item.Path)
	if err != nil {
		return nil, r.unseen(item.Path, err, nil), err
	}
	there := now.Info.Kind != guardfs.KindAbsent
	var come []*Move
	switch {
	case item.To != "":
		come, why, err = r.renamedBack(ctx, item, partner(trees, item, false), now.Info)
	case item.Foreign && !force:
		return nil, ChangedByOthers, nil
	case item.Want.Kind != checkpoint.Absent:
		come, why, err = r.trashedBack(ctx, item, there)
	case there && item.From != "" && r.c.denied(item.From) != nil: // it belongs where we can't bring it
		return nil, OutOfReach, nil
	}
	if err != nil || why != none || !there || item.Want.Kind != checkpoint.Absent && come == nil {
		return come, why, err
	}
	switch {
	case item.To == "" && item.Want.Kind != checkpoint.Absent && item.Base.Kind == checkpoint.Absent: // nothing of ours was there
		return nil, Occupied, nil
	case !force:
		is, err := r.isMoved(ctx, item, item.Head, append([]checkpoint.ID{item.HeadID}, item.Own...)...)
		if err == nil && !is && !item.HeadSettled && item.Want.Kind == checkpoint.Absent {
			is, err = r.isMoved(ctx, item, item.HeadBefore)
		}
		if why = ChangedOutside; item.To != "" {
			why = Occupied
		}
		if err != nil || !is {
			return nil, why, err
		}
	}
	in := contents{files: 1}
	if now.Info.Kind != guardfs.KindSymlink { // what it points to is not meant
		if in, err = r.c.walkForDelete(ctx, item.Path, true, nil); err != nil {
			return nil, none, err
		}
	}
	return append([]*Move{r.c.toTrash(item.Path, in)}, come...), none, nil
}

// renamedBack gives the moves that bring what got another name back to item's: there is what is at that. to is the item of the other name, or nil;
// the thing that it was moved over comes back from the trash.
func (r *restore) renamedBack(ctx context.Context, item, to *checkpoint.Item, there guardfs.Info) (moves []*Move, why Why, err error) {
	force := r.o.OnConflict == OnConflictForce
	if r.c.denied(item.To) != nil {
		return nil, OutOfReach, nil
	}
	at, err := r.c.objectAt(item.To)
	if errors.Is(err, syscall.ENOTDIR) { // others put a file in the place of its directory
		return nil, ChangedOutside, nil
	}
	if err != nil {
		return nil, r.unseen(item.To, err, nil), err
	}
	is := lasting(at.Info) == item.Identity && item.Identity != ""
	if !is && lasting(there) == item.Identity {
		return nil, none, nil
	}
	if !is && to != nil && (at.Info.Kind == guardfs.KindFile || at.Info.Kind == guardfs.KindSymlink) {
		now, err := r.c.stateLike(item.To, to.Head) // made anew by a change of ours, and by the restore that took that back
		if err != nil {
			return nil, none, err
		}
		is = to.Expects(now)
	}
	switch {
	case at.Info.Kind == guardfs.KindAbsent || !is && !force:
		return nil, ChangedOutside, nil
	case !force && (item.Foreign || to != nil && to.Foreign):
		return nil, ChangedByOthers, nil
	}
	moves = []*Move{{Path: item.To, To: item.Path, over: there.Kind != guardfs.KindAbsent}}
	if to == nil || to.Want.Kind == checkpoint.Absent {
		return moves, none, nil
	}
	was, err := r.inTrash(ctx, to)
	switch {
	case err != nil:
		return nil, none, err
	case was != nil:
		moves = append(moves, &Move{Path: item.To, Back: true, Entry: *was, over: true})
	case force || r.o.OnConflict == OnConflictSkip:
		r.skip(item.To, NotInTrash)
	default:
		return nil, none, Refuse(NotStored, item.To, NotInTrash)
	}
	return moves, none, nil
}

// trashedBack gives the move that brings what was at the path of item back from the trash; none: it is there.
func (r *restore) trashedBack(ctx context.Context, item *checkpoint.Item, there bool) (moves []*Move, why Why, err error) {
	was, err := r.inTrash(ctx, item)
	if err != nil {
		return nil, none, err
	}
	if was != nil {
		return []*Move{{Path: item.Path, Back: true, Entry: *was, over: there}}, none, nil
	}
	why = NotInTrash
	if there {
		if is, err := r.isMoved(ctx, item, item.Want, item.Own...); is || err != nil {
			return nil, none, err
		}
		why = NoneInTrash
	}
	if r.o.OnConflict == OnConflictSkip {
		return nil, why, nil
	}
	return nil, none, Refuse(NotStored, item.Path, why)
}

// objectAt is the object at the canonical path name; where its directory is gone, none.
func (c *Call) objectAt(name string) (guardfs.Object, error) {
	entry, err := c.openAt(name)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing {
		return guardfs.Object{True: name, Info: guardfs.Info{Kind: guardfs.KindAbsent}}, nil
	}
	if err != nil {
		return guardfs.Object{}, err
	}
	defer entry.Close() //nolint:errcheck // nothing was written through it
	return entry.Object(), nil
}

// inTrash finds the entry of the trash that a restore brings back to item's path: that of the oldest operation that it takes back, else the newest of
// the principal, since it came back meanwhile and went again. nil: there is none.
func (r *restore) inTrash(ctx context.Context, item *checkpoint.Item) (found *checkpoint.Trashed, err error) {
	entries, err := r.c.entriesAt(ctx, r.db, item.Path, false)
	for i := range entries {
		t := &entries[i]
		switch {
		case strings.HasSuffix(t.Parked, goneSuffix) || t.Expires.Before(r.c.now()):
		case len(item.Own) > 0 && t.Checkpoint == item.Own[0]:
			return t, err
		case found == nil && t.Principal == r.d.c.Principal:
			found = t
		}
	}
	return found, err
}

// isMoved says that the object at item's path may be the one that was moved, with the state was.
// A moved object has no hash. A file is known by size and time. A directory must not be younger than
// the first of ops that moved it.
func (r *restore) isMoved(ctx context.Context, item *checkpoint.Item, was checkpoint.State,
	ops ...checkpoint.ID) (bool, error) {
	now, err := r.c.stateOf(item.Path)
	switch {
	case err != nil || now.Kind != was.Kind:
		return false, err
	case now.Kind == checkpoint.Symlink && was.Target == "":
		return now.ModTime.Equal(was.ModTime), nil
	case now.Kind != checkpoint.Dir:
		return now.Same(was), nil
	}
	place, err := r.c.fs.EntryLink(item.Path)
	if err != nil {
		return false, err
	}
	info := place.Object().Info
	place.Close()
	if info.Kind != guardfs.KindDir || info.ID.Birth == 0 {
		return info.Kind == guardfs.KindDir, nil
	}
	for _, id := range ops {
		if id == "" {
			continue
		}
		op, err := r.db.Get(ctx, id, checkpoint.Scope{AllSessions: true})
		if err != nil {
			return false, err
		}
		for i := range op.Changes {
			if c := &op.Changes[i]; c.Path == item.Path && (c.Role == roleTree || c.After.Kind == checkpoint.Dir) {
				return !time.Unix(0, info.ID.Birth).After(op.Time), nil
			}
		}
	}
	return true, nil
}

// split says of each item what kind of thing has to be done.
func (r *restore) split(ctx context.Context, items []*checkpoint.Item) error {
	for _, item := range items {
		if r.belowFile(item) {
			continue // as it should be
		}
		trashed, err := r.trashUnsavable(ctx, item)
		if err != nil {
			return err
		}
		if trashed {
			r.goes[item.Path] = slices.ContainsFunc(r.moves,
				func(mv *Move) bool { return mv.Path == item.Path })
			continue
		}
		r.goes[item.Path] = item.Want.Kind == checkpoint.Absent
		gone := item.Role == checkpoint.RoleParent && !leaf(item.Head.Kind) ||
			item.Head.Kind == checkpoint.Dir
		switch {
		case item.Want.Kind == checkpoint.Dir && item.Base.Kind == checkpoint.Dir:
			r.sets = append(r.sets, item)
		case item.Want.Kind == checkpoint.Dir:
			r.dirs = append(r.dirs, mkdirAs(item.Path, item.Want))
		case item.Want.Kind == checkpoint.Absent && gone:
			r.drop = append(r.drop, item.Path)
		default:
			r.items[item.Path] = item
			r.paths = append(r.paths, item.Path)
		}
	}
	return nil
}

// belowFile says that item is to be absent, and is: a file is in the place of its directory.
func (r *restore) belowFile(item *checkpoint.Item) bool {
	if item.Want.Kind != checkpoint.Absent {
		return false
	}
	place, err := r.c.fs.EntryLink(item.Path)
	if err == nil {
		place.Close()
	}
	return errors.Is(err, syscall.ENOTDIR)
}

// trashUnsavable moves a file to the trash that is to go and that the store can't or must not hold,
// as Delete does. It is false for any other file.
func (r *restore) trashUnsavable(ctx context.Context, item *checkpoint.Item) (bool, error) {
	if item.Want.Kind != checkpoint.Absent || item.Role == checkpoint.RoleParent {
		return false, nil
	}
	place, err := r.c.fs.EntryLink(item.Path)
	if err != nil {
		return false, nil //nolint:nilerr // the chain meets it again, and says so
	}
	o := place.Object()
	place.Close()
	if o.True != item.Path || o.Info.Kind != guardfs.KindFile || r.c.storable(o.True, o.Info.Size) {
		return false, nil
	}
	if _, err := r.c.walkForDelete(ctx, item.Path, false, nil); err != nil { // policy
		return false, err
	}
	if err := r.c.allowed(nil, item.Path); err != nil {
		if why := blockedWhy(err); why != none && r.o.OnConflict == OnConflictSkip {
			r.skip(item.Path, why)
			return true, nil
		}
		return false, err
	}
	now, err := r.c.stateLike(item.Path, item.Head)
	if err != nil {
		return false, err
	}
	switch why := r.rules().Why(item, now); {
	case why != none && r.o.OnConflict == OnConflictSkip:
		r.skip(item.Path, why)
	case why != none && r.o.OnConflict != OnConflictForce:
		r.conflicts = append(r.conflicts, Blocked{Path: item.Path, Why: why})
	default:
		r.moves = append(r.moves, r.c.toTrash(item.Path, contents{size: o.Info.Size, files: 1}))
	}
	return true, nil
}

// stateLike is stateOf, to be compared with head: where that has a hash, a file of any size is read for its own.
func (c *Call) stateLike(path string, head checkpoint.State) (checkpoint.State, error) {
	now, err := c.stateOf(path)
	if err != nil || now.Kind != checkpoint.File || now.Hash != "" || head.Hash == "" {
		return now, err
	}
	place, err := c.fs.EntryLink(path)
	if err != nil {
		return checkpoint.State{}, err
	}
	defer place.Close() //nolint:errcheck // nothing was written through it
	b, err := place.Sum()
	if err != nil {
		return checkpoint.State{}, err
	}
	return state(b), nil
}

// oneOrTheOther finds paths that exclude each other. A file or link is wanted as it was at one
// time, and something below it as it was at another. With "skip" the file is skipped, because what
// is below it tells more of what was there.
func (r *restore) oneOrTheOther() {
	var wanted []string
	for _, name := range r.paths {
		if r.items[name].Want.Kind != checkpoint.Absent {
			wanted = append(wanted, name)
		}
	}
	for _, d := range r.dirs {
		wanted = append(wanted, d.Path)
	}
	for _, mv := range r.moves {
		if name := mv.comesTo(); name != "" {
			wanted = append(wanted, name)
		}
	}
	over := rewind.Over(wanted,
		func(name string) bool { return r.items[name] != nil && leaf(r.items[name].Want.Kind) })
	for _, dir := range slices.Sorted(maps.Keys(over)) {
		if why := WasDirOf.Of(over[dir]); r.o.OnConflict == OnConflictSkip {
			r.skip(dir, why)
		} else {
			r.conflicts = append(r.conflicts, Blocked{Path: dir, Why: why})
		}
		delete(r.items, dir)
	}
	r.paths = slices.DeleteFunc(r.paths, func(name string) bool { return over[name] != "" })
}

// restoring says how many paths are to be restored.
func restoring(n int) string {
	if n == 1 {
		return "restore 1 path"
	}
	return fmt.Sprintf("restore %d paths", n)
}

// settleDirs decides which directories come and go, now that it is known what the files become.
func (r *restore) settleDirs() {
	var dirs, comes []string
	for i := range r.dirs {
		dirs = append(dirs, r.dirs[i].Path)
	}
	for _, t := range r.d.files {
		if t.After.Kind != guardfs.KindAbsent {
			comes = append(comes, t.True)
		}
	}
	for _, mv := range r.moves {
		if name := mv.comesTo(); name != "" {
			comes = append(comes, name)
		}
	}
	skipped := slices.Clone(r.unnamed)
	for _, l := range r.out.Skipped {
		skipped = append(skipped, l.Path)
	}
	made, gone, used := rewind.Settle(dirs, r.drop, comes, skipped)
	r.dirs = slices.DeleteFunc(r.dirs, func(d Step) bool { return !slices.Contains(made, d.Path) })
	r.drop = gone
	for _, dir := range used {
		r.kept = append(r.kept, Blocked{Path: dir, Why: InUse})
	}
}

// begin forgets what was planned before.
func (r *restore) begin(d *Planner) {
	r.d, d.disk = d, true // it gives back bytes
	r.out = &Restored{Plan: r.plan, Denied: len(r.unnamed), Merged: map[string]bool{},
		Metadata: map[string]rewind.Metadata{}}
	r.todo = todo{items: map[string]*checkpoint.Item{}, goes: map[string]bool{}}
	r.asked = map[string]bool{}
}

// look looks at all that the plan is about, in its order: directories first, then
// files and links, then the directories that go. The moves are added to p.
func (r *restore) look(ctx context.Context, p *Plan) error {
	if err := checkPlaces(r.paths); err != nil {
		return err
	}
	for _, mv := range r.moves {
		s, back, err := r.d.move(mv)
		if err != nil {
			return err
		}
		if !back {
			p.Steps = append(p.Steps, s)
		}
	}
	if err := cmp.Or(r.dirsToSet(p), r.dirsToMake(), r.load(ctx)); err != nil {
		return err
	}
	return r.dirsToGo(ctx)
}

// dirsToSet adds to p the steps that give directories the attributes that they had. One that is not there is made.
func (r *restore) dirsToSet(p *Plan) error {
	for _, item := range r.sets {
		place, err := r.c.openAt(item.Path)
		var now guardfs.Metadata
		if err == nil {
			defer place.Close() //nolint:errcheck // nothing was written through it
			if place.Object().Info.Kind == guardfs.KindDir {
				now, err = place.DirMetadata()
			}
		}
		_, gone := errors.AsType[*guardfs.MissingParentError](err)
		why := r.unseen(item.Path, err, place)
		switch s := (Step{Path: item.Path, Action: SetDir, Exact: true, After: State{State: item.Want}}); {
		case why != none:
			r.skip(item.Path, why)
		case gone, err == nil && place.Object().Info.Kind != guardfs.KindDir:
			r.dirs = append(r.dirs, mkdirAs(item.Path, item.Want))
		case err != nil:
			return err
		case rewind.SameMetadata(metaState(now), item.Want):
		case rewind.SameMetadata(metaState(now), item.Head) || r.o.OnConflict == OnConflictForce:
			s.Before = State{State: metaState(now), ID: place.Object().Info.ID}
			s.Before.Kind = checkpoint.Dir
			p.Steps = append(p.Steps, s)
		case r.o.OnConflict == OnConflictSkip:
			r.skip(item.Path, ChangedOutside)
		default:
			r.conflicts = append(r.conflicts, Blocked{Path: item.Path, Why: ChangedOutside})
		}
	}
	return nil
}

// dirsToMake keeps of the directories that are to be there those that are not. Policy speaks first.
func (r *restore) dirsToMake() error {
	var make []Step
	for _, d := range r.dirs {
		is, why, err := r.dirNow(d.Path)
		switch {
		case why == none && err == nil && is == guardfs.KindDir:
			continue
		case why == none && err == nil && is == guardfs.KindAbsent:
			why, err = r.mayChange(d.Path)
		case why == none && err == nil && r.o.OnConflict == OnConflictSkip:
			why = OtherKind.Of(is)
		case why == none && err == nil:
			err = Refuse(Conflicts, "", []Blocked{{Path: d.Path, Why: KindForDir.Of(is)}})
		}
		if err != nil {
			return err
		}
		if why != none {
			r.skip(d.Path, why)
			continue
		}
		make = append(make, d)
	}
	r.dirs = make
	return nil
}

// dirsToGo picks those directories that can go, the deepest first. One that was a file in between
// is elsewhere in the plan.
func (r *restore) dirsToGo(ctx context.Context) error {
	slices.SortFunc(r.drop, func(a, b string) int { return strings.Compare(b, a) })
	all := r.drop
	r.drop = nil
	for _, d := range all {
		r.goes[d] = false // until it is seen that it can
	}
	for _, d := range all {
		is, why, _ := r.dirNow(d) // what can't be looked at is met again
		if why == none && is == guardfs.KindOther && r.o.OnConflict == OnConflictSkip {
			why = OtherKind.Of(is)
		}
		there, stays := r.c.onlyHolds(d, r.goes)
		var err error
		switch {
		case why != none:
		case stays != none:
			r.kept = append(r.kept, Blocked{Path: d, Why: stays})
			continue
		case !there:
			continue
		default:
			if why, err = r.mayChange(d); err == nil && why == none && r.remade(ctx, d) {
				r.kept = append(r.kept, Blocked{Path: d, Why: ChangedOutside})
				continue
			}
		}
		switch {
		case err != nil:
			return err
		case why != none:
			r.skip(d, why)
		default:
			r.goes[d] = true
			r.drop = append(r.drop, d)
		}
	}
	return nil
}

// remade says that a directory is younger than the Mkdir that made one there: it is somebody
// else's. A directory that was made as the parent of a file goes if it is empty, also one of others.
func (r *restore) remade(ctx context.Context, name string) bool {
	for i := range r.plan.Items {
		item := &r.plan.Items[i]
		if item.Path != name || item.HeadID == "" || item.Head.Kind != checkpoint.Dir {
			continue
		}
		op, err := r.db.Get(ctx, item.HeadID, checkpoint.Scope{AllSessions: true})
		o, _, lerr := r.c.fs.Lstat(name)
		return err == nil && op.Kind == checkpoint.KindMkdir && lerr == nil && o.Info.ID.Birth != 0 &&
			time.Unix(0, o.Info.ID.Birth).After(op.Time) // ours was staged before the save
	}
	return false
}

// load looks at files and links, and decides on each while its content is held.
func (r *restore) load(ctx context.Context) error {
	for _, name := range r.paths {
		item := r.items[name]
		rules := Rules{Parents: true, Link: item.Want.Kind == checkpoint.Symlink || item.Head.Kind == checkpoint.Symlink}
		if item.Role == checkpoint.RoleAppended {
			rules.above = r.c.appendAbove()
		}
		t, err := r.d.Load(name, rules)
		if err == nil && t.True != name { // another place than the one that was recorded
			err = &guardfs.SymlinkError{Path: name, Target: t.True}
		}
		place := r.d.files[len(r.d.files)-1].place
		if why := r.unseen(name, err, place); why != none {
			r.d.forget()
			r.skip(name, why)
			continue
		}
		if _, is := errors.AsType[*guardfs.NotRegularError](err); is && place != nil {
			r.conflicts = append(r.conflicts, Blocked{Path: name, Why: OtherKind.Of(place.Object().Info.Kind)})
			r.d.forget()
			continue
		}
		if err != nil {
			return err
		}
		var is decided
		if is.why, is.err = r.decide(ctx, t); is.why != none {
			t.leaveAsIs()
		}
		r.decided = append(r.decided, is)
		if len(r.paths) > keptPatches && is.err == nil && !r.out.Merged[t.True] {
			r.unload(ctx, t)
		}
	}
	return nil
}

// unload has a target take its contents from the store, as far as that gives them, and notes how many lines change.
func (r *restore) unload(ctx context.Context, t *Target) {
	if r.c.Overlay != nil || t.rules.above > 0 { // an editor's text is compared with it; or it is not whole
		return
	}
	added, removed := diff.Count(text(t.Before.Content), text(t.After.Content))
	t.counts = &[2]int{added, removed}
	content := r.content(ctx, t.True)
	if a := &t.After; a.Kind == guardfs.KindFile {
		a.length, a.Content, a.stored = a.size(), nil, content
	}
	if b := t.Before; b.Info.Kind == guardfs.KindFile {
		if _, err := content(b.Hash); err == nil || t.Unchanged() {
			b.Content, t.stored = nil, content
		}
	}
}

// skip leaves a path alone.
func (r *restore) skip(name string, why Why) {
	r.goes[name] = false
	r.out.Skipped = append(r.out.Skipped, Blocked{Path: name, Why: why})
}

// steps adds to p what becomes of the files that were loaded and of the directories.
func (r *restore) steps(ctx context.Context, p Plan) (*Plan, error) {
	for _, dir := range r.drop {
		s, err := r.d.rmdir(dir)
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, s)
	}
	made, err := r.mkdirs(ctx)
	if err != nil {
		return nil, err
	}
	p.Steps = append(p.Steps, made...)
	plan, err := r.d.plan(p)
	if err == nil && len(plan.Steps) > 1 { // what is appended can't be taken back with the others
		if again := plan.of(Append); again != nil {
			return nil, Refuse(NotStored, again[0], OnlyAlone)
		}
	}
	return plan, err
}

// mkdirs are the steps that make directories, as they were: those that are to be there, and what is
// missing above them and above what comes back. Those that are only missing above files come with these.
func (r *restore) mkdirs(ctx context.Context) (steps []Step, err error) {
	as, missing := map[string]Step{}, map[string]bool{}
	for _, dir := range r.dirs {
		as[dir.Path] = dir
	}
	above := func(name string) error {
		made, err := r.d.above(name, name)
		for i := range made {
			missing[made[i].Path] = true
		}
		return err
	}
	for _, dir := range r.dirs {
		if err := above(dir.Path + "/x"); err != nil {
			return nil, err
		}
	}
	for _, mv := range r.d.moves {
		if name := mv.comesTo(); name != "" && mv.to == nil {
			if err := above(name); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range r.d.files {
		if t.place == nil && !t.Unchanged() {
			if err := above(t.True); err != nil {
				return nil, err
			}
		}
	}
	seen := r.seen(missing)
	for dir := range missing {
		made, ok := as[dir]
		if !ok {
			made = mkdir(dir, 0o777)
		}
		if !ok && seen[dir] != 0 { // for files: as it was last recorded, or no more open than these
			mode, known, err := r.db.LastDir(ctx, dir)
			if err != nil {
				return nil, err
			}
			if !known {
				mode = rewind.ModeOf(r.c.modeAbove(dir), seen[dir])
			}
			made.After.Mode = mode
		}
		steps = append(steps, made)
	}
	return steps, nil
}

// modeAbove is the mode of the nearest directory above dir that exists; 0 when that is unknown.
func (c *Call) modeAbove(dir string) fs.FileMode {
	for dir = path.Dir(dir); ; dir = path.Dir(dir) {
		h, err := c.fs.Resolve(dir, guardfs.Look)
		if err == nil {
			mode := h.Object().Info.Mode
			h.Close()
			return mode
		}
		if len(dir) <= 1 || !errors.Is(err, fs.ErrNotExist) {
			return 0
		}
	}
}

// next says what was decided on the targets.
func (r *restore) next() error {
	for i, t := range r.d.files {
		switch is := r.decided[i]; {
		case is.err != nil:
			return is.err
		case is.why != none:
			r.skip(t.True, is.why)
		}
	}
	if r.conflicts != nil {
		return Refuse(Conflicts, "", r.conflicts)
	}
	return nil
}

// decide sets the new state of one target, and notes conflicts. why: it is left alone.
func (r *restore) decide(ctx context.Context, t *Target) (why Why, err error) {
	item, skip := r.items[t.Path], r.o.OnConflict == OnConflictSkip
	if item.Role == checkpoint.RoleAppended {
		return r.decideTail(ctx, t, item)
	}
	now := rewind.Now{State: state(t.Before), Content: t.Before.Content}
	if t.place != nil {
		now.Can = func(s checkpoint.State) checkpoint.State {
			return metaState(t.place.Expected(*metadata(s)))
		}
		if fixed, _ := t.place.Fixed(); fixed != nil { // it is written in place, if at all: any error is met again
			now.Can = func(checkpoint.State) checkpoint.State { return now.State }
		}
	}
	if t.Unsaved() { // a text has no metadata to be given
		now.Content = t.raw(t.Before.Content)
		now.State.Hash, now.State.Size = HashOf(now.Content), int64(len(now.Content))
		now.Can = func(checkpoint.State) checkpoint.State { return now.State }
	}
	if item.Role == roleBuffer && !item.Expects(now.State) && !now.State.Same(item.Want) {
		if left, err := r.db.Content(ctx, item.Head.Hash); err == nil && saved(asText(now.Content), left) {
			now.State.Hash, now.State.Size = item.Head.Hash, item.Head.Size // as the client saved it
		}
	}
	if h := &item.Head; h.Kind == checkpoint.File && h.Hash == "" && h.Size == now.State.Size {
		if left, err := r.leftByAppends(ctx, item, now.Content); err != nil {
			return none, err
		} else if left {
			h.Hash = now.State.Hash
		}
	}
	t.ours = rewind.MadeReadOnly(item, now.State)
	b, err := r.rules().Decide(ctx, item, now)
	if err != nil {
		return none, err
	}
	if m := b.Metadata; m.Set != nil || m.Stays != nil || m.Dropped != nil {
		r.out.Metadata[t.True] = b.Metadata
	}
	switch {
	case b.Stays:
		t.leaveAsIs()
		return none, nil
	case b.Missing != none && skip:
		return ContentOf.Of(b.Missing), nil
	case b.Missing != none:
		return none, Refuse(NotStored, item.Path, b.Missing)
	case b.Blocked != none && skip:
		return b.Blocked, nil
	case b.Blocked != none:
		r.conflicts = append(r.conflicts,
			Blocked{Path: t.True, Why: b.Blocked, Diff: r.drift(ctx, t, item)})
		return none, nil
	}
	if t.After = after(b); t.Unsaved() {
		t.After.Content, t.After.Meta = t.shown(b.Content), nil
		t.After.Hash = HashOf(t.After.Content)
	}
	if !t.Unchanged() {
		err = r.mayReplace(t)
	}
	if why = blockedWhy(err); why != none && skip {
		return why, nil
	}
	if why = r.inUse(t, item.Grown); why != none && err == nil && !t.Unchanged() {
		if skip {
			return why, nil
		}
		r.conflicts = append(r.conflicts, Blocked{Path: t.True, Why: why})
		return none, nil
	}
	if b.Merged {
		r.out.Merged[t.True] = true
	}
	return none, err
}

// content gives a function that has a content of name from the store, which had it when the plan was made.
func (r *restore) content(ctx context.Context, name string) func(hash string) ([]byte, error) {
	return func(hash string) ([]byte, error) {
		r.reading.Lock()
		defer r.reading.Unlock()
		b, err := r.db.Content(ctx, hash)
		if errors.Is(err, checkpoint.ErrNoContent) {
			err = Refuse(NotStored, name, rewind.JustRemoved)
		}
		return b, err
	}
}

// leftByAppends says whether content is what the session's operations left at the path of item, where the last of them appended to the file or cut
// off what was appended: the store has no hash of what these leave, but one of what was there before, and of each tail.
func (r *restore) leftByAppends(ctx context.Context, item *checkpoint.Item, content []byte) (bool, error) {
	own, err := r.db.Changes(ctx, item.Path, item.Own)
	base, t := "", tail{begin: -1, end: -1}
	for i := range own {
		if c := &own[i]; c.Role != checkpoint.RoleAppended {
			base, t = c.After.Hash, tail{begin: c.After.Size, end: c.After.Size}
		} else if !t.grow(c) {
			return false, nil
		}
	}
	return base != "" && t.begin <= int64(len(content)) && t.is(content[t.begin:], t.begin) && HashOf(content[:t.begin]) == base, err
}

// inUse says that another program has the file open for writing, which a restore would make anew or remove: what the program writes then
// would be lost. A file that was only appended to must be known not to be open.
func (r *restore) inUse(t *Target, grown bool) Why {
	if t.unheld = r.o.OnConflict != OnConflictForce && t.place != nil && t.Before.Info.Kind == guardfs.KindFile && !t.Unsaved(); !t.unheld {
		return none
	}
	switch open, known := t.place.Writers(); {
	case open:
		return HeldOpen
	case !known && grown:
		return MaybeHeldOpen
	}
	return none
}

// decideTail decides on a file that was only appended to, as decide does.
func (r *restore) decideTail(ctx context.Context, t *Target, item *checkpoint.Item) (Why, error) {
	t.leaveAsIs()
	why, err := r.tailBecomes(ctx, t, item)
	if err == nil && why == none && !t.Unchanged() {
		if err = r.c.changeable(t); err == nil && t.After.From != nil {
			err = r.c.allowed(t.place, t.True)
		}
		why = blockedWhy(err)
		if why != none && r.o.OnConflict == OnConflictSkip {
			return why, nil
		}
		return none, err
	}
	switch {
	case err != nil || why == none || r.o.OnConflict == OnConflictSkip:
		return why, err
	case why.Name == Unstored.Name:
		return none, Refuse(NotStored, t.True, why)
	case r.o.OnConflict == OnConflictForce: // others' bytes could not be brought back
		return none, Refuse(WouldLose, t.True, nil)
	}
	r.conflicts = append(r.conflicts, Blocked{Path: t.True, Why: why})
	return none, nil
}

// tailBecomes sets what becomes of the target, or says why nothing can.
func (r *restore) tailBecomes(ctx context.Context, t *Target, item *checkpoint.Item) (Why, error) {
	first, left, err := r.tails(ctx, item)
	now := t.Before.Info.Size
	switch {
	case err != nil:
		return none, err
	case !t.Before.Exists || t.Before.Info.Kind != guardfs.KindFile:
		return ChangedOutside, nil
	case first == nil:
		return ChangedByOthers, nil
	case now == item.Want.Size && (now != left.end || len(left.pieces) == 0):
		return none, nil
	case !t.large() || now != left.end:
		return ChangedOutside, nil
	case item.Want.Size <= left.end:
		return r.cutTail(ctx, t, item.Want.Size, left)
	case left.end != first.After.Size || slices.ContainsFunc(left.pieces, func(p piece) bool {
		return p.at+p.size > left.end
	}): // another tail would have to go first
		return Unstored.Of(checkpoint.SkipAppended), nil
	}
	content, err := r.db.Content(ctx, item.Want.Tail)
	if errors.Is(err, checkpoint.ErrNoContent) || item.Want.Tail == "" {
		return Unstored.Of(checkpoint.SkipAppended), nil
	}
	t.After = After{Kind: guardfs.KindFile, Content: content, Tail: true}
	return none, err
}

// cutTail makes the target what it is without all that comes after size, if that is only what left
// says.
func (r *restore) cutTail(ctx context.Context, t *Target, size int64, left tail) (Why, error) {
	info := t.Before.Info
	if info.Size-size > maxLoad {
		return Unstored.Of(checkpoint.SkipTooLarge), nil
	}
	f, err := r.c.openSame(t.True, info.ID)
	if err != nil {
		return none, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	cut := make([]byte, info.Size-size)
	if n, err := f.ReadAt(cut, size); err != nil && !errors.Is(err, io.EOF) || n < len(cut) {
		return ChangedOutside, err
	}
	if !left.is(cut, size) {
		return ChangedOutside, nil
	}
	if len(cut) == 0 {
		return none, nil
	}
	was := *t.Before
	if was.Hash, err = r.c.sums.of(ctx, f, r.c.now); err != nil {
		return none, err
	}
	if is, err := f.Stat(); err != nil || is.Size != info.Size || !is.ModTime.Equal(info.ModTime) ||
		!is.ChangeTime.Equal(info.ChangeTime) {
		return ChangedOutside, err
	}
	t.Before = &was
	t.After = After{Kind: guardfs.KindFile, From: &From{t.True, info, size}, cut: cut}
	return r.inUse(t, true), nil
}

// drift is a diff from the last content that the store knows to what is there. Where the session
// may not see that content, it is the one that its own last change left. "" when the store does not
// hold it.
func (r *restore) drift(ctx context.Context, t *Target, item *checkpoint.Item) string {
	last := item.Head
	if !item.HeadSeen {
		last = item.Base
	}
	if last.Kind != checkpoint.File || !t.Before.Exists {
		return ""
	}
	known, err := r.db.Content(ctx, last.Hash)
	if err != nil {
		return ""
	}
	return diff.Unified(t.True, diff.Edited, diff.Patch(text(known), text(t.Before.Content)))
}

// rules decide what becomes of each path.
func (r *restore) rules() *rewind.Rewind {
	return &rewind.Rewind{Store: r.db, Plan: r.plan, Rule: rewind.Rule(r.o.OnConflict),
		KeepTimes: r.o.KeepTimes}
}

// after gives the new state of a target, from the decision b.
func after(b rewind.Becomes) After {
	switch b.State.Kind {
	case checkpoint.File:
		a := After{Kind: guardfs.KindFile, Content: b.Content, Hash: HashOf(b.Content)}
		if b.Exact {
			a.Meta = metadata(b.State)
			a.Meta.ModTime = b.State.ModTime
		}
		return a
	case checkpoint.Symlink:
		return After{Kind: guardfs.KindSymlink, Target: b.State.Target}
	}
	return After{Kind: guardfs.KindAbsent}
}

// isLink says that a link is at that very path.
func (c *Call) isLink(p string) bool {
	o, _, err := c.fs.Lstat(p)
	return err == nil && o.True == p && o.Info.Kind == guardfs.KindSymlink
}

// forbidden says that it is the system, not policy, that does not let us.
func forbidden(err error) bool {
	_, system := errors.AsType[*guardfs.PathError](err)
	return system && errors.Is(err, fs.ErrPermission)
}

// seen are, by directory that has to be made, the modes of the files that come below it, together.
func (r *restore) seen(missing map[string]bool) map[string]fs.FileMode {
	out := map[string]fs.FileMode{}
	for _, t := range r.d.files {
		mode := fs.FileMode(0o666)
		if t.After.Meta != nil {
			mode = 0o600 | t.After.Meta.Mode
		}
		there := t.After.Kind != guardfs.KindAbsent
		for dir := path.Dir(t.True); there && missing[dir]; dir = path.Dir(dir) {
			out[dir] |= mode
		}
	}
	return out
}

// mayChange asks the system early whether what is at a path may be changed. why: a restore that may
// skip leaves it alone.
func (r *restore) mayChange(name string) (why Why, err error) {
	err = r.c.allowed(nil, name)
	if why = blockedWhy(err); why != none && r.o.OnConflict == OnConflictSkip {
		return why, nil
	}
	return none, err
}

// dirNow looks at the path of a directory that is to be there, or to go. why: a restore that may
// skip leaves it alone.
func (r *restore) dirNow(name string) (is guardfs.Kind, why Why, err error) {
	place, err := r.c.fs.Entry(name)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing {
		return guardfs.KindAbsent, none, nil
	}
	if err == nil {
		defer place.Close()
		if o := place.Object(); o.True == name {
			return o.Info.Kind, none, nil
		}
		err = &guardfs.SymlinkError{Path: name, Target: place.Object().True}
	}
	if why := r.unseen(name, err, place); why != none {
		return is, why, nil
	}
	return is, none, err
}

// onlyHolds looks whether dir has nothing in it but what goes. why says what keeps it.
func (c *Call) onlyHolds(dir string, goes map[string]bool) (there bool, why Why) {
	h, err := c.fs.Resolve(dir, guardfs.Remove)
	if _, no := errors.AsType[*policy.Denied](err); no || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, syscall.ENOTDIR) {
		return false, none // what is denied is not named
	}
	if err != nil {
		return true, whyDirStays(err)
	}
	defer h.Close()
	if h.Object().True != dir || h.Object().Info.Kind != guardfs.KindDir {
		return false, none // what was made is gone
	}
	d, err := h.Dir()
	if err != nil {
		return true, whyDirStays(err)
	}
	defer d.Close()
	entries, denied, err := d.List(nil)
	if err != nil {
		return true, whyDirStays(err)
	}
	if denied > 0 ||
		slices.ContainsFunc(entries, func(in guardfs.DirEntry) bool { return !goes[dir+"/"+in.Name] }) {
		return true, InUse
	}
	return true, none
}

// whyDirStays says why a directory that can't be looked into stays.
func whyDirStays(err error) Why {
	if forbidden(err) {
		return Unlisted
	}
	return NotListed.Of(said(err))
}

// A restore takes an append in place back only where the file still ends with exactly what was
// appended, at that very place: then a copy of what comes before takes its place, so that a kill
// leaves either. Changes of others before the tail stay as they are.

// A tail is what appends left of a file from begin on: the pieces in their order, up to the end of the file.
type tail struct {
	begin, end int64
	pieces     []piece
}

// A piece is what one append added.
type piece struct {
	at, size int64
	hash     string
}

// grow adds c, which appended to the file or cut off what was appended. It is false where others came in between.
func (t *tail) grow(c *checkpoint.Recorded) bool {
	if c.Before.Size != t.end {
		return false
	}
	n := c.After.Size - t.end
	if n > 0 {
		t.pieces = append(t.pieces, piece{t.end, n, c.After.Tail})
	}
	for t.end += n; len(t.pieces) > 0 && t.pieces[len(t.pieces)-1].at >= t.end; {
		t.pieces = t.pieces[:len(t.pieces)-1]
	}
	return true
}

// is says that content, which begins in the file at from and goes up to its end, is nothing but whole pieces.
func (t *tail) is(content []byte, from int64) bool {
	at := from
	for _, p := range t.pieces {
		if p.at < from {
			continue
		}
		if p.at != at || p.at+p.size > t.end || p.at+p.size-from > int64(len(content)) || HashOf(content[p.at-from:][:p.size]) != p.hash {
			return false
		}
		at += p.size
	}
	return at == t.end && at-from == int64(len(content))
}

// tails is the tail that the session's changes of a plan have left of a file. first is the first append. It is nil where others came
// in between, or where it was not only appended to.
func (r *restore) tails(ctx context.Context, item *checkpoint.Item) (first *checkpoint.Recorded, t tail, err error) {
	own, err := r.db.Changes(ctx, item.Path, item.Own)
	var other *checkpoint.Recorded // the first of changes that were no appends and are not taken back
	for i := range own {
		switch c := &own[i]; {
		case c.Role != checkpoint.RoleAppended: // passed over once it is taken back
			if other == nil {
				other = c
			}
			if c.After.Hash != "" && c.After.Hash == other.Before.Hash {
				other = nil
			}
		case other != nil: // gone with that change, once it is taken back
		default:
			if first == nil {
				first, t = c, tail{begin: c.Before.Size, end: c.Before.Size}
			}
			if !t.grow(c) {
				return nil, t, nil
			}
		}
	}
	if other != nil {
		first = nil
	}
	return first, t, err
}

// mayReplace refuses a target that a restore can't or must not change: WouldLose, ReadOnly,
// or a *guardfs.PathError where the system does not let us write.
func (r *restore) mayReplace(t *Target) error {
	if r.c.notBackedUp(t) {
		return Refuse(WouldLose, t.True, nil)
	}
	if err := r.c.changeable(t); err != nil {
		return err
	}
	if s := t.step(); t.place != nil && s.Action == Put && kind(s.Before) == checkpoint.File {
		return r.c.inPlace(t, &s)
	}
	dir := path.Dir(filepath.ToSlash(t.True))
	if t.place == nil && r.asked[dir] { // that is not there yet: once for all that go into it
		return nil
	}
	err := r.c.allowed(t.place, t.True)
	r.asked[dir] = err == nil
	return err
}

// notBackedUp says that the change would replace content that the store can't or must not hold.
func (e *Engine) notBackedUp(t *Target) bool {
	b := t.Before
	if !b.Exists || b.Info.Kind != guardfs.KindFile || e.storable(t.True, b.Info.Size) {
		return false
	}
	return t.After.Kind != guardfs.KindFile || t.After.From != nil || !bytes.Equal(t.After.Content, b.Content)
}

// unseen is why a restore with "skip" passes by a path that it can't look at; none for an error
// that stops it. place is nil where not even its directory could be opened.
func (r *restore) unseen(name string, err error, place *guardfs.Entry) Why {
	if err == nil || r.o.OnConflict != OnConflictSkip {
		return none
	}
	_, denied := errors.AsType[*policy.Denied](err)
	_, link := errors.AsType[*guardfs.SymlinkError](err)
	_, kind := errors.AsType[*guardfs.NotRegularError](err)
	switch {
	case place != nil && place.Object().True != name:
		return LinkOnTheWay
	case errors.Is(err, syscall.ENOTDIR):
		return FileOnTheWay
	case denied:
		return OutOfReach
	case link && r.c.isLink(name):
		return OtherKind.Of(guardfs.KindSymlink)
	case link:
		return LinkOnTheWay
	case kind && place != nil:
		return OtherKind.Of(place.Object().Info.Kind)
	case forbidden(err) && place != nil:
		return Unreadable
	case forbidden(err):
		return Unreachable
	}
	return none
}

// blockedWhy turns an error of mayReplace into the reason why a path is skipped. It is none for any
// other error.
func blockedWhy(err error) Why {
	r, _ := errors.AsType[*Refusal](err)
	switch {
	case WouldLose.In(err):
		return NotSavable
	case ReadOnly.In(err):
		return IsReadOnly.Of(r.Facts)
	case errors.Is(err, syscall.EROFS):
		return VolumeReadOnly
	case errors.Is(err, fs.ErrPermission):
		return DirNotWritable
	}
	return none
}

// allowed asks the system early whether the directory of a path can be written, or the nearest one
// above that exists. place may be nil.
func (c *Call) allowed(place *guardfs.Entry, name string) error {
	if place == nil {
		p, err := c.fs.EntryLink(name)
		if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok {
			p, err = c.fs.EntryLink(gone.Missing)
		}
		if err != nil {
			return nil //nolint:nilerr // the chain meets it again, and says so
		}
		defer p.Close()
		place = p
	}
	err := place.Allowed()
	if pe, ok := errors.AsType[*guardfs.PathError](err); ok {
		return &guardfs.PathError{Op: pe.Op, Path: name, Err: pe.Err}
	}
	if fixed, ok := errors.AsType[*guardfs.FixedError](err); ok {
		fixed.Path = name
	}
	return err
}

// Compared is one path of a checkpoint, or of all since a point in time, beside what it became.
type Compared struct {
	Path           string
	Before, After  checkpoint.Kind // what it was, and what it is compared with
	Added, Removed int             // lines
	Diff           string          // unified; "" for what has no lines
	Binary         bool
}

// Compare shows what a checkpoint's call changed, or, with now set, what has become of its paths
// since. It changes nothing. Paths that this session may not read today are not shown: denied
// counts them.
func (c *Call) Compare(ctx context.Context, r checkpoint.Restore,
	now bool) (out []Compared, skipped []Blocked, denied int, err error) {
	db, err := c.checkpoints.open()
	if err != nil {
		return nil, nil, 0, err
	}
	r.Look = true
	plan, err := c.planFor(ctx, db, r)
	if err != nil {
		return nil, nil, 0, err
	}
	c.Trace.Paths = nil
	for i := range plan.Items {
		item := &plan.Items[i]
		if item.Role == checkpoint.RoleParent && !leaf(item.Want.Kind) && !leaf(item.Base.Kind) &&
			!leaf(item.Head.Kind) {
			continue // nothing but a directory at any time
		}
		c.Trace.Paths = append(c.Trace.Paths, item.Path)
		one, why, err := c.compare(ctx, db, item, now)
		if _, no := errors.AsType[*policy.Denied](err); no {
			denied++
			continue
		}
		if err != nil {
			return nil, nil, 0, err
		}
		if why != none {
			skipped = append(skipped, Blocked{Path: item.Path, Why: why})
			continue
		}
		if item.Role == checkpoint.RoleParent && !leaf(one.Before) && !leaf(one.After) {
			continue
		}
		out = append(out, one)
	}
	return out, skipped, denied, nil
}

func (c *Call) compare(
	ctx context.Context, db *checkpoint.DB, item *checkpoint.Item, now bool,
) (one Compared, why Why, err error) {
	// Policy speaks in here, also when the disk is not asked for.
	after, content, why, err := c.lookAt(ctx, item.Path)
	if err != nil || now && why != none {
		return one, why, err
	}
	switch {
	case item.To != "" && c.denied(item.To) == nil:
		return one, WentTo.Of(item.To), nil
	case item.From != "" && c.denied(item.From) == nil:
		return one, CameFrom.Of(item.From), nil
	}
	if !now && item.Role != checkpoint.RoleAppended {
		after, content = item.Base, nil
		if after.Kind == checkpoint.File {
			if after.Hash == "" { // nobody computed it, or it was purged
				return one, AfterUnknown, nil
			}
			if content, err = db.Content(ctx, after.Hash); errors.Is(err, checkpoint.ErrNoContent) {
				return one, AfterUnknown, nil
			}
		}
	}
	if item.Role == checkpoint.RoleAppended && !now {
		return c.compareTail(ctx, db, item)
	}
	var old []byte
	if err == nil && item.Want.Kind == checkpoint.File {
		if !item.Stored {
			return one, ContentOf.Of(Unstored.Of(item.Missing)), nil
		}
		old, err = db.Content(ctx, item.Want.Hash)
	}
	if err != nil {
		return one, none, err
	}
	one = Compared{Path: item.Path, Before: item.Want.Kind, After: after.Kind}
	one.Binary = encodings.Sniff(old).NUL || encodings.Sniff(content).NUL
	if !one.Binary {
		hunks := diff.Patch(text(old), text(content))
		one.Added, one.Removed = diff.Counts(hunks)
		one.Diff = diff.Unified(item.Path, diff.EndsOf(leaf(one.Before), leaf(one.After)), hunks)
	}
	return one, none, nil
}

// lookAt reads what is at path, if this session may. why says that it can't be compared.
func (c *Call) lookAt(
	ctx context.Context, path string,
) (s checkpoint.State, content []byte, why Why, err error) {
	is, content, held, err := c.overlaid(ctx, path)
	if err != nil || held && is.True == path && is.Info.Size <= c.cfg.Checkpoint.MaxFileBytes {
		return checkpoint.State{Kind: checkpoint.File}, content, none, err
	}
	h, err := c.fs.Resolve(path, guardfs.Read)
	// A file in the place of its directory is a missing path, as for stateOf.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return checkpoint.State{Kind: checkpoint.Absent}, nil, none, nil
	}
	// Policy has allowed it: the other paths can be shown.
	if no, ok := errors.AsType[*guardfs.PathError](err); ok {
		return s, nil, NotLookedAt.Of(no.Err), nil
	}
	if err != nil {
		return s, nil, none, err
	}
	defer h.Close()
	o := h.Object()
	switch {
	case o.True != path:
		return s, nil, LinkNow, nil
	case o.Info.Kind == guardfs.KindDir:
		return checkpoint.State{Kind: checkpoint.Dir}, nil, none, nil
	case o.Info.Kind != guardfs.KindFile:
		return s, nil, KindNow.Of(o.Info.Kind), nil
	case o.Info.Size > c.cfg.Checkpoint.MaxFileBytes:
		return s, nil, TooLargeNow, nil
	}
	f, err := h.Open()
	if no, ok := errors.AsType[*guardfs.PathError](err); ok {
		return s, nil, NotRead.Of(no.Err), nil
	}
	if err != nil {
		return s, nil, none, err
	}
	defer f.Close()
	content, err = io.ReadAll(io.NewSectionReader(f, 0, c.cfg.Checkpoint.MaxFileBytes))
	return checkpoint.State{Kind: checkpoint.File}, content, none, err
}

// compareTail shows what was appended, or taken back, as far as it is one tail that is stored. The
// line numbers are those of the tail.
func (e *Engine) compareTail(ctx context.Context, db *checkpoint.DB, item *checkpoint.Item) (
	one Compared, why Why, err error,
) {
	from, to := item.Want, item.Base
	tail := to.Tail
	if from.Size > to.Size {
		tail = from.Tail
	}
	if tail == "" {
		return one, AfterUnknown, nil
	}
	content, err := db.Content(ctx, tail)
	n := to.Size - from.Size
	if errors.Is(err, checkpoint.ErrNoContent) || err == nil && int64(len(content)) != max(n, -n) {
		return one, AfterUnknown, nil
	}
	if err != nil {
		return one, none, err
	}
	one = Compared{Path: item.Path, Before: from.Kind, After: to.Kind,
		Binary: encodings.Sniff(content).NUL}
	if !one.Binary {
		hunks := diff.Patch(nil, text(content))
		if n < 0 {
			hunks = diff.Patch(text(content), nil)
		}
		one.Added, one.Removed = diff.Counts(hunks)
		one.Diff = diff.Unified(item.Path, diff.Edited, hunks)
	}
	return one, none, nil
}
