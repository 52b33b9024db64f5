package capability

import (
	"cmp"
	"math/bits"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"moltisfs/grep"
	matching "moltisfs/grep/match"
)

// The points of a line for what it does with the name that was asked for, and of a file for its name. They add up, and the results
// with the most points come first. docs/ranking.md has the whole table.
const (
	defines = 100 // "func X(", "class X", "#define X", "CREATE TABLE X", or the head of a function as C has it
	inner   = 88  // the same further in, or with an owner: "func (b *B) X", "def self.X", "void B::X("
	assigns = 80  // "X = 1", "X: 1", "int X = 3;" at the top
	member  = 50  // a field, a key, an enumerator, a method without a body

	wholeWord = 40
	asSpelled = 20 // where upper and lower case do not count
	asAsked   = 60 // a qualified name, or one of several words, stands there as it was asked for
	fileIs    = 25 // the file is called so; alone, without a line of it, it is 70
	fileHas   = 10 // the name of the file, or its directory, has it
	often     = 12 // at most: two for each doubling of the lines that the file has
	ownerIs   = 12 // a definition in the file or directory that a qualified name begins with
)

// lesser are files whose results come later, each with the points that they lose.
var lesser = []struct {
	points int
	reason string
	path   *regexp.Regexp
}{
	{40, "test", regexp.MustCompile(`(?i)(^|/)(tests?|testdata|__tests__|__mocks__|specs?|fixtures?|mocks|examples?|bench(es|marks?)?|samples?` +
		`|demos?|e2e)/|(^|/)(tests?|mock|bench)_[^/]*$|[_.-](tests?|spec|mocks?|bench)\.[^/]*$|(?-i:(Tests?|Spec)\.[^/]*$)`)},
	{40, "vendored", regexp.MustCompile(`(?i)(^|/)(vendor|third[_-]?party|node_modules|bower_components|(site|dist)-packages|godeps|pods|external|\.?venv)/`)},
	{25, "generated", regexp.MustCompile(`(?i)(generated|[._]gen\.|\.pb\.|_pb2\.|\.min\.|bundle\.)[^/]*$`)},
	{10, "internal", regexp.MustCompile(`(^|/)(_?internal|private|detail)/`)},
	{12, "prose", regexp.MustCompile(`(?i)\.(md|markdown|rst|txt|adoc|asciidoc|org|html|htm|tex|pod|rdoc|textile)$`)},
}

// A question is what search_content was asked for. The search looks for its needle; takes and weigh say which of the lines count.
type question struct {
	text    string
	needle  string   // Server of http.Server; "" of a regular expression
	owners  []string // http of http.Server
	words   []string // all must stand in the line
	exact   bool     // upper and lower case count, or nothing is known of it
	capital bool     // it has capitals, so a name without them is another one
	ofTests bool     // it speaks of tests, which then come as early as others
}

var speaksOfTests = regexp.MustCompile(`(?i)test|example|bench|mock|fixture|fuzz`)

// asText asks for a text. Of a qualified name (http.Server, Foo::bar) the definition of the last part counts too, where the rest names
// its owner: the file, the directory, or a word before it. The name of a file (server.go) is not a qualified name.
func asText(text string, caseCounts bool) question {
	q := question{text: text, needle: text, exact: caseCounts, ofTests: speaksOfTests.MatchString(text),
		capital: strings.ContainsFunc(text, unicode.IsUpper)}
	if qualified.MatchString(text) && !fileName.MatchString(text) {
		parts := namesIn(text)
		q.needle, q.owners = parts[len(parts)-1], parts[:len(parts)-1]
	}
	return q
}

var (
	qualified = regexp.MustCompile(`^[\pL_][\pL\p{Nd}_]*((::|->|[.#/])[\pL_][\pL\p{Nd}_]*)+$`)
	fileName  = regexp.MustCompile(`\.(go|py|[cm]?jsx?|tsx?|rs|[ch](pp|xx|c|h)?|java|kts?|rb|php|cs|swift|scala|mm?|lua|p[lm]|ba?sh|sql|md|rst|txt|json5?|ya?ml` +
		`|toml|ini|cfg|conf|xml|html?|s?css|vue|proto|mod|sum|lock|env|csv|log|asm|exs?|hs|mli?|clj|el|vim|dart|zig)$`)
)

