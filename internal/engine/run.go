package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/run"
)

// RunArgs say what the programs of a run have left, and how it came about.
type RunArgs struct {
	Upper   run.Upper // no program is running any more
	Command string    // as it was typed
	Exit    int
	Output  string // SHA-256 of what it printed, in hex; "" where nobody knows it

	Partial     bool // what can't be changed stays as it is; otherwise nothing is changed then
	KeepIgnored bool // what git ignores is stored, too
	DryRun      bool
	Live        bool // the run goes on: nothing is taken out of the upper layer
}

// Ran is the answer of ApplyRun: the change that was made, by name.
type Ran struct {
	*Done
	Changes []RunChange
	Left    []Blocked // what stays as it is, with Partial or DryRun
	Ignored RunCount  // of Changes, what git ignores and the checkpoint does not have: no undo brings it back
	Apart   []string  // names of one file that became files of their own: the workspace is on another mount than the data directory
}

// RunCount counts files.
type RunCount struct {
	Files int
	Bytes int64
}

// RunChange is one name that a run has changed.
type RunChange struct {
	Path          string
	Before, After guardfs.Kind
	Added         int // lines
	Removed       int
	Files         int  // of a directory that comes or goes as a whole: what is in it
	Ignored       bool // by git
}

// ApplyRun makes of the workspace what the programs of a run saw, as one change. Each name is judged under policy like any other call's. What
// others changed since the run began is a conflict; where nobody can tell, somebody is asked. It has a checkpoint whatever the config says.
//
// Files and links of one name are written anew, with mode, owner, attributes and time; before and after are in the store. What goes as a directory,
// and what has more names, is too large for the store or gives way to a directory, goes to the trash as a whole. A name of a file that has more comes
// from the upper layer by one rename, and so does a new directory that git ignores. An error leaves the upper layer as it was.
func (c *Call) ApplyRun(ctx context.Context, a RunArgs) (*Ran, error) {
	c.Trace.Asked.Pattern = a.Command
	c.Trace.Asked.Window = fmt.Sprintf("exit %d", a.Exit)
	if a.Output != "" {
		c.Trace.Asked.Window += ", output sha256 " + a.Output
	}
	r := &running{}
	defer func() { r.close() }()
	done, err := c.Change(ctx, func(ctx context.Context, d *Planner) (*Plan, error) {
		r.close()
		r = &running{c: c, d: d, a: a, root: c.fs.Canonical(a.Upper.Root)}
		return r.plan(ctx)
	})
	if err != nil {
		return nil, err
	}
	r.out.Done = done
	r.tell()
	return &r.out, nil
}

// running is one run on its way into a plan.
type running struct {
	c       *Call
	d       *Planner
	a       RunArgs
	root    string
	layered bool // it is on an overlay itself, which renames no directory of its lower layer
	derived *run.Derived
	lower   *lower
	p       Plan
	out     Ran
	rules   map[string]rulesOf     // by directory, relative to the root
	ruled   map[string]*run.Change // those of files with rules
	held    int64                  // bytes of contents in memory
	refused []string               // directories that do not come, so that nothing in them can
	freed   []string               // directories that come where something else has to go
}

// rulesOf are the ignore rules of a directory, or that git ignores it.
type rulesOf struct {
	set     *ignore.Set
	ignored bool
}

func (r *running) close() {
	if r.derived != nil {
		r.derived.Close()
	}
}

// name is the canonical name of a path of the run.
func (r *running) name(p string) string { return path.Join(r.root, p) }

