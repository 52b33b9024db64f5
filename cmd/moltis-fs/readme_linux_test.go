package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The session at the beginning of the README is what the program really shows on a terminal: it is recorded here. With -update it is written
// there anew.
func TestReadmeSession(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- session: recorded by TestReadmeSession -->\n\n```console\n", "```\n\n<!-- end of session -->"
	home, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	project := filepath.Join(home, "project")
	for name, text := range map[string]string{
		"project/server.go": "package main\n\nconst timeout = 30 // seconds\n\nfunc main() { serve(timeout) }\n", "project/.env": "KEY=secret\n",
	} {
		name = filepath.Join(home, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	var session strings.Builder
	for _, c := range []struct{ line, typed string }{
		{"moltis-fs init", ""},
		{"moltis-fs call Read .env", ""},
		{"moltis-fs call Edit server.go old_string=30 new_string=60", "y\n"},
		{"moltis-fs log", ""},
		{"moltis-fs undo --yes", ""},
	} {
		session.WriteString("$ " + c.line + "\n" + onTerminal(t, home, project, c.line, c.typed))
	}
	got := strings.NewReplacer(home, "/home/you", "\r\n", "\n").Replace(session.String())
	got = strings.Replace(got, "\nno client was found here; moltis-fs init --write CLIENT sets one up all the same\n", "", 1) // on this machine
	for _, wrong := range []string{"\x1b", home} {
		if strings.Contains(got, wrong) {
			t.Errorf("the session holds %q:\n%s", wrong, got)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	must(t, err)
	before, rest, ok := strings.Cut(string(readme), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the README has no place for the session")
	}
	if *update {
		must(t, os.WriteFile("../../README.md", []byte(before+begin+got+end+after), 0o644))
	} else if was != got {
		t.Errorf("the README shows\n%s\nand the program now\n%s\nrun: go test ./cmd/moltis-fs -run TestReadmeSession -update", was, got)
	}
}

// onTerminal gives the text that a terminal shows while a shell runs the line, and a person types an answer to its question.
func onTerminal(t *testing.T, home, dir, line, typed string) string {
	t.Helper()
	tty := openTerminal(t)
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, tty.end, tty.end, tty.end
	cmd.Env = []string{"HOME=" + home, "PATH=" + filepath.Dir(binary(t)) + ":" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	shown := make(chan string, 1)
	go func() {
		var all []byte
		for one := make([]byte, 1024); ; {
			n, err := tty.host.Read(one)
			all = append(all, one[:n]...)
			if i := bytes.Index(all, []byte("THE END")); i >= 0 || err != nil {
				shown <- string(all[:max(i, 0)])
				return
			}
			if typed != "" && bytes.HasSuffix(all, []byte("] ")) {
				_, _ = io.WriteString(tty.host, typed) // if it fails, the question times out
				typed = ""
			}
		}
	}()
	_ = cmd.Wait() // some are refusals
	if _, err := io.WriteString(tty.end, "THE END"); err != nil {
		t.Fatal(err)
	}
	return <-shown
}
