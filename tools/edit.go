package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
	"moltisfs/readers"
)

// EditArgs are the arguments of Edit.
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
func (a *EditArgs) makes() bool    { return a.OldString == "" }

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
	var b lines
	fmt.Fprintf(&b, "The file %s has %sbeen updated (%s", path,
		strings.Replace(c.dry(), "would be", "not yet", 1), plural(replacements, "replacement"))
	b.add(strategy != "", ", matched by %s", strings.ReplaceAll(strategy, "_", " "))
	b.WriteString(").")
	b.add(c.snippet != "" && (strategy != "" || c.DryRun || c.Warning != ""), "\n%s", strings.TrimSuffix(c.snippet, "\n"))
	return b.String() + c.notes()
}

var editTool = define[EditArgs](toolRow{
	Name:  "Edit",
	Title: "Replace text in a file",
	Description: "Replaces old_string, which must fit one place only (or set replace_all); small " +
		"differences in blanks and quotes are forgiven. On no_match the answer may hold resend, the " +
		"old_string that would match; new_string then needs the same repair.",
	Changes: true,
	Search:  dialect.Search{Hint: "change or replace text in a file"},
	aliases: slices.Concat(fileAliases, editAliases, []args.Alias{
		{Theirs: "edits changes replacements operations", Ours: "old_string", Turn: args.SeveralEdits},
		{Theirs: verbNames, Says: "strreplace replace edit update modify editfile replaceinfile", Hint: "leave it out"},
	}),
	refuses: editRefusals,
}, runEdit)

func runEdit(ctx context.Context, s *Suite, c *engine.Call, a *EditArgs) (Payload, error) {
	one := a.edits()
	done, r, ch, err := s.edit(ctx, c, a.ExpectedHash, engine.EditArgs{Path: a.FilePath, Edits: one, Encoding: value(a.Encoding),
		Kind: checkpoint.KindEdit, DryRun: value(a.DryRun), Rules: engine.Rules{Meant: value(a.Acknowledge), Parents: value(a.Parents)}})
	if err != nil {
		return nil, err
	}
	return &Edit{
		FilePath: done.Targets[0].True, Replacements: r.Replacements, ReplaceAll: value(a.ReplaceAll),
		CheckpointID:  pointer(done.Checkpoint),
		MatchStrategy: tolerant(r.Steps[0].Strategy), RecoveredViaCRLF: recovered(one[0], r.Steps[0]),
		Encoding: notUTF8(r.Encoding), Changed: ch,
	}, nil
}

// edit carries out the edits of a, one of Edit or several of MultiEdit, and refuses in their words. expected is the hash that the call
// sent, or nil.
func (s *Suite) edit(ctx context.Context, c *engine.Call, expected *string, a engine.EditArgs) (*engine.Done, *edit.Result, Changed, error) {
	a.Rules.Hash, a.Rules.Parents = value(expected), a.Rules.Parents || s.cfg.CreateParents
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
	done, r, err := c.Edit(ctx, a)
	if err != nil {
		return nil, nil, Changed{}, err
	}
	t := done.Targets[0]
	ch := changed(done, t)
	ch.unlessAsked(expected)
	s.oddities(c, t, &ch)
	if ch.Warning == "" && slices.ContainsFunc(r.Steps, func(s edit.Step) bool { return s.Shallow }) {
		ch.warn("look at it again: the lines below the first begin further left than it")
	}
	if i := slices.IndexFunc(r.Steps, func(s edit.Step) bool { return s.Orphan != "" }); i >= 0 && ch.Warning == "" {
		ch.warn("look at it again: the " + r.Steps[i].Orphan + " behind old_string now ends another line")
	}
	ch.snippet = region(engine.Hunks(t), s.number())
	if t.Known.Stale {
		ch.ChangedMeanwhile = clip(s.engine.Meanwhile(t), maxDiff)
		if ch.ChangedMeanwhile == "" {
			ch.ChangedMeanwhile = "(what changed is not known any more)"
		}
	}
	return done, r, ch, nil
}

