package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"

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
	must(t, os.Remove(root))
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

// TestOurNames: a file of ours is off limits under each name that leads to it, so that no link on the way can be put elsewhere.
func TestOurNames(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	ws, far := dir+"/ws", dir+"/far"
	conf := write(t, far+"/etc/conf.toml", "")
	must(t, os.MkdirAll(ws+"/sub", 0o755))
	must(t, os.Mkdir(far+"/data", 0o700))
	for _, l := range [][2]string{
		{conf, ws + "/hop.toml"}, {"hop.toml", ws + "/conf.toml"}, // a chain
		{far + "/etc", ws + "/etc"}, {"etc", ws + "/way"}, // of directories
		{far + "/data", ws + "/data"},
	} {
		must(t, os.Symlink(l[0], l[1]))
	}
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval = false
	s, err := tools.Open(cfg, tools.Options{DataDir: ws + "/data", Protect: []string{ws + "/conf.toml", ws + "/way/conf.toml"}})
	must(t, err)
	defer s.Close()
	for _, p := range []string{
		"ws/conf.toml", "ws/hop.toml", "far/etc/conf.toml", "ws/CONF.toml", "ws/sub/../conf.toml",
		"ws/way", "ws/etc", "ws/way/conf.toml", "ws/etc/conf.toml", "ws/data", "ws/data/audit", "far/data/new",
	} {
		p := call(t, s, "Write", map[string]any{"file_path": dir + "/" + p, "content": "theirs"})
		if r, ok := p.(*tools.Refusal); !ok || r.Reason != tools.KindPathDenied {
			t.Errorf("%s", mustEncode(t, p))
		}
	}
	for _, p := range []string{"ws/sub/a.txt", "far/etc/other.toml", "ws/etc/another.toml"} { // what is beside is not ours
		does(t, s, "Write", map[string]any{"file_path": dir + "/" + p, "content": "x"})
	}
}

func TestNoDataDir(t *testing.T) {
	_, err := tools.Open(config.Default(), tools.Options{})
	if e, ok := errors.AsType[*tools.DataDirError](err); !ok || e.Hint() == "" {
		t.Errorf("%v", err)
	}
}

// TestReadOnlyByNames: which tools are left by which lists. NotebookEdit goes with Edit, checkpoint_restore with the last of Write, Edit and MultiEdit, unless
// they are allowed by their very names.
func TestReadOnlyByNames(t *testing.T) {
	var names, quiet []string
	for _, tool := range byDefault(t) {
		if names = append(names, tool.Name); tool.ReadOnly {
			quiet = append(quiet, tool.Name)
		}
	}
	all, reads := strings.Join(names, " "), strings.Join(quiet, " ")
	without := func(drop string) string { // all but those
		return strings.Join(slices.DeleteFunc(slices.Clone(names), func(n string) bool {
			return slices.Contains(strings.Fields(drop), n)
		}), " ")
	}
	for _, c := range []struct{ allow, deny, want string }{
		{"", "", all},
		{"", "Write Edit MultiEdit", reads},
		{"", "Write Edit* Multi*", reads},
		{"", "Write Multi* checkpoint*", without("Write MultiEdit checkpoints_list checkpoint_diff checkpoint_restore")},
		{"", "Write Edit MultiEdit NotebookEdit checkpoint_restore", reads},
		{"", "Edit", without("Edit NotebookEdit")},
		{"", "Write MultiEdit", without("Write MultiEdit")},
		{"Read NotebookEdit", "", "Read NotebookEdit"},
		{"Read Notebook*", "", "Read"},
		{"Read checkpoint_*", "", "Read checkpoint_diff"},
		{"Read checkpoint_restore", "", "Read checkpoint_restore"},
		{"* NotebookEdit", "Write Edit MultiEdit", without("Write Edit MultiEdit checkpoint_restore")},
		{"* checkpoint_restore", "Write Edit MultiEdit", reads + " checkpoint_restore"},
		{"NotebookEdit Read", "Edit NotebookEdit", "Read"},
		{"checkpoint_restore Read", "check*", "Read"},
	} {
		cfg := config.Default()
		cfg.Tools.Policy = config.Policy{Allow: strings.Fields(c.allow), Deny: strings.Fields(c.deny)}
		s, err := tools.Open(cfg, tools.Options{DataDir: t.TempDir()})
		must(t, err)
		t.Cleanup(func() { s.Close() })
		var listed []string
		for _, d := range s.Definitions() {
			listed = append(listed, d.Name)
		}
		if got := strings.Join(listed, " "); got != c.want {
			t.Errorf("allow %q deny %q leaves\n%s, not\n%s", c.allow, c.deny, got, c.want)
		}
		for _, name := range strings.Fields(all) { // and a call agrees with the list
			_, err := s.Call(context.Background(), tools.Call{Tool: name, Args: []byte(`{}`)})
			unknown, no := errors.AsType[*tools.UnknownToolError](err)
			if no == slices.Contains(listed, name) || err != nil && !no {
				t.Errorf("allow %q deny %q: calling %s answers %v", c.allow, c.deny, name, err)
			}
			if no && unknown.Nearest != "" && !slices.Contains(listed, unknown.Nearest) {
				t.Errorf("allow %q deny %q: calling %s names %s, which is not there", c.allow, c.deny, name, unknown.Nearest)
			}
		}
	}
}