// asWords asks for the lines with all words of a text, in any order. ok is false if there are not several.
func asWords(text string, caseCounts bool) (q question, ok bool) {
	q = question{text: text, words: strings.Fields(text), exact: caseCounts, ofTests: speaksOfTests.MatchString(text)}
	if len(q.words) < 2 {
		return q, false
	}
	q.needle = slices.MaxFunc(q.words, func(a, b string) int { return len(a) - len(b) })
	return q, true
}

// A place is one result of search_content.
type place struct {
	Path    string   `json:"path"`
	Line    int      `json:"line"` // 0: only the file's name matches
	Column  int      `json:"column"`
	Text    string   `json:"text"`
	Before  []string `json:"before"`
	After   []string `json:"after"`
	More    []int    `json:"more_lines,omitempty"`
	Copies  int      `json:"copies,omitempty"`
	Score   int      `json:"score"`
	Reasons []string `json:"reasons"`

	modified time.Time
	defines  bool
}

// A ranking collects what a search finds, so that the answer to "where is X?" comes first. It knows no language: it goes by shapes that
// most of them share. Its found and named are for grep.Query, and are safe for concurrent use.
type ranking struct {
	question
	root   string // of the search: its name may be an owner
	m      *matching.Matcher
	around int // lines of context

	mu    sync.Mutex
	kept  []place
	lines int
	files map[string]bool // that matched by a line or by their name
	cut   bool            // something was left out
}

// mostKept bounds the results that are kept: of more the best stay.
const mostKept = 2000

func (r *ranking) keep(found ...place) {
	if r.kept = append(r.kept, found...); len(r.kept) > 2*mostKept {
		slices.SortFunc(r.kept, order)
		r.kept, r.cut = r.kept[:mostKept], true
	}
}

// order puts the better of two results first. It depends on nothing but the two: of the same points it takes the file that was changed in
// a later hour, then the shorter path.
func order(a, b place) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), b.modified.Truncate(time.Hour).Compare(a.modified.Truncate(time.Hour)),
		cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
}

