package capability

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"moltisfs/grep"
	matching "moltisfs/grep/match"
	"moltisfs/internal/lazy"
)

// The points of a result add up, and the results with the most points come first. docs/internals/ranking.md has the whole table.
const (
	defines = 100 // the line defines the name: "func X(", "class X", "#define X", "CREATE TABLE X", "int X(int a) {", "X = 1" at the top
	owns    = 90  // the same with an owner: "func (b *B) X(", "def self.X"
	member  = 50  // the name is a field, a key, an enumerator, a method without a body

	wholeWord = 40
	asSpelled = 60 // upper and lower case are as asked, where they do not count
	asAsked   = 60 // a qualified name, or several words, stand there as they were asked for
	fileIs    = 25 // the file is called so; alone, without a line of it, it is fileAlone
	fileHas   = 10 // the name of the file has it
	fileAlone = 120

	deeper   = 2  // lost for each directory above the file
	sameFile = 12 // lost for each better result of the same file
)

// lesser are the kinds of files whose results come later, each with the points that they lose.
var lesser = []struct {
	points int
	reason string
	path   func() *regexp.Regexp
}{
	{40, "test", lazy.Regexp(`(?i)(^|/)(tests?|testdata|__tests__|__mocks__|specs?|fixtures?|mocks|examples?|bench(es|marks?)?|samples?` +
		`|demos?|e2e)/|(^|/)(tests?|mock|bench)_[^/]*$|[_.-](tests?|spec|mocks?|bench)\.[^/]*$|(?-i:(Tests?|Spec)\.[^/]*$)`)},
	{40, "vendored", lazy.Regexp(`(?i)(^|/)(vendor|third[_-]?party|node_modules|bower_components|(site|dist)-packages|godeps|pods|external|\.?venv)/`)},
	{25, "generated", lazy.Regexp(`(?i)(generated|[._]gen\.|\.pb\.|_pb2\.|\.min\.|bundle\.)[^/]*$`)},
	{10, "internal", lazy.Regexp(`(^|/)(_?internal|private|detail)/`)},
	{12, "prose", lazy.Regexp(`(?i)\.(md|markdown|rst|txt|adoc|asciidoc|org|html|htm|tex|pod|rdoc|textile)$`)},
}

// A question is the pattern of search_content as it is looked for. The search finds its needle, and weigh says which of the lines count.
type question struct {
	text    string
	needle  string   // Server of http.Server; "" of a regular expression
	owners  []string // http of http.Server
	words   []string // all must stand in the line
	exact   bool     // upper and lower case count, or nothing is known of it
	ofTests bool     // it speaks of tests, which then come as early as others
}

var speaksOfTests = lazy.Regexp(`(?i)test|example|bench|mock|fixture|fuzz`)

// asText makes the question for a text. Of a qualified name (http.Server, Foo::bar) the definition of the last part counts too, where
// the rest names its owner: the file, the directory, or a word before it. The name of a file (server.go) is not a qualified name.
func asText(text string, caseCounts bool) question {
	q := question{text: text, needle: text, exact: caseCounts, ofTests: speaksOfTests().MatchString(text)}
	if qualified().MatchString(text) && !fileName().MatchString(text) {
		parts := namesIn(text)
		q.needle, q.owners = parts[len(parts)-1], parts[:len(parts)-1]
	}
	return q
}

var (
	qualified = lazy.Regexp(`^[\pL_][\pL\p{Nd}_]*((::|->|[.#/])[\pL_][\pL\p{Nd}_]*)+$`)
	fileName  = lazy.Regexp(`\.(go|py|[cm]?jsx?|tsx?|rs|[ch](pp|xx|c|h)?|java|kts?|rb|php|cs|swift|scala|mm?|lua|p[lm]|ba?sh|sql|md|rst|txt|json5?|ya?ml` +
		`|toml|ini|cfg|conf|xml|html?|s?css|vue|proto|mod|sum|lock|env|csv|log|asm|exs?|hs|mli?|clj|el|vim|dart|zig)$`)
)

// asWords makes the question for the lines that have all words of a text, in any order. ok is false if there are not several.
func asWords(text string, caseCounts bool) (q question, ok bool) {
	q = question{text: text, words: strings.Fields(text), exact: caseCounts, ofTests: speaksOfTests().MatchString(text)}
	if len(q.words) < 2 {
		return q, false
	}
	q.needle = slices.MaxFunc(q.words, func(a, b string) int { return len(a) - len(b) })
	return q, true
}

