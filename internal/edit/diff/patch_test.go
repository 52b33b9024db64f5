package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// applyHunks is the slow, obvious reading of a patch.
func applyHunks(t testing.TB, before []byte, hs []Hunk) []byte {
	lines := Lines(before)
	var out []byte
	pos := 0
	for _, h := range hs {
		for pos < h.OldStart-1 {
			out = append(out, lines[pos]...)
			pos++
		}
		olds, news := 0, 0
		for i, l := range h.Lines {
			if l == noNewline {
				continue
			}
			raw := l[1:]
			if h.crlf != nil && h.crlf[i] {
				raw += "\r"
			}
			if i+1 == len(h.Lines) || h.Lines[i+1] != noNewline {
				raw += "\n"
			}
			if l[0] != '+' {
				if pos >= len(lines) || string(lines[pos]) != raw {
					t.Fatalf("hunk at %d does not fit line %d: %q", h.OldStart, pos+1, raw)
				}
				pos++
				olds++
			}
			if l[0] != '-' {
				out = append(out, raw...)
				news++
			}
		}
		if olds != h.OldLines || news != h.NewLines {
			t.Fatalf("hunk says %d,%d lines, has %d,%d", h.OldLines, h.NewLines, olds, news)
		}
	}
	for _, l := range lines[pos:] {
		out = append(out, l...)
	}
	return out
}

