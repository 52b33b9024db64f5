//go:build linux

package grep

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/grep/match"
)

// TestGlobsAgainstRipgrep compares the globs of a Query with ripgrep's -g: negation, order,
// directories, anchors, braces, classes. Rulings, where ours differ: "?" and classes take a
// character, not a byte; an empty alternative in braces is one; "src/" without "!" means what is
// below src, and "./src/x" is "/src/x", where ripgrep finds nothing.
func TestGlobsAgainstRipgrep(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a/src", "a/b", "src/a/src", "b"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	for _, d := range []string{"", "a", "b", "src", "a/src", "a/b", "src/a", "src/a/src"} {
		for _, f := range []string{"x.go", "x.ts", "y.tsx", "[a].txt", "a.txt", ".env", "b", "é.go"} {
			p := filepath.Join(dir, d, f)
			if _, err := os.Stat(p); err == nil {
				continue // the directory b
			}
			must(t, os.WriteFile(p, []byte("x\n"), 0o644))
		}
	}
	one := [][]string{
		{"!src"}, {"!src/"}, {"!/src"}, {"!src/**"}, {"!**/src/**"}, {"!**/src"}, {"!a/src"}, {"!a/src/"}, {"!*"}, {"!**"}, {"!*.go", "x.go"}, {"x.go", "!*.go"},
		{"!src", "src/x.go"}, {"!src", "src"}, {"!src", "x.go", "src"}, {"*.go", "!a"}, {"src"}, {"**"}, {"**.go"}, {"src/**"}, {"/x.*"}, {"**/src/*"}, {"?.ts"}, {"é*"},
		{"[!x].t*"}, {"[^x].t*"}, {"[]a]*"}, {`\[a\].txt`}, {"[[]a].txt"}, {"*.{go,ts}"}, {"*.{go,t{s,sx}}"}, {"{src,a}/*.go"}, {"!{src,a}"}, {"!{src,a}/**"}, {"{}"}, {"x{a,y}.go"}, {"*.GO"}, {".*"}, {"!.*"},
	}
	r := rand.New(rand.NewPCG(1, 2))
	of := func(s ...string) string { return s[r.IntN(len(s))] }
	for range 400 {
		var list []string
		for range 1 + r.IntN(3) {
			g := of("", "", "!") + of("", "", "/", "**/")
			for n := r.IntN(3); n >= 0; n-- {
				g += of("a", "b", "src", "x.go", "*", "**", "*.go", "?", "*.{go,ts}", "[a-s]*", "x.*", "{a,src}", "s*c")
				if n > 0 {
					g += "/"
				}
			}
			list = append(list, g)
		}
		one = append(one, list)
	}
	m := compile(t, "x", match.Options{})
	d := guarded(t, dir, anything{})
	for _, bin := range ripgreps(t) {
		for _, globs := range one {
			args := []string{"--no-ignore", "-l"}
			for _, g := range globs {
				args = append(args, "-g", g)
			}
			if strings.Contains(strings.Join(globs, ""), "t{") && oldRipgrep(t, bin) {
				continue // nested braces came later
			}
			want := rg(t, bin, dir, append(args, "x", ".")...)
			res, err := Search(context.Background(), Walk{Dir: d, NoIgnore: true}, Query{Matcher: m, Glob: globs})
			if err != nil {
				t.Fatal(globs, err)
			}
			var got []string
			for _, f := range res.Files {
				got = append(got, strings.TrimPrefix(f.Path, d.True()+"/"))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s %q\nonly ours: %q\nonly ripgrep's: %q", bin, globs, without(got, want), without(want, got))
			}
		}
	}
}

func oldRipgrep(t *testing.T, bin string) bool {
	v := rg(t, bin, t.TempDir(), "--version")
	return slices.ContainsFunc(v, func(l string) bool { return strings.HasPrefix(l, "ripgrep 13") })
}
