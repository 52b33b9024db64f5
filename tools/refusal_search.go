package tools

import (
	"fmt"
	"regexp"
	"strings"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/refusal"
)

// badPattern says where a regular expression goes wrong, and the one to use instead.
func badPattern(a *about, r *Refusal) {
	e := factsOf[*match.PatternError](a)
	r.Fields = struct {
		Offset  int    `json:"pattern_offset"`
		Suggest string `json:"suggested_pattern,omitempty"`
	}{e.Offset, e.Suggest}
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
		r.Hint = refusal.Sentence(fmt.Sprintf("%s `%s`%s (%s)", as, found.Text, flagged(*found), hits))
	case suggest == "":
	case suggest == regexp.QuoteMeta(value(&sent.Pattern)):
		r.Hint = "For the literal text use `" + suggest + "`; a quick search does not find it."
	default:
		r.Hint = "Did you mean `" + suggest + "`? A quick search does not find that."
	}
}

// unknownType offers the nearest type.
func unknownType(a *about, r *Refusal) {
	e := factsOf[*grep.TypeError](a)
	if sent, _ := asMap(a.args)["type"].(string); len(e.Nearest) > 0 {
		r.Next = again(a.tool, a.args, map[string]any{"type": strings.Replace(sent, e.Type, e.Nearest[0], 1)})
	}
}
