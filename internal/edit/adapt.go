package edit

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/lazy"
)

// Where a tolerant tier finds Old, the file is written otherwise than Old, and New was most likely
// damaged as Old was. So lines and words that New shares with Old stay as the file has them. The
// rest of New is written as it is sent, and only if it holds nothing of the damaged kind; else the
// edit is refused.

// Reasons to refuse because it is in doubt how New is to be written. They end up in NoMatchError.Detail.
const (
	whyTiny     = "old_string is nothing but signs that are written in several ways"
	whyChars    = "new_string adds quotes, dashes or spaces of the kind in which old_string and the file differ"
	whyAccents  = "new_string adds accents, which old_string and the file write in different forms"
	whyBlanks   = "which blanks at line ends new_string should have can't be told"
	whyBoundary = "new_string changes the very place where old_string and the file differ"
	whyDepth    = "how deep the lines that new_string adds should be indented can't be told"
	whyColumn   = "new_string adds lines that may have to stay in their column"
)

// adaptation is a match of a tolerant tier, line by line, and how Old and the file differ in it.
type adaptation struct {
	*match
	new       string
	old, have []string // the lines of Old and of the file, without their breaks; as many of each
	odd       bool     // Old has typographic or invisible characters where the file has none
	folds     string   // the ASCII for which the file has such characters where Old has none
	accents   bool     // letters with marks are composed in one and not in the other
	blanks    bool     // Old has blanks at line ends that the file has not
	pre       string   // the blanks before a match that is a part of one line
	aligned   bool     // Old and New begin in one column or share a line: moved together
}

