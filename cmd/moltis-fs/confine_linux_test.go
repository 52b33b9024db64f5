package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/internal/confine"
)

// needLandlock skips loudly where the kernel has none.
func needLandlock(t *testing.T) {
	t.Helper()
	if missing := confine.Missing(confine.ABI(), false); len(missing) > 0 {
		t.Skipf("SKIPPED: %v", missing)
	}
}

// attempts are the commands that a shell tries in the workspace $W, beside $O, which is outside. Each is a name, and
// a command that succeeds when nobody holds it.
var attempts = []struct{ name, command string }{
	{"read", `cat $W/a`},
	{"read below", `cat $W/sub/b`},
	{"list", `ls $W`},
	{"append", `echo more >> $W/a`},
	{"new below", `echo new > $W/sub/new`},
	{"new", `echo new > $W/new`},
	{"remove below", `rm $W/sub/b`},
	{"read denied", `cat $W/secrets/k`},
	{"list denied", `ls $W/secrets`},
	{"write denied", `echo x >> $W/secrets/k`},
	{"new denied", `echo x > $W/secrets/n`},
	{"read pattern", `cat $W/sub2/.env`},
	{"read git", `cat $W/sub2/.git/config`},
	{"write git", `echo x >> $W/sub2/.git/config`},
	{"write hook", `echo x >> $W/sub2/hooks/h`},
	{"write hook of all", `echo x >> $W/userhooks/h`},
	{"link denied", `ln $W/secrets/k $W/sub/k && cat $W/sub/k`},
	{"symlink denied", `ln -s $W/secrets/k $W/sub/s && cat $W/sub/s`},
	{"move denied", `mv $W/secrets $W/sub/moved && cat $W/sub/moved/k`},
	{"read outside", `cat $O/o`},
	{"write outside", `echo x > $O/x`},
	{"link outside", `ln $O/o $W/sub/o && cat $W/sub/o`},
	{"move outside", `mv $O/o $W/sub/o2 && cat $W/sub/o2`},
	{"by proc", `cat /proc/$PPID/root$O/p`},
	{"environment of the parent", `tr '\0' '\n' < /proc/$PPID/environ | grep .`},
	{"system", `cat /etc/passwd && ls /etc && test -x /usr/bin/env`},
	{"passwords", `cat /etc/shadow`}, // for root only
	{"passwords by mode", `cat $(find /etc -xdev -type f ! -perm -004 | head -n 3)`},
	{"temporary", `echo t > ${TMPDIR:-/tmp}/moltis-fs-test && rm ${TMPDIR:-/tmp}/moltis-fs-test`},
}

