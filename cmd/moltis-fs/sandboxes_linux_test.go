package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A session's calls run where the configuration says, and nowhere else: each answer tells, each place has its own history,
// and what can't be reached is refused.
func TestSandboxedSessions(t *testing.T) {
	t.Parallel()
	program, dir := binary(t), t.TempDir()
	tree, data := filepath.Join(dir, "tree"), filepath.Join(dir, "data")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	call := func(session, command string) string {
		t.Helper()
		cfg := filepath.Join(dir, "c.toml")
		text := fmt.Sprintf("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n[tools.sandbox]\n"+
			"mode = \"sessions\"\nsessions = [\"boxed-*\"]\ncommand = [%q]\nprogram = %q\nroot = %q\n", command, program, tree)
		if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(program, "call", "--config", cfg, "--data-dir", data, "--root", tree, "--session", session, "Write",
			fmt.Sprintf(`{"file_path":%q,"content":"x\n"}`, filepath.Join(tree, session)))
		out, _ := c.Output() // the answer says how it ended
		return string(out)
	}
	if got := call("free", "env"); !strings.Contains(got, `"where":"host"`) {
		t.Error(got)
	}
	got := call("boxed-1", "env")
	_, where, _ := strings.Cut(got, `"where":"`)
	where, _, _ = strings.Cut(where, `"`)
	if !strings.HasPrefix(where, "env-") || !strings.Contains(got, `"kind":"write"`) {
		t.Fatal(got)
	}
	log, err := os.ReadFile(filepath.Join(data, "sandboxes", where, "audit", "audit.jsonl"))
	if err != nil || !strings.Contains(string(log), `"where":"`+where+`"`) {
		t.Errorf("%v: %s", err, log)
	}
	if got := call("boxed-2", "false"); !strings.Contains(got, `"kind":"unavailable"`) {
		t.Error(got)
	}
	if _, err := os.Lstat(filepath.Join(tree, "boxed-2")); err == nil {
		t.Error("what was refused was done")
	}
}
