package edit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// plan is what an edit comes down to.
type plan struct {
	rs        []replacement
	strategy  string
	recovered bool
}

// find looks for the place of an edit, tier by tier. Its errors have no index, and NoMatchError is
// empty.
func find(h *haystack, e Edit, strict bool) (*plan, error) {
	text, old := h.text, []byte(e.Old)
	f := newFitter(text, e.Old, e.New)

	// With All, both tiers count together: lines that differ in their ends are the same to the sender.
	endings := e.All && strings.Contains(e.Old, "\n") && bytes.IndexByte(text, '\r') >= 0
	if !endings {
		if p, err := findExact(text, old, e, f); p != nil || err != nil {
			return p, err
		}
	}
	limit := tierIndent
	if strict {
		limit = tierEndings
	}
	if p, err := findLoose(h, e, f, limit); p != nil || err != nil {
		return p, err
	}
	if endings {
		if p, err := findExact(text, old, e, f); p != nil || err != nil {
			return p, err
		}
	}
	if !strict {
		if p, err := findRepaired(h, e); p != nil || err != nil {
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
		// Overlapping matches count: which of them is meant cannot be told either.
		if second := bytes.Index(text[first+1:], old); second >= 0 {
			return nil, notUniqueExact(text, old, first, first+1+second)
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
func findLoose(h *haystack, e Edit, f *fitter, limit tier) (*plan, error) {
	text, old := h.text, []byte(e.Old)
	n := newNeedle(old)
	if n == nil {
		return findBreaks(text, old, e)
	}
	places, more := n.candidates(h)
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
			if m.settle(n, text, f, e.New); m.rule == nil {
				return nil, &NoMatchError{Detail: whyDepth}
			}
		}
		fit := f
		if m.tier >= tierTrailing {
			if torn(h, e.Old, e.New, m.end) != "" {
				return nil, &NoMatchError{Detail: whyTorn}
			}
			now, was, why := m.written(n, text, e, h.added)
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

// findBreaks is the line_endings tier for an Old of nothing but white space, which has no skeleton.
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

// needle is an Old prepared for the search by skeleton.
type needle struct {
	old         []byte
	lines       []line
	first, last int // the part of old between its outermost white space
	top, bottom int // the lines where that part starts and ends
	bones       []byte
}

// newNeedle returns nil for an old of nothing but white space.
func newNeedle(old []byte) *needle {
	n := &needle{old: old, lines: splitLines(old), first: -1}
	for at := 0; at < len(old); {
		before := len(n.bones)
		var next int
		n.bones, next = appendFolded(n.bones, old, at)
		if len(n.bones) > before {
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

// extent is where the text has the skeleton of a needle, without white space at the ends.
type extent struct{ start, end int }

const (
	maxCandidates = 10000
	compareBudget = 256 << 20 // bytes of text compared for one edit
)

// haystack is a text that is searched more than once: its skeleton is made when it is first wanted.
type haystack struct {
	text  []byte
	bones []byte
	marks []foldMark
	added column // how lines that New adds are indented
}

func newHaystack(text []byte) *haystack { return &haystack{text: text} }

func (h *haystack) skeleton() ([]byte, []foldMark) {
	if h.bones == nil {
		h.bones, h.marks = foldText(h.text)
	}
	return h.bones, h.marks
}

// candidates finds the places in h with the needle's skeleton. more: a limit may hide others.
func (n *needle) candidates(h *haystack) (found []extent, more bool) {
	bones, marks := h.skeleton()
	text, limit := h.text, min(maxCandidates, compareBudget/(len(n.old)+1)+1)
	for pos := 0; ; {
		i := bytes.Index(bones[pos:], n.bones)
		if i < 0 {
			return found, false
		}
		pos += i
		if len(found) == limit {
			return found, true
		}
		if start, end, ok := sourceRange(text, marks, pos, pos+len(n.bones)); ok {
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

// verify compares a candidate with Old, line by line. ok: a tier takes them for equal.
func (n *needle) verify(text []byte, c extent) (m match, ok bool) {
	v := verifier{needle: n, text: text}
	v.match.from, v.lineAt = c, lineStart(text, c.start)
	if !v.upward() || !v.downward() {
		return match{}, false
	}
	return v.match, true
}

type verifier struct {
	*needle
	match
	text []byte
}

func (v *verifier) raise(t tier) bool {
	v.tier = max(v.tier, t)
	return t < tierNone
}

func (v *verifier) pair(old, file []byte) {
	p := pair{old: string(old), file: string(file)}
	for _, q := range v.indents {
		if p == q {
			return
		}
	}
	v.indents = append(v.indents, p)
}

// upward compares what comes before the first character that is not white space.
func (v *verifier) upward() bool {
	lead := v.old[v.lines[v.top].start:v.first]
	pre := v.text[v.lineAt:v.from.start]
	if v.top == 0 {
		if k, t := suffix(pre, lead); t < tierNone {
			v.start = v.from.start - k
			v.raise(t)
			return true
		}
		if len(trimBlanks(Plain(pre))) > 0 {
			return false
		}
		v.start = v.lineAt
		return v.raise(tierIndent)
	}
	t := compare(lead, pre, false)
	if t == tierNone {
		if len(trimBlanks(Plain(pre))) > 0 {
			return false
		}
		t = tierIndent
	}
	v.raise(t)
	pos := v.lineAt
	for i := v.top - 1; i >= 0; i-- {
		if pos == 0 {
			return false
		}
		from := lineStart(v.text, pos-1)
		l := lineFrom(v.text, from)
		o := v.lines[i]
		v.breaks(o, l)
		content, want := v.text[l.start:l.end], v.old[o.start:o.end]
		if i > 0 {
			if !v.raise(compare(want, content, true)) {
				return false
			}
		} else if k, t := suffix(content, want); t < tierNone {
			v.start = l.end - k
			v.raise(t)
		} else {
			v.start = l.start + len(trimBlanks(content))
			v.raise(tierTrailing)
		}
		pos = from
	}
	return true
}

// suffix compares want, all white space, with the end of b and gives how many bytes of b it takes.
func suffix(b, want []byte) (n int, t tier) {
	if bytes.HasSuffix(b, want) {
		return len(want), tierExact
	}
	need := Plain(want)
	from := len(b)
	for len(Plain(b[from:])) < len(need) && from > 0 {
		_, size := utf8.DecodeLastRune(b[:from])
		from -= size
	}
	if bytes.Equal(Plain(b[from:]), need) {
		return len(b) - from, tierQuotes
	}
	return 0, tierNone
}

// prefix does the same at the start of b.
func prefix(b, want []byte) (n int, t tier) {
	if bytes.HasPrefix(b, want) {
		return len(want), tierExact
	}
	need := Plain(want)
	to := 0
	for len(Plain(b[:to])) < len(need) && to < len(b) {
		_, size := utf8.DecodeRune(b[to:])
		to += size
	}
	if bytes.Equal(Plain(b[:to]), need) {
		return to, tierQuotes
	}
	return 0, tierNone
}

// breaks compares the line breaks of two lines.
func (v *verifier) breaks(o, l line) {
	if !bytes.Equal(v.old[o.end:o.next], v.text[l.end:l.next]) {
		v.endings = true
		v.raise(tierEndings)
	}
}

// downward compares the lines from the first character that is not white space to the end of Old.
func (v *verifier) downward() bool {
	cur := lineFrom(v.text, v.lineAt)
	for i := v.top; i < len(v.lines); i++ {
		o := v.lines[i]
		last := i == len(v.lines)-1
		switch {
		case i <= v.bottom:
			if !v.content(i, o, cur, last) {
				return false
			}
		case last:
			if !v.tail(cur.start, cur, v.old[o.start:o.end]) {
				return false
			}
		default:
			if !v.raise(compare(v.old[o.start:o.end], v.text[cur.start:cur.end], true)) {
				return false
			}
		}
		if last {
			return true
		}
		if cur.next == cur.end { // the file ends here, Old goes on
			if i+1 < len(v.lines)-1 || v.lines[i+1].end > v.lines[i+1].start || i < v.bottom {
				return false
			}
			v.end, v.noFinal = cur.end, true
			return v.raise(tierTrailing)
		}
		v.breaks(o, cur)
		cur = lineFrom(v.text, cur.next)
	}
	return true
}

// content compares line i of Old, which is not after the last character that counts.
func (v *verifier) content(i int, o, cur line, last bool) bool {
	want := line{o.start, o.end, 0}
	have := line{cur.start, cur.end, 0}
	if i == v.top {
		want.start, have.start = v.first, v.from.start
	}
	if i == v.bottom {
		want.end, have.end = v.last, v.from.end
	}
	if have.end > cur.end || have.end < have.start || i < v.bottom && v.from.end <= cur.end {
		return false // the lines are divided differently
	}
	a, b := v.old[want.start:want.end], v.text[have.start:have.end]
	whole := i > v.top || v.top > 0
	if whole && len(trimBlanks(a)) > 0 {
		v.pair(indentOf(Plain(v.old[o.start:want.end])), indentOf(Plain(v.text[cur.start:have.end])))
	}
	t := compare(a, b, i < v.bottom)
	if t == tierNone && whole {
		a, b = Plain(a), Plain(b)
		if t = compare(a[len(indentOf(a)):], b[len(indentOf(b)):], i < v.bottom); t < tierNone {
			t = tierIndent
		}
	}
	if !v.raise(t) {
		return false
	}
	if i < v.bottom {
		return true
	}
	rest := v.old[v.last:o.end]
	if last {
		return v.tail(v.from.end, cur, rest)
	}
	return v.raise(compare(rest, v.text[v.from.end:cur.end], true))
}

// tail places the end of the match: rest, all white space, follows at offset at of the line cur.
func (v *verifier) tail(at int, cur line, rest []byte) bool {
	have := v.text[at:cur.end]
	if k, t := prefix(have, rest); t < tierNone {
		v.end = at + k
		return v.raise(t)
	}
	if len(trimBlanks(Plain(have))) > 0 {
		return false
	}
	v.end = cur.end
	return v.raise(tierTrailing)
}

// isBlankByte leaves out CR: before the CR of a CRLF nothing could keep one.
func isBlankByte(c byte) bool { return c == ' ' || c == '\t' || c == '\f' || c == '\v' }

// trimBlanks cuts ASCII blanks off the end.
func trimBlanks(b []byte) []byte {
	n := len(b)
	for n > 0 && isBlankByte(b[n-1]) {
		n--
	}
	return b[:n]
}

// indentOf gives the blanks that a line starts with.
func indentOf(b []byte) []byte {
	n := 0
	for n < len(b) && (b[n] == ' ' || b[n] == '\t') {
		n++
	}
	return b[:n]
}

// tier is how loose a comparison had to be. The order is that of the package comment.
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
