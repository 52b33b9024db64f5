package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/policy"
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
	KeepTimes  bool // files get the modification times that they had; else now, so that builds notice
}

// Restored is what became of a restore.
type Restored struct {
	*Done
	Plan    *checkpoint.Plan
	Skipped []Blocked
	Merged  map[string]bool // by true path
	// Outside are, of a rewind, checkpoints of what others changed meanwhile; that was left alone.
	Outside []checkpoint.ID
	// Denied counts paths of the plan that today's policy keeps from being named; they were left alone.
	Denied int
	// Passed: all that an undo or redo could have done was skipped; the next one goes on with the change beyond it.
	Passed bool
	// Metadata is, by true path, how far a file that was there got back what it had; what did not differ is not told.
	Metadata map[string]MetadataOf
}

// Restore carries out a plan of the store as an ordinary guarded mutation under today's policy: all paths or none,
// checkpointed itself, so that it can be undone. Who asks is taken from c.
func (e *Engine) Restore(ctx context.Context, c *Call, r checkpoint.Restore, o RestoreOptions) (*Restored, error) {
	if err := e.begun(c); err != nil {
		return nil, err
	}
	var db *checkpoint.DB
	out, err := e.carryOut(ctx, c, o, func(store *checkpoint.DB) (*checkpoint.Plan, error) {
		db = store
		r.Partial = o.OnConflict == OnConflictForce
		return e.planFor(ctx, c, store, r)
	})
	if err == nil && r.ID == "" {
		out.Outside = out.Plan.Outside
		if !o.DryRun && e.cfg.CheckpointBeforeMutation {
			e.alsoOutside(ctx, db, c, r.Paths, out)
		}
	}
	return out, err
}

// alsoOutside records what others changed of what the session knows, beside what a rewind was about, and adds it to the answer. The rewind has been
// made: an error costs no more than that.
func (e *Engine) alsoOutside(ctx context.Context, db *checkpoint.DB, c *Call, only []string, out *Restored) {
	just := map[string]bool{}
	for _, t := range out.Targets {
		just[t.True] = t.Published != nil
	}
	id, err := e.recordOutside(ctx, db, c, func(path string) bool {
		return just[path] || len(only) > 0 && !slices.ContainsFunc(only, func(dir string) bool { return within(path, dir) })
	})
	if err != nil {
		e.logger.Warn("what was changed outside could not be recorded", "err", err)
	} else if id != "" {
		out.Outside = append(out.Outside, id)
	}
}

// planFor is the plan of r for the call's session. A path that r names and that policy denies is refused before anybody looks whether the plan has
// it; one that the plan does not have is NotInPlan.
func (e *Engine) planFor(ctx context.Context, c *Call, db *checkpoint.DB, r checkpoint.Restore) (*checkpoint.Plan, error) {
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
		if !slices.ContainsFunc(plan.Items, func(it checkpoint.Item) bool { return within(it.Path, path) }) {
			return nil, e.unplanned(ctx, db, r, path)
		}
	}
	return plan, nil
}

func (e *Engine) unplanned(ctx context.Context, db *checkpoint.DB, r checkpoint.Restore, path string) error {
	r.Paths = nil
	whole, err := db.Plan(ctx, r)
	if err != nil {
		return err
	}
	var no PlanFacts
	for _, it := range whole.Items {
		switch {
		case it.Role == checkpoint.RoleParent:
		case e.Denies(it.Path):
			no.Denied++
		default:
			no.Held = append(no.Held, it.Path)
		}
	}
	return Refuse(NotInPlan, path, no)
}

// hiding takes the name out of a denial of a path that the session knows from its history only.
func (e *Engine) hiding(items []checkpoint.Item, err error) error {
	no, ok := errors.AsType[*policy.Denied](err)
	if !ok || !e.Denies(no.Path) {
		return err
	}
	n := 0
	for i := range items {
		if items[i].Role != checkpoint.RoleParent && e.Denies(items[i].Path) {
			n++
		}
	}
	return &Refusal{Hidden.Code, Hidden, "", max(n, 1), err}
}

