package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/policy"
	"moltisfs/internal/run"
	"moltisfs/tools"
)

// shells opens a suite whose agents have Bash, over a workspace with the files a and .env.
func shells(t *testing.T, change func(*config.Config)) (s *tools.Suite, ws string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	ws = filepath.Join(dir, "ws")
	must(t, errors.Join(os.Mkdir(ws, 0o755), os.WriteFile(ws+"/a", []byte("one\n"), 0o644), os.WriteFile(ws+"/.env", []byte("KEY=1\n"), 0o600), os.Mkdir(dir+"/data", 0o700)))
	if err := run.Probe(run.Options{Root: ws, Data: dir + "/data"}); err != nil {
		t.Skipf("SKIPPED: programs can't be run here: %v", err)
	}
	must(t, os.RemoveAll(dir+"/data"))
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths, cfg.Tools.FS.RequireApproval, cfg.Tools.FS.CheckpointBeforeMutation = ws, []string{ws + "/**"}, false, true
	cfg.Tools.FS.TrackReads, cfg.Tools.FS.MustReadBeforeWrite = true, true
	cfg.Tools.Run.Enabled = true
	if change != nil {
		change(&cfg)
	}
	s, err = tools.Open(cfg, tools.Options{DataDir: dir + "/data", Environ: os.Environ()})
	must(t, err)
	t.Cleanup(func() {
		must(t, s.Close())
		if left, _ := os.ReadDir(dir + "/data/runs"); len(left) > 0 {
			t.Errorf("runs are left behind: %v", left)
		}
	})
	return s, ws
}

