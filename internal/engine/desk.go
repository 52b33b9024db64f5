package engine

import (
	"cmp"
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A Maker computes a plan from what is there. It changes nothing, and may be called again when that
// moved on.
type Maker func(ctx context.Context, d *Desk) (*Plan, error)

// Reading is the knowledge that a session must have of a file that it changes.
type Reading uint8

// The readings. That a file must have been read at all is for the configuration to say.
const (
	ReadNone Reading = iota // nothing: a restore has its own rule for what others did
	ReadSome                // what was read of it must be what is there
	// likewise; but where files need not be read, the maker judges a stale one itself
	ReadStale
	ReadWhole // all that is there, because all of it is replaced
)

// Rules are the conditions under which a file may be changed.
type Rules struct {
	Read    Reading
	Hash    string // refuse any other content
	Meant   bool   // the caller said "yes, I mean it"
	Parents bool   // directories that are missing are made
	Link    bool   // the symbolic link itself is meant; else one is refused

	// for the rules on what a change may be
	encoding    string // as the call names it; "": as it is detected
	text, edits bool   // a text replaces the whole file; or parts of its text are replaced

	above int64 // a file of more bytes is not read; 0: all are
}

// A Desk is where a plan is made. Each look goes by handle and through the policy. All looks are
// made again once the paths of the plan are locked.
type Desk struct {
	e     *Engine
	c     *Call
	files targets
	moves []*Move
	// by a path in each directory that gets something new: the topmost directory that is missing
	tops  map[string]string
	drops []string // directories that go
	// where a directory gives way to a file or link, or takes the place of one
	swaps []string

	ctx  context.Context                                       //nolint:containedctx // of the call that it is for
	held func(path string) (text []byte, held bool, err error) // by the client
	disk bool                                                  // what the disk has too is not held
}

// Load looks at the file at path, or at nothing there, and refuses what must not be changed.
func (d *Desk) Load(path string, r Rules) (*Target, error) {
	t := &Target{Path: path, True: path, Before: &guardfs.Before{}, rules: r}
	n := len(d.files)
	d.files = append(d.files, t)
	d.c.Trace.Paths = append(d.c.Trace.Paths[:n], path)
	place, err := d.place(path, r.Link)
	if d.nowhere(path, err) {
		return t, cmp.Or(d.notHeld(path), d.e.fresh(t))
	}
	if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok && r.Parents {
		t.True = gone.True
		d.c.Trace.Paths[n] = t.True
		return t, cmp.Or(d.notHeld(t.True), d.e.fresh(t))
	}
	if err != nil {
		return nil, err
	}
	t.place, t.True = place, place.Object().True
	d.c.Trace.Paths[n] = t.True
	if t.Before, t.disk, err = d.look(t); err != nil {
		return nil, err
	}
	if err := d.hash(t); err != nil {
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
	return t, cmp.Or(d.e.fresh(t), d.e.keeps(t, "", true))
}

// forget takes back the last Load.
func (d *Desk) forget() {
	n := len(d.files) - 1
	d.files[n:].close()
	d.files = d.files[:n]
}

// plan adds to p what becomes of the files that were loaded, each as its After says, and the
// directories that have to be made for them, and puts all of it in order.
func (d *Desk) plan(p Plan) (*Plan, error) {
	for _, t := range d.files {
		if t.large() && !t.After.Tail && t.After.cut == nil { // its content is not known
			return nil, &PlanError{t.True, "it was not read", Put}
		}
		if t.After.Kind == guardfs.KindFile && t.After.Hash == "" &&
			!t.After.Tail && t.After.From == nil {
			t.After.Hash = HashOf(t.After.Content)
		}
		if t.Unchanged() {
			continue
		}
		// Such a plan has many files. Those that stay as they are need no diff.
		if t.rules.Read == ReadNone {
			if err := d.e.changeable(t); err != nil {
				return nil, err
			}
		}
		if err := d.e.keeps(t, p.Op.Kind, false); err != nil {
			return nil, err
		}
		s := t.step()
		if t.givesWay() {
			gone := Step{Path: t.True, Action: Rmdir, Before: s.Before}
			p.Steps = append(p.Steps, gone)
			s.Before = State{}
		}
		p.Steps = append(p.Steps, s)
		if t.place == nil && d.swapOver(t.True) == nil {
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

// above makes the directories that are missing above a path, unless the plan makes them already for
// another path. name is the canonical path that it will have.
func (d *Desk) above(spelled, name string) (steps []Step, err error) {
	key := path.Dir(filepath.ToSlash(spelled)) + "/x"
	if _, known := d.tops[key]; known && spelled == name {
		return nil, nil
	}
	dirs, is, err := d.e.makes(spelled).Missing(spelled)
	if err == nil && dirs != nil && is != name {
		err = &guardfs.ConflictError{Path: name, Why: guardfs.LinkInTheWay, Fact: is}
	}
	for _, dir := range dirs {
		steps = append(steps, mkdir(dir, 0o777))
	}
	if d.tops[key] = ""; len(dirs) > 0 {
		d.tops[key] = dirs[0]
	}
	return steps, err
}

// rmdir is the step that removes a directory, if nothing is in it by then.
func (d *Desk) rmdir(name string) (Step, error) {
	s := Step{Path: name, Action: Rmdir, Optional: true}
	s.Before.Kind = checkpoint.Dir
	d.drops = append(d.drops, name)
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

// move is the step that moves something to the trash as a whole, or back. back: it is back already.
func (d *Desk) move(mv *Move) (s Step, back bool, err error) {
	d.moves = append(d.moves, mv)
	if back, err = d.e.loadMove(d.ctx, mv); err != nil {
		return s, back, err
	}
	return mv.step(), back, nil
}

// make has a plan made of what is there now.
func (d *Desk) make(ctx context.Context, make Maker) (*Plan, error) {
	d.close()
	d.files, d.moves, d.drops, d.swaps, d.c.Trace.Paths = nil, nil, nil, nil, nil
	d.tops = map[string]string{}
	p, err := make(ctx, d)
	if err == nil {
		err = d.unmixed(ctx, p)
	}
	if UnsavedText.In(err) && !d.disk && ctx.Err() == nil { // is it?
		d.disk = true
		return d.make(ctx, make)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	d.c.about(d.files, p)
	if len(d.files) > 0 {
		t := d.files[0]
		d.c.Trace.Before, d.c.Trace.After, d.c.Trace.Bytes = t.Before.Hash, t.After.Hash,
			t.After.size()
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, d.e.checkDescriptors(p)
}

func (d *Desk) close() {
	d.files.close()
	for _, mv := range d.moves {
		mv.close()
	}
}

// moved looks again whether what the plan was made of is still there.
func (d *Desk) moved(ctx context.Context) (bool, error) {
	for _, mv := range d.moves {
		var other bool
		var err error
		if mv.Back {
			other, err = d.e.isBack(ctx, mv)
		} else {
			err = d.e.staysPut(mv)
		}
		if err == nil && !other {
			other, err = d.e.refilled(ctx, mv)
		}
		if err != nil || other {
			return other, err
		}
	}
	for _, dir := range d.drops {
		if s, err := d.e.stateOf(dir); err == nil && s.Kind != checkpoint.Dir {
			return true, nil
		}
	}
	for name, top := range d.tops {
		if dirs, _, err := d.e.makes(name).Missing(name); err != nil || top == "" || len(dirs) == 0 ||
			dirs[0] != top {
			return true, nil //nolint:nilerr // the maker meets it again, and says so
		}
	}
	for _, t := range d.files {
		if t.place == nil {
			continue
		}
		now, _, err := d.look(t)
		if err != nil {
			return false, err
		}
		file := now.Exists && now.Info.Kind == guardfs.KindFile
		if now.Exists != t.Before.Exists || now.Hash != t.Before.Hash ||
			now.Info.Kind != t.Before.Info.Kind || file && now != t.Before {
			return true, nil // what differs may be no more than metadata: what is there now is what is kept
		}
	}
	return false, nil
}

// Change is how everything in the agent's tree changes. Read it downward. Any line may refuse, and
// then everything is as it was.
func (e *Engine) Change(ctx context.Context, c *Call, make Maker) (done *Done, err error) {
	e, err = e.begun(c)
	if err != nil {
		return nil, err
	}
	d := &Desk{e: e, c: c, ctx: ctx, disk: !takes(c.Overlay), held: func(path string) ([]byte, bool, error) { return c.held(ctx, path) }}
	defer func() { d.close() }()
	// Policy judges every look. A file is refused here if it was not read, or has changed since.
	p, err := d.make(ctx, make)
	if err != nil {
		return nil, err
	}
	if p.DryRun || len(p.Steps) == 0 {
		return e.wouldBe(d.files, p), nil
	}
	grant, over, err := e.ask(ctx, c, p) // a person may take minutes
	if err != nil {
		return nil, err
	}
	defer func() { over(done != nil) }()
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
	settled := e.settle()
	done, err = e.carry(ctx, c, d.files, p)
	settled()
	if err != nil {
		return nil, err
	}
	if o := c.editor(); o != nil && !p.unsaved() {
		for _, path := range p.Paths() {
			o.seen.Changed(path)
		}
	}
	done.Approval = grant
	e.rememberChange(c, d.files, d.moves)
	e.recordClosedDirs(ctx, c, d.files.paths()...)
	if done.Checkpoint != "" {
		e.expire(ctx)
	}
	return done, nil
}

// alone takes the locks of a plan, and makes it anew if something moved meanwhile. approved is one
// that may only do less by then.
func (d *Desk) alone(ctx context.Context, p *Plan, make Maker,
	approved bool) (_ *Plan, unlock func(), err error) {
	const rounds = 16 // as often as directories may come and go under us
	asked, tag := p, newTag()
	p.Op.Tag = tag
	for range rounds {
		keys := p.keys()
		unlock, err := d.e.lockSteps(ctx, d.c, p, d.files.paths())
		if err != nil {
			return nil, nil, err
		}
		moved, err := d.moved(ctx)
		if err == nil && !moved {
			if err = d.unmixed(ctx, p); err == nil {
				return p, unlock, nil
			}
		}
		if err == nil {
			p, err = d.make(ctx, make)
		}
		if err == nil {
			p.Op.Tag = tag
		}
		if err == nil && p.adds(asked) {
			err = d.e.covers(ctx, approved, p)
		}
		if err == nil && approved && p.adds(asked) {
			err = Refuse(ApprovalStale, p.first(), p.diff())
		}
		if err == nil &&
			!slices.ContainsFunc(p.keys(), func(k string) bool { return !slices.Contains(keys, k) }) {
			return p, unlock, nil
		}
		unlock()
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, &guardfs.ConflictError{Path: p.first(), Why: guardfs.DirInTurns}
}

// lockSteps takes the locks of a plan. If a process died half-way through another change of these
// paths, that change is taken back first. A restore then gets an *interruptedError, since its plan
// came from the store before that.
func (e *Engine) lockSteps(ctx context.Context, c *Call, p *Plan,
	looked []string) (unlock func(), err error) {
	// Another process may be taking it back, or about to finish.
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if unlock, err = e.lock(ctx, c.Tool, p.keys()); err != nil {
			return nil, err
		}
		if err = e.interrupted(ctx, p, looked); err == nil {
			return unlock, nil
		}
		unlock()
		if _, cut := errors.AsType[*interruptedError](err); !cut {
			return nil, err
		}
		if err := e.recover(ctx, start.Add(e.lockWait)); err != nil {
			return nil, err
		}
		if p.Op.Kind == checkpoint.KindRestore || time.Since(start) > e.lockWait || ctx.Err() != nil {
			return nil, err
		}
	}
}

// carry carries a plan out.
func (e *Engine) carry(ctx context.Context, c *Call, ts targets, p *Plan) (done *Done, err error) {
	switch {
	case p.unsaved():
		done, err = e.store(ctx, c, ts, p)
	case len(p.Steps) == 1 && p.Steps[0].Action == Append:
		done, err = e.extend(ctx, c, ts, p)
	default:
		done, err = e.apply(ctx, c, ts, p)
	}
	if e, ok := errors.AsType[*guardfs.RecordError](err); ok {
		return nil, &hostError{"writing to the data directory", e}
	}
	return done, err
}

// wouldBe gives the result of a plan that is not carried out: a dry run, or one without steps.
func (e *Engine) wouldBe(ts targets, p *Plan) *Done {
	done := &Done{Targets: ts, DryRun: p.DryRun, Idle: len(p.Steps) == 0}
	for _, mv := range p.moving() {
		done.Moved = append(done.Moved, *mv)
	}
	if p.DryRun {
		done.Made, done.Dropped = p.of(Mkdir), p.dropped()
	}
	if !p.Whole && (p.Checkpoint || e.cfg.CheckpointBeforeMutation) {
		done.Skipped = e.newNotBackedUp(ts)
	}
	return done
}

// moving lists the trees of a plan that go to the trash as a whole, or come back.
func (p *Plan) moving() (out []*Move) {
	for i := range p.Steps {
		if mv := p.Steps[i].move; mv != nil {
			out = append(out, mv)
		}
	}
	return out
}

// dropped are the directories that go, and nothing comes in their place.
func (p *Plan) dropped() []string {
	comes := map[string]bool{}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Action != Rmdir {
			comes[s.Path] = true
		}
	}
	return slices.DeleteFunc(p.of(Rmdir), func(dir string) bool { return comes[dir] })
}

// Rewrite changes one file, or makes it: next says by After what becomes of it. It must be pure.
func (e *Engine) Rewrite(ctx context.Context, c *Call, path string, r Rules, p Plan,
	next func(*Target) error) (*Done, error) {
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
