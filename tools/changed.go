package tools

import (
	"fmt"
	"strings"

	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
)

// Changed is what every payload of a change says of it.
type Changed struct {
	SHA256    string      `json:"sha256"`            // of the content after the change
	Added     int         `json:"added"`             // lines
	Removed   int         `json:"removed"`           // lines
	Patch     []edit.Hunk `json:"structuredPatch"`   // Claude Code's shape; empty for a new file and for no change
	Snippet   string      `json:"snippet,omitempty"` // the changed region, numbered
	Unchanged bool        `json:"unchanged,omitempty"`
	DryRun    bool        `json:"dry_run,omitempty"`

	// LinksBroken counts the other names of the file, which keep the old content.
	LinksBroken int      `json:"links_broken,omitempty"`
	Dropped     []string `json:"metadata_dropped,omitempty"` // what could not be carried over
	// CheckpointSkipped says why a checkpoint that is on does not hold this change.
	CheckpointSkipped string   `json:"checkpoint_skipped,omitempty"`
	ParentsMade       []string `json:"parents_made,omitempty"`
	// ChangedMeanwhile is a diff of what others changed since this session read the file.
	ChangedMeanwhile string `json:"changed_meanwhile,omitempty"`
	// Warning is something an operator should hear of; the change is done.
	Warning string `json:"warning,omitempty"`
}

// maxPatchLines bounds a patch in an answer; the counts stay true.
const maxPatchLines = 400

func changed(done *engine.Done, t *engine.Target) Changed {
	hunks := engine.Hunks(t)
	ch := Changed{SHA256: t.After.Hash, Patch: []edit.Hunk{}, DryRun: done.DryRun, CheckpointSkipped: done.Skipped, ParentsMade: done.Made}
	ch.Added, ch.Removed = edit.Counts(hunks)
	ch.Unchanged = t.Before.Exists && t.Before.Hash == t.After.Hash
	if t.Before.Exists {
		ch.Patch = capHunks(hunks)
	}
	if p := t.Published; p != nil {
		ch.LinksBroken, ch.Dropped = p.LinksBroken, p.Dropped
		if p.Unsynced != "" {
			ch.Warning = "the file is changed, but the directory could not be synced: " + p.Unsynced
		}
	}
	return ch
}

// capHunks keeps the first hunks up to maxPatchLines lines. Never nil: an
// empty patch is [] in JSON.
func capHunks(hunks []edit.Hunk) []edit.Hunk {
	out, n := []edit.Hunk{}, 0
	for _, h := range hunks {
		if n += len(h.Lines); n > maxPatchLines {
			break
		}
		out = append(out, h)
	}
	return out
}

func (c *Changed) dry() string {
	if c.DryRun {
		return "would be "
	}
	return ""
}

// notes are the facts that a model must not miss, one a line.
func (c *Changed) notes() string {
	var b strings.Builder
	if c.LinksBroken > 0 {
		fmt.Fprintf(&b, "\n%d other hard links keep the old content.", c.LinksBroken)
	}
	if len(c.Dropped) > 0 {
		fmt.Fprintf(&b, "\nNot carried over: %s.", strings.Join(c.Dropped, ", "))
	}
	if c.CheckpointSkipped != "" {
		fmt.Fprintf(&b, "\nNo checkpoint: %s.", c.CheckpointSkipped)
	}
	if c.ChangedMeanwhile != "" {
		fmt.Fprintf(&b, "\nOthers changed the file since it was read:\n%s", c.ChangedMeanwhile)
	}
	if c.Warning != "" {
		b.WriteString("\n" + c.Warning)
	}
	return b.String()
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// pointer is null for "".
func pointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// warn adds something that went wrong after the change was made.
func (c *Changed) warn(what string) {
	if c.Warning != "" {
		c.Warning += "; "
	}
	c.Warning += what
}
