// Package mend makes of an edit that was damaged on its way the edit that was meant: it takes
// wrappings off, finds what a text is most like, and merges old, the file and new by token. It is
// pure, and its functions are safe for concurrent use. It never guesses: what can't be told is
// refused, and whoever asks tries the result before offering it.
package mend

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
)

// A text is words and signs, and the white space around them: gaps[i] stands before tokens[i], the
// last one behind all.
type text struct{ tokens, gaps []string }

func wordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

func split(s string) (t text) {
	for at := 0; ; {
		from := at
		for at < len(s) && strings.IndexByte(" \t\r\n\f\v", s[at]) >= 0 {
			at++
		}
		t.gaps = append(t.gaps, s[from:at])
		if at == len(s) {
			return t
		}
		from = at
		r, n := utf8.DecodeRuneInString(s[at:])
		at += n
		for word := wordRune(r); word && at < len(s); at += n {
			if r, n = utf8.DecodeRuneInString(s[at:]); !wordRune(r) {
				break
			}
		}
		t.tokens = append(t.tokens, s[from:at])
	}
}

// A Pair is how a piece is in old, and how in the file.
type Pair struct{ Old, File string }

// Indenter gives the indentation that lines of new get, from how lines of old and of the file are
// indented. ok is false where that can't be told.
type Indenter func(pairs []Pair, in string) (string, bool)

// merger is one merge of three.
type merger struct {
	old, file, new text
	indent         Indenter
	foreign        func(word string) bool // the file has the word elsewhere
	words          map[string]string      // damaged → as the file has it; "" where that differs
	gaps           map[[3]string]string   // the same of white space between two kinds of tokens
	indents        []Pair
	seams          []seam
	side           Side
	marks
}

// Side is what is made of what can't be told: which kind of quotes is meant, and on which side of an
// empty line something goes.
type Side int

const (
	Neither Side = iota // it is refused
	First               // the file's quotes; before the empty line
	Second              // as sent; behind the empty line
)

// marks are what the damage was of.
type marks struct {
	clash      bool // nothing can be told
	lines      bool // old has empty lines that the file has not
	trails     bool // blanks at line ends differ
	closed     bool // old lacks a sign that ends a statement
	unquoted   bool // old has no quotes, and the file has
	less, more bool // within lines old lacks blanks that the file has, or has them where it has none
	lowered    bool // old has no capital, and the file has
}

const many = "\x00" // more than one thing

// Merge takes from new what it changes of old, and all else from file. Each token of the result is
// of file or of new's own change; what of that bears the marks of the damage is mended as old and
// file show it. ok is false where anything remains in doubt that the side does not decide.
func Merge(old, file, new string, indent Indenter, foreign func(string) bool, side Side) (string, bool) {
	m := &merger{side: side, old: split(old), file: split(file), new: split(new), indent: indent, foreign: foreign,
		words: map[string]string{}, gaps: map[[3]string]string{}}
	if len(m.old.tokens) > maxTokens || len(m.file.tokens) > maxTokens || len(m.new.tokens) > maxTokens ||
		len(m.old.tokens) == 0 || len(m.file.tokens) == 0 || len(m.new.tokens) == 0 && new != "" {
		return "", false
	}
	damage, change := changes(m.old, m.file), changes(m.old, m.new)
	slide(m.old, m.new, change)
	m.learn(damage)
	if m.clash || m.dropped(damage, change) || meet(m.old, m.file, damage, change) {
		return "", false
	}
	return m.merge(damage, change)
}

const maxTokens = 4000

func changes(a, b text) []diff.Change { return diff.Changes(raw(a.tokens), raw(b.tokens)) }

