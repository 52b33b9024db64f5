package edit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/edit/letters"
)

// diagnosis is a place in the text that is close to Old, and why it is not Old.
type diagnosis struct {
	cause      string
	start, end int
	partial    bool
	open       bool // where Old would begin or end can't be told
	rival      bool // another place is nearly as like
	detail     string
}

// diagnose fills in a NoMatchError: equivalences first, then what the session last saw, then the
// other case, then what has most in common. Each step is linear in the text.
func diagnose(err *NoMatchError, h *haystack, seen []byte, e Edit) (d diagnosis) {
	why := err.Detail // of the tier that found the place
	err.Cause = CauseUnknown
	if len(h.text) == 0 {
		err.Detail = "the file is empty"
		return d
	}
	n := newNeedle([]byte(e.Old))
	d, ok := n.near(h)
	if !ok {
		d, ok = nearRepaired(h, e)
	}
	if !ok {
		d, ok = nearSeen(h, seen, e)
	}
	if !ok {
		d, ok = n.nearCase(h)
	}
	if !ok {
		d, ok = nearest(h, []byte(e.Old))
	}
	if !ok {
		return d
	}
	if cause := d.plainly(e.Old, string(h.text[d.start:d.end])); cause != d.cause {
		d.cause, d.detail = cause, ""
	}
	if err.Cause, err.Detail, err.Partial = d.cause, d.detail, d.partial; why != "" {
		err.Detail = why
	}
	err.Line = lineAt(h.text, d.start)
	err.EndLine = err.Line
	if d.end > d.start {
		err.EndLine += bytes.Count(h.text[d.start:d.end-1], []byte("\n"))
	}
	from := lineStart(h.text, d.start)
	to := lineFrom(h.text, max(d.start, d.end-1)).end
	err.Region = window(h.text, from, max(from, to), d.start, d.end)
	err.Diff = letters.Diff(e.Old, string(h.text[d.start:d.end]), err.Line)
	if !d.open {
		var whole bool
		err.Resend, whole = resend(h, d.start, d.end)
		err.Partial = err.Partial || !whole
	}
	return d
}

// plainly is the cause if it alone explains the difference. What was undone in Old before, such as
// line numbers, is proven by the place that was found.
func (d *diagnosis) plainly(old, there string) string {
	switch d.cause {
	case CauseEscaped, CauseEntity, CauseLineNumbers, CauseStale, CauseUnknown:
		return d.cause
	}
	return letters.Proven(d.cause, CauseUnknown, old, there)
}