// A result is one line of search_content, or a file by its name.
type result struct {
	Path    string   `json:"path"`
	Line    int      `json:"line"`            // 0: only the file's name matches
	Place   string   `json:"place,omitempty"` // in a document, as "page 3"; Line is then that of all its text
	Column  int      `json:"column"`
	Text    string   `json:"text"`
	Before  []string `json:"before"`
	After   []string `json:"after"`
	More    []int    `json:"more_lines,omitempty"`
	Copies  int      `json:"copies,omitempty"`
	Score   int      `json:"score"`
	Reasons []string `json:"reasons"`

	defines bool
}

// A ranking collects what a search finds, so that the answer to "where is X?" comes first. It knows no language: it goes by shapes that
// most of them share. Its found and named are for grep.Query, and are safe for concurrent use.
type ranking struct {
	question
	root   string // of the search: its name may be an owner
	m      *matching.Matcher
	around int // lines of context

	mu    sync.Mutex
	kept  []result
	lines int
	files map[string]bool // that matched by a line or by their name
	cut   bool            // something was left out
}

// mostKept bounds the results that are kept: of more the best stay.
const mostKept = 2000

func (r *ranking) keep(found ...result) {
	if r.kept = append(r.kept, found...); len(r.kept) > 2*mostKept {
		slices.SortFunc(r.kept, order)
		r.kept, r.cut = r.kept[:mostKept], true
	}
}

// order puts the better of two results first; of the same points, the one with the shorter path.
func order(a, b result) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")),
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
}

// found takes the lines of a file that match, with those around them.
func (r *ranking) found(h grep.FileHit, rows []grep.Row) {
	f := r.fileOf(h.Path)
	s := r.m.Scanner()
	defer r.m.Put(s)
	var results []result
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
			p.Path, p.Line, p.Text = h.Path, row.Line, row.Text
			p.Column += row.From
			if row.Place != nil {
				p.Place = row.Place.Name
			}
			p.Before, p.After = r.context(rows, i)
			results = append(results, p)
		}
	}
	if len(results) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[h.Path] = true
	if r.lines += len(results); h.Lines > handed {
		if r.cut = true; len(r.words)+len(r.owners) == 0 {
			r.lines += h.Lines - handed
		}
	}
	r.keep(results...)
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
	points := fileHas
	switch f.adds {
	case 0:
		return
	case fileIs:
		points = fileAlone
	}
	p := result{Path: name, Before: []string{}, After: []string{}, Score: points - f.loss, Reasons: append([]string{"file name"}, f.later...)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[name] = true
	r.keep(p)
}

// A rankedFile holds the points that the path of a file gives to its results.
type rankedFile struct {
	stem, dir string // the name up to its first dot, and that of its directory
	prose     bool
	adds      int      // fileIs, fileHas, or nothing
	loss      int      // by its kind and its depth
	later     []string // why it comes later
}

func (r *ranking) fileOf(name string) (f rankedFile) {
	base := path.Base(name)
	f.dir, f.stem = path.Base(path.Dir(path.Join(r.root, name))), base
	if i := strings.IndexByte(base, '.'); i > 0 {
		f.stem = base[:i]
	}
	f.loss = deeper * min(strings.Count(name, "/"), 8)
	for _, l := range lesser {
		if !(l.reason == "test" && r.ofTests) && l.path().MatchString(name) {
			f.loss += l.points
			f.later = append(f.later, l.reason)
			f.prose = f.prose || l.reason == "prose"
		}
	}
	if n := len(r.owners); len(r.words) > 0 || n > 0 && !strings.EqualFold(f.dir, r.owners[n-1]) {
		return f // server.go is not http.Server, but http/server.go may well be
	}
	s := r.m.Scanner()
	defer r.m.Put(s)
	for _, span := range s.Spans(nil, []byte(base), 0, len(base)) {
		if span[0] == 0 && (span[1] == len(base) || span[1] == len(f.stem)) && span[1] > 0 {
			f.adds = fileIs
		} else if span[1] > span[0] {
			f.adds = max(f.adds, fileHas)
		}
	}
	return f
}

