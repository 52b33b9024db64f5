package tools

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"moltisfs/internal/alternatives"
	"moltisfs/internal/approval"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/edit/guard"
	"moltisfs/internal/engine"
)

// Hunk is one item of Claude Code's structuredPatch: OldStart and NewStart from 1, OldLines, NewLines, and Lines, which start with ' ', '+' or
// '-'. They are without their line break, and a "\ No newline at end of file" line follows one that has none. It is [diff.Hunk].
type Hunk = diff.Hunk

// Changed has the fields that the payload of every change has.
type Changed struct {
	// SHA256 is of the content after the change: of a Write, and of an edit that sent expected_hash.
	SHA256  string `json:"sha256,omitempty"`
	Added   int    `json:"added"`   // lines
	Removed int    `json:"removed"` // lines
	// Patch has one line of context where lines were only added, or only removed. It is empty for a new
	// file and for no change.
	Patch []Hunk `json:"structuredPatch"`
	// PatchTruncated: Patch ends before the first hunk that would make it too long. Added and Removed
	// count all.
	PatchTruncated bool `json:"patch_truncated,omitempty"`
	Unchanged      bool `json:"unchanged,omitempty"`
	DryRun         bool `json:"dry_run,omitempty"`

	snippet string // the changed region, numbered, for the text

	// LinksBroken counts the other names of the file, which keep the old content.
	LinksBroken int      `json:"links_broken,omitempty"`
	Dropped     []string `json:"metadata_dropped,omitempty"` // pieces of metadata that could not be carried over
	// InEditor: it is the unsaved text of the user's editor that was changed, not the disk.
	InEditor bool `json:"in_editor,omitempty"`
	// InPlace: the file was written in place, since its directory does not let it be exchanged or it is a mount point.
	InPlace bool `json:"in_place,omitempty"`
	// CheckpointSkipped says why a checkpoint that is on does not hold this change.
	CheckpointSkipped string   `json:"checkpoint_skipped,omitempty"`
	ParentsMade       []string `json:"parents_made,omitempty"`
	// ChangedMeanwhile is a diff of the changes of others since this session read the file.
	ChangedMeanwhile string `json:"changed_meanwhile,omitempty"`
	Note             string `json:"note,omitempty"` // which names of arguments were taken for which
	// Warning is something an operator should hear of; the change is done.
	Warning string `json:"warning,omitempty"`
}

// The bounds of a patch in an answer; the counts stay true.
const (
	maxPatchLines = 400
	maxPatchBytes = 36 << 10
)

func changed(done *engine.Done, t *engine.Target) Changed {
	hunks := engine.Hunks(t)
	ch := Changed{SHA256: t.After.Hash, Patch: []Hunk{}, DryRun: done.DryRun,
		CheckpointSkipped: done.Skipped, ParentsMade: done.Made}
	ch.Added, ch.Removed = diff.Counts(hunks)
	ch.InEditor, ch.InPlace = t.Unsaved(), t.InPlace
	ch.Unchanged = t.Before.Exists && t.Before.Hash == t.After.Hash
	if t.Before.Exists {
		ch.Patch, ch.PatchTruncated = capHunks(hunks)
	}
	if p := t.Published; p != nil {
		ch.LinksBroken, ch.Dropped = p.LinksBroken, p.Dropped
	}
	return ch
}

// unlessAsked drops the hash of an edit unless the call sent an expected_hash: it is a sixth of the answer.
func (c *Changed) unlessAsked(expected *string) {
	if expected == nil {
		c.SHA256 = ""
	}
}

// capHunks keeps the first hunks that fit, each of them whole. Never nil: an empty patch is [] in
// JSON.
func capHunks(hunks []diff.Hunk) (out []Hunk, truncated bool) {
	out = []Hunk{}
	lines, size := 0, 0
	for _, h := range hunks {
		lines += len(h.Lines)
		for _, l := range h.Lines {
			size += len(l)
			if size <= maxPatchBytes {
				size += jsonSize(l) - len(l)
			}
		}
		if lines > maxPatchLines || size > maxPatchBytes {
			return out, true
		}
		out = append(out, tight(h))
	}
	return out, false
}

