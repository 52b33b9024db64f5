package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A Maker computes a plan from what is there. It changes nothing, and may be called again when that
// moved on.
type Maker func(ctx context.Context, d *Desk) (*Plan, error)

// Reading is what the session has to know of a file that it changes.
type Reading uint8

// The readings. That a file must have been read at all is for the configuration to say.
const (
	ReadNone  Reading = iota // nothing: a restore has its own rule for what others did
	ReadSome                 // what was read of it must be what is there
	ReadStale                // likewise; but where files need not be read, the maker judges a stale one itself
	ReadWhole                // all that is there, because all of it is replaced
)

// Rules is what a file has to be like to be changed.
type Rules struct {
	Read    Reading
	Hash    string // refuse any other content
	Meant   bool   // the caller said "yes, I mean it"
	Parents bool   // directories that are missing are made
	Link    bool   // the symbolic link itself is meant; else one is refused
}

// A Desk is where a plan is made. Each look goes by handle and through the policy, and is made again
// once what the plan changes is locked.
type Desk struct {
	e     *Engine
	c     *Call
	files targets
	moves []*Move
	tops  map[string]string // by path of what has no directory: the topmost one that is missing
}

// Load looks at the file at path, or at nothing there, and refuses what must not be changed.
func (d *Desk) Load(path string, r Rules) (*Target, error) {
	t := &Target{Path: path, True: path, Before: &guardfs.Before{}, rules: r}
	n := len(d.files)
	d.files = append(d.files, t)
	d.c.Trace.Paths = append(d.c.Trace.Paths[:n], path)
	open := d.e.fs.Place
	if r.Link {
		open = d.e.fs.PlaceLink
	}
	place, err := open(path)
	if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok && r.Parents {
		t.True = gone.True
		d.c.Trace.Paths[n] = t.True
		return t, d.e.fresh(t)
	}
	if err != nil {
		return nil, err
	}
	t.place, t.True = place, place.Object().True
	d.c.Trace.Paths[n] = t.True
	if t.Before, err = place.Load(maxLoad); err != nil {
		return nil, err
	}
	if r.Read != ReadNone {
		if err := d.e.changeable(t); err != nil {
			return nil, err
		}
	}
	if t.Known, err = d.e.know(d.c, t); err != nil {
		return nil, err
	}
	return t, d.e.fresh(t)
}

// plan adds to p what becomes of the files that were loaded, each as its After says, and the
// directories that have to be made for them, and puts all of it in order.
func (d *Desk) plan(p Plan) (*Plan, error) {
	for _, t := range d.files {
		if t.After.Kind == guardfs.KindFile {
			t.After.Hash = HashOf(t.After.Content)
		}
		if t.Unchanged() {
			continue
		}
		if t.rules.Read == ReadNone { // of the many files of such a plan, those that stay are nobody's business
			if err := d.e.changeable(t); err != nil {
				return nil, err
			}
		}
		p.Steps = append(p.Steps, t.step())
		if t.place == nil {
			above, err := d.above(t.Path, t.True)
			if err != nil {
				return nil, err
			}
			p.Steps = append(p.Steps, above...)
		}
	}
	p.sort()
	return &p, nil
}

// above are the steps that make the directories that are missing above path. name is the true one that
// it is to have.
func (d *Desk) above(path, name string) (steps []Step, err error) {
	dirs, is, err := d.e.fs.Missing(path)
	if err == nil && dirs != nil && is != name {
		err = &guardfs.ConflictError{Path: name, Why: "a link was put in its way, which leads to " + is}
	}
	for _, dir := range dirs {
		steps = append(steps, NewDir{Path: dir, Mode: 0o777}.step())
	}
	d.tops[path] = topmost(dirs)
	return steps, err
}

func topmost(dirs []string) string {
	if len(dirs) == 0 {
		return ""
	}
	return dirs[0]
}

