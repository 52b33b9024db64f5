package engine

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/guardfs"
)

// A Mutation is what a restore wants, and what a plan of several steps is carried out as.
type Mutation struct {
	Paths []string // absolute, each once
	// Next computes from what is there what each target becomes, and sets its After. It must be pure: it is called again when the
	// file moved on before anybody was asked.
	Next func([]*Target) error

	Summary string // one line for the person who approves
	DryRun  bool   // stop before anybody is asked
	// Checkpoint forces a checkpoint whatever the config says; Op carries what the store should know of it beyond the paths.
	Checkpoint bool
	Op         checkpoint.Op

	Moves []*Move         // what goes to the trash as a whole, or comes back
	Dirs  []NewDir        // to be made before the files, from the top down; exact
	Drop  []string        // directories to remove after the files, from the bottom up, where nothing is in them then
	Links map[string]bool // of Paths: the symbolic link itself is meant
	Swaps []string        // of Paths: a directory may be there that has to give way, or a file or link in whose place a directory comes
	// Trash says how long the trash keeps what is removed at path; nil for what does not go there on its own. Only what the checkpoint
	// holds does.
	Trash func(path string, k guardfs.Kind) *checkpoint.Trashed
	Whole bool // refuse unless the checkpoint holds every content
	// Parents adds to Dirs what else has to be made for the targets; nil: with the mode that new ones get.
	Parents func([]*Target, []NewDir) ([]NewDir, error)
	// Settle says, once it is known what the targets become, which of Dirs and Drop are left; nil: all.
	Settle func([]*Target) ([]NewDir, []string)
	// Leave says of a path of Paths that can't be loaded whether the mutation goes on without it; nil never does.
	Leave func(path string, err error) bool

	park bool // new contents are closed until they are published
}

// NewDir is a directory that a mutation makes.
type NewDir struct {
	Path string
	Mode fs.FileMode
	As   *guardfs.Metadata // it is to be as it was; nil: Mode less the umask
}

// asItWas is a directory that comes back, as far as it is known what it was.
func asItWas(path string, was checkpoint.State) NewDir {
	d := NewDir{Path: path, Mode: was.Mode}
	if was.Mode.Perm() != 0 {
		d.As = dirMetadata(was)
	}
	return d
}

// dirMetadata is that of a directory that comes back. Unlike those of a file, its set-id bits only say what is to become of what is made in it.
func dirMetadata(was checkpoint.State) *guardfs.Metadata {
	return &guardfs.Metadata{Mode: was.Mode, UID: was.UID, GID: was.GID, Xattrs: was.Xattrs}
}

// idle says that nothing at all has to be done. made are the directories that have to be made.
func (m *Mutation) idle(ts targets, made []NewDir) bool {
	return ts.unchanged() && len(made)+len(m.Drop)+len(m.Moves) == 0
}

// steps is the mutation as a plan. Its directories are made by name: made are those that have to be.
func (m *Mutation) steps(ts targets, made []NewDir) *Plan {
	p := &Plan{Summary: m.Summary}
	rmdir := func(name string, optional bool) {
		s := Step{Path: name, Action: Rmdir, Optional: optional}
		s.Before.Kind = checkpoint.Dir
		p.Steps = append(p.Steps, s)
	}
	for _, t := range ts.changing() {
		s := t.step()
		if t.givesWay() {
			rmdir(t.True, false)
			s.Before = State{}
		}
		p.Steps = append(p.Steps, s)
	}
	for _, mv := range m.Moves {
		p.Steps = append(p.Steps, mv.step())
	}
	for _, d := range m.Drop {
		rmdir(d, true)
	}
	for _, d := range made {
		p.Steps = append(p.Steps, d.step())
	}
	p.sort()
	return p
}

// step is what becomes of a target that changes. A file or link whose place a directory takes is removed.
func (t *Target) step() Step {
	s := Step{Path: t.True, Before: State{State: state(t.Before), ID: t.Before.Info.ID}, After: State{State: t.announced()}, file: t}
	switch t.After.Kind {
	case guardfs.KindFile:
		s.Action = Put
	case guardfs.KindSymlink:
		s.Action = Link
	default:
		s.Action, s.After = Remove, State{}
	}
	if m := t.After.Meta; m != nil && s.Action == Put {
		s.Exact, s.After.Mode, s.After.UID, s.After.GID, s.After.ModTime, s.After.Xattrs = true, m.Mode, m.UID, m.GID, m.ModTime, m.Xattrs
	}
	return s
}

