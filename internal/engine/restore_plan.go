package engine

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/guardfs"
)

// make is the maker of restores. It looks what is there, and says what becomes of each path of the
// store's plan, or why nothing does.
func (r *restore) make(ctx context.Context, d *Desk) (_ *Plan, err error) {
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
	if r.entry != nil && r.entry.Parked != "" {
		r.moves = []*Move{{Path: r.entry.Path, Back: true, Entry: *r.entry}}
	}
	for _, mv := range r.moves {
		r.goes[mv.Path] = !mv.Back
	}
	if err := r.split(ctx, items); err != nil {
		return nil, err
	}
	if err := r.oneOrTheOther(); err != nil {
		return nil, err
	}
	p := Plan{
		Summary: restoring(len(r.plan.Items)), DryRun: r.o.DryRun, Checkpoint: true,
		Whole: true,
		Op: checkpoint.Op{Kind: checkpoint.KindRestore, RestoreOf: r.plan.RestoreOf,
			UndoOf: r.plan.UndoOf},
	}
	if r.entry != nil {
		p.Summary, p.Whole = "bring "+r.entry.Path+" back from the trash", false
	}
	if err := r.look(ctx, &p); err != nil {
		return nil, err
	}
	if err := r.next(ctx); err != nil {
		return nil, err
	}
	r.settleDirs()
	p.trash = map[string]*checkpoint.Trashed{}
	for _, t := range d.files {
		if t.After.Kind == guardfs.KindAbsent || t.becomesDir() {
			p.trash[t.True] = &checkpoint.Trashed{Agent: !d.c.ByUser, Files: 1}
		}
	}
	return r.steps(ctx, p)
}

// begin forgets what was planned before.
func (r *restore) begin(d *Desk) {
	r.d, d.disk = d, true // it gives back bytes
	r.out = &Restored{Plan: r.plan, Denied: len(r.unnamed), Merged: map[string]bool{},
		Metadata: map[string]rewind.Metadata{}}
	r.todo = todo{items: map[string]*checkpoint.Item{}, links: map[string]bool{},
		goes: map[string]bool{}}
	r.asked = map[string]bool{}
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
		swap := r.swapped(item)
		if swap {
			r.d.swaps = append(r.d.swaps, item.Path)
		}
		gone := item.Role == checkpoint.RoleParent && !leaf(item.Head.Kind) ||
			item.Head.Kind == checkpoint.Dir
		switch {
		case item.Want.Kind == checkpoint.Dir && !swap:
			r.dirs = append(r.dirs, mkdirAs(item.Path, item.Want))
		case item.Want.Kind == checkpoint.Absent && gone:
			r.drop = append(r.drop, item.Path)
		default:
			r.items[item.Path] = item
			r.paths = append(r.paths, item.Path)
			r.links[item.Path] = swap || r.entry != nil || item.Want.Kind == checkpoint.Symlink ||
				item.Head.Kind == checkpoint.Symlink
		}
	}
	return nil
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
	if err := r.load(ctx, true); err != nil {
		return err
	}
	if err := r.dirsToMake(); err != nil {
		return err
	}
	if err := r.load(ctx, false); err != nil {
		return err
	}
	return r.dirsToGo(ctx)
}

// load looks at files and links: those in whose place a directory is to be, or the others.
func (r *restore) load(ctx context.Context, swaps bool) error {
	for i, name := range r.paths {
		r.e.told("looking at files", i+1, len(r.paths))
		if swaps != (r.items[name].Want.Kind == checkpoint.Dir) {
			continue
		}
		if r.belowStay(name) {
			r.skip(name, FileOnTheWay)
			continue
		}
		rules := Rules{Parents: true, Link: r.links[name]}
		if r.items[name].Role == checkpoint.RoleAppended {
			rules.above = r.e.appendAbove(0)
		}
		t, err := r.d.Load(name, rules)
		if err == nil && t.True != name { // another place than the one that was recorded
			err = &guardfs.SymlinkError{Path: name, Target: t.True}
		}
		if why := r.unseen(name, err, r.d.files[len(r.d.files)-1].place); why != none {
			r.d.forget()
			r.skip(name, why)
			continue
		}
		if err != nil {
			return err
		}
		if !swaps || r.o.OnConflict != OnConflictSkip {
			continue
		}
		why, err := r.decide(ctx, t)
		if err != nil {
			return err
		}
		if why != none { // all that belongs into the directory stays away with it
			r.d.forget()
			r.skip(name, why)
			r.inTheWay = append(r.inTheWay, name)
			r.d.swaps = slices.DeleteFunc(r.d.swaps, func(s string) bool { return s == name })
		}
	}
	return nil
}

// belowStay says that name belongs into a directory whose place a file keeps.
func (r *restore) belowStay(name string) bool {
	return slices.ContainsFunc(r.inTheWay, func(s string) bool { return below(name, s) })
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
		s.Optional = !r.d.inside(dir)
		p.Steps = append(p.Steps, s)
	}
	made, err := r.mkdirs(ctx)
	if err != nil {
		return nil, err
	}
	p.Steps, p.Left = append(p.Steps, made...), r.out.Skipped
	plan, err := r.d.plan(p)
	if err == nil && len(plan.Steps) > 1 { // what is appended can't be taken back with the others
		if again := plan.of(Append); again != nil {
			return nil, Refuse(NotStored, again[0], OnlyAlone)
		}
	}
	return plan, err
}

// mkdirs are the steps that make directories, as they were: those that are to be there, and what is
// missing above them and above what comes back. What is only missing above files comes with these.
func (r *restore) mkdirs(ctx context.Context) (steps []Step, err error) {
	as, missing := map[string]Step{}, map[string]bool{}
	for _, dir := range r.dirs {
		as[dir.Path] = dir
	}
	above := func(name string) error {
		if top := r.d.swapOver(name); top != nil {
			for dir := path.Dir(name); dir != top.True; dir = path.Dir(dir) {
				missing[dir] = true
				if err := r.e.mayMake(dir); err != nil {
					return err
				}
			}
			return nil
		}
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
		if mv.Back && mv.place == nil {
			if err := above(mv.Path); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range r.d.files {
		if t.becomesDir() {
			as[t.True], missing[t.True] = t.newDir(), true
		}
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
				mode = rewind.ModeOf(r.e.modeAbove(dir), seen[dir])
			}
			made.After.Mode = mode
		}
		steps = append(steps, made)
	}
	return steps, nil
}

// restoring says how many paths are to be restored.
func restoring(n int) string {
	if n == 1 {
		return "restore 1 path"
	}
	return fmt.Sprintf("restore %d paths", n)
}
