package tools

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/refusal"
	"moltisfs/internal/session"
	"moltisfs/readers"
)

// The kinds of refusal, all of them.
const (
	KindNotFound         = string(engine.CodeNotFound)
	KindPermissionDenied = string(engine.CodePermissionDenied)
	KindTooLarge         = string(engine.CodeTooLarge)
	KindNotRegularFile   = string(engine.CodeNotRegularFile)
	KindPathDenied       = string(engine.CodePathDenied)
	KindBadRequest       = string(engine.CodeBadRequest)
	KindSymlinkRefused   = string(engine.CodeSymlinkRefused)
	KindMustRead         = string(engine.CodeMustRead)
	KindModified         = string(engine.CodeModified)
	KindNoMatch          = string(engine.CodeNoMatch)
	KindNotUnique        = string(engine.CodeNotUnique)
	KindConflict         = string(engine.CodeConflict)
	KindApprovalDenied   = string(engine.CodeApprovalDenied)
	KindApprovalTimeout  = string(engine.CodeApprovalTimeout)
	KindApprovalStale    = string(engine.CodeApprovalStale)
	KindUnsupported      = string(engine.CodeUnsupported)
	KindLimit            = string(engine.CodeLimit)
	KindDeadline         = string(engine.CodeDeadline)
	KindPolicyError      = string(engine.CodePolicyError)
	KindIOError          = string(engine.CodeIOError)
	KindUnavailable      = string(engine.CodeUnavailable)
)

// A Refusal is a "no" that a model can act on: what is so, the next move, and
// where there is one, the call to make now.
type Refusal struct {
	Reason   string `json:"-"` // the kind
	FilePath string `json:"file_path,omitempty"`
	Message  string `json:"error"`
	Hint     string `json:"hint"`
	// Next is a call that can be made as it stands and answers the hint.
	Next *NextCall `json:"next,omitempty"`
	// Fields are the kind's own, spliced into the object.
	Fields any `json:"-"`

	facts  *engine.Refusal
	voice  refusal.Voice
	table  string // the hint of the table
	person string // what a person reads in place of a hint of our own
}

// ForPerson is the hint for a person at a terminal. names says what the person calls a tool or an argument, ""
// for what the person has not; nil: as the tools do. now is what else is so.
func (r *Refusal) ForPerson(names func(string) string, now map[string]string) string {
	if r.facts == nil || r.Hint != r.table {
		return cmp.Or(r.person, r.Hint)
	}
	v := r.voice
	v.Now = maps.Clone(r.voice.Now)
	maps.Copy(v.Now, now)
	if names != nil {
		v.Names = names
	}
	return refusal.Tell(r.facts, v).Person
}

// Facts are what the refusal says, for this module's command line, which says it in other words;
// nil where a tool itself refuses.
func (r *Refusal) Facts() *engine.Refusal { return r.facts }

// Unwrap is the error behind it, where there is one: errors.Is(r, fs.ErrNotExist) may hold, and
// errors.Is(r, context.Canceled).
func (r *Refusal) Unwrap() error {
	if r.facts == nil {
		return nil
	}
	return r.facts.Err
}

// NextCall is a tool call ready to be sent.
type NextCall struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

func (r *Refusal) Kind() string { return r.Reason }

// Error lets a step of a chain refuse in its own words.
func (r *Refusal) Error() string { return r.Message }

func (*Refusal) payload() {}

// Text is the refusal in two or three lines.
func (r *Refusal) Text() string {
	var b strings.Builder
	b.WriteString(r.Message)
	if r.Hint != "" {
		b.WriteString("\n" + r.Hint)
	}
	if t, ok := r.Fields.(interface{ Text() string }); ok {
		b.WriteString("\n" + t.Text())
	}
	return b.String()
}

// MarshalJSON splices the kind's own fields behind the common ones.
func (r *Refusal) MarshalJSON() ([]byte, error) {
	type common Refusal
	head, err := plainJSON((*common)(r))
	if err != nil || r.Fields == nil {
		return head, err
	}
	own, err := plainJSON(r.Fields)
	if err != nil {
		return nil, err
	}
	if string(own) == "{}" {
		return head, nil
	}
	head[len(head)-1] = ','
	return append(head, own[1:]...), nil
}

