package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/alternatives"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/lazy"
	"moltisfs/internal/refusal"
)

// CheckpointsListArgs are the arguments of checkpoints_list.
type CheckpointsListArgs struct {
	Limit        *int    `json:"limit,omitempty" min:"1" max:"100" default:"20"`
	PathContains *string `json:"path_contains,omitempty"`
	Path         *string `json:"file_path,omitempty" doc:"exactly this path"`
	Tool         *string `json:"tool,omitempty" doc:"only changes by this tool, or external"`
	Session      *string `json:"session,omitempty"`
	Turn         *string `json:"turn,omitempty"`
	Since        *string `json:"since,omitempty" doc:"a local time, one with a zone, or an age like 2h, 7d"`
	Until        *string `json:"until,omitempty"`
	Cursor       *string `json:"cursor,omitempty" doc:"next_cursor of the last answer"`
}

// Checkpoints is the payload of kind "checkpoints".
type Checkpoints struct {
	Count       int             `json:"count"`
	Checkpoints []CheckpointRow `json:"checkpoints"`
	// Denied counts paths that this session may not read today. They are not named, and a checkpoint
	// of nothing else is left out.
	Denied int    `json:"denied,omitempty"`
	Next   string `json:"next_cursor,omitempty"`
	Note   string `json:"note,omitempty"` // that there are none to come
}

// CheckpointRow is one checkpoint in a listing, in Moltis' names.
type CheckpointRow struct {
	ID         string   `json:"id"`
	CreatedAt  int64    `json:"createdAt"` // Unix seconds
	Reason     string   `json:"reason"`    // the tool; else the kind, as "external"
	SourcePath string   `json:"sourcePath"`
	SourceKind string   `json:"sourceKind"`
	Existed    bool     `json:"existed"`
	Paths      []string `json:"paths,omitempty"` // when there are several
	Label      string   `json:"label,omitempty"`
	Session    string   `json:"session,omitempty"` // when it is another than the caller's
	Turn       string   `json:"turn,omitempty"`
	Pinned     bool     `json:"pinned,omitempty"`
	Outcome    string   `json:"outcome,omitempty"`
	Purged     bool     `json:"purged,omitempty"` // old content was removed for good
	// NotStored says why old content never was in the store: "too_large", "excluded", ...
	NotStored string `json:"not_stored,omitempty"`
	Appended  int64  `json:"appended,omitempty"` // bytes, in place; below 0: they were cut off again
}

// what names the paths of the checkpoint: "/w/a and 2 more" for three.
func (c *CheckpointRow) what() string {
	if len(c.Paths) > 1 {
		return fmt.Sprintf("%s and %d more", edit.ShownPath(c.SourcePath), len(c.Paths)-1)
	}
	return edit.ShownPath(c.SourcePath)
}

// marks lists the names that a rewind can go by, and the pin, as " [turn t1, pinned]"; "" when there is none.
func (c *CheckpointRow) marks() string {
	var marks []string
	for _, m := range [][2]string{{"session ", c.Session}, {"turn ", c.Turn}, {"label ", c.Label}} {
		if m[1] != "" {
			marks = append(marks, m[0]+edit.ShownPath(m[1]))
		}
	}
	if c.Pinned {
		marks = append(marks, "pinned")
	}
	if len(marks) == 0 {
		return ""
	}
	return " [" + strings.Join(marks, ", ") + "]"
}

func (*Checkpoints) Kind() string     { return "checkpoints" }
func (*Checkpoints) payload()         {}
func (c *Checkpoints) noted() *string { return &c.Note }

// Text is a line a checkpoint, newest first. It holds all that a next call can be made from: some
// clients show the model nothing else.
func (p *Checkpoints) Text() string {
	var b lines
	b.add(p.Count == 0, "No checkpoints found\n")
	for _, c := range p.Checkpoints {
		fmt.Fprintf(&b, "%s %s %s %s", c.ID, time.Unix(c.CreatedAt, 0).UTC().Format(time.RFC3339),
			edit.ShownPath(c.Reason), c.what())
		b.add(!c.Existed, " (was not there)")
		b.add(c.Purged, " (purged)")
		b.add(c.Appended > 0, " (%d bytes appended)", c.Appended)
		b.add(c.Appended < 0, " (%d appended bytes taken back)", -c.Appended)
		b.add(c.NotStored != "", " (what was there is not stored: %s)", c.NotStored)
		b.WriteString(c.marks() + "\n")
	}
	b.add(p.Denied > 0, "[%s not shown: out of reach]\n", plural(p.Denied, "path"))
	b.add(p.Note != "", "[%s]\n", p.Note)
	b.add(p.Next != "", "[more: cursor %s]\n", p.Next)
	return strings.TrimSuffix(b.String(), "\n")
}

var checkpointsListTool = define[CheckpointsListArgs](toolRow{
	Name:        "checkpoints_list",
	Title:       "List checkpoints",
	Description: "Lists the states that checkpoint_restore can go back to, newest first.",
	Search:      dialect.Search{Wanted: true, Hint: "history of changes to files, list undo points"},
	aliases: slices.Concat(timeAliases, fileAliases, []args.Alias{
		{Theirs: maxNames + " n last", Ours: "limit"},
		{Theirs: "contains query search filter pathfilter substring pattern", Ours: "path_contains"},
		{Theirs: "toolname", Ours: "tool"},
		{Theirs: "sessionid", Ours: "session"},
		{Theirs: "before untiltime endtime olderthan", Ours: "until"},
		{Theirs: "nextcursor pagetoken nextpagetoken", Ours: "cursor"},
		{Theirs: verbNames, Says: "list checkpointslist", Hint: "leave it out"},
	}),
	refuses: checkpointRefusals,
}, runCheckpointsList)

