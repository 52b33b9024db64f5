//go:build linux

package grep

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

var (
	rgPath = flag.String("rg", "", "ripgrep to compare with, beside the one in PATH")
	rgTree = flag.String("tree", "", "tree to search, beside some of the Go sources")
)

type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

// guarded opens a directory the way production does, with a judge that allows everything.
func guarded(t testing.TB, path string, j guardfs.Judge) Dir {
	t.Helper()
	fs, err := guardfs.New(guardfs.Options{Judge: j})
	must(t, err)
	h, err := fs.Resolve(path, guardfs.Read)
	must(t, err)
	d, err := h.Dir()
	must(t, err)
	h.Close()
	t.Cleanup(func() { d.Close() })
	return Guarded(d)
}

func ripgreps(t *testing.T) []string {
	var out []string
	for _, p := range []string{*rgPath, "rg"} {
		if p == "" {
			continue
		}
		if p, err := exec.LookPath(p); err == nil {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		t.Skip("SKIPPED, NOTHING COMPARED: no ripgrep in PATH, none given with -rg")
	}
	return out
}

// rg runs ripgrep with what we do by default; its exit code 1 is "no match".
func rg(t *testing.T, bin, dir string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, bin, append([]string{"--no-config", "--hidden", "--no-require-git", "--no-ignore-parent", "--color=never", "--no-heading", "-g", "!.git"}, args...)...)
	c.Dir = dir
	out, err := c.Output()
	if e, ok := err.(*exec.ExitError); err != nil && (!ok || e.ExitCode() != 1) {
		t.Fatalf("%s %q: %v", bin, args, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(out) == 0 {
		return nil
	}
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "./")
	}
	slices.Sort(lines)
	return lines
}

// rgPatterns: literals, alternations, classes, anchors, Unicode; the last are chosen to have no
// literal.
var rgPatterns = []struct {
	p    string
	fold bool
}{
	{"unsafe.Pointer", false}, {"return", false}, {"zqxjkvb", false}, {"errorf", true}, {`func\s+main`, false}, {`\w+_alloc\(`, false},
	{"TODO|FIXME|XXX", false}, {"Mutex|WaitGroup|Cond|Once|Pool|Map", false}, {`[A-Z]+_SUSPEND`, false}, {`[A-Z]{6}[0-9]{4}`, false},
	{`^package\s+\w+$`, false}, {`\bnil\b`, false}, {`[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+`, false}, {`straße|größe|é`, true}, {`^$`, false},
	{`if \(!p\)`, false}, {`\p{Greek}+`, false}, {`^\s*//.*\bbug\b`, true}, {`x{3,}`, false}, {`\.go$`, false}, {`(a|b)*c\d`, false}, {`[^\x00-\x7f]`, false},
}

// legacyRuling drops the lines about files that are not UTF-8. Ruling "legacy": a pattern that
// names characters outside ASCII is looked for in the decoded text of such a file, where ripgrep
// looks at its bytes; so we find "é" in a file in Latin-1.
func legacyRuling(dir string, lines []string) []string {
	legacy := map[string]bool{}
	return slices.DeleteFunc(lines, func(l string) bool {
		for end := range l {
			if l[end] != ':' && l[end] != '-' && end < len(l)-1 {
				continue
			}
			path := l[:end]
			if end == len(l)-1 {
				path = l
			}
			is, known := legacy[path]
			if !known {
				b, err := os.ReadFile(filepath.Join(dir, path))
				is = err == nil && !utf8.Valid(b)
				legacy[path] = is
			}
			if is {
				return true
			}
		}
		return false
	})
}

// TestRipgrep compares match sets with ripgrep: files, counts, and lines with context.
func TestRipgrep(t *testing.T) {
	if testing.Short() {
		t.Skip("compares whole trees")
	}
	src := testdir.GoSource(t)
	trees := []string{filepath.Join(src, "net"), filepath.Join(src, "unicode"), mixedTree(t)}
	if *rgTree != "" {
		trees = append(trees, *rgTree)
	}
	for _, bin := range ripgreps(t) {
		for _, dir := range trees {
			d := guarded(t, dir, anything{})
			w := Walk{Dir: d}
			for _, c := range rgPatterns {
				args := []string{}
				if c.fold {
					args = append(args, "-i")
				}
				m := compile(t, c.p, match.Options{IgnoreCase: c.fold})
				differ := func(mode string, got, want []string) {
					if m.NonASCII() {
						got, want = legacyRuling(dir, got), legacyRuling(dir, want)
					}
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Errorf("%s %s %q in %s\nonly ours: %.2000q\nonly ripgrep's: %.2000q", filepath.Base(bin), mode, c.p, dir, without(got, want), without(want, got))
					}
				}
				search := func(q Query) *Result {
					q.Matcher, q.MaxColumns = m, 1<<30
					r := searched(t, w, q)
					return r
				}
				rel := func(p string) string { return strings.TrimPrefix(p, d.True()+"/") }

				var got []string
				for _, f := range search(Query{}).Files {
					got = append(got, rel(f.Path))
				}
				differ("-l", got, rg(t, bin, dir, append(args, "-l", "-e", c.p, ".")...))
				got = nil
				for _, f := range search(Query{Mode: Count}).Files {
					got = append(got, fmt.Sprintf("%s:%d", rel(f.Path), f.Lines))
				}
				differ("-c", got, rg(t, bin, dir, append(args, "-c", "-e", c.p, ".")...))
				got = nil
				r := search(Query{Mode: Content, Before: 1, After: 2})
				if r.Totals.Rows > 200_000 {
					continue // gigabytes of text say no more
				}
				for _, row := range r.Rows {
					sep := ":"
					if row.Context {
						sep = "-"
					}
					got = append(got, fmt.Sprintf("%s%s%d%s%s", rel(row.Path), sep, row.Line, sep, row.Text))
				}
				want := rg(t, bin, dir, append(args, "-n", "-B1", "-A2", "--context-separator=", "-e", c.p, ".")...)
				want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
				for i := range want {
					want[i] = strings.ToValidUTF8(strings.TrimSuffix(want[i], "\r"), "\uFFFD")
				}
				slices.Sort(want)
				differ("-n", got, want)
			}
		}
	}
}

func without(a, b []string) []string {
	in := map[string]bool{}
	for _, s := range b {
		in[s] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return in[s] })
}

// mixedTree has what source trees lack: rules, CRLF, UTF-16, binary files, no final newline, a big
// file.
func mixedTree(t *testing.T) string {
	dir := t.TempDir()
	utf16 := func(s string) string {
		b := []byte{0xff, 0xfe}
		for _, r := range s {
			b = append(b, byte(r), byte(r>>8))
		}
		return string(b)
	}
	for name, content := range map[string]string{
		".gitignore": "*.log\n/out/\n!keep.log\n", "a.log": "return\n", "keep.log": "return nil\n", "out/x": "return\n", ".hidden": "return\n",
		"dos.txt": "return nil\r\nTODO x\r\n\r\npackage x\r\n", "wide.txt": utf16("return nil\nTODO é\n"), "bin": "return\x00nil\n",
		"open.txt": "return nil\nTODO", "empty": "", "blank": "\n\n\n", "sub/.gitignore": "*.txt\n", "sub/a.txt": "return\n", "sub/b.md": "return\n",
		"big.txt": strings.Repeat("xxx some line of text\n", 400_000) + "return nil\n" + strings.Repeat("more of it\n", 1000),
	} {
		p := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, []byte(content), 0o644))
	}
	return dir
}