// plan makes the plan of what the upper layer has now.
func (r *running) plan(ctx context.Context) (_ *Plan, err error) {
	r.d.disk = true // programs read and write the disk
	r.lower, r.rules = &lower{r.c.tree.With(policy.AllowAll{}), r.root}, map[string]rulesOf{}
	if r.derived, err = run.Derive(r.a.Upper, r.lower); err != nil {
		return nil, err
	}
	top, err := r.lower.fs.EntryLink(r.root)
	if err == nil {
		r.layered, err = top.Layered()
		top.Close() //nolint:errcheck // nothing was written through it
	}
	if err != nil {
		return nil, err
	}
	r.p = Plan{Summary: "apply what was changed by " + shortened(r.a.Command, 200), Checkpoint: true, DryRun: r.a.DryRun, Op: checkpoint.Op{Kind: checkpoint.KindRun}}
	all := r.derived.Changes
	var names []string
	r.ruled = map[string]*run.Change{}
	for i := range all {
		if base := path.Base(all[i].Path); base == ".gitignore" || base == ".ignore" {
			r.ruled[all[i].Path] = &all[i]
		}
		if c := &all[i]; c.Why == "" && c.Before.Exists && !c.After.IsDir() { // what is new is counted with the plan
			names = append(names, r.name(c.Path))
		}
	}
	if err := checkPlaces(names); err != nil {
		return nil, err
	}
	for i := 0; i < len(all); i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := i + 1
		if c := &all[i]; c.After.IsDir() && !c.Before.IsDir() {
			for end < len(all) && below(all[end].Path, c.Path) {
				end++
			}
		}
		back := r.mark()
		whole, err := r.change(ctx, &all[i], all[i+1:end])
		if err != nil {
			if fatal(err) {
				return nil, err
			}
			back()
			r.leave(&all[i], err)
		}
		if whole {
			i = end - 1
		}
	}
	if len(r.out.Left) > 0 && !r.a.Partial && !r.a.DryRun {
		cause := RunLeaves
		if slices.ContainsFunc(r.out.Left, func(b Blocked) bool { return b.Why.Name == ChangedOutside.Name }) {
			cause = RunStale
		}
		return nil, Refuse(cause, r.out.Left[0].Path, r.out.Left)
	}
	r.p.Op.Label = r.label()
	return r.d.plan(r.p)
}

// mark gives a function that takes back what is planned from here on.
func (r *running) mark() (back func()) {
	steps, doubts, moves, files, out := len(r.p.Steps), len(r.p.doubts), len(r.d.moves), len(r.d.files), r.out
	return func() {
		r.p.Steps, r.p.doubts, r.out = r.p.Steps[:steps], r.p.doubts[:doubts], out
		for _, mv := range r.d.moves[moves:] {
			mv.close()
		}
		r.d.moves = r.d.moves[:moves]
		for len(r.d.files) > files {
			r.d.forget()
		}
	}
}

// label is the text under which the log has the run.
func (r *running) label() string {
	label := shortened(strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, r.a.Command), 1000) + fmt.Sprintf(" (exit %d", r.a.Exit)
	if r.a.Output != "" {
		label += ", output " + r.a.Output[:min(12, len(r.a.Output))]
	}
	if n := r.out.Ignored.Files; n > 0 {
		label += fmt.Sprintf(", %d ignored files not stored", n)
	}
	return label + ")"
}

// fatal says that an error is not of one path.
func fatal(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, guardfs.ErrUnavailable) || Reason(err) == nil
}

// leave notes that a change is not made.
func (r *running) leave(c *run.Change, err error) {
	b := Blocked{Path: r.name(c.Path), Err: err}
	if no, ok := errors.AsType[*blockedError](err); ok {
		b.Why, b.Err = no.why, nil
	} else if denied, ok := errors.AsType[*policy.Denied](err); ok && denied.Class != "" {
		b.Why = ClosedClass.Of(denied.Class)
	} else if ok {
		b.Why = OutOfReach
	} else {
		b.Why = NotDone.Of(said(err))
	}
	if c.After.IsDir() && !c.Before.IsDir() {
		r.refused = append(r.refused, c.Path)
	}
	r.out.Left = append(r.out.Left, b)
}

// blockedError is a Why as the error of one path.
type blockedError struct{ why Why }

func (e *blockedError) Error() string { return e.why.Name }

// reasons are the Whys of a derivation.
var reasons = map[run.Why]Why{run.WhySetID: SetID, run.WhySpecial: SpecialFile, run.WhyName: NoSuchName, run.WhyLong: NoSuchName, run.WhyUnknown: UnknownMark,
	run.WhyMount: OnOtherVolume}

