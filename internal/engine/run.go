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
	"time"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/grep/ignore"
	"moltisfs/internal/edit"
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
}

// Ran is the answer of ApplyRun: the change that was made, by name.
type Ran struct {
	*Done
	Changes []RunChange
	Left    []Blocked // what stays as it is, with Partial or DryRun
	Ignored RunCount  // of Changes, what git ignores and the checkpoint does not have: no undo brings it back
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
	return &r.out, nil
}

// running is one run on its way into a plan.
type running struct {
	c       *Call
	d       *Planner
	a       RunArgs
	root    string
	fs      *guardfs.FS // whatever policy says: the judgement comes with the plan
	layered bool        // it is on an overlay itself, which renames no directory of its lower layer
	derived *run.Derived
	p       Plan
	out     Ran
	rules   map[string]rulesOf // by directory, relative to the root
	base    string             // the root from the top of its repository
	held    int64              // bytes of contents in memory
	refused []string           // directories that do not come, so that nothing in them can
	freed   []string           // directories that come where something else has to go
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
	r.rules, r.fs = map[string]rulesOf{}, r.c.tree.With(policy.AllowAll{})
	if r.derived, err = run.Derive(r.a.Upper); err != nil {
		return nil, err
	}
	top, err := r.fs.EntryLink(r.root)
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
	for i := range all {
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
var reasons = map[run.Why]Why{run.WhySetID: SetID, run.WhySpecial: SpecialFile, run.WhyName: NoSuchName}

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
	}
	paths, files := r.c.Trace.Paths, 0
	p, err := r.d.delete(ctx, name, DeleteOptions{Recursive: true, byRun: true}, r.layered)
	if r.c.Trace.Paths = paths; err != nil {
		return err
	}
	for i := range p.Steps {
		if mv := p.Steps[i].move; mv != nil {
			files += mv.Entry.Files
		}
	}
	r.p.Steps = append(r.p.Steps, p.Steps...)
	if !c.After.Exists {
		r.note(c, RunChange{Files: files})
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
	clean, shut := true, false // shut: a user can't empty a directory in it, so that no undo could step by step
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
		clean = clean && in[i].Why == "" && together
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
	r.p.Steps = append(r.p.Steps, Step{Path: name, Action: Mkdir, Exact: true, After: State{State: stateOfRun(&c.After)}})
	r.note(c, RunChange{})
	return false, nil
}

// errApart: no rename leads from the upper layer to the workspace.
var errApart = errors.New("the upper layer is on another mount")

// bring plans that what the upper layer has for c, with in, gets its name by one rename. sync: it is on the disk before that.
func (r *running) bring(ctx context.Context, c *run.Change, in []run.Change, name string, count RunCount, sync bool) error {
	at := path.Join(r.a.Upper.Dir, c.Path)
	if !inTrash(at) || r.inFreed(name) { // there is nothing yet that it could be renamed to
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
	ch := RunChange{Ignored: ignored}
	if t.After.From == nil {
		ch.Added, ch.Removed = Counts(t)
	}
	r.note(c, ch)
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
	at := path.Join(r.a.Upper.Dir, c.Path)
	if large := !r.c.storable(name, c.After.Size) || r.held+c.After.Size > maxLoad; (large || ignored && c.After.Size > 0) && inTrash(at) {
		o, _, err := r.c.treeOf(at).Lstat(at)
		t.After.From = &From{path: at, info: o.Info, size: c.After.Size}
		return err
	}
	f, err := r.derived.Open(c)
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

// note adds a change to the answer.
func (r *running) note(c *run.Change, ch RunChange) {
	ch.Path, ch.Before, ch.After = r.name(c.Path), kindOfRun(&c.Before), kindOfRun(&c.After)
	r.out.Changes = append(r.out.Changes, ch)
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

// ignored says whether git ignores a path, by the rules that were there before the run: no program rules what is kept of its own changes.
func (r *running) ignored(p string, isDir bool) bool {
	dir, base := path.Split(p)
	in := r.rulesIn(strings.TrimSuffix(dir, "/"))
	return in.ignored || in.set.Ignored(r.base+dir, base, isDir, new(ignore.Scratch))
}

// rulesIn gives the rules in a directory.
func (r *running) rulesIn(dir string) (in rulesOf) {
	if in, known := r.rules[dir]; known {
		return in
	}
	defer func() { r.rules[dir] = in }()
	up, base := path.Split(dir)
	if dir != "" {
		if in = r.rulesIn(strings.TrimSuffix(up, "/")); in.ignored {
			return in
		} else if ignore.IsVCS(base) {
			return rulesOf{set: new(ignore.Set)}
		} else if in.ignored = in.set.Ignored(r.base+up, base, true, new(ignore.Scratch)); in.ignored {
			return in
		}
		dir += "/"
	} else {
		in.set = new(ignore.Set)
	}
	h, err := r.fs.Resolve(r.name(dir), guardfs.Walk)
	if err != nil {
		return in // it is new
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	d, err := h.Dir()
	if err != nil {
		return in
	}
	here := grep.Guarded(d)
	defer here.Close() //nolint:errcheck // nothing was written through it
	if dir == "" {
		in.set, r.base, _ = ignore.Load(here, ignore.Options{Excludes: r.c.gitExcludes(), Home: r.c.search.home})
	}
	var found ignore.Found
	for _, name := range []string{".gitignore", ".ignore", ".git"} {
		if i, err := here.Stat(name); err == nil {
			found.Add(name, i.Kind)
		}
	}
	in.set, _ = in.set.Enter(here, r.base+dir, found)
	return in
}
