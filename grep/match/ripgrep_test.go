package match

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	rgPath   = flag.String("match.rg", "rg", "the ripgrep to compare with")
	rgRounds = flag.Int("match.rgrounds", 150, "generated patterns to compare with ripgrep")
)

func ripgrep(t *testing.T) string {
	path, err := exec.LookPath(*rgPath)
	if err != nil {
		t.Skipf("NOT COMPARED WITH RIPGREP: %v (npm @vscode/ripgrep-linux-x64, or Debian's ripgrep; name it with -match.rg)", err)
	}
	out, err := exec.Command(path, "--version").Output()
	var major int
	if _, scan := fmt.Sscanf(string(out), "ripgrep %d.", &major); err != nil || scan != nil || major < 14 {
		// Version 13 has an older engine. It missed matches of "\B\w\B" and of Unicode
		// boundaries.
		t.Skipf("NOT COMPARED WITH RIPGREP: %s is version %d, 14 or later is wanted", path, major)
	}
	return path
}

// rgSpans runs ripgrep -o -b and gives the spans of its non-empty matches. refused is not empty
// when ripgrep does not take the pattern.
func rgSpans(t *testing.T, rg, file, pattern string, args ...string) (spans [][2]int, lines []int, refused string) {
	t.Helper()
	run := func(more ...string) ([]byte, string) {
		a := slices.Concat([]string{"--no-config", "--text", "--no-filename", "--color=never", "--no-messages"}, args, more, []string{"-e", pattern, file})
		var out, errs bytes.Buffer
		cmd := exec.Command(rg, a...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() == 2 {
			return nil, errs.String() + "refused"
		}
		return out.Bytes(), ""
	}
	out, refused := run("--line-number")
	if refused != "" {
		return nil, nil, refused
	}
	for _, l := range bytes.Split(out, []byte("\n")) {
		if n, _, ok := bytes.Cut(l, []byte(":")); ok {
			if v, err := strconv.Atoi(string(n)); err == nil {
				lines = append(lines, v)
			}
		}
	}
	out, _ = run("--only-matching", "--byte-offset", "--no-line-number")
	for _, l := range bytes.Split(out, []byte("\n")) {
		if n, text, ok := bytes.Cut(l, []byte(":")); ok && len(text) > 0 {
			if v, err := strconv.Atoi(string(n)); err == nil {
				spans = append(spans, [2]int{v, v + len(text)})
			}
		}
	}
	return spans, lines, ""
}

// ourSpans gives the same by this package: non-empty spans and the numbers of matching lines.
func ourSpans(m *Matcher, text []byte) (spans [][2]int, lines []int) {
	s := m.Scanner()
	defer m.Put(s)
	for _, l := range gotLines(s, text) {
		lines = append(lines, 1+bytes.Count(text[:l[0]], []byte("\n")))
		for _, x := range s.Spans(nil, text, l[0], l[1]) {
			if x[1] > x[0] {
				spans = append(spans, x)
			}
		}
	}
	return spans, lines
}

const rgText = "interface{}\na{\n${x}\nfoo\nx,5\naa\na{,5}\n\nk \u212a K s ſ S\nstraße STRASSE\nfoo bar foo_bar\n\xff\xfe foo\nA\xc3\xa9b \xc3\n中kfree()\n kfree() \n\u0663 3 x3\n" +
	"a.b-c/d\\e \"q\" 'r' #h %p @m !n ~t =e :c ;s <l> `b`\n\tindent  \n  \u00a0nbsp\u2003em\n[a-z] (p) |b| ^c $d *e +f ?g\nÀÉÎõü ÀÉÎÕÜ\nσ ς Σ\nǅ ǆ Ǆ\nfunc main() {\n\treturn 1.2.3.4\n}\n" +
	"\u0131 I i İ\n\u200d joiner \u200c\na\u0301 combining\n\U0001F600 smile\nword'word\nx\x00y nul\nend without newline é"

// rgPatterns are compared on rgText in full: what models write, and where the readings of Go and
// ripgrep differ.
var rgPatterns = []string{
	`\d`, `\w`, `\s`, `\D`, `\W`, `\S`, `\d+`, `\w+`, `\s+`, `[\d_]`, `[^\w]`, `[^\d\s]`, `[\W]`, `\b`, `\B`, `\bkfree\b`, `\bfoo\b`, `\Bfoo`, `foo\B`, `\<foo\>`, `\b{start}foo\b{end}`,
	`\b{start-half}foo`, `foo\b{end-half}`, `(?-u:\b)kfree`, `(?-u)\w+`, `(?-u)\bk`, `(?-u)\xff`, `\xff`, `\x{e9}`, `\u00e9`, `\U0001F600`, `(?i)k`, `(?i)s`, `(?i)ſ`, `(?i)straße`, `(?i)σ`, `(?i)ǆ`, `(?i)i`, `(?i)àéî`,
	`(?i)[k-s]`, `(?i)[^k]`, `(?i)K+`, `[[:alpha:]]+`, `[[:^alpha:]]+`, `[[:word:]]`, `[[:space:]]+`, `[[:punct:]]`, `[[:foo:]]`, `[a-z&&[^aeiou]]+`, `[\w--\d]+`, `[a-g~~b-h]+`, `[a[0-9]]+`, `[^a[0-9]]+`, `[]a]`, `[^]a]`,
	`[a-]`, `[-a]`, `[a\-z]`, `[\]]`, `[\[]`, `[.]`, `[*+?]`, `[{}]`, `\p{L}+`, `\p{Lu}`, `\P{L}`, `\p{Greek}`, `\p{Letter}`, `\pL`, `\p{^L}`, `\p{sc=Greek}`, `\p{gc=Lu}`, `\p{Alphabetic}`, `\p{Uppercase}+`, `\p{White_Space}`,
	`interface\{\}`, `\$\{x\}`, `a\{`, `\/`, `\-`, `\"`, `\'`, `\#`, `\%`, `\@`, `\!`, `\~`, `\=`, `\:`, `\;`, "\\`", `\,`, `\&`, `\ `, `}`, `]`, `a|b|`, `(|a)b`, `()`, `^`, `$`, `^$`, `^\s*$`, `^.*$`, `.`, `..`, `[^a]`, `^[^a]*$`,
	`\Aa`, `o\z`, `\A\z`, `a++`, `a**`, `(a*)*b`, `(?:a|ab)(?:c|bcd)?`, `foo|foobar`, `foobar|foo`, `fo+?`, `(?U)fo+`, `(?x) f o o # comment`, `(?x) [ f o ] +`, `(?s).`, `(?P<n>foo)`, `(?<n>foo)`, `(?i:FOO) bar`, `(?i)f(?-i)oo`,
	`(?i)foo|BAR`, `x?`, `(?m)^foo$`, `(?-m)^foo$`, `[a\n]b`, `\x61`, `\t`, `\x00`, `[\x00]`, `[0-9]+\.[0-9]+`, `\w+\(\)`, `func \w+\(\)`, `é`, `é+`, `[é]`, `.é`, `\W\w`, `a.b`, `a.c`, `^\S+$`, `\S+$`, `\s$`, `\d{1,2}`, `fo{2}`, `o{2,}`, `(?i)İ`, `(?i)ı`,
	`word\Wword`, `[^\x00-\x7f]`, `[^\x00-\x7F]+`, `\bi\b`, `\b\w\b`, `(\w)\b`, `\b[A-Z]\w*\b`, `(foo|bar)\b`, `\B\w\B`,
}

func TestAgainstRipgrep(t *testing.T) {
	rg := ripgrep(t)
	file := filepath.Join(t.TempDir(), "text")
	text := []byte(rgText)
	must(t, os.WriteFile(file, text, 0o600))
	for _, p := range rgPatterns {
		for _, fold := range []bool{false, true} {
			if why := differs(t, rg, file, text, p, Options{IgnoreCase: fold}); why != "" {
				t.Errorf("%q fold=%v: %s", p, fold, why)
			}
		}
	}
}

func differs(t *testing.T, rg, file string, text []byte, p string, o Options) string {
	t.Helper()
	var args []string
	if o.IgnoreCase {
		args = append(args, "--ignore-case")
	}
	spans, lines, refused := rgSpans(t, rg, file, p, args...)
	for _, v := range levels() {
		m, err := compileAt(p, o, v)
		if refused != "" {
			if err == nil && strings.Contains(refused, "Consider") {
				return "ripgrep refuses it: " + refused
			}
			return ""
		}
		if err != nil {
			return "refused: " + err.Error()
		}
		gotSpans, gotLines := ourSpans(m, text)
		if !slices.Equal(gotLines, lines) {
			return fmt.Sprintf("level %d: lines %v, ripgrep %v", v, gotLines, lines)
		}
		// Where \A, \z or a bare "$" matched, ripgrep 15 -o prints whole lines. Whether a line
		// matches it says right.
		if !strings.Contains(p, `\A`) && !strings.Contains(p, `\z`) && !strings.Contains(p, "$") && !slices.Equal(gotSpans, spans) {
			return fmt.Sprintf("level %d: spans %v, ripgrep %v", v, gotSpans, spans)
		}
	}
	return ""
}

// TestGeneratedAgainstRipgrep does so for generated patterns on texts that Go's regexp can't judge.
func TestGeneratedAgainstRipgrep(t *testing.T) {
	rg := ripgrep(t)
	g := generator{rand.New(rand.NewPCG(max(*seed, 1), 3))}
	dir := t.TempDir()
	for i := range *rgRounds {
		p := g.pattern(3)
		text := g.text(false, g.IntN(2) == 0)
		if g.IntN(3) == 0 {
			for range g.IntN(6) {
				text = slices.Insert(text, g.IntN(len(text)+1), byte(0x80+g.IntN(0x80)))
			}
		}
		text = bytes.ReplaceAll(text, []byte("\r"), nil)
		file := filepath.Join(dir, strconv.Itoa(i))
		must(t, os.WriteFile(file, text, 0o600))
		if why := differs(t, rg, file, text, p, Options{IgnoreCase: i%4 == 0}); why != "" {
			t.Fatalf("round %d: %q: %s\ntext %q", i, p, why, text)
		}
		os.Remove(file)
	}
}