// change plans one change, with those in it of a new directory. whole: they come with it.
func (r *running) change(ctx context.Context, c *run.Change, in []run.Change) (whole bool, err error) {
	name := r.name(c.Path)
	if n := len(r.refused); n > 0 && below(c.Path, r.refused[n-1]) {
		return false, nil // it was named already
	}
	switch {
	case c.Why == run.WhyHidden:
		return false, cmp.Or(r.c.judge.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create), error(&blockedError{OutOfReach}))
	case c.Why != "":
		return false, &blockedError{reasons[c.Why]}
	case r.a.Upper.User && c.After.IsDir() && c.After.Mode&0o500 != 0o500: // what is in it could be neither checked nor taken back
		return false, &blockedError{ShutDir.Of(fmt.Sprintf("%04o", c.After.Mode.Perm()))}
	case r.a.Live && c.Lower != "":
		return false, &blockedError{RenamedLive}
	case c.Doubt == run.Changed:
		return false, &blockedError{ChangedOutside}
	case guardfs.ReservedPath(name):
		return false, &blockedError{OutOfReach}
	}
	defer func() {
		if err == nil && c.Doubt == run.Perhaps {
			r.p.doubts = append(r.p.doubts, name)
		}
	}()
	switch {
	case !c.After.Exists && (c.Before.IsDir() || !r.ordinary(name, &c.Before)):
		return false, r.away(ctx, c, name)
	case c.After.IsDir() && c.Before.IsDir():
		return false, r.setDir(c, name)
	case c.After.IsDir():
		return r.directory(ctx, c, in, name)
	}
	return false, r.file(ctx, c, name)
}

// ordinary says that what is there has one name and may be kept in the store.
func (r *running) ordinary(name string, s *run.State) bool {
	return !s.Exists || s.Links <= 1 && (s.Is(fs.ModeSymlink) || s.IsFile() && r.c.storable(name, s.Size) && r.held+s.Size <= maxLoad)
}

// away plans that what is at name goes to the trash as a whole; a directory that can't be renamed, one by one.
func (r *running) away(ctx context.Context, c *run.Change, name string) error {
	switch {
	case !c.Before.IsDir() && !c.Before.IsFile() && !c.Before.Is(fs.ModeSymlink):
		return &blockedError{SpecialFile}
	case r.layered && c.Before.IsDir() && c.After.Exists:
		return &blockedError{LayeredDir}
	case r.layered && c.Before.IsDir():
		p, err := r.d.deleteApart(ctx, name, DeleteOptions{Recursive: true})
		if err == nil {
			r.p.Steps = append(r.p.Steps, p.Steps...)
			r.note(c, RunChange{})
		}
		return err
	}
	place, err := r.c.openAt(name)
	if err != nil {
		return err
	}
	err = cmp.Or(r.c.judge.Judge(place.Object(), guardfs.Remove), r.c.removesRoot(name))
	place.Close() //nolint:errcheck // nothing was written through it
	in := contents{files: 1, size: c.Before.Size}
	if err == nil && c.Before.IsDir() {
		in, err = r.c.walkForDelete(ctx, name, true, nil)
	}
	if err != nil {
		return err
	}
	s, _, err := r.d.move(&Move{Path: name, Entry: checkpoint.Trashed{Agent: !r.c.ByUser, Size: in.size, Files: in.files}, in: in})
	if err != nil {
		return err
	}
	r.p.Steps = append(r.p.Steps, s)
	if !c.After.Exists {
		r.note(c, RunChange{Files: in.files})
	}
	return nil
}

// setDir plans that the directory at name gets another mode, owner or attributes.
func (r *running) setDir(c *run.Change, name string) error {
	place, err := r.c.openAt(name)
	if err != nil {
		return err
	}
	defer place.Close() //nolint:errcheck // nothing was written through it
	s := Step{Path: name, Action: SetDir, Exact: true, Before: State{State: stateOfRun(&c.Before), ID: place.Object().Info.ID}, After: State{State: stateOfRun(&c.After)}}
	if err = r.c.judge.Judge(place.Object(), guardfs.Modify); err == nil {
		r.p.Steps = append(r.p.Steps, s)
		r.note(c, RunChange{})
	}
	return err
}

