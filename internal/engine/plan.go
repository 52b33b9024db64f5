package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/edit/guard"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
	encodings "moltisfs/internal/text"
	"moltisfs/readers"
)

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

// A PlanFunc computes a plan from what is there. It changes nothing, and is called again when that changed meanwhile.
type PlanFunc func(ctx context.Context, d *Planner) (*Plan, error)

// A Planner is where a plan is made. Each look goes by handle and through the policy. All looks are
// made again once the paths of the plan are locked.
type Planner struct {
	c     *Call
	files targets
	moves []*Move
	// by a path in each directory that gets something new: the topmost directory that is missing
	tops  map[string]string
	drops []string // directories that go

	ctx  context.Context                                       //nolint:containedctx // of the call that it is for
	held func(path string) (text []byte, held bool, err error) // by the client
	disk bool                                                  // what the disk has too is not held
}

// Load looks at the file at path, or at nothing there, and refuses what must not be changed.
func (d *Planner) Load(path string, r Rules) (*Target, error) {
	t := &Target{Path: path, True: path, Before: &guardfs.Before{}, rules: r}
	n := len(d.files)
	d.files = append(d.files, t)
	d.c.Trace.Paths = append(d.c.Trace.Paths[:n], path)
	open := d.c.fs.Entry
	if r.Link {
		open = d.c.fs.EntryLink
	}
	place, err := open(path)
	if gone, ok := errors.AsType[*guardfs.MissingParentError](err); ok && r.Parents {
		t.True = gone.True
		d.c.Trace.Paths[n] = t.True
		return t, cmp.Or(d.notHeld(t.True), d.c.fresh(t))
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
		if err := d.c.changeable(t); err != nil {
			return nil, err
		}
	}
	if t.Known, err = d.c.know(t); err != nil {
		return nil, err
	}
	return t, cmp.Or(d.c.fresh(t), d.c.keeps(t, "", true))
}

// appendWhole is the most bytes of a file that is read whole to be appended to.
const appendWhole = 1 << 20

// appendAbove is the size above which a file is appended to without being read.
func (e *Engine) appendAbove() int64 { return max(1, min(e.cfg.Checkpoint.MaxFileBytes, appendWhole)) }

// large says that the file was not read.
func (t *Target) large() bool {
	return t.rules.above > 0 && t.Before.Exists && !t.Unsaved() &&
		t.Before.Info.Kind == guardfs.KindFile && t.Before.Info.Size > t.rules.above
}

// hash reads a large file for its hash, if something depends on it: what the caller expects, or
// what the session has to have read. Our own appends are known by size and times.
func (d *Planner) hash(t *Target) (err error) {
	if !t.large() || t.Before.Hash != "" {
		return nil
	}
	want := t.rules.Hash != ""
	if !want && t.rules.Read != ReadNone && d.c.cfg.MustReadBeforeWrite {
		want, err = d.c.seenByHash(t)
	}
	if !want || err != nil {
		return err
	}
	f, err := d.c.openSame(t.True, t.Before.Info.ID)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	now := *t.Before
	now.Hash, err = d.c.sums.of(d.ctx, f, d.c.now)
	t.Before = &now
	return err
}

// openSame opens a file for reading, if it is that one.
func (c *Call) openSame(name string, id guardfs.Identity) (*guardfs.File, error) {
	h, err := c.treeOf(name).Resolve(name, guardfs.Read)
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	if h.Object().Info.ID != id {
		return nil, &guardfs.ConflictError{Path: name, Why: guardfs.Replaced}
	}
	return h.Open()
}

// forget takes back the last Load.
func (d *Planner) forget() {
	n := len(d.files) - 1
	d.files[n:].close()
	d.files = d.files[:n]
}