func (mv *Move) step() Step {
	s := Step{Path: mv.Path, Action: Rename, Before: State{State: moveState(mv.info), ID: mv.info.ID}, move: mv}
	if mv.Back {
		s.Path, s.To = mv.Entry.Parked, mv.Path
	}
	return s
}

func (d NewDir) step() Step {
	s := Step{Path: d.Path, Action: Mkdir, After: State{State: checkpoint.State{Kind: checkpoint.Dir, Mode: d.Mode}}}
	if m := d.As; m != nil {
		s.Exact, s.After.Mode, s.After.UID, s.After.GID, s.After.Xattrs = true, m.Mode, m.UID, m.GID, m.Xattrs
	}
	return s
}

// A Target is one path of a mutation on its way through the chain.
type Target struct {
	Path   string // as the caller spelled it
	True   string
	Before *guardfs.Before
	Known  Knowledge
	After  After

	// Published is what was done, nil for a target that needed nothing.
	Published *guardfs.Published

	ours   bool                  // that it is read-only is the session's own doing
	made   chan guardfs.Metadata // of a new file: what it got
	own    guardfs.Identity      // of the file that was written for it
	linked bool                  // a link was made, or may have been
	place  *guardfs.Place        // nil while the parent is still to be made
	above  *guardfs.Place        // that of the topmost parent that is still to be made
	fresh  guardfs.Metadata      // of a new file in such a parent: what it will get
	rules  Rules
}

// After is what a target becomes.
type After struct {
	Kind    guardfs.Kind      // KindFile, KindAbsent (removed), KindSymlink; KindDir only in the place of one of Mutation.Swaps
	Content []byte            // of a file
	Hash    string            // of Content; filled by the chain
	Target  string            // of a symlink
	Hunks   []diff.Hunk       // how Before became Content, from whoever knows it already; nil: compared when wanted
	Meta    *guardfs.Metadata // exact metadata; nil carries over what is there
	// Shown is what of Content the session knows, from whoever can tell; nil: the lines it knew, where none moved. Its Hash and Whole do not count.
	Shown *Sight
}

// Unchanged says that After is what is there already, so that nothing has to be written.
func (t *Target) Unchanged() bool {
	switch t.After.Kind {
	case guardfs.KindAbsent:
		return !t.Before.Exists
	case guardfs.KindFile:
		return t.Before.Exists && t.Before.Info.Kind == guardfs.KindFile && t.Before.Hash == t.After.Hash &&
			(t.After.Meta == nil || sameMetadata(t.After.Meta, &t.Before.Meta))
	case guardfs.KindSymlink:
		return t.Before.Exists && t.Before.Info.Kind == guardfs.KindSymlink && string(t.Before.Content) == t.After.Target
	}
	return t.Before.Exists && t.Before.Info.Kind == t.After.Kind // what the tools do not make, they leave alone
}

// Done is what became of a mutation.
type Done struct {
	Targets    []*Target
	Checkpoint string // id; "" when none was taken
	// Skipped says why a checkpoint that was asked for does not hold everything; "" when it does.
	Skipped  string
	Made     []string // directories that were made; with DryRun and Mutation.Parents: would be
	Dropped  []string // directories that were removed; with DryRun: would be
	Moved    []Move   // with DryRun: what would be moved
	Trashed  []checkpoint.Trashed
	Kept     []Blocked // directories that were to go and stay
	Approval string    // "approved" when somebody was asked
	DryRun   bool
	Idle     bool // everything was, or with DryRun is, already as it should be
}

