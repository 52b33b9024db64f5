package edit

import (
	"bytes"
	"slices"
	"strings"
)

// pair is how a line is indented in Old, and how in the file.
type pair struct{ old, file string }

// rule turns the indentation of Old and New into that of the file: so many units, so many
// levels deeper, and spaces that align behind them kept as they are.
type rule struct {
	from, to string // one level: a tab or some spaces
	deeper   int
}

// levels reads an indentation as whole units and spaces behind them.
func levels(indent, unit string) (n, rest int, ok bool) {
	for strings.HasPrefix(indent, unit) {
		n++
		indent = indent[len(unit):]
	}
	return n, len(indent), strings.Trim(indent, " ") == "" && (unit == "\t" || len(indent) < len(unit))
}

// apply gives the indentation of the file.
func (r rule) apply(indent string) (string, bool) {
	n, rest, ok := levels(indent, r.from)
	if !ok || n+r.deeper < 0 {
		return "", false
	}
	return strings.Repeat(r.to, n+r.deeper) + strings.Repeat(" ", rest), true
}

// holds reports whether the rule explains every pair.
func (r rule) holds(pairs []pair) bool {
	for _, p := range pairs {
		if got, ok := r.apply(p.old); !ok || got != p.file {
			return false
		}
	}
	return true
}

// findRule gives the rule that explains all pairs, if what it makes of New is beyond doubt. What
// merely is deeper or shallower must show two depths, or step in New as the file does. A unit that
// becomes the file's is enough; for any other change all rules that fit must make the same of New.
func findRule(pairs []pair, old, new string, text []byte, near int) *rule {
	if len(pairs) == 0 {
		return nil
	}
	var olds []string
	for _, p := range pairs {
		olds = append(olds, p.old)
	}
	sent := append(append(indentsOf(new), indentsOf(old)...), olds...)
	around := unitAround(text, near)
	if r := depthRule(pairs, " "); r != nil {
		if step := stepOf(sent); r.covers(sent) && (stepOf(olds) > 0 || step == 0 || around == strings.Repeat(" ", step)) {
			return r
		}
		return nil
	}
	var rules []rule
	for i, f := range units(sent) {
		for _, t := range []string{around, "\t", "    ", "  ", "        "} {
			r := rule{from: f, to: t}
			n, _, ok1 := levels(pairs[0].old, f)
			m, _, ok2 := levels(pairs[0].file, t)
			if r.deeper = m - n; !ok1 || !ok2 || !r.holds(pairs) || !r.covers(sent) {
				continue
			}
			if i == 0 && r.deeper == 0 && t == around {
				return &r
			}
			if i == 0 || r.deeper == 0 { // a unit below the steps must keep the depth
				rules = append(rules, r)
			}
		}
	}
	for _, in := range sent {
		for i := range rules {
			first, _ := rules[0].apply(in)
			if got, _ := rules[i].apply(in); got != first {
				return nil
			}
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return &rules[0]
}

// stepOf is the greatest common step of the differences between indentations by spaces.
func stepOf(indents []string) (step int) {
	for _, s := range indents {
		step = gcd(step, max(len(s)-len(indents[0]), len(indents[0])-len(s)))
	}
	return step
}

// depthRule is the rule for blanks of one kind that are merely more or fewer.
func depthRule(pairs []pair, unit string) *rule {
	r := rule{from: unit, to: unit, deeper: len(pairs[0].file) - len(pairs[0].old)}
	if !r.holds(pairs) {
		return nil
	}
	return &r
}

// covers reports whether the rule can be applied to every line that is to be indented.
func (r rule) covers(indents []string) bool {
	for _, s := range indents {
		if _, ok := r.apply(s); !ok {
			return false
		}
	}
	return true
}

// indentsOf lists the indentations of the lines of s that have any text; a first of none is left
// out.
func indentsOf(s string) (out []string) {
	for i, l := range strings.Split(s, "\n") {
		in := string(indentOf([]byte(l)))
		if strings.TrimSpace(l) != "" && (i > 0 || in != "") {
			out = append(out, in)
		}
	}
	return out
}

// units lists what one level may be in the given indentations, likeliest first.
func units(indents []string) (out []string) {
	g := 0
	for _, s := range indents {
		if strings.HasPrefix(s, "\t") {
			return []string{"\t"}
		}
		g = gcd(g, len(s))
	}
	if g == 0 { // none is indented: any will do
		return []string{"\t"}
	}
	for _, w := range []int{4, 2, 8} {
		if g == w {
			out = append([]string{strings.Repeat(" ", w)}, out...)
		} else if g%w == 0 {
			out = append(out, strings.Repeat(" ", w))
		}
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// unitAround guesses one level: the most frequent step inwards of some hundred lines around an
// offset.
func unitAround(text []byte, near int) string {
	const window = 16 << 10
	from, to := max(0, near-window), min(len(text), near+window)
	votes := map[string]int{}
	depth := ""
	for _, l := range bytes.Split(text[from:to], []byte("\n")) {
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		in := string(indentOf(l))
		if step := strings.TrimPrefix(in, depth); len(in) > len(depth) && len(step) < len(in)+1 && len(step) <= 8 {
			if strings.HasPrefix(step, "\t") {
				step = "\t"
			}
			votes[step]++
		}
		depth = in
	}
	best, most := "    ", 0
	for _, u := range []string{"\t", "    ", "  ", "        ", "   "} {
		if votes[u] > most {
			best, most = u, votes[u]
		}
	}
	return best
}

// settle finds the rule for a match of tierIndent and says where the match begins and whether the
// first line takes part. Without a rule the match is ambiguous: nobody can tell what New should
// look like.
func (m *match) settle(n *needle, text []byte, f *fitter, new string) {
	pre := text[m.lineAt:m.from.start]
	m.free = n.top == 0
	if n.top == 0 && len(bytes.Trim(pre, " \t")) == 0 {
		with := append([]pair{{old: string(n.old[:n.first]), file: string(pre)}}, m.indents...)
		if m.rule = findRule(with, f.old, new, text, m.lineAt); m.rule != nil {
			m.indents, m.start, m.free = with, m.lineAt, false
			return
		}
		if n.first > 0 {
			return
		}
		// Only the first line lost its indentation when it was quoted; the others may not seem to.
		if slices.ContainsFunc(m.indents, func(p pair) bool { return p.old == "" }) {
			return
		}
	}
	m.rule = findRule(m.indents, f.old, new, text, m.lineAt)
}