// rmdir is the step that removes a directory, if nothing is in it by then.
func (d *Desk) rmdir(name string) (Step, error) {
	s := Step{Path: name, Action: Rmdir, Optional: true}
	s.Before.Kind = checkpoint.Dir
	place, err := d.e.fs.PlaceLink(name)
	if err == nil {
		err = d.e.judge.Judge(place.Object(), guardfs.Remove)
		place.Close()
	}
	if _, no := errors.AsType[*policy.Denied](err); no {
		return s, err
	}
	return s, nil // what can't be looked at is met again
}

// away is the step that moves a tree, or whatever it is, to the trash as a whole.
func (d *Desk) away(mv *Move) (Step, error) {
	d.moves = append(d.moves, mv)
	err := d.e.loadMoves(&Mutation{Moves: d.moves[len(d.moves)-1:]})
	return mv.step(), err
}

// make has a plan made of what is there now.
func (d *Desk) make(ctx context.Context, make Maker) (*Plan, error) {
	d.close()
	d.files, d.moves, d.c.Trace.Paths = nil, nil, nil
	d.tops = map[string]string{}
	p, err := make(ctx, d)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	d.c.about(d.files, p)
	if len(d.files) > 0 {
		t := d.files[0]
		d.c.Trace.Before, d.c.Trace.After, d.c.Trace.Bytes = t.Before.Hash, t.After.Hash, int64(len(t.After.Content))
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.park, err = d.e.roomFor(p)
	return p, err
}

func (d *Desk) close() {
	d.files.close()
	(&Mutation{Moves: d.moves}).closeMoves()
}

// moved looks again whether what the plan was made of is still there.
func (d *Desk) moved() (bool, error) {
	for _, mv := range d.moves {
		if err := d.e.staysPut(mv); err != nil {
			return false, err
		}
	}
	for path, top := range d.tops {
		if dirs, _, err := d.e.fs.Missing(path); err != nil || top == "" || topmost(dirs) != top {
			return true, nil //nolint:nilerr // the maker meets it again, and says so
		}
	}
	for _, t := range d.files {
		if t.place == nil {
			continue
		}
		now, err := t.place.Reload(t.Before, maxLoad)
		if err != nil {
			return false, err
		}
		file := now.Exists && now.Info.Kind == guardfs.KindFile
		if now.Exists != t.Before.Exists || now.Hash != t.Before.Hash || now.Info.Kind != t.Before.Info.Kind || file && now != t.Before {
			return true, nil // what differs may be no more than metadata: what is there now is what is kept
		}
	}
	return false, nil
}

// Change is the changing chain, the road to the agent's tree. Read it downward; any line may refuse,
// and then everything is as it was.
func (e *Engine) Change(ctx context.Context, c *Call, make Maker) (*Done, error) {
	if err := e.begun(c); err != nil {
		return nil, err
	}
	d := &Desk{e: e, c: c}
	defer func() { d.close() }()
	p, err := d.make(ctx, make) // policy speaks in every look; seen and unchanged? then the new content
	if err != nil {
		return nil, err
	}
	if p.DryRun || len(p.Steps) == 0 {
		return e.wouldBe(d.files, p), nil
	}
	grant, err := e.ask(ctx, c, p) // a person may take minutes
	if err != nil {
		return nil, err
	}
	p, unlock, err := d.alone(ctx, p, make, grant != "") // look again, now alone
	if err != nil {
		return nil, err
	}
	defer unlock()
	if len(p.Steps) == 0 { // somebody else has done it meanwhile
		return &Done{Targets: d.files, Idle: true}, nil
	}
	if err := e.intend(c); err != nil { // no change without a record of it
		return nil, err
	}
	done, err := e.carry(ctx, c, d.files, p)
	if err != nil {
		return nil, err
	}
	done.Approval = grant
	e.rememberChange(c, d.files)
	e.keepDirs(ctx, c, d.files.paths()...)
	if done.Checkpoint != "" {
		e.expire(ctx)
	}
	return done, nil
}

// alone takes the locks of a plan, and makes it anew if something moved meanwhile. approved is one
// that may only do less by then.
func (d *Desk) alone(ctx context.Context, p *Plan, make Maker, approved bool) (_ *Plan, unlock func(), err error) {
	const rounds = 16 // as often as directories may come and go under us
	asked := p
	for range rounds {
		keys := p.keys()
		unlock, err := d.e.lockSteps(ctx, d.c, p, d.files.paths())
		if err != nil {
			return nil, nil, err
		}
		moved, err := d.moved()
		if err == nil && !moved {
			return p, unlock, nil
		}
		if err == nil {
			p, err = d.make(ctx, make)
		}
		if err == nil && approved && p.adds(asked) {
			err = Refuse(ApprovalStale, p.first(), p.diff())
		}
		if err == nil && !slices.ContainsFunc(p.keys(), func(k string) bool { return !slices.Contains(keys, k) }) {
			return p, unlock, nil
		}
		unlock()
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, &guardfs.ConflictError{Path: p.first(), Why: "its directory is being made and removed in turns"}
}

// lockSteps takes the locks of a plan, once nobody is left who died half-way through another change of
// these paths: what was left like that is taken back first.
func (e *Engine) lockSteps(ctx context.Context, c *Call, p *Plan, looked []string) (unlock func(), err error) {
	for start := time.Now(); ; time.Sleep(time.Millisecond) { // where another takes it back, or is about to finish
		if unlock, err = e.lock(ctx, c.Tool, p.keys()); err != nil {
			return nil, err
		}
		if err = e.cutOff(ctx, p, looked); err == nil {
			return unlock, nil
		}
		unlock()
		if _, cut := errors.AsType[*cutOffError](err); !cut {
			return nil, err
		}
		if err := e.recover(ctx, start.Add(e.lockWait)); err != nil {
			return nil, err
		}
		if time.Since(start) > e.lockWait || ctx.Err() != nil {
			return nil, err
		}
	}
}

// carry has a plan carried out by the road before it. Only here does a plan become a mutation.
func (e *Engine) carry(ctx context.Context, c *Call, ts targets, p *Plan) (*Done, error) {
	m := &Mutation{Summary: p.Summary, Op: p.Op, Checkpoint: p.Checkpoint, Whole: p.Whole, park: p.park}
	var made []NewDir
	for i := range p.Steps {
		switch s := &p.Steps[i]; s.Action {
		case Mkdir:
			made = append(made, NewDir{Path: s.Path, Mode: s.After.Mode})
		case Rmdir:
			m.Drop = append(m.Drop, s.Path)
		case Rename:
			m.Moves = append(m.Moves, s.move)
		}
	}
	if p.trash != nil {
		m.Trash = func(path string, _ guardfs.Kind) *checkpoint.Trashed { return p.trash[path] }
	}
	done, err := e.carryOutPlan(ctx, c, ts, m, made, p) // checkpoint and temp files, both durable; then the exchange: all paths or none
	if e, ok := errors.AsType[*guardfs.RecordError](err); ok {
		return nil, &hostError{"writing to the data directory", e}
	}
	return done, err
}

// wouldBe is what would become of a plan, or that nothing has to.
func (e *Engine) wouldBe(ts targets, p *Plan) *Done {
	done := &Done{Targets: ts, DryRun: p.DryRun, Idle: len(p.Steps) == 0}
	for i := range p.Steps {
		if mv := p.Steps[i].move; mv != nil {
			done.Moved = append(done.Moved, *mv)
		}
	}
	if p.DryRun {
		done.Made, done.Dropped = p.of(Mkdir), p.of(Rmdir)
	}
	if !p.Whole && (p.Checkpoint || e.cfg.CheckpointBeforeMutation) {
		done.Skipped = e.newUnheld(ts)
	}
	return done
}

// Rewrite changes one file, or makes it: next says by After what becomes of it. It must be pure.
func (e *Engine) Rewrite(ctx context.Context, c *Call, path string, r Rules, p Plan, next func(*Target) error) (*Done, error) {
	return e.Change(ctx, c, func(_ context.Context, d *Desk) (*Plan, error) {
		t, err := d.Load(path, r)
		if err == nil {
			err = next(t)
		}
		if err != nil {
			return nil, err
		}
		return d.plan(p)
	})
}