// adapt gives the new text of the match and its present one, both with LF, or why the new one is in doubt. New is taken apart into lines:
// those that it shares with Old stay as the file has them, the others are indented by m.rule.
func (m *match) adapt(text []byte, e Edit) (now, was, why string) {
	k := &adaptation{match: m, new: e.New, old: contents(e.Old), have: contents(string(text[m.start:m.end]))}
	news := contents(e.New)
	if m.noFinal {
		k.old = k.old[:len(k.old)-1]
		if l := len(news) - 1; l > 0 && news[l] == "" {
			news = news[:l]
		}
	}
	if len(k.old) != len(k.have) {
		return "", "", whyBoundary
	}
	for i := range k.old {
		k.compare(k.old[i], k.have[i])
	}
	if (k.odd || k.folds != "") && strings.IndexFunc(e.Old, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0 {
		return "", "", whyTiny
	}
	if k.odd && (cutsRun(text, m.start) || cutsRun(text, m.end)) {
		return "", "", whyBoundary
	}
	if at := lineStart(text, m.start); len(k.old) == 1 && len(trimBlanks(text[at:m.start])) == 0 {
		k.pre = string(text[at:m.start])
	}
	changes := diff.Changes(asLines(k.old), asLines(news))
	a, _, _ := parts(k.old[0])
	b, _, _ := parts(news[0])
	k.aligned = a == b || sharesLine(k.old, changes)
	var out []string
	at := 0
	for _, c := range changes {
		out = append(out, k.have[at:c.A0]...)
		if c.A1 == len(k.old) && c.A1-c.A0 != c.B1-c.B0 && blankTail(text, m.end) {
			return "", "", whyBlanks // they would end up behind another line
		}
		differ := false
		for i := c.A0; i < c.A1; i++ {
			differ = differ || oddRunes(k.old[i]) != oddRunes(k.have[i])
		}
		for j := c.B0; j < c.B1; j++ {
			i := -1
			if c.A1-c.A0 == c.B1-c.B0 {
				i = c.A0 + j - c.B0
			} else if l := slices.IndexFunc(k.old[c.A0:c.A1], func(l string) bool { return sameBody(l, news[j]) }); l >= 0 {
				i = c.A0 + l // it was moved
			}
			l, why := k.line(news[j], i, j, differ)
			if why != "" {
				return "", "", why
			}
			out = append(out, l)
		}
		at = c.A1
	}
	return strings.Join(append(out, k.have[at:]...), "\n"), strings.Join(k.have, "\n"), ""
}

// cutsRun says that an offset lies within a run of one sign, of which nobody can tell the length.
func cutsRun(text []byte, at int) bool {
	return at > 0 && at < len(text) && text[at] == text[at-1] && strings.IndexByte("-.'\"", text[at]) >= 0
}

// sameBody says that two lines differ in nothing but the blanks around them.
func sameBody(a, b string) bool {
	_, x, _ := parts(a)
	_, y, _ := parts(b)
	return x == y && x != ""
}

// sharesLine tells whether the changes leave a line that is not blank.
func sharesLine(lines []string, changes []diff.Change) bool {
	at := 0
	for _, c := range append(changes, diff.Change{A0: len(lines)}) {
		if strings.TrimSpace(strings.Join(lines[at:c.A0], "")) != "" {
			return true
		}
		at = c.A1
	}
	return false
}

// compare notes how a line of Old differs from that of the file.
func (k *adaptation) compare(old, have string) {
	if old == have {
		return
	}
	if a, b := oddRunes(old), oddRunes(have); a != b {
		k.odd = k.odd || a != ""
		for _, r := range b {
			s, _ := foldRune(r)
			k.folds += s
		}
	}
	squeezed := func(s string) string { return strings.Join(strings.Fields(string(Plain([]byte(s)))), "") }
	k.accents = k.accents || squeezed(old) != squeezed(have)
	_, _, a := parts(old)
	_, _, b := parts(have)
	k.blanks = k.blanks || len(a) > len(b)
}

// line gives what is written for line j of New, which is not in Old. It stands for line i of the
// match, or for none where i is below zero. spaces: it differs from Old in its spaces.
func (k *adaptation) line(l string, i, j int, spaces bool) (now, why string) {
	lead, body, trail := parts(l)
	if body == "" && k.blanks && l != "" {
		return "", whyBlanks
	}
	if body == "" {
		return l, k.suspect(l, spaces)
	}
	var oldLead, old, oldTrail, haveLead, have, haveTrail string
	if i >= 0 {
		oldLead, old, oldTrail = parts(k.old[i])
		haveLead, have, haveTrail = parts(k.have[i])
	}
	head, mine, tail := affixes(old, body)
	shares := len(head)+len(tail) > 0
	in, ok := lead, true
	switch {
	case old != "" && lead == oldLead:
		in = haveLead
	case k.rule != nil && !(j == 0 && k.free):
		in, ok = k.rule.apply(lead)
		// A line in the first column may have to stay there, unless Old shows that such lines do not.
		first := slices.ContainsFunc(k.indents, func(p pair) bool { return p.old == "" })
		ok = ok && (in == lead || k.aligned && (lead != "" || first))
	default:
		ok = oldLead == haveLead && k.suspect(lead, false) == ""
	}
	switch {
	case !ok, j > 0 && !strings.HasPrefix(in, k.pre): // Old most likely lost its indentation, and New too
		return "", whyDepth
	case !shares && k.rule != nil && spansLines(k.new):
		return "", whyColumn
	case shares && trail == oldTrail:
		trail = haveTrail
	case shares && oldTrail != haveTrail, !shares && k.blanks && trail != "":
		return "", whyBlanks
	default:
		mine += trail
	}
	middle := body[len(head) : len(body)-len(tail)]
	if shares && old != have {
		a, oneHead := boundary(have, head, false)
		b, oneTail := boundary(have, tail, true)
		if !oneHead || !oneTail || a > b {
			return "", whyBoundary
		}
		spaces = old[len(head):len(old)-len(tail)] != have[a:b]
		head, tail = have[:a], have[b:]
	}
	return in + head + middle + tail + trail, k.suspect(mine, spaces)
}

// suspect tells why s, which is New's alone, may have been damaged as Old was.
func (k *adaptation) suspect(s string, spaces bool) string {
	for i, r := range s {
		_, odd := foldRune(r)
		switch {
		case odd && k.odd,
			(r == '\'' || r == '"' || r == '-') && strings.ContainsRune(k.folds, r),
			r == '.' && strings.HasPrefix(s[i:], "...") && strings.Contains(k.folds, "."),
			r == ' ' && spaces && strings.Contains(k.folds, " "):
			return whyChars
		}
	}
	if k.accents && norm.NFC.String(s) != norm.NFD.String(s) {
		return whyAccents
	}
	return ""
}

// blankTail is true where nothing but blanks follow on the line of text that holds offset at.
func blankTail(text []byte, at int) bool {
	l := lineFrom(text, at)
	return l.end > at && len(trimBlanks(text[at:l.end])) == 0
}

// contents are the lines of s without their breaks.
func contents(s string) (out []string) {
	for _, l := range splitLines([]byte(s)) {
		out = append(out, s[l.start:l.end])
	}
	return out
}

func asLines(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, l := range in {
		out[i] = []byte(l)
	}
	return out
}

// parts divides a line into its blanks at the start, what is between, and its blanks at the end.
// oddRunes spaces and invisible characters count as blanks. A blank line is all trail.
func parts(l string) (lead, body, trail string) {
	blank := func(r rune) bool {
		s, odd := foldRune(r)
		return odd && strings.TrimSpace(s) == "" || strings.ContainsRune(blanks, r)
	}
	body = strings.TrimRightFunc(l, blank)
	trail = l[len(body):]
	rest := strings.TrimLeftFunc(body, blank)
	return body[:len(body)-len(rest)], rest, trail
}

// maxBoundary bounds the line in which a boundary is looked for, in bytes: it takes the square of that.
const maxBoundary = 4096

// boundary finds the one offset of line up to which, or from which, it reads like part.
func boundary(line, part string, from bool) (at int, ok bool) {
	if len(line) > maxBoundary {
		return 0, false
	}
	same := func(s string) string { return norm.NFC.String(string(Plain([]byte(s)))) }
	want, found := same(part), 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && !utf8.RuneStart(line[i]) {
			continue
		}
		piece := line[:i]
		if from {
			piece = line[i:]
		}
		if same(piece) == want {
			at = i
			found++
		}
	}
	return at, found == 1
}

