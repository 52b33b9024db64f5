package edit

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// plan is the replacements of an edit, and how they were found.
type plan struct {
	rs        []replacement
	strategy  string
	recovered bool
}

// find looks for the place of e in src, tier by tier. Its errors have no index, and NoMatchError is empty but for Detail.
func find(src *source, e Edit, strict bool) (*plan, error) {
	if e.Old == "" { // it gives an empty text its content
		return &plan{rs: []replacement{{0, 0, e.New}}, strategy: StrategyExact}, nil
	}
	text, old, f := src.text, []byte(e.Old), newFitter(src.text, e.Old, e.New)
	limit := tierIndent
	if strict {
		limit = tierEndings
	}
	steps := []func() (*plan, error){
		func() (*plan, error) { return findExact(text, old, e, f) },
		func() (*plan, error) { return findLoose(src, e, f, limit) },
	}
	// With All, both count together: lines that differ in their ends are the same to the sender.
	if e.All && strings.Contains(e.Old, "\n") && bytes.IndexByte(text, '\r') >= 0 {
		slices.Reverse(steps)
	}
	if !strict {
		steps = append(steps, func() (*plan, error) { return findRepaired(src, e) })
	}
	for _, step := range steps {
		if p, err := step(); p != nil || err != nil {
			return p, err
		}
	}
	return nil, &NoMatchError{}
}

// findExact is the first tier. It returns nil, nil when there is nothing.
func findExact(text, old []byte, e Edit, f *fitter) (*plan, error) {
	first := bytes.Index(text, old)
	if first < 0 {
		return nil, nil
	}
	if !e.All {
		// Overlapping matches count: it is in doubt which of them is meant.
		if second := bytes.Index(text[first+1:], old); second >= 0 {
			return nil, notUniqueExact(text, old, first+1+second)
		}
	}
	p := &plan{strategy: StrategyExact}
	split := old[0] == '\n' // the match could begin between the bytes of a CRLF
	for pos := first; ; {
		if len(p.rs) == MaxReplacements {
			return nil, &TooManyError{What: "replacements", Count: len(p.rs) + 1, Max: MaxReplacements}
		}
		start, end := pos, pos+len(old)
		if split && start > 0 && text[start-1] == '\r' {
			start--
			p.strategy, p.recovered = StrategyLineEndings, true
		}
		p.rs = append(p.rs, replacement{start, end, f.fit(start, end)})
		if !e.All {
			return p, nil
		}
		i := bytes.Index(text[end:], old)
		if i < 0 {
			return p, nil
		}
		pos = end + i
	}
}

// findLoose is the tiers from line_endings to limit.
func findLoose(src *source, e Edit, f *fitter, limit tier) (*plan, error) {
	text, old := src.text, []byte(e.Old)
	n := newQuote(old)
	if n == nil {
		return findBreaks(text, old, e)
	}
	places, more := n.candidates(src)
	best := tierNone
	var ms []match
	for _, c := range places {
		m, ok := n.verify(text, c)
		if !ok || m.tier > limit {
			continue
		}
		if m.tier < best {
			best = m.tier
		}
		ms = append(ms, m)
	}
	if e.All && best == tierExact {
		best = tierEndings
	}
	kept := ms[:0]
	for _, m := range ms {
		if m.tier <= best {
			kept = append(kept, m)
		}
	}
	if ms = kept; e.All {
		ms = apart(ms)
	}
	switch {
	case len(ms) == 0, more && len(ms) < 2:
		return nil, nil
	case more && e.All:
		return nil, &TooManyError{What: "replacements", Count: len(places), Max: len(places)}
	case len(ms) > 1 && !e.All:
		return nil, notUniqueLoose(text, ms, best)
	}
	p := &plan{strategy: best.String()}
	for _, m := range ms {
		if m.tier == tierIndent {
			if m.chooseRule(n, text, f, e.New); m.rule == nil {
				return nil, &NoMatchError{Detail: whyDepth}
			}
		}
		fit := f
		if m.tier >= tierTrailing {
			if orphan(src, e.Old, e.New, m.end) != "" {
				return nil, &NoMatchError{Detail: whyOrphan}
			}
			now, was, why := m.adapt(text, e)
			if why != "" {
				return nil, &NoMatchError{Detail: why}
			}
			if fit = newFitter(text, was, now); now == was { // put says that nothing changes
				fit = &fitter{new: string(text[m.start:m.end]), plain: true}
			}
		}
		p.rs = append(p.rs, replacement{m.start, m.end, fit.fit(m.start, m.end)})
		p.recovered = p.recovered || m.endings
	}
	return p, nil
}

// findBreaks is the line_endings tier for an Old of nothing but white space, of which nothing is left when it is folded.
func findBreaks(text, old []byte, e Edit) (*plan, error) {
	plain := lf(e.Old)
	if !strings.Contains(plain, "\n") {
		return nil, nil
	}
	for _, style := range []string{"\r\n", "\n"} {
		try := []byte(withBreaks(plain, func(int) string { return style }))
		if bytes.Equal(try, old) {
			continue
		}
		p, err := findExact(text, try, e, newFitter(text, string(try), e.New))
		if nu, ok := err.(*NotUniqueError); ok {
			nu.Strategy = StrategyLineEndings
		}
		if p != nil {
			p.strategy, p.recovered = StrategyLineEndings, true
		}
		if p != nil || err != nil {
			return p, err
		}
	}
	return nil, nil
}

