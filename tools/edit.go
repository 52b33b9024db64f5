package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/readers"
)

// EditArgs is what a model may say to Edit.
type EditArgs struct {
	FilePath     string  `json:"file_path" doc:"absolute"`
	OldString    string  `json:"old_string" doc:"empty: create the file, or fill an empty one"`
	NewString    string  `json:"new_string"`
	ReplaceAll   *bool   `json:"replace_all,omitempty"`
	ExpectedHash *string `json:"expected_hash,omitempty" form:"sha256" doc:"only if the file's sha256 is this"`
	DryRun       *bool   `json:"dry_run,omitempty" doc:"show the result, change nothing"`
	Acknowledge  *bool   `json:"acknowledge,omitempty" doc:"yes to a guard that refused the call"`
	Encoding     *string `json:"encoding,omitempty" doc:"when the detected one is wrong"`
}

func (a *EditArgs) target() string { return a.FilePath }
func (a *EditArgs) dryRun() bool   { return value(a.DryRun) }

// maxResult bounds a file after edits, in bytes.
const maxResult = 64 << 20

// Edit is the payload of kind "edit".
type Edit struct {
	FilePath         string  `json:"file_path"`
	Replacements     int     `json:"replacements"`
	ReplaceAll       bool    `json:"replace_all"`
	RecoveredViaCRLF bool    `json:"recovered_via_crlf"`
	CheckpointID     *string `json:"checkpoint_id"`
	MatchStrategy    string  `json:"match_strategy"`
	Encoding         string  `json:"encoding,omitempty"` // when it is not UTF-8
	Changed
}

func (*Edit) Kind() string { return "edit" }
func (*Edit) payload()     {}

// Text says it as Claude Code did, with the region that changed.
func (e *Edit) Text() string {
	return editText(e.FilePath, e.Replacements, e.MatchStrategy, &e.Changed)
}

func editText(path string, replacements int, strategy string, c *Changed) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The file %s has %sbeen updated (%s", path, strings.Replace(c.dry(), "would be", "not yet", 1), plural(replacements, "replacement"))
	if strategy != "" && strategy != "exact" {
		fmt.Fprintf(&b, ", matched by %s", strings.ReplaceAll(strategy, "_", " "))
	}
	b.WriteString(").")
	if c.Snippet != "" {
		b.WriteString("\n" + strings.TrimSuffix(c.Snippet, "\n"))
	}
	return b.String() + c.notes()
}

var editTool = define[EditArgs](Tool{
	Name:  "Edit",
	Title: "Replace text in a file",
	Description: "Replaces old_string, which must match exactly one place (or set replace_all). Bytes outside the match never change. " +
		"On no_match the answer holds resend, the old_string that would match; new_string then needs the same repair.",
	Effect: Overwrites,
}, runEdit)

func runEdit(ctx context.Context, s *Suite, c *engine.Call, a *EditArgs) (Payload, error) {
	one := []edit.Edit{{Old: a.OldString, New: a.NewString, All: value(a.ReplaceAll)}}
	done, r, err := s.edit(ctx, c, a.FilePath, one, editOptions{value(a.ExpectedHash), value(a.DryRun), value(a.Acknowledge), value(a.Encoding)})
	if err != nil {
		return nil, err
	}
	t := done.Targets[0]
	p := &Edit{
		FilePath: t.True, Replacements: r.Replacements, ReplaceAll: value(a.ReplaceAll), CheckpointID: pointer(done.Checkpoint),
		MatchStrategy: r.Steps[0].Strategy, RecoveredViaCRLF: r.Steps[0].RecoveredCRLF, Encoding: notUTF8(r.Encoding), Changed: s.editChanged(done, t),
	}
	return p, nil
}

type editOptions struct {
	expected    string
	dryRun      bool
	acknowledge bool
	encoding    string
}