func raw(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

// learn notes what befell words and white space.
func (m *merger) learn(damage []diff.Change) {
	for _, c := range damage {
		m.closed = m.closed || c.A0 == c.A1 && strings.Trim(strings.Join(m.file.tokens[c.B0:c.B1], ""), ";,") == ""
	}
	m.unquoted = !slices.ContainsFunc(m.old.tokens, isQuote) && slices.ContainsFunc(m.file.tokens, isQuote)
	in := make([]int, len(m.old.tokens)+1) // where the tokens of old are in the file; -1: nowhere
	at, shift := 0, 0
	for _, c := range append(damage, diff.Change{A0: len(in)}) {
		for ; at < c.A0; at++ {
			in[at] = at + shift
		}
		m.clash = m.clash || c.A0 < c.A1 && c.B0 < c.B1 && // a word is not the beginning of a line
			breaksOf(m.file.gaps[c.B0]) != "" && breaksOf(m.old.gaps[c.A0]) == ""
		for ; at < c.A1; at++ {
			old, to := m.old.tokens[at], many
			m.clash = m.clash || digits(old) // another number is another thing
			in[at] = -1
			if c.A1-c.A0 == c.B1-c.B0 {
				in[at] = c.B0 + at - c.A0
				to = m.file.tokens[in[at]]
				m.clash = m.clash || !near(old, to)
			}
			if was, ok := m.words[old]; ok && was != to {
				to = many
			}
			m.words[old] = to
		}
		shift = c.B1 - c.A1
	}
	upper := func(t text) bool {
		all := strings.Join(t.tokens, "")
		return strings.ToLower(all) != all
	}
	m.lowered = !upper(m.old) && upper(m.file)
	for _, t := range m.file.tokens { // what the file has there too was not damaged
		if _, ok := m.words[t]; ok {
			m.words[t] = many
		}
	}
	m.noteGap(0, 0)
	for i := 1; i < len(in); i++ {
		if in[i] >= 0 && in[i-1]+1 == in[i] && in[i-1] >= 0 {
			m.noteGap(i, in[i])
		}
	}
}

// near says that one word may be the other, misspelt: so few letters differ, or their case alone.
func near(a, b string) bool {
	if strings.EqualFold(a, b) || isQuote(a) && isQuote(b) {
		return true
	}
	if inDigits(a) != inDigits(b) {
		return false // utf8 is not utf7
	}
	x, y := strings.ToLower(a), strings.ToLower(b)
	m := max(len(x), len(y))
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(x) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(y) {
			c := diagonal
			if x[i] != y[j] {
				c++
			}
			diagonal, row[j+1] = row[j+1], min(c, row[j+1]+1, row[j]+1)
		}
	}
	return len(a) < 256 && row[len(y)] <= min(2, m/4)
}

func isQuote(t string) bool { return t == `"` || t == "'" }

// dropped says that of a line which new changes the file lacks tokens that old has, but for a sign at
// its end: most likely another line is meant.
func (m *merger) dropped(damage, change []diff.Change) bool {
	line := make([]int, len(m.old.tokens)+1)
	for i := range m.old.tokens {
		if line[i+1] = line[i] + strings.Count(m.old.gaps[i+1], "\n"); i == 0 {
			line[0] = line[1] - strings.Count(m.old.gaps[1], "\n")
		}
	}
	for _, d := range damage {
		lost := d.A1 - d.A0 - (d.B1 - d.B0)
		if lost <= 0 || lost == 1 && strings.Contains(";,", m.old.tokens[d.A1-1]) && endsLine(m.old, d.A1) {
			continue
		}
		for _, c := range change {
			if c.A0 < c.A1 && line[c.A0] <= line[d.A1-1] && line[c.A1-1] >= line[d.A0] {
				return true
			}
		}
	}
	return false
}

// endsLine says that a line ends before token i.
func endsLine(t text, i int) bool { return i == len(t.tokens) || breaksOf(t.gaps[i]) != "" }

func inDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// kind is what stands beside a gap: the sign itself, or a word.
func kind(t text, i int) string {
	if i < 0 || i >= len(t.tokens) {
		return ""
	}
	if r, _ := utf8.DecodeRuneInString(t.tokens[i]); wordRune(r) {
		return "w"
	}
	return t.tokens[i]
}

