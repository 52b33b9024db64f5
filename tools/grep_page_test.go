package tools_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

// rowsOf gives the rows that a page of content shows, each once, and the lines of its matches' blocks.
func rowsOf(g *tools.Grep) (rows map[string]bool, matches []string, blocks map[string][]string) {
	rows, blocks = map[string]bool{}, map[string][]string{}
	for _, m := range g.Matches {
		key := fmt.Sprint(m.Path, ":", m.Line)
		matches = append(matches, key)
		blocks[key] = m.Block
		for _, l := range append(m.Block, fmt.Sprint(m.Line, ":", m.Match)) {
			rows[m.Path+":"+l] = true
		}
	}
	for _, c := range g.ContextOnly {
		for i, l := range c.Block {
			if !strings.HasPrefix(l, fmt.Sprint(c.Line+i, ":")) {
				l = "not in order: " + l
			}
			rows[c.Path+":"+l] = true
		}
	}
	return rows, matches, blocks
}

// textRows are the lines of an answer's text that are rows.
func textRows(g *tools.Grep) []string {
	rows := slices.DeleteFunc(strings.Split(g.Text(), "\n"),
		func(l string) bool { return l == "--" || strings.HasPrefix(l, "[") || strings.HasPrefix(l, "In ") })
	for i := range rows { // a single row has its whole path
		rows[i] = strings.TrimPrefix(rows[i], g.Root+"/")
	}
	return rows
}

// TestGrepPagesTile: the pages of an answer, one after the other, are the whole answer: no row is lost, none comes twice, in the payload as in the text;
// and a block that goes on upon another page says so.
func TestGrepPagesTile(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 1))
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	s, root := suite(t, nil, tools.Options{})
	for range rounds {
		for f := range 3 {
			var b strings.Builder
			for range r.IntN(30) {
				b.WriteString([]string{"x\n", "x y\n", "needle\n", "a needle here\n"}[r.IntN(1+r.IntN(4))])
			}
			write(t, filepath.Join(root, fmt.Sprint("f", f)), b.String()+[]string{"", "end", "needle"}[r.IntN(3)])
		}
		args := map[string]any{"pattern": "needle", "output_mode": "content", "-A": r.IntN(4), "-B": r.IntN(4)}
		if r.IntN(3) == 0 {
			args["-C"] = r.IntN(6)
		}
		args["head_limit"] = 0
		whole := call(t, s, "Grep", args).(*tools.Grep)
		all, wholeMatches, wholeBlocks := rowsOf(whole)
		if len(all) != whole.Total.Rows || whole.Truncated || len(whole.ContextOnly) > 0 {
			t.Fatalf("%v: %d rows, of %d; %v", args, len(all), whole.Total.Rows, whole)
		}
		for limit := 1; limit <= whole.Total.Rows+1; limit += 1 + r.IntN(5) {
			args["head_limit"], args["offset"] = limit, 0
			seen := map[string]bool{}
			var matches, text []string
			for {
				g := call(t, s, "Grep", args).(*tools.Grep)
				rows, m, blocks := rowsOf(g)
				if len(rows) > limit {
					t.Fatalf("%v: %d rows", args, len(rows))
				}
				for l := range rows {
					if seen[l] {
						t.Fatalf("%v: twice: %s", args, l)
					}
				}
				maps.Copy(seen, rows)
				matches, text = append(matches, m...), append(text, textRows(g)...)
				for _, m := range g.Matches {
					key := fmt.Sprint(m.Path, ":", m.Line)
					want := wholeBlocks[key]
					if len(blocks[key]) == 0 && len(want) == 0 {
						continue
					}
					k := slices.Index(want, blocks[key][0])
					cut := ""
					switch start, end := k > 0, k+len(blocks[key]) < len(want); {
					case start && end:
						cut = "both"
					case start:
						cut = "start"
					case end:
						cut = "end"
					}
					if cut != m.BlockCut {
						t.Fatalf("%v: %s is cut %q, and says %q", args, key, cut, m.BlockCut)
					}
				}
				if !g.Truncated {
					break
				}
				args["offset"] = g.NextOffset
			}
			if len(whole.Matches) == 0 {
				break
			}
			if !maps.Equal(seen, all) || !slices.Equal(matches, wholeMatches) || !slices.Equal(text, textRows(whole)) {
				t.Fatalf("%v: the pages make\n%v\nthe whole is\n%v", args, text, textRows(whole))
			}
		}
	}
}