// Bash says what its command has said and changed, and what it may not.
func TestBash(t *testing.T) {
	t.Parallel()
	s, ws := shells(t, nil)
	call := func(tool, args string) (json, text string) {
		t.Helper()
		p, err := s.Call(t.Context(), tools.Call{Session: "s1", Tool: tool, Args: []byte(args)})
		must(t, err)
		out, err := tools.Encode(p)
		must(t, err)
		return strings.ReplaceAll(string(out), ws, "WS"), strings.ReplaceAll(p.Text(), ws, "WS")
	}
	for _, c := range []struct{ tool, args, want, text string }{
		{"Bash", `{"command": "echo out; echo err >&2; exit 3"}`, `"stdout":"out\\n","stderr":"err\\n","status":"completed","exit_code":3}$`, `^out\nerr\n\[exit code 3\]$`},
		{"Bash", `{"command": "true", "description": "do nothing"}`, `"exit_code":0}$`, `no output`},
		{"Bash", `{"command": "mkdir -p d; cd d; echo $0 $#; exit 0"}`, `"stdout":"bash 0\\n".*"paths":\[{"file_path":"WS/d","change":"new"}\]`, `changed 1 path, \+0 -0 \(checkpoint ck-`},
		{"Bash", `{"command": "pwd"}`, `"stdout":"WS/d\\n"`, ``},
		{"Bash", `{"command": "rmdir ../d"}`, `"change":"deleted"`, ``},
		{"Bash", `{"command": "pwd; exec true"}`, `"stdout":"WS\\n".*"cwd_not_found":"WS/d"`, `began in the workspace, since "?WS/d"? is gone or not in it`},
		{"Bash", `{"command": "pwd"}`, `"stdout":"WS\\n"`, ``},
		{"Bash", `{"command": "trap - EXIT; mkfifo /tmp/.moltis-fs-left"}`, `"exit_code":0}$`, ``},
		{"Bash", `{"command": "pwd; trap - EXIT; ln -s /etc/passwd /tmp/.moltis-fs-left"}`, `"stdout":"WS\\n"`, ``},
		{"Bash", `{"command": "pwd; trap - EXIT; printf %s /etc > /tmp/.moltis-fs-left"}`, `"stdout":"WS\\n","stderr":"","status":"completed","exit_code":0}$`, ``},
		{"Bash", `{"command": "pwd"}`, `"stdout":"WS\\n".*"cwd_not_found":"/etc"`, ``},
		{"Bash", `{"command": "kill -9 $$"}`, `"exit_code":137`, ``},
		{"Bash", `{"command": "cat .env || ls -a"}`, `"stdout":"\.\\n\.\.\\na\\n"`, ``},
		{"Bash", `{"command": "echo KEY=2 > .env; echo two >> a"}`, `^{"kind":"path_denied".*"exit_code":0.*"not_changed":\[{"path":"WS/\.env","why":"it is closed: names like this are of the class secret`, `partial: true`},
		{"Bash", `{"command": "echo KEY=2 > .env; echo two >> a", "partial": true}`, `^{"kind":"bash".*"file_path":"WS/a".*"not_changed":\[{"path":"WS/\.env"`, `not changed: WS/\.env`},
		{"Read", `{"file_path": "WS/a"}`, `one\\n.*two`, ``},
		{"Bash", `{"command": "sed -i s/two/TWO/ a"}`, `"file_path":"WS/a","change":"changed","added":1,"removed":1`, `changed \+1 -1`},
		{"Edit", `{"file_path": "WS/a", "old_string": "two", "new_string": "three"}`, `"kind":"modified_since_read"`, ``},
		{"checkpoint_restore", `{"id": "undo"}`, `"kind":"checkpoint_restore"`, ``},
		{"Bash", `{"command": "cat a; yes | head -c 200000; echo end"}`, `"stdout":"one\\ntwo\\ny.*bytes left out …\]\\n.*end\\n".*"output_left_out":170012`, ``},
		{"Bash", `{"command": "printf '\\xff\\xfe'; printf '\\000'"}`, `"stdout":"` + "\ufffd" + `\\u0000"`, ``},
		{"Bash", `{"command": "touch /usr/x"}`, `"hints":\["outside of the workspace and /tmp nothing can be written`, ``},
		{"Bash", `{"command": "echo curl: Could not resolve host: x"}`, `network = true in \[tools.run\]`, ``},
		{"Bash", `{"command": "cat; read x; echo $?"}`, `"stdout":"1\\n"`, ``},
		{"Bash", `{"command": "sleep 100", "timeout": 1000}`, `^{"kind":"limit","error":"the command took longer than 1s and was ended; nothing that it changed was kept"`, `larger timeout`},
		{"Bash", `{"command": "echo if (", "timeout": 1000}`, `"stderr":"bash:.*syntax error`, ``},
		{"Bash", `{"command": "x", "timeout": 30}`, `"kind":"bad_request"`, ``},
		{"Bash", `{"command": "x", "timeout": 6000000}`, `over the limit of 10m0s`, `run it in the background`},
		{"Bash", `{"command": "x", "cwd": "/tmp"}`, `"kind":"bad_request"`, `Begin the command with cd`},
		{"Bash", `{"command": " \n"}`, `"kind":"bad_request".*command is empty`, ``},
		{"Bash", `{"command": 7, "nonsense": true}`, `"kind":"bad_request"`, ``},
		{"exec", `{"cmd": "echo $((6*7))", "dangerouslyDisableSandbox": false}`, `"stdout":"42\\n"`, ``},
		{"BashOutput", `{"bash_id": "bash_9"}`, `"kind":"not_found"`, `Start one by Bash`},
		{"BashOutput", `{"bash_id": "x", "filter": "("}`, `"kind":"bad_request"`, ``},
		{"KillShell", `{}`, `"kind":"bad_request"`, ``},
	} {
		got, text := call(c.tool, strings.ReplaceAll(c.args, "WS", ws))
		if !regexp.MustCompile(`(?s)`+c.want).MatchString(got) || !regexp.MustCompile(`(?s)`+c.text).MatchString(text) {
			t.Errorf("%s %s: %.2000s\n%.500s\nwant %s and %s", c.tool, c.args, got, text, c.want, c.text)
		}
	}
	if got, _ := os.ReadFile(ws + "/.env"); string(got) != "KEY=1\n" {
		t.Errorf("%q", got)
	}
}

// allAllowed is a chain of policies that allows everything.
type allAllowed struct{}

func (allAllowed) Decide(context.Context, policy.Input) (bool, error) { return true, nil }

