package tools_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/grep/ignore"
	"moltisfs/internal/dialect"
	"moltisfs/readers"
	"moltisfs/tools"
)

// TestTheUsersOwnExcludes: what git would not show the user, Grep and Glob leave out, and say so.
func TestTheUsersOwnExcludes(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".config", "git", "ignore"), "*.mine\n")
	user := ignore.User{Home: home, Read: os.ReadFile}
	for _, respect := range []bool{true, false} {
		s, root := suite(t, func(fs *config.FS) { fs.RespectGitignore = respect }, tools.Options{GitUser: user})
		write(t, filepath.Join(root, "a.mine"), "needle\n")
		write(t, filepath.Join(root, "b.txt"), "needle\n")
		want, ignored := 2, 0
		if respect {
			want, ignored = 1, 1
		}
		g := call(t, s, "Grep", map[string]any{"pattern": "needle"}).(*tools.Grep)
		if len(g.Files) != want || g.Skipped["ignored"].Count != ignored {
			t.Errorf("respect %v: Grep %v, skipped %v", respect, g.Files, g.Skipped)
		}
		if l := call(t, s, "Glob", map[string]any{"pattern": "*"}).(*tools.Glob); len(l.Paths) != want {
			t.Errorf("respect %v: Glob %v", respect, l.Paths)
		}
	}
}

// TestReadAndGrepAgreeOnBinaries: a file is binary to Read where it is binary to Grep, wherever the NULs are.
func TestReadAndGrepAgreeOnBinaries(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	code := strings.Repeat("export function fn(){}\n", 600)
	files := map[string]string{
		"end": code + "\x00", "log": strings.Repeat("fn was called\n", 120_000) + "\x00", "block": code + strings.Repeat("\x00", 600) + "fn\n",
		"wide": "\xff\xfef\x00n\x00\x00\x00\n\x00", "archive.sh": "#!/bin/sh\n" + code + "exit é\n" + strings.Repeat("\x1f\x8b\x00\xff", 9000),
		"head": "fn\x00", "7999": strings.Repeat("fn\n", 2666) + "f\x00", "8000": strings.Repeat("fn\n", 2666) + "fn\x00", "zeros": strings.Repeat("\x00", 5000) + code,
		"controls": strings.Repeat("fn\x01=\x02\n", 40), "noise": "fn \xfe\xff\x01\x02\x03\x80\x81\n", "plain": "fn\n",
	}
	for name, content := range files {
		write(t, filepath.Join(root, name), content)
	}
	all := call(t, s, "Grep", map[string]any{"pattern": "fn", "path": root}).(*tools.Grep)
	if len(all.Files)+len(all.Binary) != len(files) {
		t.Errorf("%d files, binary %v, of %d", len(all.Files), all.Binary, len(files))
	}
	for name := range files {
		path := filepath.Join(root, name)
		_, binary := call(t, s, "Read", map[string]any{"file_path": path, "limit": 5}).(*tools.Content).Body.(*readers.Binary)
		one := call(t, s, "Grep", map[string]any{"pattern": "fn", "path": path, "output_mode": "content"}).(*tools.Grep)
		if binary != slices.Contains(all.Binary, path) || binary == slices.Contains(all.Files, path) || binary != (len(one.Matches) == 0) || binary != (len(one.Binary) == 1) {
			t.Errorf("%s is binary to Read: %v; to Grep: %v, %v, by path %d rows", name, binary, all.Binary, all.Files, len(one.Matches))
		}
		if binary { // the argument that the answer names shows it
			if m, ok := call(t, s, "Read", map[string]any{"file_path": path, "encoding": "utf-8"}).(*tools.Content).Body.(*readers.Text); !ok || !strings.Contains(m.Content, "f") {
				t.Errorf("%s with an encoding: %+v", name, m)
			}
		}
	}
}

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
			b, err := tools.Encode(g)
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

