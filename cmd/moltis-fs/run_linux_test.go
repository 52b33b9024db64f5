package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var long = flag.Bool("programs", false, "run the programs in their long form")

func needRuns(t *testing.T) {
	t.Helper()
	if err := runsHere(); err != nil {
		t.Skipf("SKIPPED: programs can't be run here: %v", err)
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
	{"remove below", `rm $W/sub/b`},
	{"read denied", `cat $W/secrets/k`},
	{"list denied", `ls $W/secrets/k`},
	{"find denied", `find $W | grep secrets`},
	{"read pattern", `cat $W/sub2/.env`},
	{"read git", `cat $W/sub2/.git/config`},
	{"link denied", `ln $W/secrets/k $W/sub/k && cat $W/sub/k`},
	{"second name of denied", `cat $W/second`},
	{"symlink denied", `ln -s $W/secrets/k $W/sub/s && cat $W/sub/s`},
	{"move denied", `mv $W/secrets $W/sub/moved && cat $W/sub/moved/k`},
	{"up and down", `cd $W/sub && cat ../secrets/k`},
	{"write outside", `echo x > $O/x`},
	{"link outside", `ln $O/o $W/sub/o && echo x >> $W/sub/o && grep x $O/o`},
	{"move outside", `mv $O/o $W/sub/o2`},
	{"chmod outside", `chmod 600 $O/p`},
	{"touch outside", `touch -d @1 $O/p`},
	{"by proc", `cat /proc/$PPID/root$W/secrets/k`},
	{"by the root of 1", `ls /proc/1/root$W/secrets/k || ls /proc/1/fd/*/..`},
	{"by the directory of 1", `cat /proc/1/cwd$W/secrets/k`},
	{"environment of the parent", `tr '\0' '\n' < /proc/$PPID/environ | grep .`},
	{"keys in the home", `grep . $HOME/.ssh/id_rsa`},
	{"token in the home", `grep . $HOME/.config/gh/hosts.yml`},
	{"data directory", `ls $D/audit`},
	{"configuration", `grep . $C`},
	{"start of shells", `echo x >> $HOME/.bashrc`},
	{"core pattern", `echo x > /proc/sys/kernel/core_pattern`},
	{"unmount", `umount $W`},
	{"mount", `mount -t tmpfs none /mnt`},
	{"remount", `mount -o remount,rw /`},
	{"namespace", `unshare -Urm true`},
	{"device", `mknod $W/dev b 8 0`},
	{"chroot", `chroot / true`},
	{"kill", `kill -0 $OUTSIDE`},
	{"see", `test -d /proc/$OUTSIDE`},
	{"trace", `command -v strace && timeout 2 strace -p 1 -e trace=none`},
	{"raise limits of others", `prlimit --pid $OUTSIDE --nofile`},
	{"keyring", `keyctl show @s`},
	{"abstract socket", `socat -u OPEN:/dev/null ABSTRACT-CONNECT:moltis-fs-attempts`},
	{"descriptors", `ls -l /proc/self/fd | grep -e "$O" -e "$D"`},
	{"move the root", `mv $W $W.moved`},
	{"remove the root", `rmdir $W`},
	{"system", `cat /etc/passwd && ls /etc && test -x /usr/bin/env`},
	{"temporary", `echo t > /tmp/moltis-fs-test && rm /tmp/moltis-fs-test`},
}

// shownDir is a directory that a program in a run can see: it is not below /tmp or /dev/shm.
func shownDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "moltis-fs-test-")
	if err != nil {
		if dir, err = os.MkdirTemp(os.Getenv("HOME"), "moltis-fs-test-"); err != nil {
			t.Skip("SKIPPED: there is no place for a tree outside of /tmp: ", err)
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// A run holds its program: it reaches what it may, and nothing else. Each attempt works for a shell that nobody holds, or has no program for it here.
func TestRunHolds(t *testing.T) {
	t.Parallel()
	needRuns(t)
	const open = "read, read below, list, append, new below, remove below, read git, system, temporary"
	for _, c := range []struct{ name, rules, could string }{
		{"closed", `deny_paths = ["$W/secrets/**", "**/.env"]` + "\nprotect_secret = \"allow\"\n", open + ", keys in the home, token in the home"},
		{"the defaults", `deny_paths = ["$W/secrets/**"]` + "\n", open},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := shownDir(t)
			ws, out, conf, home, data := filepath.Join(dir, "ws"), filepath.Join(dir, "out"), filepath.Join(dir, "conf/c.toml"), filepath.Join(dir, "home"), filepath.Join(dir, "data")
			for _, f := range []string{"ws/a", "ws/sub/b", "ws/sub2/.env", "ws/sub2/.git/config", "ws/secrets/k", "out/o", "out/p", "home/.ssh/id_rsa", "home/.config/gh/hosts.yml", "home/.bashrc"} {
				laid(t, filepath.Join(dir, f), "[core]\n")
			}
			must(t, errors.Join(os.Link(ws+"/secrets/k", ws+"/second"), os.Mkdir(data, 0o700)))
			laid(t, conf, strings.ReplaceAll("[tools.fs]\nworkspace_root = \"$W\"\nallow_paths = [\"$W/**\"]\nrequire_approval = false\n"+c.rules, "$W", ws))
			var script strings.Builder
			for _, a := range attempts {
				fmt.Fprintf(&script, "(%s) >/dev/null 2>&1 && printf '%%s, ' '%s'\n", a.command, a.name)
			}
			cmd := exec.Command(binary(t), "run", "--config", conf, "--data-dir", data, "--", "sh", "-c", script.String()+"true")
			cmd.Env = append(os.Environ(), "W="+ws, "O="+out, "HOME="+home, "D="+data, "C="+conf, fmt.Sprint("OUTSIDE=", os.Getpid()))
			var errs bytes.Buffer
			cmd.Stderr = &errs
			got, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, &errs)
			}
			want, have := strings.Split(c.could, ", "), strings.Split(strings.TrimSuffix(string(got), ", "), ", ")
			slices.Sort(want)
			slices.Sort(have)
			if !slices.Equal(want, have) {
				t.Errorf("it could\n%q; want\n%q\n%s", have, want, &errs)
			}
		})
	}
}