// parts divides a gap with breaks into the blanks before, the breaks, and the indentation.
func parts(g string) (trail, breaks, in string) {
	a, b := strings.IndexByte(g, '\n'), strings.LastIndexByte(g, '\n')
	if a < 0 {
		return "", "", g
	}
	if a > 0 && g[a-1] == '\r' {
		a--
	}
	return g[:a], g[a : b+1], g[b+1:]
}

func (m *merger) noteGap(i, j int) {
	o, f := m.old.gaps[i], m.file.gaps[j]
	trail, breaks, in := parts(o)
	fTrail, fBreaks, fIn := parts(f)
	last := i == len(m.old.tokens)
	if last && breaks == "" {
		trail, in = in, ""
	}
	if last && fBreaks == "" {
		fTrail, fIn = fIn, ""
	}
	m.lines = m.lines || strings.Count(breaks, "\n") > strings.Count(fBreaks, "\n") && !last
	if !last && i == 0 || breaks != "" && fBreaks != "" {
		m.indents = append(m.indents, Pair{in, fIn})
	}
	set := func(k [3]string, v string) {
		if was, ok := m.gaps[k]; ok && was != v {
			v = many
		}
		m.gaps[k] = v
	}
	if last || breaks != "" && fBreaks != "" {
		m.trails = m.trails || trail != fTrail
	} else {
		m.less = m.less || o == "" && f != "" || len(o) == len(f) && o != f
		m.more = m.more || o != "" && o != f
	}
	if last || breaks != "" && fBreaks != "" {
		set([3]string{"", "", "t" + trail}, fTrail)
		return
	}
	if i > 0 && i < len(m.old.tokens) {
		set([3]string{kind(m.old, i-1), kind(m.old, i), o}, f)
	}
}

// own mends a token that is new's alone.
func (m *merger) own(t string) (string, bool) {
	to, damaged := m.words[t]
	word := kind(text{tokens: []string{t}}, 0) == "w"
	switch {
	case m.lowered && word && !digits(t):
		return "", false // it may have had capitals as well
	case !damaged && word:
		return m.compound(t)
	case !damaged:
		return t, true
	case isQuote(t) && isQuote(to): // either kind may be meant
		if m.side == First {
			t = to
		}
		return t, m.side != Neither
	case !word:
		return t, to != many // a sign: it was put in or dropped elsewhere
	case to == many || m.foreign(t):
		return "", false
	}
	return to, true
}

// compound mends a name of which a part is that of a damaged word: in old it is Count_step where the
// file has count_step, and new has Count_limit.
func (m *merger) compound(t string) (string, bool) {
	out := t
	for old, to := range m.words {
		if to == many || kind(text{tokens: []string{old}}, 0) != "w" || kind(text{tokens: []string{to}}, 0) != "w" {
			continue
		}
		mended, ok := part(t, old, to)
		if ok && out != t && out != mended || ok && m.foreign(t) {
			return "", false
		} else if ok {
			out = mended
		}
	}
	return out, true
}

// ownGap mends the white space before token i of new, where new has its own.
func (m *merger) ownGap(i int) (string, bool) {
	g := m.new.gaps[i]
	trail, breaks, in := parts(g)
	if i == len(m.new.tokens) && breaks == "" {
		trail, in = in, ""
	}
	if m.lines && strings.Count(breaks, "\n") > 1 || m.trails && strings.ContainsAny(breaks, " \t") {
		return "", false
	}
	if i == 0 || breaks != "" || i == len(m.new.tokens) {
		if to, ok := m.gaps[[3]string{"", "", "t" + trail}]; ok {
			if to == many {
				return "", false
			}
			if trail != "" { // without blanks it is as new has it
				trail = to
			}
		} else if trail != "" && m.trails {
			return "", false
		}
		if i == len(m.new.tokens) {
			return trail + breaks + in, true
		}
		in, ok := m.indent(m.indents, in)
		return trail + breaks + in, ok
	}
	if to, ok := m.gaps[[3]string{kind(m.new, i-1), kind(m.new, i), g}]; ok {
		return to, to != many && len(to) <= max(1, len(g)) // more of them align something else
	}
	plain := kind(m.new, i-1) == "w" && kind(m.new, i) == "w" && (g == " " || !m.more)
	return g, plain || g == "" && !m.less || g != "" && !m.more
}

