package tools

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
)

// CheckpointDiffArgs is what a model may say to checkpoint_diff.
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
	// Truncated: the diffs of later files were left out; their counts are true.
	Truncated bool   `json:"truncated"`
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
	// Odd says what in the diff reads as something else than it is: see approval.Odd.
	Odd []string `json:"odd,omitempty"`
}

func (*CheckpointDiff) Kind() string { return "checkpoint_diff" }
func (*CheckpointDiff) payload()     {}
func (*CheckpointDiff) diffs()       {}

// Text is the diffs, one after the other.
func (p *CheckpointDiff) Text() string {
	var b strings.Builder
	if len(p.Files)+len(p.Skipped) == 0 {
		b.WriteString("No changes\n")
	}
	for _, f := range p.Files {
		fmt.Fprintf(&b, "%s %s +%d -%d\n%s", f.Change, edit.ShownPath(f.Path), f.Added, f.Removed, f.Diff)
		for _, odd := range f.Odd {
			b.WriteString("[" + odd + "]\n")
		}
	}
	for _, s := range p.Skipped {
		fmt.Fprintf(&b, "%s: %s\n", edit.ShownPath(s.Path), s.Why)
	}
	if p.Truncated {
		b.WriteString("[more diffs are left out: use paths]\n")
	}
	if p.Denied > 0 {
		fmt.Fprintf(&b, "[%s not shown: out of reach]\n", plural(p.Denied, "path"))
	}
	if p.Note != "" {
		b.WriteString("[" + p.Note + "]\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var checkpointDiffTool = define[CheckpointDiffArgs](Tool{
	Name:        "checkpoint_diff",
	Title:       "Compare with a checkpoint",
	Description: "Shows what changed since before a checkpoint's call. Give one of id, turn, since, label.",
	Effect:      Reads,
	Search:      dialect.Search{Wanted: true, Hint: "what changed, compare with before, show diff of changes"},
	aliases: slices.Concat(timeAliases, []args.Alias{
		{Theirs: idNames, Ours: "id"},
		{Theirs: fileNames + " filepaths files", Ours: "paths"},
		{Theirs: "compareto compare comparewith", Ours: "against"},
		{Theirs: verbNames, Says: "diff show", Hint: "leave it out"},
	}),
	answers: []Payload{&CheckpointDiff{}},
}, runCheckpointDiff, func(path string, _ bool) CheckpointDiffArgs {
	return CheckpointDiffArgs{Since: new("1h"), Paths: []string{path}}
})

func runCheckpointDiff(ctx context.Context, s *Suite, c *engine.Call,
	a *CheckpointDiffArgs) (Payload, error) {
	since, err := when("since", a.Since)
	if err != nil {
		return nil, err
	}
	if err := s.only("checkpoint_diff", a, a.Paths); err != nil {
		return nil, err
	}
	id, err := s.idOf(ctx, c, a.ID)
	if err != nil {
		return nil, err
	}
	out := &CheckpointDiff{Against: cmp.Or(value(a.Against), "now"), Files: []DiffedFile{}}
	files, left, denied, err := s.engine.Compare(ctx, c, checkpoint.Restore{
		ID: id, Turn: value(a.Turn), Since: since,
		Label: value(a.Label), Paths: a.Paths,
	}, out.Against == "now")
	if err != nil {
		return nil, err
	}
	out.Skipped, out.Denied = leftOf(left), denied
	room := s.page.Bytes
	for _, f := range files {
		d := DiffedFile{Path: f.Path, Change: "changed", Added: f.Added, Removed: f.Removed,
			Binary: f.Binary, Diff: f.Diff}
		switch {
		case f.Before == checkpoint.Absent && f.After != checkpoint.Absent:
			d.Change = "created"
		case f.Before != checkpoint.Absent && f.After == checkpoint.Absent:
			d.Change = "removed"
		case f.Before == f.After && f.Diff == "" && !f.Binary:
			d.Change = "unchanged"
		}
		if room -= len(d.Diff); room < 0 && d.Diff != "" {
			d.Diff, out.Truncated = "", true
		}
		d.Odd = approval.Odd(d.Diff)
		out.Added, out.Removed = out.Added+f.Added, out.Removed+f.Removed
		out.Files = append(out.Files, d)
	}
	return out, nil
}

// labelledFields lists who carries a label.
type labelledFields struct {
	Carry []labelledRow `json:"labelled"`
	More  int           `json:"more,omitempty"`
}

type labelledRow struct {
	ID      checkpoint.ID `json:"id"`
	Since   string        `json:"since"` // its time: as since it says what the label was to say
	Session string        `json:"session"`
}

// Text is a line a checkpoint.
func (f labelledFields) Text() string {
	var b strings.Builder
	for _, c := range f.Carry {
		fmt.Fprintf(&b, "%s since %s session %s\n", c.ID, c.Since, edit.ShownPath(c.Session))
	}
	if f.More > 0 {
		fmt.Fprintf(&b, "and %d older\n", f.More)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ambiguousLabel is the refusal of a label that several checkpoints carry.
func ambiguousLabel(a *about, r *Refusal) {
	e := factsOf[*checkpoint.AmbiguousLabelError](a)
	const most = 20
	f := labelledFields{More: max(0, len(e.Carry)-most)}
	for _, c := range e.Carry[f.More:] {
		f.Carry = append(f.Carry, labelledRow{c.ID, c.Time.UTC().Format(time.RFC3339Nano), c.Session})
	}
	r.Fields = f
}

// begunFields lists the beginnings of the turns of one name.
type begunFields struct {
	Begun []begunRow `json:"begun"`
	More  int        `json:"more,omitempty"`
}

type begunRow struct {
	Since string        `json:"since"` // as since it says what turn was to say
	First checkpoint.ID `json:"first,omitempty"`
}

// Text is a line a beginning.
func (f begunFields) Text() string {
	var b strings.Builder
	for _, r := range f.Begun {
		if fmt.Fprintf(&b, "since %s", r.Since); r.First != "" {
			fmt.Fprintf(&b, " first checkpoint %s", r.First)
		}
		b.WriteByte('\n')
	}
	if f.More > 0 {
		fmt.Fprintf(&b, "and %d older\n", f.More)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ambiguousTurn is the refusal of a turn whose name was used several times.
func ambiguousTurn(a *about, r *Refusal) {
	e := factsOf[*checkpoint.AmbiguousTurnError](a)
	const most = 20
	f := begunFields{More: max(0, len(e.Begun)-most)}
	for _, b := range e.Begun[f.More:] {
		f.Begun = append(f.Begun, begunRow{stampOf(b.Time), b.First})
	}
	r.Fields = f
}

// stampOf writes a time so that since finds it again.
func stampOf(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Partial says that a rewind is not whole: the store does not know any more what the session
// changed up to Until.
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

// Text says what can be rewound to.
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

// partial is the refusal of a rewind, or of a look at one, that would not be whole.
func partial(a *about, r *Refusal) {
	r.Fields = partialFields{partialOf(&factsOf[*checkpoint.PartialError](a).Lost)}
}

// only checks the paths that a call is to be about, each as the store knows it. An empty path would
// stand for all.
func (s *Suite) only(tool string, args any, paths []string) error {
	if paths != nil && len(paths) == 0 {
		return bad("Leave paths out to mean all of them.", "paths is empty")
	}
	for i, p := range paths {
		r := s.asRecorded(p)
		if r == nil {
			continue
		}
		if whole := s.spelled(p); whole != "" {
			to := slices.Clone(paths)
			to[i] = whole
			r.Next = again(tool, args, map[string]any{"paths": to})
		}
		return r
	}
	return nil
}

// asRecorded refuses a path that can't be one of the store's, because it is relative or passes . or
// ..; nil when it can.
func (s *Suite) asRecorded(p string) *Refusal {
	r := &Refusal{Reason: KindBadRequest, FilePath: p, Message: quotePath(p) +
		" is not the absolute path of anything", Hint: "Send an absolute path."}
	switch whole := s.spelled(p); {
	case p == "":
		r.Message, r.Hint = "a path is empty", "Leave it out to mean all, or send an absolute path."
	case whole == p:
		return nil
	case whole != "":
		r.Message, r.Hint = quotePath(p)+" is not spelled as checkpoints have their paths", "Send it "+
			"absolute and plain: "+fmt.Sprintf("%.1000s", whole)
	}
	return r
}

// spelled is p as a checkpoint would have it; "" when that can't be told.
func (s *Suite) spelled(p string) string {
	if !filepath.IsAbs(p) && !path.IsAbs(p) {
		return s.absolute(p)
	}
	clean := filepath.Clean(p)
	if strings.TrimRight(p, "/") == clean {
		return p // a slash at the end says that a directory is meant
	}
	return clean
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
