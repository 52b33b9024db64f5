package tools

import (
	"cmp"
	"context"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
)

// MultiEditArgs is what a model may say to MultiEdit.
type MultiEditArgs struct {
	FilePath     string    `json:"file_path" doc:"absolute"`
	Edits        []OneEdit `json:"edits" min:"1" max:"1000"`
	ExpectedHash *string   `json:"expected_hash,omitempty" form:"sha256" doc:"as in Write, like the rest"`
	DryRun       *bool     `json:"dry_run,omitempty"`
	Acknowledge  *bool     `json:"acknowledge,omitempty"`
	Encoding     *string   `json:"encoding,omitempty"`
}

// OneEdit is one of the edits of a MultiEdit.
type OneEdit struct {
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll *bool  `json:"replace_all,omitempty"`
}

func (a *MultiEditArgs) target() string { return a.FilePath }
func (a *MultiEditArgs) dryRun() bool   { return value(a.DryRun) }

func (a *MultiEditArgs) edits() (out []edit.Edit) {
	for _, e := range a.Edits {
		out = append(out, edit.Edit{Old: e.OldString, New: e.NewString, All: value(e.ReplaceAll)})
	}
	return out
}

// MultiEdit is the payload of kind "multi_edit".
type MultiEdit struct {
	FilePath            string   `json:"file_path"`
	EditsApplied        int      `json:"edits_applied"`
	Replacements        int      `json:"replacements"`
	ReplacementsPerEdit []int    `json:"replacements_per_edit"`
	RecoveredViaCRLF    bool     `json:"recovered_via_crlf"`
	CheckpointID        *string  `json:"checkpoint_id"`
	MatchStrategies     []string `json:"match_strategies"`
	Encoding            string   `json:"encoding,omitempty"`
	Changed
}

func (*MultiEdit) Kind() string { return "multi_edit" }
func (*MultiEdit) payload()     {}

// Text says it as Claude Code did, with the regions that changed.
func (m *MultiEdit) Text() string {
	strategy := ""
	for _, s := range m.MatchStrategies {
		strategy = cmp.Or(tolerant(s), strategy)
	}
	return editText(m.FilePath, m.Replacements, strategy, &m.Changed)
}

var multiEditTool = define[MultiEditArgs](Tool{
	Name:  "MultiEdit",
	Title: "Several edits of one file",
	Description: "Applies edits in order, each to the result of the one before; all or none. A " +
		"first edit with an empty old_string creates the file.",
	Effect: Overwrites,
	Search: dialect.Search{Hint: "several changes of one file at once"},
	aliases: slices.Concat(fileAliases, editAliases, []args.Alias{
		{Theirs: "changes replacements operations modifications editlist replacementchunks", Ours: "edits"},
		{Theirs: oldNames + " " + newNames + " oldstring newstring replaceall", Ours: "edits", Turn: args.OneEdit},
		{Theirs: verbNames, Says: "strreplace replace edit update multiedit", Hint: "leave it out"},
	}),
	answers: []Payload{&MultiEdit{}},
}, runMultiEdit, func(path string, there bool) MultiEditArgs {
	return MultiEditArgs{FilePath: path, Edits: []OneEdit{{OldString: map[bool]string{true: "a"}[there], NewString: "b"}}}
})

func runMultiEdit(ctx context.Context, s *Suite, c *engine.Call,
	a *MultiEditArgs) (Payload, error) {
	edits := a.edits()
	done, r, err := s.edit(ctx, c, engine.EditArgs{Path: a.FilePath, Edits: edits,
		Encoding: value(a.Encoding), Kind: checkpoint.KindMultiEdit,
		DryRun: value(a.DryRun), Rules: engine.Rules{Hash: value(a.ExpectedHash),
			Meant: value(a.Acknowledge)}})
	if err != nil {
		return nil, err
	}
	t := done.Targets[0]
	p := &MultiEdit{
		FilePath: t.True, EditsApplied: len(edits), Replacements: r.Replacements,
		CheckpointID: pointer(done.Checkpoint),
		Encoding:     notUTF8(r.Encoding), Changed: s.editChanged(c, done, t, r),
	}
	p.unlessAsked(a.ExpectedHash)
	for i, step := range r.Steps {
		p.ReplacementsPerEdit = append(p.ReplacementsPerEdit, step.Replacements)
		p.MatchStrategies = append(p.MatchStrategies, step.Strategy)
		p.RecoveredViaCRLF = p.RecoveredViaCRLF || recovered(edits[i], step)
	}
	return p, nil
}
