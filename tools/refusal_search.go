package tools

import (
	"fmt"
	"regexp"
	"strings"

	"moltisfs/grep"
	"moltisfs/grep/match"
)

// badPattern says where a regular expression goes wrong, and the one to use instead.
func badPattern(a *about) *Refusal {
	e := factsOf[*match.PatternError](a)
	r := &Refusal{Message: fmt.Sprintf("the pattern can't be used: %s (at byte %d)", e.Why, e.Offset),
		Hint: "Mend it there, or search for a part of it that stands in the text as it is.",
		Fields: struct {
			Offset  int    `json:"pattern_offset"`
			Suggest string `json:"suggested_pattern,omitempty"`
		}{e.Offset, e.Suggest}}
	switch {
	case e.Multiline && e.Suggest != "":
		r.Hint = "Set multiline, and use `" + e.Suggest + "`."
		r.Next = again(a.tool, a.args, map[string]any{"multiline": true, "pattern": e.Suggest})
	case e.Multiline:
		r.Hint = "Set multiline."
		r.Next = again(a.tool, a.args, map[string]any{"multiline": true})
	default:
		r.fill(a, e.Suggest)
	}
	return r
}

// fill offers the pattern that finds something.
func (r *Refusal) fill(a *about, suggest string) {
	found, hits := a.mended(suggest)
	sent, _ := a.args.(*GrepArgs)
	switch {
	case found != nil:
		b := *sent
		reread(&b, *found)
		r.Next = again(a.tool, &b, nil)
		as := "use"
		if found.Text == regexp.QuoteMeta(sent.Pattern) {
			as = "for the literal text use"
		} else if found.As != "" {
			as = "as " + found.As + " use"
		}
		r.Hint = sentence(fmt.Sprintf("%s `%s`%s (%s)", as, found.Text, flagged(*found), hits))
	case suggest == "":
	case suggest == regexp.QuoteMeta(value(&sent.Pattern)):
		r.Hint = "For the literal text use `" + suggest + "`; a quick search does not find it."
	default:
		r.Hint = "Did you mean `" + suggest + "`? A quick search does not find that."
	}
}

// unknownType names the types that may be meant. Where none is near, the extension is what was
// meant.
func unknownType(a *about) *Refusal {
	e := factsOf[*grep.TypeError](a)
	r := &Refusal{Message: "there is no file type " + quoteShort(e.Type)}
	sent, _ := asMap(a.args)["type"].(string)
	switch n := len(e.Nearest); {
	case n == 0:
		r.Hint = "The types are those of rg --type-list, such as py, ts and rust; for others use glob, " +
			"like *.ext."
	case n == 1:
		r.Hint = "Use " + e.Nearest[0] + ", or glob."
	default:
		r.Hint = "Use one of " + strings.Join(e.Nearest, ", ") + ", or glob."
	}
	if len(e.Nearest) > 0 {
		r.Next = again(a.tool, a.args, map[string]any{"type": strings.Replace(sent, e.Type,
			e.Nearest[0], 1)})
	}
	return r
}