// refuse tells a model of an error. nil means that the host is broken, or that the suite was
// closed.
func (s *Suite) refuse(c *engine.Call, tool string, args any, err error) *Refusal {
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		facts := engine.Reason(err)
		if facts == nil {
			return nil
		}
		if facts.Cause == engine.Unknown {
			s.logger.Error("a call failed for a reason without a row", "tool", tool, "err", err)
		}
		r = s.told(c, tool, args, facts)
	}
	if r.FilePath == "" {
		r.FilePath = pathOf(args)
	}
	r.FilePath = fmt.Sprintf("%.*s", guardfs.MaxPath, r.FilePath)
	return r
}

// told is a refusal in the words of the table, with what a tool adds: fields, a next call, what may be meant.
func (s *Suite) told(c *engine.Call, tool string, args any, facts *engine.Refusal) *Refusal {
	a := &about{Refusal: facts, s: s, call: c, tool: tool, args: args, path: pathOf(args)}
	a.now = a.moments()
	r := &Refusal{Reason: string(facts.Code), facts: facts}
	a.tell(r)
	if more := extras[facts.Cause]; more != nil {
		more(a, r)
	}
	if n := r.Next; c != nil && n != nil && row(n.Tool) != nil && row(n.Tool).Effect != Reads {
		if path, _ := n.Args["file_path"].(string); s.engine.RunsCode(path) {
			r.Hint += " It runs code later: a change of it is asked about."
		}
	}
	return r
}

// tell fills in the words of the table.
func (a *about) tell(r *Refusal) {
	r.voice = refusal.Voice{Path: quoted(a.named()), Show: quote, Now: a.now, Edits: a.tool == "MultiEdit",
		Names: func(name string) string {
			if name != "line" && slices.Contains(refusal.Names, name) {
				return name
			}
			return ""
		}}
	told := refusal.Tell(a.Refusal, r.voice)
	r.Message, r.Hint, r.table = told.Says, told.Hint, told.Hint
}

func quoted(path string) string {
	if path == "" {
		return ""
	}
	return quotePath(path)
}

// moments are what is so of the call, for the words of the table.
func (a *about) moments() map[string]string {
	now := map[string]string{"root": a.s.cfg.WorkspaceRoot}
	set := func(name string, is bool) {
		if is {
			now[name] = "yes"
		}
	}
	set("plain", path.IsAbs(a.named()))
	set("makes", a.makesParents())
	set("convert", a.tool == "Write")
	t := row(a.tool)
	set("changes", t != nil && t.Effect != Reads)
	if !a.s.cfg.CheckpointBeforeMutation {
		now["off"] = refusal.Off
	}
	sent := asMap(a.args)
	for _, what := range []string{"label", "turn"} {
		if name, _ := sent[what].(string); name != "" {
			now["named"] = what + " " + quoteShort(name)
		}
	}
	if args, ok := a.args.(*CheckpointRestoreArgs); ok {
		set("restore", true)
		set("trash", fromTrash(args))
		set("undo", walks(strings.TrimSpace(value(args.ID))) || a.Cause == engine.PartialHistory && args.ID != nil)
		set("merging", value(args.OnConflict) == engine.OnConflictMerge || value(args.Mode) == checkpoint.ModeInverse)
		if !fromTrash(args) {
			now["skip"] = ", or leave that path alone with {on_conflict} skip"
		}
	}
	return now
}

