//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// audit -f shows what there is and then what comes, until it is stopped, which is no failure. A record can't speak to
// the operator's terminal, and a call without an outcome is told as one.
func TestAuditFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, ws := filepath.Join(dir, "data"), filepath.Join(dir, "ws")
	must(t, os.Mkdir(ws, 0o755))
	read := func(name string) {
		t.Helper()
		status, out, errs := runWith(t, "", "call", "--data-dir", data, "--root", ws, "Read", `{"file_path":"`+ws+"/"+name+`"}`)
		if status != exitRefused {
			t.Fatal(status, out, errs)
		}
	}
	read(`fir\u001bst`)
	log, err := os.OpenFile(filepath.Join(data, "audit", "audit.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = io.WriteString(log, `{"time":"2026-11-23T00:00:00.000000Z","phase":"intent","call":"x","tool":"Edit","paths":["/cut off"]}`+"\n{\"torn\n")
	must(t, err)
	log.Close()
	_, out, _ := runWith(t, "", "audit", "--data-dir", data)
	if !strings.Contains(out, "Edit  no outcome") || !strings.Contains(out, "Read  not_found") || strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	cmd := exec.Command(binary(t), "audit", "-f", "--data-dir", data)
	withoutTerminal(cmd)
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer cmd.Process.Kill() //nolint:errcheck // it has ended, or the test has failed
	lines := bufio.NewReader(pipe)
	for _, name := range []string{"fir", "second", "third"} {
		if name != "fir" {
			read(name)
		}
		line, err := lines.ReadString('\n')
		for err == nil && strings.Contains(line, "  operator st") { // the call's start and stop
			line, err = lines.ReadString('\n')
		}
		if err != nil || !strings.Contains(line, "Read  not_found") || !strings.Contains(line, name) {
			t.Fatalf("%s: %q %v", name, line, err)
		}
	}
	must(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
