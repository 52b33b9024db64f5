package edit

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/text"
)

// A refusal offers a whole edit, which was tried, and does not make it: if a repair is in the text, or if Old, the region nearest to it and
// New merge without a conflict.

const maxOffered = 64 << 10 // bytes of an edit for which another is looked for

// offer gives the edit that was most likely meant by e; nil where in doubt. region is where Old is likest.
func offer(src *source, e Edit, region diagnosis) *Edit {
	if e.All || len(e.Old)+len(e.New) > maxOffered || !utf8.ValidString(e.Old) || !utf8.ValidString(e.New) {
		return nil
	}
	found, doubt := byRepair(src, e)
	if len(found) == 0 && !doubt {
		if r, ok := byMerge(src, e, region); ok {
			found = append(found, r)
		}
	}
	if len(found) == 1 && !doubt {
		return offered(src, found[0])
	}
	return nil
}

// byRepair gives the replacements that repairs make of an edit that no tier could make. doubt says that one of them leaves the meaning open.
func byRepair(src *source, e Edit) (found []replacement, doubt bool) {
	for _, r := range append(repairs(e), folded(e)...) {
		if strings.TrimSpace(r.old) == "" || r.old == r.new {
			continue
		}
		p, err := find(src, Edit{Old: r.old, New: r.new}, false)
		if p != nil && r.numbered > 0 && !r.inside && lineStart(src.text, p.rs[0].start) < p.rs[0].start {
			// Whole lines, of which the indentation was lost: all by the same.
			in := indentAt(src, p.rs[0].start)
			if in == "" || strings.Contains(r.new, "\n"+otherBlank(in)) {
				doubt = doubt || in != ""
				continue
			}
			p, err = find(src, Edit{Old: deepened(r.old, in), New: deepened(r.new, in)}, false)
		}
		switch _, many := err.(*NotUniqueError); {
		case many:
			doubt = true
		case p == nil, r.numbered > 0 && !r.several && lineAt(src.text, p.rs[0].start) != r.numbered:
		case strings.Count(r.old, "\n") > strings.Count(e.Old, "\n") && p.strategy == StrategyIndentation: // its lines were one
		case r.cause == CauseEscaped && len(r.old) < len(e.Old) && strings.Contains(own(r.old, r.new), `\`): // some are left
			doubt = true
		case r.unsure != "", cutsRun(src.text, p.rs[0].start), cutsRun(src.text, p.rs[0].end), further(src, Edit{Old: r.old, New: r.new}, p.rs[0].start):
			doubt = true
		default:
			found = withLeast(src, found, p.rs[0])
		}
	}
	return found, doubt
}

// own is the part of new that old lacks, between their common ends.
func own(old, new string) string {
	_, own, _ := affixes(old, new)
	return own
}

// otherBlank is the blank that an indentation does not begin with.
func otherBlank(in string) string {
	if in[0] == '\t' {
		return " "
	}
	return "\t"
}

// withLeast adds a replacement to others, without the ends that it leaves as they are, unless it is among them.
func withLeast(src *source, found []replacement, r replacement) []replacement {
	d := document{text: src.text, enc: text.UTF8}
	if r = d.trim(r); slices.Contains(found, r) {
		return found
	}
	return append(found, r)
}

// offered is the edit that is sent for a replacement, with as many lines around it as make it unique; nil where
// it can't be sent.
func offered(src *source, r replacement) *Edit {
	d := document{text: src.text, enc: text.UTF8}
	r = d.trim(r)
	budget := lookBudget
	old, ok := uniqueAround(src.text, r.start, r.end, &budget)
	at := bytes.Index(src.text, []byte(old))
	if !ok || r.start == r.end && r.with == "" || at > r.start || at+len(old) < r.end {
		return nil
	}
	sent := Edit{Old: old, New: old[:r.start-at] + r.with + old[r.end-at:]}
	p, err := find(src, sent, true)
	if err != nil || len(p.rs) != 1 || !utf8.ValidString(sent.Old) || d.trim(p.rs[0]) != r {
		return nil
	}
	return &sent
}

// byMerge merges Old, the region that is like it, and New.
func byMerge(src *source, e Edit, d diagnosis) (r replacement, ok bool) {
	if d.open || d.rival || d.end <= d.start || d.end-d.start > maxOffered || !utf8.Valid(src.text[d.start:d.end]) {
		return r, false
	}
	region := lf(string(src.text[d.start:d.end]))
	s := slipsOf(lf(e.Old), region)
	spared, lines := s.spares(lf(e.New))
	if !s.likely() || !spared || strings.Contains(region, "\r") {
		return r, false
	}
	pre, post := src.text[lineStart(src.text, d.start):d.start], src.text[d.end:lineFrom(src.text, d.end).end]
	if lines && len(trimBlanks(pre))+len(trimBlanks(post)) > 0 {
		return r, false // New's lines would come to stand within another line
	}
	with, ok := diff.MergeWords([]byte(lf(e.Old)), []byte(region), []byte(lf(e.New)), tokens)
	if !ok || string(with) == region {
		return r, false
	}
	f := newFitter(src.text, region, string(with))
	return replacement{d.start, d.end, f.fit(d.start, d.end)}, true
}

// tokens divides a text into words, other characters and line breaks.
func tokens(s []byte) (out [][]byte) {
	at := 0
	for _, end := range tokenEnds(s) {
		out = append(out, s[at:end])
		at = end
	}
	return out
}

// slips are how Old and the region differ, token by token.
type slips struct {
	old     [][]byte
	words   [][2]string // of Old, and of the file
	signs   string      // that only one of them has there
	size    int         // bytes of signs that differ
	unlike  bool        // other words or numbers: another place is meant
	lost    bool        // the file has signs more
	lowered bool        // the file has capitals, and Old has none
	differs [kinds]bool // kinds of which New may have damaged tokens too: those of white space in which they differ
}

// kind is the kind of a token. Of white space it says where it stands: in "a b " the first blank is a spacer, the last one trail.
type kind int

const (
	sign kind = iota
	word
	spacer    // the blank between two words
	inner     // any other within a line
	indent    // a blank at the beginning of a line
	trail     // one at its end
	lineBreak // between two lines that have text
	emptyLine // a line break beside an empty line
	kinds
)

// kindAt gives the kind of token i of a text.
func kindAt(all [][]byte, i int) kind {
	first := func(at int) rune {
		if at < 0 || at >= len(all) {
			return '\n'
		}
		r, _ := utf8.DecodeRune(all[at])
		return r
	}
	beside := func(step int) rune { // the next character on that side that is no blank
		for at := i + step; ; at += step {
			if r := first(at); !unicode.IsSpace(r) || r == '\n' {
				return r
			}
		}
	}
	switch r := first(i); {
	case isWord(r):
		return word
	case r == '\n' && (beside(-1) == r || beside(+1) == r):
		return emptyLine
	case r == '\n':
		return lineBreak
	case !unicode.IsSpace(r):
		return sign
	case beside(-1) == '\n':
		return indent
	case beside(+1) == '\n':
		return trail
	case isWord(first(i-1)) && isWord(first(i+1)):
		return spacer
	}
	return inner
}

// slipsOf compares Old with the text in the file that is like it.
func slipsOf(old, file string) *slips {
	s := &slips{old: tokens([]byte(old)), lowered: strings.ToLower(old) == old && strings.ToLower(file) != file}
	there := tokens([]byte(file))
	for _, c := range diff.Changes(s.old, there) {
		for i, j := c.A0, c.B0; i < c.A1 || j < c.B1; {
			var a, b string // a token of Old for one of the file, or one that the other side lacks
			var k kind
			if i < c.A1 {
				a, k = string(s.old[i]), kindAt(s.old, i)
			}
			if j < c.B1 {
				other := kindAt(there, j)
				if b = string(there[j]); a != "" && k != other {
					if c.A1-i > c.B1-j || c.A1-i == c.B1-j && k > word {
						b = ""
					} else {
						a = ""
					}
				}
				if a == "" {
					k = other
				}
			}
			i, j = i+min(len(a), 1), j+min(len(b), 1)
			switch k {
			case word:
				s.words = append(s.words, [2]string{a, b})
				s.unlike = s.unlike || a == "" || b == "" || !misspelt(a, b)
			case sign:
				s.unlike = s.unlike || a != "" && b != "" && !strings.Contains("\"'`", a) && !bytes.Equal(Plain([]byte(a)), Plain([]byte(b)))
				s.lost = s.lost || a == ""
				s.signs += a + b
				s.size += max(len(a), len(b))
			default:
				if k == inner && a == "" {
					k = sign // New may lack such blanks beside its signs
				}
				s.differs[k] = true
			}
		}
	}
	return s
}

