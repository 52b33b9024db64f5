package ignore_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/grep/ignore"
	"moltisfs/grep/ignore/peers"
	"moltisfs/internal/testdir"
)

var peerTrees = flag.Int("peertrees", 5, "generated trees that TestPeers compares")

// peerEnv makes the test binary list a tree with a peer and end: see peerListed.
const peerEnv = "IGNORE_TEST_PEER"

func TestMain(m *testing.M) {
	if name := os.Getenv(peerEnv); name != "" {
		if err := peers.List(os.Stdout, name, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	remove := testdir.InMemory()
	status := m.Run()
	remove()
	os.Exit(status)
}

// verdictOf is how one lister did on one tree.
type verdictOf struct{ trees, bad, hides, shows, died, hung int }

func (v *verdictOf) add(want, got []string, died, hung bool) bool {
	v.trees++
	hides, shows := len(minus(want, got)) > 0, len(minus(got, want)) > 0
	for n, is := range map[*int]bool{&v.died: died, &v.hung: hung, &v.hides: hides, &v.shows: shows, &v.bad: died || hung || hides || shows} {
		if is {
			*n++
		}
	}
	return died || hung || hides || shows
}

func (v verdictOf) String() string {
	return fmt.Sprintf("%d of %d trees differ from git (%.1f %%): hides files in %d, shows files in %d, crashed on %d, hung on %d",
		v.bad, v.trees, 100*float64(v.bad)/float64(v.trees), v.hides, v.shows, v.died, v.hung)
}

// TestPeers runs the two Go packages of the field beside ours, on generated trees and on trees of
// one construct each. The trees have no info/exclude, core.excludesFile or core.ignorecase, which
// the peers don't claim to read. The test fails when ours differs from git; what the others do it
// logs. It also fails when the peers do better than docs/internals/decisions/0001-own-ignore-rules.md says:
// the decision for our own rules rests on that.
func TestPeers(t *testing.T) {
	t.Parallel()
	needGit(t)
	root := t.TempDir()
	total := map[string]*verdictOf{"ours": {}, "gocodewalker": {}, "go-gitignore": {}}
	wrong := map[string][]string{}
	try := func(i int, f *forest, what string) {
		dir := filepath.Join(root, fmt.Sprint(i))
		f.plant(t, dir)
		want := gitListed(t, dir)
		for name, v := range total {
			var got []string
			died, hung := false, false
			if name == "ours" {
				got = listed(t, dir, ignore.Options{})
			} else {
				got, died, hung = peerListed(t, name, dir)
			}
			bad := v.add(want, got, died, hung)
			if bad && name == "ours" {
				t.Errorf("%s\n%v\nhidden by us: %q\nshown by us: %q", what, f, minus(want, got), minus(got, want))
			}
			if bad && what != "" {
				how := ""
				switch {
				case died:
					how = " (crashes)"
				case hung:
					how = " (hangs)"
				}
				wrong[name] = append(wrong[name], fmt.Sprintf("%q%s", what, how))
			}
		}
	}
	for i := range *peerTrees {
		f := gen{rand.New(rand.NewPCG(*seed, uint64(i)))}.forest()
		f.info, f.global, f.fold = "", "", false
		try(i, f, "")
	}
	for name, v := range total {
		t.Logf("generated trees, %s: %v", name, v)
		*v = verdictOf{}
	}
	for i, rule := range constructs {
		f := &forest{rules: map[string]string{".gitignore": rule + "\n"}}
		if i == 0 { // one tree for all of them, with another rule each
			f.files = constructFiles
		}
		try(-1, f, rule)
	}
	for _, name := range peers.Names {
		if total[name].bad == 0 {
			t.Errorf("%s differs from git on no construct; ask the question of decision 0001 again", name)
		}
	}
	for name, v := range total {
		t.Logf("one construct each, %s: %v: %s", name, v, strings.Join(wrong[name], ", "))
	}
}

// constructs are rules of one construct each, the last two of which are hostile.
var constructs = []string{
	"ba?", "[!a]", "[^a].txt", "a/b", "a/**", "/*\n!*az/", "doc/\n!*/", "***/x", "foo**/bar", "a[", "[[:digit:]]", "{a,b}", "a\\ ", " lead", "trail ", "tab\t",
	"\\#hash", "\\!bang", "\xef\xbb\xbfbom", "^c", "a+b", "(p)", "$d", "n**m", "?", "??", "*.log\n!keep.log", "/top", "a/**/b", "**/x", "!x", "[a-c]", "[]a]",
	"[\u00fc", "a*a*a*a*a*a*a*a*b",
}

var constructFiles = []string{
	"ba?", "bar", "bax", "a.txt", "b.txt", "a/b", "a/c/b", "x/a/b", "doc/one", "baz/one", "fob/one", "p/q/x", "x/y", "foo/bar", "foox/y/bar", "foobar/bar", "7", "a ", " lead", "trail", "trail ",
	"tab", "tab\t", "#hash", "!bang", "bom", "^c", "c", "a+b", "aab", "(p)", "p/z", "$d", "d", "nm", "nxm", "n/m", "é", "e", "keep.log", "run.log", "top", "s/top", "]", "{a,b}",
	strings.Repeat("a", 44) + "c", // takes git a second; sixty would take it fifteen
}

// peerListed lists dir in a process of its own: this binary once more, see TestMain.
func peerListed(t *testing.T, name, dir string) (files []string, died, hung bool) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, dir)
	cmd.Env = append(os.Environ(), peerEnv+"="+name)
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, false, true
	}
	for line := range strings.Lines(string(out)) {
		rel, err := filepath.Rel(dir, strings.TrimSuffix(line, "\n"))
		if err == nil {
			files = append(files, filepath.ToSlash(rel))
		}
	}
	slices.Sort(files)
	return files, err != nil, false
}