// tolerant gives the strategy if it is worth telling: any but the exact one.
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

// MultiEditArgs are the arguments of MultiEdit.
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

var multiEditTool = define[MultiEditArgs](toolRow{
	Name:  "MultiEdit",
	Title: "Several edits of one file",
	Description: "Applies edits in order, each to the result of the one before; all or none. A " +
		"first edit with an empty old_string creates the file.",
	Changes: true,
	Search:  dialect.Search{Hint: "several changes of one file at once"},
	aliases: slices.Concat(fileAliases, editAliases, []args.Alias{
		{Theirs: "changes replacements operations modifications editlist replacementchunks", Ours: "edits"},
		{Theirs: oldNames + " " + newNames + " oldstring newstring replaceall", Ours: "edits", Turn: args.OneEdit},
		{Theirs: verbNames, Says: "strreplace replace edit update multiedit", Hint: "leave it out"},
	}),
	refuses: editRefusals,
}, runMultiEdit)

func runMultiEdit(ctx context.Context, s *Suite, c *engine.Call,
	a *MultiEditArgs) (Payload, error) {
	edits := a.edits()
	done, r, ch, err := s.edit(ctx, c, a.ExpectedHash, engine.EditArgs{Path: a.FilePath, Edits: edits, Encoding: value(a.Encoding),
		Kind: checkpoint.KindMultiEdit, DryRun: value(a.DryRun), Rules: engine.Rules{Meant: value(a.Acknowledge)}})
	if err != nil {
		return nil, err
	}
	p := &MultiEdit{
		FilePath: done.Targets[0].True, EditsApplied: len(edits), Replacements: r.Replacements,
		CheckpointID: pointer(done.Checkpoint), Encoding: notUTF8(r.Encoding), Changed: ch,
	}
	for i, step := range r.Steps {
		p.ReplacementsPerEdit = append(p.ReplacementsPerEdit, step.Replacements)
		p.MatchStrategies = append(p.MatchStrategies, step.Strategy)
		p.RecoveredViaCRLF = p.RecoveredViaCRLF || recovered(edits[i], step)
	}
	return p, nil
}

// shownOtherwise refuses an old_string that was probably taken from what Read shows of a file instead of its
// text; nil where it was not.
func shownOtherwise(path string, content []byte, encoding, old string, e *edit.NoMatchError) error {
	shown := readers.ShownDecoded(content, encoding)
	switch {
	case shown != "":
	case readers.InPlain(content, old):
		shown = "terminal codes"
	case e.Resend != "" && !e.Partial:
		return nil // it is in the file, written a little differently
	case strings.ContainsRune(old, utf8.RuneError) && !utf8.Valid(content):
		return engine.Refuse(refusal.ReplacedBytes, path, encoding)
	default:
		return nil
	}
	return engine.Refuse(refusal.ShownDecoded, path, shown)
}

// editRefusals add to the refusals of Edit and MultiEdit.
var editRefusals = map[engine.Cause]func(*about, *Refusal){
	engine.NoMatch: noMatch,
	engine.NotUnique: func(a *about, r *Refusal) {
		e := factsOf[*edit.NotUniqueError](a)
		r.Fields = notUniqueFields{a.index(e.Index), e.Count, e.Lines, e.Contexts}
	},
	refusal.ShownDecoded: func(a *about, r *Refusal) {
		switch r.Next = read(a.path); a.Facts {
		case "notebook":
			r.Next.Args["encoding"] = "utf-8"
		case "terminal codes":
			r.Next.Args["ansi"] = true
		default:
			r.Next.Args["render"] = false
		}
		r.Fields = causeField{a.Cause.Name}
	},
	refusal.ReplacedBytes: func(a *about, r *Refusal) {
		if a.Facts != "" {
			r.Next = read(a.path)
		}
		r.Fields = causeField{a.Cause.Name}
	},
}