// stateOfRun is a state of a run as the store keeps it.
func stateOfRun(s *run.State) checkpoint.State {
	out := checkpoint.State{Kind: checkpoint.File, Mode: s.Mode &^ fs.ModeType, UID: s.UID, GID: s.GID, Xattrs: s.Xattrs, ModTime: s.ModTime, Size: s.Size}
	switch {
	case s.IsDir():
		out.Kind, out.Size, out.ModTime = checkpoint.Dir, 0, time.Time{}
	case s.Is(fs.ModeSymlink):
		out.Kind, out.Target, out.Size = checkpoint.Symlink, s.Target, 0
	}
	return out
}

// directory plans a new directory with all in it, which may come as a whole.
func (r *running) directory(ctx context.Context, c *run.Change, in []run.Change, name string) (whole bool, err error) {
	ignored := !r.a.KeepIgnored && r.ignored(c.Path, true)
	linked := map[uint64]int{}
	clean, shut := c.Lower == "", false // shut: a user can't empty a directory in it, so that no undo could step by step
	for i := range in {
		if s := &in[i].After; s.Links > 1 && !s.IsDir() {
			linked[s.Ino]++
		}
	}
	var count RunCount
	for i := range in {
		s := &in[i].After
		together := s.Links <= 1 || linked[s.Ino] == int(s.Links)
		if s.IsDir() { // which is looked into under its new name
			together = !r.a.Upper.User || s.Mode&0o500 == 0o500
			shut = shut || r.a.Upper.User && s.Mode&0o200 == 0
		}
		clean = clean && in[i].Why == "" && in[i].Lower == "" && together
		if !s.IsDir() {
			count.Files, count.Bytes = count.Files+1, count.Bytes+s.Size
		}
	}
	if clean && (ignored || len(linked) > 0 || shut || len(in) > maxCopied) {
		back := r.mark()
		if err := r.bring(ctx, c, in, name, count, !ignored); err == nil {
			if r.note(c, RunChange{Files: count.Files, Ignored: ignored}); ignored {
				r.out.Ignored.Files, r.out.Ignored.Bytes = r.out.Ignored.Files+count.Files, r.out.Ignored.Bytes+count.Bytes
			}
			return true, nil
		} else if fatal(err) {
			return false, err
		}
		back() // each name in it tells what is wrong with it
	}
	if err := r.c.canCreate(name); err != nil {
		return false, err
	}
	if c.Before.Exists {
		if err := r.away(ctx, c, name); err != nil {
			return false, err
		}
		r.freed = append(r.freed, name)
	}
	r.p.Steps = append(r.p.Steps, mkdirAs(name, stateOfRun(&c.After)))
	if s := &r.p.Steps[len(r.p.Steps)-1]; !s.Exact { // of mode 000
		s.Exact, s.After.State = true, stateOfRun(&c.After)
	}
	r.note(c, RunChange{})
	return false, nil
}

// errApart: no rename leads from the upper layer to the workspace.
var errApart = errors.New("the upper layer is on another mount")

// bring plans that what the upper layer has for c, with in, gets its name by one rename. sync: it is on the disk before that.
func (r *running) bring(ctx context.Context, c *run.Change, in []run.Change, name string, count RunCount, sync bool) error {
	at := path.Join(r.a.Upper.Dir, c.From)
	if c.From == "" || !inTrash(at) || r.a.Live || r.inFreed(name) { // there is nothing yet that it could be renamed to
		return errApart
	}
	slot, err := r.c.trash.EntryLink(at)
	if err != nil {
		return err
	}
	defer slot.Close() //nolint:errcheck // nothing was written through it
	near, _, err := r.c.fs.NearestEntry(name)
	if err != nil {
		return err
	}
	same, err := slot.SameMount(near)
	near.Close()                                                                               //nolint:errcheck // nothing was written through it
	if err == nil && (!same || c.After.IsDir() && r.a.Upper.User && c.After.Mode&0o200 == 0) { // its ".." changes, which it does not let a user do
		err = errApart
	}
	if err == nil {
		err = r.c.canCreate(name)
	}
	if err != nil {
		return err
	}
	if c.Before.Exists {
		if err := r.away(ctx, c, name); err != nil {
			return err
		}
	}
	derived, own := r.derived, append([]run.Change{*c}, in...)
	mv := &Move{Path: name, Back: true, over: c.Before.Exists, fresh: func() error { return derived.Ready(own, sync) },
		Entry: checkpoint.Trashed{Parked: slot.Object().True, Identity: slot.Object().Info.ID.Lasting(), Size: count.Bytes, Files: count.Files}}
	s, _, err := r.d.move(mv)
	if err == nil {
		r.p.Steps = append(r.p.Steps, s)
	}
	return err
}