// apart keeps the matches that do not overlap one before them.
func apart(ms []match) []match {
	end, kept := -1, ms[:0]
	for _, m := range ms {
		if m.start >= end {
			kept = append(kept, m)
			end = m.end
		}
	}
	return kept
}

// quote is an Old prepared for the search.
type quote struct {
	old         []byte
	lines       []line
	first, last int // the part of old between its outermost white space
	top, bottom int // the lines where that part starts and ends
	folded      []byte
}

// newQuote returns nil for an old of nothing but white space.
func newQuote(old []byte) *quote {
	n := &quote{old: old, lines: splitLines(old), first: -1}
	for at := 0; at < len(old); {
		before := len(n.folded)
		var next int
		n.folded, next = appendFolded(n.folded, old, at)
		if len(n.folded) > before {
			if n.first < 0 {
				n.first = at
			}
			n.last = next
		}
		at = next
	}
	if n.first < 0 {
		return nil
	}
	for i, l := range n.lines {
		if l.start <= n.first {
			n.top = i
		}
		if l.start < n.last {
			n.bottom = i
		}
	}
	return n
}

// extent is the place of a text that is a quote when folded, without white space at the ends.
type extent struct{ start, end int }

const (
	maxCandidates = 10000
	compareBudget = 256 << 20 // bytes of text compared for one edit
)

// source is a text that is searched more than once. It is folded when that is first wanted.
type source struct {
	text   []byte
	folded []byte
	marks  []foldMark
}

func newSource(text []byte) *source { return &source{text: text} }

// fold gives the text folded, and the marks of foldText.
func (src *source) fold() ([]byte, []foldMark) {
	if src.folded == nil {
		src.folded, src.marks = foldText(src.text)
	}
	return src.folded, src.marks
}

// candidates finds the places in src that are the quote when folded. more says that a limit may hide others.
func (n *quote) candidates(src *source) (found []extent, more bool) {
	folded, marks := src.fold()
	text, limit := src.text, min(maxCandidates, compareBudget/(len(n.old)+1)+1)
	for pos := 0; ; {
		i := bytes.Index(folded[pos:], n.folded)
		if i < 0 {
			return found, false
		}
		pos += i
		if len(found) == limit {
			return found, true
		}
		if start, end, ok := sourceRange(text, marks, pos, pos+len(n.folded)); ok {
			found = append(found, extent{start, end})
		}
		pos++
	}
}

// match is a candidate that a tier takes for equal to Old.
type match struct {
	tier       tier
	start, end int
	indents    []pair // of the whole lines, when tier is tierIndent
	rule       *rule  // how New is to be indented; nil below tierIndent, and when no rule fits
	free       bool   // the first line of New is not indented: Old began inside a line
	noFinal    bool   // Old ended with a line break that the file, ending there, does not have
	endings    bool   // line breaks differ

	lineAt int // start of the line on which the first character stands that is not white space
	from   extent
}

// verify compares the place c of text with Old, line by line. ok is true if a tier takes them for equal.
func (n *quote) verify(text []byte, c extent) (m match, ok bool) {
	v := verifier{quote: n, text: text}
	v.from, v.lineAt = c, lineStart(text, c.start)
	at := v.lineAt // of the line that is compared with the first one of Old
	for range n.top {
		if at == 0 {
			return match{}, false
		}
		at = lineStart(text, at-1)
	}
	for i, o := range n.lines {
		l, last := lineFrom(text, at), i == len(n.lines)-1
		want, have := n.old[o.start:o.end], text[l.start:l.end]
		t := tierNone
		switch {
		case n.top <= i && i <= n.bottom:
			t = v.content(i, o, l, last)
		case i == 0: // Old begins behind the text of a line
			var k int
			if k, t = blankEdge(have, want, true); t == tierNone {
				k, t = len(have)-len(trimBlanks(have)), tierTrailing
			}
			v.start = l.end - k
		case last:
			t = v.tail(l.start, l, want)
		default:
			t = compare(want, have, true)
		}
		if v.tier = max(v.tier, t); v.tier == tierNone {
			return match{}, false
		}
		switch {
		case last:
			return v.match, true
		case l.next == l.end: // the file ends here, Old goes on
			if i+1 < len(n.lines)-1 || n.lines[i+1].end > n.lines[i+1].start || i < n.bottom {
				return match{}, false
			}
			v.end, v.noFinal, v.tier = l.end, true, max(v.tier, tierTrailing)
			return v.match, true
		case !bytes.Equal(n.old[o.end:o.next], text[l.end:l.next]):
			v.endings, v.tier = true, max(v.tier, tierEndings)
		}
		at = l.next
	}
	return match{}, false
}

// verifier is a match of a quote while its lines are compared.
type verifier struct {
	*quote
	match
	text []byte
}

