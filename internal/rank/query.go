package rank

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Query is what was asked for. The search has to look for its Needle and hands in each line that
// holds it; the query says which of them count.
type Query struct {
	text       string
	needle     string
	qualifiers []string // http of http.Server: what the owner may be called
	words      []string // all must stand in the line
	exact      bool     // case counts, or nothing is known of it
	pattern    bool
	tests      bool // it speaks of tests
	capitals   bool // it has some, so that case was meant
}

// Literal asks for a text. Of a qualified name (http.Server, Foo::bar) the definition of its last
// part counts too, where the rest names the owner: the file, the directory, or a word before it.
func Literal(text string, caseCounts bool) Query {
	q := Query{text: text, needle: text, exact: caseCounts, tests: speaksOfTests(text),
		capitals: strings.ContainsFunc(text, unicode.IsUpper)}
	parts := namesIn(text)
	if n := len(parts); n > 1 && qualified(text) && !extensions[parts[n-1]] {
		q.needle, q.qualifiers = parts[n-1], parts[:n-1]
	}
	return q
}

// Words asks for lines with all words of a text, in any order. ok: there are several.
func Words(text string, caseCounts bool) (q Query, ok bool) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return Query{}, false
	}
	q = Query{text: text, words: words, exact: caseCounts, tests: speaksOfTests(text)}
	q.needle = slices.MaxFunc(words, func(a, b string) int { return len(a) - len(b) })
	return q, true
}

// Pattern asks for what a regular expression matches; the spans say what that is.
func Pattern(expression string) Query {
	return Query{text: expression, exact: true, pattern: true, tests: speaksOfTests(expression)}
}

// Needle is the text that a line must hold; "" for a pattern.
func (q *Query) Needle() string { return q.needle }

// qualified says that text is names with the marks of ownership between them, and nothing else.
func qualified(text string) bool {
	for _, mark := range []string{"::", "->", ".", "#", "/"} {
		text = strings.ReplaceAll(text, mark, "\x00")
	}
	for _, part := range strings.Split(text, "\x00") {
		if part == "" || unicode.IsDigit(rune(part[0])) || len(namesIn(part)) != 1 ||
			namesIn(part)[0] != part {
			return false
		}
	}
	return true
}

// extensions are endings by which a text with a dot is the name of a file.
var extensions = func() map[string]bool {
	m := map[string]bool{}
	for _, e := range strings.Fields(`
		go py js mjs cjs ts tsx jsx rs c h cc cpp cxx hpp hh java kt rb php cs swift scala m mm
		lua pl pm sh bash zsh fish ps1 bat sql md rst txt adoc tex json json5 yaml yml toml ini
		cfg conf xml html htm css scss less vue svelte proto mod sum lock mk cmake gradle
		properties env csv tsv log s asm ex exs erl hs ml mli clj el lisp vim r jl dart zig nim
		tf`) {
		m[e] = true
	}
	return m
}()