// file plans a file or link that comes, changes or goes.
func (r *running) file(ctx context.Context, c *run.Change, name string) error {
	if c.After.Links > 1 {
		err := r.bring(ctx, c, nil, name, RunCount{1, c.After.Size}, true)
		if err == nil || !errors.Is(err, errApart) {
			if err == nil {
				r.note(c, RunChange{Files: 1})
			}
			return err
		}
		r.out.Apart = append(r.out.Apart, name)
	}
	ignored := !r.a.KeepIgnored && r.ignored(c.Path, false)
	over := c.Before.Exists && !r.ordinary(name, &c.Before) && !(ignored && c.Before.Links <= 1)
	if over {
		if err := r.away(ctx, c, name); err != nil {
			return err
		}
	}
	t, err := r.load(name, over)
	if err != nil {
		return err
	}
	t.run, t.ours, t.unrecorded = true, true, ignored // ours: a file that is read-only says nothing to a program of its owner
	r.held += int64(len(t.Before.Content))
	if t.place != nil {
		if fixed, err := t.place.Fixed(); err != nil || fixed != nil {
			return cmp.Or(err, error(fixed))
		}
	}
	switch {
	case !c.After.Exists:
		t.After = After{Kind: guardfs.KindAbsent}
	case c.After.Is(fs.ModeSymlink):
		t.After = After{Kind: guardfs.KindSymlink, Target: c.After.Target}
	default:
		if err := r.content(c, t, name, ignored); err != nil {
			return err
		}
	}
	if !over && t.Unchanged() {
		return nil
	}
	if ignored {
		r.out.Ignored.Files, r.out.Ignored.Bytes = r.out.Ignored.Files+1, r.out.Ignored.Bytes+c.After.Size
	}
	r.note(c, RunChange{Ignored: ignored})
	return nil
}

// inFreed says that the directory of name comes where something else is now.
func (r *running) inFreed(name string) bool {
	return len(r.freed) > 0 && below(name, r.freed[len(r.freed)-1])
}

// load looks at what is at name. over: it goes before, and so is nothing.
func (r *running) load(name string, over bool) (*Target, error) {
	if r.inFreed(name) {
		return r.nothing(name, nil), r.c.judge.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create)
	}
	if !over {
		t, err := r.d.Load(name, Rules{Parents: true, Link: true})
		if err == nil && t.True != name {
			err = &guardfs.SymlinkError{Path: name, Target: t.True}
		}
		return t, err
	}
	place, err := r.c.openAt(name)
	if err != nil {
		return nil, err
	}
	return r.nothing(name, place), nil
}

// nothing is the target of a name at which nothing is any more when its turn comes.
func (r *running) nothing(name string, place *guardfs.Entry) *Target {
	t := &Target{Path: name, True: name, Before: &guardfs.Before{}, place: place, over: true, rules: Rules{Link: true}}
	r.c.Trace.Paths = append(r.c.Trace.Paths[:len(r.d.files)], name)
	r.d.files = append(r.d.files, t)
	return t
}

