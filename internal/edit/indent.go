package edit

import (
	"bytes"
	"slices"

	"moltisfs/internal/edit/mend"
)

// settle finds the rule for a match of tierIndent and says where the match begins and whether the
// first line takes part. Without a rule the match is ambiguous: nobody can tell what New should
// look like.
func (m *match) settle(n *needle, text []byte, f *fitter, new string) {
	pre := text[m.lineAt:m.from.start]
	m.free = n.top == 0
	if n.top == 0 && len(bytes.Trim(pre, " \t")) == 0 {
		with := append([]mend.Pair{{Old: string(n.old[:n.first]), File: string(pre)}}, m.indents...)
		if m.rule = mend.FindRule(with, f.old, new, text, m.lineAt); m.rule != nil {
			m.indents, m.start, m.free = with, m.lineAt, false
			return
		}
		if n.first > 0 {
			return
		}
		// Only the first line lost its indentation when it was quoted; the others may not seem to.
		if slices.ContainsFunc(m.indents, func(p mend.Pair) bool { return p.Old == "" }) {
			return
		}
	}
	m.rule = mend.FindRule(m.indents, f.old, new, text, m.lineAt)
}
