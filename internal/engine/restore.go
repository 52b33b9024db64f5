package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/policy"
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

	pass bool // what is out of reach is left alone, and counted
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
// none. It has a checkpoint of its own, so it can be undone. Whose plan it is, c says.
func (e *Engine) Restore(ctx context.Context, c *Call, r checkpoint.Restore,
	o RestoreOptions) (*Restored, error) {
	e, err := e.begun(c)
	if err != nil {
		return nil, err
	}
	r.Partial = o.OnConflict == OnConflictForce
	o.pass = r.ID == ""
	out, err := e.carryOut(ctx, c, o,
		func(db *checkpoint.DB) (*checkpoint.Plan, error) { return e.planFor(ctx, c, db, r) })
	if err == nil && r.ID == "" {
		out.Outside = out.Plan.Outside
		if !o.DryRun && e.cfg.CheckpointBeforeMutation {
			e.alsoOutside(ctx, c, r.Paths, out)
		}
	}
	return out, err
}

// alsoOutside records what else others changed of what the session knows, and adds it to the answer
// of a rewind. The rewind was made, so an error is only logged.
func (e *Engine) alsoOutside(ctx context.Context, c *Call, only []string, out *Restored) {
	just := map[string]bool{}
	for _, t := range out.Targets {
		just[t.True] = t.Published != nil
	}
	db, err := e.checkpoints.open()
	var id checkpoint.ID
	if err == nil {
		id, err = e.recordOutside(ctx, db, c, func(path string) bool {
			return just[path] ||
				len(only) > 0 && !slices.ContainsFunc(only, func(dir string) bool { return within(path, dir) })
		})
	}
	if err != nil {
		e.logger.Warn("what was changed outside could not be recorded", "err", err)
	} else if id != "" {
		out.Outside = append(out.Outside, id)
	}
}

// planFor is the plan of r for the call's session. A path in r that policy denies is refused first,
// so nobody learns whether the plan has it. One that the plan does not have is NotInPlan.
func (e *Engine) planFor(ctx context.Context, c *Call, db *checkpoint.DB,
	r checkpoint.Restore) (*checkpoint.Plan, error) {
	who := e.scope(c)
	r.Principal, r.Session, r.AllSessions = who.Principal, who.Session, who.AllSessions
	for _, path := range r.Paths {
		if err := e.denied(path); err != nil {
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
			return nil, e.unplanned(ctx, db, r, path)
		}
	}
	return plan, nil
}

func (e *Engine) unplanned(ctx context.Context, db *checkpoint.DB, r checkpoint.Restore,
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
		case e.denied(it.Path) != nil:
			no.Denied++
		default:
			no.Held = append(no.Held, it.Path)
		}
	}
	return Refuse(NotInPlan, path, no)
}

// hiding takes the name out of a denial: the session knows the path only from its history.
func (e *Engine) hiding(items []checkpoint.Item, err error) error {
	no, ok := errors.AsType[*policy.Denied](err)
	if !ok || e.denied(no.Path) == nil {
		return err
	}
	n := 0
	for i := range items {
		if items[i].Role != checkpoint.RoleParent && e.denied(items[i].Path) != nil {
			n++
		}
	}
	return &Refusal{Hidden.Code, Hidden, "", max(n, 1), err}
}

// hide takes denied paths out of the plan of a restore with "skip".
func (r *restore) hide() {
	r.plan.Items = slices.DeleteFunc(r.plan.Items, func(it checkpoint.Item) bool {
		no := r.e.denied(it.Path) != nil
		if no && it.Role != checkpoint.RoleParent {
			r.unnamed = append(r.unnamed, it.Path)
		}
		return no
	})
}

// within says whether path is dir, as a caller spelled it, or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimRight(dir, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// Undo takes back the newest change of the call's session that is not undone; if a script made it,
// all that this run did. Called again and again, it walks back. A change of which no path is within
// reach is refused as Hidden, unless conflicts are skipped: then it counts as undone.
func (e *Engine) Undo(ctx context.Context, c *Call, o RestoreOptions) (*Restored, error) {
	return e.walk(ctx, c, o, (*checkpoint.DB).Undo)
}

