package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"moltisfs/internal/edit"
	"moltisfs/readers"
)

// maxDiff bounds a diff inside a refusal, in bytes.
const maxDiff = 8 << 10

// noMatchFields are what helps a model to send an old_string that matches.
type noMatchFields struct {
	EditIndex *int   `json:"edit,omitempty"` // 1-based, MultiEdit only
	Cause     string `json:"cause"`
	Line      int    `json:"line,omitempty"`       // first line of the closest region
	EndLine   int    `json:"end_line,omitempty"`   // last line of it
	Region    string `json:"region,omitempty"`     // the region as it stands in the file
	Diff      string `json:"diff,omitempty"`       // character diff with visible blanks
	Resend    string `json:"resend,omitempty"`     // the exact old_string that would match
	TextThere string `json:"text_there,omitempty"` // MultiEdit, nothing close: what the edits before this one made, around the last of them
	Detail    string `json:"detail,omitempty"`     // why a near match was not taken
	// Readings are the calls that may be meant, each of them tried; which of them can't be told.
	Readings []*NextCall `json:"readings,omitempty"`
	In       string      `json:"in,omitempty"` // a file that the session has read, and that has the text
	next     *NextCall
}

// Text shows the difference and what to send, under the names by which the hint speaks of it.
func (n noMatchFields) Text() string {
	var b strings.Builder
	if n.Detail != "" {
		b.WriteString("why: " + n.Detail + "\n")
	}
	if n.Diff != "" {
		fmt.Fprintf(&b, "closest, lines %d-%d:\n%s\n", n.Line, n.EndLine, n.Diff)
	}
	if n.TextThere != "" {
		b.WriteString("text_there, which this edit saw:\n" + n.TextThere)
	}
	if n.Region != "" {
		b.WriteString("the region:\n" + n.Region + "\n")
	}
	if n.Resend != "" {
		b.WriteString("resend, the old_string that would match:\n" + n.Resend)
	}
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
	EditIndex *int             `json:"edit,omitempty"`
	Count     int              `json:"count"`
	Lines     []int            `json:"lines"`
	Contexts  []contextOfMatch `json:"contexts,omitempty"`
}

