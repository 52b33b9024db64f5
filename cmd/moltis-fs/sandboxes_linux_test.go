package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"moltisfs/internal/dialect"
	"moltisfs/internal/sandbox/place"
	"moltisfs/internal/testdir"
	"moltisfs/tools"
)

// More than 32 sandboxes that nobody needs are not kept open: the oldest goes, and comes back when it is needed. One that
// a call needs stays.
func TestOpenSandboxes(t *testing.T) {
	t.Parallel()
	b := &sandboxes{at: map[string]*sandboxEngine{}}
	need := func(id int) (*sandboxEngine, func()) { return b.take(&place.Place{ID: fmt.Sprint(id)}, false) }
	busy, release := need(-1)
	var first *sandboxEngine
	for id := range maxIdle + 5 {
		one, done := need(id)
		done()
		one.used = time.Unix(int64(id), 0)
		if id == 0 {
			first = one
		}
		if len(b.at) > maxIdle {
			t.Fatalf("%d are open after %d", len(b.at), id+2)
		}
	}
	if b.at["-1"] != busy || b.at["0"] != nil || b.at["5"] != nil || b.at["6"] == nil {
		t.Errorf("wrong ones are gone: %d stay", len(b.at))
	}
	_, end := b.take(&place.Place{ID: "6"}, true)
	if end(); b.at["6"] != nil {
		t.Error("one whose session is over stays")
	}
	again, done := need(0)
	if again == first || b.at["0"] != again {
		t.Error("one that was closed is used again as it is")
	}
	done()
	release()
	if len(b.at) != maxIdle {
		t.Errorf("%d are open", len(b.at))
	}
	b.gone.Wait()
}

// A directory that has something of ours in it is no sandbox: an agent would have it there like any other file.
func TestOursInNoSandbox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{"box", "box2", "data"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	must(t, os.Symlink(filepath.Join(dir, "box"), filepath.Join(dir, "link")))
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		box, data, more string
		ok              bool
	}{
		{at("box"), at("data"), at("c.toml"), true}, {at("box"), at("box2/data"), "", true}, {"", at("box/data"), "", true},
		{at("box"), at("box/data"), "", false}, {at("box"), at("box"), "", false}, {at("box"), at("data"), at("box/c.toml"), false},
		{at("link"), at("box/data/deep"), "", false}, {at("box"), at("link/data"), "", false}, {"/", at("data"), "", false},
		{at("data/in"), at("data"), "", false}, {"box", at("data"), "", false}, {at("data2"), at("data"), "", true},
	} {
		o := opener{as: tools.Options{DataDir: c.data, Protect: []string{c.more, ""}}}
		if err := o.outOfReach(&place.Place{Dir: c.box}); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// payloadOf is an answer of the tools whose text is another thing than its JSON.
type payloadOf struct {
	*dialect.Object
	text string
}

func (p payloadOf) Text() string        { return p.text }
func (payloadOf) Unwrap() tools.Payload { return nil }

// An answer says once where it was, in the form that it has.
func TestWhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a          dialect.Answer
		text, json string
	}{
		{&dialect.Object{Content: []byte(`{"a":1}`)}, `{"a":1,"where":"x-1"}`, `{"a":1,"where":"x-1"}`},
		{&dialect.Object{Content: []byte(`{}`)}, `{"where":"x-1"}`, `{"where":"x-1"}`},
		{payloadOf{&dialect.Object{Content: []byte(`{"a":1}`)}, "1→one\n"}, "1→one\n[where: x-1]", `{"a":1,"where":"x-1"}`},
		{payloadOf{&dialect.Object{Content: []byte(`{"a":1}`)}, `{"of":"a file"}`}, "{\"of\":\"a file\"}\n[where: x-1]", `{"a":1,"where":"x-1"}`},
	} {
		at := located{c.a, "x-1"}
		if got, err := at.JSON(true); at.Text() != c.text || string(got) != c.json || err != nil {
			t.Errorf("%q %s, want %q %s: %v", at.Text(), got, c.text, c.json, err)
		}
	}
}

