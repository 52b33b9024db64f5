package edit

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/edit/diff"
)

// diagnosis is a place in the text that is close to Old, and why it is not Old.
type diagnosis struct {
	cause      string
	start, end int
	partial    bool
	open       bool // it is in doubt where Old would begin or end
	rival      bool // another place is nearly as like
	detail     string
}

// diagnose fills err in with the place of src.text that is meant by e, most likely, and gives it. It looks for an equal text that no tier
// may take, then for one that the session last saw, then in the other case, then for the lines that have most in common. Each step
// is linear in the text.
func diagnose(err *NoMatchError, src *source, seen []byte, e Edit) (d diagnosis) {
	why := err.Detail // of the tier that found the place
	err.Cause = CauseUnknown
	if len(src.text) == 0 {
		err.Detail = "the file is empty"
		return d
	}
	n := newQuote([]byte(e.Old))
	d, ok := n.nearFolded(src)
	if !ok {
		d, ok = nearRepaired(src, e)
	}
	if !ok {
		d, ok = nearSeen(src, seen, e)
	}
	if !ok {
		d, ok = n.nearCase(src)
	}
	if !ok {
		d, ok = nearest(src, []byte(e.Old))
	}
	if !ok {
		return d
	}
	if cause := d.proven(e.Old, string(src.text[d.start:d.end])); cause != d.cause {
		d.cause, d.detail = cause, ""
	}
	if err.Cause, err.Detail, err.Partial = d.cause, d.detail, d.partial; why != "" {
		err.Detail = why
	}
	err.Line = lineAt(src.text, d.start)
	err.EndLine = err.Line
	if d.end > d.start {
		err.EndLine += bytes.Count(src.text[d.start:d.end-1], []byte("\n"))
	}
	from := lineStart(src.text, d.start)
	to := lineFrom(src.text, max(d.start, d.end-1)).end
	err.Region = shownRegion(src.text, from, max(from, to), d.start, d.end)
	if !d.open {
		var whole bool
		err.Resend, whole = resend(src, d.start, d.end)
		err.Partial = err.Partial || !whole
	}
	return d
}

// proven is the cause if it alone explains the difference. A damage that was undone in Old before, such as line numbers, is proven by the
// place that was found.
func (d *diagnosis) proven(old, there string) string {
	switch d.cause {
	case CauseEscaped, CauseEntity, CauseLineNumbers, CauseStale, CauseUnknown:
		return d.cause
	}
	return provenCause(d.cause, old, there)
}

// nearFolded looks for Old with both texts folded. It finds text that a tier would take which may not be used here, or that differs in
// white space alone.
func (n *quote) nearFolded(src *source) (diagnosis, bool) {
	if n == nil {
		return diagnosis{}, false
	}
	places, _ := n.candidates(src)
	if len(places) == 0 {
		return diagnosis{}, false
	}
	best, found := match{tier: tierNone}, 0
	for _, c := range places {
		if m, ok := n.verify(src.text, c); ok {
			found++
			if m.tier < best.tier {
				best = m
			}
		}
	}
	if found == 0 {
		d := diagnosis{cause: CauseWhitespace, rival: len(places) > 1} // inside lines, or blank lines
		d.start, d.end = n.around(src.text, places[0])
		return d, true
	}
	d := diagnosis{start: best.start, end: best.end, rival: found > 1}
	d.cause = [...]string{tierExact: CauseLineEndings, tierEndings: CauseLineEndings, tierTrailing: CauseTrailingBlanks,
		tierQuotes:  CauseUnicodeSpace, // or quotes, as proven finds
		tierUnicode: CauseNormalisation, tierIndent: CauseIndentation}[best.tier]
	if best.noFinal && best.tier == tierTrailing {
		d.detail = "the file ends there without a line break"
	}
	if best.tier == tierIndent {
		pairs := best.indents
		if n.top == 0 {
			pre := src.text[best.lineAt:best.from.start]
			pairs = append(pairs, pair{old: string(n.old[:n.first]), file: string(pre)})
			if n.first > 0 || bytes.Contains(src.text[best.start:best.end], []byte("\n")) {
				d.start = best.start
			}
		}
		for _, p := range pairs {
			if strings.Contains(p.old, "\t") != strings.Contains(p.file, "\t") && p.old != "" && p.file != "" ||
				strings.Contains(p.old, " ") != strings.Contains(p.file, " ") && p.old != "" && p.file != "" {
				d.cause = CauseTabsVsSpaces
			}
		}
		if found == 1 {
			d.detail = "the lines are the same but no one rule turns their indentation into that of the file"
		}
	}
	return d, true
}