// causeField is the cause where a kind of refusal has several.
type causeField struct {
	Cause string `json:"cause"`
}

// noMatchFields help a model to send an old_string that matches.
type noMatchFields struct {
	EditIndex *int   `json:"edit,omitempty"` // 1-based, MultiEdit only
	Cause     string `json:"cause"`
	Line      int    `json:"line,omitempty"`     // first line of the closest region
	EndLine   int    `json:"end_line,omitempty"` // last line of it
	Region    string `json:"region,omitempty"`   // the region as it stands in the file
	Resend    string `json:"resend,omitempty"`   // the exact old_string that would match
	Detail    string `json:"detail,omitempty"`   // why a near match was not taken
	// Readings are the calls that may be meant, each of them tried; which of them can't be told.
	Readings []*NextCall `json:"readings,omitempty"`
	In       string      `json:"in,omitempty"` // a file that the session has read, and that has the text
	next     *NextCall
}

// Text shows the difference and the strings to send, under the names by which the hint speaks of them.
func (n noMatchFields) Text() string {
	var b lines
	b.add(n.Detail != "", "why: %s\n", n.Detail)
	b.add(n.Region != "", "the region, lines %d-%d:\n%s\n", n.Line, n.EndLine, n.Region)
	b.add(n.Resend != "", "resend, the old_string that would match:\n%s", n.Resend)
	if n.next != nil && n.next.Tool == "Edit" && n.In == "" {
		fmt.Fprintf(&b, "old_string:\n%s\nnew_string:\n%s", n.next.Args["old_string"],
			n.next.Args["new_string"])
	}
	for i, r := range n.Readings {
		fmt.Fprintf(&b, "reading %d, of %s: old_string:\n%s\nnew_string:\n%s\n", i+1, r.Args["file_path"],
			r.Args["old_string"], r.Args["new_string"])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

type notUniqueFields struct {
	EditIndex *int           `json:"edit,omitempty"`
	Count     int            `json:"count"`
	Lines     []int          `json:"lines"`
	Contexts  []edit.Context `json:"contexts,omitempty"`
}

// Text shows where the matches are and how the first ones become unique.
func (n notUniqueFields) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "matches at lines %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(n.Lines), " ",
		", "), "[]"))
	for i, c := range n.Contexts {
		if i > 0 && c == n.Contexts[i-1] {
			continue // two places of one line
		}
		fmt.Fprintf(&b, "\ncontexts, for line %d:\n%s", c.Line, c.OldString)
	}
	return b.String()
}

// index is the number of an edit of several.
func (a *about) index(i int) *int {
	if a.tool != "MultiEdit" {
		return nil
	}
	i++
	return &i
}

// noMatch offers the next move for an old_string that was not found. It sets r.Next only where that call was
// tried, and changes the file as old_string and the file together show that it was meant.
func noMatch(a *about, r *Refusal) {
	e := factsOf[*edit.NoMatchError](a)
	f := noMatchFields{EditIndex: a.index(e.Index), Cause: e.Cause, Line: e.Line, EndLine: e.EndLine,
		Detail: e.Detail}
	a.offerOf(e, &f)
	r.Next, r.Fields = f.next, f
	offer := ""
	switch {
	case e.Cause == edit.CauseApplied:
		offer = "nothing"
	case f.In != "":
		offer = f.In
		a.now["in"] = "yes"
	case f.next != nil:
		offer, r.Fields = "next", noMatchFields{EditIndex: f.EditIndex, Cause: f.Cause, Line: f.Line, next: f.next}
	case f.Readings != nil:
		offer = "readings"
	case e.Partial && f.Resend != "": // merely alike: whether it is the place is for the model to see
		offer = "alike"
	case f.Resend != "": // no next: new_string is most likely damaged as old_string was
		offer = "resend"
	case f.Region != "" && (!strings.HasSuffix(f.Region, "…") || strings.HasPrefix(f.Region, "…")):
		offer = "region"
	case a.call != nil && a.call.SawAll(cmp.Or(a.Path, a.path)):
		offer = "read" // and need not be read again
	case e.Line > 0:
		offer, r.Next = "lines", read(a.path)
		r.Next.Args["offset"], r.Next.Args["limit"] = e.Line, max(1, e.EndLine-e.Line+1)
	default:
		r.Next = read(a.path)
	}
	a.now["offer"] = offer
	a.tell(r)
	if encoding, given := asMap(a.args)["encoding"]; given && r.Next != nil && r.Next.Tool == "Read" {
		r.Next.Args["encoding"] = encoding // else another text might be shown
	}
}

