package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// twoProjects is two projects and one data directory.
type twoProjects struct {
	t   *testing.T
	dir string
}

func inTwoProjects(t *testing.T) *twoProjects {
	dir := realDir(t)
	h := &twoProjects{t, dir}
	for name, text := range map[string]string{"on.toml": "[tools.fs]\nrequire_approval = false\n" +
		"checkpoint_before_mutation = true\n", "a/f": "one\n", "a/g": "one\n", "b/f": "one\n"} {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return h
}

// run is one command on this data, and gives both its outputs.
func (h *twoProjects) run(stdin string, args ...string) (out, errs string) {
	h.t.Helper()
	status, out, errs := runWith(h.t, stdin, append(args, "--config", filepath.Join(h.dir, "on.toml"), "--data-dir", filepath.Join(h.dir, "data"))...)
	if status > exitRefused {
		h.t.Errorf("%v: status %d: %s %s", args, status, out, errs)
	}
	return out, errs
}

// serve is one run of the server in a project for a call as "Tool {…}", whose text it gives. $ is the directory of both projects.
func (h *twoProjects) serve(project, session, meta, call string) string {
	h.t.Helper()
	args := []string{"mcp", "--root", filepath.Join(h.dir, project), "--structured", "never"}
	if session != "" {
		args = append(args, "--session", session)
	}
	if meta != "" {
		meta += ","
	}
	tool, raw, _ := strings.Cut(strings.ReplaceAll(call, "$", h.dir), " ")
	out, _ := h.run(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", tool, raw, meta), args...)
	var a struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil || len(a.Result.Content) == 0 {
		h.t.Fatalf("%s: %s", call, out)
	}
	return a.Result.Content[0].Text
}

func (h *twoProjects) holds(file, want string) {
	h.t.Helper()
	if got, err := os.ReadFile(filepath.Join(h.dir, file)); string(got) != want {
		h.t.Errorf("%s holds %q, %v; not %q", file, got, err, want)
	}
}

func (h *twoProjects) says(text, pattern string) {
	h.t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		h.t.Errorf("it says %q, not %s", text, pattern)
	}
}

const (
	editA   = `Edit {"file_path":"$/a/f","old_string":"one","new_string":"two"}`
	editB   = `Edit {"file_path":"$/b/f","old_string":"one","new_string":"two"}`
	undo    = `checkpoint_restore {"id":"undo"}`
	redo    = `checkpoint_restore {"id":"redo"}`
	listAll = `checkpoints_list {}`
)

// A session is one run of the server. Another run lists what it did, and restores it by its id; undo
// is about its own.
func TestASessionIsARun(t *testing.T) {
	t.Parallel()
	h := inTwoProjects(t)
	h.serve("a", "", "", editA)
	out, _ := h.run("", "checkpoint", "list")
	h.says(out, `(?m)^ck-1H0 .* run-\d+-\d+-[a-z0-9]+ `)
	h.says(h.serve("a", "", "", undo), "nothing to undo or redo in this session")
	h.says(h.serve("a", "", "", `checkpoint_restore {"since":"1h"}`), "nothing had to be changed")
	h.says(h.serve("a", "", "", listAll), `^ck-1H0 .*/a/f \[session run-`)
	h.says(h.serve("b", "", "", listAll), `^No checkpoints found$`)
	h.says(h.serve("b", "", "", `checkpoint_restore {"id":"ck-1H0"}`), "out of what this session may touch")
	h.holds("a/f", "two\n")
	h.says(h.serve("a", "", "", `checkpoint_restore {"id":"ck-1H0"}`), `restored .*/a/f`)
	h.holds("a/f", "one\n")
}

// Undo names no change of another project, and takes back no older change in its place.
func TestTwoProjectsInOneSession(t *testing.T) {
	t.Parallel()
	h := inTwoProjects(t)
	const elsewhere = `the newest change lies where this session may not go today \(1 path\)(.|\n)*nothing was changed`
	h.serve("b", "both", "", editB)
	h.serve("a", "both", "", editA)
	if text := h.serve("b", "both", "", listAll); strings.Contains(text, "/a/f") {
		t.Errorf("it names %q", text)
	}
	refused := h.serve("b", "both", "", undo)
	h.says(refused, elsewhere)
	if strings.Contains(refused, "/a") {
		t.Errorf("it names %q", refused)
	}
	_, errs := h.run("", "checkpoint", "undo", "--root", filepath.Join(h.dir, "b"), "--yes")
	h.says(errs, elsewhere)
	h.holds("b/f", "two\n")
	h.says(h.serve("a", "both", "", undo), `^restored .*/a/f`)
	h.says(h.serve("b", "both", "", redo), elsewhere)
	h.says(h.serve("a", "both", "", redo), `^restored .*/a/f`)
	h.says(h.serve("b", "both", "", `checkpoint_restore {"id":"undo","on_conflict":"skip"}`), `Nothing of it was taken back`)
	h.says(h.serve("b", "both", "", undo), `^restored .*/b/f`)
	h.holds("b/f", "one\n")
	h.holds("a/f", "two\n")
	h.says(h.serve("a", "both", "", undo), "nothing to undo")
	h.says(h.serve("a", "both", "", `checkpoint_restore {"since":"1h"}`), `restored .*/a/f(.|\n)*1 path left alone and not named: out of reach`)
}

// A person at the terminal means the session that changed something there last.
func TestUndoAtTheTerminalIsOfTheNewestSession(t *testing.T) {
	t.Parallel()
	h := inTwoProjects(t)
	h.serve("b", "", "", editB)
	h.serve("a", "", "", editA)
	_, errs := h.run("", "checkpoint", "undo", "--root", filepath.Join(h.dir, "b"))
	h.says(errs, `^moltis-fs: of session run-\S+, which changed something last\n$`)
	h.holds("b/f", "one\n")
	h.holds("a/f", "two\n")
}

// A conversation that the client tells of is one over several runs.
func TestAConversationIsASession(t *testing.T) {
	t.Parallel()
	h := inTwoProjects(t)
	const meta = `"x-codex-turn-metadata":{"session_id":"c-1","turn_id":"t-1"}`
	h.serve("b", "", meta, editB)
	h.says(h.serve("b", "", `"vscode.conversationId":"v"`, undo), "nothing to undo")
	h.says(h.serve("b", "", meta, undo), `^restored .*/b/f`)
	out, _ := h.run("", "checkpoint", "list", "--session", "c-1", "--turn", "t-1")
	h.says(out, "^ck-")
}