// A shell under confine does what the policy allows, and nothing else; without it, it does all.
func TestConfine(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	for _, c := range []struct {
		name, deny, options string
		could               string // of the attempts, in their order
	}{
		{"control", "", "", "*"},
		{"all of it", "", "", "read, read below, list, append, new below, new, remove below, read denied, list denied, write denied, new denied, " +
			"read pattern, read git, write git, write hook, write hook of all, link denied, symlink denied, move denied, system, temporary"},
		{"a directory denied", `"$W/secrets/**"`, "", "read, read below, append, new below, remove below, read pattern, read git, write git, write hook, write hook of all, system, temporary"},
		{"read only", `"$W/secrets/**", "**/.env"`, "--read-only", "read, read below, read git, system, temporary"},
		{"weaker", `"$W/secrets/**", "**/.env"`, "--allow-weaker", "read, read below, list, append, new below, remove below, list denied, read git, write git, write hook, write hook of all, system, temporary"},
		{"the defaults", "*", "--allow-weaker", "read, read below, list, append, new below, remove below, read denied, list denied, write denied, new denied, " +
			"read git, link denied, symlink denied, system, temporary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := realDir(t)
			ws, out, conf := filepath.Join(dir, "ws"), filepath.Join(dir, "out"), filepath.Join(dir, "c.toml")
			for _, f := range []string{"ws/a", "ws/sub/b", "ws/sub2/.env", "ws/sub2/.git/config", "ws/sub2/hooks/h", "ws/userhooks/h", "ws/secrets/k", "out/o", "out/p"} {
				laid(t, filepath.Join(dir, f), "[core]\nhooksPath = hooks\n")
			}
			rules := "[tools.fs]\nallow_paths = [\"$W/**\"]\n"
			if c.deny != "*" {
				rules += "protect_secret = \"allow\"\nprotect_exec = \"allow\"\ndeny_paths = [" + c.deny + "]\n"
			}
			rules = strings.ReplaceAll(rules, "$W", ws)
			laid(t, conf, rules)
			var script, all strings.Builder
			for i, a := range attempts {
				if strings.HasPrefix(a.name, "passwords") && os.Geteuid() != 0 {
					continue
				}
				fmt.Fprintf(&script, "(%s) >/dev/null 2>&1 && printf '%%s, ' '%s'\n", a.command, a.name)
				fmt.Fprintf(&all, "%s%s", []string{", ", ""}[map[bool]int{true: 1}[i == 0]], a.name)
			}
			shell := exec.Command("sh", "-c", script.String()+"true")
			want := all.String()
			if c.could != "*" {
				want = c.could
				args := append([]string{"confine", "--config", conf, "--data-dir", filepath.Join(dir, "data")}, strings.Fields(c.options)...)
				shell = exec.Command(binary(t), append(append(args, "--"), shell.Args...)...)
			}
			global := filepath.Join(dir, "gitconfig")
			must(t, os.WriteFile(global, []byte("[core]\nhooksPath = "+ws+"/userhooks\n"), 0o600))
			temp := filepath.Join(dir, "tmp")
			must(t, os.Mkdir(temp, 0o700))
			shell.Env = append(os.Environ(), "W="+ws, "O="+out, "GIT_CONFIG_GLOBAL="+global, "TMPDIR="+temp)
			var errs bytes.Buffer
			shell.Stderr = &errs
			got, err := shell.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, &errs)
			}
			if got := strings.TrimSuffix(string(got), ", "); got != want {
				t.Errorf("it could\n%s; want\n%s\n%s", got, want, &errs)
			}
			if left, _ := filepath.Glob(filepath.Join(temp, "moltis-fs-confine-*", "*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TCP is closed but for what is opened, and nobody types into a terminal. The test is its own client.
func TestConfineNetwork(t *testing.T) {
	if to := os.Getenv("CONFINE_TEST_DIAL"); to != "" {
		c, err := net.Dial("tcp", to)
		if err == nil {
			c.Close()
		}
		var plain net.ListenConfig
		plain.SetMultipathTCP(false) // Landlock knows plain TCP only
		l, lerr := plain.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if lerr == nil {
			l.Close()
		}
		u, uerr := net.ListenPacket("udp", "127.0.0.1:0")
		if uerr == nil {
			u.Close()
		}
		pair, perr := net.Listen("unix", filepath.Join(os.Getenv("TMPDIR"), "s"))
		if perr == nil {
			pair.Close()
		}
		typed := unix.IoctlSetPointerInt(0, unix.TIOCSTI, 'x') // it is no terminal
		var limit unix.Rlimit
		own := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &limit)
		other := unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, nil, &limit)
		_, keys := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		_, _, add := unix.Syscall(unix.SYS_ADD_KEY, 0, 0, 0)
		held := func(err error) bool { return err == unix.EACCES }
		fmt.Printf("dial %t listen %t udp %t unix %t type: %v; held: limits %t, own %t, keys %t %t\n", err == nil, lerr == nil, uerr == nil, perr == nil, typed,
			held(other), held(own), held(keys), held(add))
		return
	}
	t.Parallel()
	needLandlock(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	self := []string{os.Args[0], "-test.run=^TestConfineNetwork$"}
	for _, c := range []struct{ options, want string }{
		{"*", "dial true listen true udp true unix true type: inappropriate ioctl for device; held: limits false, own false, keys false false"},
		{"", "dial false listen false udp false unix true type: permission denied; held: limits true, own false, keys true true"},
		{"--network", "dial true listen true udp true unix true type: permission denied; held: limits true, own false, keys true true"},
		{"--connect " + port, "dial true listen false udp true unix true type: permission denied; held: limits true, own false, keys true true"},
		{"--connect 1", "dial false listen false udp true unix true type: permission denied; held: limits true, own false, keys true true"},
	} {
		cmd := exec.Command(self[0], self[1:]...)
		if c.options != "*" {
			args := append([]string{"confine", "--read-only", "--root", t.TempDir(), "--data-dir", filepath.Join(t.TempDir(), "data"), "--read", filepath.Dir(self[0])},
				strings.Fields(c.options)...)
			cmd = exec.Command(binary(t), append(append(args, "--"), self...)...)
		}
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "CONFINE_TEST_DIAL="+l.Addr().String())
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v, %s; want %s", c.options, err, out, c.want)
		}
	}
}

// A server that is confined does its work, and what it starts reaches nothing else: the hook here
// blocks each call if it can read a file outside.
func TestConfinedServer(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	for _, c := range []struct{ option string }{{"--confine"}, {""}} {
		dir := realDir(t)
		ws, out, conf, hook := filepath.Join(dir, "ws"), filepath.Join(dir, "out"), filepath.Join(dir, "c.toml"), filepath.Join(dir, "hook")
		rules := fmt.Sprintf("[tools.fs]\nallow_paths = [%q]\ncheckpoint_before_mutation = true\nrequire_approval = false\n[tools.fs.hooks]\n"+
			"before_tool_call = [%q]\n", ws+"/**", "/bin/sh "+hook)
		script := "#!/bin/sh\nif cat " + out + " >/dev/null 2>&1; then echo held by nobody >&2; exit 1; fi\n"
		must(t, errors.Join(os.Mkdir(ws, 0o755), os.WriteFile(out, []byte("o"), 0o644), os.WriteFile(conf, []byte(rules), 0o600),
			os.WriteFile(hook, []byte(script), 0o644)))
		file := ws + "/f"
		s := startUp(t, append([]string{"--config", conf, "--data-dir", filepath.Join(dir, "data")}, strings.Fields(c.option)...)...)
		answer := ""
		for _, call := range [][2]string{{"Write", `{"file_path":"` + file + `","content":"one"}`}, {"Edit", `{"file_path":"` + file + `","old_string":"one","new_string":"two"}`},
			{"checkpoints_list", `{}`}, {"Grep", `{"pattern":"two","path":"` + ws + `","output_mode":"content"}`}} {
			if answer = s.call(call[0], call[1]); strings.Contains(answer, `"isError":true`) != (c.option == "") {
				t.Errorf("%q: %s", c.option, answer)
			}
		}
		s.end()
		if got, _ := os.ReadFile(file); c.option != "" && (string(got) != "two" || !strings.Contains(answer, "two")) {
			t.Errorf("the file holds %q: %s", got, answer)
		}
	}
}