// hide takes out of the plan of a restore that may skip what can't even be named.
func (r *restore) hide() {
	r.plan.Items = slices.DeleteFunc(r.plan.Items, func(it checkpoint.Item) bool {
		no := r.e.Denies(it.Path)
		if no && it.Role != checkpoint.RoleParent {
			r.out.Denied++
			r.away = append(r.away, it.Path)
		}
		return no
	})
}

// within says whether path is dir, as a caller spelled it, or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimRight(dir, `/\`))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// Undo takes back the newest change of the call's session that is not undone; again and again, it walks back.
func (e *Engine) Undo(ctx context.Context, c *Call, o RestoreOptions) (*Restored, error) {
	if err := e.begun(c); err != nil {
		return nil, err
	}
	return e.carryOut(ctx, c, o, func(db *checkpoint.DB) (*checkpoint.Plan, error) {
		return db.Undo(ctx, checkpoint.Scope{Principal: c.Principal, Session: c.Session})
	})
}

// Redo takes back the newest undo of the call's session, if nothing was changed after it.
func (e *Engine) Redo(ctx context.Context, c *Call, o RestoreOptions) (*Restored, error) {
	if err := e.begun(c); err != nil {
		return nil, err
	}
	return e.carryOut(ctx, c, o, func(db *checkpoint.DB) (*checkpoint.Plan, error) {
		return db.Redo(ctx, checkpoint.Scope{Principal: c.Principal, Session: c.Session})
	})
}

// restore is one restore on its way through the chain.
type restore struct {
	e     *Engine
	db    *checkpoint.DB
	find  func(*checkpoint.DB) (*checkpoint.Plan, error)
	plan  *checkpoint.Plan
	o     RestoreOptions
	items map[string]*checkpoint.Item
	left  []Blocked       // for what stands there, before anything is loaded
	stuck []Blocked       // likewise
	kept  []Blocked       // directories that can't go
	full  []Blocked       // nor these, because of what the targets become
	away  []string        // what can't be named and is not restored
	asked map[string]bool // directories to be made, which the system lets us make
	holds map[string]Why  // of directories that are to give way and hold something that stays: why
	out   *Restored
}

func (e *Engine) carryOut(ctx context.Context, c *Call, o RestoreOptions, find func(*checkpoint.DB) (*checkpoint.Plan, error)) (*Restored, error) {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		done, err := e.carryOutOnce(ctx, c, o, find)
		if _, cut := errors.AsType[*cutOffError](err); !cut || time.Since(start) > e.lockWait || ctx.Err() != nil {
			return done, err
		}
	}
}

func (e *Engine) carryOutOnce(ctx context.Context, c *Call, o RestoreOptions, find func(*checkpoint.DB) (*checkpoint.Plan, error)) (*Restored, error) {
	db, err := e.points.open()
	if err != nil {
		return nil, err
	}
	if !o.DryRun { // also what this very process had to leave half-way
		if err := e.recover(ctx, time.Now()); err != nil { // what it can do at once: only what this plan is about is waited for
			return nil, err
		}
	}
	plan, err := find(db)
	if err != nil {
		return nil, err
	}
	if !o.DryRun {
		if err := e.unsettled(plan); err != nil {
			return nil, err
		}
	}
	r := &restore{e: e, db: db, find: find, plan: plan, o: o, items: map[string]*checkpoint.Item{}, out: &Restored{Plan: plan}}
	if o.OnConflict == OnConflictSkip {
		r.hide()
	}
	m := Mutation{
		Summary: fmt.Sprintf("restore %d paths", len(plan.Items)), DryRun: o.DryRun,
		Links: map[string]bool{}, Checkpoint: true, Whole: true, Trash: trashFiles(c),
		Op: checkpoint.Op{Kind: checkpoint.KindRestore, RestoreOf: plan.RestoreOf, UndoOf: plan.UndoOf},
	}
	done, err := r.carryOut(ctx, c, &m)
	if err != nil {
		return nil, e.hiding(plan.Items, err)
	}
	return done, nil
}

