package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A cause is found in the errors of the rooms below as it is in refusals: what a policy server that fails refused is on record as
// denied by the policies.
func TestCausesInErrors(t *testing.T) {
	below := &policy.ChainError{Path: "/w/a", Err: errors.New("connection refused")}
	for _, c := range []struct {
		cause engine.Cause
		err   error
		want  bool
	}{
		{engine.ChainFailed, below, true}, {engine.ChainFailed, fmt.Errorf("reading: %w", below), true}, {engine.Denied, below, false},
		{engine.Pseudo, guardfs.ErrPseudo, true}, {engine.Absent, fs.ErrNotExist, true}, {engine.Conflicts, engine.Refuse(engine.Conflicts, "/w/a", nil), true},
		{engine.Conflicts, engine.Refuse(engine.BothKinds, "/w/a", nil), false}, {engine.Unknown, nil, false}, {engine.Unknown, errors.New("?"), true},
		{engine.Unknown, engine.ErrHost, false},
	} {
		if got := c.cause.In(c.err); got != c.want {
			t.Errorf("%s in %v: %v", c.cause.Name, c.err, got)
		}
	}
	data := t.TempDir()
	cfg := config.Default()
	cfg.Tools.FS.AllowPaths = []string{"/w/**"}
	e, err := engine.Open(cfg, engine.Host{DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for err, want := range map[error]string{error(below): `"decision":"denied","rule":"policies"`, fmt.Errorf("x: %w", guardfs.ErrPseudo): `"decision":"denied","rule":"pseudo"`,
		error(&policy.Denied{Path: "/w/a", Rule: "deny_paths"}): `"decision":"denied","rule":"deny_paths"`, fs.ErrNotExist: `"decision":"allowed","error"`} {
		if err := e.Record(&engine.Call{Tool: "Read"}, time.Now(), "policy_error", err); err != nil {
			t.Fatal(err)
		}
		log, _ := os.ReadFile(filepath.Join(data, "audit", "audit.jsonl"))
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, want) {
			t.Errorf("%v: on record %s", err, last)
		}
	}
}
