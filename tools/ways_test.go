package tools_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// Under rules with wildcards a directory that holds nothing allowed answers as if it were not there, whatever is asked of it, and
// its neighbour that does can be searched.
func TestNoExistenceOracleOnTheWay(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) {
		fs.AllowPaths = []string{fs.WorkspaceRoot + "/**/*.go", fs.WorkspaceRoot + "/.gitignore"}
		fs.DenyPaths = []string{fs.WorkspaceRoot + "/shut/**"}
	}, tools.Options{})
	toolstest.Layout(t, root, strings.Join([]string{
		"pkg/a.go = needle", "pkg/notes.txt = needle", "pkg/deep/b.go = needle", "main.go = needle", "TODO = needle",
		"hr/salaries.txt = needle", "hr/deep/more.txt = needle", "empty/", "vcs/.git/x.go = needle", "shut/c.go = needle", "out/o.txt = o",
		"afile = needle",
		".gitignore = " + strings.Join([]string{"hr/", "missing/", "empty/"}, "\n"),
	}, "\n"))
	// The calls, with NAME for the directory. What is allowed in NAME is not asked for: to do that is to ask whether NAME is there.
	calls := []struct{ tool, args string }{
		{"Glob", `{"pattern":"**","path":"$ROOT/NAME"}`},
		{"Glob", `{"pattern":"**/*.txt","path":"$ROOT/NAME"}`},
		{"Glob", `{"pattern":"NAME/**"}`},
		{"Glob", `{"pattern":"NAME/*"}`},
		{"Glob", `{"pattern":"NAME"}`},
		{"Glob", `{"pattern":"NAME/deep/**"}`},
		{"Glob", `{"pattern":"$ROOT/NAME/*.txt"}`},
		{"Glob", `{"pattern":"**","path":"$ROOT/NAME/deep"}`},
		{"Grep", `{"pattern":"needle","path":"$ROOT/NAME"}`},
		{"Grep", `{"pattern":"needle","glob":"NAME/**"}`},
		{"Grep", `{"pattern":"needle","glob":"!NAME"}`},
		{"Grep", `{"pattern":"needle","path":"$ROOT/NAME/salaries.txt"}`},
		{"Read", `{"file_path":"$ROOT/NAME"}`},
		{"Read", `{"file_path":"$ROOT/NAME/salaries.txt"}`},
		{"Read", `{"file_path":"$ROOT/NAME/../main.go"}`},
		{"Write", `{"file_path":"$ROOT/NAME","content":"x","dry_run":true}`},
		{"Write", `{"file_path":"$ROOT/NAME/x.txt","content":"x","dry_run":true}`},
		{"Edit", `{"file_path":"$ROOT/NAME/salaries.txt","old_string":"a","new_string":"b"}`},
	}
	ask := func(tool, args, name string) string {
		t.Helper()
		var in map[string]any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(strings.ReplaceAll(args, "$ROOT", root), "NAME", name)), &in); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(mustEncode(t, call(t, s, tool, in)), name, "NAME")
	}
	for _, c := range calls {
		want := ask(c.tool, c.args, "missing")
		for _, name := range []string{"hr", "empty", "vcs", "shut", "afile"} {
			if got := ask(c.tool, c.args, name); got != want {
				t.Errorf("%s %s for %s answers\n%s, for a missing one\n%s", c.tool, c.args, name, got, want)
			}
		}
	}
	// Read of an allowed name in them: the same, and no name beside it.
	for _, name := range []string{"hr", "empty"} {
		if got, want := ask("Read", `{"file_path":"$ROOT/NAME/x.go"}`, name), ask("Read", `{"file_path":"$ROOT/NAME/x.go"}`, "missing"); got != want {
			t.Errorf("Read %s/x.go answers\n%s, in a missing directory\n%s", name, got, want)
		}
	}

	for _, c := range []struct{ tool, args, want string }{
		{"Glob", `{"pattern":"**"}`, `"total":4,`}, // two in pkg, main.go, .gitignore
		{"Glob", `{"pattern":"**","path":"$ROOT/pkg"}`, `"total":2,`},
		{"Glob", `{"pattern":"*.md","path":"$ROOT/pkg"}`, `"total":0,"skipped":{"denied":{"count":2,`},
		{"Grep", `{"pattern":"needle","path":"$ROOT/pkg/deep"}`, `"files":["$ROOT/pkg/deep/b.go"]`},
		{"Read", `{"file_path":"$ROOT/pkg/aa.go"}`, `Did you mean $ROOT/pkg/a.go?`},
		{"Read", `{"file_path":"$ROOT/pkg"}`, `"kind":"path_denied"`},
		{"Read", `{"file_path":"$ROOT"}`, `"entries":[".gitignore","main.go"]`},
	} {
		got := ask(c.tool, c.args, "NAME")
		if got = strings.ReplaceAll(got, root, "$ROOT"); !strings.Contains(got, c.want) || strings.Contains(got, "notes") || strings.Contains(got, "hr") {
			t.Errorf("%s %s answers %s, without %s", c.tool, c.args, got, c.want)
		}
	}
}