// A command of a session whose calls run in a sandbox, or are asked of policies, is refused with the reason,
// and the answer says what to change.
func TestBashIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		through string
		change  func(*config.Config)
		want    string
	}{
		{"worker", func(*config.Config) {}, `run in a sandbox.*run them in the sandbox itself`},
		{"", func(cfg *config.Config) { cfg.Tools.FS.Policies = []string{"file:///all.rego"} }, `policies are set.*take policies out of \[tools.fs\]`},
	} {
		dir := t.TempDir() + "/ws"
		must(t, os.Mkdir(dir, 0o755))
		cfg := config.Default()
		cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.RequireApproval, cfg.Tools.Run.Enabled = dir, false, true
		c.change(&cfg)
		open := func(cfg config.Config, o tools.Options) (*tools.Suite, error) {
			e, err := tools.OpenEngine(cfg, o, func(string, []string) (policy.Chain, error) { return allAllowed{}, nil }, nil)
			if err != nil {
				return nil, err
			}
			return tools.Over(e), nil
		}
		if c.through != "" {
			open = func(cfg config.Config, o tools.Options) (*tools.Suite, error) { return openIn(t, c.through, cfg, o) }
		}
		s, err := open(cfg, tools.Options{DataDir: t.TempDir()})
		must(t, err)
		p := call(t, s, "Bash", map[string]any{"command": "touch " + dir + "/x"})
		if _, refused := p.(*tools.Refusal); !refused || !regexp.MustCompile(`(?s)`+c.want).MatchString(p.Text()) {
			t.Errorf("%s: %s, not %s", c.through, p.Text(), c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Error(left, err)
		}
		must(t, s.Close())
	}
}

// A command in the background goes on after its call. Its changes are made by the call that hears of its end.
func TestBashInTheBackground(t *testing.T) {
	t.Parallel()
	s, ws := shells(t, nil)
	call := func(session, tool string, args map[string]any) string {
		t.Helper()
		raw, err := json.Marshal(args)
		must(t, err)
		p, err := s.Call(t.Context(), tools.Call{Session: session, Tool: tool, Args: raw})
		must(t, err)
		out, err := tools.Encode(p)
		must(t, err)
		return string(out)
	}
	until := func(session, id, want string) (all string) {
		t.Helper()
		for begun := time.Now(); !strings.Contains(all, want); time.Sleep(5 * time.Millisecond) {
			if all += call(session, "BashOutput", map[string]any{"bash_id": id}); time.Since(begun) > 20*time.Second {
				t.Fatalf("%q does not come: %s", want, all)
			}
		}
		return all
	}
	if got := call("s1", "Bash", map[string]any{"command": "echo two >> a; echo begun; until test -e /tmp/go; do sleep 0.01; done", "run_in_background": true}); !strings.Contains(got, `"shell_id":"bash_1"`) || !strings.Contains(got, `"running"`) {
		t.Fatal(got)
	}
	until("s1", "bash_1", `begun\n`)
	if got := call("s2", "BashOutput", map[string]any{"bash_id": "bash_1"}); !strings.Contains(got, `"not_found"`) {
		t.Errorf("another session has it: %s", got)
	}
	if got, _ := os.ReadFile(ws + "/a"); string(got) != "one\n" {
		t.Errorf("%q", got)
	}
	if got := call("s1", "KillShell", map[string]any{"shell_id": "bash_1"}); !strings.Contains(got, `"status":"killed"`) || !strings.Contains(got, `"added":1`) {
		t.Error(got)
	}
	if got, _ := os.ReadFile(ws + "/a"); string(got) != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	if got := call("s1", "Bash", map[string]any{"command": "printf 'no\\nyes 1\\n'; echo three >> a; exit 4", "run_in_background": true}); !strings.Contains(got, `"bash_2"`) {
		t.Fatal(got)
	}
	if got := until("s1", "bash_2", `"exit_code":4`); !strings.Contains(got, `"added":1`) {
		t.Error(got)
	}
	if got := call("s1", "BashOutput", map[string]any{"bash_id": "bash_2"}); !strings.Contains(got, `"not_found"`) {
		t.Error(got)
	}
	// Others change the same file meanwhile.
	call("s1", "Bash", map[string]any{"command": "echo four >> a; echo on; sleep 1000", "run_in_background": true})
	until("s1", "bash_3", `on\n`)
	must(t, os.WriteFile(ws+"/a", []byte("others\n"), 0o644))
	if got := call("s1", "KillShell", map[string]any{"shell_id": "bash_3"}); !strings.Contains(got, `"kind":"conflict"`) {
		t.Error(got)
	}
	if got, _ := os.ReadFile(ws + "/a"); string(got) != "others\n" {
		t.Errorf("%q", got)
	}
	for range 16 {
		call("s1", "Bash", map[string]any{"command": "sleep 1000", "run_in_background": true})
	}
	if got := call("s1", "Bash", map[string]any{"command": "sleep 1000", "run_in_background": true}); !strings.Contains(got, `"kind":"limit"`) {
		t.Error(got)
	}
	if got := call("s2", "Bash", map[string]any{"command": "sleep 1000; echo x > never", "run_in_background": true}); !strings.Contains(got, `"running"`) {
		t.Error(got)
	}
	must(t, s.Dialect().(dialect.Sessions).EndSession(t.Context(), "", "s1", false))
	if got := call("s1", "BashOutput", map[string]any{"bash_id": "bash_4"}); !strings.Contains(got, `"not_found"`) {
		t.Errorf("its session has ended: %s", got)
	}
	if got := call("s2", "BashOutput", map[string]any{"bash_id": "bash_20"}); !strings.Contains(got, `"running"`) {
		t.Errorf("another session has ended: %s", got)
	}
} // and closing ends them all