// piece is a token of the result, and where it stands in the three, or nowhere.
type piece struct {
	token          string
	old, file, new int
}

const nowhere = -2

// seam is a gap beside new's own change: before which token of new, of old and of the file it is.
type seam struct{ new, old, file int }

func breaksOf(g string) string { _, b, _ := parts(g); return b }

// repeated gives the file's white space for a gap beside a change, where new has that of old. Blanks
// within a line that the damage changed are told by what they stand between.
func (m *merger) repeated(at int) (string, bool) {
	for _, s := range m.seams {
		if g := m.file.gaps[s.file]; s.new == at && m.new.gaps[at] == m.old.gaps[s.old] {
			return g, g == m.old.gaps[s.old] || breaksOf(g) != "" ||
				kind(m.new, at-1) == kind(m.old, s.old-1) && kind(m.new, at) == kind(m.old, s.old)
		}
	}
	return "", false
}

// merge lines the changes up. Two that meet are a conflict, unless they are the same, or new puts
// other words in place of damaged ones.
func (m *merger) merge(damage, change []diff.Change) (string, bool) {
	var out []piece
	none := diff.Change{A0: len(m.old.tokens) + 1, A1: len(m.old.tokens) + 1}
	i, j, k := 0, 0, 0 // in old, file, new
	for i < len(m.old.tokens) || len(damage) > 0 || len(change) > 0 {
		d, c := none, none
		if len(damage) > 0 {
			d = damage[0]
		}
		if len(change) > 0 {
			c = change[0]
		}
		dIn, cIn := d.A0 == d.A1, c.A0 == c.A1 // they only put in
		same := d.A0 == c.A0 && d.A1 == c.A1 && slices.Equal(m.file.tokens[d.B0:d.B1], m.new.tokens[c.B0:c.B1])
		switch {
		case same && d.A0 == i:
			for x := d.B0; x < d.B1; x++ {
				out = append(out, piece{m.file.tokens[x], nowhere, x, c.B0 + x - d.B0})
			}
			i, j, k = d.A1, d.B1, c.B1
			damage, change = damage[1:], change[1:]
		case d.A0 == i && c.A0 == i && dIn && cIn:
			return "", false
		case d.A0 == i && (dIn || c.A0 >= d.A1): // the damage, and new repeats it
			one := d.A1-d.A0 == d.B1-d.B0
			for x := d.B0; x < d.B1; x++ {
				p := piece{m.file.tokens[x], nowhere, x, nowhere}
				if one {
					p.old, p.new = i+x-d.B0, k+x-d.B0
				}
				out = append(out, p)
			}
			k += d.A1 - d.A0
			i, j = d.A1, d.B1
			damage = damage[1:]
		case c.A0 == i: // new's change, and perhaps damage that it replaces
			for len(damage) > 0 && damage[0].A0 < c.A1 {
				if d = damage[0]; d.A1 > c.A1 || d.A1-d.A0 != d.B1-d.B0 {
					return "", false
				}
				damage = damage[1:]
			}
			if m.unquoted && c.B1-c.B0 > c.A1-c.A0 {
				return "", false // what new adds may lack them too
			}
			if m.closed && c.B0 < c.B1 && (endsLine(m.new, c.B1) || slices.ContainsFunc(m.new.gaps[c.B0:c.B1], func(g string) bool { return breaksOf(g) != "" })) {
				return "", false // the lines that new adds may lack it too
			}
			for x := c.B0; x < c.B1; x++ {
				t, ok := m.own(m.new.tokens[x])
				if !ok {
					return "", false
				}
				out = append(out, piece{t, nowhere, nowhere, x})
			}
			apart, ok := m.beside(c, j)
			if !ok {
				return "", false
			}
			j += c.A1 - c.A0
			i, k = c.A1, c.B1
			if !apart {
				m.seams = append(m.seams, seam{k, i, j})
			}
			change = change[1:]
		case d.A0 == i:
			return "", false // new's change begins within
		default:
			out = append(out, piece{m.old.tokens[i], i, j, k})
			i, j, k = i+1, j+1, k+1
		}
	}
	return m.spaced(out)
}