// oracles are programs that change a tree: each is laid out by a script, and then run, as it is or in a run.
var oracles = []struct {
	name, needs  string
	lay, program string
}{
	{"sed", "sed", `i=0; while [ $i -lt $N ]; do echo "line old $i" > f$i; i=$((i+1)); done`, `sed -i s/old/new/ f*`},
	{"make", "make cc", `printf 'int f(void){return 1;}\n' > f.c; printf 'a.o: f.c\n\tcc -c -o a.o f.c\nclean:\n\trm -f a.o\n' > Makefile`, `make -s && make -s clean && make -s`},
	{"rsync", "rsync", `mkdir -p from/d; echo a > from/a; echo b > from/d/b; ln from/a from/hard; ln -s a from/soft; mkdir to; echo gone > to/gone`, `rsync -aH --delete from/ to/`},
	{"sqlite", "sqlite3", `sqlite3 db 'create table t(x); insert into t values (1)'`, `sqlite3 db 'pragma journal_mode=wal; pragma mmap_size=100000; insert into t select x+1 from t; select count(*) from t'; sqlite3 db .dump > dump`},
	{"ed", "ed", `printf 'one\ntwo\n' > f`, `printf 'g/one/s//ONE/\nw\nq\n' | ed -s f`},
	{"vim", "vim", `printf 'one\ntwo\n' > f`, `vim -es -u NONE -c '%s/one/ONE/' -c wq f`},
	{"tar", "tar", `mkdir -p s/shut/in; echo x > s/shut/in/f; ln s/shut/in/f s/hard; ln -s shut s/soft; chmod 0500 s/shut; tar --mtime=@1 -cf t.tar s; chmod 0700 s/shut; rm -r s`, `tar xpf t.tar`},
	{"git rebase", "git", `git init -q -b main . && git config user.email a@b && git config user.name n && git config gc.auto 0 && echo 1 > a && git add a && git commit -qm 1 && git checkout -qb side && echo s > s && git add s && git commit -qm s && git checkout -q main && echo 2 > a && git commit -qam 2 && git checkout -q side`,
		`git rebase -q main && git fsck --strict && test "$(git status --porcelain)" = "" && git log --format=%s`},
	{"npm", "npm", `mkdir -p pkg/lib && printf '{"name":"pkg","version":"1.0.0","bin":{"pkg":"lib/i.js"}}' > pkg/package.json && printf '#!/usr/bin/env node\n' > pkg/lib/i.js && (cd pkg && npm pack --silent >/dev/null) && mv pkg/pkg-1.0.0.tgz . && rm -r pkg && printf '{"name":"x","version":"1.0.0"}' > package.json && echo node_modules > .gitignore`,
		`npm install --offline --no-audit --no-fund --silent ./pkg-1.0.0.tgz`},
	{"go generate", "go", `printf 'module x\n\ngo 1.21\n' > go.mod; printf 'package x\n\n//go:generate sh -c "echo package x > gen.go; gofmt -w gen.go"\n' > x.go`, `GOFLAGS= GOCACHE=/tmp/gocache GOTOOLCHAIN=local go generate ./...`},
	{"directories", "mv cp", `mkdir -p a/b/c; echo x > a/b/c/f; echo y > a/b/g; mkdir -m 0500 shut`, `mv a/b z; cp -a z y; rm -r a; rmdir shut; mkdir -m 0700 shut; ln -s z a; chmod 0640 z/g`},
	{"odd", "touch", `mkdir d; echo x > d/f`, `rm -r d; echo file > d; touch "$(printf 'new\nline')" 'a b' -- -x; mkdir -p e/f; chmod 0500 e/f; rm -f nothing`},
}

