package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

var whole = flag.Bool("whole", false, "run the tests over the Go source tree on all of it, not on a few packages")

// goTree is a copy of the Go source tree, with a directory beside it that the configuration denies, and that configuration.
func goTree(t *testing.T) (root, config string) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	src := filepath.Join(strings.TrimSpace(string(out)), "src")
	dir := realDir(t)
	root = filepath.Join(dir, "src")
	parts := []string{"encoding", "io", "strings", "testing"}
	if *whole {
		parts = []string{"."}
	}
	for _, p := range parts {
		must(t, os.CopyFS(filepath.Join(root, p), os.DirFS(filepath.Join(src, p))))
	}
	must(t, os.Mkdir(filepath.Join(root, "private"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "private", "key.go"), []byte("package private // func Key\n"), 0o644))
	config = filepath.Join(dir, "moltis.toml")
	text := fmt.Sprintf(`[tools.fs]
workspace_root = %[1]q
allow_paths = ["%[2]s/**"]
deny_paths = ["%[2]s/private/**"]
respect_gitignore = false
search_deadline = "5m"
track_reads = true
must_read_before_write = true
checkpoint_before_mutation = true
`, root, filepath.ToSlash(root))
	must(t, os.WriteFile(config, []byte(text), 0o644))
	return root, config
}

// snapshot is every file and directory below root, with its mode and a hash of its content.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		out[path] = fmt.Sprintf("%s %x", info.Mode(), sha256.Sum256(content))
		return nil
	})
	must(t, err)
	return out
}

// caller makes one call and returns the payload.
type caller func(tool string, args map[string]any) map[string]any

// workOver does with the tools what an agent does, checks every answer against the tree itself, and takes it all back.
func workOver(t *testing.T, root string, call caller) {
	t.Helper()
	before := snapshot(t, root)
	expect := func(p map[string]any, kind string) map[string]any {
		t.Helper()
		if p["kind"] != kind {
			t.Fatalf("answered %v, want %s", p, kind)
		}
		return p
	}
	join := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }

	// The files that a plain walk finds: Glob and Grep should name the same.
	var goFiles, holders []string
	for path, what := range before {
		if what[0] != '-' || !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, join("private")) {
			continue
		}
		goFiles = append(goFiles, path)
		if content, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		} else if strings.Contains(string(content), "func NewDecoder(") {
			holders = append(holders, path)
		}
	}

	g := expect(call("Glob", map[string]any{"pattern": "**/*.go", "limit": 100000}), "glob")
	got := texts(g["paths"])
	for g["next_offset"] != nil { // an answer is a page
		g = expect(call("Glob", map[string]any{"pattern": "**/*.go", "limit": 100000, "offset": g["next_offset"]}), "glob")
		got = append(got, texts(g["paths"])...)
	}
	if !sameSet(got, goFiles) {
		t.Errorf("Glob names %d files, there are %d", len(got), len(goFiles))
	}
	g = expect(call("Grep", map[string]any{"pattern": `func NewDecoder\(`, "glob": "*.go", "head_limit": 0}), "grep")
	if got := texts(g["files"]); !sameSet(got, holders) || len(got) == 0 {
		t.Errorf("Grep names %v, want %v", got, holders)
	}

	file := join("encoding/json/stream.go")
	source, err := os.ReadFile(file)
	must(t, err)
	r := expect(call("Read", map[string]any{"file_path": file}), "text")
	var numbered strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(string(source), "\n"), "\n") {
		fmt.Fprintf(&numbered, "%6d→%s\n", i+1, line)
	}
	if r["content"] != numbered.String() {
		t.Errorf("Read differs from %s", file)
	}

	edit := map[string]any{"file_path": file, "old_string": "func NewDecoder(", "new_string": "func NewReader("}
	p := expect(call("Edit", edit), "edit")
	if id, _ := p["checkpoint_id"].(string); id == "" {
		t.Errorf("no checkpoint in %v", p)
	}
	holds(t, file, strings.Replace(string(source), "func NewDecoder(", "func NewReader(", 1))

	second := join("strings/builder.go")
	multi := map[string]any{"file_path": second, "edits": []any{
		map[string]any{"old_string": "type Builder struct", "new_string": "type Buffer struct"},
		map[string]any{"old_string": "type Buffer struct", "new_string": "type Maker struct"},
	}}
	expect(call("MultiEdit", multi), "must_read_before_write")
	expect(call("Read", map[string]any{"file_path": second}), "text")
	expect(call("MultiEdit", multi), "multi_edit")
	if content, _ := os.ReadFile(second); !strings.Contains(string(content), "type Maker struct") {
		t.Error("MultiEdit did not arrive")
	}

	expect(call("Write", map[string]any{"file_path": join("io/new.go"), "content": "package io\n"}), "write")
	holds(t, join("io/new.go"), "package io\n")
	third := join("io/io.go")
	expect(call("Read", map[string]any{"file_path": third}), "text")
	expect(call("Write", map[string]any{"file_path": third, "content": "package io // short\n", "acknowledge": true}), "write")

	// The denied directory is as good as not there, and what lies outside is out of reach.
	for _, denied := range []string{join("private/key.go"), join("private/none.go"), filepath.Join(filepath.Dir(root), "moltis.toml"), "/etc/passwd"} {
		expect(call("Read", map[string]any{"file_path": denied}), "path_denied")
		expect(call("Write", map[string]any{"file_path": denied, "content": "x"}), "path_denied")
	}
	expect(call("Read", map[string]any{"file_path": join("none.go")}), "not_found")

	points := expect(call("checkpoints_list", map[string]any{}), "checkpoints")
	rows, _ := points["checkpoints"].([]any)
	if len(rows) != 4 {
		t.Fatalf("%d checkpoints of 4 changes: %v", len(rows), points)
	}
	for _, row := range rows { // newest first
		expect(call("checkpoint_restore", map[string]any{"id": row.(map[string]any)["id"]}), "checkpoint_restore")
	}
	compareFiles(t, "taken back", snapshot(t, root), before)
}