// A question says that the change is made in a sandbox: its path may be one of this machine too.
func TestApprovalNamesTheSandbox(t *testing.T) {
	t.Parallel()
	dir, conf := boxedIn(t, `"env"`, "")
	data := filepath.Join(dir, "data")
	cmd := exec.Command(binary(t), "call", "--config", conf, "--data-dir", data, "--approve", "queue",
		"Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, filepath.Join(dir, "tree", ".envrc")))
	must(t, cmd.Start())
	var list struct {
		Approvals []struct{ Summary string }
	}
	testdir.Until(t, "a question", func() bool {
		_, out, _ := runWith(t, "", "approvals", "list", "--json", "--data-dir", data)
		return json.Unmarshal([]byte(out), &list) == nil && len(list.Approvals) > 0
	})
	if q := list.Approvals[0]; !strings.HasPrefix(q.Summary, "in the sandbox env-") {
		t.Errorf("the question is %q", q.Summary)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// A server's sessions have sandboxes of their own: one ends with its session, all are taken over by other rules.
func TestSandboxesOfServer(t *testing.T) {
	t.Parallel()
	dir, conf := boxedIn(t, `"env", "BOX={principal}.{session}"`, "")
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "tree", "f")
	laid(t, file, "hello\n")
	s := startServer(t, newToken(t, data, "--principal", "ci"), "--config", conf, "--data-dir", data, "--approve", "yes")
	session := func() string {
		return regexp.MustCompile(`s-[A-Z0-9]+`).FindString(s.ask("session.create", `{}`))
	}
	reads := func(in, want string) {
		t.Helper()
		if got := s.ask("capabilities.invoke", fmt.Sprintf(`{"session_id":%q,"capability":"Read","arguments":{"file_path":%q}}`, in, file)); !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	one, two := session(), session()
	if got := s.ask("session.end", fmt.Sprintf(`{"session_id":%q}`, session())); !strings.Contains(got, `"ended":true`) {
		t.Errorf("a session without calls ends: %s", got)
	}
	if sandboxes, _ := os.ReadDir(filepath.Join(data, "sandboxes")); len(sandboxes) > 1 { // that of the start
		t.Errorf("to end a session its sandbox was opened: %v", sandboxes)
	}
	reads(one, "hello")
	reads(two, "hello")
	s.workers(2)
	s.ask("session.end", fmt.Sprintf(`{"session_id":%q}`, one))
	s.workers(1)
	reads(two, "hello")

	text, err := os.ReadFile(conf)
	must(t, err)
	laid(t, conf, strings.Replace(string(text), "[tools.fs]\n", "[tools.fs]\ndeny_paths = [\""+file+"\"]\n", 1))
	must(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.says("the configuration was read again")
	reads(two, "path_denied")
	s.workers(1) // those under the old rules are closed
}

// A server whose sandbox is gone while its configuration is read again takes no session out of it: require = false is
// about a start.
func TestReloadWhileASandboxIsGone(t *testing.T) {
	t.Parallel()
	dir, conf := boxedIn(t, `"sh", "-c", "test ! -e \"$0\" && exec \"$@\"", "GONE"`, "require = false\n")
	gone, file := filepath.Join(dir, "gone"), filepath.Join(dir, "tree", "f")
	laid(t, file, "hello\n")
	text, err := os.ReadFile(conf)
	must(t, err)
	laid(t, conf, strings.Replace(string(text), "GONE", gone, 1))
	data := filepath.Join(dir, "data")
	s := startServer(t, newToken(t, data, "--principal", "ci"), "--config", conf, "--data-dir", data, "--approve", "yes")
	session := regexp.MustCompile(`s-[A-Z0-9]+`).FindString(s.ask("session.create", `{}`))
	read := func(want string) {
		t.Helper()
		if got := s.ask("capabilities.invoke", fmt.Sprintf(`{"session_id":%q,"capability":"Read","arguments":{"file_path":%q}}`,
			session, file)); !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	read(`"where":"sh-`)
	laid(t, gone, "")
	for range 2 {
		must(t, s.cmd.Process.Signal(syscall.SIGHUP))
		if line := s.says("no real sandbox backend is available"); !strings.Contains(line, "are refused until it is there") {
			t.Error(line)
		}
		s.says("the configuration was read again")
		read("unavailable")
	}
	must(t, os.Remove(gone))
	must(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.says("the configuration was read again")
	read("hello")
}

// A server whose sandbox hangs can be stopped at once, and nothing runs on this machine in the place of it.
func TestStoppedWhileASandboxHangs(t *testing.T) {
	t.Parallel()
	dir, conf := boxedIn(t, `"sh", "-c", "touch \"$0\"; exec sleep 1000", "begun"`, "require = false\n")
	cmd := exec.Command(binary(t), "mcp", "--config", conf, "--data-dir", filepath.Join(dir, "data"))
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(t, err)
	defer in.Close()
	testdir.Until(t, "the start of the sandbox", func() bool {
		_, err := os.Lstat(filepath.Join(dir, "begun"))
		return err == nil
	})
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if got := said.String(); !strings.Contains(got, "are refused until it is there") || strings.Contains(got, "did not answer") {
		t.Error(got)
	}
}

// workers waits until the server has so many workers, and no zombie.
func (s *server) workers(want int) {
	s.t.Helper()
	testdir.Until(s.t, fmt.Sprintf("%d workers", want), func() bool {
		n := 0
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
		for _, list := range threads {
			b, _ := os.ReadFile(list) // a thread that has gone has none
			n += len(strings.Fields(string(b)))
		}
		return n == want
	})
}

// boxedIn is a directory with a tree, and a configuration by which sessions run in it through a command.
func boxedIn(t *testing.T, command, more string) (dir, conf string) {
	t.Helper()
	dir = realDir(t)
	must(t, os.Mkdir(filepath.Join(dir, "tree"), 0o755))
	mode := "all"
	if strings.HasPrefix(more, "sessions") {
		mode = "sessions"
	}
	return dir, laid(t, filepath.Join(dir, "c.toml"), fmt.Sprintf("[tools.fs]\nrequire_approval = false\n[tools.sandbox]\nmode = %q\n"+
		"command = [%s]\nroot = %q\n%s", mode, command, filepath.Join(dir, "tree"), more))
}