// nearRepaired looks for Old repaired: as the tier does, and then with the looser tiers.
func nearRepaired(src *source, e Edit) (diagnosis, bool) {
	rs := repairs(e)
	var detail string
	for _, r := range rs {
		p, err := r.place(src, false)
		if _, many := err.(*NotUniqueError); many {
			if at := bytes.Index(src.text, []byte(r.old)); at >= 0 {
				return diagnosis{cause: r.cause, start: at, end: at + len(r.old), detail: r.unsure}, true
			}
		}
		if p != nil {
			if detail = r.unsure; detail == "" && len(rs) > 1 {
				detail = "what new_string should become cannot be told: write both as they are in the file"
			}
			return diagnosis{cause: r.cause, start: p.rs[0].start, end: p.rs[0].end, detail: detail}, true
		}
	}
	for _, r := range rs {
		n := newQuote([]byte(r.old))
		if d, ok := n.nearFolded(src); ok && (r.numbered == 0 || r.several || lineAt(src.text, d.start) == r.numbered) {
			d.cause, d.detail = r.cause, r.unsure
			return d, true
		}
	}
	return diagnosis{}, false
}

// nearSeen finds Old in seen, the file as the session last saw it, and gives the lines of the text that stand there now.
func nearSeen(src *source, seen []byte, e Edit) (diagnosis, bool) {
	if len(seen) == 0 || bytes.Equal(seen, src.text) {
		return diagnosis{}, false
	}
	before := newSource(seen)
	p, err := find(before, Edit{Old: e.Old}, false)
	at, end := -1, -1
	if p != nil {
		at, end = p.rs[0].start, p.rs[0].end
	} else if _, ok := err.(*NotUniqueError); ok {
		if at = bytes.Index(seen, []byte(e.Old)); at >= 0 {
			end = at + len(e.Old)
		}
	}
	if at < 0 {
		return diagnosis{}, false
	}
	first, last := lineAt(seen, at)-1, lineAt(seen, max(at, end-1)) // lines [first,last) of seen
	a, b := diff.Lines(seen), diff.Lines(src.text)
	from, to := first, last
	for _, c := range diff.Changes(a, b) {
		shift := (c.B1 - c.B0) - (c.A1 - c.A0)
		switch {
		case c.A1 <= first && !(c.A0 == c.A1 && c.A0 == first):
			from, to = from+shift, to+shift
		case c.A0 < last || c.A0 == c.A1 && c.A0 == first:
			if c.A0 <= first {
				from = c.B0
			}
			to = max(to+shift, c.B1)
		}
	}
	from, to = max(0, min(from, len(b))), max(0, min(to, len(b)))
	d := diagnosis{cause: CauseStale, partial: true, detail: "the file has changed since it was read"}
	d.start, d.end = stretchOf(b, from, max(from, to))
	if len(trimBlanks(seen[lineStart(seen, at):at])) > 0 || len(trimBlanks(seen[end:lineFrom(seen, end).end])) > 0 {
		d.alignEnds(src, []byte(e.Old)) // it was a part of lines
	} else if from < to && !strings.HasSuffix(e.Old, "\n") {
		d.end = d.start + len(bytes.TrimRight(src.text[d.start:d.end], "\r\n"))
	}
	return d, true
}

// nearCase looks for Old with both texts folded and ASCII letters in lower case.
func (n *quote) nearCase(src *source) (diagnosis, bool) {
	if n == nil {
		return diagnosis{}, false
	}
	folded, marks := src.fold()
	at := bytes.Index(lowerASCII(folded), lowerASCII(n.folded))
	if at < 0 {
		return diagnosis{}, false
	}
	start, end, ok := sourceRange(src.text, marks, at, at+len(n.folded))
	if !ok {
		return diagnosis{}, false
	}
	start, end = n.around(src.text, extent{start, end})
	cause := CauseCase
	if bytes.Equal(folded[at:at+len(n.folded)], n.folded) { // a long word, maybe with blanks in it
		cause = CauseWhitespace
	}
	again := bytes.Contains(lowerASCII(folded)[at+1:], lowerASCII(n.folded))
	return diagnosis{cause: cause, start: start, end: end, rival: again}, true
}

