package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// An attackTool is a tool that takes a path, and what makes it succeed on an ordinary file.
type attackTool struct {
	dialect, name, how string
	class              string // read, walk, change; leaf and stat are of a link itself, not of what it leads to; look is of the history
	args               func(w *attacked, path string) map[string]any
}

func (a attackTool) String() string { return a.dialect + " " + strings.TrimSpace(a.name+" "+a.how) }

// field makes arguments of a path and others.
func field(name string, more ...any) func(*attacked, string) map[string]any {
	return func(w *attacked, p string) map[string]any {
		m := map[string]any{name: p}
		for i := 0; i < len(more); i += 2 {
			v := more[i+1]
			if s, ok := v.(string); ok {
				v = strings.ReplaceAll(s, "R/", w.root+"/")
			}
			m[more[i].(string)] = v
		}
		return m
	}
}

// under is for Jettson, whose paths begin at the workspace.
func under(more ...any) func(*attacked, string) map[string]any {
	return func(w *attacked, p string) map[string]any {
		return field("path", more...)(w, strings.TrimPrefix(p, w.root+"/"))
	}
}

func listed(name string, more ...any) func(*attacked, string) map[string]any {
	return func(w *attacked, p string) map[string]any {
		m := field(name, more...)(w, p)
		m[name] = []any{p}
		return m
	}
}

// attackTools is every tool of every dialect that takes a path, in each of its places.
var attackTools = []attackTool{
	{"tools", "Read", "", "read", field("file_path")},
	{"tools", "Write", "", "change", field("file_path", "content", "EVIL\n")},
	{"tools", "Edit", "", "change", field("file_path", "old_string", "", "new_string", "EVIL\n")},
	{"tools", "Edit", "of text", "change", field("file_path", "old_string", "plain", "new_string", "EVIL")},
	{"tools", "MultiEdit", "", "change", field("file_path", "edits", []any{map[string]any{"old_string": "plain", "new_string": "EVIL"}})},
	{"tools", "NotebookEdit", "", "change", field("notebook_path", "edit_mode", "delete", "cell_id", "x")},
	{"tools", "Glob", "", "walk", field("path", "pattern", "**")},
	{"tools", "Grep", "", "walk", field("path", "pattern", ".", "output_mode", "content")},
	{"tools", "checkpoints_list", "", "look", field("file_path")},
	{"tools", "checkpoint_diff", "", "look", listed("paths", "id", "undo")},
	{"tools", "checkpoint_restore", "", "look", listed("paths", "id", "undo")},
	{"capability", "filesystem__read", "", "read", field("path")},
	{"capability", "filesystem__write", "", "change", field("path", "content", "EVIL\n")},
	{"capability", "filesystem__append", "", "change", field("path", "content", "EVIL\n")},
	{"capability", "filesystem__edit", "", "change", field("path", "pattern", "[a-z]+", "regex", true, "replace", "EVIL", "replace_all", true)},
	{"capability", "filesystem__copy", "to", "change", field("destination", "source", "R/sub/plain", "overwrite", true)},
	{"capability", "filesystem__copy", "from", "read", field("source", "destination", "R/scratch/b", "overwrite", true)},
	{"capability", "filesystem__move", "to", "leaf", field("destination", "source", "R/sub/plain", "overwrite", true)},
	{"capability", "filesystem__move", "from", "leaf", field("source", "destination", "R/scratch/c", "overwrite", true)},
	{"capability", "filesystem__delete", "", "leaf", field("path")},
	{"capability", "filesystem__restore", "", "look", field("path")},
	{"capability", "filesystem__list", "", "walk", field("path", "include_hidden", true)},
	{"capability", "filesystem__stat", "", "stat", field("path")},
	{"capability", "filesystem__search", "", "walk", field("path", "pattern", "**", "include_hidden", true)},
	{"capability", "filesystem__search_content", "", "walk", field("path", "pattern", "a", "include_hidden", true)},
	{"capability", "filesystem__watch", "", "walk", field("path")},
	{"jettson", "jettson_files_read", "", "read", under()},
	{"jettson", "jettson_files_write", "", "change", under("content", "EVIL\n")},
	{"jettson", "jettson_files_list", "", "walk", under()},
	{"jettson", "jettson_files_delete", "", "leaf", under()},
	{"acp", "fs/read_text_file", "", "read", field("path")},
	{"acp", "fs/write_text_file", "", "change", field("path", "content", "EVIL\n")},
}