// extras are what a tool adds to the words of a cause.
var extras = map[engine.Cause]func(*about, *Refusal){
	engine.HalfMade: func(a *about, r *Refusal) {
		const most = 20
		f := factsOf[engine.HalfFacts](a)
		r.Fields = halfMadeFields{f.Left[:min(most, len(f.Left))], len(f.Left), f.Checkpoint}
		if a.path == "" && len(f.Left) > 0 {
			r.FilePath = f.Left[0]
		}
	},
	engine.BadArgument:   badArguments,
	engine.BadPath:       (*about).badPath,
	engine.OutOfScope:    ofPath,
	engine.ChainFailed:   ofPath,
	engine.Denied:        (*about).pathDenied,
	engine.Pseudo:        (*about).pathDenied,
	engine.IsLink:        (*about).symlink,
	engine.NotRegular:    (*about).notRegular,
	engine.ParentMissing: (*about).parentMissing,
	engine.Absent:        (*about).missing,
	engine.NotADirectory: func(a *about, r *Refusal) {
		if !a.skips(r) && !a.suggest(r, a.named()) {
			r.Next = globbing(a)
		}
	},
	engine.FileTooLarge: func(a *about, r *Refusal) {
		e := factsOf[*guardfs.TooLargeError](a)
		r.Fields = sizes{e.Size, e.Max}
	},
	engine.ChangedAtOnce: reading, engine.BufferDiffers: reading, engine.Unread: reading,

	engine.PartUnread: func(a *about, r *Refusal) { a.readRest(r, true) },
	engine.DropsUnseen: func(a *about, r *Refusal) {
		a.readRest(r, false)
		r.Fields = guardField{"overwrite"}
	},
	engine.LinesUnseen: func(a *about, r *Refusal) {
		f := factsOf[engine.LineFacts](a)
		r.Next = read(a.path)
		r.Next.Args["offset"], r.Next.Args["limit"] = f.First, f.Last-f.First+1
		if f.Encoding != "" {
			r.Next.Args["encoding"] = f.Encoding
		}
	},
	engine.OverBinary: func(_ *about, r *Refusal) { r.Fields = guardField{"overwrite"} },
	engine.Accident: func(a *about, r *Refusal) {
		r.Fields = guardField{"overwrite"}
		if factsOf[engine.GuardFacts](a).Edits {
			r.Fields = guardField{"edit"}
		}
	},
	engine.Modified: modified,
	engine.Unexpected: func(a *about, r *Refusal) {
		if modified(a, r); factsOf[engine.HashFacts](a).Hash == "" {
			r.Next = globbing(a)
		}
	},
	engine.ApprovalStale: func(a *about, r *Refusal) {
		r.Fields = struct {
			Diff string `json:"diff,omitempty"`
		}{clip(factsOf[string](a), maxDiff)}
	},

	engine.NoMatch:     noMatch,
	engine.NotUnique:   notUnique,
	engine.BadEncoding: badEncoding,
	engine.BadPattern:  badPattern,
	engine.NoFileType:  unknownType,
	refusal.NotShown:   unshown,
	refusal.NoSuchCell: noCell,

	engine.BadID: listing, engine.BadRestore: listing, engine.NothingToUndo: listing,
	engine.NoCheckpoint: func(a *about, r *Refusal) {
		if !a.untrashes() {
			listing(a, r)
		}
	},
	engine.AmbiguousLabel: ambiguousLabel,
	engine.AmbiguousTurn:  ambiguousTurn,
	engine.PartialHistory: partial,
	engine.Conflicts:      conflicts,
	engine.BothKinds:      conflicts,
	engine.NotStored:      ofPath,
	engine.NoTrash:        ofPath,
	engine.NotInPlan:      ofPath,
	engine.Hidden:         hidden,
	engine.WouldLose:      skipping, engine.NotPermitted: skipping, engine.DiskReadOnly: skipping,
	engine.ReadOnly: skipping,
}

// The calls that come next.
func reading(a *about, r *Refusal)  { r.Next = read(a.path) }
func listing(_ *about, r *Refusal)  { r.Next = &NextCall{"checkpoints_list", map[string]any{}} }
func skipping(a *about, r *Refusal) { a.skips(r) }

func ofPath(a *about, r *Refusal) { r.FilePath = a.Path }

// skips offers a restore that leaves alone what can't be restored. It says whether this is a restore.
func (a *about) skips(r *Refusal) bool {
	if a.restores() && a.Path != "" {
		r.FilePath, r.Next = a.Path, a.skipping()
	}
	return a.restores()
}