type contextOfMatch struct {
	Line      int    `json:"line"`
	OldString string `json:"old_string"`
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

// which names an edit of several.
func (a *about) which(i int) string {
	if a.tool != "MultiEdit" {
		return ""
	}
	return fmt.Sprintf("edit %d: ", i+1)
}

// index is the number of an edit of several.
func (a *about) index(i int) *int {
	if a.tool != "MultiEdit" {
		return nil
	}
	i++
	return &i
}

func notUnique(a *about, r *Refusal) {
	e := factsOf[*edit.NotUniqueError](a)
	f := notUniqueFields{EditIndex: a.index(e.Index), Count: e.Count, Lines: e.Lines}
	for _, c := range e.Contexts {
		f.Contexts = append(f.Contexts, contextOfMatch{c.Line, c.OldString})
	}
	r.Fields = f
}

func badEncoding(a *about, r *Refusal) {
	if e := factsOf[*edit.EncodingError](a); e.Is || slices.Contains(readers.Encodings(), strings.ToLower(e.Name)) {
		r.Reason = KindUnsupported // at best it can be read: its bytes can't be spliced
	}
}

// noMatch says what to do about an old_string that was not found. It gives a next only where that
// was tried and changes the file as old_string and the file together show that it was meant.
func noMatch(a *about, r *Refusal) {
	e := factsOf[*edit.NoMatchError](a)
	f := noMatchFields{EditIndex: a.index(e.Index), Cause: e.Cause, Line: e.Line, EndLine: e.EndLine,
		Detail: e.Detail}
	r.Message = a.which(e.Index) + "old_string was not found" + because(e.Cause) + "; the file is untouched"
	a.offerOf(e, &f)
	r.Next, r.Fields = f.next, f
	switch {
	case e.Cause == edit.CauseApplied:
		r.Hint = "Nothing is left to do, unless another place is meant: then send more of the text " +
			"around that."
	case f.In != "":
		r.Hint = "The text is in " + f.In + ", which was read here: send next if that file is meant."
	case f.next != nil:
		r.Fields, r.Hint = noMatchFields{EditIndex: f.EditIndex, Cause: f.Cause, Line: f.Line,
			next: f.next}, "Send next: both strings are repaired."
	case f.Readings != nil:
		r.Hint = "Two things can be meant: send the one of readings that is."
	case e.Partial && f.Resend != "": // merely alike: whether it is the place is for the model to see
		r.Hint = "If the region is what is meant, send resend as old_string, with new_string made to " +
			"fit it."
	case f.Resend != "": // no next: new_string is most likely damaged as old_string was
		r.Hint = "Repair both strings: old_string becomes resend, and " + repairOfNew(e.Cause) + "."
	case f.Region != "" && (!strings.HasSuffix(f.Region, "…") || strings.HasPrefix(f.Region, "…")):
		r.Hint = "If the region is what is meant, copy old_string from it."
	case e.TextThere == "" && a.call != nil && a.s.engine.SawAll(a.call, cmp.Or(a.Path, a.path)):
		r.Hint = "Copy old_string from the file as it was read here." // and not read it again
	case e.Line > 0:
		r.Hint = fmt.Sprintf("Read lines %d to %d and copy old_string from there.", e.Line, e.EndLine)
		r.Next = &NextCall{"Read", map[string]any{"file_path": a.path, "offset": e.Line,
			"limit": max(1, e.EndLine-e.Line+1)}}
	case e.TextThere != "":
		r.Hint = "text_there is what the edits before this one made, around the last of them: copy " +
			"old_string from there, or Read the file for what lies elsewhere."
		r.Next = read(a.path)
	default:
		r.Hint = "Read the file and copy old_string from it."
		r.Next = read(a.path)
	}
	if encoding, given := asMap(a.args)["encoding"]; given && r.Next != nil && r.Next.Tool == "Read" {
		r.Next.Args["encoding"] = encoding // else another text might be shown
	}
}

// offerOf fills in what is offered in place of a text that was not found: a call, two that may be
// meant, or what stands there.
func (a *about) offerOf(e *edit.NoMatchError, f *noMatchFields) {
	there := a.elsewhere(e)
	switch {
	case there != nil && e.Repaired != nil && a.tool == "Edit":
		f.Readings = brief(a.withStrings(*e.Repaired), there)
	case there != nil && e.Resend != "" && a.tool == "Edit": // alike here, and so there
		f.Readings = brief(again(a.tool, a.args, map[string]any{"old_string": e.Resend}), there)
	case there != nil && e.Resend != "":
		there = nil
	case there != nil:
		if brief(there) != nil {
			f.next = there
		}
		f.In, f.Line, f.EndLine = there.Args["file_path"].(string), 0, 0
	case e.Repaired != nil && a.tool == "Edit":
		f.next = a.withStrings(*e.Repaired)
	case len(e.Readings) > 1 && a.tool == "Edit":
		f.Readings = brief(a.withStrings(e.Readings[0]), a.withStrings(e.Readings[1]))
	case len(e.All) > 0 && a.tool == "MultiEdit":
		f.next = again(a.tool, a.args, map[string]any{"edits": mendedEdits(e.All)})
	}
	if brief(f.next) == nil {
		f.next = nil
	}
	if f.next != nil || f.Readings != nil || f.In != "" {
		return
	}
	f.Region, f.Diff, f.TextThere = clip(e.Region, maxShown), clip(e.Diff, maxShown), clip(e.TextThere, maxShown)
	if len(e.Resend) <= 2*maxShown {
		f.Resend = e.Resend
	}
	if strings.TrimSpace(f.Region) == strings.TrimSpace(f.Resend) || jsonLen(f.Region)+jsonLen(f.Resend) > maxOffered {
		f.Region = ""
	}
	if f.Resend != "" && jsonLen(f.Diff)+jsonLen(f.Resend) > maxOffered {
		f.Diff = ""
	}
}

// maxOffered bounds what a refusal offers, in bytes of JSON.
const maxOffered = 3400

// brief gives the calls if together they are short enough to be offered.
func brief(calls ...*NextCall) []*NextCall {
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
	switch args := a.args.(type) {
	case *EditArgs:
		texts = []string{args.OldString}
	case *MultiEditArgs:
		for _, one := range args.Edits {
			texts = append(texts, one.OldString)
		}
	}
	if len(texts) == 0 || slices.ContainsFunc(texts, func(t string) bool {
		return len(strings.TrimSpace(t)) < least
	}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	in := a.s.engine.Holding(ctx, a.call, cmp.Or(a.Path, a.path), texts)
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

// mendedEdits are the edits of a MultiEdit with other strings.
func mendedEdits(all []edit.Edit) (out []map[string]any) {
	for _, e := range all {
		one := map[string]any{"old_string": e.Old, "new_string": e.New}
		if e.All {
			one["replace_all"] = true
		}
		out = append(out, one)
	}
	return out
}

// repairOfNew tells what new_string needs where old_string had to be repaired for this cause.
func repairOfNew(cause string) string {
	switch cause {
	case edit.CauseTabsVsSpaces, edit.CauseIndentation:
		return "the lines of new_string are indented like it"
	case edit.CauseWhitespace:
		return "new_string gets the same blanks and blank lines"
	case edit.CauseTrailingBlanks:
		return "new_string keeps its blanks at line ends"
	case edit.CauseQuotes:
		return "new_string is written with the file's quotes and dashes"
	case edit.CauseUnicodeSpace:
		return "new_string is written with the file's spaces"
	case edit.CauseNormalisation:
		return "accents in new_string are composed or decomposed as in it"
	case edit.CauseEscaped:
		return "backslashes in new_string stand where they stand in the file"
	case edit.CauseEntity:
		return "<, > and & in new_string are written as in the file"
	case edit.CauseLineNumbers:
		return "new_string loses its line numbers, with the blanks around them"
	case edit.CauseCase:
		return "names in new_string are spelled as in the file"
	}
	return "new_string is made to fit it"
}

func because(cause string) string {
	switch cause {
	case "tabs_vs_spaces":
		return " (the file indents with other tabs and spaces)"
	case "indentation":
		return " (the file indents it to another depth)"
	case "whitespace":
		return " (blanks inside lines, or blank lines, differ)"
	case "trailing_blanks":
		return " (blanks at line ends differ)"
	case "line_endings":
		return " (line endings differ)"
	case "quotes":
		return " (quotes or dashes are typographic in one of them)"
	case "unicode_space":
		return " (a space is another Unicode space)"
	case "normalisation":
		return " (accents are composed in one and decomposed in the other)"
	case "escaped":
		return " (escapes such as \\n stand for themselves)"
	case "entity":
		return " (HTML entities stand for themselves)"
	case "line_numbers":
		return " (it carries line numbers of a Read)"
	case "case":
		return " (upper and lower case differ)"
	case edit.CauseApplied:
		return ", and new_string stands there already"
	case "stale":
		return " (the text was there when the file was read, and is no longer)"
	}
	return ""
}