// near looks for Old by skeleton: found by a tier that may not be used, or differing in white
// space.
func (n *needle) near(h *haystack) (diagnosis, bool) {
	if n == nil {
		return diagnosis{}, false
	}
	places, _ := n.candidates(h)
	if len(places) == 0 {
		return diagnosis{}, false
	}
	best, found := match{tier: tierNone}, 0
	for _, c := range places {
		if m, ok := n.verify(h.text, c); ok {
			found++
			if m.tier < best.tier {
				best = m
			}
		}
	}
	if found == 0 {
		d := diagnosis{cause: CauseWhitespace, rival: len(places) > 1} // inside lines, or blank lines
		d.start, d.end = n.around(h.text, places[0])
		return d, true
	}
	d := diagnosis{start: best.start, end: best.end, rival: found > 1}
	switch best.tier {
	case tierExact, tierEndings:
		d.cause = CauseLineEndings
	case tierTrailing:
		d.cause = CauseTrailingBlanks
		if best.noFinal {
			d.detail = "the file ends there without a line break"
		}
	case tierQuotes:
		d.cause = CauseUnicodeSpace // or quotes, as plainly finds
	case tierUnicode:
		d.cause = CauseNormalisation
	case tierIndent:
		d.cause = CauseIndentation
		pairs := best.indents
		if n.top == 0 {
			pre := h.text[best.lineAt:best.from.start]
			pairs = append(pairs, pair{old: string(n.old[:n.first]), file: string(pre)})
			if n.first > 0 || bytes.Contains(h.text[best.start:best.end], []byte("\n")) {
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
func nearRepaired(h *haystack, e Edit) (diagnosis, bool) {
	rs := repairs(e)
	var detail string
	for _, r := range rs {
		p, err := r.place(h, false)
		switch err := err.(type) {
		case *NotUniqueError:
			if at := bytes.Index(h.text, []byte(r.old)); at >= 0 {
				return diagnosis{cause: r.cause, start: at, end: at + len(r.old), detail: r.unsure}, true
			}
			_ = err
		}
		if p != nil {
			if detail = r.unsure; detail == "" && len(rs) > 1 {
				detail = "what new_string should become cannot be told: write both as they are in the file"
			}
			return diagnosis{cause: r.cause, start: p.rs[0].start, end: p.rs[0].end, detail: detail}, true
		}
	}
	for _, r := range rs {
		n := newNeedle([]byte(r.old))
		if d, ok := n.near(h); ok && (r.numbered == 0 || r.several || lineAt(h.text, d.start) == r.numbered) {
			d.cause, d.detail = r.cause, r.unsure
			return d, true
		}
	}
	return diagnosis{}, false
}

// nearSeen finds Old in what the session last saw, and where that has gone since.
func nearSeen(h *haystack, seen []byte, e Edit) (diagnosis, bool) {
	if len(seen) == 0 || bytes.Equal(seen, h.text) {
		return diagnosis{}, false
	}
	before := newHaystack(seen)
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
	a, b := diff.Lines(seen), diff.Lines(h.text)
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
	for i, l := range b[:to] {
		if i < from {
			d.start += len(l)
		}
		d.end += len(l)
	}
	d.end = max(d.start, d.end)
	if len(trimBlanks(seen[lineStart(seen, at):at])) > 0 || len(trimBlanks(seen[end:lineFrom(seen, end).end])) > 0 {
		d.settle(h, []byte(e.Old)) // it was a part of lines
	} else if from < to && !strings.HasSuffix(e.Old, "\n") {
		d.end = d.start + len(bytes.TrimRight(h.text[d.start:d.end], "\r\n"))
	}
	return d, true
}

// nearCase looks for Old by skeleton without regard to the case of ASCII letters.
func (n *needle) nearCase(h *haystack) (diagnosis, bool) {
	if n == nil {
		return diagnosis{}, false
	}
	bones, marks := h.skeleton()
	at := bytes.Index(lowerASCII(bones), lowerASCII(n.bones))
	if at < 0 {
		return diagnosis{}, false
	}
	start, end, ok := letters.Place(h.text, marks, at, at+len(n.bones))
	if !ok {
		return diagnosis{}, false
	}
	start, end = n.around(h.text, extent{start, end})
	cause := CauseCase
	if bytes.Equal(bones[at:at+len(n.bones)], n.bones) { // a long word, maybe with blanks in it
		cause = CauseWhitespace
	}
	again := bytes.Contains(lowerASCII(bones)[at+1:], lowerASCII(n.bones))
	return diagnosis{cause: cause, start: start, end: end, rival: again}, true
}

// around adds to a place the white space that the file has where Old has some at its ends.
func (n *needle) around(text []byte, at extent) (start, end int) {
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

// resend gives text[start:end] with as many lines around it as make it unique; whole: it needs
// none. What is no text can't be sent and gives "".
func resend(h *haystack, start, end int) (s string, whole bool) {
	budget := lookBudget
	region := h.text[start:end]
	if utf8.Valid(region) && len(region) > 0 {
		if once(h.text, region, start, &budget) {
			return string(region), true
		}
		s, _ = uniqueAround(h.text, start, end, &budget)
		return s, false
	}
	// The lines of the region that are text, the longest run of them.
	best := extent{start, start}
	run := extent{start, start}
	for at := start; at < end; {
		l := lineFrom(h.text, at)
		stop := min(l.next, end)
		if utf8.Valid(h.text[at:stop]) {
			if run.end != at {
				run.start = at
			}
			run.end = stop
			if run.end-run.start > best.end-best.start {
				best = run
			}
		}
		at = stop
	}
	if best.end > best.start {
		if once(h.text, h.text[best.start:best.end], best.start, &budget) {
			return string(h.text[best.start:best.end]), false
		}
	}
	return "", false
}