// Programs leave in a run what they leave without, and an undo takes it back: content, kind, mode, links. With -programs each does so as root and as an ordinary user.
func TestRunPrograms(t *testing.T) {
	t.Parallel()
	needRuns(t)
	n := "200"
	if *long {
		n = "3000"
	}
	for i, as := range []string{"root", "user"} {
		for k, o := range oracles {
			if !*long && os.Geteuid() == 0 && k%2 != i { // by turns
				continue
			}
			t.Run(as+" "+o.name, func(t *testing.T) {
				t.Parallel()
				for _, p := range strings.Fields(o.needs) {
					if _, err := exec.LookPath(p); err != nil {
						t.Skipf("SKIPPED: there is no %s", p)
					}
				}
				s := unprivileged(t)
				if as == "root" {
					if os.Geteuid() != 0 {
						t.Skip("SKIPPED: this is not root")
					}
					s.uid, s.gid = 0, 0
					must(t, errors.Join(os.Chown(s.ws, 0, 0), os.Chown(s.home, 0, 0)))
				}
				direct := filepath.Join(filepath.Dir(s.ws), "direct")
				must(t, errors.Join(os.Mkdir(direct, 0o755), os.Chown(direct, s.uid, s.gid)))
				conf := filepath.Join(filepath.Dir(s.ws), "on.toml")
				must(t, os.WriteFile(conf, []byte("[tools.fs]\ncheckpoint_before_mutation = true\nrequire_approval = false\nprotect_exec = \"allow\"\n[tools.run]\nkeep_ignored = true\n"), 0o644))
				shell := func(dir, script string, command ...string) string {
					t.Helper()
					cmd := exec.Command("sh", "-c", script)
					if command != nil {
						cmd = exec.Command(command[0], append(command[1:], "sh", "-c", script)...)
					}
					cmd.Dir = dir
					cmd.Env = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "N=" + n, "MOLTIS_CONFIG=" + conf, "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z", "LC_ALL=C"}
					cmd.SysProcAttr = &syscall.SysProcAttr{}
					if os.Geteuid() == 0 {
						cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.gid)}
					}
					out, err := cmd.CombinedOutput()
					if err != nil {
						t.Fatalf("%s: %v\n%s", script, err, out)
					}
					return string(out)
				}
				shell(direct, "umask 022; "+o.lay)
				shell(s.ws, "umask 022; "+o.lay)
				before := picture(t, s.ws)
				shell(direct, "umask 022; "+o.program)
				said := shell(s.ws, "umask 022; "+o.program, s.program, "run", "--root", s.ws, "--")
				want, got := picture(t, direct), picture(t, s.ws)
				if diff := differences(want, got); diff != "" {
					t.Errorf("after the run, beside the program alone:\n%s\n%s", diff, said)
				}
				if maps.Equal(before, got) {
					t.Errorf("nothing was changed: %s", said)
				}
				if out, status := s.run("undo", "--yes", "--root", s.ws); status != 0 {
					t.Fatalf("undo: %s", out)
				}
				if diff := differences(before, picture(t, s.ws)); diff != "" {
					t.Errorf("after the undo, beside what was there:\n%s\n%s", diff, said)
				}
			})
		}
	}
}