// Calls run at once, a call that is cancelled ends its command, and the rules decide who has Bash at all.
func TestBashIsHeld(t *testing.T) {
	t.Parallel()
	s, ws := shells(t, nil)
	var all sync.WaitGroup
	for _, n := range []string{"1", "2", "3"} {
		all.Go(func() {
			p, err := s.Call(t.Context(), tools.Call{Session: n, Tool: "Bash", Args: []byte(`{"command": "echo ` + n + ` > f` + n + `"}`)})
			if err != nil || tools.Refused(p) {
				t.Error(err, p)
			}
		})
	}
	all.Wait()
	for _, n := range []string{"1", "2", "3"} {
		if got, _ := os.ReadFile(ws + "/f" + n); string(got) != n+"\n" {
			t.Errorf("f%s: %q", n, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.Call(ctx, tools.Call{Tool: "Bash", Args: []byte(`{"command": "echo x > x; sleep 1000"}`)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := os.Stat(ws + "/x"); err == nil {
		t.Error("a call that was cancelled has changed something")
	}
	for _, c := range []struct {
		name string
		set  func(*config.Config)
		has  bool
	}{
		{"off", func(c *config.Config) { c.Tools.Run.Enabled = false }, false},
		{"read only", func(c *config.Config) { c.Tools.FS.ReadOnly = true }, false},
		{"denied", func(c *config.Config) { c.Tools.Policy.Deny = []string{"Bash"} }, false},
		{"denied as exec", func(c *config.Config) { c.Tools.Policy.Deny = []string{"exec"} }, false},
		{"what it follows is denied", func(c *config.Config) { c.Tools.Policy.Deny = []string{"Write", "Edit", "MultiEdit"} }, false},
		{"not allowed", func(c *config.Config) { c.Tools.Policy.Allow = []string{"Read"} }, false},
		{"allowed as exec", func(c *config.Config) { c.Tools.Policy.Allow = []string{"exec"} }, true},
		{"profile", func(c *config.Config) { c.Tools.Policy.Profile = "coding" }, true},
		{"on", func(c *config.Config) {}, true},
	} {
		cfg := config.Default()
		cfg.Tools.Run.Enabled = true
		c.set(&cfg)
		defs, err := tools.DefinitionsUnder(cfg.Tools)
		must(t, err)
		n := 0
		for _, d := range defs {
			if strings.Contains(d.Name, "Bash") || d.Name == "KillShell" {
				n++
			}
		}
		if n != map[bool]int{true: 3}[c.has] {
			t.Errorf("%s: %d", c.name, n)
		}
	}
	for name, set := range map[string]func(*config.Config){
		"no workspace":      func(c *config.Config) { c.Tools.FS.WorkspaceRoot = "" },
		"write over ours":   func(c *config.Config) { c.Tools.Run.Write = []string{filepath.Dir(c.Tools.FS.WorkspaceRoot)} },
		"write in the tree": func(c *config.Config) { c.Tools.Run.Write = []string{c.Tools.FS.WorkspaceRoot} },
	} {
		s, _ := shells(t, set)
		p, err := s.Call(t.Context(), tools.Call{Tool: "Bash", Args: []byte(`{"command": "true"}`)})
		must(t, err)
		if p.Kind() != "unsupported" {
			t.Errorf("%s: %s", name, p.Text())
		}
	}
}