func (r *restore) carryOut(ctx context.Context, c *Call, m *Mutation) (*Restored, error) {
	e, o, plan := r.e, r.o, r.plan
	items, err := r.splitTrees(ctx, c, m)
	if err != nil {
		return nil, err
	}
	goes := map[string]bool{}
	for _, mv := range m.Moves {
		goes[mv.Path] = !mv.Back
	}
	var stay []string // files that are in the place of directories, and stay
	for _, item := range items {
		if r.belowFile(item) {
			continue // as it should be
		}
		swap := r.swapped(item)
		if o.OnConflict == OnConflictSkip {
			var why Why
			switch {
			case slices.ContainsFunc(stay, func(s string) bool { return below(item.Path, s) }):
				why = FileOnTheWay
			case swap:
				if why, err = r.stays(item); err != nil {
					return nil, err
				}
			case m.swapAbove(item.Path) == "" || item.Want.Kind == checkpoint.Absent:
				why = e.obstacle(item)
			}
			if why != none {
				if swap {
					stay = append(stay, item.Path)
				}
				r.left = append(r.left, Blocked{Path: item.Path, Why: why})
				continue
			}
		}
		parks, err := r.park(ctx, c, item, m)
		if err != nil {
			return nil, err
		}
		if parks {
			goes[item.Path] = slices.ContainsFunc(m.Moves, func(mv *Move) bool { return mv.Path == item.Path })
			continue
		}
		goes[item.Path] = item.Want.Kind == checkpoint.Absent
		if swap {
			m.Swaps = append(m.Swaps, item.Path)
		}
		gone := item.Role == checkpoint.RoleParent && item.Head.Kind != checkpoint.File && item.Head.Kind != checkpoint.Symlink || item.Head.Kind == checkpoint.Dir
		switch {
		case item.Want.Kind == checkpoint.Dir && !swap:
			m.Dirs = append(m.Dirs, asItWas(item.Path, item.Want))
		case item.Want.Kind == checkpoint.Absent && gone:
			m.Drop = append(m.Drop, item.Path)
		default:
			r.items[item.Path] = item
			m.Paths = append(m.Paths, item.Path)
			m.Links[item.Path] = swap || item.Want.Kind == checkpoint.Symlink || item.Head.Kind == checkpoint.Symlink
		}
	}
	if err := r.oneOrTheOther(m); err != nil {
		return nil, err
	}
	// Innermost first: one that was a file in between stands elsewhere in the plan.
	slices.SortFunc(m.Drop, func(a, b string) int { return strings.Compare(b, a) })
	if err := r.onlyNew(m, goes); err != nil {
		return nil, err
	}
	r.holding(m, goes)
	dirs, drop := m.Dirs, m.Drop
	m.Settle = func(ts []*Target) ([]NewDir, []string) { return r.settleDirs(m, ts, dirs, drop) }
	m.Leave = r.leave
	m.Parents = func(ts []*Target, dirs []NewDir) ([]NewDir, error) { return r.parents(ctx, m, ts, dirs) }
	m.Next = func(ts []*Target) error { return r.next(ctx, ts) }
	r.out.Done, err = e.mutate(ctx, c, *m)
	if err != nil {
		return nil, err
	}
	r.kept = append(r.kept, r.full...)
	if !o.DryRun {
		r.untrash(ctx)
		r.kept = slices.DeleteFunc(r.kept, func(k Blocked) bool { // another took it away before it was our turn
			now, err := e.stateOf(k.Path)
			return err == nil && now.Kind != checkpoint.Dir
		})
	}
	r.out.Kept = append(r.kept, r.out.Kept...)
	if plan.UndoOf != "" && !o.DryRun && r.out.Checkpoint == "" {
		// Unless somebody else has just done it, and has it on record.
		if now, err := r.find(r.db); errors.Is(err, checkpoint.ErrNothing) || err == nil && now.UndoOf != plan.UndoOf {
			return r.out, nil
		}
		// Everything is as it was already, or all of it was skipped. That is on record all the same, or undo would stay here for ever.
		saved, err := r.db.Save(ctx, checkpoint.Op{Tool: c.Tool, Kind: checkpoint.KindRestore, Principal: c.Principal, Session: c.Session, Turn: c.Turn,
			Time: e.now(), UndoOf: plan.UndoOf})
		if err != nil {
			return nil, notSaved(err)
		}
		if r.out.Passed = len(r.out.Skipped)+r.out.Denied > 0; !r.out.Passed {
			r.out.Checkpoint = string(saved.ID)
		}
	}
	return r.out, nil
}