// attackedServers are the programs under attack: one that serves MCP, and one between an editor and
// an agent, which have no files of their own.
type attackedServers struct {
	t        *testing.T
	mcp, acp *wire
	n        int
}

// An attackAnswer is how a call ended.
type attackAnswer struct {
	kind    string // ok, or how it was refused
	refused bool
	raw     []byte
	took    time.Duration
}

// attackedConfig is the configuration of the attacked programs; more is added to [tools.fs].
func (w *attacked) config(t *testing.T, name, more string) string {
	t.Helper()
	var deny []string
	for _, rule := range attackedRules {
		deny = append(deny, fmt.Sprintf("%q", w.root+"/"+rule))
	}
	return w.laid(t, name, fmt.Sprintf("[tools.fs]\nworkspace_root = %q\nallow_paths = [\"${ROOT}/**\"]\n"+
		"deny_paths = [%s]\nrequire_approval = false\ncheckpoint_before_mutation = true\nsearch_deadline = \"2s\"\n%s"+
		"[tools.fs.checkpoint]\n[tools.js]\nfilesystem = true\n", w.root, strings.Join(deny, ", "), more))
}

// laid writes a configuration.
func (w *attacked) laid(t *testing.T, name, text string) string {
	t.Helper()
	return laid(t, w.data(name), text+w.boxed)
}

// serve starts the attacked programs over a tree.
func (w *attacked) serve(t *testing.T) *attackedServers {
	t.Helper()
	s := &attackedServers{t: t}
	config, data := w.config(t, "c.toml", ""), w.data("d")
	_, s.mcp, _ = startWire(t, nothing, "mcp", "--dialect", "tools,capability,jettson", "--structured", "always", "--approve", "yes", "--config", config, "--data-dir", data)
	s.mcp.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "attacks", "version": "1"}})
	s.mcp.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})

	if w.boxed != "" {
		return s // an editor's files are in no sandbox
	}
	s.acp = acpBetween(t, false, "--approve", "never", "--config", config, "--data-dir", data).agent
	return s
}

// call makes one call; raw is its arguments as they are written.
func (s *attackedServers) call(tool attackTool, raw string) (a attackAnswer) {
	s.t.Helper()
	s.n++
	to, line := s.mcp, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, s.n, tool.name, raw)
	if tool.dialect == "acp" {
		to, line = s.acp, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"sessionId":"s",%s}`, s.n, tool.name, raw[1:])
	}
	start := time.Now()
	if _, err := to.out.Write([]byte(line + "\n")); err != nil {
		s.t.Fatalf("%s %.300s: %v", tool, raw, err)
	}
	for {
		m := to.nextWithin(time.Minute)
		if m == nil {
			s.t.Fatalf("%s %.300s: it has ended", tool, raw)
		}
		if id, ok := m["id"].(float64); ok && int(id) == s.n || m["id"] == nil && m["error"] != nil { // null: it was no message
			a.took = time.Since(start)
			delete(m, "id")
			a.raw, _ = json.Marshal(m)
			a.kind, a.refused = kindOf(m)
			return a
		}
	}
}

// kindOf is the word that an answer has for its outcome.
func kindOf(m map[string]any) (kind string, refused bool) {
	if e, ok := m["error"].(map[string]any); ok {
		if data, ok := e["data"].(map[string]any); ok && data["kind"] != nil {
			return fmt.Sprint(data["kind"]), true
		}
		return fmt.Sprint("error ", e["code"]), true
	}
	result, _ := m["result"].(map[string]any)
	refused, _ = result["isError"].(bool)
	if !refused {
		return "ok", false
	}
	body, _ := result["structuredContent"].(map[string]any)
	for _, name := range []string{"kind", "type"} {
		if is, ok := body[name].(string); ok {
			return is, true
		}
	}
	return "refused", true
}

// at is the arguments of a tool for a path, in JSON.
func (a attackTool) at(w *attacked, path string) string {
	b, err := json.Marshal(a.args(w, path))
	if err != nil {
		panic(err)
	}
	return string(b)
}