// Lists that leave nothing to call are a mistake.
func TestNoToolLeft(t *testing.T) {
	for _, c := range []struct{ allow, deny, key string }{
		{"exec browser", "", "tools.policy.allow"},
		{"", "*", "tools.policy.deny"},
		{"Read exec", "Read", "tools.policy.deny"},
		{"Notebook*", "", "tools.policy.allow"},
	} {
		cfg := config.Default()
		cfg.Tools.Policy = config.Policy{Allow: strings.Fields(c.allow), Deny: strings.Fields(c.deny)}
		_, err := tools.Open(cfg, tools.Options{DataDir: t.TempDir()})
		if p, ok := errors.AsType[*config.Problem](err); !ok || p.Key != c.key || !strings.Contains(p.Why, "no tool at all") {
			t.Errorf("allow %q deny %q: %v", c.allow, c.deny, err)
		}
	}
}

// byDefault are the tools of a configuration that says nothing.
func byDefault(t testing.TB) []tools.Definition {
	t.Helper()
	defs, err := tools.DefinitionsUnder(config.Default().Tools)
	must(t, err)
	return defs
}

func TestDefinitionsAreClosedAndSmall(t *testing.T) {
	type listed struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	var all []listed
	for _, d := range byDefault(t) {
		var in jsonschema.Schema
		if err := json.Unmarshal(d.InputSchema, &in); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if _, err := in.Resolve(nil); err != nil {
			t.Errorf("%s: the schema does not resolve: %v", d.Name, err)
		}
		if !strings.Contains(string(d.InputSchema), `"additionalProperties":false`) {
			t.Errorf("%s: the object is open", d.Name)
		}
		all = append(all, listed{d.Name, d.Description, d.InputSchema})
	}
	whole, err := json.Marshal(all)
	must(t, err)
	// Words cost tokens, so what a model is sent of the whole default suite stays under 8 KB of JSON. Output
	// schemas and annotations stay with the client.
	if len(whole) >= 8<<10 {
		t.Errorf("the definitions have %d bytes of JSON", len(whole))
		for _, one := range all {
			raw, _ := json.Marshal(one)
			t.Errorf("%5d %s", len(raw), one.Name)
		}
	}
	t.Logf("%d bytes for %d tools", len(whole), len(all))
}

// Every kind of answer has a golden call.
func TestKindsOfAnswers(t *testing.T) {
	kinds := map[string]bool{}
	err := filepath.WalkDir("../testdata/calls", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".txtar") {
			return err
		}
		ar, err := txtar.ParseFile(path)
		if err != nil {
			return err
		}
		for _, f := range ar.Files {
			dec := json.NewDecoder(bytes.NewReader(f.Data))
			for f.Name == "want" && dec.More() {
				var p struct{ Kind string }
				if err := dec.Decode(&p); err != nil {
					t.Errorf("%s: %v", path, err)
					break
				}
				kinds[p.Kind] = true
			}
		}
		return nil
	})
	must(t, err)
	for _, kind := range strings.Fields(`text image pdf notebook binary write edit multi_edit notebook_edit glob grep
		checkpoints checkpoint_diff checkpoint_restore not_found permission_denied too_large not_regular_file path_denied bad_request symlink_refused must_read_before_write
		modified_since_read no_match not_unique conflict approval_denied approval_timeout unsupported`) {
		if !kinds[kind] {
			t.Errorf("no golden call answers %q", kind)
		}
	}
}