// mutate is the road of restores, until they are plans. Read it
// downward; any line may refuse, and then everything is as it was.
func (e *Engine) mutate(ctx context.Context, c *Call, m Mutation) (*Done, error) {
	c.Trace.Paths = m.Paths
	if err := roomToLoad(m.Paths); err != nil {
		return nil, err
	}
	ts, err := e.load(&m) // policy first, on every path; then what is there, by handle
	if err != nil {
		return nil, err
	}
	defer ts.close()
	defer m.closeMoves()
	c.about(ts, m.steps(ts, m.Dirs))
	if err := errors.Join(e.plan(c, ts, &m), ctx.Err()); err != nil { // seen and unchanged? then the new content, pure
		return nil, err
	}
	if m.park, err = e.roomToChange(ts, &m); err != nil {
		return nil, err
	}
	made, err := e.directories(ts, &m) // policy on what is made and removed for it, too, before anybody is asked
	if err != nil {
		return nil, err
	}
	p := m.steps(ts, made)
	c.about(ts, p)
	if err := p.check(); err != nil {
		return nil, err
	}
	if m.DryRun || m.idle(ts, made) {
		return e.foreseen(ts, &m, made), nil
	}
	grant, err := e.ask(ctx, c, p) // a person may take minutes
	if err != nil {
		return nil, err
	}
	unlock, err := e.lockWhole(ctx, c, ts, &m)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := errors.Join(e.still(c, ts, &m), e.movesStill(ctx, &m)); err != nil { // so look again, now alone
		return nil, err
	}
	if made, err = e.dirsStill(ts, &m); err != nil {
		return nil, err
	}
	now := m.steps(ts, made)
	if grant != "" && now.adds(p) {
		return nil, Refuse(ApprovalStale, now.first(), now.diff())
	}
	c.about(ts, now)
	if m.idle(ts, made) { // somebody else has done it meanwhile
		return &Done{Targets: ts, Idle: true}, nil
	}
	if err := e.intend(c); err != nil { // no change without a record of it
		return nil, err
	}
	done, err := e.carryOutPlan(ctx, c, ts, &m, made, now) // checkpoint and temp files, both durable; then the exchange: all paths or none
	if err != nil {
		if e, ok := errors.AsType[*guardfs.RecordError](err); ok {
			err = &hostError{"writing to the data directory", e}
		}
		return nil, err
	}
	done.Approval = grant
	e.rememberChange(c, ts)
	e.keepDirs(ctx, c, ts.paths()...)
	if done.Checkpoint != "" {
		e.expire(ctx)
	}
	return done, nil
}

// carryOutPlan changes all paths or none.
func (e *Engine) carryOutPlan(ctx context.Context, c *Call, ts targets, m *Mutation, made []NewDir, p *Plan) (*Done, error) {
	if s := p.single(); s != nil {
		return e.apply(ctx, c, m, ts, s)
	}
	return e.publish(ctx, c, ts, m, made)
}

// foreseen is what would become of a mutation, or that nothing has to.
func (e *Engine) foreseen(ts targets, m *Mutation, made []NewDir) *Done {
	done := &Done{Targets: ts, DryRun: m.DryRun, Idle: m.idle(ts, made)}
	for _, mv := range m.Moves {
		done.Moved = append(done.Moved, *mv)
	}
	if m.DryRun {
		done.Made, done.Dropped = dirNames(made), m.Drop
	}
	if !m.Whole && (m.Checkpoint || e.cfg.CheckpointBeforeMutation) {
		done.Skipped = e.newUnheld(ts)
	}
	return done
}

// about notes for the record what the call is about, also what it finds as it should be.
func (c *Call) about(ts targets, p *Plan) {
	c.Trace.Paths = ts.paths()
	known := map[string]bool{}
	for _, name := range c.Trace.Paths {
		known[name] = true
	}
	c.Trace.Paths = append(c.Trace.Paths, slices.DeleteFunc(p.Paths(), func(name string) bool { return known[name] })...)
}

type targets []*Target

func (ts targets) close() {
	for _, t := range ts {
		if t.place != nil {
			t.place.Close()
		}
	}
}

func (ts targets) paths() []string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = t.True
	}
	return out
}

// changing are those that something has to be done to.
func (ts targets) changing() (out targets) {
	for _, t := range ts {
		if !t.Unchanged() {
			out = append(out, t)
		}
	}
	return out
}

// bytes is what the new contents come to.
func (ts targets) bytes() (n int) {
	for _, t := range ts {
		n += len(t.After.Content)
	}
	return n
}

func (ts targets) unchanged() bool {
	for _, t := range ts {
		if !t.Unchanged() {
			return false
		}
	}
	return true
}