// plan adds to p what becomes of the files that were loaded, each as its After says, and the
// directories that have to be made for them, and puts all of it in order.
func (d *Planner) plan(p Plan) (*Plan, error) {
	for _, t := range d.files {
		t.many = len(d.files) > keptPatches
		if t.After.Kind == guardfs.KindFile && t.After.Hash == "" &&
			!t.After.Tail && t.After.From == nil {
			t.After.Hash = HashOf(t.After.Content)
		}
		if t.Unchanged() {
			continue
		}
		// Such a plan has many files. Those that stay as they are need no diff.
		if t.rules.Read == ReadNone {
			if err := d.c.changeable(t); err != nil {
				return nil, err
			}
		}
		if err := d.c.keeps(t, p.Op.Kind, false); err != nil {
			return nil, err
		}
		s := t.step()
		if err := d.c.inPlace(t, &s); err != nil {
			return nil, err
		}
		p.Checkpoint = p.Checkpoint || t.InPlace
		p.Steps = append(p.Steps, s)
		if t.place == nil && !t.over {
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

// inPlace makes an overwriting of step s where it puts a file in the place of one that can't be exchanged. It refuses where that may not be
// written either, where the store can't hold both contents, and where more than the content would change.
func (e *Engine) inPlace(t *Target, s *Step) error {
	if s.Action != Put || t.place == nil || t.Unsaved() || kind(s.Before) != checkpoint.File {
		return nil
	}
	fixed, err := t.place.Fixed()
	if fixed == nil || err != nil {
		return err
	}
	fixed.Unkept = fixed.Writable && (t.After.From != nil || !e.storable(t.True, max(t.Before.Info.Size, t.After.size())))
	if !fixed.Writable || fixed.Unkept || t.After.Meta != nil && !rewind.SameMetadata(metaState(*t.After.Meta), metaState(t.Before.Meta)) {
		return fixed
	}
	s.Action, t.InPlace = Overwrite, true
	return nil
}

// above makes the directories that are missing above a path, unless the plan makes them already for
// another path. name is the canonical path that it will have.
func (d *Planner) above(spelled, name string) (steps []Step, err error) {
	key := path.Dir(filepath.ToSlash(spelled)) + "/x"
	if _, known := d.tops[key]; known && spelled == name {
		return nil, nil
	}
	dirs, is, err := d.c.treeForMkdir(spelled).Missing(spelled)
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

// treeForMkdir is the tree for looking at the directories that are to be made above a path.
func (c *Call) treeForMkdir(above string) *guardfs.FS {
	if j, ok := c.judge.(policyJudge); ok {
		j.dirs, j.of = true, above
		return c.fs.With(j)
	}
	return c.fs
}

// rmdir is the step that removes a directory, if nothing is in it by then.
func (d *Planner) rmdir(name string) (Step, error) {
	s := Step{Path: name, Action: Rmdir}
	s.Before.Kind = checkpoint.Dir
	d.drops = append(d.drops, name)
	place, err := d.c.fs.EntryLink(name)
	if err == nil {
		err = d.c.judge.Judge(place.Object(), guardfs.Remove)
		place.Close()
	}
	if _, no := errors.AsType[*policy.Denied](err); no {
		return s, err
	}
	return s, nil // what can't be looked at is met again
}

// move is the step that moves something as a whole: to the trash, back, or to another name. back: it is back already.
func (d *Planner) move(mv *Move) (s Step, back bool, err error) {
	d.moves = append(d.moves, mv)
	if back, err = mv.open(d.ctx, d); err != nil {
		return s, back, err
	}
	return mv.step(), back, nil
}

// makePlan has a plan made of what is there now.
func (d *Planner) makePlan(ctx context.Context, make PlanFunc) (*Plan, error) {
	d.close()
	d.files, d.moves, d.drops, d.c.Trace.Paths = nil, nil, nil, nil
	d.tops = map[string]string{}
	p, err := make(ctx, d)
	if err == nil {
		err = d.checkOverlay(ctx, p)
	}
	if UnsavedText.In(err) && !d.disk && ctx.Err() == nil { // is it?
		d.disk = true
		return d.makePlan(ctx, make)
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
	return p, d.c.checkDescriptors(p)
}

func (d *Planner) close() {
	d.files.close()
	for _, mv := range d.moves {
		mv.close()
	}
}

// changedSincePlan looks again whether what the plan was made of is still there.
func (d *Planner) changedSincePlan(ctx context.Context) (bool, error) {
	for _, mv := range d.moves {
		if other, err := mv.other(ctx, d.c); other || err != nil {
			return other, err
		}
	}
	for _, dir := range d.drops {
		if s, err := d.c.stateOf(dir); err == nil && s.Kind != checkpoint.Dir {
			return true, nil
		}
	}
	for name, top := range d.tops {
		if dirs, _, err := d.c.treeForMkdir(name).Missing(name); err != nil || top == "" || len(dirs) == 0 ||
			dirs[0] != top {
			return true, nil //nolint:nilerr // the maker meets it again, and says so
		}
	}
	for _, t := range d.files {
		if t.place == nil || t.over { // the move that goes before was looked at
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

// stateOf looks at a path as a change would. A missing directory on the way is a missing path, and
// so is a file in its place.
func (c *Call) stateOf(path string) (checkpoint.State, error) {
	place, err := c.fs.EntryLink(path)
	if _, ok := errors.AsType[*guardfs.MissingParentError](err); ok ||
		errors.Is(err, syscall.ENOTDIR) {
		return checkpoint.State{Kind: checkpoint.Absent}, nil
	}
	if err != nil {
		return checkpoint.State{}, err
	}
	defer place.Close()
	if place.Object().True != path || place.Object().Info.Kind == guardfs.KindDir {
		return checkpoint.State{Kind: checkpoint.Dir}, nil // not what any file was
	}
	if i := place.Object().Info; i.Kind == guardfs.KindFile && i.Size > maxLoad ||
		i.Kind == guardfs.KindOther {
		return moveState(i), nil
	}
	b, err := place.Load(maxLoad)
	if err != nil {
		return checkpoint.State{}, err
	}
	return state(b), nil
}

// Action is the kind of change that a step makes at its path.
type Action string

// The actions. A directory is removed if it is empty then; one that is in use stays, and is told.
const (
	Put    Action = "put"    // a file, new or in the place of a file or link
	Link   Action = "link"   // a symbolic link, likewise
	Remove Action = "remove" // a file or link
	Mkdir  Action = "mkdir"
	Rmdir  Action = "rmdir"
	Rename Action = "rename" // whatever it is, with all it holds
	Append Action = "append" // to the end of a file, in place
	SetDir Action = "setdir" // mode, owner and attributes of a directory
	// a file that can't be exchanged, in place, once what it was and what it becomes is in the store
	Overwrite Action = "overwrite"
)

// State describes the object that is at a path, or is to be there. The zero State is nothing.
type State struct {
	checkpoint.State
	ID      guardfs.Identity // which object; zero where that is not known yet
	Changed time.Time        // of what was not read: its change time
}

// state gives what a look found as the store keeps it.
func state(b *guardfs.Before) checkpoint.State {
	if !b.Exists {
		return checkpoint.State{Kind: checkpoint.Absent}
	}
	s := checkpoint.State{
		Kind: checkpoint.File, Mode: b.Meta.Mode, UID: b.Meta.UID, GID: b.Meta.GID,
		ModTime: b.Meta.ModTime, Xattrs: b.Meta.Xattrs, Size: b.Info.Size, Hash: b.Hash,
	}
	if b.Info.Kind == guardfs.KindSymlink {
		s.Kind, s.Target, s.Hash, s.Size = checkpoint.Symlink, string(b.Content), "", 0
	}
	return s
}

// A Step is one path and what becomes of it.
type Step struct {
	Path   string // canonical
	Action Action
	To     string // of Rename; "" is a slot of the trash, which is chosen when all is made ready
	Before State  // what must be there
	After  State  // what will be there; its ID is known once it is made ready
	// Exact: the metadata of After holds. Otherwise it is that of what is there, or what the system
	// gives to something new; of a directory, its mode less the umask.
	Exact bool

	file *Target // of Put, Link and Remove: where it is, and contents
	move *Move   // of Rename
}

// A Plan lists the steps of one call, in this order: removals, the deepest first; directories, the
// topmost first; renames that bring something; files and links; what directories are to be like, the deepest first.
type Plan struct {
	Steps   []Step
	Summary string        // one line for the person who approves
	Op      checkpoint.Op // kind, undo of, restore of
	DryRun  bool          // nothing is changed, and nobody is asked
	Source  string        // canonical path of what is copied; it is on record, and not changed

	Checkpoint bool // whatever the configuration says
	Whole      bool // refuse unless store or trash holds every content

	sure   func()   // drops what plans are made from, once none is made anew; nil: nothing
	doubts []string // paths of which nobody knows whether the program saw what is there: somebody is asked
	locks  []string // the keys of its paths, once they were asked for; then its steps are as they stay
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

// unsaved says that the text of a plan, and that is all of it, goes to the client.
func (p *Plan) unsaved() bool {
	return len(p.Steps) == 1 && p.Steps[0].file != nil && p.Steps[0].file.Unsaved()
}

// Digest gives the digest that an approval is bound to: two plans of one call with the same digest do the same.
// A file that is there counts by its content alone, so that a touch makes nothing stale.
func (p *Plan) Digest(c *Call) string {
	h := sha256.New()
	for _, s := range []string{c.Tool, c.Principal, c.Session} {
		field(h, s)
	}
	for i := range p.Steps {
		h.Write(p.Steps[i].sum())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sum is the digest of one step.
func (s *Step) sum() []byte {
	h := sha256.New()
	a, was := &s.After, ""
	if s.Action == Rename { // it is that very object, with all that is in it
		was = s.Before.ID.Lasting()
		if s.move != nil {
			was += s.move.in.names
		}
	}
	if b := &s.Before; s.Action == Rename && b.Kind == checkpoint.File { // as it was looked at
		was += fmt.Sprint(b.Size, b.ModTime.UnixNano())
	} else if s.Action == Append && b.Hash == "" { // nor into this one, which was not read
		was = fmt.Sprint(b.ID.Lasting(), b.Size, b.ModTime.UnixNano(), b.Changed.UnixNano())
	}
	for _, f := range []string{
		string(s.Action), s.Path, s.To, string(s.Before.Kind), s.Before.Hash, s.Before.Target, was,
		string(a.Kind), a.Hash, a.Tail, a.Target, a.Mode.String(),
		fmt.Sprint(a.UID, a.GID, a.ModTime.UnixNano(), s.Exact),
	} {
		field(h, f)
	}
	if s.file != nil && s.file.Unsaved() {
		field(h, roleBuffer)
	}
	if s.file != nil && s.file.After.From != nil {
		field(h, s.file.After.From.String())
	}
	for _, name := range slices.Sorted(maps.Keys(a.Xattrs)) {
		field(h, name)
		field(h, string(a.Xattrs[name]))
	}
	return h.Sum(nil)
}

// field writes s so that no two lists of fields become one.
func field(w io.Writer, s string) {
	fmt.Fprintf(w, "%d:%s", len(s), s) //nolint:errcheck // a hash takes everything
}

// Paths are the canonical paths of all that is changed, each once: what is meant first, then the
// directories that come and go with it.
func (p *Plan) Paths() []string {
	var meant, dirs []string
	seen := map[string]bool{}
	steps := slices.Clone(p.Steps)
	moves := func(s Step) int { // what moves comes before what it moves over
		if s.move != nil && s.move.To != "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return moves(b) - moves(a) })
	for i := range steps {
		s := &steps[i]
		for _, name := range []string{s.Path, s.To} {
			if name == "" || seen[name] || inTrash(name) {
				continue
			}
			seen[name] = true
			if s.Action == Mkdir || s.Action == Rmdir || s.Action == SetDir {
				dirs = append(dirs, name)
			} else {
				meant = append(meant, name)
			}
		}
	}
	return append(meant, dirs...)
}

// keys are the lock keys of all that is changed. Every path is locked by its name: while somebody
// makes or removes the directory it lies in, others see it there, or see nothing, and their plans
// lock nothing else in common. An object that is there is locked by its place too, for its other spellings. A
// tree that gets another name is locked with all that is below both names.
func (p *Plan) keys() []string {
	if p.locks == nil {
		p.locks = p.pathKeys()
	}
	if p.Op.Tag != "" {
		return append([]string{opKey(p.Op.Tag)}, p.locks...)
	}
	return p.locks
}

func (p *Plan) pathKeys() (out []string) {
	dirs := map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		t, mv := s.file, s.move
		if mv != nil {
			for _, at := range []*guardfs.Entry{mv.from, mv.to} {
				if at != nil && !inTrash(at.Object().True) {
					out = append(out, at.LockKey())
				}
			}
		}
		if t != nil && t.place != nil {
			out = append(out, t.place.LockKey())
		}
		if s.To != "" {
			out = append(out, guardfs.NameKey(s.To))
		}
		out = append(out, guardfs.NameKey(s.Path))
		for _, name := range []string{s.Path, s.To} {
			if name == "" || inTrash(name) {
				continue
			}
			if s.Action == Rename {
				out = append(out, guardfs.TreeKey(name))
			}
			above(name, dirs)
		}
	}
	for dir := range dirs {
		out = append(out, guardfs.Shared(guardfs.TreeKey(dir)))
	}
	return out
}

// above adds the directories above name to dirs.
func above(name string, dirs map[string]bool) {
	for dir := path.Dir(name); len(dir) > 1 && !dirs[dir]; dir = path.Dir(dir) {
		dirs[dir] = true
	}
}

// first is the path that an answer names.
func (p *Plan) first() string {
	if all := p.Paths(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// of are the paths of the steps that do a.
func (p *Plan) of(a Action) (out []string) {
	for i := range p.Steps {
		if p.Steps[i].Action == a {
			out = append(out, p.Steps[i].Path)
		}
	}
	return out
}

// sort puts the steps in the order of a plan. A directory that is made twice is made once.
func (p *Plan) sort() {
	slices.SortStableFunc(p.Steps, func(a, b Step) int {
		switch order := cmp.Compare(a.phase(), b.phase()); {
		case order != 0:
			return order
		case a.Action == Mkdir:
			return strings.Compare(a.Path, b.Path)
		case a.Action == Rmdir && b.Action == Rmdir, a.Action == SetDir:
			return strings.Compare(b.Path, a.Path)
		case a.Action == Rmdir:
			return 1
		case b.Action == Rmdir:
			return -1
		}
		return 0
	})
	p.Steps = slices.CompactFunc(p.Steps, func(a, b Step) bool {
		return a.Action == Mkdir && b.Action == Mkdir && a.Path == b.Path
	})
}

// phase is the part of a plan that a step belongs to.
func (s *Step) phase() int {
	switch s.Action {
	case Remove, Rmdir:
		return 0
	case Rename:
		if s.To == "" || inTrash(s.To) {
			return 0
		}
		return 2
	case Mkdir:
		return 1
	case SetDir:
		return 4
	}
	return 3
}

func kind(s State) checkpoint.Kind {
	if s.Kind == "" {
		return checkpoint.Absent
	}
	return s.Kind
}

// mkdir is the step that makes a directory, with mode less the umask.
func mkdir(path string, mode fs.FileMode) Step {
	return Step{Path: path, Action: Mkdir,
		After: State{State: checkpoint.State{Kind: checkpoint.Dir, Mode: mode}}}
}

// mkdirAs makes a directory that comes back, as far as it is known what it was.
func mkdirAs(path string, was checkpoint.State) Step {
	s := mkdir(path, was.Mode)
	if s.Exact = was.Mode.Perm() != 0; s.Exact {
		s.After.UID, s.After.GID, s.After.Xattrs = was.UID, was.GID, was.Xattrs
	}
	return s
}

// metadata gives the metadata of a restored file. Not its old time: to builds and editors a restore is a
// change like any other.
func metadata(s checkpoint.State) *guardfs.Metadata {
	return &guardfs.Metadata{Mode: s.Mode & (fs.ModePerm | fs.ModeSticky), UID: s.UID, GID: s.GID,
		Xattrs: s.Xattrs}
}

// dirMetadata gives the metadata of a directory that comes back. Its set-id bits come back too: unlike those
// of a file they only say what becomes of files made in it.
func dirMetadata(was checkpoint.State) *guardfs.Metadata {
	return &guardfs.Metadata{Mode: was.Mode, UID: was.UID, GID: was.GID, Xattrs: was.Xattrs}
}

// step gives the step for a target that changes.
func (t *Target) step() Step {
	s := Step{Path: t.True, Before: State{State: state(t.Before), ID: t.Before.Info.ID}, file: t}
	switch t.After.Kind {
	case guardfs.KindFile:
		s.Action, s.After.Kind, s.After.Hash = Put, checkpoint.File, t.After.Hash
	case guardfs.KindSymlink:
		s.Action, s.After.Kind, s.After.Target = Link, checkpoint.Symlink, t.After.Target
	default:
		s.Action = Remove
	}
	if t.After.Tail {
		s.After.Tail, s.After.Size = HashOf(t.After.Content), t.Before.Info.Size+int64(len(t.After.Content))
	}
	if t.After.Tail || t.After.add > 0 {
		s.Action, s.Before.Changed = Append, t.Before.Info.ChangeTime
	} else if m := t.After.Meta; m != nil && s.Action == Put {
		s.Exact, s.After.Mode, s.After.UID, s.After.GID, s.After.ModTime, s.After.Xattrs = true, m.Mode,
			m.UID, m.GID, m.ModTime, m.Xattrs
	}
	return s
}

func (mv *Move) step() Step {
	s := Step{Path: mv.Path, Action: Rename, Before: State{State: moveState(mv.info), ID: mv.info.ID},
		move: mv}
	if s.To = mv.To; mv.Back {
		s.Path, s.To = mv.Entry.Parked, mv.Path
	}
	return s
}

// metaState is metadata as the store keeps it.
func metaState(m guardfs.Metadata) checkpoint.State {
	return checkpoint.State{Mode: m.Mode, UID: m.UID, GID: m.GID, Xattrs: m.Xattrs}
}

// A Target is one path of a mutation on its way through the chain.
type Target struct {
	Path   string // as the caller spelled it
	True   string
	Before *guardfs.Before
	Known  Knowledge
	After  After

	// Published describes the object that was published; nil for a target that needed nothing.
	Published *guardfs.Published

	InPlace bool // it can't be exchanged, and is written in place

	over       bool    // what is there goes before, by the same plan: Before is nothing
	run        bool    // a program has made it, so that the session has not seen what it becomes
	unrecorded bool    // it is no part of the checkpoint
	ours       bool    // that it is read-only is the session's own doing
	unheld     bool    // nobody may have it open for writing when it goes
	many       bool    // its plan has more than keptPatches: its patch is made each time
	counts     *[2]int // the lines that are added and removed, where they were counted already
	// gives the content before, by its hash, where the store has it and it is not held in memory
	stored func(hash string) ([]byte, error)
	// what the disk has, where a client holds the text and Before is that; else nil
	disk  *guardfs.Before
	twin  string           // the hash of the client's text, or of the disk's, where that is the same as Before
	place *guardfs.Entry   // nil while the parent is still to be made
	above *guardfs.Entry   // that of the topmost parent that is still to be made
	fresh guardfs.Metadata // of a new file in such a parent: what it will get
	rules Rules
}

// After is the state that a target gets.
type After struct {
	Kind    guardfs.Kind // KindFile, KindAbsent (removed) or KindSymlink
	Content []byte       // of a file
	Hash    string       // of Content; filled by the chain, but for a tail
	// Tail: Content goes to the end of what is there, which is too large to be read.
	Tail bool
	add  int    // the last bytes of Content: they go to the end of what is there, in place
	cut  []byte // with From: what of the file itself goes
	From *From  // has the content of a file that is not held in memory; Hash is known when it is staged
	// gives Content, of length bytes, by Hash, where the store has it and it is not held in memory
	stored func(hash string) ([]byte, error)
	length int64
	Target string // of a symlink
	// how Before became Content, where an edit knows it already; nil: compared when wanted
	Hunks []diff.Hunk
	// for the rules: the whole text, and the text that it replaces; or what edits made
	was, text []byte
	edits     *edit.Result
	// KeptCRLF: the text was sent with bare LF, and Content has the CRLF of the file.
	KeptCRLF bool
	encoding string            // in which text was written, as session.Seen has it
	Meta     *guardfs.Metadata // exact metadata; nil carries over what is there
	touch    bool              // the time in Meta alone is a change
	// Shown describes the part of Content that the session knows. nil: the lines that it knew,
	// if none moved. Its Hash and Whole do not count.
	Shown *ReadRecord
}

// Unsaved says that a client holds the text of the target: Before is that text, and the disk is not
// changed.
func (t *Target) Unsaved() bool { return t.disk != nil }

// unsaved says that a client holds another text than the disk.
func (t *Target) unsaved() bool {
	return t.Unsaved() && !saved(t.Before.Content, t.disk.Content)
}

// none says that nothing is there, on the disk or in a client that makes the file.
func (t *Target) none() bool {
	return !t.Before.Exists || t.Unsaved() && !t.disk.Exists && len(t.Before.Content) == 0
}

// Unchanged says that After is what is there already, so that nothing has to be written.
func (t *Target) Unchanged() bool {
	if t.After.Tail {
		return len(t.After.Content) == 0
	}
	if t.After.From != nil { // nobody has read it
		return false
	}
	switch t.After.Kind {
	case guardfs.KindAbsent:
		return !t.Before.Exists
	case guardfs.KindFile:
		return t.Before.Exists && t.Before.Info.Kind == guardfs.KindFile &&
			t.Before.Hash == t.After.Hash &&
			(!t.After.touch || t.After.Meta.ModTime.Equal(t.Before.Meta.ModTime)) &&
			(t.After.Meta == nil || rewind.SameMetadata(metaState(*t.After.Meta), metaState(t.Before.Meta)))
	case guardfs.KindSymlink:
		return t.Before.Exists && t.Before.Info.Kind == guardfs.KindSymlink &&
			string(t.Before.Content) == t.After.Target
	}
	return false
}

// encoding is the one to read and write the target in: asked, or the one in which the session knows it, unless the file has become UTF-8 since. A
// client's text has no other than UTF-8.
func (t *Target) encoding(asked string) string {
	switch k := t.Known; {
	case t.Unsaved():
		return "utf-8"
	case asked == "" && k.encoding != "" && (k.encoded == t.Before.Hash || encodings.Detect(t.Before.Content).Guessed):
		return k.encoding
	}
	return asked
}

// leaveAsIs leaves the target as it is.
func (t *Target) leaveAsIs() {
	b := t.Before
	if !b.Exists {
		t.After = After{Kind: guardfs.KindAbsent}
		return
	}
	if t.large() {
		t.After = After{Kind: guardfs.KindFile, Tail: true} // of nothing
		return
	}
	t.After = After{Kind: b.Info.Kind, Content: b.Content, Hash: b.Hash}
	if b.Info.Kind == guardfs.KindSymlink {
		t.After.Content, t.After.Target = nil, string(b.Content)
	}
}

// Done is the result of a change.
type Done struct {
	Targets    []*Target
	Checkpoint string // id; "" when none was taken
	// Skipped says why a checkpoint that was asked for does not hold everything; "" when it does.
	Skipped  string
	Made     []string // directories that were made; with DryRun: would be
	Dropped  []string // directories that were removed; with DryRun: would be
	Moved    []Move   // with DryRun: what would be moved
	Trashed  []checkpoint.Trashed
	Kept     []Blocked // directories that were to go and stay
	Approval string    // "approved" when somebody was asked
	DryRun   bool
	Idle     bool // everything was, or with DryRun is, already as it should be
}

// about notes for the record what the call is about, also what it finds as it should be.
func (c *Call) about(ts targets, p *Plan) {
	c.Trace.Paths = ts.paths()
	known := map[string]bool{}
	for _, name := range c.Trace.Paths {
		known[name] = true
	}
	c.Trace.Paths = append(c.Trace.Paths,
		slices.DeleteFunc(p.Paths(), func(name string) bool { return known[name] })...)
	if p.Source != "" {
		c.Trace.Paths = append(c.Trace.Paths, p.Source)
	}
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

// changing gives the targets that change.
func (ts targets) changing() (out targets) {
	for _, t := range ts {
		if !t.Unchanged() {
			out = append(out, t)
		}
	}
	return out
}

// maxLoad bounds what a plan takes into memory: pre-image and result.
const maxLoad = 256 << 20

// changeable refuses a file that is protected from change.
func (e *Engine) changeable(t *Target) error {
	b := t.Before
	if !b.Exists || b.Info.Kind != guardfs.KindFile {
		return nil
	}
	if b.Info.Mode&0o222 == 0 && !t.ours {
		return Refuse(ReadOnly, t.True, b.Info.Mode.String())
	}
	return nil
}

// Knowledge is the knowledge that the session has of a file that it is about to change.
type Knowledge struct {
	Tracked bool          // reads are tracked; the rest is meaningless without
	Seen    *session.Seen // nil: never read
	Stale   bool          // read, but the content is another one now

	encoding, encoded string // in which the session knows it, as session.Seen has it, and the hash of the content that was in it
}

// know looks the file up. It judges nothing: fresh and the tools do.
func (c *Call) know(t *Target) (Knowledge, error) {
	b := t.Before
	k := Knowledge{Tracked: c.ledger != nil}
	if t.none() {
		return k, nil
	}
	log, err := c.encodingsOf(false)
	if log != nil && err == nil {
		var in session.Seen
		in, _, err = log.Look(c.key(), b.Info.ID.String(), t.True)
		k.encoding, k.encoded = in.Encoding, in.Hash
	}
	if err != nil {
		return k, &hostError{"looking up what was read", err}
	}
	s, ok, err := c.seen(t)
	if err != nil || !ok {
		return k, err
	}
	same := s.Hash == b.Hash || s.Hash == t.twin
	if s.Hash == "" {
		same = s.Stamp == stamp(b.Info, "")
	}
	k.Seen, k.Stale = &s, !same
	return k, nil
}

// seen looks up what the session has read of a file that is there.
func (c *Call) seen(t *Target) (s session.Seen, ok bool, err error) {
	if c.ledger == nil {
		return s, false, nil
	}
	if s, ok, err = c.ledger.Look(c.key(), t.Before.Info.ID.String(), t.True); err != nil {
		if !CutOff(err) {
			err = &hostError{"looking up what was read", err}
		}
	}
	return s, ok, err
}

// seenByHash says that only its hash tells whether a file is what the session has read.
func (c *Call) seenByHash(t *Target) (bool, error) {
	s, ok, err := c.seen(t)
	return ok && s.Hash != "", err
}

// fresh refuses what the session must not change blindly (docs/internals/rulings.md, must
// read). A missing file is always fresh: there was nothing to read.
func (e *Engine) fresh(t *Target) error {
	r := &t.rules
	if want := r.Hash; want != "" && want != t.Before.Hash {
		return Refuse(Unexpected, t.True, HashFacts{Was: want, Hash: t.Before.Hash})
	}
	k := t.Known
	if !k.Tracked || t.none() || r.Read == ReadNone {
		return nil
	}
	switch {
	case k.Seen == nil && e.cfg.MustReadBeforeWrite:
		return Refuse(Unread, t.True, nil)
	case k.Seen == nil:
		return nil
	case k.Stale && r.Read == ReadStale && !e.cfg.MustReadBeforeWrite:
		return nil // an edit that others' changes do not touch says so itself
	case k.Stale:
		return e.Modified(t)
	case r.Read == ReadWhole && !k.Seen.Whole && e.cfg.MustReadBeforeWrite && !r.Meant:
		return Refuse(PartUnread, t.True, k.Seen)
	}
	return nil
}

// keptPatches is how many targets a plan may have that keep their patches once they are made, and a restore whose contents it holds: those
// of many take more memory than all else, and few of them are shown.
const keptPatches = 100

// Counts gives how many lines the change of a target adds and removes.
func Counts(t *Target) (added, removed int) {
	if t.counts != nil {
		return t.counts[0], t.counts[1]
	}
	return diff.Counts(Hunks(t))
}

// Hunks is the change of a target as a patch, of its text in UTF-8.
func Hunks(t *Target) []diff.Hunk {
	if t.After.Hunks != nil || t.After.From != nil || t.Before.Hash != "" && t.Before.Hash == t.After.Hash {
		return t.After.Hunks
	}
	was, werr := t.content()
	now, err := t.After.content()
	if err = cmp.Or(err, werr); err != nil { // nor is it staged then
		t.After.stored = func(string) ([]byte, error) { return nil, err }
	}
	hunks := diff.Patch(text(was), text(now))
	if !t.many {
		t.After.Hunks = hunks
	}
	return hunks
}

// ends says whether a target is there before and after its change.
func ends(t *Target) diff.Ends {
	return diff.EndsOf(t.Before.Exists, t.After.Kind != guardfs.KindAbsent)
}

// modified compares the target with what the session read of it: both hashes, and the diff as far as
// the old content is still known.
func (e *Engine) modified(t *Target) HashFacts {
	f := HashFacts{Was: t.Known.Seen.Hash, Hash: t.Before.Hash}
	if old, ok := e.earlier(f.Was); ok {
		f.Diff = diff.Unified(t.True, diff.EndsOf(true, t.Before.Exists),
			diff.Patch(text(old), text(t.Before.Content)))
	}
	return f
}

// lastSeen is the content of the target that the session saw last, nil when
// it is not known any more.
func (e *Engine) lastSeen(t *Target) []byte {
	if e.ledger == nil || t.Known.Seen == nil || !t.Known.Stale {
		return nil
	}
	old, _ := e.earlier(t.Known.Seen.Hash)
	return old
}

// Modified is the refusal of a Next that found that a stale file can't be changed safely.
func (e *Engine) Modified(t *Target) error { return Refuse(Modified, t.True, e.modified(t)) }

// Meanwhile is a diff of what changed since the session read the target, for a Next that can go on.
func (e *Engine) Meanwhile(t *Target) string { return e.modified(t).Diff }

// A From is where the content of a file comes from that is not held in memory: the first bytes of
// another file, which has to stay as it was when it was looked at.
type From struct {
	path string // canonical
	info guardfs.Info
	size int64
}

// String tells two of them apart, for the digest of a plan.
func (f *From) String() string {
	return fmt.Sprint(f.path, " ", f.info.ID.Lasting(), f.info.Size, f.info.ModTime.UnixNano(),
		f.info.ChangeTime.UnixNano(), f.size)
}

// size is how long the content is.
func (a *After) size() int64 {
	if a.From != nil {
		return a.From.size
	}
	if a.stored != nil {
		return a.length
	}
	return int64(len(a.Content))
}

// content gives the content before, wherever it is.
func (t *Target) content() ([]byte, error) {
	if t.stored != nil {
		return t.stored(t.Before.Hash)
	}
	return t.Before.Content, nil
}

// content gives Content, wherever it is but in From.
func (a *After) content() ([]byte, error) {
	if a.stored != nil {
		return a.stored(a.Hash)
	}
	return a.Content, nil
}

// look reads what is there, or what of it changed since. The text that a client holds comes in the place of a file; disk
// is the file then.
func (d *Planner) look(t *Target) (now, disk *guardfs.Before, err error) {
	was := t.Before
	if t.Unsaved() {
		was = t.disk
	}
	var b *guardfs.Before
	if t.rules.above > 0 {
		b, err = t.place.Peek(was, t.rules.above)
	} else {
		b, err = t.place.Reload(was, maxLoad)
	}
	if err != nil {
		return nil, nil, err
	}
	return d.overlay(t, b)
}

const (
	// Up to fewDescriptors nobody looks: to list what is open would cost an ordinary edit too much.
	fewDescriptors = 8
	// spareDescriptors stay free for the store, for what many writes open for a moment, and for
	// whatever else is going on.
	spareDescriptors = 64
)

// spareFor is how many descriptors are to stay free beside so many of our own.
func spareFor(files int) int { return min(16+files, spareDescriptors) }

// checkPlaces refuses paths so many that to open their directories alone takes all descriptors.
func checkPlaces(paths []string) error {
	if len(paths) <= fewDescriptors {
		return nil
	}
	n := guardfs.EntriesOpen(slashed(paths))
	if n <= fewDescriptors {
		return nil
	}
	if free := guardfs.Room(); n+spareFor(n) > free {
		return tooManyPaths(free)
	}
	return nil
}

// tooManyPaths is the refusal where this many more files may be opened.
func tooManyPaths(free int) error {
	if most := free - spareDescriptors - fewDescriptors; guardfs.SharedDirs && most > fewDescriptors {
		return Refuse(TooManyPaths, "", CountFacts{most, true})
	}
	const each = 3 // its directory, its lock, its new content
	most := fewDescriptors / each
	for n := most + 1; n*each+spareFor(n*(each-1)) <= free; n++ {
		most = n
	}
	return Refuse(TooManyPaths, "", CountFacts{Most: most})
}

// checkDescriptors refuses a plan that would run out of descriptors half-way. Then not even the
// steps that were made could be taken back. It opens new contents; and places with their locks, also those of
// directories to be made.
func (e *Engine) checkDescriptors(p *Plan) error {
	var known, tops []string // what is there, and the topmost of what has to be made
	made, files := map[string]bool{}, 0
	for i := range p.Steps {
		s := &p.Steps[i]
		switch t := s.file; {
		case s.Action == Mkdir:
			if made[s.Path] = true; !made[path.Dir(s.Path)] {
				tops = append(tops, s.Path)
			}
		case t != nil:
			if known = append(known, t.True); t.place == nil {
				tops = append(tops, t.True)
			}
			if t.After.Kind == guardfs.KindFile {
				files++
			}
		}
	}
	places := e.locks.Open(p.keys()) + guardfs.EntriesOpen(slashed(tops))
	if !guardfs.SharedDirs { // then each temporary name has its directory open, and its content is closed
		places, files = places+files, 0
	}
	if files+places <= fewDescriptors || places+spareFor(files+places) <= guardfs.Room() {
		return nil
	}
	return tooManyPaths(guardfs.Room() + guardfs.EntriesOpen(slashed(known)))
}

func slashed(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = path.Clean(filepath.ToSlash(name))
	}
	return out
}

// A rule says what a change of one file may not be: too large, of the wrong kind, an accident. Which paths
// may be changed, and by whom, is for policy.
//
// To add a rule, add a row to changeRules, its cause to refusal.go and a row of words to internal/refusal. The rule
// holds in every dialect, because every plan is made at a Planner: Planner.Load asks the early rules, Planner.plan
// the others. The rules hold for new content: of Write, edits, Append, Create and Copy. They do not hold for
// what programs have left, nor for restores and moves, which bring back or keep a content that was there before: a limit that is set later
// must not get in the way of an undo.
type rule struct {
	cause Cause
	early bool // asked before the new content is made, so that it is told before an edit that does not match
	meant bool // not asked if the caller says that the change is meant (Rules.Meant)
	// broken gives the facts of the refusal, or nil if the change keeps the rule.
	broken func(c newContent) any
}

// MaxResult bounds a file after edits, in bytes.
const MaxResult = 64 << 20

// newContent is the change of a file as the rules see it: a target, and the kind of operation.
type newContent struct {
	*Target
	cfg  *config.FS
	kind string // of the checkpoint, such as checkpoint.KindEdit; "" for the early rules
}

// changeRules are asked in this order; the first that is broken refuses the change.
var changeRules = []rule{
	{cause: NotAsShown, early: true, broken: editsDerived},
	{cause: WriteTooLarge, broken: overLimit},
	{cause: ResultTooLarge, broken: overMemory},
	{cause: OverBinary, meant: true, broken: textOverBinary},
	{cause: Accident, meant: true, broken: accident},
	{cause: DropsUnseen, meant: true, broken: dropsUnseen},
}

// keeps refuses the change of t by an operation of kind if it breaks a rule. early: t has no new content yet.
func (e *Engine) keeps(t *Target, kind string, early bool) error {
	if kind == checkpoint.KindRestore || kind == checkpoint.KindMove || kind == checkpoint.KindRun {
		return nil
	}
	for _, r := range changeRules {
		if r.early != early || r.meant && t.rules.Meant {
			continue
		}
		if facts := r.broken(newContent{t, &e.cfg, kind}); facts != nil {
			return Refuse(r.cause, t.True, facts)
		}
	}
	return nil
}

// editsDerived: an edit of a file of which Read shows only what is derived from its bytes. The fact is the
// kind of file.
func editsDerived(c newContent) any {
	if !c.rules.edits {
		return nil
	}
	if shown := readers.ShownAs(c.Before.Content, c.encoding(c.rules.encoding)); shown != "" {
		return shown
	}
	return nil
}

// overLimit: the file would be larger than max_write_bytes.
func overLimit(c newContent) any {
	size := c.After.size()
	if c.After.Tail {
		size += c.Before.Info.Size
	}
	if most := c.cfg.MaxWriteBytes; most > 0 && c.After.Kind == guardfs.KindFile && size > most {
		return SizeFacts{size, most}
	}
	return nil
}

// overMemory: the content is larger than one that is made in memory may be.
func overMemory(c newContent) any {
	most := maxLoad
	if c.kind == checkpoint.KindEdit || c.kind == checkpoint.KindMultiEdit {
		most = MaxResult
	}
	if len(c.After.Content) > most {
		return &edit.TooLargeError{Size: int64(len(c.After.Content)), Max: int64(most)}
	}
	return nil
}

// textOverBinary: a text would replace a document, an archive, a picture, a database, a program, other binary
// data or a notebook. A notebook may replace a notebook. The fact is the kind of file.
func textOverBinary(c newContent) any {
	if !c.rules.text {
		return nil
	}
	is := readers.NoText(c.Before.Content, c.rules.encoding)
	if is == "" || readers.ShownDecoded(c.After.Content, "") == is {
		return nil
	}
	return is
}

// accident: the file would be emptied, or a placeholder stands for code that would be deleted.
func accident(c newContent) any {
	a := &c.After
	var f *guard.Finding
	switch {
	case a.edits != nil:
		f = a.edits.Guard(c.True)
	case a.text != nil && c.Before.Exists:
		f = cmp.Or(guard.Placeholder(c.True, a.was, a.text), guard.Empties(a.was, a.text))
	}
	if f == nil {
		return nil
	}
	return GuardFacts{*f, a.edits != nil}
}

// dropsUnseen: a whole text has less than half of the lines of a file of which the session has seen only a
// part. The fact is that part.
func dropsUnseen(c newContent) any {
	a, seen := &c.After, c.Known.Seen
	lines := func(text []byte) int { return bytes.Count(text, []byte("\n")) }
	if a.text != nil && c.Known.Tracked && seen != nil && !seen.Whole && lines(a.text)*2 < lines(a.was) {
		return seen
	}
	return nil
}
