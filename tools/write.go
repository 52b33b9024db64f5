package tools

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/edit/guard"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// WriteArgs is what a model may say to Write.
type WriteArgs struct {
	FilePath     string  `json:"file_path" doc:"absolute"`
	Content      string  `json:"content"`
	ExpectedHash *string `json:"expected_hash,omitempty" form:"sha256" doc:"only if the file's sha256 is this"`
	DryRun       *bool   `json:"dry_run,omitempty" doc:"show the result, change nothing"`
	Acknowledge  *bool   `json:"acknowledge,omitempty" doc:"yes to a guard that refused the call"`
	Encoding     *string `json:"encoding,omitempty" doc:"else that of the old file, or UTF-8"`
}

func (a *WriteArgs) target() string { return a.FilePath }
func (a *WriteArgs) dryRun() bool   { return value(a.DryRun) }

// Write is the payload of kind "write".
type Write struct {
	FilePath     string  `json:"file_path"`
	BytesWritten int64   `json:"bytes_written"`
	CheckpointID *string `json:"checkpoint_id"`
	Created      bool    `json:"created"`
	Encoding     string  `json:"encoding,omitempty"` // when it is not UTF-8
	Changed
}

func (*Write) Kind() string { return "write" }
func (*Write) payload()     {}

// Text says it as Claude Code does.
func (w *Write) Text() string {
	verb := "updated"
	switch {
	case w.Unchanged:
		return "The file " + w.FilePath + " has this content already." + w.notes()
	case w.Created:
		verb = "created"
	}
	return fmt.Sprintf("File %s%s successfully at: %s%s", w.dry(), verb, w.FilePath, w.notes())
}

var writeTool = define[WriteArgs](Tool{
	Name:  "Write",
	Title: "Write a file",
	Description: "Replaces a whole file or creates it, atomically. Parent directories must exist; symbolic links are refused. " +
		"Mode, owner and attributes are kept. Prefer Edit for changing a part.",
	Effect: Overwrites, Idempotent: true,
}, runWrite)

func runWrite(ctx context.Context, s *Suite, c *engine.Call, a *WriteArgs) (Payload, error) {
	var encoding string
	var size int64
	rules := engine.Rules{Read: engine.ReadWhole, Hash: value(a.ExpectedHash), Meant: value(a.Acknowledge), Parents: s.cfg.CreateParents}
	plan := engine.Plan{Summary: fmt.Sprintf("write %d bytes", len(a.Content)), DryRun: value(a.DryRun), Op: checkpoint.Op{Kind: checkpoint.KindWrite}}
	done, err := s.engine.Rewrite(ctx, c, a.FilePath, rules, plan, func(t *engine.Target) error {
		raw, name, err := edit.Encode(a.Content, t.Before.Content, value(a.Encoding))
		if err != nil {
			return err
		}
		t.After = engine.After{Kind: guardfs.KindFile, Content: raw}
		before := t.Before.Content
		if encoding, size = notUTF8(name), int64(len(raw)); encoding != "" && t.Before.Exists {
			if before, _, err = edit.Decode(before, ""); err != nil {
				return err
			}
			t.After.Hunks = diff.Patch(before, []byte(strings.TrimPrefix(a.Content, "\ufeff")))
		}
		return guardOverwrite(t, before, []byte(a.Content), value(a.Acknowledge))
	})
	if err != nil {
		return nil, err
	}
	t := done.Targets[0]
	return &Write{
		FilePath: t.True, BytesWritten: size, Created: !t.Before.Exists, Encoding: encoding,
		CheckpointID: pointer(done.Checkpoint), Changed: changed(done, t),
	}, nil
}

// guardOverwrite refuses an overwrite that is most likely not meant: content
// emptied, real code replaced by a placeholder, more than half dropped of a
// file of which only a part was seen.
func guardOverwrite(t *engine.Target, before, content []byte, meant bool) error {
	if !t.Before.Exists || meant {
		return nil
	}
	if f := guard.Placeholder(before, content); f != nil {
		return guardRefusal(fmt.Sprintf("%s in line %d of the content stands for %s of code that it would delete", quote(f.Text), f.Line, plural(f.Removed, "line")),
			"Send the whole content, or use Edit for the part that changes; acknowledge: true if the line is meant.")
	}
	if guard.Empties(before, content) != nil {
		return guardRefusal("this would empty a file that has content", "Set acknowledge: true if that is meant.")
	}
	seen := t.Known.Seen
	if t.Known.Tracked && seen != nil && !seen.Whole && bytes.Count(content, []byte("\n"))*2 < bytes.Count(before, []byte("\n")) {
		part := "a part was shown"
		if cmp.Or(seen.Unit, "line") == "line" && seen.Lines > 0 {
			part = fmt.Sprintf("%d of %d lines were read", seen.Shown(), seen.Lines)
		}
		r := guardRefusal("this would drop more than half of a file of which only "+part, "Read the rest first, or set acknowledge: true if that is meant.")
		var way Refusal
		if partRead(&way, t.Path, seen); way.Next == nil { // what can be shown was
			r.Hint = "Set acknowledge: true if that is meant."
		}
		r.Next = way.Next
		return r
	}
	return nil
}

func guardRefusal(what, hint string) *Refusal {
	return &Refusal{Reason: KindBadRequest, Message: what + "; nothing was changed", Hint: hint, Fields: struct {
		Guard string `json:"guard"`
	}{"overwrite"}}
}