func speaksOfTests(text string) bool {
	text = strings.ToLower(text)
	for _, w := range []string{"test", "example", "bench", "mock", "fixture", "fuzz"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// judged is a hit before it is told why.
type judged struct {
	Hit
	verdict
	at int // of the lines of its file
}

// judge says what a line is worth; false: it does not count.
func (q *Query) judge(
	f *File, p *place, lines []Line, at int, votes map[string]int,
) (h judged, ok bool) {
	l := &lines[at]
	h = judged{at: at, Hit: Hit{Path: f.Path, Line: l.Number, Text: l.Text, modified: f.ModTime}}
	if !q.takes(l.Text) {
		return h, false
	}
	found := false
	for _, span := range l.Spans {
		v := q.weigh(f, p, lines, at, span)
		if v.owner != "" {
			votes[strings.ToLower(v.owner)]++
		}
		if len(q.qualifiers) > 0 && !v.phrase && !(v.kind.defines() && q.owned(p, l.Text[:span[0]])) {
			continue
		}
		if !found || v.points() > h.points() {
			h.verdict, found = v, true
			h.Column = l.From + span[0] + 1
		}
	}
	if !found {
		return h, false
	}
	h.Hit.kind = h.verdict.kind
	h.Score = h.points() + p.named*5/14 + p.penalty // a name of 70 points adds 25
	if p.named == 0 && p.dir {
		h.Score += 12
	}
	for _, owner := range q.qualifiers {
		if h.Hit.kind.defines() && strings.EqualFold(owner, p.dirName) {
			h.Score += 6
		}
		if h.Hit.kind.defines() && strings.EqualFold(owner, p.stem) {
			h.Score += 6
		}
	}
	return h, true
}

// takes says whether all the words are there.
func (q *Query) takes(text string) bool {
	if len(q.words) == 0 {
		return true
	}
	if !q.exact {
		text = strings.ToLower(text)
	}
	return !slices.ContainsFunc(q.words, func(w string) bool {
		if !q.exact {
			w = strings.ToLower(w)
		}
		return !strings.Contains(text, w)
	})
}

// owned says whether a qualifier is the file, its directory, or a word of what stands before.
func (q *Query) owned(p *place, before string) bool {
	return slices.ContainsFunc(q.qualifiers, func(owner string) bool {
		if strings.EqualFold(owner, p.dirName) || strings.EqualFold(owner, p.stem) {
			return true
		}
		return slices.ContainsFunc(namesIn(before), func(w string) bool {
			return strings.EqualFold(w, owner)
		})
	})
}

// verdict is what one place in a line is.
type verdict struct {
	kind         kind
	whole, piece bool
	spelling     int    // points for upper and lower case as asked
	phrase       bool   // the whole of a text of several words or names
	owner        string // of a use: what stands before it, as io of io.X
}

// weigh looks at one place.
func (q *Query) weigh(f *File, p *place, lines []Line, at int, span [2]int) (v verdict) {
	l, a, b := &lines[at], span[0], span[1]
	from, to := a, b // the whole name around it
	for from > 0 {
		r, n := utf8.DecodeLastRuneInString(l.Text[:from])
		if !partOfName(r) || from == a && !nameAt(l.Text, a) {
			break
		}
		from -= n
	}
	for to < len(l.Text) {
		r, n := utf8.DecodeRuneInString(l.Text[to:])
		if !partOfName(r) || to == b && !nameBefore(l.Text, b) {
			break
		}
		to += n
	}
	v.whole = from == a && to == b && a < b
	v.piece = !v.whole && a < b && pieceStarts(l.Text, from, a) && pieceEnds(l.Text, to, b)
	asked := q.needle
	if q.pattern {
		asked = l.Text[a:b]
	}
	if v.spelling = 0; l.Text[a:b] == asked {
		if v.spelling = 10; q.capitals {
			v.spelling = 30
		}
	}
	switch {
	case len(q.words) > 0:
		v.phrase = contains(l.Text, q.text, q.exact)
	case len(q.qualifiers) > 0:
		start := b - len(q.text)
		v.phrase = start >= 0 && (l.Text[start:b] == q.text ||
			!q.exact && strings.EqualFold(l.Text[start:b], q.text))
	}
	if v.kind = p.kindOf(l.Text, from, to); p.prose && v.kind == use {
		if _, after := f.around(at); underlined(after) {
			v.kind = heading
		}
	}
	if v.kind == use && v.whole {
		v.owner = ownerBefore(l.Text[:from])
	}
	return v
}

func contains(text, part string, exact bool) bool {
	if !exact {
		text, part = strings.ToLower(text), strings.ToLower(part)
	}
	return strings.Contains(text, part)
}

func (v *verdict) points() int {
	n := int(v.kind) + v.spelling
	switch {
	case v.whole:
		n += 40
	case v.piece:
		n += 16
	}
	if v.phrase {
		n += 60
	}
	return n
}

func (v *verdict) reasons() (out []string) {
	out = append(out, v.kind.String())
	switch {
	case v.whole:
		out = append(out, "whole word")
	case v.piece:
		out = append(out, "part of a name")
	default:
		out = append(out, "within a word")
	}
	if v.phrase {
		out = append(out, "as asked")
	}
	return out
}

// ownerBefore is io of "x(io.", and "" where nothing owns what follows.
func ownerBefore(before string) string {
	for _, mark := range []string{".", "::", "->"} {
		if rest, ok := strings.CutSuffix(before, mark); ok {
			i := len(rest)
			for i > 0 {
				r, n := utf8.DecodeLastRuneInString(rest[:i])
				if !partOfName(r) {
					break
				}
				i -= n
			}
			return rest[i:]
		}
	}
	return ""
}

func namesIn(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !partOfName(r) })
}

func partOfName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func nameAt(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return partOfName(r)
}

func nameBefore(s string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(s[:i])
	return partOfName(r)
}

// pieceStarts says whether a part of the name s[from:] begins at a: serve|Mux, HTTP|Server.
func pieceStarts(s string, from, a int) bool {
	if a == from || !nameAt(s, a) {
		return true
	}
	prev, _ := utf8.DecodeLastRuneInString(s[:a])
	now, n := utf8.DecodeRuneInString(s[a:])
	next, _ := utf8.DecodeRuneInString(s[a+n:])
	return prev == '_' || now == '_' || unicode.IsDigit(prev) != unicode.IsDigit(now) ||
		unicode.IsUpper(now) && (!unicode.IsUpper(prev) || unicode.IsLower(next))
}

// pieceEnds says whether a part of the name that ends at to ends at b.
func pieceEnds(s string, to, b int) bool {
	return b == to || !nameBefore(s, b) || pieceStarts(s, 0, b)
}