// named is the path that the call names, else the one that the facts do.
func (a *about) named() string { return cmp.Or(a.path, a.Path) }

// modified shows what is there of a change of what is not the content that was read or named.
func modified(a *about, r *Refusal) {
	f := factsOf[engine.HashFacts](a)
	r.Next, r.Fields = read(a.path), modifiedFields{Diff: clip(f.Diff, maxDiff), SHA256: f.Hash, was: f.Was}
}

// unshown refuses what a reader can't show, in the reader's words.
func unshown(a *about, r *Refusal) {
	switch e := factsOf[readers.Hinter](a).(type) {
	case *readers.BadRequest, *readers.BadPages, *readers.BadEncoding:
		r.Reason = KindBadRequest
	case *readers.Limit:
		r.Reason = KindLimit
	case *readers.Busy, *readers.OutOfTime:
		r.Reason = KindDeadline
	case *readers.TooLarge:
		r.Reason, r.Fields = KindTooLarge, sizes{e.Size, e.Max}
		switch {
		case e.Windowed && e.What == "PDF":
			r.Next = again(a.tool, a.args, map[string]any{"pages": fmt.Sprintf("1-%d", readers.MaxPages)})
		case e.Windowed:
			r.Next = again(a.tool, a.args, map[string]any{"offset": 1, "limit": defaultLines})
		}
	}
}

// An about is what a sentence is made from: the facts, and the call that they are about.
type about struct {
	*engine.Refusal
	s    *Suite
	call *engine.Call
	tool string
	args any
	path string // that the call names; "" for a call of many paths
	now  map[string]string
}

// factsOf are the facts of a refusal whose cause tells their type.
func factsOf[T any](a *about) T { return a.Facts.(T) }

// halfMadeFields tells what a call that failed has left behind.
type halfMadeFields struct {
	NotPutBack []string `json:"not_put_back"` // the first ones
	Total      int      `json:"not_put_back_total"`
	Checkpoint string   `json:"checkpoint,omitempty"`
}

// Text names them.
func (f halfMadeFields) Text() string {
	var b strings.Builder
	for _, p := range f.NotPutBack {
		b.WriteString(edit.ShownPath(p) + "\n")
	}
	if n := f.Total - len(f.NotPutBack); n > 0 {
		fmt.Fprintf(&b, "and %d more\n", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// readRest offers to read what the session has not seen of a file, if that can be shown.
func (a *about) readRest(r *Refusal, count bool) {
	seen := factsOf[*session.Seen](a)
	first, unit := seen.FirstUnseen(), cmp.Or(seen.Unit, "line")
	args := map[string]any{"file_path": a.path, "offset": first}
	switch {
	case seen.Lossy && seen.Lines >= 0 && first > seen.Lines, len(seen.Ranges) == 0 && seen.Unit == "":
		return
	case unit == "source line":
		args = map[string]any{"file_path": a.path, "render": false}
	case unit == "line" && len(seen.Ranges) > 0 &&
		(first == 1 && seen.Ranges[0].First == 2 || first > 1 && len(seen.Ranges) > 1 &&
			seen.Ranges[1].First == first+1):
		args["column"] = 1 // one line between others: it was too long to be shown with them
	case unit == "page":
		delete(args, "offset")
		args["pages"] = fmt.Sprint(first)
		if last := min(first+readers.MaxPages-1, seen.Lines); last > first {
			args["pages"] = fmt.Sprintf("%d-%d", first, last)
		}
	}
	r.Next = &NextCall{"Read", args}
	if unit == "line" && count {
		r.Fields = struct {
			Seen  int `json:"lines_seen"`
			Lines int `json:"total_lines,omitempty"`
		}{seen.Shown(), max(seen.Lines, 0)}
	}
}

// guardField names the guard that takes a change for an accident.
type guardField struct {
	Guard string `json:"guard"`
}

type modifiedFields struct {
	Diff   string `json:"diff,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	was    string
}

// Text shows what changed.
func (m modifiedFields) Text() string { return m.Diff }

type sizes struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
}