// edit is the road that Edit and MultiEdit share: they differ in how many
// edits they bring.
func (s *Suite) edit(ctx context.Context, c *engine.Call, path string, edits []edit.Edit, o editOptions) (*engine.Done, *edit.Result, error) {
	var result *edit.Result
	kind := checkpoint.KindEdit
	if c.Tool == "MultiEdit" {
		kind = checkpoint.KindMultiEdit
	}
	rules := engine.Rules{Read: engine.ReadStale, Hash: o.expected, Meant: o.acknowledge, Parents: s.cfg.CreateParents && edits[0].Old == ""}
	plan := engine.Plan{Summary: plural(len(edits), "edit"), DryRun: o.dryRun, Op: checkpoint.Op{Kind: kind}}
	done, err := s.engine.Rewrite(ctx, c, path, rules, plan, func(t *engine.Target) (err error) {
		if !t.Before.Exists && edits[0].Old != "" {
			return s.missing("Read", &ReadArgs{FilePath: path}, path)
		}
		if shown := readers.ShownAs(t.Before.Content, o.encoding); shown != "" {
			return &Refusal{Reason: KindUnsupported, Message: "this is a file of kind " + shown + ": what Read shows of it is not its bytes, which an edit would damage; the file is untouched",
				Hint: "Make the change with a program for such files, or ask the user how."}
		}
		how := edit.Options{Strict: s.cfg.EditMatching == "strict", MaxBytes: maxResult, Seen: s.engine.LastSeen(t), Encoding: o.encoding, Err: ctx.Err}
		result, err = edit.Apply(t.Before.Content, edits, how)
		if t.Known.Stale && (err != nil || !survives(result, edits, t.Before.Content, how)) {
			return s.engine.Modified(t)
		}
		if none, ok := errors.AsType[*edit.NoMatchError](err); ok {
			if r := shownOtherwise(path, t.Before.Content, o.encoding, edits[none.Index].Old, none); r != nil {
				return r
			}
		}
		if err != nil {
			return err
		}
		if err := guardEdits(result, o.acknowledge); err != nil {
			return err
		}
		t.After = engine.After{Kind: guardfs.KindFile, Content: result.Content, Hunks: result.Patch()}
		if s.cfg.MustReadBeforeWrite {
			return proven(t, result, o.encoding)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return done, result, nil
}

// survives says whether edits of a file that others changed since it was seen may go ahead: in what was seen they find the same
// places, exactly and once, and what others changed neither touches those nor makes another place of them.
func survives(r *edit.Result, edits []edit.Edit, now []byte, how edit.Options) bool {
	if how.Seen == nil || !exactOnce(r) {
		return false
	}
	was, err := edit.Apply(how.Seen, edits, how)
	if err != nil || !exactOnce(was) {
		return false
	}
	var texts [4][]byte
	for i, b := range [][]byte{how.Seen, was.Content, now, r.Content} {
		if texts[i], _, err = edit.Decode(b, r.Encoding); err != nil {
			return false
		}
	}
	merged, conflicts := diff.Merge(texts[0], texts[1], texts[2])
	return len(conflicts) == 0 && bytes.Equal(merged, texts[3])
}

func exactOnce(r *edit.Result) bool {
	return !slices.ContainsFunc(r.Steps, func(s edit.Step) bool { return s.Strategy != edit.StrategyExact || s.Replacements != 1 })
}

// proven refuses to change lines that the session was not shown, unless old_string is exactly what stands there: that proves that it
// is known, and to be merely alike does not.
func proven(t *engine.Target, r *edit.Result, encoding string) error {
	seen := t.Known.Seen
	if seen == nil || seen.Whole || !slices.ContainsFunc(r.Steps, func(s edit.Step) bool {
		return s.Strategy != edit.StrategyExact && s.Strategy != edit.StrategyLineEndings
	}) {
		return nil
	}
	for _, h := range t.After.Hunks {
		first, last := changedLines(h)
		if cmp.Or(seen.Unit, "line") == "line" && covers(seen.Ranges, first, last) {
			continue
		}
		args := map[string]any{"file_path": t.Path, "offset": first, "limit": last - first + 1}
		if encoding = cmp.Or(encoding, r.Encoding); encoding != "utf-8" || cmp.Or(seen.Unit, "line") != "line" {
			args["encoding"] = encoding
		}
		return &Refusal{Reason: KindMustRead, Message: fmt.Sprintf("this session has not seen lines %d to %d, and old_string is merely like what stands there; the file is untouched", first, last),
			Hint: "Read them, then repeat the call with their exact text.", Next: &NextCall{"Read", args}}
	}
	return nil
}

// changedLines are the first and the last line of the old text that a hunk changes; where it only adds, the line above.
func changedLines(h diff.Hunk) (first, last int) {
	n := h.OldStart
	for _, l := range h.Lines {
		switch l[0] {
		case '-':
			if first == 0 {
				first = n
			}
			last = n
			n++
		case ' ':
			n++
		case '+':
			last = max(last, n-1, 1)
			if first == 0 {
				first = last
			}
		}
	}
	return first, last
}

func guardEdits(r *edit.Result, meant bool) error {
	if meant {
		return nil
	}
	f := r.Guard()
	switch {
	case f == nil:
		return nil
	case f.Guard == "empties":
		return editGuard("this would empty the file", "Set acknowledge: true if that is meant.")
	}
	return editGuard(fmt.Sprintf("%s in line %d of the result stands for %s that it would delete", quote(f.Text), f.Line, plural(f.Removed, "line")+" of code"),
		"Send all of the new text, or a smaller old_string; acknowledge: true if the line is meant.")
}

func editGuard(what, hint string) *Refusal {
	r := guardRefusal(what, hint)
	r.Fields = struct {
		Guard string `json:"guard"`
	}{"edit"}
	return r
}

func (s *Suite) editChanged(done *engine.Done, t *engine.Target) Changed {
	ch := changed(done, t)
	ch.Snippet = diff.Snippet(engine.Hunks(t), s.number())
	if t.Known.Stale {
		ch.ChangedMeanwhile = clip(s.engine.Meanwhile(t), maxDiff)
		if ch.ChangedMeanwhile == "" {
			ch.ChangedMeanwhile = "(what changed is not known any more)"
		}
	}
	return ch
}

// number writes line numbers as Read does.
func (s *Suite) number() func(int) string {
	switch s.cfg.LineNumbers {
	case "tab":
		return func(n int) string { return fmt.Sprintf("%6d\t", n) }
	case "compact":
		return func(n int) string { return fmt.Sprintf("%d\t", n) }
	}
	return nil
}

func notUTF8(encoding string) string {
	if strings.EqualFold(encoding, "utf-8") {
		return ""
	}
	return encoding
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
