package capability

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

// planted are places that something else reads or runs later: the rows E01 to E09 and E12 of the
// catalogue, with the rule that a person writes for each. "": it is our own file, and needs none.
var planted = []struct{ path, rule string }{
	{".git/hooks/pre-commit", "**/.git/**"},
	{".git/config", "**/.git/**"},
	{"sub/.git", "**/.git"},
	{".gitmodules", "**/.gitmodules"},
	{"home/.bashrc", "**/.bashrc"},
	{".envrc", "**/.envrc"},
	{"home/.ssh/authorized_keys", "**/.ssh/**"},
	{"server.pem", "**/*.pem"},
	{".env.local", "**/.env.*"},
	{".claude/settings.json", "**/.claude/**"},
	{"sub/CLAUDE.md", "**/CLAUDE.md"},
	{".mcp.json", "**/.mcp.json"},
	{".github/workflows/x.yml", "**/.github/workflows/**"},
	{".husky/pre-push", "**/.husky/**"},
	{"desktop.lnk", "**/*.lnk"},
	{"moltis.toml", ""},
}

// plantings are the ways to put something there, to change it or to take it away; T is the place,
// A a file of one's own, TRASHED what lay there before the rules were written. there: T has to be.
var plantings = []struct {
	tool, args string
	there      bool
}{
	{"filesystem.write", `{"path":"T","content":"EVIL"}`, false},
	{"filesystem.write", `{"path":"T","content":"EVIL"}`, true},
	{"filesystem.append", `{"path":"T","content":"EVIL"}`, true},
	{"filesystem.edit", `{"path":"T","pattern":"GOOD","replace":"EVIL","replace_all":true}`, true},
	{"filesystem.copy", `{"source":"A","destination":"T"}`, false},
	{"filesystem.copy", `{"source":"A","destination":"T","overwrite":true}`, true},
	{"filesystem.move", `{"source":"A","destination":"T"}`, false},
	{"filesystem.move", `{"source":"A","destination":"T","overwrite":true}`, true},
	{"filesystem.move", `{"source":"T","destination":"B"}`, true},
	{"filesystem.delete", `{"path":"T"}`, true},
	{"filesystem.restore", `{"path":"TRASHED"}`, false},
}

// No capability plants anything where a rule of today says no, whether or not something is there
// yet. The control is an engine without those rules, which does all of it.
func TestPersistence(t *testing.T) {
	t.Parallel()
	relaxed := func(c *config.Config, h *engine.Host) { // the rules are tried, not the classes
		relaxed(c, h)
		c.Tools.FS.ProtectSecret, c.Tools.FS.ProtectExec = "allow", "allow"
	}
	first := open(t, relaxed)
	over := func(change func(*config.Config, *engine.Host)) room {
		r := open(t, func(c *config.Config, h *engine.Host) {
			relaxed(c, h)
			c.Tools.FS.AllowPaths, c.Tools.FS.WorkspaceRoot = []string{first.root + "/**"}, first.root
			if h.DataDir = first.data; change != nil {
				change(c, h)
			}
		})
		r.root = first.root
		return r
	}
	trash := func(name string) string {
		first.write(t, name, "GOOD")
		p, _ := first.call(t, "filesystem.delete", `{"path":"R/`+name+`"}`)["trash_path"].(string)
		if p == "" {
			t.Fatalf("%s is not in the trash", name)
		}
		return p
	}
	trashed := map[string]string{}
	for _, p := range planted {
		trashed[p.path] = trash(p.path)
	}
	guarded := over(func(c *config.Config, h *engine.Host) {
		for _, p := range planted {
			if p.rule != "" {
				c.Tools.FS.DenyPaths = append(c.Tools.FS.DenyPaths, p.rule)
			}
		}
		h.Protect = append(h.Protect, first.root+"/moltis.toml")
	})
	open := over(nil)
	changes := func(r room, path, tool, args string, there bool) (changed bool, got map[string]any) {
		a, b := r.write(t, "a", "EVIL"), filepath.Join(r.root, "b")
		at := r.write(t, path, "GOOD")
		if !there {
			must(t, os.Remove(at))
		}
		os.Remove(b) //nolint:errcheck // it may not be there
		before := holds(at, a, b)
		args = strings.NewReplacer(`"T"`, `"R/`+path+`"`, `"A"`, `"R/a"`, `"B"`, `"R/b"`,
			"TRASHED", trashed[path]).Replace(args)
		got = r.call(t, tool, args)
		return !maps.Equal(holds(at, a, b), before), got
	}
	for i, p := range planted {
		for _, w := range plantings {
			if changed, got := changes(guarded, p.path, w.tool, w.args, w.there); changed || got["type"] != "PathOutOfScope" {
				t.Errorf("%s %s: it changed: %v: %v", w.tool, p.path, changed, got)
			}
			if i == 0 { // each way once
				if changed, got := changes(open, p.path, w.tool, w.args, w.there); !changed {
					t.Errorf("the control: %s %s: %v", w.tool, p.path, got)
				}
			}
		}
	}
}

// A question about a copy says that it will be executable: the row E13.
func TestExecutablesAreTold(t *testing.T) {
	t.Parallel()
	ask := &asked{}
	r := open(t, func(c *config.Config, h *engine.Host) { c.Tools.FS.RequireApproval, h.Approver = true, ask })
	for name, mode := range map[string]os.FileMode{"run": 0o755, "plain": 0o644} {
		must(t, os.Chmod(r.write(t, name, "x"), mode))
		ask.questions = nil
		r.call(t, "filesystem.copy", `{"source":"R/`+name+`","destination":"R/new `+name+`"}`)
		told := len(ask.questions) == 1 && slices.ContainsFunc(ask.questions[0].Warnings,
			func(w string) bool { return strings.Contains(w, "executable") })
		if told != (name == "run") {
			t.Errorf("%s: %+v", name, ask.questions)
		}
	}
}

func relaxed(c *config.Config, h *engine.Host) {
	h.Approver = decides(approval.Approved)
}

// holds is what those of the files hold that are there.
func holds(names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil {
			out[name] = string(b)
		}
	}
	return out
}
