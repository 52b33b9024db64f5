package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
)

// protectedNames are protected names, some of each class.
var protectedNames = []string{".git/hooks/pre-commit", ".git/config", ".mcp.json", ".bashrc", ".zshrc", ".profile", ".env", ".env.local",
	".vscode/tasks.json", ".vscode/settings.json", ".claude/settings.json", "CLAUDE.md", "AGENTS.md", ".cursor/mcp.json", ".cursorrules",
	".github/workflows/x.yml", ".gitlab-ci.yml", ".ssh/authorized_keys", ".ssh/id_rsa", ".envrc", ".husky/pre-commit", ".npmrc", "tls/server.key",
	"githooks/pre-push", ".GIT/config", "ENV~1", ".claude./x", "sub/GEMINI.md"}

// changing are calls that would change N, by dialect. A is a file that is there, D a directory.
var changing = map[string][][2]string{
	"tools": {
		{"Write", `{"file_path":"R/N","content":"x\n"}`},
		{"Edit", `{"file_path":"R/N","old_string":"","new_string":"x\n"}`},
		{"Edit", `{"file_path":"R/N","old_string":"old","new_string":"x"}`},
		{"MultiEdit", `{"file_path":"R/N","edits":[{"old_string":"old","new_string":"x"}]}`},
	},
	"capability": {
		{"filesystem.write", `{"path":"R/N","content":"x\n"}`},
		{"filesystem.append", `{"path":"R/N","content":"x\n"}`},
		{"filesystem.copy", `{"source":"R/a","destination":"R/N","overwrite":true}`},
		{"filesystem.move", `{"source":"R/a","destination":"R/N","overwrite":true}`},
		{"filesystem.move", `{"source":"R/N","destination":"R/away"}`},
		{"filesystem.delete", `{"path":"R/N"}`},
	},
	"jettson": {
		{"jettson_files_write", `{"path":"N","content":"x\n"}`},
		{"jettson_files_delete", `{"path":"N"}`},
	},
}

// protectedTree is a tree whose protected names are there, or not yet; its engine; and how to call it.
func protectedTree(t *testing.T, there bool, who approval.Approver, set func(*config.FS)) (root string, call func(by, tool, args string) dialect.Answer) {
	t.Helper()
	files := map[string]string{"a": "one\n", ".git/HEAD": "ref: refs/heads/main\n"}
	for _, name := range protectedNames {
		if there {
			files[name] = "old\n"
		}
	}
	files[".git/config"] = "[core]\n\thooksPath = githooks\n"
	root, _, by := dialectsOver(t, files, who, set)
	for _, name := range protectedNames {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
	}
	return root, func(name, tool, args string) dialect.Answer {
		args = strings.ReplaceAll(args, `"R`, `"`+root)
		a, err := by(name).Call(t.Context(), dialect.Call{Session: "s", Tool: tool, Args: json.RawMessage(args)})
		if err != nil {
			t.Fatalf("%s %s: %v", tool, args, err)
		}
		return a
	}
}

// TestProtectedNamesStay: with approvals off, and with --yes, no dialect changes what is protected:
// what is there and what is not yet. With the classes off, the same calls do.
func TestProtectedNamesStay(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{false, true} {
		root, call := protectedTree(t, there, approval.Yes("config"), func(*config.FS) {})
		before := treeOf(t, root)
		for by, calls := range changing {
			for _, c := range calls {
				for _, name := range protectedNames {
					a := call(by, c[0], strings.ReplaceAll(c[1], "N", name))
					if !a.Refused() {
						t.Errorf("there %v: %s of %s is not refused", there, c[0], name)
					}
					if name == ".env" && !strings.Contains(a.Text(), "class secret") {
						t.Errorf("%s of %s: %s", c[0], name, a.Text())
					}
				}
			}
		}
		if after := treeOf(t, root); !maps.Equal(before, after) {
			t.Errorf("there %v: the tree was\n%q\nand is\n%q", there, before, after)
		}
	}
	// the control
	root, call := protectedTree(t, false, nil, func(fs *config.FS) { fs.ProtectSecret, fs.ProtectExec = "allow", "allow" })
	for _, name := range protectedNames {
		call("tools", "Read", `{"file_path":"R/`+name+`"}`)
		a := call("tools", "Write", `{"file_path":"R/`+name+`","content":"x\n"}`)
		if b, err := os.ReadFile(filepath.Join(root, name)); a.Refused() || err != nil || string(b) != "x\n" {
			t.Errorf("without the classes %s is %q, %v", name, b, err)
		}
	}
}

// TestTheLineLifts: what a refusal says to lift it does so when it is put into the configuration.
func TestTheLineLifts(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	conf, root := filepath.Join(dir, "c.toml"), filepath.Join(dir, "ws")
	must(t, errors.Join(os.MkdirAll(root+"/real", 0o700), os.Symlink("real", root+"/.claude"), os.Symlink("real", root+"/.ssh")))
	line := regexp.MustCompile(`unprotected = \[(.*)\] in \[tools.fs\]`)
	for _, name := range []string{".env", "a/.npmrc", "x/.ssh/id_rsa", ".GIT/config", "CLAUDE.md", "w{e,i}rd [!x]*/.env", `q"u'o\te/.env`, "h\u200bid/.en\u202ev",
		".claude/settings.json", ".ssh/config", ".env."} {
		var lifted []string
		for range 4 {
			text := "[tools.fs]\nunprotected = [" + strings.Join(lifted, ", ") + "]\n"
			must(t, os.WriteFile(conf, []byte(text), 0o600))
			args, _ := json.Marshal(map[string]any{"file_path": root + "/" + name, "content": "x", "create_parents": true})
			status, out, errs := runWith(t, "", "call", "--config", conf, "--root", root, "--data-dir", dir+"/data", "--yes", "--json", "Write", string(args))
			if status == exitOK {
				break
			}
			var no struct{ Hint string }
			if err := json.Unmarshal([]byte(out), &no); err != nil {
				t.Fatalf("%s: %v: %s %s", name, err, out, errs)
			}
			if found := line.FindStringSubmatch(no.Hint); found != nil && !slices.Contains(lifted, found[1]) {
				lifted = append(lifted, found[1])
			} else {
				t.Fatalf("%s with %s: %s", name, lifted, out)
			}
		}
		if b, err := os.ReadFile(root + "/" + name); err != nil || string(b) != "x" || len(lifted) == 0 {
			t.Errorf("%s with %s: %q, %v", name, lifted, b, err)
		}
	}
	_, call := protectedTree(t, false, nil, func(*config.FS) {})
	for by, c := range map[string][2]string{"tools": {"Write", `{"file_path":"R/N","content":""}`}, "capability": {"filesystem.write", `{"path":"R/N","content":""}`},
		"jettson": {"jettson_files_write", `{"path":"N","content":""}`}} {
		for name, class := range map[string]string{".env": "class secret", ".envrc": "class exec"} {
			if a := call(by, c[0], strings.ReplaceAll(c[1], "N", name)); !strings.Contains(a.Text(), class) || !strings.Contains(a.Text(), "unprotected") {
				t.Errorf("%s of %s: %s", c[0], name, a.Text())
			}
		}
	}
}
