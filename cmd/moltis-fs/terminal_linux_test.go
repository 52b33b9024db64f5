package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/internal/testdir"
)

// On a terminal the question is put with its diff, while standard output stays the answer.
func TestApprovalOnTheTerminal(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	file := filepath.Join(dir, "a.txt")
	for _, c := range []struct{ typed, kind, after string }{
		{"n\n", "approval_denied", "one\n"},
		{"\n", "approval_denied", "one\n"},
		{"use b.txt instead\n", "approval_denied", "one\n"},
		{"y\n", "edit", "two\n"},
	} {
		must(t, os.WriteFile(file, []byte("one\n"), 0o644))
		cmd := exec.Command(binary(t), "call", "--root", "/", "--data-dir", filepath.Join(dir, "data"), "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"one","new_string":"two"}`, file))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, append(os.Environ(), "TERM=xterm", "NO_COLOR=")
		shown := asked(t, cmd, "[y/N, ? for help, or type a reason] ", c.typed)
		for _, want := range []string{"Edit wants to change \x1b[1m" + file, "Allow Edit of " + file + ", +1 −1?", "\x1b[31m-one", "\x1b[32m+two"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%q is not shown in %q", want, shown)
			}
		}
		if got := out.String(); !strings.HasPrefix(got, `{"kind":"`+c.kind+`"`) || strings.Count(got, "\n") != 1 || errs.Len() > 0 {
			t.Errorf("%q: answered %s, and on standard error %q", c.typed, got, errs.String())
		}
		if c.typed == "use b.txt instead\n" && !strings.Contains(out.String(), "use b.txt instead") {
			t.Errorf("the reason is lost: %s", out.String())
		}
		if got, _ := os.ReadFile(file); string(got) != c.after {
			t.Errorf("%q: the file holds %q", c.typed, got)
		}
	}
}

// asked runs a command with a terminal of its own, types an answer to its question, and gives what was shown until then.
func asked(t *testing.T, cmd *exec.Cmd, question, typed string) (shown string) {
	t.Helper()
	tty := openTerminal(t)
	cmd.ExtraFiles = []*os.File{tty.end}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	must(t, cmd.Start())
	shown = tty.until(t, question)
	_, err := io.WriteString(tty.host, typed)
	must(t, err)
	_ = cmd.Wait() // some are refused
	return shown
}

// pseudoTerminal is a terminal whose person is the test.
type pseudoTerminal struct {
	host, end *os.File
	rest      []byte // what was shown after the last text that was waited for
}

func openTerminal(t *testing.T) *pseudoTerminal {
	host, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: this system gives no terminals: %v", err)
	}
	t.Cleanup(func() { host.Close() })
	number, err := unix.IoctlGetInt(int(host.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skipf("SKIPPED: this system gives no terminals: %v", err)
	}
	must(t, unix.IoctlSetPointerInt(int(host.Fd()), unix.TIOCSPTLCK, 0))
	end, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: this system gives no terminals: %v", err)
	}
	t.Cleanup(func() { end.Close() })
	return &pseudoTerminal{host: host, end: end}
}

// until reads what is shown up to and with text.
func (p *pseudoTerminal) until(t *testing.T, text string) string {
	more := make([]byte, 1024)
	for {
		if before, after, found := strings.Cut(string(p.rest), text); found {
			p.rest = []byte(after)
			return before + text
		}
		n, err := p.host.Read(more)
		if p.rest = append(p.rest, more[:n]...); err != nil {
			t.Fatalf("%q was never shown; there was %q (%v)", text, p.rest, err)
		}
	}
}