func (e *Engine) walk(ctx context.Context, c *Call, o RestoreOptions, to func(*checkpoint.DB,
	context.Context, checkpoint.Scope) (*checkpoint.Plan, error)) (*Restored, error) {
	o.pass = true
	return e.carryOut(ctx, c, o, func(db *checkpoint.DB) (*checkpoint.Plan, error) {
		who := checkpoint.Scope{Principal: c.Principal, Session: c.Session}
		plan, err := to(db, ctx, who)
		switch {
		case err != nil:
		case plan.Lost != nil && o.OnConflict != OnConflictForce:
			err = &checkpoint.PartialError{Lost: *plan.Lost}
		case o.OnConflict != OnConflictSkip:
			err = e.outOfReach(c, plan)
		}
		return plan, err
	})
}

// outOfReach refuses a plan of which no path is within the reach of c.
func (e *Engine) outOfReach(c *Call, plan *checkpoint.Plan) error {
	n := 0
	for i := range plan.Items {
		if it := &plan.Items[i]; it.Role == checkpoint.RoleParent {
			continue
		} else if !e.Denies(c, it.Path) {
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
func (e *Engine) Redo(ctx context.Context, c *Call, o RestoreOptions) (*Restored, error) {
	return e.walk(ctx, c, o, (*checkpoint.DB).Redo)
}

// restore is one restore on its way through the chain.
type restore struct {
	e       *Engine
	db      *checkpoint.DB
	find    planner
	o       RestoreOptions
	plan    *checkpoint.Plan
	entry   *checkpoint.Trashed // that is to come back; nil for all else
	unnamed []string            // what can't be named and is not restored
	out     *Restored
	d       *Desk
	todo
	asked map[string]bool // directories to be made, which the system lets us make
}

// A planner asks the store what has to be done.
type planner func(*checkpoint.DB) (*checkpoint.Plan, error)

// todo holds the decisions on the items of a plan, as far as they are made.
type todo struct {
	items map[string]*checkpoint.Item // by path: those of paths
	paths []string                    // files, links, and what takes the place of one or gives it
	links map[string]bool             // of paths: the symbolic link itself is meant
	dirs  []Step                      // to be there, from the top down
	// directories to go if they are empty, the deepest first
	drop  []string
	moves []*Move         // what goes to the trash as a whole, or comes back
	goes  map[string]bool // whether it is removed, as far as it was looked at

	conflicts []Blocked // conflicts
	inTheWay  []string  // files in the place of directories, which can't give way
	kept      []Blocked // directories that can't go
}

func (e *Engine) carryOut(ctx context.Context, c *Call, o RestoreOptions,
	find planner) (*Restored, error) {
	e, err := e.begun(c)
	if err != nil {
		return nil, err
	}
	db, err := e.checkpoints.open()
	if err != nil {
		return nil, err
	}
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		done, err := e.carryOutOnce(ctx, c, db, o, find)
		if _, cut := errors.AsType[*interruptedError](err); !cut || time.Since(start) > e.lockWait ||
			ctx.Err() != nil {
			return done, err
		}
	}
}

func (e *Engine) carryOutOnce(ctx context.Context, c *Call, db *checkpoint.DB, o RestoreOptions,
	find planner) (*Restored, error) {
	if !o.DryRun { // also what this very process had to leave half-way
		// It does what it can at once. Only what this plan is about is waited for.
		if err := e.recover(ctx, time.Now()); err != nil {
			return nil, err
		}
	}
	plan, err := find(db) // once: what others undo or redo meanwhile is not to be done again
	if err == nil && !o.DryRun {
		err = e.unsettled(ctx, plan)
	}
	if err != nil {
		return nil, err
	}
	r := &restore{e: e, db: db, find: find, plan: plan, o: o}
	if o.OnConflict == OnConflictSkip || o.pass {
		r.hide()
	}
	done, err := e.Change(ctx, c, r.make)
	if err != nil {
		return nil, e.hiding(plan.Items, err)
	}
	r.out.Done = done
	if !o.DryRun {
		r.untrash(context.WithoutCancel(ctx)) // the files are back: so it is said of all or of none
		// Another may have taken it away before it was our turn.
		r.kept = slices.DeleteFunc(r.kept, func(k Blocked) bool {
			now, err := e.stateOf(k.Path)
			return err == nil && now.Kind != checkpoint.Dir
		})
	}
	r.out.Kept = append(r.kept, r.out.Kept...)
	if r.plan.UndoOf != "" && !o.DryRun && done.Checkpoint == "" {
		return r.out, r.idle(ctx, c)
	}
	return r.out, nil
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
		Turn: c.Turn, Time: r.e.now(), UndoOf: r.plan.UndoOf,
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