// around adds to a place the white space that the file has where Old has some at its ends.
func (n *quote) around(text []byte, at extent) (start, end int) {
	start, end = at.start, at.end
	if from := lineStart(text, start); n.first > 0 && len(trimBlanks(text[from:start])) == 0 {
		start = from
	}
	if l := lineFrom(text, end); n.last < len(n.old) && len(trimBlanks(text[end:l.end])) == 0 {
		end = l.end
		if n.lines[len(n.lines)-1].start > n.last {
			end = l.next
		}
	}
	return start, end
}

func lowerASCII(b []byte) []byte {
	out := append([]byte(nil), b...)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}

// resend gives src.text[start:end] with as many lines around it as make it unique. whole is true if it needs none. Bytes that are no
// text can't be sent: it gives "".
func resend(src *source, start, end int) (s string, whole bool) {
	budget := lookBudget
	region := src.text[start:end]
	if !utf8.Valid(region) || len(region) == 0 {
		return "", false
	}
	if once(src.text, region, start, &budget) {
		return string(region), true
	}
	s, _ = uniqueAround(src.text, start, end, &budget)
	return s, false
}

// equalities are the causes that two texts are compared for, each with the function that makes both the same then. A refusal names a
// cause only where it alone keeps old_string and the region apart, but for blanks at line ends and line endings. So it is enough
// to repair that.
var equalities = []struct {
	cause string
	same  func(s string) string
}{
	{CauseLineEndings, lf},
	{CauseTrailingBlanks, eachLine(func(l string) string { return l })},
	{CauseIndentation, eachLine(func(l string) string { return strings.TrimLeft(l, " \t") })},
	{CauseUnicodeSpace, eachLine(foldSpaces)},
	{CauseQuotes, eachLine(func(l string) string { return string(Plain([]byte(l))) })},
	{CauseNormalisation, eachLine(norm.NFC.String)},
	{CauseWhitespace, func(s string) string { return strings.Join(strings.Fields(s), "") }},
	{CauseCase, eachLine(strings.ToLower)},
}

// provenCause gives cause if it alone explains how old and there differ, else one that does, else CauseUnknown.
func provenCause(cause, old, there string) string {
	named, other := cause, CauseUnknown
	if cause == CauseTabsVsSpaces {
		named = CauseIndentation
	}
	for _, e := range equalities {
		switch same := e.same(old) == e.same(there); {
		case same && e.cause == named:
			return cause
		case same && other == CauseUnknown:
			other = e.cause
		}
	}
	return other
}

// eachLine changes every line of a text by f, and takes away blanks at line ends and breaks at the end.
func eachLine(f func(l string) string) func(string) string {
	return func(s string) string {
		lines := strings.Split(lf(s), "\n")
		for i, l := range lines {
			lines[i] = strings.TrimRight(f(l), " \t\r\f\v")
		}
		return strings.Trim(strings.Join(lines, "\n"), "\n")
	}
}

// foldSpaces writes odd spaces as a blank, and leaves invisible characters out.
func foldSpaces(l string) string {
	return strings.Map(func(r rune) rune {
		switch s, odd := foldRune(r); {
		case odd && s == "":
			return -1
		case odd && unicode.IsSpace(r):
			return ' '
		}
		return r
	}, l)
}

// clip shortens s to about max bytes, at characters, and says so by an ellipsis.
func clip(s string, max int) string {
	if len(s) <= max {
		return strings.ToValidUTF8(s, "\ufffd")
	}
	cut := max
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.ToValidUTF8(s[:cut], "\ufffd") + "…"
}

const (
	maxLines    = 50 // line numbers in a NotUniqueError
	maxContexts = 3
	maxContext  = 8 << 10  // bytes of a context
	lookBudget  = 64 << 20 // bytes looked at to tell contexts apart
)

// notUniqueExact lists the places of old in text, of which there are at least two; second is where the second one begins.
func notUniqueExact(text, old []byte, second int) *NotUniqueError {
	var places []extent
	count := 0
	for pos := 0; ; {
		i := bytes.Index(text[pos:], old)
		if i < 0 {
			break
		}
		if count++; len(places) < maxLines {
			places = append(places, extent{pos + i, pos + i + len(old)})
		}
		pos += i + len(old)
	}
	if count == 1 { // they overlap
		count, places = 2, append(places, extent{second, second + len(old)})
	}
	return notUnique(text, places, count, tierExact)
}

