package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// CheckpointDiffArgs is what a model may say to checkpoint_diff.
type CheckpointDiffArgs struct {
	ID      *string  `json:"id,omitempty"`
	Turn    *string  `json:"turn,omitempty"`
	Since   *string  `json:"since,omitempty"`
	Label   *string  `json:"label,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	Against *string  `json:"against,omitempty" enum:"now|after" default:"now" doc:"after: what the call itself left"`
}

func (a *CheckpointDiffArgs) check() error { return oneOf(a.ID, a.Turn, a.Since, a.Label) }

// CheckpointDiff is the payload of kind "checkpoint_diff".
type CheckpointDiff struct {
	Against string        `json:"against"`
	Files   []DiffedFile  `json:"files"`
	Added   int           `json:"added"`
	Removed int           `json:"removed"`
	Skipped []engine.Left `json:"skipped,omitempty"`
	// Denied counts paths that this session may not read today.
	Denied int `json:"denied,omitempty"`
	// Truncated: the diffs of later files were left out; their counts are true.
	Truncated bool `json:"truncated"`
}

// DiffedFile is one path of a checkpoint_diff.
type DiffedFile struct {
	Path    string `json:"path"`
	Change  string `json:"change"` // "created", "removed", "changed", "unchanged"
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	Diff    string `json:"diff,omitempty"`
}

func (*CheckpointDiff) Kind() string { return "checkpoint_diff" }
func (*CheckpointDiff) payload()     {}

// Text is the diffs, one after the other.
func (p *CheckpointDiff) Text() string {
	var b strings.Builder
	if len(p.Files)+len(p.Skipped) == 0 {
		b.WriteString("No changes\n")
	}
	for _, f := range p.Files {
		fmt.Fprintf(&b, "%s %s +%d -%d\n%s", f.Change, f.Path, f.Added, f.Removed, f.Diff)
	}
	for _, s := range p.Skipped {
		fmt.Fprintf(&b, "%s: %s\n", s.Path, s.Why)
	}
	if p.Truncated {
		b.WriteString("[more diffs are left out: use paths]\n")
	}
	if p.Denied > 0 {
		fmt.Fprintf(&b, "[%s not shown: out of reach]\n", plural(p.Denied, "path"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var checkpointDiffTool = define[CheckpointDiffArgs](Tool{
	Name:        "checkpoint_diff",
	Title:       "Compare with a checkpoint",
	Description: "Shows what changed since before a checkpoint's call.",
	Effect:      Reads,
}, runCheckpointDiff)

func runCheckpointDiff(ctx context.Context, s *Suite, c *engine.Call, a *CheckpointDiffArgs) (Payload, error) {
	since, err := when("since", a.Since)
	if err != nil {
		return nil, err
	}
	out := &CheckpointDiff{Against: or(value(a.Against), "now"), Files: []DiffedFile{}}
	files, left, denied, err := s.engine.Compare(ctx, c, checkpoint.Restore{
		ID: checkpoint.ID(strings.TrimSpace(value(a.ID))), Turn: value(a.Turn), Since: since, Label: value(a.Label), Paths: a.Paths,
	}, out.Against == "now")
	if err != nil {
		if r := noPoint(err, a.Turn, a.Label); r != nil {
			return nil, r
		}
		return nil, err
	}
	out.Skipped, out.Denied = left, denied
	room := int(s.readCap)
	for _, f := range files {
		d := DiffedFile{Path: f.Path, Change: "changed", Added: f.Added, Removed: f.Removed, Binary: f.Binary, Diff: f.Diff}
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
		out.Added, out.Removed = out.Added+f.Added, out.Removed+f.Removed
		out.Files = append(out.Files, d)
	}
	return out, nil
}

// noPoint is the refusal of a turn or a label that the session does not have; nil for any other error.
func noPoint(err error, turn, label *string) *Refusal {
	what, name := "turn", value(turn)
	if name == "" {
		what, name = "label", value(label)
	}
	if name == "" || !errors.Is(err, checkpoint.ErrNotFound) {
		return nil
	}
	return &Refusal{Reason: KindNotFound, Message: "this session has no " + what + " " + quote(name), Hint: "checkpoints_list shows the turns and labels of its checkpoints.",
		Next: &NextCall{"checkpoints_list", map[string]any{}}}
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
		fmt.Fprintf(&b, "%s since %s session %s\n", c.ID, c.Since, c.Session)
	}
	if f.More > 0 {
		fmt.Fprintf(&b, "and %d older\n", f.More)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ambiguous is the refusal of a label that several checkpoints carry.
func ambiguous(e *checkpoint.AmbiguousLabelError) *Refusal {
	const most = 20
	f := labelledFields{More: max(0, len(e.Carry)-most)}
	for _, c := range e.Carry[f.More:] {
		f.Carry = append(f.Carry, labelledRow{c.ID, c.Time.UTC().Format(time.RFC3339Nano), c.Session})
	}
	return &Refusal{Reason: KindNotUnique, Message: plural(len(e.Carry), "checkpoint") + " carry the label " + quote(e.Label) + "; nothing was chosen",
		Hint: "Say which one is meant: send its time as since, in the place of label.", Fields: f}
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
		return bad("send the id of a checkpoint from checkpoints_list", "%s; exactly one says which checkpoint is meant", given)
	}
	return nil
}
