package tools

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/guard"
	"moltisfs/internal/engine"
	"moltisfs/internal/readings"
)

// EditArgs is what a model may say to Edit.
type EditArgs struct {
	FilePath     string  `json:"file_path" doc:"absolute"`
	OldString    string  `json:"old_string" doc:"empty: create the file, or fill an empty one"`
	NewString    string  `json:"new_string"`
	ReplaceAll   *bool   `json:"replace_all,omitempty"`
	ExpectedHash *string `json:"expected_hash,omitempty" form:"sha256" doc:"as in Write, like the rest"`
	DryRun       *bool   `json:"dry_run,omitempty"`
	Acknowledge  *bool   `json:"acknowledge,omitempty"`
	Encoding     *string `json:"encoding,omitempty"`
	Parents      *bool   `json:"create_parents,omitempty"`
}

func (a *EditArgs) target() string { return a.FilePath }
func (a *EditArgs) dryRun() bool   { return value(a.DryRun) }

func (a *EditArgs) edits() []edit.Edit {
	return []edit.Edit{{Old: a.OldString, New: a.NewString, All: value(a.ReplaceAll)}}
}

// Edit is the payload of kind "edit".
type Edit struct {
	FilePath         string  `json:"file_path"`
	Replacements     int     `json:"replacements"`
	ReplaceAll       bool    `json:"replace_all"`
	RecoveredViaCRLF bool    `json:"recovered_via_crlf"`
	CheckpointID     *string `json:"checkpoint_id"`
	MatchStrategy    string  `json:"match_strategy,omitempty"` // unless old_string is there exactly
	Encoding         string  `json:"encoding,omitempty"`       // when it is not UTF-8
	Changed
}

func (*Edit) Kind() string { return "edit" }
func (*Edit) payload()     {}

// Text says it as Claude Code does. The region that changed is shown where the caller can't know it:
// old_string was not found as it was sent, the change is a preview, or its result looks odd.
func (e *Edit) Text() string {
	return editText(e.FilePath, e.Replacements, e.MatchStrategy, &e.Changed)
}

func editText(path string, replacements int, strategy string, c *Changed) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The file %s has %sbeen updated (%s", path,
		strings.Replace(c.dry(), "would be", "not yet", 1), plural(replacements, "replacement"))
	if strategy != "" {
		fmt.Fprintf(&b, ", matched by %s", strings.ReplaceAll(strategy, "_", " "))
	}
	b.WriteString(").")
	if c.snippet != "" && (strategy != "" || c.DryRun || c.Warning != "") {
		b.WriteString("\n" + strings.TrimSuffix(c.snippet, "\n"))
	}
	return b.String() + c.notes()
}

var editTool = define[EditArgs](Tool{
	Name:  "Edit",
	Title: "Replace text in a file",
	Description: "Replaces old_string, which must fit one place only (or set replace_all); small " +
		"differences in blanks and quotes are forgiven. On no_match the answer may hold resend, the " +
		"old_string that would match; new_string then needs the same repair.",
	Effect: Overwrites,
	Search: dialect.Search{Hint: "change or replace text in a file"},
	aliases: slices.Concat(fileAliases, editAliases, []args.Alias{
		{Theirs: "edits changes replacements operations", Ours: "old_string", Turn: args.SeveralEdits},
		{Theirs: verbNames, Says: "strreplace replace edit update modify editfile replaceinfile", Hint: "leave it out"},
	}),
	answers: []Payload{&Edit{}},
}, runEdit, func(path string, there bool) EditArgs {
	return EditArgs{FilePath: path, OldString: map[bool]string{true: "a"}[there], NewString: "b"}
})

