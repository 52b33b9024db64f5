package edit

import (
	"bytes"
	"unicode/utf8"

	"moltisfs/internal/edit/letters"
)

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
		n.bones, next = letters.Bone(n.bones, old, at)
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
	marks []letters.Mark
	added column // how lines that New adds are indented
}

func newHaystack(text []byte) *haystack { return &haystack{text: text} }

func (h *haystack) skeleton() ([]byte, []letters.Mark) {
	if h.bones == nil {
		h.bones, h.marks = letters.Skeleton(h.text)
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
		if start, end, ok := letters.Place(text, marks, pos, pos+len(n.bones)); ok {
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
		if len(trimBlanks(letters.Plain(pre))) > 0 {
			return false
		}
		v.start = v.lineAt
		return v.raise(tierIndent)
	}
	t := compare(lead, pre, false)
	if t == tierNone {
		if len(trimBlanks(letters.Plain(pre))) > 0 {
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
	need := letters.Plain(want)
	from := len(b)
	for len(letters.Plain(b[from:])) < len(need) && from > 0 {
		_, size := utf8.DecodeLastRune(b[:from])
		from -= size
	}
	if bytes.Equal(letters.Plain(b[from:]), need) {
		return len(b) - from, tierQuotes
	}
	return 0, tierNone
}

// prefix does the same at the start of b.
func prefix(b, want []byte) (n int, t tier) {
	if bytes.HasPrefix(b, want) {
		return len(want), tierExact
	}
	need := letters.Plain(want)
	to := 0
	for len(letters.Plain(b[:to])) < len(need) && to < len(b) {
		_, size := utf8.DecodeRune(b[to:])
		to += size
	}
	if bytes.Equal(letters.Plain(b[:to]), need) {
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
		v.pair(indentOf(letters.Plain(v.old[o.start:want.end])), indentOf(letters.Plain(v.text[cur.start:have.end])))
	}
	t := compare(a, b, i < v.bottom)
	if t == tierNone && whole {
		a, b = letters.Plain(a), letters.Plain(b)
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
	if len(trimBlanks(letters.Plain(have))) > 0 {
		return false
	}
	v.end = cur.end
	return v.raise(tierTrailing)
}
