package engine

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/guardfs"
)

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

// dirMetadata gives the metadata of a directory that comes back. Its set-id bits come back too: unlike those
// of a file they only say what becomes of files made in it.
func dirMetadata(was checkpoint.State) *guardfs.Metadata {
	return &guardfs.Metadata{Mode: was.Mode, UID: was.UID, GID: was.GID, Xattrs: was.Xattrs}
}

// step gives the step for a target that changes. A file or link goes where a directory takes its
// place.
func (t *Target) step() Step {
	s := Step{Path: t.True, Before: State{State: state(t.Before), ID: t.Before.Info.ID},
		After: State{State: t.announced()}, file: t}
	if t.After.Tail {
		s.Action, s.Before.Changed = Append, t.Before.Info.ChangeTime
		return s
	}
	switch t.After.Kind {
	case guardfs.KindFile:
		s.Action = Put
	case guardfs.KindSymlink:
		s.Action = Link
	default:
		s.Action, s.After = Remove, State{}
	}
	if m := t.After.Meta; m != nil && s.Action == Put {
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
	for _, from := range mv.pairs {
		if from.True == mv.Path { // a file or link, which was looked into
			s.Before.State = state(from.Before)
		}
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

	// Published is what was done, nil for a target that needed nothing.
	Published *guardfs.Published

	ours bool // that it is read-only is the session's own doing
	// what the disk has, where a client holds the text and Before is that; else nil
	disk  *guardfs.Before
	twin  string           // the hash of the client's text, or of the disk's, where that is the same as Before
	place *guardfs.Place   // nil while the parent is still to be made
	above *guardfs.Place   // that of the topmost parent that is still to be made
	fresh guardfs.Metadata // of a new file in such a parent: what it will get
	rules Rules
}

// After is the state that a target gets.
type After struct {
	// KindFile, KindAbsent (removed) or KindSymlink; KindDir only in the place of a file or link
	Kind    guardfs.Kind
	Content []byte // of a file
	Hash    string // of Content; filled by the chain, but for a tail
	// Tail: Content goes to the end of what is there, which is too large to be read.
	Tail   bool
	cut    []byte // with From: what of the file itself goes
	From   *From  // has the content of a file that is not held in memory; Hash is known when it is staged
	Target string // of a symlink
	// how Before became Content, from whoever knows it already; nil: compared when wanted
	Hunks []diff.Hunk
	// for the rules: the whole text, and the text that it replaces; or what edits made
	was, text []byte
	edits     *edit.Result
	// KeptCRLF: the text was sent with bare LF, and Content has the CRLF of the file.
	KeptCRLF bool
	Meta     *guardfs.Metadata // exact metadata; nil carries over what is there
	// Shown is what the session knows of Content, from whoever can tell. nil: the lines that it knew,
	// if none moved. Its Hash and Whole do not count.
	Shown *Sight
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
			(t.After.Meta == nil || rewind.SameMetadata(metaState(*t.After.Meta), metaState(t.Before.Meta)))
	case guardfs.KindSymlink:
		return t.Before.Exists && t.Before.Info.Kind == guardfs.KindSymlink &&
			string(t.Before.Content) == t.After.Target
	}
	// The tools do not make this kind, so they leave it alone.
	return t.Before.Exists && t.Before.Info.Kind == t.After.Kind
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

// rememberChange counts what the session wrote as seen. The change has
// happened: a ledger that can't be written costs a re-read, not the answer.
func (e *Engine) rememberChange(c *Call, ts targets, moves []*Move) {
	if e.ledger == nil {
		return
	}
	from := map[*Target]*Target{}
	for _, mv := range moves {
		maps.Copy(from, mv.pairs)
	}
	for _, t := range ts {
		var err error
		switch {
		case from[t] != nil:
			err = e.rememberMoved(c, t, from[t])
		case t.After.Kind != guardfs.KindFile:
			err = e.ledger.Forget(c.key(), t.True)
		case t.After.Tail:
			err = e.rememberTail(c, t)
		case t.Published != nil:
			o := guardfs.Object{True: t.Published.True, Info: t.Published.Info}
			// An edit of a file of which a part was seen does not show the rest.
			seen := t.Known.Seen
			whole := t.rules.Read == ReadWhole || !t.Before.Exists ||
				seen != nil && seen.Whole && !t.Known.Stale
			sight := &Sight{Hash: t.After.Hash, Unit: "line", Lines: lines(t.After.Content), Whole: whole}
			if t.After.From != nil {
				sight.Unit, sight.Lines = "byte", -1
				err = e.remember(c, o, sight)
				break
			}
			// Cells and pages are not lines, and lines that moved may not be those that were seen.
			if !whole && t.After.Shown != nil {
				*sight = *t.After.Shown
				sight.Hash, sight.Whole = t.After.Hash, false
			} else if !whole && seen != nil && (seen.Unit == "line" || seen.Unit == "") &&
				sight.Lines == seen.Lines {
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

// lines counts as Read does: a final newline makes no extra line.
func lines(content []byte) int {
	n := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}