// Emptying the trash is asked on the terminal, and only a yes does it.
func TestEmptyTrashAsks(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	file, config := filepath.Join(dir, "a.txt"), filepath.Join(dir, "c.toml")
	must(t, os.WriteFile(config, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"), 0o600))
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(binary(t), append(args, "--config", config, "--data-dir", filepath.Join(dir, "data"))...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"one\n"}`, file))
	run("call", "--dialect", "capability", "--yes", "filesystem.delete", fmt.Sprintf(`{"path":%q}`, file))
	for _, c := range []struct {
		typed string
		left  int
	}{{"n\n", 1}, {"\n", 1}, {"y\n", 0}} {
		cmd := exec.Command(binary(t), "trash", "empty", "--all", "--config", config, "--data-dir", filepath.Join(dir, "data"))
		if shown := asked(t, cmd, "[y/N] ", c.typed); !strings.Contains(shown, "Remove for good "+file) {
			t.Errorf("asked %q", shown)
		}
		if done := cmd.ProcessState.Success(); done != (c.left == 0) {
			t.Errorf("%q: done %v", c.typed, done)
		}
		if left := strings.Count(run("trash", "list"), "tr-"); left != c.left {
			t.Errorf("%q: %d entries left", c.typed, left)
		}
	}
}

// Ctrl-C at a question changes nothing and ends with the status that stops a shell's loop.
func TestCtrlCAtAQuestion(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	file := filepath.Join(dir, "a.txt")
	cmd := exec.Command(binary(t), "call", "--root", dir, "--data-dir", t.TempDir(), "Write", fmt.Sprintf(`{"file_path":%q,"content":"one\n"}`, file))
	asked(t, cmd, "[y/N, ? for help, or type a reason] ", "\x03")
	if got := cmd.ProcessState.ExitCode(); got != exitCtrlC {
		t.Errorf("ended with %d", got)
	}
	if _, err := os.Lstat(file); err == nil {
		t.Error("the file was written")
	}
}

// A terminal shows control characters of agents and never obeys them, in questions neither.
func TestNoControlsOnTheTerminal(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	config := filepath.Join(dir, "c.toml")
	must(t, os.WriteFile(config, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"), 0o600))
	where := []string{"--config", config, "--data-dir", filepath.Join(dir, "data")}
	content := "\x1b]0;title\a\x1b[2J\rgone \u009b2J \u202eback \u00fc\n"
	raw, err := json.Marshal(map[string]string{"file_path": filepath.Join(dir, "\x1b[31mred\nforged"), "content": content})
	must(t, err)
	if out, err := exec.Command(binary(t), append([]string{"call", "Write", string(raw)}, where...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"diff", "ck-1H0", "--after"}, {"store", "export"}, {"checkpoint", "list"}, {"undo"},
		{"trash", "list"}, {"undo", "--session", "\x1b[31mno\nforged"}, {"checkpoint", "rewind", "--label", "\x1b[31mno\nforged"}} {
		tty := openTerminal(t)
		cmd := exec.Command(binary(t), append(args, where...)...)
		cmd.Stdout, cmd.Stderr, cmd.Env = tty.end, tty.end, append(os.Environ(), "NO_COLOR=1") // colours are ours
		_ = cmd.Run()                                                                          // some are refusals
		if _, err := io.WriteString(tty.end, "THE END"); err != nil {
			t.Fatal(err)
		}
		shown := tty.until(t, "THE END")
		if strings.ContainsAny(strings.ReplaceAll(shown, "\r\n", "\n"), "\x1b\a\r\u009b\u202e") || strings.Contains(shown, "\nforged") {
			t.Errorf("%v: shown is %q", args, shown)
		}
		if args[0] == "diff" && !strings.Contains(shown, `+\u{1b}]0;title\u{7}\u{1b}[2J\u{d}gone \u{9b}2J \u{202e}back ü`) {
			t.Errorf("the content is not to be seen in %q", shown)
		}
	}
}

// Bare approve goes through what waits: y approves what was shown, a text denies, s lets it wait, and what somebody else answers meanwhile is
// passed over.
func TestApproveWalks(t *testing.T) {
	t.Parallel()
	data, dir := filepath.Join(realDir(t), "data"), realDir(t)
	answers := map[string]chan string{}
	q := queue.Open(filepath.Join(data, "approvals"))
	waits := func(n int) {
		testdir.Until(t, "the question", func() bool { all, _ := q.List(false); return len(all) == n })
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		c := make(chan string, 1)
		answers[name] = c
		go func() {
			_, out, _ := runWith(t, "", "call", "--approve", "queue", "--root", dir, "--data-dir", data, "Write",
				fmt.Sprintf(`{"file_path":"%s/%s","content":"%s"}`, dir, name, strings.Repeat(name+`\n`, 1+i/3*100)))
			c <- out
		}()
		waits(i + 1)
	}
	cmd := exec.Command(binary(t), "approve", "--data-dir", data)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	tty := openTerminal(t)
	cmd.ExtraFiles = []*os.File{tty.end}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	must(t, cmd.Start())
	for _, c := range []struct{ file, typed string }{{"a", "y\n"}, {"b", "not b\n"}, {"c", ""}, {"d", "y\n"}, {"d", "q\n"}} {
		shown := tty.until(t, "] ")
		if !strings.Contains(shown, "Allow Write of "+dir+"/"+c.file+",") {
			t.Errorf("%s is not asked about: %q", c.file, shown)
		}
		if c.file == "c" { // somebody else is first
			all, err := q.List(false)
			must(t, err)
			if _, err := q.Answer(all[0].ID, approval.Denied, queue.By{Name: "ann"}, "no c"); err != nil {
				t.Error(err)
			}
		}
		_, err := io.WriteString(tty.host, c.typed)
		must(t, err)
	}
	must(t, cmd.Wait())
	if got := errs.String(); !strings.Contains(got, "approved Write of "+dir+"/a") || !strings.Contains(got, "was denied by ann") {
		t.Errorf("it says %q", got)
	}
	if status, out, errs := runWith(t, "", "approvals", "deny", "--principal", "local", "--data-dir", data); status != exitOK || !strings.Contains(out, "denied Write of "+dir+"/d") {
		t.Error(status, out, errs)
	}
	for name, want := range map[string]string{"a": `"kind":"write"`, "b": "not b", "c": "no c", "d": `"approval_denied"`} {
		if got := <-answers[name]; !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