// weigh gives the best match of a line, with its points and reasons; ok is false if the line does not count.
func (r *ranking) weigh(f *rankedFile, text string, spans [][2]int) (best result, ok bool) {
	for _, w := range r.words {
		if !r.in(text, w) {
			return best, false
		}
	}
	points, from, to := 0, 0, 0
	if !f.prose {
		points, from, to = declared(text)
	}
	for _, span := range spans {
		a, b := span[0], span[1]
		p := result{Score: f.adds - f.loss, Column: a + 1, Reasons: []string{"use"}}
		if a < to && from < b {
			p.Score += points
			p.Reasons[0] = "member"
			if p.defines = points > member; p.defines {
				p.Reasons[0] = "definition"
			}
		}
		asked := len(r.words) > 0 && r.in(text, r.text) || len(r.owners) > 0 && r.in(text[max(b-len(r.text), 0):b], r.text)
		if len(r.owners) > 0 && !asked && !(p.defines && r.owned(f, text[:a])) {
			continue
		}
		if isWord(text, a, b) {
			p.Score += wholeWord
			p.Reasons = append(p.Reasons, "whole word")
		}
		if asked {
			p.Score += asAsked
			p.Reasons = append(p.Reasons, "as asked")
		}
		if f.adds == fileIs {
			p.Reasons = append(p.Reasons, "file name")
		}
		if !r.exact && text[a:b] == r.needle {
			p.Score += asSpelled
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

// owned reports whether an owner is the file, its directory, or a word before the name.
func (q *question) owned(f *rankedFile, before string) bool {
	names := append(namesIn(before), f.dir, f.stem)
	return slices.ContainsFunc(q.owners, func(owner string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, owner) })
	})
}

// isWord reports whether text[a:b] is not part of a longer name.
func isWord(text string, a, b int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:a])
	first, _ := utf8.DecodeRuneInString(text[a:])
	last, _ := utf8.DecodeLastRuneInString(text[:b])
	after, _ := utf8.DecodeRuneInString(text[b:])
	return a < b && !(partOfName(before) && partOfName(first)) && !(partOfName(last) && partOfName(after))
}

// best gives the results, the best first. Results whose lines overlap become one, and so do results with the same text and the same lines
// around it. The bare name of a file goes if a line of it is there. The search must be over.
func (r *ranking) best() []result {
	slices.SortFunc(r.kept, order)
	r.cut = r.cut || len(r.kept) > mostKept
	kept := r.kept[:min(len(r.kept), mostKept)]
	of, same := map[string][]*result{}, map[string]*result{} // by path, and by what they say
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
		says := strings.Join(slices.Concat(p.Before, []string{"", p.Text, ""}, p.After), "\n")
		if len(p.Before)+len(p.After) == 0 { // nobody can tell a copy
			says = p.Path + "\x00" + says
		}
		if first := same[says]; first != nil {
			first.Copies++
			gone[i] = true
			continue
		}
		same[says] = p
	}
	var out []result
	nth := map[string]int{}
	for i, p := range kept {
		if gone[i] || p.Line == 0 && len(of[p.Path]) > 1 {
			continue
		}
		p.Score -= sameFile * min(nth[p.Path], 5) // so that no file fills the list
		nth[p.Path]++
		out = append(out, p)
	}
	slices.SortFunc(out, order)
	return out
}