// misspelt says that one word may be the other: so few letters differ, or their case alone. utf8 is not utf7.
func misspelt(a, b string) bool {
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return r
			}
			return -1
		}, s)
	}
	if strings.EqualFold(a, b) {
		return true
	}
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	return digits(a) == digits(b) && differing(x, y) <= min(2, max(len(x), len(y))/4)
}

// likely says that the region is the place that was meant.
func (s *slips) likely() bool {
	all := 0
	for _, t := range s.old {
		all += len(bytes.TrimSpace(t))
	}
	return !s.unlike && all > 0 && 4*s.size <= all
}

// spares says that New's changes show no sign of the damage of Old: none of the tokens that it adds or drops is of a kind in which Old and
// the file differ. lines is set if it adds or drops line breaks.
func (s *slips) spares(new string) (spared, lines bool) {
	news := tokens([]byte(new))
	for _, c := range diff.Changes(s.old, news) {
		if s.lost && c.A1-c.A0 != c.B1-c.B0 || s.differs[emptyLine] && c.B0 == c.B1 {
			return false, false // the rest may lack the same
		}
		for i := c.A0; i < c.A1; i++ {
			k := kindAt(s.old, i)
			if lines = lines || k >= lineBreak; k == sign && strings.Contains(s.signs, string(s.old[i])) {
				return false, false
			}
		}
		for j := c.B0; j < c.B1; j++ {
			t := string(news[j])
			switch k := kindAt(news, j); {
			case k == lineBreak, k == emptyLine && !s.differs[k]:
				lines = true
			case s.differs[k],
				k == word && (s.lowered || slices.ContainsFunc(s.words, func(w [2]string) bool { return sharesSlip(t, w[0], w[1]) })),
				k == sign && strings.Contains(s.signs, t):
				return false, false
			}
		}
	}
	return !lines || !s.differs[indent] && !s.differs[trail] && !s.differs[lineBreak], lines
}

// sharesSlip says that the word w holds the part in which old and the file differ: it begins or ends as old does up to there. Given
// countt in Old and count in the file, countt2 shares the slip, and cow does not.
func sharesSlip(w, old, file string) bool {
	const least = 3
	head, tail := commonEnds(old, file)
	n, m := commonEnds(w, old)
	return w == old || n >= max(least, head+1) || m >= max(least, tail+1)
}