// content sets what the file of t becomes: a content in memory, or one that is copied when the plan is carried out.
func (r *running) content(c *run.Change, t *Target, name string, ignored bool) error {
	t.After = After{Kind: guardfs.KindFile, touch: true, Meta: &guardfs.Metadata{Mode: c.After.Mode & (fs.ModePerm | fs.ModeSticky),
		UID: c.After.UID, GID: c.After.GID, ModTime: c.After.ModTime, Xattrs: c.After.Xattrs}}
	at := path.Join(r.a.Upper.Dir, c.From)
	if c.Lower != "" {
		at = r.name(c.Lower)
	}
	if large := !r.c.storable(name, c.After.Size) || r.held+c.After.Size > maxLoad; (large || ignored && c.After.Size > 0) && (c.Lower != "" || inTrash(at)) {
		o, _, err := r.c.treeOf(at).Lstat(at)
		t.After.From = &From{path: at, info: o.Info, size: c.After.Size}
		return err
	}
	var f io.ReadCloser
	var err error
	if c.Lower != "" {
		f, err = r.c.openFile(at)
	} else {
		f, err = r.derived.Open(c)
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	t.After.Content, err = io.ReadAll(io.LimitReader(f, maxLoad+1))
	if err == nil && int64(len(t.After.Content)) > maxLoad {
		err = &edit.TooLargeError{Size: c.After.Size, Max: maxLoad}
	}
	t.After.Hash = HashOf(t.After.Content)
	r.held += int64(len(t.After.Content))
	return err
}

// openFile opens a file of the tree for reading.
func (c *Call) openFile(name string) (*guardfs.File, error) {
	h, err := c.fs.Resolve(name, guardfs.Read)
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // the file is opened
	return h.Open()
}

// note adds a change to the answer.
func (r *running) note(c *run.Change, ch RunChange) {
	ch.Path, ch.Before, ch.After = r.name(c.Path), kindOfRun(&c.Before), kindOfRun(&c.After)
	r.out.Changes = append(r.out.Changes, ch)
}

// tell counts the lines of the answer.
func (r *running) tell() {
	at := map[string]*RunChange{}
	for i := range r.out.Changes {
		at[r.out.Changes[i].Path] = &r.out.Changes[i]
	}
	for _, t := range r.out.Targets {
		if ch := at[t.True]; ch != nil && t.After.From == nil {
			ch.Added, ch.Removed = diff.Counts(Hunks(t))
		}
	}
}

func kindOfRun(s *run.State) guardfs.Kind {
	switch {
	case !s.Exists:
		return guardfs.KindAbsent
	case s.IsFile():
		return guardfs.KindFile
	case s.IsDir():
		return guardfs.KindDir
	case s.Is(fs.ModeSymlink):
		return guardfs.KindSymlink
	}
	return guardfs.KindOther
}

// lower is the workspace as a derivation looks at it: whatever policy says, since the judgement comes with the plan.
type lower struct {
	fs   *guardfs.FS
	root string
}

// Look is run.Lower's.
func (l *lower) Look(p string) (s run.State, err error) {
	name := path.Join(l.root, p)
	at, err := l.fs.EntryLink(name)
	if _, gone := errors.AsType[*guardfs.MissingParentError](err); gone || errors.Is(err, syscall.ENOTDIR) {
		return s, nil
	}
	if _, bad := errors.AsType[*guardfs.BadPathError](err); bad { // guardfs goes to no such name, and the change is refused
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer at.Close() //nolint:errcheck // nothing was written through it
	o := at.Object()
	i := o.Info
	if o.True != name || i.Kind == guardfs.KindAbsent {
		return s, nil
	}
	s = run.State{Exists: true, Mode: i.Mode, UID: i.UID, GID: i.GID, ModTime: i.ModTime, ChangeTime: i.ChangeTime, Links: i.Links, Ino: i.ID.Ino}
	switch i.Kind {
	case guardfs.KindFile:
		var b *guardfs.Before
		s.Size = i.Size
		if b, err = at.Peek(nil, 0); err == nil {
			s.Xattrs = b.Meta.Xattrs
		}
	case guardfs.KindDir:
		var m guardfs.Metadata
		s.Mode |= fs.ModeDir
		if m, err = at.DirMetadata(); err == nil {
			s.Xattrs = m.Xattrs
		}
	case guardfs.KindSymlink:
		var b *guardfs.Before
		s.Mode = fs.ModeSymlink | fs.ModePerm
		if b, err = at.Load(maxLoad); err == nil {
			s.Target = string(b.Content)
		}
	default:
		s.Mode |= fs.ModeIrregular
	}
	if errors.Is(err, fs.ErrPermission) {
		err = nil // it is met again where it matters
	}
	for key := range s.Xattrs {
		if run.IsMark(key) {
			delete(s.Xattrs, key)
		}
	}
	if len(s.Xattrs) == 0 {
		s.Xattrs = nil
	}
	return s, err
}

// List is run.Lower's.
func (l *lower) List(p string) (names []string, err error) {
	d, err := l.dir(p)
	if d == nil || err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	entries, _, err := d.List(nil)
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, err
}

// dir opens a directory; nil: there is none.
func (l *lower) dir(p string) (*guardfs.Dir, error) {
	name := path.Join(l.root, p)
	h, err := l.fs.Resolve(name, guardfs.Walk)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil, nil
	}
	if _, bad := errors.AsType[*guardfs.BadPathError](err); bad {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	if o := h.Object(); o.True != name || o.Info.Kind != guardfs.KindDir {
		return nil, nil
	}
	return h.Dir()
}

// ignored says whether git ignores a path, by the rules that hold after the run.
func (r *running) ignored(p string, isDir bool) bool {
	dir, base := path.Split(p)
	in := r.rulesIn(strings.TrimSuffix(dir, "/"))
	return in.ignored || in.set.Ignored(dir, base, isDir, new(ignore.Scratch))
}

// rulesIn gives the rules in a directory.
func (r *running) rulesIn(dir string) (in rulesOf) {
	if in, known := r.rules[dir]; known {
		return in
	}
	defer func() { r.rules[dir] = in }()
	under := ""
	if dir == "" {
		in.set = new(ignore.Set)
		if d, err := r.lower.dir(""); err == nil && d != nil {
			defer d.Close() //nolint:errcheck // nothing was written through it
			in.set, _, _ = ignore.Load(grep.Guarded(d), ignore.Options{Excludes: r.c.gitExcludes(), Home: r.c.search.home})
		}
	} else {
		up, base := path.Split(dir)
		above := r.rulesIn(strings.TrimSuffix(up, "/"))
		if in = above; in.ignored || ignore.IsVCS(base) {
			return rulesOf{set: new(ignore.Set), ignored: in.ignored}
		}
		if in.ignored = above.set.Ignored(up, base, true, new(ignore.Scratch)); in.ignored {
			return in
		}
		under = dir + "/"
	}
	here, err := r.rulesDir(dir)
	if err != nil {
		return in
	}
	defer here.Close() //nolint:errcheck // nothing was written through it
	var found ignore.Found
	for _, name := range []string{".gitignore", ".ignore", ".git"} {
		if i, err := here.Stat(name); err == nil {
			found.Add(name, i.Kind)
		}
	}
	in.set, _ = in.set.Enter(here, under, found)
	return in
}

// rulesDir is a directory as it is after the run, as far as ignore rules are in it.
type rulesDir struct {
	tree.Dir // of the workspace; nil where the directory is new
	r        *running
	at       string
}

func (r *running) rulesDir(dir string) (*rulesDir, error) {
	d, err := r.lower.dir(dir)
	out := &rulesDir{r: r, at: dir}
	if err == nil && d != nil {
		out.Dir = grep.Guarded(d)
	}
	return out, err
}

// change gives the change of the run at the file name of this directory, if it holds ignore rules; else nil.
func (d *rulesDir) change(name string) *run.Change {
	return d.r.ruled[path.Join(d.at, name)]
}

// Stat is tree.Dir's.
func (d *rulesDir) Stat(name string) (tree.Info, error) {
	switch c := d.change(name); {
	case c != nil && c.After.IsFile():
		return tree.Info{Kind: tree.KindFile}, nil
	case c != nil && !c.After.IsDir(), c == nil && d.Dir == nil, c != nil && d.Dir == nil:
		return tree.Info{}, fs.ErrNotExist
	}
	return d.Dir.Stat(name)
}

// ReadSmall is tree.Dir's.
func (d *rulesDir) ReadSmall(name string, most int64) ([]byte, error) {
	if c := d.change(name); c != nil && c.From != "" {
		f, err := d.r.derived.Open(c)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // nothing was written through it
		return io.ReadAll(io.LimitReader(f, most))
	}
	if d.Dir == nil {
		return nil, fs.ErrNotExist
	}
	return d.Dir.ReadSmall(name, most)
}

// OpenDir is tree.Dir's.
func (d *rulesDir) OpenDir(name string, cross bool) (tree.Dir, error) {
	if d.Dir == nil {
		return nil, fs.ErrNotExist
	}
	return d.Dir.OpenDir(name, cross)
}

// Close is tree.Dir's.
func (d *rulesDir) Close() error {
	if d.Dir == nil {
		return nil
	}
	return d.Dir.Close()
}