// literals are the beginnings of text that goes on over line ends, and lines that belong in the
// first column: what is in them must not be indented with the lines around.
var literals = lazy.Regexp(`(?m)<<[-~<]?["'\\]?[A-Za-z_]|<<[-~]?[ \t]*["'\\]?[A-Z_]{3}|'''|\[=*\[[^\]\n]*$|\$\$|^=begin|` +
	`^#[ \t]*(?:if|el|end|def|undef|inc|pragma|err|warn|line|reg)`)

// spansLines tells whether any text in s may go on over the end of its line.
func spansLines(s string) bool {
	if literals().MatchString(s) {
		return true
	}
	for l := range strings.SplitSeq(s, "\n") {
		l = strings.NewReplacer(`\\`, "", `\"`, "", "\\`", "").Replace(l)
		if strings.Count(l, `"`)%2 == 1 || strings.Count(l, "`")%2 == 1 {
			return true
		}
	}
	return false
}

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

// findRule gives the rule that explains all pairs, if its result for New is beyond doubt. Lines that are
// merely deeper or shallower must show two depths, or step in New as the file does. A unit that
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
	// Blanks that are merely more or fewer:
	if r := (rule{from: " ", to: " ", deeper: len(pairs[0].file) - len(pairs[0].old)}); r.holds(pairs) {
		if step := stepOf(sent); r.covers(sent) && (stepOf(olds) > 0 || step == 0 || around == strings.Repeat(" ", step)) {
			return &r
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

// chooseRule finds the rule for a match of tierIndent and says where the match begins and whether the
// first line takes part. Without a rule the match is ambiguous: the indentation of New is in doubt.
func (m *match) chooseRule(n *quote, text []byte, f *fitter, new string) {
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

// fitter writes New with the line breaks of the places it goes to. It remembers the uniform
// answers, so that a replacement in a million places does not make a million copies.
type fitter struct {
	text     []byte
	old, new string // old as sent
	plain    bool   // new has no line break: nothing to do
	memo     map[string]string
}

func newFitter(text []byte, old, new string) *fitter {
	return &fitter{text: text, old: old, new: new,
		plain: !strings.Contains(new, "\n"), memo: make(map[string]string)}
}

// fit gives new for text[start:end].
func (f *fitter) fit(start, end int) string {
	if f.plain {
		return f.new
	}
	region := f.text[start:end]
	breaks := breaksOf(region)
	style, uniform := "", true
	if len(breaks) == 0 {
		style = f.neighbour(start, end)
	} else {
		style = breaks[0]
		for _, b := range breaks {
			uniform = uniform && b == style
		}
	}
	var out string
	if uniform {
		s, ok := f.memo[style]
		if !ok {
			s = withBreaks(f.new, func(int) string { return style })
			f.memo[style] = s
		}
		out = s
	} else {
		out = f.mixed(breaks)
	}
	if out == string(region) {
		// With the neighbours' breaks nothing would change: the edit is about the breaks themselves.
		return f.new
	}
	return out
}

// mixed lines up the lines that old and new share at either end with those of the region; a line
// between takes the break of the line in its place, or of the last one before the shared end.
func (f *fitter) mixed(breaks []string) string {
	a, b := strings.Split(lf(f.old), "\n"), strings.Split(lf(f.new), "\n")
	k, m := len(breaks), len(b)-1
	head := 0
	for head < min(k, m) && head < len(a) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(k, m)-head && tail < len(a) && a[len(a)-1-tail] == b[m-tail] {
		tail++
	}
	return withBreaks(f.new, func(j int) string {
		switch {
		case j < head:
			return breaks[j]
		case m-1-j < tail:
			return breaks[k-(m-j)]
		}
		return breaks[max(0, min(j, k-1-tail))]
	})
}

// neighbour is the line break of a place inside one line: its own, or at the end the one before.
func (f *fitter) neighbour(start, end int) string {
	if i := bytes.IndexByte(f.text[end:], '\n'); i >= 0 {
		if at := end + i; at > 0 && f.text[at-1] == '\r' {
			return "\r\n"
		}
		return "\n"
	}
	if i := bytes.LastIndexByte(f.text[:start], '\n'); i > 0 && f.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func breaksOf(region []byte) (breaks []string) {
	for at := 0; ; {
		l := lineFrom(region, at)
		if l.next == l.end {
			return breaks
		}
		breaks = append(breaks, string(region[l.end:l.next]))
		at = l.next
	}
}

// withBreaks writes s with brk(i) in place of its i-th line break, LF or CRLF.
func withBreaks(s string, brk func(int) string) string {
	var b strings.Builder
	b.Grow(len(s) + strings.Count(s, "\n"))
	for i := 0; ; i++ {
		at := strings.IndexByte(s, '\n')
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(strings.TrimSuffix(s[:at], "\r"))
		b.WriteString(brk(i))
		s = s[at+1:]
	}
}
