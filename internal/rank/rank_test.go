package rank

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// spansOf are the places of needle in text, whatever the case.
func spansOf(text, needle string) (out [][2]int) {
	low, n := strings.ToLower(text), strings.ToLower(needle)
	for at := 0; ; {
		i := strings.Index(low[at:], n)
		if i < 0 {
			return out
		}
		at += i + len(n)
		out = append(out, [2]int{at - len(n), at})
	}
}

func lineOf(number int, text, needle string) Line {
	return Line{Number: number, Text: text, Spans: spansOf(text, needle)}
}

// What a line does with the name X.
func TestKinds(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]kind{
		"func X(a int) {":                   definition,
		"func (b *B) X() int {":             inside,
		"type X struct {":                   definition,
		"type X[T any] struct {":            definition,
		"\tX struct {":                      inside,
		"var a, X int":                      definition,
		"const X = 1":                       definition,
		"\tX = 1":                           innerAssign,
		"\tX  Reader // a field":            member,
		"\tX,":                              member,
		"\tX(p []byte) (n int, err error)":  declaration,
		"class X(Base):":                    definition,
		"    def X(self):":                  inside,
		"async def X():":                    definition,
		"def self.X":                        inside,
		"X = 1":                             assignment,
		"X: int = 1":                        assignment,
		"pub(crate) fn X<T>() {":            definition,
		"pub struct X;":                     definition,
		"    X(String),":                    use,
		"macro_rules! X {":                  definition,
		"export default function X() {":     definition,
		"function* X() {":                   definition,
		"export const X = () => {":          definition,
		"const { X } = require('x')":        definition,
		"  X(a, b) {":                       inside,
		"  X: 1,":                           member,
		`  "X": 1,`:                         member,
		"public static final int X = 3;":    definition,
		"  private String X;":               member,
		"public void X(int a) {":            definition,
		"#define X(a) a":                    definition,
		"# define X 1":                      definition,
		"int X(int a)":                      definition,
		"static int X(int a,":               definition,
		"int X(int a);":                     declaration,
		"void B::X(int a) {":                inside,
		"} X;":                              definition,
		"typedef unsigned int X;":           definition,
		"struct X {":                        definition,
		"\tint X;":                          member,
		"int X = 3;":                        assignment,
		"TEXT ·X(SB), NOSPLIT, $0":          inside,
		"TEXT runtime·X(SB), NOSPLIT, $0":   inside,
		"X() {":                             definition,
		"X ?= make":                         assignment,
		"CREATE TABLE IF NOT EXISTS X (":    definition,
		"create index X on t (a)":           definition,
		"(defun X (a)":                      definition,
		"X :: Int -> Int":                   assignment,
		"resource \"X\" \"y\" {":            use,
		"[X]":                               heading,
		"message X {":                       definition,
		"type Y = other.X":                  use,
		"func f(a X) {":                     use,
		"func (x *X) Close() error {":       use,
		"class Y(X):":                       use,
		"class Y extends X {":               use,
		"const y = X":                       use,
		"\treturn X(a)":                     use,
		"\tif X(a) {":                       use,
		"\tx.X(a, func() {":                 use,
		"X(a, func() {":                     use,
		"\ta.X = 1":                         use,
		"// func X is this":                 use,
		"# X = 1 in a comment":              use,
		"import X from 'x'":                 use,
		"if a == X {":                       use,
		"\t\t\tX: 1,":                       use,
		"else X(a) {":                       use,
		"y := X{":                           use,
		"":                                  use,
		"func ünïX(a int) {":                definition,
		strings.Repeat("(", 200) + "X":      use,
		"func " + strings.Repeat("é", 9):    use,
		"\tX":                               member,
		"X":                                 use,
		"typedef struct { int a; } Y; // X": use,
	} {
		p := place{}
		at := regexp.MustCompile(`\bX\b|ünïX`).FindStringIndex(line)
		if at == nil {
			continue
		}
		if got := p.kindOf(line, at[0], at[1]); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
	prose := place{prose: true}
	for line, want := range map[string]kind{
		"# X": heading, "## About X": heading, "X": heading, "X = 1": use, "the class X": use,
	} {
		q, f := Literal("X", false), File{Path: "a.md", Around: func(int) (_, after []string) {
			if line == "X" {
				after = []string{"====="}
			}
			return nil, after
		}}
		i := strings.Index(line, "X")
		if got := q.weigh(&f, &prose, []Line{{Text: line}}, 0, [2]int{i, i + 1}).kind; got != want {
			t.Errorf("prose %q: %v, want %v", line, got, want)
		}
	}
}

