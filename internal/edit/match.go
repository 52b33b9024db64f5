package edit

import (
	"bytes"
	"strings"
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
