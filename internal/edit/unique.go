package edit

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	maxLines    = 50 // line numbers in a NotUniqueError
	maxContexts = 3
	maxAround   = 40       // lines on either side that a context may take
	maxContext  = 8 << 10  // bytes of a context
	lookBudget  = 64 << 20 // bytes looked at to tell contexts apart
)

// notUniqueExact lists the matches of old, of which there are at least two.
func notUniqueExact(text, old []byte, first, second int) *NotUniqueError {
	var starts []int
	count := 0
	for pos := 0; ; {
		i := bytes.Index(text[pos:], old)
		if i < 0 {
			break
		}
		if count++; len(starts) < maxLines {
			starts = append(starts, pos+i)
		}
		pos += i + len(old)
	}
	if count == 1 { // they overlap
		count, starts = 2, []int{first, second}
	}
	regions := make([]extent, len(starts))
	for i, s := range starts {
		regions[i] = extent{s, s + len(old)}
	}
	return notUnique(text, regions, count, tierExact)
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
	cr := crOnly(text)
	num, pos := lineAt(text, 0), 0
	brk := []byte{'\n'}
	if cr {
		brk[0] = '\r'
	}
	for _, r := range regions {
		num += bytes.Count(text[pos:max(pos, r.start)], brk)
		pos = max(pos, r.start)
		e.Lines = append(e.Lines, num)
	}
	budget := lookBudget
	for i, r := range regions[:min(len(regions), maxContexts)] {
		if s, ok := uniqueAround(text, r.start, r.end, cr, &budget); ok {
			e.Contexts = append(e.Contexts, Context{e.Lines[i], s})
		}
	}
	return e
}

// uniqueAround gives the least run of whole lines around text[start:end] that is in the text once and is valid UTF-8.
func uniqueAround(text []byte, start, end int, cr bool, budget *int) (string, bool) {
	above, below := []int{lineStart(text, start, cr)}, []int{end}
	next := end
	if lineStart(text, end, cr) < end || end == start {
		l := lineFrom(text, end, cr)
		below[0], next = l.end, l.next
	}
	for i := 0; i < maxAround && above[i] > 0; i++ {
		above = append(above, lineStart(text, above[i]-1, cr))
	}
	for i := 0; i < maxAround && next < len(text); i++ {
		l := lineFrom(text, next, cr)
		below = append(below, l.end)
		next = l.next
	}
	try := func(a, b int) (ok, final bool) {
		from, to := above[a], below[b]
		s := text[from:to]
		if to-from > maxContext+(end-start) || *budget <= 0 {
			return false, true
		}
		if !utf8.Valid(s) || len(s) == 0 {
			return false, false
		}
		return once(text, s, from, budget), false
	}
	for n := 0; n < len(above)+len(below)-1; n++ {
		for a := 0; a <= n; a++ {
			// Lines above and below in turn, the even spread first: what a reader would quote.
			up := (n + 1) / 2
			if a%2 == 1 {
				up += (a + 1) / 2
			} else {
				up -= a / 2
			}
			down := n - up
			if up < 0 || down < 0 || up >= len(above) || down >= len(below) {
				continue
			}
			ok, final := try(up, down)
			if ok {
				return string(text[above[up]:below[down]]), true
			}
			if final && *budget <= 0 {
				return "", false
			}
		}
	}
	return "", false
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