// tight is h with the context lines that show its place: none if it both removes and adds, else one on either side.
// The program that made the change knows the place.
func tight(h diff.Hunk) diff.Hunk {
	has := func(sign byte) bool {
		return slices.ContainsFunc(h.Lines, func(l string) bool { return l[0] == sign })
	}
	context := 1
	if has('+') && has('-') {
		context = 0
	}
	changes := func(l string) bool { return l[0] == '+' || l[0] == '-' }
	from, last := max(0, slices.IndexFunc(h.Lines, changes)-context), len(h.Lines)-1
	for !changes(h.Lines[last]) {
		last--
	}
	to := last + 1 // with its context, and a "\ No newline" line behind either
	for n := 0; to < len(h.Lines) && (n < context || h.Lines[to][0] == '\\'); to++ {
		if h.Lines[to][0] == ' ' {
			n++
		}
	}
	out := diff.Hunk{OldStart: h.OldStart + from, NewStart: h.NewStart + from, Lines: h.Lines[from:to]}
	for _, l := range out.Lines {
		if l[0] == ' ' || l[0] == '-' {
			out.OldLines++
		}
		if l[0] == ' ' || l[0] == '+' {
			out.NewLines++
		}
	}
	return out
}

// region shows the lines that a change has made, numbered; around what it only took away, the lines
// beside it.
func region(hunks []diff.Hunk, number func(line int) string) string {
	short := make([]diff.Hunk, len(hunks))
	for i, h := range hunks {
		short[i] = tight(h)
	}
	return diff.Snippet(short, number)
}

func (c *Changed) dry() string {
	if c.DryRun {
		return "would be "
	}
	return ""
}

// notes are the facts that a model must not miss, one a line.
func (c *Changed) notes() string {
	var b lines
	b.add(c.InEditor, "\nIt is the unsaved text in the user's editor; saving is up to that.")
	b.add(c.InPlace, "\nIt is written in place: where it is it can't be exchanged. For a moment others may see a mixture.")
	b.add(c.PatchTruncated, "\nThe patch is not shown whole: +%d -%d lines.", c.Added, c.Removed)
	b.add(c.LinksBroken > 0, "\n%d other hard links keep the old content.", c.LinksBroken)
	b.add(len(c.Dropped) > 0, "\nNot carried over: %s.", strings.Join(c.Dropped, ", "))
	if n := c.CheckpointSkipped; n == engine.SkippedNewTooLarge || n == engine.SkippedNewExcluded {
		b.WriteString("\nThe new content is too large for the checkpoint store, or excluded from it: an undo will not " +
			"overwrite it, and a later change of it can't be undone.")
	} else {
		b.add(n != "", "\nNo checkpoint: %s.", n)
	}
	b.add(c.ChangedMeanwhile != "", "\nOthers changed the file since it was read:\n%s", c.ChangedMeanwhile)
	b.add(c.Note != "", "\n[%s]", c.Note)
	b.add(c.Warning != "", "\n%s", c.Warning)
	return b.String()
}

func (c *Changed) noted() *string { return &c.Note }

// warn adds something that went wrong after the change was made.
func (c *Changed) warn(what string) {
	if c.Warning != "" {
		c.Warning += "; "
	}
	c.Warning += what
}

// oddities adds warnings to ch: of text that looks broken since this change, and of a new file or directory beside one
// whose name looks the same. The change is done.
func (s *Suite) oddities(c *engine.Call, t *engine.Target, ch *Changed) {
	if odd := guard.Odd(t.True, t.Before.Content, t.After.Content); odd != "" {
		ch.warn("look at it again: " + odd)
	}
	if t.Before.Exists {
		return
	}
	base := path.Base(t.True)
	if like := approval.Lookalike(base); like != "" {
		ch.warn(like)
	}
	for _, made := range append(ch.ParentsMade, t.True) {
		base := path.Base(made)
		near := c.Near(made).Names
		if i := slices.IndexFunc(near, func(n string) bool {
			return strings.TrimSuffix(n, "/") != base && alternatives.Fold(n) == alternatives.Fold(base)
		}); i >= 0 {
			ch.warn("there is " + strconv.QuoteToASCII(near[i]) + " too, whose name looks the same or differs by letter case only")
			return
		}
	}
}

func notUTF8(encoding string) string {
	if strings.EqualFold(encoding, "utf-8") {
		return ""
	}
	return encoding
}