func holds(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s does not hold what it should (%v)", file, err)
	}
}

func texts(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, one := range list {
		s, _ := one.(string)
		out = append(out, s)
	}
	return out
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// openSaid is all that a server says on standard error: what is open.
var openSaid = regexp.MustCompile(`^moltis-fs: open is what [^\n]*\n$`)

// The built program over the Go source tree, by the SDK's client, with approvals by elicitation.
func TestGoTreeOverMCP(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			root, config := goTree(t)
			asked := 0
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked++
					if !strings.Contains(r.Params.Message, "\n@@ ") {
						t.Errorf("no diff in %q", r.Params.Message)
					}
					return &sdk.ElicitResult{Action: "accept"}, nil
				},
			})
			cmd := exec.Command(binary(t), "mcp", "--structured", "always", "--config", config, "--data-dir", filepath.Join(t.TempDir(), "data"))
			var errs strings.Builder
			cmd.Stderr = &errs
			withoutTerminal(cmd)
			s, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
			must(t, err)
			list, err := s.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) < 8 {
				t.Fatalf("listed %v (%v)", list, err)
			}
			workOver(t, root, func(tool string, args map[string]any) map[string]any {
				t.Helper()
				r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
				if err != nil {
					t.Fatalf("%s: %v", tool, err)
				}
				p, _ := r.StructuredContent.(map[string]any)
				return p
			})
			if asked != 8 { // four changes, taken back one by one
				t.Errorf("asked %d times", asked)
			}
			if err := s.Close(); err != nil {
				t.Errorf("the server ended with %v", err)
			}
			if code := cmd.ProcessState.ExitCode(); code != 0 || !openSaid.MatchString(errs.String()) {
				t.Errorf("exit status %d, and on standard error %q", code, errs.String())
			}
		})
	}
}
