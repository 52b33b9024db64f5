//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A log that has no room left for a record keeps the change from happening; what was written of the
// record is no tampering.
func TestNoRoomNoChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "ws", "f")
	log := filepath.Join(data, "audit-changes", "audit.jsonl")
	write := []string{"call", "--data-dir", data, "--root", filepath.Dir(file), "--approve", "yes", "Write",
		fmt.Sprintf(`{"file_path":%q,"content":"new"}`, file)}
	old := `{"time":"2026-11-23T00:00:00Z","phase":"outcome","error":"` + strings.Repeat("x", 3<<20) + `","seq":1,"prev":"` + strings.Repeat("0", 64) + "\"}\n"
	must(t, errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("old"), 0o644),
		os.MkdirAll(filepath.Dir(log), 0o700), os.WriteFile(log, []byte(old), 0o600), os.Chmod(data, 0o700),
		os.WriteFile(filepath.Join(data, "moltis-fs-data"), nil, 0o600)))
	blocks := (len(old) + 1000) / 512 // room for the start, and for a part of the intent
	sh := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -f %d && exec "$@"`, blocks), "sh", binary(t)}, write...)...)
	withoutTerminal(sh)
	out, err := sh.CombinedOutput()
	if code := sh.ProcessState.ExitCode(); code != exitBroken {
		t.Errorf("status %d, %v: %s", code, err, out)
	}
	if got, _ := os.ReadFile(file); string(got) != "old" {
		t.Errorf("it was changed without a record: %q", got)
	}
	verify := func() (ok bool, flaws string) {
		_, out, _ := runWith(t, "", "audit", "verify", "--json", "--data-dir", data)
		var p struct {
			OK      bool
			Changes struct{ Flaws, Notes []struct{ Flaw string } }
		}
		must(t, json.Unmarshal([]byte(out), &p))
		return p.OK, fmt.Sprint(p.Changes)
	}
	if ok, what := verify(); !ok || !strings.Contains(what, "interrupted") {
		t.Error(what)
	}
	if status, out, errs := runWith(t, "", write...); status != exitOK {
		t.Fatal(status, out, errs)
	}
	if ok, what := verify(); !ok || !strings.Contains(what, "interrupted") {
		t.Error("with room again:", what)
	}
}

// The exit status says whether both logs are what they were, also against what was printed earlier.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, seen := filepath.Join(dir, "data"), filepath.Join(dir, "seen")
	run := func(want int, says string, args ...string) (out string) {
		t.Helper()
		status, out, errs := runWith(t, "", append(args, "--data-dir", data)...)
		if status != want || !strings.Contains(out+errs, says) {
			t.Errorf("%v: status %d, not %d and %q: %s %s", args, status, want, says, out, errs)
		}
		return out
	}
	run(exitMisuse, "there is no audit log", "audit", "verify")
	must(t, os.Mkdir(filepath.Join(dir, "ws"), 0o755))
	run(exitOK, "", "token", "create", "--principal", "ci")
	run(exitOK, "", "call", "--root", filepath.Join(dir, "ws"), "Glob", `{"pattern":"*"}`)
	text := run(exitOK, "changes: last record 4 ", "audit", "verify")
	must(t, os.WriteFile(seen, []byte(text), 0o600))
	run(exitOK, "the chain is whole", "audit", "verify", "--earlier", seen)
	for _, c := range []struct {
		log, says string // what audit verify --earlier says
		plain     int    // the exit status without it
		do        func(text string) string
	}{
		{"audit-changes", "changes: changed     audit.jsonl:1: it is not as it was written", exitRefused, func(s string) string { return strings.Replace(s, "token_create", "token_revoke", 1) }},
		{"audit-changes", "changes: truncated   audit.jsonl:3: record 4 missing at the end", exitRefused, func(s string) string { return s[:strings.LastIndex(s[:len(s)-1], "\n")+1] }},
		{"audit-changes", "changes: dropped     audit.jsonl:1: record 1 missing before it", exitRefused, func(s string) string { return s[strings.Index(s, "\n")+1:] }},
		{"audit", "calls: not_seen", exitRefused, func(string) string { return "" }},
	} {
		log := filepath.Join(data, c.log, "audit.jsonl")
		was, err := os.ReadFile(log)
		must(t, err)
		must(t, os.WriteFile(log, []byte(c.do(string(was))), 0o600))
		run(exitRefused, c.says, "audit", "verify", "--earlier", seen)
		run(c.plain, "", "audit", "verify")
		must(t, os.WriteFile(log, was, 0o600))
	}
	run(exitOK, "", "audit", "verify", "--earlier", seen)
	log := filepath.Join(data, "audit-changes", "audit.jsonl")
	must(t, errors.Join(os.Remove(log), os.Remove(filepath.Join(filepath.Dir(log), "audit.last"))))
	run(exitOK, "", "token", "create", "--principal", "ci") // as if nothing had been before
	run(exitOK, "", "audit", "verify")
	run(exitRefused, "changes: not_seen    record 4 was there at an earlier verification", "audit", "verify", "--earlier", seen)
	run(exitMisuse, "names no last record", "audit", "verify", "--earlier", log)
	run(exitMisuse, "more than 1048576 bytes", "audit", "verify", "--earlier", "/dev/zero")
	run(exitMisuse, "there is no audit command", "audit", "key")
}