// Rows that show a window of a longer line are counted, and make the answer truncated.
func TestGrepCountsCutLines(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	write(t, filepath.Join(root, "wide.csv"), strings.Repeat(strings.Repeat("x", 9000)+"needle\n", 3)+"needle\n")
	g := call(t, s, "Grep", map[string]any{"pattern": "needle", "path": root, "output_mode": "content"}).(*tools.Grep)
	if len(g.Matches) != 4 || g.LinesCut != 3 || g.Matches[0].LineBytes != 9006 || !g.Truncated || g.NextOffset != 0 || g.SizeLimited {
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
		{1000, 0, false, 5 << 10}, // the floor
		{1000, 87_500, false, 5 << 10},
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

// TestNothingFound: a search without a hit says which other reading has one, and next finds it. The readings are those of package alternatives.
func TestNothingFound(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	write(t, root+"/Makefile", "\t$(INSTALL) x\nfoo bar\n")
	write(t, root+"/src/a.py", "def count():\n    return issue.count()\nclass Big:\n    pass\n")
	write(t, root+"/src/b.go", "func Parse(x int) {}\nvar y = a?.b\n")
	write(t, root+"/.gitignore", "out/\n")
	write(t, root+"/out/gen/made.txt", "generated_only\n")
	for _, c := range []struct {
		tool string
		args map[string]any
		next map[string]any // what differs; nil: nothing is offered
	}{
		{"Grep", map[string]any{"pattern": "$(INSTALL)"}, map[string]any{"pattern": `\$\(INSTALL\)`}},
		{"Grep", map[string]any{"pattern": `nope\|Parse`}, map[string]any{"pattern": "nope|Parse"}},
		{"Grep", map[string]any{"pattern": "-i parse"}, map[string]any{"pattern": "parse", "-i": true}},
		{"Grep", map[string]any{"pattern": `Big:[\s\S]*pass`}, map[string]any{"multiline": true}},
		{"Grep", map[string]any{"pattern": "PARSE"}, map[string]any{"-i": true}},
		{"Grep", map[string]any{"pattern": "Parse", "glob": "*.(py|go)"}, map[string]any{"glob": "*.{py,go}"}},
		{"Grep", map[string]any{"pattern": "generated_only"}, map[string]any{"path": "$/out/gen"}},
		{"Grep", map[string]any{"pattern": "stands_nowhere"}, nil},
		{"Grep", map[string]any{"pattern": "stands(nowhere)"}, nil},
		{"Grep", map[string]any{"pattern": "?.b"}, map[string]any{"pattern": `\?\.b`}},
		{"Glob", map[string]any{"pattern": "*.(py|go)"}, map[string]any{"pattern": "*.{py,go}"}},
		{"Glob", map[string]any{"pattern": "*.py *.go"}, map[string]any{"pattern": "*.py,*.go"}},
		{"Glob", map[string]any{"pattern": "made.txt"}, map[string]any{"path": "$/out/gen"}},
		{"Glob", map[string]any{"pattern": "*.zig"}, nil},
		{"Glob", map[string]any{"pattern": "docs/*.go"}, nil}, // what is elsewhere was not asked for
	} {
		got := payloadMap(t, call(t, s, c.tool, c.args))
		next, _ := got["next"].(map[string]any)
		if c.next == nil {
			if next != nil || got["note"] != nil {
				t.Errorf("%s %v: offered %v, %v", c.tool, c.args, next, got["note"])
			}
			continue
		}
		want := maps.Clone(c.args)
		for k, v := range c.next {
			if want[k] = v; k == "path" {
				want[k] = strings.Replace(v.(string), "$", root, 1)
			}
		}
		if next == nil || !same(next["args"], want) {
			t.Errorf("%s %v: next %v, want %v (%v)", c.tool, c.args, next, want, got["note"])
			continue
		}
		hit := payloadMap(t, call(t, s, c.tool, want))
		if hit["total"] == float64(0) || hit["next"] != nil {
			t.Errorf("%s %v: what was offered finds nothing", c.tool, want)
		}
		if note, _ := got["note"].(string); got["kind"] != "bad_request" && note == "" || len(note) > 200 {
			t.Errorf("%s %v: the note is %q", c.tool, c.args, note)
		}
	}
}

// TestAWordThatIsTwoThings: a bare word that is an extension and a directory is answered with both,
// and no call.
func TestAWordThatIsTwoThings(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	write(t, root+"/web/js/a.css", "needle\n")
	write(t, root+"/b.js", "needle\n")
	for tool, args := range map[string]map[string]any{"Glob": {"pattern": "js"}, "Grep": {"pattern": "needle", "glob": "js"}} {
		got := payloadMap(t, call(t, s, tool, args))
		note, _ := got["note"].(string)
		if got["next"] != nil || !strings.Contains(note, "*.js: 1 file") || !strings.Contains(note, "**/js/**: 1 file") {
			t.Errorf("%s: %v, next %v", tool, note, got["next"])
		}
	}
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// TestNothingDeniedIsFound: a denied file is in no other reading either.
func TestNothingDeniedIsFound(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**"} }, tools.Options{})
	write(t, root+"/secret/plan.txt", "Needle(x)\n")
	write(t, root+"/.gitignore", "secret/\n")
	write(t, root+"/a.txt", "b\n")
	for tool, patterns := range map[string][]string{"Grep": {"needle", "Needle(x)", `"Needle"`, `x\|Needle`}, "Glob": {"plan.txt", "PLAN.TXT", "secret", "secret/plan.*"}} {
		for _, p := range patterns {
			got := payloadMap(t, call(t, s, tool, map[string]any{"pattern": p}))
			if got["next"] != nil || got["note"] != nil {
				t.Errorf("%s %s: %v %v", tool, p, got["next"], got["note"])
			}
		}
	}
}

// payloadMap is a payload as a gateway sees it.
func payloadMap(t *testing.T, p tools.Payload) map[string]any {
	t.Helper()
	raw, err := tools.Encode(p)
	must(t, err)
	var m map[string]any
	must(t, json.Unmarshal(raw, &m))
	return m
}

// Where the deadline came first, the first line says so: nothing found is not nothing there.
func TestNothingFoundBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	const more = " found before the deadline\n[the deadline came first: there may be more"
	for _, c := range []struct {
		p    tools.Payload
		want string
	}{
		{&tools.Grep{Mode: "files_with_matches"}, "No files found"},
		{&tools.Glob{Partial: true}, "No files" + more},
		{&tools.Grep{Mode: "files_with_matches", Partial: true}, "No files" + more},
		{&tools.Grep{Mode: "count", Partial: true}, "No matches" + more},
		{&tools.Grep{Mode: "content", Partial: true}, "No matches" + more},
	} {
		if got := c.p.Text(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