func runCheckpointsList(ctx context.Context, s *Suite, c *engine.Call,
	a *CheckpointsListArgs) (Payload, error) {
	if a.Path != nil {
		if err := s.recorded(*a.Path); err != nil {
			return nil, err
		}
	}
	f := checkpoint.Filter{
		Path: value(a.Path), PathContains: strings.TrimSpace(value(a.PathContains)), Tool: value(a.Tool),
		Turn:    value(a.Turn),
		Session: value(a.Session), Limit: 20, Cursor: value(a.Cursor),
	}
	var names []string // of the path
	if f.Path != "" {
		names = c.Names(f.Path)
		f.Path, f.Also = names[0], names[1:]
	}
	f.NoReads = f.Path == "" && f.Tool == "" // copies that were kept of reads are listed only where they are looked for
	if a.Limit != nil {
		f.Limit = *a.Limit
	}
	var err error
	if f.Since, err = when("since", a.Since); err != nil {
		return nil, err
	}
	if f.Until, err = when("until", a.Until); err != nil {
		return nil, err
	}
	out := &Checkpoints{Checkpoints: []CheckpointRow{}}
	if !s.cfg.CheckpointBeforeMutation {
		out.Note = strings.TrimPrefix(refusal.Off, "; ")
	}
	hidden := map[string]bool{} // of a list, most paths come again and again
	for limit, pages := f.Limit, 0; ; pages++ {
		page, err := c.Checkpoints(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page.Checkpoints {
			s.listed(c, out, &page.Checkpoints[i], f, names, hidden)
		}
		// Changes of other sessions elsewhere fill no page.
		out.Next, f.Cursor, f.Limit = page.Next, page.Next, limit-len(out.Checkpoints)
		if page.Next == "" || f.Limit <= 0 || pages == maxPasses || ctx.Err() != nil {
			break
		}
	}
	out.Count = len(out.Checkpoints)
	return out, nil
}

// maxPasses bounds how many pages a list goes through for rows that are within reach.
const maxPasses = 50

// listed adds the row of the checkpoint cp to out, as far as its paths may be named. names are the names of the path
// that f asks for.
func (s *Suite) listed(c *engine.Call, out *Checkpoints, cp *checkpoint.Checkpoint,
	f checkpoint.Filter, names []string, hidden map[string]bool) {
	asked, denied := 0, 0
	cp.Changes = slices.DeleteFunc(cp.Changes, func(ch checkpoint.Recorded) bool {
		no, known := hidden[ch.Path]
		if !known {
			no = c.Denies(ch.Path)
			hidden[ch.Path] = no
		}
		switch {
		case no && ch.Role != checkpoint.RoleParent:
			denied++
		case !no && (f.Path == "" || slices.Contains(names, ch.Path)) &&
			strings.Contains(strings.ToLower(ch.Path), strings.ToLower(f.PathContains)):
			asked++
		}
		return no
	})
	switch {
	case asked > 0 || denied == 0:
		out.Checkpoints = append(out.Checkpoints, rowFor(c, cp))
	case f.Path != "" || f.PathContains != "":
		return // that there is one would answer whether there is such a name
	case cp.Session != c.Session:
		return // the work of another session somewhere else
	}
	out.Denied += denied
}

// rowFor is the row of the checkpoint c as the caller of call sees it.
func rowFor(call *engine.Call, c *checkpoint.Checkpoint) CheckpointRow {
	row := CheckpointRow{ID: string(c.ID), CreatedAt: c.Time.Unix(), Reason: cmp.Or(c.Tool, c.Kind),
		Label: c.Label, Turn: c.Turn, Pinned: c.Pinned}
	if c.Session != call.Session {
		row.Session = c.Session
	}
	if c.Outcome != checkpoint.Committed { // the usual outcome is not told
		row.Outcome = string(c.Outcome)
	}
	var paths []string
	for _, ch := range c.Changes {
		if ch.Role == checkpoint.RoleParent {
			continue
		}
		switch {
		case ch.Skipped == checkpoint.SkipPurged:
			row.Purged = true
		case ch.Role == checkpoint.RoleAppended && ch.Skipped == checkpoint.SkipAppended:
		case ch.Skipped != checkpoint.SkipParked && row.NotStored == "":
			row.NotStored = ch.Skipped
		}
		if ch.Role == checkpoint.RoleAppended {
			row.Appended = ch.After.Size - ch.Before.Size
		}
		paths = append(paths, ch.Path)
	}
	if len(paths) > 1 {
		row.Paths = paths
	}
	first := slices.IndexFunc(c.Changes, func(ch checkpoint.Recorded) bool { return ch.Role != checkpoint.RoleParent })
	if len(c.Changes) > 0 {
		ch := &c.Changes[max(first, 0)] // a parent where there are no others
		row.SourcePath, row.SourceKind, row.Existed = ch.Path, sourceKinds[ch.Before.Kind], ch.Before.Kind != checkpoint.Absent
	}
	return row
}

// sourceKinds are Moltis' words for the kinds of the objects that were there.
var sourceKinds = map[checkpoint.Kind]string{checkpoint.Dir: "directory", checkpoint.Absent: "",
	checkpoint.File: string(checkpoint.File), checkpoint.Symlink: string(checkpoint.Symlink)}

// CheckpointDiffArgs are the arguments of checkpoint_diff.
type CheckpointDiffArgs struct {
	ID      *string  `json:"id,omitempty"`
	Turn    *string  `json:"turn,omitempty"`
	Since   *string  `json:"since,omitempty" doc:"as in checkpoints_list"`
	Label   *string  `json:"label,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	Against *string  `json:"against,omitempty" enum:"now|after" default:"now" doc:"after: what the call itself left"`
}

func (a *CheckpointDiffArgs) check() error { return oneOf(a.ID, a.Turn, a.Since, a.Label) }

// CheckpointDiff is the payload of kind "checkpoint_diff".
type CheckpointDiff struct {
	Against string       `json:"against"`
	Files   []DiffedFile `json:"files"`
	Added   int          `json:"added"`
	Removed int          `json:"removed"`
	Skipped []Left       `json:"skipped,omitempty"`
	// Denied counts paths that this session may not read today.
	Denied int `json:"denied,omitempty"`
	// Truncated: the diffs of later files were left out; their counts are true. So may be the files behind those, More of them.
	Truncated bool   `json:"truncated"`
	More      int    `json:"more_files,omitempty"`
	Note      string `json:"note,omitempty"` // which names of arguments were taken for which
}

// DiffedFile is one path of a checkpoint_diff.
type DiffedFile struct {
	Path    string `json:"path"`
	Change  string `json:"change"` // "created", "removed", "changed", "unchanged"
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	Diff    string `json:"diff,omitempty"`
	// Odd lists parts of the diff that read as something else than they are: see approval.Odd.
	Odd []string `json:"odd,omitempty"`
}

func (*CheckpointDiff) Kind() string     { return "checkpoint_diff" }
func (*CheckpointDiff) payload()         {}
func (c *CheckpointDiff) noted() *string { return &c.Note }

// Text is the diffs, one after the other.
func (p *CheckpointDiff) Text() string {
	var b lines
	b.add(len(p.Files)+len(p.Skipped) == 0, "No changes\n")
	for _, f := range p.Files {
		fmt.Fprintf(&b, "%s %s +%d -%d\n%s", f.Change, edit.ShownPath(f.Path), f.Added, f.Removed, f.Diff)
		for _, odd := range f.Odd {
			b.WriteString("[" + odd + "]\n")
		}
	}
	for _, s := range p.Skipped {
		fmt.Fprintf(&b, "%s: %s\n", edit.ShownPath(s.Path), s.Why)
	}
	b.add(p.Truncated, "[more diffs are left out: use paths]\n")
	b.add(p.More > 0, "[%s not listed: use paths]\n", plural(p.More, "more file"))
	b.add(p.Denied > 0, "[%s not shown: out of reach]\n", plural(p.Denied, "path"))
	b.add(p.Note != "", "[%s]\n", p.Note)
	return strings.TrimSuffix(b.String(), "\n")
}

var checkpointDiffTool = define[CheckpointDiffArgs](toolRow{
	Name:        "checkpoint_diff",
	Title:       "Compare with a checkpoint",
	Description: "Shows what changed since before a checkpoint's call. Give one of id, turn, since, label.",
	Search:      dialect.Search{Wanted: true, Hint: "what changed, compare with before, show diff of changes"},
	aliases: slices.Concat(timeAliases, []args.Alias{
		{Theirs: idNames, Ours: "id"},
		{Theirs: fileNames + " filepaths files", Ours: "paths"},
		{Theirs: "compareto compare comparewith", Ours: "against"},
		{Theirs: verbNames, Says: "diff show", Hint: "leave it out"},
	}),
	refuses: checkpointRefusals,
}, runCheckpointDiff)

func runCheckpointDiff(ctx context.Context, s *Suite, c *engine.Call,
	a *CheckpointDiffArgs) (Payload, error) {
	in, err := s.meant(ctx, c, a.ID, a.Turn, a.Since, a.Label, a.Paths)
	if err != nil {
		return nil, err
	}
	out := &CheckpointDiff{Against: cmp.Or(value(a.Against), "now"), Files: []DiffedFile{}}
	files, left, denied, err := c.Compare(ctx, in, out.Against == "now")
	if err != nil {
		return nil, err
	}
	out.Skipped, out.Denied = leftOf(left), denied
	for _, f := range files {
		d := DiffedFile{Path: f.Path, Change: "changed", Added: f.Added, Removed: f.Removed,
			Binary: f.Binary, Diff: f.Diff, Odd: approval.Odd(f.Diff)}
		switch {
		case f.Before == checkpoint.Absent && f.After != checkpoint.Absent:
			d.Change = "created"
		case f.Before != checkpoint.Absent && f.After == checkpoint.Absent:
			d.Change = "removed"
		case f.Before == f.After && f.Diff == "" && !f.Binary:
			d.Change = "unchanged"
		}
		out.Added, out.Removed = out.Added+f.Added, out.Removed+f.Removed
		out.Files = append(out.Files, d)
	}
	all := out.Files
	show := func(k int) string { // so many files, and behind all of them so many of the diffs
		out.Files, out.More = slices.Clone(all[:min(k, len(all))]), max(0, len(all)-k)
		out.Truncated = out.More > 0
		for i := max(0, k-len(all)); i < len(out.Files); i++ {
			d := &out.Files[i]
			out.Truncated = out.Truncated || d.Diff != ""
			d.Diff, d.Odd = "", nil
		}
		return out.Text()
	}
	if show(2 * len(all)); s.client && s.page.Over(out.Text()) > 0 {
		k := s.page.Fit(2*len(all), show)
		show(k)
		if k -= len(all); k >= 0 { // the first diff that does not fit shows its beginning
			part := func(n int) string {
				out.Files[k].Diff = clip(all[k].Diff, n)
				return out.Text()
			}
			part(s.page.Fit(len(all[k].Diff), part))
		}
	}
	return out, nil
}

// ambiguousFields list the meanings of one name: the checkpoints that carry a label, or the beginnings of turns.
type ambiguousFields struct {
	Carry []ambiguousRow `json:"labelled,omitempty"`
	Begun []ambiguousRow `json:"begun,omitempty"`
	More  int            `json:"more,omitempty"`
}

type ambiguousRow struct {
	ID      checkpoint.ID `json:"id,omitempty"`
	Since   string        `json:"since"` // its time: sent as since, it means this one
	Session string        `json:"session,omitempty"`
	First   checkpoint.ID `json:"first,omitempty"` // of the turn
}

// Text is a line for each.
func (f ambiguousFields) Text() string {
	var b lines
	for _, r := range f.Carry {
		fmt.Fprintf(&b, "%s since %s session %s\n", r.ID, r.Since, edit.ShownPath(r.Session))
	}
	for _, r := range f.Begun {
		if fmt.Fprintf(&b, "since %s", r.Since); r.First != "" {
			fmt.Fprintf(&b, " first checkpoint %s", r.First)
		}
		b.WriteByte('\n')
	}
	b.add(f.More > 0, "and %d older\n", f.More)
	return strings.TrimSuffix(b.String(), "\n")
}

// ambiguous is the refusal of a label or a turn that may mean several.
func ambiguous(a *about, r *Refusal) {
	const most = 20
	var f ambiguousFields
	switch e := a.Facts.(type) {
	case *checkpoint.AmbiguousLabelError:
		f.More = max(0, len(e.Carry)-most)
		for _, c := range e.Carry[f.More:] {
			f.Carry = append(f.Carry, ambiguousRow{ID: c.ID, Since: stampOf(c.Time), Session: c.Session})
		}
	case *checkpoint.AmbiguousTurnError:
		f.More = max(0, len(e.Begun)-most)
		for _, b := range e.Begun[f.More:] {
			f.Begun = append(f.Begun, ambiguousRow{Since: stampOf(b.Time), First: b.First})
		}
	}
	r.Fields = f
}

// stampOf writes a time so that since finds it again.
func stampOf(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Partial says that a rewind is not whole: the store has lost the session's changes up to Until.
type Partial struct {
	Until string        `json:"until"`
	Since string        `json:"since,omitempty"` // a rewind since then is whole
	First checkpoint.ID `json:"first,omitempty"` // the checkpoint of that time
	Turn  string        `json:"turn,omitempty"`  // the oldest turn that is whole
	Turns int           `json:"turns"`           // how many are
}

func partialOf(l *checkpoint.Lost) *Partial {
	p := &Partial{Until: stampOf(l.Until), First: l.First, Turn: l.Turn, Turns: l.Turns}
	if !l.Since.IsZero() {
		p.Since = stampOf(l.Since)
	}
	return p
}

// Text names the points that a rewind can go back to.
func (p *Partial) Text() string {
	s := "Nothing that is left of this session's changes is whole."
	if p.Since != "" {
		s = "Whole since " + p.Since + ", " + string(p.First) + "."
	}
	if p.Turns > 0 {
		s += fmt.Sprintf(" %s can still be rewound to, the oldest is %s.", plural(p.Turns, "turn"),
			quote(p.Turn))
	}
	return s
}

type partialFields struct {
	Partial *Partial `json:"partial"`
}

func (f partialFields) Text() string { return f.Partial.Text() }

// meant is the restore that the arguments of a call name, of the paths that it names. An empty list of paths, and an empty path, would
// stand for all.
func (s *Suite) meant(ctx context.Context, c *engine.Call, id, turn, since, label *string, paths []string) (checkpoint.Restore, error) {
	in := checkpoint.Restore{Turn: value(turn), Label: value(label), Paths: paths}
	var err error
	if in.Since, err = when("since", since); err != nil {
		return in, err
	}
	if paths != nil && len(paths) == 0 {
		return in, bad("Leave paths out to mean all of them.", "paths is empty")
	}
	for _, p := range paths {
		if err := s.recorded(p); err != nil {
			return in, err
		}
	}
	in.ID, err = s.idOf(ctx, c, id)
	return in, err
}

// recorded refuses a path p that can't be one of the store's, because it is relative or passes . or .. on its way.
func (s *Suite) recorded(p string) error {
	whole := ""
	if filepath.IsAbs(p) || path.IsAbs(p) {
		if whole = filepath.Clean(p); strings.TrimRight(p, "/") == whole {
			return nil // a slash at the end says that a directory is meant
		}
	} else if readings := alternatives.Paths(p, s.cfg.WorkspaceRoot); len(readings) > 0 {
		whole = readings[len(readings)-1]
	}
	switch {
	case p == "":
		return bad("leave it out to mean all, or send an absolute path", "a path is empty")
	case whole == "":
		return bad("send an absolute path", "%s is not the absolute path of anything", quoteShort(p))
	}
	hint := "send it absolute and plain"
	if len(whole) < 200 { // a longer one would be cut
		hint += ": " + whole
	}
	return bad(hint, "a path is not spelled as checkpoints have theirs")
}

// oneOf checks that exactly one argument says which checkpoint is meant.
func oneOf(which ...*string) error {
	n := 0
	for _, s := range which {
		if strings.TrimSpace(value(s)) != "" {
			n++
		}
	}
	if n != 1 {
		given := "none of id, turn, since and label is given"
		if n > 1 {
			given = fmt.Sprintf("%d of id, turn, since and label are given", n)
		}
		return bad("send the id of a checkpoint from checkpoints_list", "%s; exactly one says which "+
			"checkpoint is meant", given)
	}
	return nil
}

// CheckpointRestoreArgs are the arguments of checkpoint_restore.
type CheckpointRestoreArgs struct {
	ID         *string  `json:"id,omitempty" doc:"undo this checkpoint's call; or undo, redo: this session's last"`
	Turn       *string  `json:"turn,omitempty" doc:"all since this turn began"`
	Since      *string  `json:"since,omitempty" doc:"or all since then"`
	Label      *string  `json:"label,omitempty"`
	Paths      []string `json:"paths,omitempty" doc:"only these"`
	Mode       *string  `json:"mode,omitempty" enum:"state|inverse" default:"state" doc:"inverse: take back this change, keep later ones"`
	OnConflict *string  `json:"on_conflict,omitempty" enum:"refuse|merge|force|skip" default:"refuse" doc:"for paths that others changed"`
	DryRun     *bool    `json:"dry_run,omitempty"`
	KeepTimes  *bool    `json:"keep_times,omitempty" doc:"restore modification times too"`
}

func (a *CheckpointRestoreArgs) dryRun() bool { return value(a.DryRun) }

func (a *CheckpointRestoreArgs) check() error {
	return oneOf(a.ID, a.Turn, a.Since, a.Label)
}

// CheckpointRestore is the payload of kind "checkpoint_restore".
type CheckpointRestore struct {
	Restored bool `json:"restored"`
	// Checkpoint is the restored checkpoint, in Moltis' names; UndoID takes the restore back.
	Checkpoint *CheckpointRow `json:"checkpoint"`
	UndoID     *string        `json:"undo_id"`
	Files      []RestoredFile `json:"files"`
	Skipped    []Left         `json:"skipped"`
	DirsMade   []string       `json:"dirs_made,omitempty"`    // with DryRun: would be
	DirsGone   []string       `json:"dirs_removed,omitempty"` // likewise
	DirsKept   []Left         `json:"dirs_kept,omitempty"`    // made by the changes that were taken back: something is in them, or they can't be removed
	// Outside are the checkpoints of changes outside of the tools since the point of a rewind. They are no part of it; each
	// can be restored.
	Outside []CheckpointRow `json:"outside,omitempty"`
	// Partial: retention had taken some of the changes that a forced rewind, or the undo of a run, was to take back.
	Partial *Partial     `json:"partial,omitempty"`
	Run     *RestoredRun `json:"run,omitempty"` // a script's, whose changes an undo took back together
	// More are files beyond those of Files: only a brief answer leaves some out.
	More int `json:"files_more,omitempty"`
	// Denied counts paths that this session may not read today. They are not named, and were left
	// alone.
	Denied int  `json:"denied,omitempty"`
	DryRun bool `json:"dry_run,omitempty"`
	// Unchanged: there was nothing to do, everything is as it was before the checkpoint already.
	Unchanged bool `json:"unchanged,omitempty"`
	// CheckpointSkipped says why the restore's own checkpoint does not hold all that it replaced.
	CheckpointSkipped string `json:"checkpoint_skipped,omitempty"`
	Warning           string `json:"warning,omitempty"`
	Note              string `json:"note,omitempty"` // which names of arguments were taken for which
}

// RestoredRun says which changes of a script an undo took back. First is Checkpoint.
type RestoredRun struct {
	Changes int           `json:"changes"`
	First   checkpoint.ID `json:"first"`
	Last    checkpoint.ID `json:"last"`
}

// RestoredFile tells the outcome of a restore for one path.
type RestoredFile struct {
	Path    string `json:"path"`
	Action  string `json:"action"` // "restored", "created", "removed", "merged", "unchanged"
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Trash   string `json:"trash,omitempty"` // a removed file's entry in the trash
	Whole   bool   `json:"whole,omitempty"` // moved to or from the trash with all it holds
	// Pieces of metadata, like "mode", "owner", "group", "xattr:user.x": restored, left because others changed them since,
	// and not settable.
	MetadataSet     []string `json:"metadata_set,omitempty"`
	MetadataStays   []string `json:"metadata_stays,omitempty"`
	MetadataDropped []string `json:"metadata_dropped,omitempty"`
	// LinksBroken counts the other names of the file, which keep the content from before the restore.
	LinksBroken int  `json:"links_broken,omitempty"`
	InPlace     bool `json:"in_place,omitempty"` // as Changed.InPlace
}

// line says it for people.
func (f *RestoredFile) line() string {
	s := fmt.Sprintf("%s %s +%d -%d", f.Action, edit.ShownPath(f.Path), f.Added, f.Removed)
	for _, m := range []struct {
		what   string
		pieces []string
	}{{"also restored", f.MetadataSet}, {"changed by others since, and left so", f.MetadataStays},
		{"could not be restored", f.MetadataDropped}} {
		if len(m.pieces) > 0 {
			s += "; " + m.what + ": " + shownPaths(m.pieces)
		}
	}
	if f.LinksBroken > 0 {
		s += fmt.Sprintf("; %d other hard links keep what it was", f.LinksBroken)
	}
	if f.InPlace {
		s += "; written in place"
	}
	return s + "\n"
}

// shownPaths lists names that agents may have made.
func shownPaths(names []string) string {
	var shown []string
	for _, n := range names {
		shown = append(shown, edit.ShownPath(n))
	}
	return strings.Join(shown, ", ")
}

// warn adds something that went wrong after the restore was made.
func (p *CheckpointRestore) warn(what string) { p.Warning = what }

func (*CheckpointRestore) Kind() string     { return "checkpoint_restore" }
func (*CheckpointRestore) payload()         {}
func (c *CheckpointRestore) noted() *string { return &c.Note }

// mostFilesTold is how many files a text, or a brief answer, names.
const mostFilesTold = 20

// brief is the answer with the first files alone: it says itself how many more there are.
func (p *CheckpointRestore) brief() (Payload, []string) {
	out := *p
	if out.More = max(len(p.Files)-mostFilesTold, 0); out.More > 0 {
		out.Files = p.Files[:mostFilesTold]
	}
	if c := p.Checkpoint; c != nil && len(c.Paths) > mostFilesTold {
		row := *c
		row.Paths = nil // Files has them
		out.Checkpoint = &row
	}
	return &out, nil
}

// Text is a line a path, of the first ones.
func (p *CheckpointRestore) Text() string {
	var b lines
	if p.Unchanged && p.Checkpoint == nil {
		b.WriteString("Of what this session changed, nothing had to be changed: it is as it was " +
			"already.\n")
	} else if p.Unchanged {
		b.WriteString("Nothing had to be changed: everything is as it was already.\n")
	} else if p.DryRun {
		b.WriteString("Nothing was changed; the restore would be:\n")
	}
	if p.Partial != nil {
		fmt.Fprintf(&b, "This is not what was there: retention had taken what this session changed up "+
			"to %s, and each path goes back as far as the store can.\n", p.Partial.Until)
	}
	if p.Run != nil {
		fmt.Fprintf(&b, "All that a script's run did, %s:\n", plural(p.Run.Changes, "change"))
	}
	const most = 10 // directories
	told, more := 0, map[string]int{}
	for _, f := range p.Files { // thousands that were the same would hide what was done
		line := f.line()
		same := line == "unchanged "+edit.ShownPath(f.Path)+" +0 -0\n"
		if told == mostFilesTold || same && len(p.Files) > mostFilesTold {
			more[f.Action]++
			continue
		}
		told++
		b.WriteString(line)
	}
	for _, action := range slices.Sorted(maps.Keys(more)) {
		fmt.Fprintf(&b, "and %d more %s\n", more[action], action)
	}
	for _, s := range p.Skipped {
		fmt.Fprintf(&b, "skipped %s (%s)\n", edit.ShownPath(s.Path), s.Why)
	}
	for _, d := range []struct {
		what string
		dirs []string
	}{{"made", p.DirsMade}, {"removed", p.DirsGone}} {
		for _, dir := range d.dirs[:min(most, len(d.dirs))] {
			fmt.Fprintf(&b, "%s the directory %s\n", d.what, edit.ShownPath(dir))
		}
		if more := len(d.dirs) - most; more > 0 {
			fmt.Fprintf(&b, "and %d more directories %s\n", more, d.what)
		}
	}
	for _, d := range p.DirsKept {
		fmt.Fprintf(&b, "kept %s (%s)\n", edit.ShownPath(d.Path), d.Why)
	}
	for _, c := range p.Outside {
		fmt.Fprintf(&b, "changed outside of the tools, and left so: %s; to take that back, restore %s\n", c.what(), c.ID)
	}
	b.add(p.Denied > 0, "[%s left alone and not named: out of reach]\n", plural(p.Denied, "path"))
	b.add(p.CheckpointSkipped != "", "What was replaced is not all in a checkpoint: %s.\n", p.CheckpointSkipped)
	b.add(p.Warning != "", "%s\n", p.Warning)
	b.add(p.Note != "", "[%s]\n", p.Note)
	if p.UndoID != nil {
		fmt.Fprintf(&b, "To undo this restore, restore %s\n", *p.UndoID)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var checkpointRestoreTool = define[CheckpointRestoreArgs](toolRow{
	Name:  "checkpoint_restore",
	Title: "Undo changes",
	Description: "Restores files to what they were before a checkpoint's call; can itself be undone " +
		"by undo_id. Give one of id, turn, since, label.",
	Changes: true,
	Search:  dialect.Search{Wanted: true, Hint: "undo, redo, revert, roll back or restore changes to files"},
	Follows: engine.Changing,
	OwnTime: true,
	aliases: slices.Concat(timeAliases, []args.Alias{
		{Theirs: idNames, Ours: "id"},
		{Theirs: fileNames + " filepaths files", Ours: "paths"},
		{Theirs: "preview simulate", Ours: "dry_run"},
		{Theirs: "conflict conflicts conflictstrategy", Ours: "on_conflict"},
		{Theirs: "preservetimes keepmtime preservemtime", Ours: "keep_times"},
		{Theirs: "to target version", Ours: "id", Turn: args.Offered},
		{Theirs: "force overwrite", Says: "false", Hint: "with on_conflict: force, what others changed is overwritten"},
		{Theirs: "confirm confirmed yes acknowledge", Says: "true", Hint: "leave it out"},
		{Theirs: verbNames, Says: "restore rollback revert", Hint: "leave it out"},
	}),
	refuses: checkpointRefusals,
}, runCheckpointRestore)

func runCheckpointRestore(ctx context.Context, s *Suite, c *engine.Call,
	a *CheckpointRestoreArgs) (Payload, error) {
	in, err := s.meant(ctx, c, a.ID, a.Turn, a.Since, a.Label, a.Paths)
	if err != nil {
		return nil, err
	}
	in.Mode = value(a.Mode)
	o := engine.RestoreOptions{OnConflict: value(a.OnConflict), DryRun: value(a.DryRun),
		KeepTimes: value(a.KeepTimes)}
	var done *engine.Restored
	switch id := in.ID; {
	case isUndoOrRedo(string(id)) && (len(a.Paths) > 0 ||
		value(a.Mode) == checkpoint.ModeInverse):
		return nil, bad("send the id of a checkpoint instead", "%s takes a whole change back, without "+
			"paths and mode", id)
	case a.fromTrash():
		if len(a.Paths) > 0 || a.Mode != nil || cmp.Or(value(a.OnConflict),
			engine.OnConflictRefuse) != engine.OnConflictRefuse {
			return nil, bad("send the id alone", "what is in the trash comes back whole, and never over "+
				"something that is there")
		}
		done, err = c.Untrash(ctx, checkpoint.TrashID(id), o.DryRun)
	case id == "undo":
		done, err = c.Undo(ctx, o)
	case id == "redo":
		done, err = c.Redo(ctx, o)
	default:
		done, err = c.Restore(ctx, in, o)
	}
	if err != nil {
		return nil, err
	}
	out := &CheckpointRestore{UndoID: pointer(done.Checkpoint), Files: []RestoredFile{},
		Skipped: []Left{}, DryRun: done.DryRun,
		Denied: done.Denied, DirsMade: s.named(c, done.Made), DirsGone: s.named(c, done.Dropped),
		CheckpointSkipped: done.Done.Skipped}
	out.Skipped = append(out.Skipped, leftOf(done.Skipped)...)
	for _, k := range done.Kept {
		if !c.Denies(k.Path) {
			out.DirsKept = append(out.DirsKept, Left{k.Path, refusal.Why(k.Why)})
		}
	}
	if done.Plan.Lost != nil {
		out.Partial = partialOf(done.Plan.Lost)
	}
	skipped := map[string]bool{}
	for _, l := range done.Skipped {
		skipped[l.Path] = true
	}
	trashed := map[string]string{}
	for _, t := range done.Trashed {
		trashed[t.Path] = string(t.ID)
	}
	for _, t := range done.Targets {
		if !skipped[t.True] {
			f := restoredFile(t, done.Merged[t.True], done.DryRun)
			f.Trash = trashed[t.True]
			of := done.Metadata[t.True]
			f.MetadataSet, f.MetadataStays, f.MetadataDropped = of.Set, of.Stays, of.Dropped
			if t.Published != nil {
				for _, piece := range t.Published.Dropped {
					if !slices.Contains(f.MetadataDropped, piece) {
						f.MetadataDropped = append(f.MetadataDropped, piece)
					}
				}
			}
			out.Files = append(out.Files, f)
		}
	}
	for _, mv := range done.Moved {
		f := RestoredFile{Path: mv.Path, Action: "created", Whole: true}
		if !mv.Back {
			f.Action, f.Trash = "removed", string(mv.Entry.ID)
		}
		if mv.To != "" {
			out.Files = append(out.Files, RestoredFile{Path: mv.To, Action: "created", Whole: true})
		}
		out.Files = append(out.Files, f)
	}
	if of := done.Plan; of.UndoOf != "" && of.RestoreOf != "" {
		out.Run = &RestoredRun{len(of.Undoes), of.RestoreOf, of.UndoOf}
	}
	if done.Passed {
		again := "restore " + string(done.Plan.UndoOf)
		if out.Run != nil {
			again = "redo and undo"
		}
		out.warn("Nothing of it was taken back; the next " + string(in.ID) + " goes on with the change beyond it. " +
			"To try this one again, " + again + ".")
	}
	out.Unchanged = done.Idle && len(out.Skipped)+out.Denied == 0
	// A file that is there already counts as restored.
	out.Restored = !out.DryRun && (done.Checkpoint != "" || len(out.Skipped)+out.Denied == 0)
	for _, of := range done.Outside {
		if row, err := c.Checkpoint(ctx, of); err == nil {
			if got, hidden := s.visibleRow(c, row); !hidden {
				out.Outside = append(out.Outside, got)
			}
		}
	}
	if of := cmp.Or(string(done.Plan.RestoreOf), string(done.Plan.UndoOf)); a.ID != nil && of != "" {
		if row, err := c.Checkpoint(ctx, checkpoint.ID(of)); err == nil {
			got, _ := s.visibleRow(c, row)
			out.Checkpoint = &got
		}
	}
	return out, nil
}

// visibleRow is the row of a checkpoint without the paths that are denied today. hidden says that
// there are no others.
func (s *Suite) visibleRow(c *engine.Call, cp *checkpoint.Checkpoint) (row CheckpointRow,
	hidden bool) {
	n := len(cp.Changes)
	cp.Changes = slices.DeleteFunc(cp.Changes, func(ch checkpoint.Recorded) bool { return c.Denies(ch.Path) })
	return rowFor(c, cp), len(cp.Changes) == 0 && n > 0
}

// named gives the paths that this session may read today.
func (s *Suite) named(c *engine.Call, paths []string) (out []string) {
	for _, p := range paths {
		if !c.Denies(p) {
			out = append(out, p)
		}
	}
	return out
}

// isUndoOrRedo says that the id is undo or redo: of a session's newest change.
func isUndoOrRedo(id string) bool { return id == "undo" || id == "redo" }

// fromTrash reports whether the id is one of the trash, from which an entry comes back whole or not at all.
func (a *CheckpointRestoreArgs) fromTrash() bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(value(a.ID))), "tr-")
}

// moments adds the state of a restore to that of a call.
func (a *CheckpointRestoreArgs) moments(c engine.Cause, set func(name string, is bool)) {
	set("restore", true)
	set("trash", a.fromTrash())
	set("undo", isUndoOrRedo(strings.TrimSpace(value(a.ID))) || c == engine.PartialHistory && a.ID != nil)
	set("merging", value(a.OnConflict) == engine.OnConflictMerge || value(a.Mode) == checkpoint.ModeInverse)
}

func restoredFile(t *engine.Target, merged, dry bool) RestoredFile {
	f := RestoredFile{Path: t.True}
	f.Added, f.Removed = engine.Counts(t)
	if t.Published != nil {
		f.LinksBroken = t.Published.LinksBroken
	} else if dry && t.After.Kind == guardfs.KindFile && t.Before.Info.Kind == guardfs.KindFile &&
		!t.Unchanged() {
		f.LinksBroken = max(int(t.Before.Info.Links)-1, 0)
	}
	f.InPlace = t.InPlace
	switch {
	case !dry && t.Published == nil, dry && t.Unchanged():
		f.Action = "unchanged"
	case merged:
		f.Action = "merged"
	case t.After.Kind == guardfs.KindAbsent:
		f.Action = "removed"
	case !t.Before.Exists:
		f.Action = "created"
	default:
		f.Action = "restored"
	}
	return f
}

// Left is a path that a restore left alone, and why.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

func leftOf(blocked []engine.Blocked) (out []Left) {
	for _, b := range blocked {
		out = append(out, Left{b.Path, refusal.Why(b.Why)})
	}
	return out
}

// Conflict is a path that stands against a restore.
type Conflict struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	Diff string `json:"diff,omitempty"` // from the content in the store to the file
}

// conflictFields lists the paths that stand against a restore.
type conflictFields struct {
	Conflicts []Conflict `json:"conflicts"`
}

// Text names the paths and shows what changed.
func (f conflictFields) Text() string {
	var b strings.Builder
	for _, c := range f.Conflicts {
		b.WriteString(edit.ShownPath(c.Path) + ": " + c.Why + "\n" + c.Diff)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// conflicts lists the changes of others that a restore would lose.
func conflicts(a *about, r *Refusal) {
	const most = 20
	blocked := factsOf[[]engine.Blocked](a)
	f := conflictFields{}
	for _, b := range blocked[:min(most, len(blocked))] {
		f.Conflicts = append(f.Conflicts, Conflict{b.Path, refusal.Why(b.Why), clip(b.Diff, maxDiff/4)})
	}
	r.Fields, r.Next = f, a.skipping()
}

// hidden says how many paths are out of reach, which must not be named.
func hidden(a *about, r *Refusal) {
	r.Next, r.Fields = a.skipping(), struct {
		Denied int `json:"denied"`
	}{factsOf[int](a)}
	if a.now["undo"] != "" {
		listing(a, r)
	}
}

// timeForms are the forms of a time besides an age, with fractions of a second or without: RFC 3339, and other
// spellings of it, with a zone and without.
var timeForms = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00",
	"2006-01-02 15:04:05 Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// howToSayWhen is a hint.
const howToSayWhen = "2026-11-21T10:00:00Z, in local time 2026-11-21 10:00 or 2026-11-21, or an " +
	"age like 2h or 7d"

// ParseTime reads a point in time as since and until have it. With a zone it is in that one;
// without, or a day alone, in that of now. An age says how long before now, written as a
// [config.Duration].
func ParseTime(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			if t.IsZero() { // which elsewhere means that none is given
				t = t.Add(1)
			}
			return t, nil
		}
	}
	var age config.Duration
	if err := age.UnmarshalText([]byte(s)); err == nil && age >= 0 {
		return now.Add(-time.Duration(age)), nil
	}
	return time.Time{}, errors.New("neither a time nor an age")
}

// when reads an argument that is a point in time, or an age. It is zero where there is none.
func when(name string, s *string) (time.Time, error) {
	if s == nil || *s == "" {
		return time.Time{}, nil
	}
	t, err := ParseTime(*s, time.Now())
	if err != nil {
		return t, bad("send a time like "+howToSayWhen, "%s is %s, %v", name, quoteShort(*s), err)
	}
	return t, nil
}

// hexID is an id of Moltis.
var hexID = lazy.Regexp(`^[0-9a-f]{32}$`)

// idOf is the checkpoint that a call names: by its id, or by the one that it had in Moltis, from
// where it was imported.
func (s *Suite) idOf(ctx context.Context, c *engine.Call, given *string) (checkpoint.ID, error) {
	id := strings.TrimSpace(value(given))
	if !hexID().MatchString(id) {
		return checkpoint.ID(id), nil
	}
	page, err := c.Checkpoints(ctx, checkpoint.Filter{Label: "moltis:" + id, Limit: 1})
	if err == nil && len(page.Checkpoints) == 0 {
		err = bad("take an id from checkpoints_list; moltis-fs store import brings in those of Moltis",
			"%s is an id of Moltis, and no checkpoint was imported under it", id)
	}
	if err != nil {
		return "", err
	}
	return page.Checkpoints[0].ID, nil
}

// checkpointRefusals add to the refusals of the checkpoint tools.
var checkpointRefusals = map[engine.Cause]func(*about, *Refusal){
	engine.BadID: listing, engine.BadRestore: listing, engine.NothingToUndo: listing,
	engine.NoCheckpoint: func(a *about, r *Refusal) {
		if a.now["trash"] == "" {
			listing(a, r)
		}
	},
	engine.AmbiguousLabel: ambiguous, engine.AmbiguousTurn: ambiguous,
	engine.PartialHistory: func(a *about, r *Refusal) {
		r.Fields = partialFields{partialOf(&factsOf[*checkpoint.PartialError](a).Lost)}
	},
	engine.Conflicts: conflicts, engine.Hidden: hidden,
	engine.NotStored: ofPath, engine.NoTrash: ofPath, engine.NotInPlan: ofPath,
	engine.WouldLose: skipsPath, engine.NotPermitted: skipsPath, engine.Fixed: skipsPath, engine.DiskReadOnly: skipsPath, engine.ReadOnly: skipsPath,
}

func listing(_ *about, r *Refusal) { r.Next = &NextCall{"checkpoints_list", map[string]any{}} }

func skipsPath(a *about, r *Refusal) { a.skips(r) }