// offerOf fills f with the offers in place of a text that was not found: a call, two calls in two files of which one may be
// meant, or the region that is most alike.
func (a *about) offerOf(e *edit.NoMatchError, f *noMatchFields) {
	there := a.elsewhere(e)
	switch {
	case there != nil && e.Repaired != nil && a.tool == "Edit":
		f.Readings = callsIfBrief(a.withStrings(*e.Repaired), there)
	case there != nil && e.Resend != "" && a.tool == "Edit": // alike here, and so there
		f.Readings = callsIfBrief(again(a.tool, a.args, map[string]any{"old_string": e.Resend}), there)
	case there != nil && e.Resend != "":
		there = nil
	case there != nil:
		if callsIfBrief(there) != nil {
			f.next = there
		}
		f.In, f.Line, f.EndLine = there.Args["file_path"].(string), 0, 0
	case e.Repaired != nil && a.tool == "Edit":
		f.next = a.withStrings(*e.Repaired)
	case len(e.All) > 0 && a.tool == "MultiEdit":
		f.next = again(a.tool, a.args, map[string]any{"edits": repairedEdits(e.All)})
	}
	if callsIfBrief(f.next) == nil {
		f.next = nil
	}
	if f.next != nil || f.Readings != nil || f.In != "" {
		return
	}
	f.Region = clip(e.Region, maxShown)
	if len(e.Resend) <= 2*maxShown {
		f.Resend = e.Resend
	}
	if strings.TrimSpace(f.Region) == strings.TrimSpace(f.Resend) || jsonSize(f.Region)+jsonSize(f.Resend) > maxOffered {
		f.Region = ""
	}
}

// maxOffered bounds the offers of a refusal, in bytes of JSON.
const maxOffered = 3400

// callsIfBrief gives the calls if together they are short enough to be offered.
func callsIfBrief(calls ...*NextCall) []*NextCall {
	size := 0
	for _, c := range calls {
		if c == nil {
			return nil
		}
		raw, err := plainJSON(c)
		if size += len(raw); err != nil || size > maxOffered {
			return nil
		}
	}
	return calls
}

// elsewhere is the call for the one file that the session has read and that has the text exactly,
// where nothing but likeness speaks for the file that was named.
func (a *about) elsewhere(e *edit.NoMatchError) *NextCall {
	const least = 12 // bytes; less may stand anywhere
	if e.Cause != edit.CauseUnknown || a.call == nil {
		return nil
	}
	var texts []string
	for _, one := range a.args.(editor).edits() {
		if texts = append(texts, one.Old); len(strings.TrimSpace(one.Old)) < least {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	in := a.call.Holding(ctx, cmp.Or(a.Path, a.path), texts)
	if len(in) != 1 {
		return nil
	}
	return again(a.tool, a.args, map[string]any{"file_path": in[0], "expected_hash": nil})
}

// withStrings is the Edit again, with other strings.
func (a *about) withStrings(e edit.Edit) *NextCall {
	return again(a.tool, a.args, map[string]any{"old_string": e.Old, "new_string": e.New})
}

// maxShown bounds each text that a refused edit shows of the file, in bytes.
const maxShown = 800