// TestSizeOfAnAnswer: head_limit 0 is as much as one answer holds; it says so, and the rest is on the pages behind it.
func TestSizeOfAnAnswer(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	const lines = 3_000 // several pages
	write(t, filepath.Join(root, "a.txt"), strings.Repeat("needle "+strings.Repeat("x", 300)+"\n", lines))
	for name, args := range map[string]map[string]any{
		"rows":   {"pattern": "needle", "output_mode": "content", "head_limit": 0},
		"blocks": {"pattern": "needle", "output_mode": "content", "head_limit": 0, "-C": 20},
		"limit":  {"pattern": "needle", "output_mode": "content", "head_limit": lines},
	} {
		n, pages, offset := 0, 0, 0
		for {
			args["offset"] = offset
			g := call(t, s, "Grep", args).(*tools.Grep)
			b, err := g.MarshalJSON()
			if err != nil || len(b) > 4_800_000 {
				t.Fatalf("%s: %d bytes, %v", name, len(b), err)
			}
			n, pages = n+len(g.Matches), pages+1
			text := g.Text()
			if len(text) > 256<<10+200 {
				t.Fatalf("%s: %d bytes of text", name, len(text))
			}
			if g.SizeLimited != g.Truncated || g.Truncated != strings.Contains(text, "rows, as many as one answer holds") {
				t.Fatalf("%s: truncated %v, by size %v: %s", name, g.Truncated, g.SizeLimited, text[len(text)-100:])
			}
			if !g.Truncated {
				break
			}
			if len(b) < 3_200_000 && len(text) < 255<<10 {
				t.Fatalf("%s: a page of %d bytes, %d of text", name, len(b), len(text))
			}
			offset = g.NextOffset
		}
		if n != lines || pages < 2 {
			t.Errorf("%s: %d matches on %d pages", name, n, pages)
		}
	}
}

// TestGlobLists: a list of globs finds what each of its globs does, in Glob as in Grep, and what has the name that it is as a whole.
func TestGlobLists(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	for _, f := range []string{"a.go", "a_test.go", "b.ts", "sub/c.go", "a,b.txt", "sp ace f", "ace", "My Docs/r.md", "My"} {
		write(t, filepath.Join(root, f), "x\n")
	}
	glob := func(pattern, path string) []string {
		args := map[string]any{"pattern": pattern}
		if path != "" {
			args["path"] = path
		}
		p := call(t, s, "Glob", args)
		if tools.Refused(p) {
			return []string{p.Text()}
		}
		return relative(root, p.(*tools.Glob).Paths)
	}
	grep := func(list string) []string {
		return relative(root, call(t, s, "Grep", map[string]any{"pattern": "x", "glob": list}).(*tools.Grep).Files)
	}
	for _, c := range []struct {
		list string
		want []string
	}{
		{"*.go,!*_test.go", []string{"a.go", "sub/c.go"}},
		{"*.go, !*_test.go", []string{"a.go", "sub/c.go"}},
		{"*.{go,ts},!sub", []string{"a.go", "a_test.go", "b.ts"}},
		{"a,b.txt", []string{"a,b.txt"}},
		{`a\,b.txt`, []string{"a,b.txt"}},
		{"*.ts,", []string{"b.ts"}},
		{root + "/*.ts," + root + "/sub/**", []string{"b.ts", "sub/c.go"}},
	} {
		if got := glob(c.list, ""); !slices.Equal(got, c.want) {
			t.Errorf("Glob %q: %v, want %v", c.list, got, c.want)
		}
		if got := grep(c.list); !slices.Equal(got, c.want) {
			t.Errorf("Grep %q: %v, want %v", c.list, got, c.want)
		}
	}
	for _, c := range []struct {
		list       string
		glob, grep []string
	}{
		{"sp ace f", []string{"sp ace f"}, []string{"ace", "sp ace f"}},
		{`sp\ ace\ f`, []string{"sp ace f"}, []string{"sp ace f"}},
		{"My Docs/*", []string{"My Docs/r.md"}, []string{"My", "My Docs/r.md"}},
		{"*.ts *.md", nil, []string{"My Docs/r.md", "b.ts"}},
	} {
		if got := glob(c.list, ""); !slices.Equal(got, c.glob) {
			t.Errorf("Glob %q: %v, want %v", c.list, got, c.glob)
		}
		if got := grep(c.list); !slices.Equal(got, c.grep) {
			t.Errorf("Grep %q: %v, want %v", c.list, got, c.grep)
		}
	}
	// The root may be spelled through a link, and so may absolute globs.
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(root, "sub"), link); err != nil {
		t.Skip("SKIPPED, NOTHING CHECKED: no links here")
	}
	if got := glob(link+"/*.go,"+link+"/*.ts", link); !slices.Equal(got, []string{"sub/c.go"}) {
		t.Errorf("Glob through a link: %v", got)
	}
	p := call(t, s, "Grep", map[string]any{"pattern": "x", "glob": link + "/*.go", "path": link})
	if g, ok := p.(*tools.Grep); !ok || len(g.Files) != 1 {
		t.Errorf("Grep through a link: %v", p)
	}
	// Absolute globs outside path are looked for where they are.
	if got := glob(root+"/*.ts,"+root+"/a.go", filepath.Join(root, "sub")); !slices.Equal(got, []string{"a.go", "b.ts"}) {
		t.Errorf("outside path: %v", got)
	}
}

