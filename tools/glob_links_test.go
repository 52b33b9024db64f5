package tools_test

import (
	"os"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// A Glob that finds nothing tells of a symbolic link that fits its pattern or the beginning of it, and offers the call that goes there, where one
// does. Of what policy closes it offers nothing.
func TestGlobTellsOfLinks(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{"**/closed/**"} }, tools.Options{})
	for _, f := range []string{"AGENTS.md", "real/f.go", "real/sub/g.py", "closed/k", "x/y/z"} {
		must(t, os.MkdirAll(root+"/"+f[:strings.LastIndex("/"+f, "/")], 0o755))
		write(t, root+"/"+f, "text\n")
	}
	for link, to := range map[string]string{
		"CLAUDE.md": "AGENTS.md", "lnk": "real", "x/y/deep": "../../real", "dangling": "nowhere", "shut": "closed", "shutfile": "closed/k",
	} {
		must(t, os.Symlink(to, root+"/"+link))
	}
	for pattern, want := range map[string]struct{ link, next string }{
		"CLAUDE.md":         {"CLAUDE.md", `{"tool":"Read","args":{"file_path":"ROOT/CLAUDE.md"}}`},
		"CLAUDE*":           {"CLAUDE.md", `{"tool":"Read","args":{"file_path":"ROOT/CLAUDE.md"}}`},
		"**/CLAUDE.md":      {"CLAUDE.md", `{"tool":"Read","args":{"file_path":"ROOT/CLAUDE.md"}}`},
		"ROOT/CLAUDE.md":    {"CLAUDE.md", `{"tool":"Read","args":{"file_path":"ROOT/CLAUDE.md"}}`},
		"none.md,CLAUDE.md": {"CLAUDE.md", `{"tool":"Read","args":{"file_path":"ROOT/CLAUDE.md"}}`},
		"lnk":               {"lnk", `{"tool":"Glob","args":{"path":"ROOT/lnk","pattern":"*"}}`},
		"lnk/":              {"lnk", `{"tool":"Glob","args":{"path":"ROOT/lnk","pattern":"*"}}`},
		"lnk/*":             {"lnk", `{"tool":"Glob","args":{"path":"ROOT/lnk","pattern":"*"}}`},
		"lnk/sub/*.py":      {"lnk", `{"tool":"Glob","args":{"path":"ROOT/lnk","pattern":"sub/*.py"}}`},
		"**/lnk/**":         {"lnk", `{"tool":"Glob","args":{"path":"ROOT/lnk","pattern":"**"}}`},
		"**/lnk/**/*.py":    {"lnk", `{"tool":"Glob","args":{"path":"ROOT/lnk","pattern":"**/*.py"}}`},
		"**/deep/*.go":      {"x/y/deep", `{"tool":"Glob","args":{"path":"ROOT/x/y/deep","pattern":"*.go"}}`},
		"{lnk,none}/*":      {"lnk", `{"tool":"Glob","args":{"path":"ROOT/lnk","pattern":"*"}}`},
		"lnk/none*":         {"lnk", ""},
		"dangling":          {"dangling", ""},
		"shut/*":            {"shut", ""},
		"shutfile":          {"shutfile", ""},
		"*/none":            {"", ""},
		"none":              {"", ""},
		"**/none/**":        {"", ""},
		"real/f.go":         {"", ""}, // it is found
	} {
		p := call(t, s, "Glob", map[string]any{"pattern": strings.ReplaceAll(pattern, "ROOT", root)}).(*tools.Glob)
		next := ""
		if p.Next != nil {
			next = nextOf(t, p)
		}
		if want := strings.ReplaceAll(want.next, "ROOT", root); next != want {
			t.Errorf("%s: next is %s, want %s", pattern, next, want)
		}
		if want.link != "" && !strings.Contains(p.Text(), root+"/"+want.link+" is a symbolic link") || want.link == "" && strings.Contains(p.Text(), "symbolic") {
			t.Errorf("%s: %s", pattern, p.Text())
		}
		if p.Next != nil {
			if got := call(t, s, p.Next.Tool, p.Next.Args); tools.Refused(got) || strings.Contains(got.Text(), "No files") {
				t.Errorf("%s: the next call gives %s", pattern, got.Text())
			}
		}
	}
}

func nextOf(t *testing.T, p *tools.Glob) string {
	t.Helper()
	_, next, _ := strings.Cut(mustEncode(t, p), `"next":`)
	return strings.TrimSuffix(next, "}")
}
