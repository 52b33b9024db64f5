//go:build unix

package main

import (
	"bytes"
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
	log := filepath.Join(data, "audit", "audit.jsonl")
	write := []string{"call", "--data-dir", data, "--root", filepath.Dir(file), "--approve", "yes", "Write",
		fmt.Sprintf(`{"file_path":%q,"content":"new"}`, file)}
	old := `{"time":"2026-11-23T00:00:00Z","phase":"outcome","error":"` + strings.Repeat("x", 3<<20) + "\"}\n"
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("old"), 0o644),
		os.MkdirAll(filepath.Dir(log), 0o700), os.WriteFile(log, []byte(old), 0o600), os.Chmod(data, 0o700)); err != nil {
		t.Fatal(err)
	}
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
			OK           bool
			Flaws, Notes []struct{ Flaw string }
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		return p.OK, fmt.Sprint(p.Flaws, p.Notes)
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

// The key is told once, proves what came after it, and the exit status says whether it did.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, key := filepath.Join(dir, "data"), filepath.Join(dir, "key")
	run := func(want int, args ...string) (out, errs string) {
		t.Helper()
		status, out, errs := runWith(t, "", append(args, "--data-dir", data)...)
		if status != want {
			t.Errorf("%v: status %d: %s %s", args, status, out, errs)
		}
		return out, errs
	}
	run(exitMisuse, "audit", "verify") // there is none
	text, _ := run(exitOK, "audit", "key")
	if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(exitOK, "token", "create", "--principal", "ci")
	if out, _ := run(exitOK, "audit", "verify", "--key", key); !strings.Contains(out, "2 of them are proven") {
		t.Error(out)
	}
	if out, _ := run(exitOK, "audit", "verify"); !strings.Contains(out, "without a key from elsewhere") {
		t.Error(out)
	}
	log := filepath.Join(data, "audit", "audit.jsonl")
	was, err := os.ReadFile(log)
	if err != nil || bytes.Contains(was, []byte(strings.TrimSpace(text)[40:])) {
		t.Fatal("the key stands in the log", err)
	}
	if err := os.WriteFile(log, bytes.Replace(was, []byte("token_create"), []byte("token_revoke"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(exitRefused, "audit", "verify", "--key", key); !strings.Contains(out, "audit.jsonl:2: it is not as it was written") {
		t.Error(out)
	}
	run(exitMisuse, "audit", "verify", "--key", log)
	if _, errs := run(exitMisuse, "audit", "verify", "--key", "/dev/zero"); !strings.Contains(errs, "more than 1048576 bytes") {
		t.Error(errs)
	}
	run(exitMisuse, "audit", "verfy")
}