// With an allow list narrower than the root nothing but what is allowed is ever named, read or matched, by whatever road.
func TestNarrowAllowList(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) {
		fs.AllowPaths = []string{fs.WorkspaceRoot + "/src/**", fs.WorkspaceRoot + "/*.md", fs.WorkspaceRoot + "/ways/**/in/*.go", fs.WorkspaceRoot + "/later/**"}
	}, tools.Options{})
	toolstest.Layout(t, root, strings.Join([]string{
		"src/main.go = SECRETLESS", "src/deep/er/x.txt = SECRETLESS", "a.md = SECRETLESS", "ways/a/b/in/y.go = SECRETLESS", "ways/in/z.go = SECRETLESS", "elsewhere/e.go = SECRETLESS",
		"other/o.go = SECRET", "SRC2/s.go = SECRET", "b.MD = SECRET", "ways/a/b/out/y.go = SECRET", "ways/a/b/in/deep/y.go = SECRET", ".env = SECRET",
		"src/out => ../other", "dir.md/inside.txt = SECRET", "ways/link => ../other", "later => elsewhere", // the rule was made for the name, before it was a link
	}, "\n"))
	allowed := []string{"src/main.go", "src/deep/er/x.txt", "a.md", "ways/a/b/in/y.go", "ways/in/z.go"}
	for _, c := range []struct {
		path string
		want []string
	}{
		{root, allowed},
		{root + "/src", allowed[:2]},
		{root + "/ways", allowed[3:]},
		{root + "/ways/a", allowed[3:4]},
		{root + "/ways/a/b/in", allowed[3:4]},
		{filepath.Dir(root), allowed},
	} {
		if c.path == filepath.Dir(root) && *sandboxed == "bwrap" {
			continue // the root is a mount there, which no walk from above goes into
		}
		for _, p := range []tools.Payload{
			call(t, s, "Glob", map[string]any{"pattern": "**", "path": c.path}),
			call(t, s, "Grep", map[string]any{"pattern": "SECRET", "path": c.path}),
			call(t, s, "Grep", map[string]any{"pattern": "SECRET", "path": c.path, "output_mode": "content", "-C": 3}),
		} {
			got := mustEncode(t, p)
			for _, name := range allowed {
				if want := strings.Contains(strings.Join(c.want, " "), name); strings.Contains(got, root+"/"+name) != want {
					t.Errorf("%s: %s is named: %v in %s", c.path, name, !want, got)
				}
			}
			for _, no := range []string{"other", "SRC2", "b.MD", "/out", ".env", "inside", "in/deep", "elsewhere", `SECRET"`} {
				if strings.Contains(got, no) {
					t.Errorf("%s: %q in %s", c.path, no, got)
				}
			}
		}
	}
	for _, dir := range []string{"/other", "/SRC", "/Src", "/src2", "/ways/a/b/out", "/ways/a/b/in/deep", "/src/out", "/ways/link", "/dir.md/x", "/elsewhere", "/later"} {
		for _, tool := range []string{"Glob", "Grep"} {
			if p := call(t, s, tool, map[string]any{"pattern": "**", "path": root + dir}); p.Kind() != tools.KindPathDenied && !(tool == "Grep" && p.Kind() == tools.KindBadRequest) {
				t.Errorf("%s %s answers %s", tool, dir, mustEncode(t, p))
			}
		}
	}
}