func runEdit(ctx context.Context, s *Suite, c *engine.Call, a *EditArgs) (Payload, error) {
	one := a.edits()
	done, r, err := s.edit(ctx, c, engine.EditArgs{Path: a.FilePath, Edits: one,
		Encoding: value(a.Encoding), Kind: checkpoint.KindEdit,
		DryRun: value(a.DryRun), Rules: engine.Rules{Hash: value(a.ExpectedHash),
			Meant: value(a.Acknowledge), Parents: s.parents(a.Parents)}})
	if err != nil {
		return nil, err
	}
	t := done.Targets[0]
	ch := s.editChanged(c, done, t, r)
	ch.unlessAsked(a.ExpectedHash)
	p := &Edit{
		FilePath: t.True, Replacements: r.Replacements, ReplaceAll: value(a.ReplaceAll),
		CheckpointID:  pointer(done.Checkpoint),
		MatchStrategy: tolerant(r.Steps[0].Strategy), RecoveredViaCRLF: recovered(one[0], r.Steps[0]),
		Encoding: notUTF8(r.Encoding), Changed: ch,
	}
	return p, nil
}

// edit is the road that Edit and MultiEdit share: they differ in how many
// edits they bring.
func (s *Suite) edit(ctx context.Context, c *engine.Call, a engine.EditArgs) (*engine.Done,
	*edit.Result, error) {
	a.Rules.Parents = a.Rules.Parents || s.cfg.CreateParents
	a.Refuse = func(t *engine.Target, failed error) error {
		if !t.Before.Exists && a.Edits[0].Old != "" {
			return engine.Refuse(engine.Absent, a.Path, nil)
		}
		if none, ok := errors.AsType[*edit.NoMatchError](failed); ok {
			if r := shownOtherwise(a.Path, t.Before.Content, a.Encoding, a.Edits[none.Index].Old,
				none); r != nil {
				return r
			}
		}
		return nil
	}
	return s.engine.Edit(ctx, c, a)
}

func (s *Suite) editChanged(c *engine.Call, done *engine.Done, t *engine.Target,
	r *edit.Result) Changed {
	ch := changed(done, t)
	s.oddities(c, t, &ch)
	if ch.Warning == "" && slices.ContainsFunc(r.Steps, func(s edit.Step) bool { return s.Shallow }) {
		ch.warn("look at it again: the lines below the first begin further left than it")
	}
	if i := slices.IndexFunc(r.Steps, func(s edit.Step) bool { return s.Torn != "" }); i >= 0 && ch.Warning == "" {
		ch.warn("look at it again: the " + r.Steps[i].Torn + " behind old_string now ends another line")
	}
	ch.snippet = region(engine.Hunks(t), s.number())
	if t.Known.Stale {
		ch.ChangedMeanwhile = clip(s.engine.Meanwhile(t), maxDiff)
		if ch.ChangedMeanwhile == "" {
			ch.ChangedMeanwhile = "(what changed is not known any more)"
		}
	}
	return ch
}

// oddities warns of what looks broken now and did not before, and of a new file or directory beside one whose name
// looks the same. The change is done.
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
		near := s.engine.Near(c, made).Names
		if i := slices.IndexFunc(near, func(n string) bool {
			return strings.TrimSuffix(n, "/") != base && readings.Fold(n) == readings.Fold(base)
		}); i >= 0 {
			by := quote(near[i]) + " too, which differs by letter case only"
			if !strings.EqualFold(strings.TrimSuffix(near[i], "/"), base) {
				by = strconv.QuoteToASCII(near[i]) + " too, which looks the same: a blank, a dash, a quote or an accent is another character"
			}
			ch.warn("there is " + by)
			return
		}
	}
}

// tolerant is a strategy worth telling.
func tolerant(strategy string) string {
	if strategy == edit.StrategyExact {
		return ""
	}
	return strategy
}

// recovered says that text with bare line feeds was found where the file has CRLF.
func recovered(e edit.Edit, s edit.Step) bool {
	return s.RecoveredCRLF && !strings.Contains(e.Old, "\r\n")
}

// number writes line numbers as Read does.
func (s *Suite) number() func(int) string {
	switch s.cfg.LineNumbers {
	case "tab":
		return func(n int) string { return fmt.Sprintf("%d\t", n) }
	case "compact":
		return func(n int) string { return fmt.Sprintf("%d:", n) }
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
