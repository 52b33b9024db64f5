//go:build unix

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
)

var fenced = regexp.MustCompile("(?ms)^```(\\w*)\\n(.*?)^```$")

// notRun are beginnings of blocks for shells that are not run here, with the reason.
var notRun = map[string]string{
	"make install":                              "it builds the program",
	"go generate ./readers/pdf":                 "it builds the program",
	"CGO_ENABLED=0 go run":                      "it builds the program",
	"claude ":                                   "a program of others; the interop tests drive it",
	"moltis-fs approvals list":                  "a question has to wait; testdata/scripts/approvals.txtar",
	"moltis-fs console":                         "a port of this machine; the tests of cmd/moltis-fs/browser",
	"moltis-fs serve":                           "a port of this machine; testdata/scripts/serve.txtar",
	"moltis-fs run --network":                   "packages of others; TestRunPrograms",
	"moltis-fs status  ":                        "a run has to be kept; testdata/scripts/run.txtar",
	"#!/bin/sh":                                 "a hook; TestHooksSeeWhatRuns",
	"moltis-fs store check --config owner.toml": "a fleet; TestFleetAccounts",
	"moltis-fs store import ~/.moltis-fs":       "a fleet; TestFleetMove",
	"pg_dump ":                                  "a database of others",
	"moltis-fs mcp --policies-json":             "a server of others; testdata/scripts/policy.txtar",
}

// TestDocsRun runs every block for a shell in README.md and docs in a fresh home directory with a project, a configuration and a history,
// checks every configuration, and parses every other TOML and JSON.
func TestDocsRun(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	ran := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
			language, block := m[1], m[2]
			name := filepath.Base(page) + ": " + strings.SplitN(block, "\n", 2)[0]
			switch language {
			case "json":
				if !json.Valid([]byte(block)) {
					t.Errorf("%s: no JSON", name)
				}
			case "toml":
				var any map[string]any
				if _, err := toml.Decode(block, &any); err != nil {
					t.Errorf("%s: %v", name, err)
				} else if any["tools"] != nil {
					configHolds(t, name, block)
				}
			case "sh":
				skip := ""
				for begins, why := range notRun {
					if strings.HasPrefix(block, begins) {
						skip = why
					}
				}
				if skip == "" {
					ran++
					blockRuns(t, name, block)
				}
			}
		}
	}
	if ran < 10 {
		t.Errorf("only %d blocks were run", ran)
	}
}

// configHolds checks the configuration in a block, with the places of the example made.
func configHolds(t *testing.T, name, block string) {
	home := realDir(t)
	must(t, os.MkdirAll(filepath.Join(home, "project"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, "fs.rego"), []byte("package mcp.filesystem\n"), 0o600))
	block = strings.NewReplacer("/home/you", home, "/etc/moltis/fs.rego", home+"/fs.rego", "/etc/moltis-fs/no-secrets", "/bin/true", "/usr/local/bin/tell-me", "/bin/true").Replace(block)
	file := filepath.Join(home, "c.toml")
	must(t, os.WriteFile(file, []byte(block), 0o600))
	if out, err := exec.Command(binary(t), "config", "check", file).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// blockRuns runs a block for a shell. Questions are answered with yes: there is nobody to ask.
func blockRuns(t *testing.T, name, block string) {
	home := realDir(t)
	project := filepath.Join(home, "project")
	config := "[tools.fs]\nallow_paths = [\"" + project + "/**\"]\nworkspace_root = \"" + project + "\"\n" +
		"checkpoint_before_mutation = true\npolicies = [\"file://" + home + "/fs.rego\"]\n"
	rego := "package mcp.filesystem\nallow := true\n"
	for file, text := range map[string]string{
		"project/README.md": "# A project\n", "project/server.go": "package main\n", "project/build/x": "", "FILE": config, "moltis.toml": config,
		"fs.rego": rego, "project/fs.rego": rego, "project/moltis.toml": config,
		"project/input.json": `{"operation": "readFile", "path": "/ws/a", "resolved_path": "/ws/a"}`,
		"bin/moltis-fs":      "#!/bin/sh\ncase \"$1 $2\" in undo*|redo*|restore*|*rewind*) exec " + binary(t) + " \"$@\" --yes ;; esac\nexec " + binary(t) + " \"$@\"\n",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(home, file)), 0o700))
		must(t, os.WriteFile(filepath.Join(home, file), []byte(text), 0o700))
	}
	sh := func(script string) string {
		ctx, end := context.WithTimeout(t.Context(), time.Minute) // a block that does not end fails
		defer end()
		cmd := exec.CommandContext(ctx, "sh", "-euc", script)
		cmd.WaitDelay = time.Second
		cmd.Dir, cmd.Env = project, []string{"HOME=" + home, "PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH")}
		withoutTerminal(cmd)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	sh("moltis-fs call --yes --session s1 Edit file_path=server.go old_string=main new_string=server >/dev/null 2>&1")
	if strings.Contains(block, "token revoke") {
		sh("moltis-fs token create --principal ann >/dev/null 2>&1")
		block = strings.ReplaceAll(block, "tk-4xk2m7qa", regexp.MustCompile(`tk-\w+`).FindString(sh("moltis-fs token list")))
	}
	if strings.Contains(block, "--data-dir /backup") {
		sh("moltis-fs store backup " + home + "/backup/2026-11-23 >/dev/null")
	}
	sh(strings.NewReplacer("/backup/", home+"/backup/", "/media/stick/", home+"/", " FILE ", " "+home+"/FILE ", "--config moltis.toml", "--config "+home+"/moltis.toml", "/path/to/project", project).Replace(block))
}