// found takes the lines of a file that match, with those around them.
func (r *ranking) found(h grep.FileHit, rows []grep.Row) {
	f := r.fileOf(h.Path)
	s := r.m.Scanner()
	defer r.m.Put(s)
	var places []place
	var text []byte
	handed := 0
	for i := range rows {
		row := &rows[i]
		if row.Context {
			continue
		}
		handed++
		text = append(text[:0], row.Text...)
		spans := s.Spans(nil, text, 0, len(text))
		if at := min(max(row.Column-1-row.From, 0), len(row.Text)); len(spans) == 0 {
			spans = [][2]int{{at, at}} // it is empty, or speaks of an end that was cut off
		}
		if p, ok := r.weigh(&f, row.Text, spans); ok {
			p.Path, p.Line, p.Text, p.modified = h.Path, row.Line, row.Text, h.ModTime
			p.Column += row.From
			p.Before, p.After = r.context(rows, i)
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		return
	}
	for i := range places {
		places[i].Score += min(2*(bits.Len(uint(len(places)))-1), often)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[h.Path] = true
	if r.lines += len(places); h.Lines > handed {
		if r.cut = true; len(r.words)+len(r.owners) == 0 {
			r.lines += h.Lines - handed
		}
	}
	r.keep(places...)
}

// context gives the rows before and after the i-th, without a gap.
func (r *ranking) context(rows []grep.Row, i int) (before, after []string) {
	before, after = []string{}, []string{}
	line := rows[i].Line
	for j := i - 1; j >= 0 && rows[j].Line >= line-r.around && rows[j].Line == rows[j+1].Line-1; j-- {
		before = append(before, rows[j].Text)
	}
	slices.Reverse(before)
	for j := i + 1; j < len(rows) && rows[j].Line <= line+r.around && rows[j].Line == rows[j-1].Line+1; j++ {
		after = append(after, rows[j].Text)
	}
	return before, after
}

// named takes a file whose name may match, whatever is in it.
func (r *ranking) named(name string) {
	f := r.fileOf(name)
	if f.alone == 0 {
		return
	}
	p := place{Path: name, Before: []string{}, After: []string{}, Score: f.alone - f.loss, Reasons: append([]string{"file name"}, f.later...)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[name] = true
	r.keep(p)
}

// A rankedFile is what the path of a file says of its results.
type rankedFile struct {
	stem, dir   string // the name up to its first dot, and that of its directory
	prose       bool
	alone, adds int      // the points of its name alone, and those that it adds to a line
	loss        int      // the points of later, and two for each directory above it
	later       []string // why it comes later
}

func (r *ranking) fileOf(name string) (f rankedFile) {
	base := path.Base(name)
	f.dir, f.stem = path.Base(path.Dir(path.Join(r.root, name))), base
	if i := strings.IndexByte(base, '.'); i > 0 {
		f.stem = base[:i]
	}
	f.loss = min(2*strings.Count(name, "/"), 16)
	for _, l := range lesser {
		if !(l.reason == "test" && r.ofTests) && l.path.MatchString(name) {
			f.loss += l.points
			f.later = append(f.later, l.reason)
			f.prose = f.prose || l.reason == "prose"
		}
	}
	if len(r.words) > 0 {
		return f
	}
	s := r.m.Scanner()
	defer r.m.Put(s)
	for _, span := range s.Spans(nil, []byte(base), 0, len(base)) {
		if span[0] == 0 && (span[1] == len(base) || span[1] == len(f.stem)) && span[1] > 0 {
			f.alone, f.adds = 70, fileIs
		} else if span[1] > span[0] && f.alone == 0 {
			f.alone, f.adds = fileHas, fileHas
		}
	}
	if f.adds == 0 && r.needle != "" && strings.EqualFold(f.dir, r.needle) {
		f.adds = fileHas
	}
	if n := len(r.owners); n > 0 && !strings.EqualFold(f.dir, r.owners[n-1]) {
		f.alone, f.adds = 0, 0 // server.go is not http.Server, but http/server.go may well be
	}
	return f
}

// weigh gives the best match of a line, with its points and reasons; ok is false if the line does not count.
func (r *ranking) weigh(f *rankedFile, text string, spans [][2]int) (best place, ok bool) {
	for _, w := range r.words {
		if !r.in(text, w) {
			return best, false
		}
	}
	for _, span := range spans {
		a, b := span[0], span[1]
		from, to := nameAround(text, a, b)
		kind := 0
		if !f.prose {
			kind = lineKind(text, from, to)
		}
		spelled := r.exact || text[a:b] == r.needle
		if r.capital && !spelled {
			kind = min(kind, member)
		}
		owned := kind > member && r.owned(f, text[:a])
		asked := len(r.words) > 0 && r.in(text, r.text) || len(r.owners) > 0 && r.in(text[max(b-len(r.text), 0):b], r.text)
		if len(r.owners) > 0 && !asked && !owned {
			continue
		}
		p := place{Score: kind + f.adds - f.loss, Column: a + 1, defines: kind > member, Reasons: []string{"use"}}
		add := func(when bool, points int, reason string) {
			if when {
				p.Score += points
				p.Reasons = append(p.Reasons, reason)
			}
		}
		if p.defines {
			p.Reasons[0] = "definition"
		} else if kind == member {
			p.Reasons[0] = "member"
		}
		add(from == a && to == b && a < b, wholeWord, "whole word")
		add(asked, asAsked, "as asked")
		add(f.adds == fileIs, 0, "file name")
		if spelled && !r.exact {
			p.Score += asSpelled
		}
		if owned && (slices.ContainsFunc(r.owners, f.is)) {
			p.Score += ownerIs
		}
		if p.Reasons = append(p.Reasons, f.later...); !ok || p.Score > best.Score {
			best, ok = p, true
		}
	}
	return best, ok
}

// in reports whether text holds part, in any case unless case counts.
func (q *question) in(text, part string) bool {
	if !q.exact {
		text, part = strings.ToLower(text), strings.ToLower(part)
	}
	return strings.Contains(text, part)
}

// is reports whether the file or its directory has this name.
func (f *rankedFile) is(name string) bool {
	return strings.EqualFold(name, f.dir) || strings.EqualFold(name, f.stem)
}

// owned reports whether an owner is the file, its directory, or a word before the name.
func (q *question) owned(f *rankedFile, before string) bool {
	return slices.ContainsFunc(q.owners, func(owner string) bool {
		return f.is(owner) || slices.ContainsFunc(namesIn(before), func(w string) bool { return strings.EqualFold(w, owner) })
	})
}

// best gives the results, the best first. Those whose lines overlap become one, and so do uses with the same text, and definitions with
// the same text and the same lines around them. The bare name of a file goes if a line of it is there. The search must be over.
func (r *ranking) best() []place {
	slices.SortFunc(r.kept, order)
	r.cut = r.cut || len(r.kept) > mostKept
	kept := r.kept[:min(len(r.kept), mostKept)]
	of, same := map[string][]*place{}, map[string]*place{} // by path, and by what they say
	gone := make([]bool, len(kept))
next:
	for i := range kept {
		p := &kept[i]
		for _, better := range of[p.Path] {
			if p.Line >= better.Line-len(better.Before) && p.Line <= better.Line+len(better.After) {
				better.More, gone[i] = append(better.More, p.Line), true
				slices.Sort(better.More)
				continue next
			}
		}
		of[p.Path] = append(of[p.Path], p)
		says := strings.TrimSpace(p.Text)
		switch around := len(p.Before) + len(p.After); {
		case p.Line == 0, p.defines && around == 0: // without lines around nobody can tell a copy
			says = p.Path + "\x00" + says
		case p.defines:
			says = strings.Join(slices.Concat(p.Before, []string{"", p.Text, ""}, p.After), "\n")
		}
		if first := same[says]; first != nil {
			first.Copies++
			gone[i] = true
			continue
		}
		same[says] = p
	}
	var out []place
	nth := map[string]int{}
	for i, p := range kept {
		if gone[i] || p.Line == 0 && len(of[p.Path]) > 1 {
			continue
		}
		p.Score -= min(12*nth[p.Path], 60) // so that no file fills the list
		nth[p.Path]++
		out = append(out, p)
	}
	slices.SortFunc(out, order)
	return out
}

var (
	keywords = set(`func fn fun function def defn defp defmacro defmodule define #define class struct union enum interface trait protocol
		object record type typedef typealias newtype const constexpr var val let macro macro_rules! sub proc procedure method module
		mod namespace package actor extension message service rpc theorem lemma alias defun defvar defparameter %macro .macro .globl TEXT
		GLOBL DATA`)
	modifiers = set(`export default pub public private protected internal static final abstract async extern inline virtual override
		readonly volatile unsafe sealed open partial mut declare local global friend synchronized native transient explicit lateinit
		suspend tailrec operator infix noinline data #`)
	created = set(`create table view index trigger function procedure type schema sequence role materialized unique temporary temp or replace
		if not exists`)
	statements = set(`if else elif for foreach while until switch match case when return throw raise yield await go defer new delete in not
		and or is import from using use include require print assert with catch do goto typeof sizeof unless then select echo export`)
	types   = set("struct interface class enum union record trait protocol")
	comment = regexp.MustCompile(`^(//|/\*|\* |\*/|\*$|--|;|#!|# |"""|\x27\x27\x27|<!--|%[^m])`)
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// lineKind gives the points of a line for what it does with the name text[from:to]. The text that was asked for may have the keyword in
// it, as "func ReadAll" has, so each name in it is tried.
func lineKind(text string, from, to int) int {
	line := strings.TrimLeft(text, " \t")
	indent := len(text) - len(line)
	if comment.MatchString(line) && !strings.HasPrefix(line, "# define ") {
		return 0
	}
	width := indent + 3*strings.Count(text[:indent], "\t")
	for at := max(from, indent); at < to; {
		end := len(text) - len(strings.TrimLeftFunc(text[at:], partOfName))
		if end > at {
			if kind := nameKind(text[indent:at], strings.TrimRight(text[end:], " \t\r"), width); kind > 0 {
				return kind
			}
		}
		_, n := utf8.DecodeRuneInString(text[end:])
		at = end + max(n, 1)
	}
	return 0
}

// nameKind is lineKind for one name, given the line before it without its indent, the line after it, and the width of the indent.
func nameKind(before, after string, indent int) int {
	top, shallow := indent == 0, indent > 0 && indent <= 4
	level := func(kind int) int {
		if kind == defines && !top {
			return inner
		}
		return kind
	}
	if rest, ok := afterKeyword(before); ok {
		switch {
		case strings.Trim(rest, "{[( ") == "", strings.HasSuffix(rest, ", ") && only(rest, ", {[("):
			return level(defines) // func X, var a, X int, const { X } = …
		case rest[0] == '(' && closes(rest) == len(strings.TrimRight(rest, " ")):
			return inner // func (b *B) X
		case strings.ContainsAny(rest[len(rest)-1:], ".:#") || strings.HasSuffix(rest, "·"):
			if only(rest, ".:#·") {
				return inner // def self.X
			}
		}
	}
	if before == "} " && strings.HasPrefix(after, ";") {
		return level(defines) // typedef struct { … } X;
	}
	next := strings.TrimLeft(after, " \t")
	typed := strings.ContainsFunc(before, partOfName) // a type stands before the name, or a modifier
	if !only(before, " \t*&<>,[]:?~") || strings.HasSuffix(strings.TrimSpace(before), ",") ||
		slices.ContainsFunc(namesIn(before), func(w string) bool { return statements[w] }) {
		typed = false
	} else if kind := headKind(before, next, typed, top, shallow); kind > 0 {
		return level(kind)
	}
	quoted := (before == `"` || before == "'") && strings.HasPrefix(after, before)
	if quoted {
		next = strings.TrimLeft(after[1:], " \t")
	}
	assigned := regexpAssigned.MatchString(next)
	bare := before == "" || before == "$" || before == "- "
	word := next[:len(next)-len(strings.TrimLeftFunc(next, partOfName))]
	switch {
	case bare && top && assigned, typed && top && (assigned || strings.HasPrefix(next, ";")):
		return assigns
	case bare && shallow && types[word] && next != after:
		return inner // in a group of types
	case quoted && assigned, shallow && (bare || typed) && assigned, shallow && typed && strings.HasPrefix(next, ";"):
		return member
	case bare && shallow && (next == "" || next[0] == ',' || strings.HasPrefix(next, "//") ||
		next != after && !statements[word] && (word != "" || strings.ContainsAny(next[:1], "*[&"))):
		return member // an enumerator, or a field and its type
	}
	return 0
}

var regexpAssigned = regexp.MustCompile(`^(=([^=>]|$)|:([^:]|$)|:: |\?=)`)

// headKind knows the head of a function by its shape: "int X(int a) {", "X(a, b) {", "void B::X(int a,". next begins with the parameters.
func headKind(before, next string, typed, top, shallow bool) int {
	if i := strings.IndexByte(next, '>'); i > 0 && next[0] == '<' {
		next = next[i+1:]
	}
	if !strings.HasPrefix(next, "(") {
		return 0
	}
	end, owner := closes(next), strings.HasSuffix(before, "::")
	switch {
	case strings.Contains(before, ":") && !owner:
	case strings.HasSuffix(next, "{") && (end > 0 || typed),
		typed && top && (end == len(next) || strings.HasSuffix(next, ",") || next == "("):
		if owner {
			return inner
		}
		return defines
	case typed && top && end > 0 && strings.HasSuffix(next, ";"):
		return member // int X(int);
	case !typed && shallow && end > 0 && regexpResult.MatchString(next[end:]):
		return member // X(p []byte) (n int, err error)
	}
	return 0
}

var regexpResult = regexp.MustCompile(`^\s*([\pL_(*\[]|:.|->)`)

// afterKeyword gives what stands between the keyword of a definition and the name: "(b *B) " of "func (b *B) ". ok is false if there
// is no keyword.
func afterKeyword(before string) (rest string, ok bool) {
	rest = strings.TrimLeft(before, "(")
	creates := len(rest) > 6 && strings.EqualFold(rest[:7], "create ")
	for {
		rest = strings.TrimLeft(rest, " \t")
		word := rest
		if i := strings.IndexAny(rest, " \t"); i >= 0 {
			word = rest[:i]
		}
		plain, _, _ := strings.Cut(word, "(") // pub(crate)
		switch plain = strings.TrimRight(plain, "*"); {
		case keywords[plain], creates && created[strings.ToLower(plain)]:
			ok = true
		case plain == "" || !modifiers[plain] && plain[0] != '@':
			return rest, ok
		}
		rest = rest[len(word):]
	}
}

// closes gives the place behind the bracket that closes the first one; 0 if none does.
func closes(s string) int {
	depth := 0
	for i := range len(s) {
		if s[i] == '(' {
			depth++
		} else if s[i] == ')' {
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// only reports whether s holds nothing but names and these marks.
func only(s, marks string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !partOfName(r) && !strings.ContainsRune(marks, r) })
}

func partOfName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func namesIn(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !partOfName(r) })
}

// nameAround gives the whole name around text[a:b].
func nameAround(text string, a, b int) (from, to int) {
	from, to = a, b
	if r, _ := utf8.DecodeRuneInString(text[a:]); partOfName(r) {
		from = len(strings.TrimRightFunc(text[:a], partOfName))
	}
	if r, _ := utf8.DecodeLastRuneInString(text[:b]); partOfName(r) {
		to = len(text) - len(strings.TrimLeftFunc(text[b:], partOfName))
	}
	return from, to
}
