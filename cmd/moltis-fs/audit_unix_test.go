//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No record can speak to the operator's terminal, and a call without an outcome is told as one.
func TestAuditShows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, ws := filepath.Join(dir, "data"), filepath.Join(dir, "ws")
	must(t, os.Mkdir(ws, 0o755))
	status, out, errs := runWith(t, "", "call", "--data-dir", data, "--root", ws, "Read", `{"file_path":"`+ws+`/fir\u001bst"}`)
	if status != exitRefused {
		t.Fatal(status, out, errs)
	}
	log, err := os.OpenFile(filepath.Join(data, "audit", "audit.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = io.WriteString(log, `{"time":"2026-11-23T00:00:00.000000Z","phase":"intent","call":"x","tool":"Edit","paths":["/cut off"]}`+"\n{\"torn\n")
	must(t, err)
	log.Close()
	_, out, _ = runWith(t, "", "audit", "--data-dir", data)
	if !strings.Contains(out, "Edit  no outcome") || !strings.Contains(out, "Read  not_found") || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
}