// beside notes the gaps of the file that stay beside what new puts in place of old's tokens. apart: what
// is put in parts the one on its side from it. j is where the tokens are in the file.
func (m *merger) beside(c diff.Change, j int) (apart, ok bool) {
	one, in := c.A1-c.A0 == c.B1-c.B0, c.A0 == c.A1
	for x := c.A0; x <= c.A1; x++ {
		if !one && breaksOf(m.old.gaps[x]) != breaksOf(m.file.gaps[j+x-c.A0]) {
			if !in || m.side == Neither {
				return false, false // on which side of the empty line can't be told
			}
			at := c.B1
			if m.side == Second {
				at = c.B0
			}
			m.seams = append(m.seams, seam{at, x, j})
			apart = true
		} else if c.B0 < c.B1 && (x < c.A1 && (one || x == c.A0) || x == c.A0 && breaksOf(m.old.gaps[x]) == "") {
			m.seams = append(m.seams, seam{c.B0 + x - c.A0, x, j + x - c.A0})
		}
	}
	return apart, true
}

// spaced puts the white space between the pieces.
func (m *merger) spaced(out []piece) (string, bool) {
	var b strings.Builder
	before := piece{old: -1, file: -1, new: -1}
	out = append(out, piece{old: len(m.old.tokens), file: len(m.file.tokens), new: len(m.new.tokens)})
	for _, p := range out {
		inFile := p.file >= 0 && before.file+1 == p.file
		inNew := p.new >= 0 && before.new+1 == p.new
		inOld := p.old >= 0 && before.old+1 == p.old
		var g string
		ok := true
		switch {
		case inFile && inNew && inOld:
			o, f, n := m.old.gaps[p.old], m.file.gaps[p.file], m.new.gaps[p.new]
			switch {
			case n == f && breaksOf(o) != breaksOf(f) && len(m.seams) > 0:
				ok = false // old and new were not damaged alike
			case n == o || n == f:
				g = f
			case o == f:
				g, ok = n, !m.lines || strings.Count(n, "\n") <= strings.Count(f, "\n")
			default:
				g, ok = m.bothGaps(o, f, n, p.new)
			}
		case inNew && inFile && m.new.gaps[p.new] != m.file.gaps[p.file]:
			// Beside what was damaged: white space that new has as the file's, but for indentation.
			_, a, _ := parts(m.new.gaps[p.new])
			_, c, _ := parts(m.file.gaps[p.file])
			g, ok = m.file.gaps[p.file], a == c
		case inNew && !inFile:
			if g, ok = m.repeated(p.new); !ok {
				g, ok = m.ownGap(p.new)
			}
		case inFile:
			g = m.file.gaps[p.file]
		default:
			return "", false
		}
		if !ok {
			return "", false
		}
		b.WriteString(g)
		b.WriteString(p.token)
		before = p
	}
	return b.String(), true
}

// bothGaps is white space that the damage and new have changed: only where they changed different
// parts of it can it be told.
func (m *merger) bothGaps(o, f, n string, at int) (string, bool) {
	ot, ob, oi := parts(o)
	ft, fb, fi := parts(f)
	nt, nb, ni := parts(n)
	one := func(o, f, n string) (string, bool) {
		switch {
		case n == o:
			return f, true
		case o == f:
			return n, true
		}
		return "", false
	}
	t, ok1 := one(ot, ft, nt)
	b, ok2 := one(ob, fb, nb)
	i, ok3 := one(oi, fi, ni)
	if !ok3 && at > 0 && at < len(m.new.tokens) { // new moves the line: by the rule of the others
		i, ok3 = m.indent(m.indents, ni)
	}
	return t + b + i, ok1 && ok2 && ok3
}
