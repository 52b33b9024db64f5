package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
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

// run is one command, with those two; it gives both outputs.
func (h *twoProjects) run(stdin string, args ...string) (out, errs string) {
	h.t.Helper()
	var o bytes.Buffer
	errs = h.runOn(strings.NewReader(stdin), &o, args...)
	return o.String(), errs
}

func (h *twoProjects) runOn(in io.Reader, out io.Writer, args ...string) (errs string) {
	h.t.Helper()
	var e bytes.Buffer
	args = append(args, "--config", filepath.Join(h.dir, "on.toml"), "--data-dir", filepath.Join(h.dir, "data"))
	if status := run(args, streams{in, out, &e, os.Getenv}); status > exitRefused {
		h.t.Errorf("%v: status %d: %v %s", args, status, out, e.String())
	}
	return e.String()
}

// inTurn is a client of MCP that sends a line when the one before it is answered: a server works at once on all that it has.
type inTurn struct {
	lines    []string
	rest     []byte // of the line that is being read
	sent     bool
	out      bytes.Buffer
	answered chan struct{}
}

func (c *inTurn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if c.sent {
			select {
			case <-c.answered:
			case <-time.After(time.Minute):
				return 0, io.ErrNoProgress
			}
		}
		if c.sent = true; len(c.lines) == 0 {
			return 0, io.EOF
		}
		c.rest, c.lines = []byte(c.lines[0]), c.lines[1:]
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *inTurn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"id":`)) {
		c.answered <- struct{}{}
	}
	return c.out.Write(p)
}

// serve is one run of the server in a project, with calls as "Tool {…}", one after the other. It
// gives their texts.
func (h *twoProjects) serve(project, session, meta string, calls ...string) (texts []string) {
	h.t.Helper()
	in := &inTurn{answered: make(chan struct{}, len(calls)+1)}
	in.lines = append(in.lines, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	args := []string{"mcp", "--root", filepath.Join(h.dir, project), "--structured", "never"}
	if session != "" {
		args = append(args, "--session", session)
	}
	for i, c := range calls { // a run of its own for each would be a session of its own
		tool, raw, _ := strings.Cut(strings.ReplaceAll(c, "$", h.dir), " ")
		in.lines = append(in.lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s}}}`+"\n", i+1, tool, raw, meta))
	}
	h.runOn(in, in, args...)
	out := in.out.String()
	answers := map[int]string{}
	for line := range strings.Lines(out) {
		var a struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(line), &a); err == nil && len(a.Result.Content) > 0 {
			answers[a.ID] = a.Result.Content[0].Text
		}
	}
	for i := range calls {
		texts = append(texts, answers[i+1])
	}
	return texts
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
	h.says(h.serve("a", "", "", undo)[0], "nothing to undo or redo in this session")
	h.says(h.serve("a", "", "", `checkpoint_restore {"since":"1h"}`)[0], "nothing had to be changed")
	h.says(h.serve("a", "", "", listAll)[0], `^ck-1H0 .*/a/f \[session run-`)
	h.says(h.serve("b", "", "", listAll)[0], `^No checkpoints found$`)
	h.says(h.serve("b", "", "", `checkpoint_restore {"id":"ck-1H0"}`)[0], "out of what this session may touch")
	h.holds("a/f", "two\n")
	h.says(h.serve("a", "", "", `checkpoint_restore {"id":"ck-1H0"}`)[0], `restored .*/a/f`)
	h.holds("a/f", "one\n")
}

// Undo names no change of another project, and takes back no older change in its place.
func TestTwoProjectsInOneSession(t *testing.T) {
	t.Parallel()
	h := inTwoProjects(t)
	const elsewhere = `the newest change lies where this session may not go today \(1 path\)(.|\n)*nothing was changed`
	h.serve("b", "both", "", editB)
	h.serve("a", "both", "", editA)
	if text := h.serve("b", "both", "", listAll)[0]; strings.Contains(text, "/a/f") {
		t.Errorf("it names %q", text)
	}
	refused := h.serve("b", "both", "", undo)[0]
	h.says(refused, elsewhere)
	if strings.Contains(refused, "/a") {
		t.Errorf("it names %q", refused)
	}
	_, errs := h.run("", "undo", "--root", filepath.Join(h.dir, "b"), "--yes")
	h.says(errs, elsewhere)
	h.holds("b/f", "two\n")
	h.says(h.serve("a", "both", "", undo)[0], `^restored .*/a/f`)
	h.says(h.serve("b", "both", "", redo)[0], elsewhere)
	h.says(h.serve("a", "both", "", redo)[0], `^restored .*/a/f`)
	h.says(h.serve("b", "both", "", `checkpoint_restore {"id":"undo","on_conflict":"skip"}`)[0], `Nothing of it was taken back`)
	h.says(h.serve("b", "both", "", undo)[0], `^restored .*/b/f`)
	h.holds("b/f", "one\n")
	h.holds("a/f", "two\n")
	h.says(h.serve("a", "both", "", undo)[0], "nothing to undo")
	h.says(h.serve("a", "both", "", `checkpoint_restore {"since":"1h"}`)[0], `restored .*/a/f(.|\n)*1 path left alone and not named: out of reach`)
}

// A person at the terminal means the session that changed something there last.
func TestUndoAtTheTerminalIsOfTheNewestSession(t *testing.T) {
	t.Parallel()
	h := inTwoProjects(t)
	h.serve("b", "", "", editB)
	h.serve("a", "", "", editA)
	_, errs := h.run("", "undo", "--root", filepath.Join(h.dir, "b"))
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
	h.says(h.serve("b", "", `"vscode.conversationId":"v"`, undo)[0], "nothing to undo")
	h.says(h.serve("b", "", meta, undo)[0], `^restored .*/b/f`)
	out, _ := h.run("", "checkpoint", "list", "--session", "c-1", "--turn", "t-1")
	h.says(out, "^ck-")
}