// picture gives what is at each name below dir: kind, mode, content, and the first of the names of the same file. Of git's index and logs,
// which hold times, and of npm's record of the same only that they are there; and of SQLite's files what it reads from them.
func picture(t *testing.T, dir string) map[string]string {
	t.Helper()
	out, names := map[string]string{}, map[uint64]string{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(p, dir), "/")
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil || rel == "" {
			return err
		}
		what := fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			to, err := os.Readlink(p)
			out[rel] = what + " -> " + to
			return err
		case unix.S_IFREG:
			b, err := os.ReadFile(p)
			if base := filepath.Base(p); strings.Contains(rel, ".git/") && (base == "index" || strings.Contains(rel, "logs/")) || base == ".package-lock.json" ||
				strings.HasSuffix(base, ".o") || bytes.HasPrefix(b, []byte("SQLite")) {
				b = nil
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(b))[:13]
			if st.Nlink > 1 {
				if names[st.Ino] == "" {
					names[st.Ino] = rel
				}
				what += fmt.Sprintf(" %d names, as %s", st.Nlink, names[st.Ino])
			}
			if err != nil {
				return err
			}
		}
		out[rel] = what
		if d.IsDir() && st.Mode&0o700 != 0o700 && os.Geteuid() != 0 {
			return filepath.SkipDir
		}
		return nil
	}))
	return out
}

func differences(want, got map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			fmt.Fprintf(&b, "%q: %s; want %s\n", name, got[name], want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == "" {
			fmt.Fprintf(&b, "%q: %s; want nothing\n", name, got[name])
		}
	}
	return b.String()
}

// A shell on a terminal has one of its own, and Ctrl-C ends what it runs, not the run. Its changes are asked about when it says so, and at its end.
func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	needRuns(t)
	dir := realDir(t)
	ws := filepath.Join(dir, "ws")
	laid(t, ws+"/a", "one\n")
	b, err := os.ReadFile(binary(t)) // which is in /tmp, and that is another one there
	must(t, errors.Join(err, os.WriteFile(ws+"/"+fileName, b, 0o755)))
	tty := openTerminal(t)
	cmd := exec.Command(binary(t), "run", "--root", ws, "--data-dir", filepath.Join(dir, "data"), "--", "sh")
	cmd.Dir, cmd.Env = ws, append(os.Environ(), "PS1=> ", "NO_COLOR=1", "TERM=dumb")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty.end, tty.end, tty.end
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	interrupts := make(chan os.Signal, 1) // where whoever started the tests has them ignored, so would the programs
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	must(t, cmd.Start())
	for _, step := range []struct{ types, shows string }{
		{"", "> "},
		{"tty; test -t 0 && echo a terminal\n", "a terminal\r\n> "},
		{"sh -c 'echo star\"\"ted; exec sleep 1000'\n", "started\r\n"}, // it says so itself: Ctrl-C is for the shell until it has begun
		{"\x03", "> "},
		{"echo two >> a; mkdir d; echo x > d/f; echo y > d/g; echo do''ne\n", "done\r\n> "},
		{"sleep 1000 &\n", "> "},
		{"./" + fileName + " run commit\n", "other programs run in this shell"},
		{"kill $!; wait; cd d\n", "> "},
		{"../" + fileName + " run commit\n", "[y/N"},
		{"y\n", "changed 4 paths"},
		{"", "> "},
		{"cd ..\n", "> "}, // it was in d
		{"rm d/f; echo three >> a; echo left\n", "left\r\n"},
		{"exit 5\n", "[y/N"},
		{"y\n", "changed 2 paths"},
	} {
		_, err := io.WriteString(tty.host, step.types)
		must(t, err)
		tty.until(t, step.shows)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Error(err)
	}
	got, _ := os.ReadFile(ws + "/a")
	names, _ := os.ReadDir(ws + "/d")
	if string(got) != "one\ntwo\nthree\n" || len(names) != 1 || names[0].Name() != "g" {
		t.Errorf("%q %v", got, names)
	}
}
