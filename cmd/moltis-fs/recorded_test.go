package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/internal/audit"
)

// An operator's action on our own files has a record before it and one of its outcome; looking has none.
func TestActionsAreOnRecord(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	conf, data, ws := filepath.Join(dir, "c.toml"), filepath.Join(dir, "data"), filepath.Join(dir, "ws")
	settings := "[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"
	must(t, errors.Join(os.Mkdir(ws, 0o755), os.WriteFile(conf, []byte(settings), 0o600)))
	in := func(args ...string) []string { return append(args, "--config", conf, "--data-dir", data) }
	run := func(status int, args ...string) string {
		t.Helper()
		got, out, errs := runWith(t, "", in(args...)...)
		if got != status {
			t.Errorf("%v: status %d: %s %s", args, got, out, errs)
		}
		return out
	}
	run(exitOK, "call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"1"}`, ws+"/a"))
	id := strings.Fields(run(exitOK, "checkpoint", "list"))[0]
	for _, args := range [][]string{
		{"checkpoint", "show", id}, {"store", "stats"}, {"store", "check"}, {"trash", "list"}, {"store", "gc", "--dry-run"},
	} {
		run(exitOK, args...)
	}
	run(exitOK, "checkpoint", "pin", id, "--label", "mine")
	run(exitOK, "store", "gc")
	run(exitOK, "store", "export")
	run(exitOK, "trash", "empty", "--all")
	run(exitRefused, "store", "purge", "--path", "/nowhere", "--yes")
	for _, args := range [][]string{{"token", "create", "--principal", "ci"}, {"token", "revoke", "tk-nosuch1"}} {
		runWith(t, "", append(args, "--data-dir", data)...)
	}
	text, err := os.ReadFile(filepath.Join(data, "audit-changes", "audit.jsonl"))
	must(t, err)
	var got []string
	ends := ""
	for line := range strings.Lines(string(text)) {
		var r struct{ Phase, Dialect, Tool, Outcome, By, Pattern, Checkpoint, Call string }
		must(t, json.Unmarshal([]byte(line), &r))
		if r.Dialect != "operator" {
			continue
		}
		if r.Tool == "start" || r.Tool == "stop" { // of the one call
			ends += r.Tool + " "
			continue
		}
		got = append(got, strings.TrimSpace(r.Phase+" "+r.Tool+" "+r.Outcome))
		if r.By != "person" || r.Call == "" || r.Tool == "pin" && (r.Checkpoint != id || !strings.Contains(r.Pattern, "--label mine")) {
			t.Errorf("%s", line)
		}
	}
	var want []string
	for _, d := range []string{"pin ok", "gc ok", "export ok", "empty_trash ok", "purge not_found", "token_create ok", "token_revoke not_found"} {
		want = append(want, "intent "+strings.Fields(d)[0], "outcome "+d)
	}
	if ends != "start stop " {
		t.Errorf("of the call there is %q on record", ends)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the record says\n%q, want\n%q", got, want)
	}

	// No record, no action.
	must(t, errors.Join(os.RemoveAll(filepath.Join(data, "audit")), os.WriteFile(filepath.Join(data, "audit"), nil, 0o600)))
	run(exitBroken, "checkpoint", "unpin", id) // and nothing else
	must(t, os.Remove(filepath.Join(data, "audit")))
	if out := run(exitOK, "checkpoint", "show", id); !strings.Contains(out, "pinned") {
		t.Errorf("it was unpinned without a record: %s", out)
	}
}

// runWith runs one command line in this process.
func runWith(t *testing.T, stdin string, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	status = run(args, streams{strings.NewReader(stdin), &o, &e, func(string) string { return "" }})
	return status, o.String(), e.String()
}

// recordsOf are both logs under a data directory, in the order of time.
func recordsOf(t *testing.T, data string) string {
	t.Helper()
	var b strings.Builder
	err := audit.Read(t.Context(), filepath.Join(data, "audit"), func(line []byte) error {
		b.Write(append(line[:len(line):len(line)], '\n'))
		return nil
	})
	must(t, err)
	return b.String()
}
