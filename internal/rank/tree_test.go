package rank_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/rank"
)

var wholeTree = flag.Bool("tree", false, "ask all questions of the whole Go source tree")

// some subtrees of it are asked in a normal run.
var some = []string{"bufio", "bytes", "context", "encoding/json", "io", "net/http", "os", "strings",
	"sync", "time"}

// find is what search_content does, without the guard.
func find(t *testing.T, root, pattern, glob string) []rank.Hit {
	q := rank.Literal(pattern, false)
	m, err := match.Compile(q.Needle(), match.Options{Literal: true, IgnoreCase: true, CRLF: true})
	if err != nil {
		t.Fatal(err)
	}
	s := rank.New(q)
	spans := func(text string) [][2]int {
		sc := m.Scanner()
		defer m.Put(sc)
		return sc.Spans(nil, []byte(text), 0, len(text))
	}
	found := func(f grep.FileHit, rows []grep.Row) {
		var lines []rank.Line
		for _, r := range rows {
			lines = append(lines, rank.Line{Number: r.Line, Text: r.Text, Spans: spans(r.Text)})
		}
		s.Found(rank.File{Path: f.Path, ModTime: f.ModTime, Named: spans(path.Base(f.Path))}, lines)
	}
	named := func(p string) { s.Name(rank.File{Path: p, Named: spans(path.Base(p))}) }
	w := grep.Walk{Dir: grep.FS(os.DirFS(root)), NoIgnore: true}
	if _, err := grep.Search(context.Background(), w, grep.Query{Matcher: m, Mode: grep.Content,
		Limit: 5000, Glob: []string{glob}, Found: found, Named: named,
	}); err != nil {
		t.Fatal(err)
	}
	return s.Best()
}

// Where something is in Go's own source tree. The rules were tuned on the questions of tuned.txt.
// Those of held.txt were written before, and asked after that.
func TestGoTree(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	if _, serr := os.Stat(root); err != nil || serr != nil {
		t.Skip("SKIPPED: there is no source tree of Go here")
	}
	glob := "**"
	if !*wholeTree {
		glob = "{" + strings.Join(some, ",") + "}/**"
	}
	for _, set := range []string{"tuned", "held"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/" + set + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			first, five, n := 0, 0, 0
			for _, question := range strings.Split(strings.TrimSpace(string(text)), "\n") {
				query, want, _ := strings.Cut(question, " -> ")
				if !*wholeTree && !inSome(want) {
					continue
				}
				list := find(t, root, query, glob)
				at := 0
				for i, h := range list {
					if at == 0 && h.Path == want {
						at = i + 1
					}
				}
				if n++; at == 1 {
					first++
				}
				if at > 0 && at <= 5 {
					five++
				}
				if at != 1 {
					t.Logf("%s: %s is at %d\n%s", query, want, at, shown(list[:min(5, len(list))]))
				}
			}
			t.Logf("%d questions: the right file first in %d, in the first five in %d", n, first, five)
			if n < 10 || first*30 < n*24 || five < n {
				t.Error("too few")
			}
		})
	}
}

func inSome(file string) bool {
	for _, dir := range some {
		if strings.HasPrefix(file, dir+"/") {
			return true
		}
	}
	return false
}

func shown(hits []rank.Hit) string {
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "  %d %s:%d %.60q %v\n", h.Score, h.Path, h.Line, h.Text, h.Reasons)
	}
	return b.String()
}