func TestPatchShape(t *testing.T) {
	before := []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12")
	after := []byte("1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n")
	got, _ := json.Marshal(Patch(before, after))
	want := `[{"oldStart":2,"oldLines":11,"newStart":2,"newLines":11,"lines":[" 2"," 3"," 4","-5","+five"," 6"," 7"," 8"," 9"," 10"," 11","-12","\\ No newline at end of file","+12"]}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if a, r := Counts(Patch(before, after)); a != 2 || r != 2 {
		t.Errorf("counts %d %d", a, r)
	}
	if h := Patch(before, before); len(h) != 0 {
		t.Errorf("same: %v", h)
	}
	h := Patch([]byte("a\r\nb\r\n"), []byte("a\r\nc\r\n"))
	if h[0].Lines[1] != "-b" || !strings.Contains(Unified("x", Edited, h), "-b\r\n+c\r\n") {
		t.Errorf("CRLF: %q %q", h[0].Lines, Unified("x", Edited, h))
	}
	if h := Patch([]byte("a\nb\n"), []byte("a\r\nb\n")); len(h) != 1 {
		t.Error("a changed line break is a change")
	}
	if h := Patch([]byte("a\rb\rc\r"), []byte("a\rB\rc\r")); len(h) != 1 || h[0].OldStart != 1 || h[0].OldLines != 1 || h[0].Lines[0] != "-a\rb\rc\r" {
		t.Errorf("CR: %+v", h)
	}
	if h := Patch(nil, []byte("a\n")); h[0].OldStart != 1 || h[0].OldLines != 0 || h[0].NewStart != 1 || h[0].NewLines != 1 {
		t.Errorf("create: %+v", h)
	}
}

// randomText makes small texts with many equal lines, which is where diffs go wrong.
func randomText(r *rand.Rand, lines int) []byte {
	var b bytes.Buffer
	ends := []string{"\n", "\n", "\n", "\r\n"}
	if r.Intn(2) == 0 {
		ends = ends[:1]
	}
	for range r.Intn(lines + 1) {
		b.WriteString([]string{"", "a", "b", "c", "}", "\tx", "a\r"}[r.Intn(7)])
		b.WriteString(ends[r.Intn(len(ends))])
	}
	if r.Intn(3) == 0 {
		b.WriteString("end")
	}
	return b.Bytes()
}

func mutate(r *rand.Rand, text []byte) []byte {
	lines := Lines(text)
	var out []byte
	for _, l := range lines {
		switch r.Intn(8) {
		case 0:
		case 1:
			out = append(append(out, l...), "new\n"...)
		case 2:
			out = append(out, "new\n"...)
		default:
			out = append(out, l...)
		}
	}
	return out
}

func TestPatchReproduces(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 5000 {
		before := randomText(r, 30)
		after := mutate(r, before)
		if r.Intn(4) == 0 {
			after = randomText(r, 30)
		}
		hs := Patch(before, after)
		if got := applyHunks(t, before, hs); !bytes.Equal(got, after) {
			t.Fatalf("before %q\nafter  %q\ngot    %q", before, after, got)
		}
	}
}

// TestDiffIsShort compares the number of changed lines with the best there is, on small texts.
func TestDiffIsShort(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 2000 {
		a, b := Lines(randomText(r, 14)), Lines(randomText(r, 14))
		cost := 0
		for _, c := range Changes(a, b) {
			cost += c.A1 - c.A0 + c.B1 - c.B0
		}
		lcs := make([][]int, len(a)+1)
		for i := range lcs {
			lcs[i] = make([]int, len(b)+1)
		}
		for i := range a {
			for j := range b {
				if bytes.Equal(a[i], b[j]) {
					lcs[i+1][j+1] = lcs[i][j] + 1
				} else {
					lcs[i+1][j+1] = max(lcs[i][j+1], lcs[i+1][j])
				}
			}
		}
		if best := len(a) + len(b) - 2*lcs[len(a)][len(b)]; cost != best {
			t.Fatalf("%q\n%q\ncost %d, best %d", a, b, cost, best)
		}
	}
}

// TestDiffOfStrangers: two long texts that have little in common must not take quadratic time. The time is not looked at; a
// quadratic search of 200,000 × 200,000 lines would run into the test's own limit.
func TestDiffOfStrangers(t *testing.T) {
	var a, b bytes.Buffer
	r := rand.New(rand.NewSource(3))
	for i := range 200_000 {
		fmt.Fprintf(&a, "%d\n", r.Intn(1000))
		fmt.Fprintf(&b, "%d\n", r.Intn(1000))
		if i%1000 == 0 {
			fmt.Fprintf(&a, "mark %d\n", i)
			fmt.Fprintf(&b, "mark %d\n", i)
		}
	}
	hs := Patch(a.Bytes(), b.Bytes())
	if got := applyHunks(t, a.Bytes(), hs); !bytes.Equal(got, b.Bytes()) {
		t.Fatal("patch does not reproduce the text")
	}
}

func TestGitTakesUnified(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED ORACLE: no git")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewSource(4))
	var patch strings.Builder
	want := map[string][]byte{}
	for i := range 300 {
		name := fmt.Sprintf("d/f%d.txt", i)
		switch i {
		case 1:
			name = "d/with blank.txt"
		case 2:
			name = "d/ünïcode.txt"
		case 3:
			name = "d/qu\"ote\\.txt"
		}
		before := randomText(r, 40)
		after := mutate(r, before)
		if len(before) == 0 || len(after) == 0 || bytes.Equal(before, after) {
			continue
		}
		want[name] = after
		if err := os.MkdirAll(filepath.Join(dir, "d"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), before, 0o644); err != nil {
			t.Fatal(err)
		}
		patch.WriteString(Unified(name, Edited, Patch(before, after)))
	}
	cmd := exec.Command(git, "-c", "core.autocrlf=false", "apply", "-p1", "--whitespace=nowarn")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(patch.String())
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_DIR=/nonexistent")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %v\ngot  %q\nwant %q", name, err, got, text)
		}
	}
}

func TestSnippet(t *testing.T) {
	before := []byte(strings.Repeat("x\n", 100))
	after := append([]byte(nil), before...)
	after[20], after[120] = 'a', 'b'
	got := Snippet(Patch(before, after), nil)
	want := "     8→x\n     9→x\n    10→x\n    11→a\n    12→x\n    13→x\n    14→x\n…\n    58→x\n    59→x\n    60→x\n    61→b\n    62→x\n    63→x\n    64→x\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	long := Snippet(Patch(nil, bytes.Repeat([]byte(strings.Repeat("y", 1000)+"\n"), 1000)), nil)
	if n := strings.Count(long, "\n"); n != snippetLines+1 || len(long) > 60*500 || !strings.Contains(long, "940 lines more") {
		t.Errorf("%d lines, %d bytes, …%q", n, len(long), long[len(long)-40:])
	}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		base, ours, theirs, want string
		conflicts                int
	}{
		{"a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n", 0},
		{"a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", "a\nX\nc\n", 0},
		{"a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", "a\nX\nc\n", 1},
		{"a\nb\nc\n", "a\nb\nc\n", "b\nc\nd\n", "b\nc\nd\n", 0},
		{"a\nb\nc\n", "", "a\nb\nc\nd\n", "", 1},
		{"", "x\n", "y\n", "x\n", 1},
		{"a\nb\nc\nd\n", "a\nc\nd\n", "a\nb\nc\nX\nd\n", "a\nc\nX\nd\n", 0},
	} {
		got, conflicts := Merge([]byte(c.base), []byte(c.ours), []byte(c.theirs))
		if string(got) != c.want || len(conflicts) != c.conflicts {
			t.Errorf("%q %q %q: got %q, %d conflicts; want %q, %d", c.base, c.ours, c.theirs, got, len(conflicts), c.want, c.conflicts)
		}
	}
	// A change on one side alone is the result, and sides may be swapped where there is no conflict.
	r := rand.New(rand.NewSource(5))
	for range 3000 {
		base := randomText(r, 20)
		a, b := mutate(r, base), mutate(r, base)
		if got, c := Merge(base, a, base); !bytes.Equal(got, a) || len(c) > 0 {
			t.Fatalf("ours alone: %q %q %q", base, a, got)
		}
		if got, c := Merge(base, base, b); !bytes.Equal(got, b) || len(c) > 0 {
			t.Fatalf("theirs alone: %q %q %q", base, b, got)
		}
		if got, c := Merge(base, a, a); !bytes.Equal(got, a) || len(c) > 0 {
			t.Fatalf("both the same: %q %q %q", base, a, got)
		}
		x, c := Merge(base, a, b)
		y, d := Merge(base, b, a)
		if len(c) != len(d) || len(c) == 0 && !bytes.Equal(x, y) {
			t.Fatalf("swapped: %q %q %q: %q %q", base, a, b, x, y)
		}
	}
}

// A name that would have the header of a diff show something else is quoted there as git does.
func TestUnifiedQuotesNamesThatShowFalsely(t *testing.T) {
	for name, want := range map[string]string{
		"/w/x\u202ey": `"a/w/x\342\200\256y"`, "/w/\u200b": `"a/w/\342\200\213"`, "/w/\x1b[2J": `"a/w/\033[2J"`, "/w/\xff": `"a/w/\377"`, "/w/ü": "a/w/ü", "/w/a b": "a/w/a b\t",
	} {
		if got, _, _ := strings.Cut(Unified(name, Edited, Patch([]byte("1\n"), []byte("2\n"))), "\n"); got != "--- "+want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// TestMergeWords: within lines that both changed, changes of other words combine; of the same ones they don't.
func TestMergeWords(t *testing.T) {
	letters := func(s []byte) (out [][]byte) {
		for i := range s {
			out = append(out, s[i:i+1])
		}
		return out
	}
	for _, c := range []struct{ base, ours, theirs, want string }{
		{"abc\n", "Abc\n", "abC\n", "AbC\n"},
		{"abc\n", "Abc\n", "aBc\n", "ABc\n"},    // they touch
		{"abc\n", "aBc\n", "axyc\n", "axyc\n"},  // theirs stands in the place of it
		{"abcd\n", "aXYd\n", "abZd\n", ""},      // a part of it
		{"ab\n", "axb\n", "ayb\n", ""},          // at one place
		{"ab\n", "axb\n", "axb\n", "axb\n"},     // the same
		{"a\nb\n", "a\n\nb\n", "a\nx\nb\n", ""}, // at one place, of lines
		{"a\nb\n", "a\n\nb\n", "A\nb\n", "A\n\nb\n"},
		{"a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"},
		{"", "", "", ""},
	} {
		got, ok := MergeWords([]byte(c.base), []byte(c.ours), []byte(c.theirs), letters)
		if string(got) != c.want || ok != (c.want != "" || c.base == "") {
			t.Errorf("%q, %q, %q: %q, %v; want %q", c.base, c.ours, c.theirs, got, ok, c.want)
		}
	}
}
