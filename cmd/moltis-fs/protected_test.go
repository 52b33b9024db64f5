package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
)

// The line that a refusal names lifts it, once it stands in the configuration.
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
	root, _, dialects := dialectsOver(t, nil, nil, func(*config.FS) {})
	for by, c := range map[string][2]string{"tools": {"Write", `{"file_path":"R/N","content":""}`}, "capability": {"filesystem.write", `{"path":"R/N","content":""}`},
		"jettson": {"jettson_files_write", `{"path":"N","content":""}`}} {
		for name, class := range map[string]string{".env": "class secret", ".envrc": "class exec"} {
			answer := answered(t, dialects(by), c[0], strings.NewReplacer(`"R`, `"`+root, "N", name).Replace(c[1]))
			if !strings.Contains(answer, class) || !strings.Contains(answer, "unprotected") {
				t.Errorf("%s of %s: %s", c[0], name, answer)
			}
		}
	}
}
