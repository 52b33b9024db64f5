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