// content compares line i of Old, o, with the line l of the text. It is one of those that hold more than white space.
func (v *verifier) content(i int, o, l line, last bool) tier {
	want, have, lead := line{o.start, o.end, 0}, line{l.start, l.end, 0}, tierExact
	if i == v.top {
		want.start, have.start = v.first, v.from.start
		if lead = v.lead(i, v.old[o.start:v.first], v.text[l.start:v.from.start]); lead == tierNone {
			return tierNone
		}
	}
	if i == v.bottom {
		want.end, have.end = v.last, v.from.end
	}
	if have.end > l.end || have.end < have.start || i < v.bottom && v.from.end <= l.end {
		return tierNone // the lines are divided differently
	}
	a, b := v.old[want.start:want.end], v.text[have.start:have.end]
	whole := i > 0
	if whole && len(trimBlanks(a)) > 0 {
		p := pair{string(indentOf(Plain(v.old[o.start:want.end]))), string(indentOf(Plain(v.text[l.start:have.end])))}
		if !slices.Contains(v.indents, p) {
			v.indents = append(v.indents, p)
		}
	}
	t := compare(a, b, i < v.bottom)
	if t == tierNone && whole {
		a, b = Plain(a), Plain(b)
		if t = compare(a[len(indentOf(a)):], b[len(indentOf(b)):], i < v.bottom); t < tierNone {
			t = tierIndent
		}
	}
	rest := tierExact
	switch {
	case i < v.bottom:
	case last:
		rest = v.tail(v.from.end, l, v.old[v.last:o.end])
	default:
		rest = compare(v.old[v.last:o.end], v.text[v.from.end:l.end], true)
	}
	return max(lead, t, rest)
}

// lead compares the blanks before the first other character of Old with pre, the text before that character in the file. If Old begins
// on that line, it sets the start of the match.
func (v *verifier) lead(i int, blanks, pre []byte) tier {
	k, t := 0, tierNone
	if i > 0 {
		t = compare(blanks, pre, false)
	} else if k, t = blankEdge(pre, blanks, true); t < tierNone {
		v.start = v.from.start - k
	} else {
		v.start = v.lineAt
	}
	if t == tierNone && len(trimBlanks(Plain(pre))) == 0 {
		t = tierIndent
	}
	return t
}

// tail places the end of the match: rest, all white space, follows at offset at of the line l.
func (v *verifier) tail(at int, l line, rest []byte) tier {
	have := v.text[at:l.end]
	k, t := blankEdge(have, rest, false)
	v.end = at + k
	if t == tierNone && len(trimBlanks(Plain(have))) == 0 {
		v.end, t = l.end, tierTrailing
	}
	return t
}

// blankEdge compares want, all white space, with the start or the end of b, and gives how many bytes of b it takes.
func blankEdge(b, want []byte, atEnd bool) (n int, t tier) {
	piece := func(n int) []byte {
		if atEnd {
			return b[len(b)-n:]
		}
		return b[:n]
	}
	if len(want) <= len(b) && bytes.Equal(piece(len(want)), want) {
		return len(want), tierExact
	}
	need, size := Plain(want), 0
	for ; ; n += size {
		switch have := Plain(piece(n)); {
		case bytes.Equal(have, need):
			return n, tierQuotes
		case len(have) >= len(need) || n == len(b):
			return 0, tierNone
		case atEnd:
			_, size = utf8.DecodeLastRune(b[:len(b)-n])
		default:
			_, size = utf8.DecodeRune(b[n:])
		}
	}
}

// blanks leave out CR: before the CR of a CRLF nothing could keep one.
const blanks = " \t\f\v"

// trimBlanks cuts ASCII blanks off the end.
func trimBlanks(b []byte) []byte {
	return bytes.TrimRight(b, blanks)
}

// indentOf gives the blanks that a line starts with.
func indentOf(b []byte) []byte {
	return b[:len(b)-len(bytes.TrimLeft(b, " \t"))]
}

// tier is the looseness that a comparison needed, in the order of the package comment.
type tier int

const (
	tierExact tier = iota
	tierEndings
	tierTrailing
	tierQuotes
	tierUnicode
	tierIndent
	tierNone // not equal at all
)

func (t tier) String() string {
	return [...]string{StrategyExact, StrategyLineEndings, StrategyTrailingBlanks, StrategyQuotes, StrategyUnicode,
		StrategyIndentation, "none"}[t]
}

// compare tells by which tier two pieces of a line are equal, leading blanks included: tierNone if
// by none. atEnd: both run to the end of their lines, so trailing blanks do not count.
func compare(a, b []byte, atEnd bool) tier {
	if bytes.Equal(a, b) {
		return tierExact
	}
	if atEnd {
		a, b = trimBlanks(a), trimBlanks(b)
		if bytes.Equal(a, b) {
			return tierTrailing
		}
	}
	a, b = Plain(a), Plain(b)
	if atEnd {
		a, b = trimBlanks(a), trimBlanks(b)
	}
	if bytes.Equal(a, b) {
		return tierQuotes
	}
	if bytes.Equal(norm.NFC.Bytes(a), norm.NFC.Bytes(b)) {
		return tierUnicode
	}
	return tierNone
}