var (
	keywords = set(`func fn fun function def defn defp defmacro defmodule define #define class struct union enum interface trait protocol
		object record type typealias newtype const constexpr var val let macro macro_rules! sub proc procedure method module mod namespace
		package actor extension message service rpc theorem lemma alias defun defvar defparameter %macro .macro .globl TEXT GLOBL DATA`)
	modifiers = set(`export default pub public private protected internal static final abstract async extern inline virtual override
		readonly volatile unsafe sealed open partial mut declare local global friend synchronized native transient explicit lateinit
		suspend tailrec operator infix noinline typedef #`)
	created = set(`create table view index trigger function procedure type schema sequence role materialized unique temporary temp or replace
		if not exists`)
	statements = set(`if else elif for foreach while until switch match case when return throw raise yield await go defer new delete in not
		and or is import from using use include require print assert with catch do goto typeof sizeof unless then select echo`)
	comment = lazy.Regexp(`^(//|/\*|\* |\*/|\*$|--|;|#!|# |"""|\x27\x27\x27|<!--|%[^m])`)
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// behindKeyword is the name that a keyword declares, as its second group. The first is a receiver or an owner: (b *B) X, self.X.
var behindKeyword = shape(`^(\([^)]*\)\s*|[\pL\p{Nd}_.:#/]*[.:#·])?[{\[]?\s*(NAMES)`)

// shapes describe the other lines that declare a name, each with its points and the name as its group. The first that matches holds.
var shapes = []struct {
	points int
	line   func() *regexp.Regexp
}{
	{defines, shape(`^\} (NAMES);`)},                                                        // typedef struct { … } X;
	{defines, shape(`^\s*TYPES(?:NAME::)*(NAME)(?:<[^>]*>)?\(.*\{$`)},                       // void B::X(int a) {
	{defines, shape(`^TYPES(?:NAME::)*(NAME)(?:<[^>]*>)?\(.*[),(]$`)},                       // int X(int a,
	{defines, shape(`^\s*(?:NAME::)*(NAME)(?:<[^>]*>)?\((?:[^()]|\([^()]*\))*\)[^()]*\{$`)}, // X(a, b) {
	{defines, shape(`^(?:TYPES|\$)?(NAMES)\s*(?:GIVEN|;)`)},                                 // X = 1, X: int = 1, int X;
	{defines, shape(`^SHALLOW(NAME)\s+(?:struct|interface|class|enum|union|record|trait|protocol)\b`)},
	{member, shape(`^SHALLOW(?:TYPES|- |\$)?(NAMES)\s*(?:GIVEN|;)`)},
	{member, shape(`^\s*["\x27](NAME)["\x27]\s*GIVEN`)},
	{member, shape(`^TYPES(NAME)\(.*\);$`)},                            // int X(int);
	{member, shape(`^SHALLOW(NAME)\(.*\)\s*(?:[\pL_(*\[]|:.|->)`)},     // X(p []byte) (n int, err error)
	{member, shape(`^SHALLOW(NAME)(?:,.*|\s*//.*|\s+[\pL_*\[&].*)?$`)}, // an enumerator, or a field and its type
}

// shape compiles the shape of a line at its first use. Words in capitals stand for parts that many languages have.
func shape(line string) func() *regexp.Regexp {
	const name = `[\pL_][\pL\p{Nd}_]*`
	return lazy.Regexp(strings.NewReplacer("NAMES", name+`(?:, `+name+`)*`, "NAME", name, "SHALLOW", `(?:\t| {1,4})`,
		"TYPES", `(?:(?:[\pL\p{Nd}_*&<>,\[\]?~]|::)+[\s*&]+)+`, "GIVEN", `(?:=(?:[^=>]|$)|:(?:[^:]|$)|:: |\?=)`).Replace(line))
}

// declared gives the name that a line declares, text[from:to], and the points of that; all 0 if it declares none.
func declared(text string) (points, from, to int) {
	text = strings.TrimRight(text[:min(len(text), 300)], " \t\r") // no language declares a name further on
	line := strings.TrimLeft(text, " \t")
	first, _, _ := strings.Cut(line, " ")
	first, _, _ = strings.Cut(first, "(")
	if statements[first] || comment().MatchString(line) && !strings.HasPrefix(line, "# define ") {
		return 0, 0, 0
	}
	if rest, ok := afterKeyword(line); ok {
		if at := behindKeyword().FindStringSubmatchIndex(rest); at != nil {
			if points = defines; at[2] >= 0 {
				points = owns
			}
			return points, len(text) - len(rest) + at[4], len(text) - len(rest) + at[5]
		}
	}
	for _, s := range shapes {
		if at := s.line().FindStringSubmatchIndex(text); at != nil {
			return s.points, at[2], at[3]
		}
	}
	return 0, 0, 0
}

// afterKeyword gives the part of a line behind the keyword of a definition: "(b *B) X() {" of "func (b *B) X() {". ok is false if there is none.
func afterKeyword(line string) (rest string, ok bool) {
	rest = strings.TrimLeft(line, "(")
	creates := len(rest) > 6 && strings.EqualFold(rest[:7], "create ")
	for {
		word, after, more := strings.Cut(rest, " ")
		plain, _, _ := strings.Cut(word, "(") // pub(crate)
		switch plain = strings.TrimRight(plain, "*"); {
		case !more:
			return rest, ok
		case keywords[plain], creates && created[strings.ToLower(plain)]:
			ok = true
		case !modifiers[plain] && (plain == "" || plain[0] != '@'):
			return rest, ok
		}
		rest = strings.TrimLeft(after, " \t")
	}
}

func partOfName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func namesIn(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !partOfName(r) })
}