func notUniqueLoose(text []byte, ms []match, t tier) *NotUniqueError {
	regions := make([]extent, 0, maxLines)
	for _, m := range ms[:min(len(ms), maxLines)] {
		regions = append(regions, extent{m.start, m.end})
	}
	return notUnique(text, regions, len(ms), t)
}

func notUnique(text []byte, regions []extent, count int, t tier) *NotUniqueError {
	e := &NotUniqueError{Count: count, Strategy: t.String()}
	num, pos := lineAt(text, 0), 0
	brk := []byte{'\n'}
	for _, r := range regions {
		num += bytes.Count(text[pos:max(pos, r.start)], brk)
		pos = max(pos, r.start)
		e.Lines = append(e.Lines, num)
	}
	budget := lookBudget
	for i, r := range regions[:min(len(regions), maxContexts)] {
		if s, ok := uniqueAround(text, r.start, r.end, &budget); ok {
			e.Contexts = append(e.Contexts, Context{e.Lines[i], s})
		}
	}
	return e
}

// uniqueAround gives text[start:end] with as many whole lines around it as make it unique and valid UTF-8. Lines are added above and below
// by turns, and those that are not needed are taken off again. Looking at text costs budget.
func uniqueAround(text []byte, start, end int, budget *int) (string, bool) {
	above, below := []int{lineStart(text, start)}, []int{end} // where it begins and ends with none, one, two … more
	if lineStart(text, end) < end || end == start {
		below[0] = lineFrom(text, end).end
	}
	if above[0]+longLine < below[0] {
		return uniqueWithin(text, above[0], below[0], start, end, budget)
	}
	unique := func(up, down int) bool {
		s := text[above[len(above)-up]:below[len(below)-down]]
		return len(s) > 0 && utf8.Valid(s) && once(text, s, above[len(above)-up], budget)
	}
	for step := 0; !unique(1, 1); step++ {
		from, to := above[len(above)-1], below[len(below)-1]
		next := to // line below
		if len(below) > 1 || end == start || lineStart(text, to) < to {
			next = lineFrom(text, to).next
		}
		switch {
		case *budget <= 0, to-from > maxContext+end-start, from == 0 && next == len(text):
			return "", false
		case next < len(text) && (step%2 == 1 || from == 0):
			below = append(below, lineFrom(text, next).end)
		default:
			above = append(above, lineStart(text, from-1))
		}
	}
	for len(below) > 1 && unique(1, 2) {
		below = below[:len(below)-1]
	}
	for len(above) > 1 && unique(2, 1) {
		above = above[:len(above)-1]
	}
	return string(text[above[len(above)-1]:below[len(below)-1]]), true
}

// once reports whether s, which is in text at offset at, is nowhere else in it.
func once(text, s []byte, at int, budget *int) bool {
	i := bytes.Index(text, s)
	*budget -= i + len(s)
	if i != at {
		return false
	}
	j := bytes.Index(text[at+1:], s)
	if j < 0 {
		*budget -= len(text) - at
		return true
	}
	*budget -= j
	return false
}

// In minified code a line is the whole file. Of such a line a window around the place is shown or sent, not its beginning.

const (
	longLine   = 2048 // bytes; of a longer region only a window is shown
	windowEdge = 80   // bytes shown on either side of the place
)

// shownRegion shows text[from:to], whole lines, of which start to end is the place.
func shownRegion(text []byte, from, to, start, end int) string {
	if to-from <= longLine || end-start > longLine/2 {
		return clip(string(text[from:to]), longLine)
	}
	a, b := wholeWords(text, max(from, start-windowEdge), min(to, end+windowEdge))
	s := clip(string(text[max(a, from):min(b, to)]), longLine)
	if a > from {
		s = "…" + s
	}
	if b < to {
		s += "…"
	}
	return s
}

// uniqueWithin gives text[start:end] with as much around it on its lines, in whole words, as is in
// the text once. It gives none that is not valid UTF-8: that could not be sent.
func uniqueWithin(text []byte, from, to, start, end int, budget *int) (string, bool) {
	for n := 8; n <= longLine/4 && *budget > 0; n *= 2 {
		a, b := wholeWords(text, max(from, start-n), min(to, end+n))
		a, b = max(a, from), min(b, to)
		if once(text, text[a:b], a, budget) {
			return string(text[a:b]), utf8.Valid(text[a:b])
		}
	}
	return "", false
}