func (e *Engine) load(m *Mutation) (_ targets, err error) {
	var ts targets
	defer func() {
		if err != nil {
			ts.close()
			m.closeMoves()
		}
	}()
	if err := e.loadMoves(m); err != nil {
		return nil, err
	}
	for _, path := range m.Paths {
		t := &Target{Path: path}
		ts = append(ts, t)
		err := e.loadOne(t, m)
		if err != nil && m.Leave != nil && m.Leave(path, err) {
			ts[len(ts)-1:].close()
			ts = ts[:len(ts)-1]
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return ts, nil
}

func (e *Engine) loadOne(t *Target, m *Mutation) error {
	place, err := e.place(m, t.Path)
	var gone *guardfs.MissingParentError
	if errors.As(err, &gone) {
		t.True, t.Before = gone.True, &guardfs.Before{}
		return nil
	}
	if m.nowhere(t.Path, err) {
		t.True, t.Before = t.Path, &guardfs.Before{}
		return nil
	}
	if err != nil {
		return err
	}
	t.place, t.True = place, place.Object().True
	t.Before = &guardfs.Before{}
	t.Before, err = e.reload(t, m)
	return err
}

// maxLoad bounds what a mutation takes into memory: pre-image and result.
const maxLoad = 256 << 20

// plan refuses what the session may not change, then computes the new content.
func (e *Engine) plan(c *Call, ts targets, m *Mutation) error {
	for _, t := range ts {
		known, err := e.know(c, t)
		if err != nil {
			return err
		}
		t.Known = known
	}
	if err := m.Next(ts); err != nil {
		return err
	}
	if m.Settle != nil {
		m.Dirs, m.Drop = m.Settle(ts)
	}
	for _, t := range ts {
		if t.After.Kind == guardfs.KindFile {
			t.After.Hash = HashOf(t.After.Content)
		}
	}
	for _, t := range targets(ts).changing() { // of a restore's many files, those that stay are nobody's business
		if err := e.changeable(t); err != nil {
			return err
		}
	}
	if len(ts) > 0 {
		c.Trace.Before, c.Trace.After, c.Trace.Bytes = ts[0].Before.Hash, ts[0].After.Hash, int64(len(ts[0].After.Content))
	}
	return nil
}

func (e *Engine) changeable(t *Target) error {
	b := t.Before
	if !b.Exists || b.Info.Kind != guardfs.KindFile {
		return nil
	}
	if b.Info.Mode&0o222 == 0 && e.cfg.ReadOnlyFiles != "write" && !t.ours {
		return Refuse(ReadOnly, t.True, b.Info.Mode.String())
	}
	if b.Info.Links > 1 && e.cfg.HardLinks == "refuse" {
		return Refuse(HardLinked, t.True, int(b.Info.Links))
	}
	return nil
}

// still looks again, under the lock: what somebody has changed meanwhile is computed anew.
func (e *Engine) still(c *Call, ts targets, m *Mutation) error {
	moved := false
	for _, t := range ts {
		if t.place == nil {
			continue
		}
		now, err := e.reload(t, m)
		if err != nil {
			return err
		}
		if now.Exists != t.Before.Exists || now.Hash != t.Before.Hash || now.Info.Kind != t.Before.Info.Kind {
			moved = true
		}
		t.Before = now // metadata may have moved too; what is there now is what is kept
	}
	if !moved {
		return nil
	}
	return e.plan(c, ts, m)
}

// rememberChange counts what the session wrote as seen. The change has
// happened: a ledger that can't be written costs a re-read, not the answer.
func (e *Engine) rememberChange(c *Call, ts targets) {
	if e.ledger == nil {
		return
	}
	for _, t := range ts {
		var err error
		switch {
		case t.After.Kind != guardfs.KindFile:
			err = e.ledger.Forget(c.key(), t.True)
		case t.Published != nil:
			o := guardfs.Object{True: t.Published.True, Info: t.Published.Info}
			// An edit of a file of which a part was seen does not show the rest.
			seen := t.Known.Seen
			whole := t.rules.Read == ReadWhole || !t.Before.Exists || seen != nil && seen.Whole && !t.Known.Stale
			sight := &Sight{Hash: t.After.Hash, Unit: "line", Lines: lines(t.After.Content), Whole: whole}
			// Cells and pages are not lines, and lines that moved are not known to be those that were seen: then nothing of it counts.
			if !whole && t.After.Shown != nil {
				*sight = *t.After.Shown
				sight.Hash, sight.Whole = t.After.Hash, false
			} else if !whole && seen != nil && (seen.Unit == "line" || seen.Unit == "") && sight.Lines == seen.Lines {
				sight.Ranges = seen.Ranges
			}
			e.Keep(o.True, t.After.Hash, t.After.Content)
			err = e.remember(c, o, sight)
		}
		if err != nil {
			e.logger.Warn("the read ledger could not be written; the file counts as unread", "err", err)
		}
	}
}
