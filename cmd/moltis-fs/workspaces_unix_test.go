//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The workspace of a session goes to the trash when the session ends. A killed server's workspaces go there when the next one starts, and no other's.
func TestWorkspacesEndWithTheirSessions(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	homes, conf := filepath.Join(dir, "homes"), filepath.Join(dir, "c.toml")
	text := fmt.Sprintf("[tools.fs]\nallow_paths = [%q]\nrequire_approval = false\n[tools.jettson]\nworkspaces = %q\nper_session = true\n", homes+"/**", homes)
	must(t, errors.Join(os.Mkdir(homes, 0o755), os.WriteFile(conf, []byte(text), 0o600)))
	start := func(session string) *running {
		t.Helper()
		return startUp(t, "--dialect", "jettson", "--config", conf, "--session", session, "--data-dir", filepath.Join(dir, "data"))
	}
	there := func(what string, want ...string) {
		t.Helper()
		found, err := os.ReadDir(homes)
		var names []string
		for _, e := range found {
			names = append(names, e.Name())
		}
		if err != nil || strings.Join(names, " ") != strings.Join(want, " ") {
			t.Errorf("%s: the workspaces are %q, want %q, %v", what, names, want, err)
		}
	}
	one, other, killed := start("one"), start("other"), start("killed")
	for _, s := range []*running{one, other, killed} {
		if answer := s.call("jettson_files_write", `{"path":"f","content":"x"}`); !strings.Contains(answer, "bytes_written") {
			t.Error(answer)
		}
	}
	there("written", "local%killed", "local%one", "local%other")
	must(t, killed.cmd.Process.Kill())
	_ = killed.cmd.Wait() // it was killed
	there("one was killed", "local%killed", "local%one", "local%other")
	next := start("next")
	there("the next one is there", "local%one", "local%other")
	one.end()
	next.end()
	there("its session ended", "local%other")
}
