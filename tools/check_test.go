package tools_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// A workspace_root that can't be searched is one error at the start, and no riddle for the model.
func TestRootThatCantBeSearched(t *testing.T) {
	dir := toolstest.Tree(t)
	toolstest.Layout(t, dir, "ws/src/a = a\nws/priv/b = b\nws/file = c\nlink => ws\nout => /etc\ndata/")
	for _, c := range []struct{ root, allow, deny, want string }{
		{"ws", "", "", ""},
		{"link", "ws/**", "", ""},
		{"ws", "ws/src/**", "", ""},
		{"ws", "ws/**/*.go", "", ""},
		{"ws/src", "ws/src/**", "", ""},
		{"ws/", "ws/src/**", "", ""},
		{"nothing", "", "", "does not exist"},
		{"ws/file", "", "", "is no directory"},
		{"ws/file/x", "", "", "can't be looked at: not a directory"},
		{"ws/priv", "ws/src/**", "", "is closed to the tools by allow_paths"},
		{"ws", "ws/src", "ws/**", "is closed to the tools by deny_paths"},
		{"ws/priv", "", "ws/PRIV/**", "is closed to the tools by deny_paths"},
		{"out", "ws/**", "", "is closed to the tools by allow_paths"},
		{"/proc", "", "", "is on a kernel interface"},
	} {
		cfg := config.Default()
		fs := &cfg.Tools.FS
		at := func(path string) string {
			if path == "" || filepath.IsAbs(path) {
				return path
			}
			return dir + "/" + path
		}
		fs.WorkspaceRoot = at(c.root)
		if c.allow != "" {
			fs.AllowPaths = []string{at(c.allow)}
		}
		if c.deny != "" {
			fs.DenyPaths = []string{at(c.deny)}
		}
		s, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(t.TempDir(), "data")})
		if err == nil {
			s.Close()
		}
		for what, err := range map[string]error{"Open": err, "Check": tools.Check(cfg)} {
			p, ok := errors.AsType[*config.Problem](err)
			switch {
			case c.want == "" && err != nil, c.want != "" && !ok:
				t.Errorf("%s of %+v: %v", what, c, err)
			case ok && (p.Key != "tools.fs.workspace_root" || !strings.Contains(p.Why, c.want) || !strings.Contains(p.Why, fs.WorkspaceRoot) || p.Hint == ""):
				t.Errorf("%s of %+v: %v", what, c, err)
			}
		}
	}
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot = dir + "/data"
	if _, err := tools.Open(cfg, tools.Options{DataDir: t.TempDir(), Protect: []string{dir + "/data"}}); err == nil || !strings.Contains(err.Error(), "by hard") {
		t.Errorf("a protected root: %v", err)
	}
}

// One that goes later is named in the answers, and the call that was just refused is not recommended.
func TestRootThatGoes(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"Glob", "Grep"} {
		p := call(t, s, tool, map[string]any{"pattern": "x"})
		r, ok := p.(*tools.Refusal)
		if !ok || r.Kind() != tools.KindNotFound || r.FilePath != root || !strings.Contains(r.Message, root) || r.Next != nil && r.Next.Args["path"] == root {
			t.Errorf("%s answers %s", tool, mustEncode(t, p))
		}
	}
	write(t, root, "now a file")
	if p := call(t, s, "Glob", map[string]any{"pattern": "x"}); !strings.Contains(mustEncode(t, p), root) {
		t.Errorf("%s", mustEncode(t, p))
	}
}

// Rules that do nothing are a warning: they may be misspelt.
func TestIdleRulesAreWarned(t *testing.T) {
	dir := toolstest.Tree(t)
	toolstest.Layout(t, dir, "ws/src/a = a\nws/file = b\napp/[id]/a.tsx = a\nback{up}/a = a")
	for _, c := range []struct{ allow, deny, want string }{
		{"ws/**", "", ""},
		{"ws/**/*.md", "ws/secrets/**", ""},
		{"ws/*.md", "ws/secrets/**", "in Moltis it crosses /"},
		{"ws/file", "ws/.env*", ""},
		{"ws/src/new", "ws/src", ""},
		{"ws/{src,lib}/**", "", "lib"},
		{"wss/**", "", `/wss" does not exist`},
		{"ws/src", "", "is a directory, and nothing in it is allowed by that"},
		{"ws/none/new", "", `/ws/none" does not exist`},
		{"", "wss/secrets/**", `/wss" does not exist`},
		{"", "wss/k.pem", `/wss" does not exist`},
		{"app/[id]/**", "", `write "` + dir + `/app/\\[id\\]/**"`},
		{"**/[id]/**", "", `\\[id\\]/**"`},
		{"back{up}/**", "", `back\\{up\\}/**"`},
		{"{app,back}/[id]/**", "", `{app,back}/\\[id\\]/**"`},
		{`app/\[id\]/**`, "", ""},
		{"", "app/[id]/**", ""},
		{"", "back{up}/**", ""},
		{"", `ws\secrets\**`, "has backslashes before letters"},
		{"", "/nowhere-at-all/**", `does not exist`},
		{"", "/app/**", "write \"${ROOT}/app/**\""},
		{"only ws/**", "/app/**", "is about no path that is open; write \"${ROOT}/app/**\""},
		{"only ws/**", "/etc/**", "is about no path that is open"},
		{"only ws/**", "**/x", ""},
		{"only app/**", "app/[id]/**", ""},
	} {
		cfg := config.Default()
		if c.allow != "" {
			cfg.Tools.FS.AllowPaths = []string{dir + "/" + c.allow, "**/*.go"}
		}
		if only, ok := strings.CutPrefix(c.allow, "only "); ok {
			cfg.Tools.FS.AllowPaths = []string{dir + "/" + only}
		}
		if c.deny != "" {
			cfg.Tools.FS.DenyPaths = []string{"**/.env", dir + "/" + c.deny}
		}
		if strings.HasPrefix(c.deny, "/") || strings.HasPrefix(c.deny, "**") {
			cfg.Tools.FS.DenyPaths[1] = c.deny
			if cfg.Tools.FS.WorkspaceRoot = dir; c.allow == "" {
				cfg.Tools.FS.AllowPaths = []string{"/**"}
			}
		}
		w := tools.Warnings(cfg)
		if c.want == "" && len(w) > 0 || c.want != "" && (len(w) != 1 || !strings.Contains(w[0].Why+"; "+w[0].Hint, c.want)) {
			t.Errorf("%+v: %v", c, w)
		}
	}
}