// found ranks lines "path:line:text".
func found(q Query, needle string, lines ...string) []Hit {
	s := New(q)
	by := map[string][]Line{}
	var order []string
	for _, l := range lines {
		parts := strings.SplitN(l, ":", 3)
		var n int
		fmt.Sscan(parts[1], &n) //nolint:errcheck // ours
		if by[parts[0]] == nil {
			order = append(order, parts[0])
		}
		by[parts[0]] = append(by[parts[0]], lineOf(n, parts[2], needle))
	}
	for _, p := range order {
		s.Found(fileOf(p, needle), by[p])
	}
	return s.Best()
}

func fileOf(p, needle string) File {
	return File{Path: p, Named: spansOf(p[strings.LastIndexByte(p, '/')+1:], needle)}
}

func places(hits []Hit) (out []string) {
	for _, h := range hits {
		out = append(out, fmt.Sprintf("%s:%d", h.Path, h.Line))
	}
	return out
}

// Each list is already in the order that it must come out in.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q     Query
		lines []string
	}{
		"definitions before uses": {Literal("Run", false), []string{
			"z.go:1:func Run() {", "a.go:1:func Runner() {", "b.go:1:\tx.Run()", "c.go:1:// Runaway"}},
		"whole words, then parts of names": {Literal("mux", false), []string{
			"a.go:1:\tuse(mux)", "b.go:1:\tuse(serveMux)", "c.go:1:\tuse(muxer)"}},
		"case, if capitals are asked for": {Literal("MaxInt", false), []string{
			"b.go:1:\tMaxInt = 9", "a.go:1:\tmaxInt = 9"}},
		"the file that is called so": {Literal("Builder", false), []string{
			"b/builder.go:1:type Builder struct {", "a.go:1:type Builder interface {"}},
		"nearer": {Literal("X", false), []string{
			"a.go:1:type X struct { a }", "b/a.go:1:type X struct { b }",
			"a/b/c/a.go:1:type X struct { c }"}},
		"tests, vendored, generated later": {Literal("X", false), []string{
			"d/a.go:1:func X() { 1", "d/a.pb.go:1:func X() { 2", "d/a_test.go:1:func X() { 3",
			"vendor/a.go:1:func X() { 4", "vendor/t/a.pb.go:1:func X() { 5"}},
		"tests that are asked for": {Literal("TestX", false), []string{
			"a/x_test.go:1:func TestX() { 1", "b/x.go:1:func TestX() { 2"}},
		"an owner in a qualified name": {Literal("http.Server", false), []string{
			"net/http/server.go:9:type Server struct {", "a.go:1:\tx := http.Server{"}},
		"an owner before the name": {Literal("B.Write", false), []string{
			"z.go:1:func (b *B) Write() {", "a.go:1:\tB.Write()"}},
	} {
		want := []string{}
		for _, l := range c.lines {
			parts := strings.SplitN(l, ":", 3)
			want = append(want, parts[0]+":"+parts[1])
		}
		for range 5 {
			lines := slices.Clone(c.lines)
			rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
			if got := places(found(c.q, c.q.Needle(), lines...)); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// Uses that name a package say which of several definitions is meant.
func TestUsesElect(t *testing.T) {
	t.Parallel()
	lines := []string{"a/x.go:1:func Open() {", "zip/x.go:1:func Open() error {"}
	for i := range 8 {
		lines = append(lines, fmt.Sprintf("u%d.go:1:\tf%d(zip.Open())", i, i))
	}
	if got := places(found(Literal("Open", false), "Open", lines...)); got[0] != "zip/x.go:1" {
		t.Errorf("%q", got)
	}
}

// What a qualified name does not mean does not count.
func TestQualified(t *testing.T) {
	t.Parallel()
	got := places(found(Literal("http.Server", false), "Server",
		"net/rpc/server.go:1:type Server struct {", "net/http/a.go:2:type Server struct {",
		"b.go:1:var s Server", "c.go:1:x(http.Server{})", "d.go:1:x(xhttp.Serverless)"))
	if want := []string{"net/http/a.go:2", "c.go:1", "d.go:1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	for text, needle := range map[string]string{
		"http.Server": "Server", "a::b::C": "C", "p->x": "x", "Foo#bar": "bar",
		"server.go": "server.go", "a.b.json": "a.b.json", "http.Server{": "http.Server{",
		".hidden": ".hidden", "x.": "x.", "...": "...", "": "", "a b.c": "a b.c", "1.5": "1.5",
	} {
		if q := Literal(text, false); q.Needle() != needle {
			t.Errorf("%q is looked for as %q", text, q.Needle())
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	if _, ok := Words("one", false); ok {
		t.Error("one word")
	}
	q, ok := Words("timeout the Dial", false)
	if !ok || q.Needle() != "timeout" {
		t.Fatalf("%q", q.Needle())
	}
	got := places(found(q, q.Needle(), "a.go:1:// timeout of a call",
		"b.go:1:// the dial has a timeout"))
	if want := []string{"b.go:1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestMergedAndDistinct(t *testing.T) {
	t.Parallel()
	s := New(Literal("X", false))
	type context = [2][]string
	found := func(path string, around []context, lines ...Line) {
		s.Found(File{Path: path, Around: func(i int) (_, _ []string) {
			return around[i][0], around[i][1]
		}}, lines)
	}
	found("a.go", []context{{{"", ""}, {"func X() {", "}"}}, {{"", "// X is"}, {"}", ""}},
		{{"a"}, {"b"}}},
		lineOf(3, "// X is", "X"), lineOf(4, "func X() {", "X"), lineOf(40, "\tuse(X)", "X"))
	found("b.go", []context{{{"c"}, {"d"}}}, lineOf(7, "\tuse(X)", "X"))
	found("copy/a.go", []context{{{"", "// X is"}, {"}", ""}}}, lineOf(4, "func X() {", "X"))
	found("other/a.go", []context{{{"another"}, nil}}, lineOf(4, "func X() {", "X"))
	hits := s.Best()
	want := []string{"a.go:4", "other/a.go:4", "a.go:40"}
	if got := places(hits); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q", got)
	}
	if !reflect.DeepEqual(hits[0].More, []int{3}) || hits[0].Copies != 1 || hits[2].Copies != 1 {
		t.Errorf("%+v", hits)
	}
	if s.Lines() != 6 || s.Files() != 4 {
		t.Errorf("%d lines, %d files", s.Lines(), s.Files())
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	s := New(Literal("server", false))
	for _, p := range strings.Fields("d/x.go d/server.go d/my_server.go d/observers.go server.go") {
		s.Name(fileOf(p, "server"))
	}
	s.Found(fileOf("server.go", "server"), []Line{lineOf(3, "\tuse(server)", "server")})
	got := places(s.Best())
	want := []string{"server.go:3", "d/server.go:0", "d/my_server.go:0", "d/observers.go:0"}
	if !reflect.DeepEqual(got, want) || s.Files() != 4 {
		t.Errorf("%q, %d files", got, s.Files())
	}
}

// However many there are, and in whatever order they come, the best stay, newer before older.
func TestManyAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	best := func(order []int) []Hit {
		s := New(Literal("X", false))
		for _, i := range order {
			s.Found(File{Path: fmt.Sprintf("f%05d.go", i), ModTime: now.Add(time.Duration(i) * time.Hour)},
				[]Line{lineOf(1, fmt.Sprintf("\tuse%d(X)", i), "X")})
		}
		s.Found(File{Path: "a/b/z.go"}, []Line{lineOf(1, "func X() {", "X")})
		if s.Lines() != len(order)+1 {
			t.Errorf("%d lines", s.Lines())
		}
		return s.Best()
	}
	order := rand.Perm(3 * maxKept)
	a := best(order)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	b := best(order)
	if len(a) != maxKept || !reflect.DeepEqual(places(a), places(b)) {
		t.Errorf("%d kept; the order depends on the order", len(a))
	}
	if a[0].Path != "a/b/z.go" || a[1].Path != fmt.Sprintf("f%05d.go", 3*maxKept-1) {
		t.Errorf("%q", places(a[:3]))
	}
}

// No line and no span breaks it.
func FuzzJudge(f *testing.F) {
	f.Add("func X() {", "X", "a/x.go")
	f.Add("\xff\xfe(", "\xff", "\x00")
	f.Fuzz(func(t *testing.T, text, needle, path string) {
		if needle == "" || len(strings.ToLower(text)) != len(text) {
			return
		}
		for _, q := range []Query{Literal(needle, false), Pattern(needle)} {
			s := New(q)
			s.Found(File{Path: path}, []Line{lineOf(1, text, needle)})
			for _, h := range s.Best() {
				if h.Column < 1 || h.Column > len(text)+1 {
					t.Errorf("column %d of %q", h.Column, text)
				}
			}
		}
	})
}