func relative(root string, paths []string) []string {
	var out []string
	for _, p := range paths {
		rel, err := filepath.Rel(root, p)
		if err != nil {
			rel = p
		}
		out = append(out, rel)
	}
	slices.Sort(out)
	return out
}

// TestGitFileIsNoFile: what stands for a repository elsewhere is version control, and no file of the project.
func TestGitFileIsNoFile(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	write(t, filepath.Join(root, "sub", ".git"), "gitdir: needle\n")
	write(t, filepath.Join(root, "a"), "needle\n")
	if g := call(t, s, "Glob", map[string]any{"pattern": "*"}).(*tools.Glob); len(g.Paths) != 1 || g.Skipped["vcs"].Count != 1 {
		t.Errorf("Glob: %v, skipped %v", g.Paths, g.Skipped)
	}
	if g := call(t, s, "Grep", map[string]any{"pattern": "needle"}).(*tools.Grep); len(g.Files) != 1 || g.Skipped["vcs"].Count != 1 {
		t.Errorf("Grep: %v, skipped %v", g.Files, g.Skipped)
	}
}

// Rows that show a window of a longer line are counted.
func TestGrepCountsCutLines(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	write(t, filepath.Join(root, "wide.csv"), strings.Repeat(strings.Repeat("x", 9000)+"needle\n", 3)+"needle\n")
	g := call(t, s, "Grep", map[string]any{"pattern": "needle", "path": root, "output_mode": "content"}).(*tools.Grep)
	if len(g.Matches) != 4 || g.LinesCut != 3 || g.Matches[0].LineBytes != 9006 {
		t.Errorf("%d matches, %d lines cut: %+v", len(g.Matches), g.LinesCut, g.Matches)
	}
}

// TestPagesFitTheCaller: an answer has no more text than its caller takes, whatever it asks for, says
// so, and what is left out comes on the next page.
func TestPagesFitTheCaller(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens, bytes int
		hard          bool
		want          int
	}{
		{0, 0, false, 256 << 10},
		{0, 10_000, true, 10_000},
		{0, 87_500, false, 87_500},
		{1000, 0, false, 8 << 10}, // the floor
		{1000, 87_500, false, 8 << 10},
		{200_000, 87_500, false, 160_000}, // the operator knows the model
		{200_000, 10_000, true, 10_000},   // but can't keep the client from cutting
	} {
		s, root := suite(t, func(fs *config.FS) { fs.ContextWindowTokens = c.tokens }, tools.Options{})
		write(t, filepath.Join(root, "a.txt"), strings.Repeat("needle "+strings.Repeat("x", 900)+"\n", 600))
		for i := range 80 {
			write(t, filepath.Join(root, strings.Repeat("d", 120), fmt.Sprintf("%0150d.go", i)), "needle\n")
		}
		for _, call := range []struct{ tool, args string }{
			{"Read", `{"file_path":"` + root + `/a.txt"}`},
			{"Grep", `{"pattern":"needle","output_mode":"content","head_limit":0}`},
			{"Grep", `{"pattern":"needle","output_mode":"content","head_limit":0,"path":"` + root + `/a.txt"}`},
			{"Grep", `{"pattern":"needle","head_limit":0}`},
			{"Grep", `{"pattern":"needle","output_mode":"count","head_limit":0}`},
			{"Glob", `{"pattern":"**"}`},
		} {
			p, err := s.Call(t.Context(), tools.Call{Session: "s", Tool: call.tool, Args: []byte(call.args),
				Page: dialect.Page{Bytes: c.bytes, Hard: c.hard}})
			if err != nil || tools.Refused(p) {
				t.Fatal(p, err)
			}
			text := p.Text()
			if n := len(text); n > c.want+300 {
				t.Errorf("%+v: %s %s: %d bytes", c, call.tool, call.args, n)
			} else if n < c.want-2000 && strings.Contains(text, "go on with") {
				t.Errorf("%+v: %s %s: only %d bytes", c, call.tool, call.args, n)
			}
			if b, _ := tools.Encode(p); strings.Contains(text, "go on with") !=
				strings.Contains(string(b), `"truncated":true`) {
				t.Errorf("%+v: %s: %.300s", c, call.tool, b)
			}
		}
	}
}

// TestCutRowTruncates: a row that shows a part of its line makes the answer truncated.
func TestCutRowTruncates(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	write(t, filepath.Join(root, "a.txt"), strings.Repeat("x", 90_000)+"needle\n")
	g := call(t, s, "Grep", map[string]any{"pattern": "needle", "output_mode": "content"}).(*tools.Grep)
	if !g.Truncated || g.LinesCut != 1 || g.NextOffset != 0 || g.SizeLimited {
		t.Errorf("%+v", g)
	}
}
