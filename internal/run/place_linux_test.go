//go:build !rooted

package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// until waits for something that another process or the kernel does.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for begun := time.Now(); !f(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatal("it did not come: ", what)
		}
	}
}

// Programs begin, end and tell how; what they leave running ends with them.
func TestPrograms(t *testing.T) {
	both(t, func(t *testing.T) {
		o := options(t)
		lay(t, o.Root+"/a", o.Root+"/sub/b")
		must(t, os.WriteFile(o.Root+"/plain", []byte("x"), 0o644))
		r := made(t, o)
		for _, c := range []struct {
			args   []string
			dir    string
			want   Status
			output string
		}{
			{[]string{"sh", "-c", "exit 7"}, "", Status{Code: 7}, ""},
			{[]string{"sh", "-c", "kill -9 $$"}, "", Status{Code: 137, Signal: unix.SIGKILL}, ""},
			{[]string{"sh", "-c", "kill -TERM $$"}, "", Status{Code: 143, Signal: unix.SIGTERM}, ""},
			{[]string{"sh", "-c", "kill -9 1; kill -STOP 1; kill -TERM 1; echo on"}, "", Status{}, "on\n"},
			{[]string{"no-such-program"}, "", Status{Code: 127}, ""},
			{[]string{"./plain"}, "", Status{Code: 126}, ""},
			{[]string{"./missing"}, "", Status{Code: 127}, ""},
			{[]string{"cat", "b"}, o.Root + "/sub", Status{}, "content of b\n"},
			{[]string{"sh", "-c", "(sleep 100; echo late >> a) & setsid sh -c 'sleep 100' & echo now"}, "", Status{}, "now\n"},
			{[]string{"sh", "-c", "cat; tty; ps 2>/dev/null | wc -l >/dev/null"}, "", Status{}, "in\nnot a tty\n"},
			{[]string{"sh", "-c", "exec >&- 2>&-; exit 3"}, "", Status{Code: 3}, ""},
			{[]string{"ls", "/proc/self/fd"}, "", Status{}, "0\n1\n2\n3\n"},
			{[]string{"printf", "%s", "\xff\xfe"}, "", Status{}, "\xff\xfe"},
		} {
			var b bytes.Buffer
			q, err := r.Start(t.Context(), Program{Args: c.args, Dir: c.dir, Stdin: strings.NewReader("in\n"), Stdout: &b, Stderr: &b, Env: os.Environ()})
			must(t, err)
			if second, err := r.Start(t.Context(), Program{Args: []string{"true"}}); err == nil { // the first has ended
				_, err = second.Wait()
				must(t, err)
			} else if !refuses(err, "a program runs in the run") {
				t.Errorf("a second program at once: %v", err)
			}
			got, err := q.Wait()
			if failed := got.Err != ""; failed != (c.want.Code == 126 || c.want.Code == 127) {
				t.Errorf("%q: %v", c.args, got.Err)
			}
			got.Err = ""
			if err != nil || got != c.want || c.output != "" && b.String() != c.output {
				t.Errorf("%q: %v %v %q; want %v %q", c.args, got, err, &b, c.want, c.output)
			}
		}
		if _, err := r.Start(t.Context(), Program{Args: []string{"true"}, Dir: "/no/such"}); !refuses(err, "can't begin in /no/such") {
			t.Errorf("in a directory that is missing: %v", err)
		}
		if out, _ := shell(t, r, "echo more >> a; mkdir d; mv sub/b d/c"); out != "" {
			t.Error(out)
		}
		other := made(t, o) // at once, over the same root
		if out, _ := shell(t, other, "cat a; ls; echo other >> a"); !strings.HasPrefix(out, "content of a\na\nplain\nsub\n") {
			t.Error(out)
		}
		if out, _ := shell(t, r, "cat a; ls d"); out != "content of a\nmore\nc\n" {
			t.Error(out)
		}
		if b, _ := os.ReadFile(o.Root + "/a"); string(b) != "content of a\n" {
			t.Errorf("the root has changed: %q", b)
		}
		must(t, r.Close())
		if _, err := Open(o.Data, other.ID()); !refuses(err, "open in another process") {
			t.Errorf("a run that is open: %v", err)
		}
		if _, err := Open(o.Data, "run-0000"); !refuses(err, "there is no run") {
			t.Errorf("a run that is not there: %v", err)
		}
		if _, err := Open(o.Data, "../../x"); !refuses(err, "there is no run") {
			t.Errorf("a run that is not there: %v", err)
		}
		again, err := Open(o.Data, r.ID())
		must(t, err)
		*r = *again // for the cleanup
		if out, _ := shell(t, r, "cat a; ls d; rm -r d"); out != "content of a\nmore\nc\n" {
			t.Error(out)
		}
		if all, err := List(o.Data); err != nil || len(all) != 0 {
			t.Errorf("runs that are open are listed: %+v %v", all, err)
		}
		must(t, r.Close())
		all, err := List(o.Data)
		if err != nil || len(all) != 1 || all[0].ID != r.ID() || all[0].Torn || all[0].Root != o.Root || !strings.HasSuffix(all[0].Command, " -c cat a; ls d; rm -r d") {
			t.Errorf("%+v %v", all, err)
		}
		again, err = Open(o.Data, r.ID())
		must(t, err)
		*r = *again
		if err := r.Renew(Options{Root: realTemp(t), Data: o.Data}); !refuses(err, "is over "+o.Root) {
			t.Errorf("over another root: %v", err)
		}
		more := o
		more.Hidden = append(more.Hidden, "plain")
		if err := r.Renew(more); !refuses(err, "when less was closed") {
			t.Errorf("with more hidden: %v", err)
		}
		more = o
		more.Limits.Disk = 1 << 20
		must(t, r.Renew(more))
		if _, s := shell(t, r, "head -c 3000000 /dev/zero > big"); s.Code == 0 {
			t.Errorf("the limit of later is not that of the run: %v", s)
		}
	})
}

// refuses says that err is the refusal with these words, and says what to change.
func refuses(err error, words string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && strings.Contains(e.Error(), words) && e.Do != ""
}

// Each limit ends a program and all that it has started, and says so.
func TestLimits(t *testing.T) {
	both(t, func(t *testing.T) {
		for _, c := range []struct {
			name, script string
			limits       Limits
			want         Limit
		}{
			{"time", "sleep 100", Limits{Time: 50 * time.Millisecond}, LimitTime},
			{"enough", "echo 12345; echo 12345 >&2", Limits{Time: time.Hour, Disk: 1 << 20, Processes: 20}, ""},
			{"files", "i=0; while true; do i=$((i+1)); head -c 100000 /dev/zero >f$i; done", Limits{Disk: 5 << 20}, LimitDisk},
			{"files in /tmp", "i=0; while true; do i=$((i+1)); head -c 100000 /dev/zero >/tmp/f$i; done", Limits{Disk: 5 << 20}, LimitDisk},
			{"fork bomb", "b() { sleep 0.02; b | b & }; b; sleep 100", Limits{Processes: 30}, LimitProcesses},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				o := options(t)
				o.Limits = c.limits
				r := made(t, o)
				out, s := shell(t, r, c.script)
				if s.Limit != c.want || (c.want != "") != (s.Signal == unix.SIGKILL) {
					t.Errorf("%+v %s", s, out)
				}
			})
		}
		t.Run("one file", func(t *testing.T) {
			o := options(t)
			o.Limits.Disk = 1 << 20
			r := made(t, o)
			out, s := shell(t, r, "head -c 10000000000 /dev/zero > big; wc -c < big")
			if s.Code != 0 || !strings.HasSuffix(out, "1048576\n") {
				t.Error(s, out)
			}
		})
		t.Run("context", func(t *testing.T) {
			r := made(t, options(t))
			ctx, cancel := context.WithCancel(t.Context())
			q, err := r.Start(ctx, Program{Args: []string{"sleep", "100"}, Env: os.Environ()})
			must(t, err)
			cancel()
			if s, err := q.Wait(); err != nil || s.Signal != unix.SIGKILL || s.Limit != "" {
				t.Error(s, err)
			}
		})
	})
}

// Drop removes all that a program leaves behind, of any kind.
func TestDrop(t *testing.T) {
	if os.Getenv("DROP_TEST") != "" { // inside: a name of 60,000 bytes
		name := strings.Repeat("0123456789", 20)
		for range 300 {
			must(t, os.Mkdir(name, 0o700))
			must(t, unix.Chdir(name))
		}
		must(t, os.WriteFile("f", nil, 0o600))
		return
	}
	both(t, func(t *testing.T) {
		o := options(t)
		lay(t, o.Root+"/dir/f")
		b, err := os.ReadFile(os.Args[0])
		must(t, errors.Join(err, os.WriteFile(o.Root+"/self", b, 0o755)))
		r := made(t, o)
		out, s := shell(t, r, `set -e
rm -r dir; mkfifo dir
mkdir -p shut/in/deeper odd; echo x > shut/in/f; mkfifo shut/in/p; chmod 0 shut/in/deeper shut/in shut; mkdir ro; echo x > ro/f; mkdir ro/d; chmod 0500 ro
echo x > odd/$(printf '\377\376'); echo x > "odd/$(printf 'new\nline')"; ln -s / odd/link
mkdir -p /tmp/a/b; chmod 0 /tmp/a/b; ./self -test.run='^TestDrop$'`, "DROP_TEST=1")
		if s.Code != 0 {
			t.Fatal(s, out)
		}
		dir := r.dir
		must(t, r.Drop())
		if _, err := os.Lstat(dir); err == nil {
			t.Error("it is there still")
		}
		if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) > 0 {
			t.Error(left)
		}
		if names, _ := os.ReadDir(o.Root); len(names) != 2 {
			t.Error("the root has changed:", names)
		}
	})
}

// A run that can't be had is refused, with the reason.
func TestRefused(t *testing.T) {
	both(t, func(t *testing.T) {
		o := options(t)
		lay(t, o.Root+"/foreign/f", o.Root+"/f")
		dir := filepath.Dir(o.Root)
		must(t, os.Symlink(o.Root, dir+"/link"))
		must(t, os.MkdirAll(o.Data+"/below", 0o700))
		made(t, o)
		for name, c := range map[string]struct {
			change func(*Options)
			want   string
		}{
			"the root of all":         {func(o *Options) { o.Root = "/" }, "the root is /"},
			"the kernel's":            {func(o *Options) { o.Root = "/proc/self" }, "the root is /proc/self"},
			"by a link":               {func(o *Options) { o.Root = dir + "/link" }, "a link leads to it"},
			"missing":                 {func(o *Options) { o.Root = dir + "/missing" }, "the root is no directory"},
			"a file":                  {func(o *Options) { o.Root += "/f" }, "the root is no directory"},
			"in the data":             {func(o *Options) { o.Root = o.Data + "/below" }, "lies in the data directory"},
			"writable root":           {func(o *Options) { o.Write = []string{o.Root} }, "can't be writable"},
			"writable in the root":    {func(o *Options) { o.Write = []string{o.Root + "/foreign"} }, "can't be writable"},
			"writable over the root":  {func(o *Options) { o.Write = []string{dir} }, "can't be writable"},
			"writable data":           {func(o *Options) { o.Write = []string{o.Data + "/below"} }, "can't be writable"},
			"writable over concealed": {func(o *Options) { o.Write, o.Conceal = []string{"/usr"}, []string{"/usr/bin"} }, "/usr/bin is in it"},
		} {
			o := o
			c.change(&o)
			err := Probe(o)
			if !refuses(err, c.want) {
				t.Errorf("%s: %v; want %s", name, err, c.want)
			}
		}
		left, _ := os.ReadDir(filepath.Join(o.Data, "runs"))
		if len(left) != 1 {
			t.Error("left behind:", left)
		}
	})
}

// Roots and data directories in unusual places.
func TestPlaces(t *testing.T) {
	both(t, func(t *testing.T) {
		tmp, err := filepath.EvalSymlinks(t.TempDir())
		must(t, err)
		for name, o := range map[string]Options{
			"below /tmp":           {Root: tmp + "/a b,c:d\\e\n/root", Data: tmp + "/data"},
			"below /dev/shm":       {Root: "/dev/shm/moltis-fs-test-" + strconv.Itoa(os.Getpid()), Data: tmp + "/data2"},
			"data in the root":     {Root: tmp + "/around", Data: tmp + "/around/x/data"},
			"secrets in the root":  {Root: tmp + "/secrets", Data: tmp + "/data3", Conceal: []string{tmp + "/secrets/x/key", tmp + "/missing"}},
			"not UTF-8":            {Root: tmp + "/\xff\xfe", Data: tmp + "/\xfe"},
			"cache below /var/tmp": {Root: tmp + "/cached", Data: tmp + "/data4", Write: []string{tmp + "/cache"}},
		} {
			must(t, errors.Join(os.MkdirAll(o.Root+"/x", 0o755), os.MkdirAll(o.Data, 0o700), os.MkdirAll(tmp+"/cache", 0o755)))
			defer os.RemoveAll(o.Root)
			must(t, os.WriteFile(o.Root+"/x/key", []byte("k"), 0o600))
			must(t, os.WriteFile(o.Root+"/x/f", []byte("f"), 0o600))
			r := made(t, o)
			out, s := shell(t, r, `cat x/f; ls x; echo y > x/new; ls "$D" 2>/dev/null; [ ! -d "$C" ] || echo z > "$C/z"`, "D="+o.Data, "C="+tmp+"/cache")
			want := "ff\nkey\n"
			if len(o.Conceal) > 0 {
				want = "ff\n"
			}
			if out != want || s.Code != 0 {
				t.Errorf("%s: %q %v", name, out, s)
			}
			b, err := os.ReadFile(r.Upper().Dir + "/x/new")
			if _, there := os.Lstat(o.Root + "/x/new"); err != nil || string(b) != "y\n" || there == nil {
				t.Errorf("%s: %q %v", name, b, err)
			}
			must(t, r.Drop())
		}
		if _, err := os.Lstat(tmp + "/cache/z"); err != nil {
			t.Error(err)
		}
	})
}

// Mounts below the root, and data directories that can't have an upper layer. It has mounts of its own.
func TestMounts(t *testing.T) {
	base := os.Getenv("MOUNTS_TEST")
	if os.Getuid() != 0 && base == "" {
		t.Skip("SKIPPED: only root mounts")
	}
	if base == "" {
		base = realTemp(t)
		must(t, os.Chmod(base, 0o755))
		cmd := exec.Command(os.Args[0], "-test.run=^TestMounts$", "-test.v")
		cmd.Env = append(os.Environ(), "MOUNTS_TEST="+base)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		} else if t.Logf("%s", out); bytes.Contains(out, []byte("SKIPPED")) {
			t.Skip()
		}
		return
	}
	o := Options{Root: base + "/root", Data: base + "/data", Network: true}
	over, full := o, o
	over.Data, full.Data = base+"/over", base+"/full"
	foreign := o
	foreign.Root = base + "/foreign"
	hidden := foreign
	hidden.Root, hidden.Hidden = base+"/hidden", []string{"dir/f"}
	if os.Getuid() == 0 {
		lay(t, o.Root+"/mnt/under", o.Root+"/f", foreign.Root+"/f", hidden.Root+"/dir/f")
		for _, d := range []string{o.Data, over.Data, full.Data, base + "/l", base + "/u", base + "/w"} {
			must(t, os.Mkdir(d, 0o700))
		}
		must(t, made(t, o).Drop())
		must(t, unix.Mount("none", o.Root+"/mnt", "tmpfs", 0, ""))
		must(t, unix.Mount("none", full.Data, "tmpfs", 0, "size=1m"))
		must(t, unix.Mount("none", over.Data, "overlay", 0, "lowerdir="+base+"/l,upperdir="+base+"/u,workdir="+base+"/w"))
	}
	if err := Probe(o); !refuses(err, "mounted at "+o.Root+"/mnt") {
		t.Errorf("a mount below the root: %v", err)
	}
	fr := full
	fr.Root = hidden.Root
	if os.Getuid() != 0 {
		if err := Probe(foreign); !refuses(err, "belongs to another user or group") {
			t.Errorf("a foreign root: %v", err)
		}
		if err := Probe(hidden); !refuses(err, "can't be kept from the program") {
			t.Errorf("a hidden name in a foreign directory: %v", err)
		}
	}
	over.Root = hidden.Root
	if err := Probe(over); !refuses(err, "overlay") {
		t.Errorf("data on an overlay: %v", err)
	}
	r := made(t, fr)
	if out, s := shell(t, r, "head -c 10000000 /dev/zero > big && echo ok; echo y > small; cat dir/f"); s.Code != 0 || strings.Contains(out, "ok") || !strings.Contains(out, "content of f") {
		t.Errorf("a full upper layer: %q %v", out, s)
	}
	must(t, r.Drop())
	if os.Getuid() == 0 {
		for _, d := range []string{o.Root, o.Data, over.Data, full.Data, hidden.Root} {
			must(t, os.Chown(d, somebody, somebody))
		}
		for _, o := range []Options{o, over, full} {
			must(t, os.RemoveAll(runs(o.Data)))
		}
		must(t, os.Chown(foreign.Root, somebody, 0))
		asSomebody(t, exec.Command("", "-test.run=^TestMounts$"))
	}
}

// A run in a run is refused.
func TestNested(t *testing.T) {
	if root := os.Getenv("NESTED_TEST"); root != "" {
		fmt.Println("reason:", Probe(Options{Root: root, Data: "/tmp/data"}))
		return
	}
	both(t, func(t *testing.T) {
		o := options(t)
		b, err := os.ReadFile(os.Args[0])
		must(t, errors.Join(err, os.WriteFile(o.Root+"/self", b, 0o755)))
		r := made(t, o)
		out, _ := program(t, r, Program{Args: []string{"./self", "-test.run=^TestNested$"}, Env: []string{"NESTED_TEST=" + o.Root}})
		if !strings.Contains(out, "reason: this is inside of a run already\n") {
			t.Error(out)
		}
	})
}

// An interactive shell has a terminal of its own, with job control; ours is raw meanwhile, and what is typed after the end is ours.
func TestTerminal(t *testing.T) {
	master, slave, err := terminal()
	if err != nil {
		t.Skip("SKIPPED: no terminal: ", err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIPPED: no bash")
	}
	user, ours := os.NewFile(uintptr(master), "user"), os.NewFile(uintptr(slave), "ours")
	defer user.Close()
	defer ours.Close()
	must(t, unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77}))
	before, err := unix.IoctlGetTermios(slave, unix.TCGETS)
	must(t, err)
	r := made(t, options(t))
	var mu sync.Mutex
	var screen strings.Builder
	go func() {
		for in := bufio.NewReader(user); ; {
			b, err := in.ReadByte()
			if err != nil {
				return
			}
			mu.Lock()
			screen.WriteByte(b)
			mu.Unlock()
		}
	}()
	shown := 0
	expect := func(what string) {
		t.Helper()
		begun := time.Now()
		for {
			mu.Lock()
			at := strings.Index(screen.String()[shown:], what)
			if at >= 0 {
				shown += at + len(what)
			}
			all := screen.String()
			mu.Unlock()
			if at >= 0 {
				return
			}
			if time.Since(begun) > 10*time.Second {
				t.Fatalf("no %q in %q", what, all)
			}
			time.Sleep(time.Millisecond)
		}
	}
	typed := func(s string) {
		t.Helper()
		_, err := io.WriteString(user, s)
		must(t, err)
	}
	q, err := r.Start(t.Context(), Program{Args: []string{bash, "--norc", "--noediting", "-i"}, Env: append(os.Environ(), "PS1=ready> ", "TERM=dumb"), Stdin: ours, Stdout: ours, Terminal: true})
	must(t, err)
	expect("ready> ")
	for _, step := range [][2]string{
		{"tty\n", "/dev/pts/0"}, {"", "ready> "},
		{"stty size\n", "33 77"}, {"", "ready> "},
		{"sh -c 'echo $((40+1)); exec cat'\n", "41"}, // it has the terminal
		{"one\n", "one\r\none"},                      // the terminal's echo, and cat's
		{"\x03", "ready> "},
		{"echo status $?\n", "status 130"}, {"", "ready> "},
		{"sh -c 'echo $((40+1)); exec cat'\n", "41"},
		{"two\n", "two\r\ntwo"},
		{"\x1a", "Stopped"}, {"", "ready> "},
		{"fg\n", "exec cat'\r\n"},
		{"three\n", "three\r\nthree"},
		{"\x03", "ready> "},
		{"cat\n", "cat"},
		{"\x04", "ready> "},
		{"echo $((40+2)) > /dev/tty\n", "42"}, {"", "ready> "},
	} {
		typed(step[0])
		expect(step[1])
	}
	must(t, unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, &unix.Winsize{Row: 11, Col: 55}))
	must(t, q.Signal(unix.SIGWINCH))
	typed("stty size\n")
	expect("11 55")
	expect("ready> ")
	typed("exit 5\n")
	if s, err := q.Wait(); err != nil || s.Code != 5 {
		t.Error(s, err)
	}
	if now, err := unix.IoctlGetTermios(slave, unix.TCGETS); err != nil || !reflect.DeepEqual(now, before) {
		t.Error("the terminal is not as it was")
	}
	typed("after\n")
	if line, err := bufio.NewReader(ours).ReadString('\n'); err != nil || line != "after\n" {
		t.Errorf("after it %q, %v", line, err)
	}
}

var deaths = flag.Int("deaths", 6, "how often TestDeaths kills the process, at moments of a run that lie evenly; 1000 in a soak")

// Whenever the process that runs a program is killed, the program ends, the root is as it was, and the run is offered or gone.
func TestDeaths(t *testing.T) {
	if root := os.Getenv("DEATHS_TEST"); root != "" {
		r, err := New(Options{Root: root, Data: filepath.Dir(root) + "/data", Network: true, Hidden: []string{".env"}})
		must(t, err)
		q, err := r.Start(t.Context(), Program{Args: []string{"sh", "-c", "echo half > half; echo x > a; echo begun; while echo y; do :; done > log"}, Env: os.Environ(), Stdout: os.Stdout})
		must(t, err)
		_, _ = q.Wait()
		must(t, r.Drop())
		return
	}
	both(t, func(t *testing.T) {
		o := options(t)
		lay(t, o.Root+"/a", o.Root+"/.env")
		made(t, o)
		kept, steps := 0, *deaths
		var begun time.Duration // how long it takes
		for i := range steps {
			cmd := exec.Command(os.Args[0], "-test.run=^TestDeaths$")
			cmd.Env = append(os.Environ(), "DEATHS_TEST="+o.Root)
			out, err := cmd.StdoutPipe()
			must(t, err)
			start := time.Now()
			must(t, cmd.Start())
			if i == 0 { // it is killed when the program has made changes
				line, err := bufio.NewReader(out).ReadString('\n')
				if err != nil || line != "begun\n" {
					t.Fatal(line, err)
				}
				begun = time.Since(start)
			} else { // and somewhere on the way to there
				<-time.After(begun * time.Duration(i) / time.Duration(steps))
			}
			must(t, cmd.Process.Kill())
			_ = cmd.Wait()
			until(t, "all ends", func() bool {
				all, err := List(o.Data)
				must(t, err)
				there, _ := filepath.Glob(runs(o.Data) + "/*/record")
				return len(all) == len(there)
			})
			all, err := List(o.Data)
			must(t, err)
			for _, run := range all {
				r, err := Open(o.Data, run.ID)
				must(t, err)
				_, half := os.Lstat(r.Upper().Dir + "/half")
				size := func() (n int64) {
					if info, err := os.Lstat(r.Upper().Dir + "/log"); err == nil {
						n = info.Size()
					}
					return n
				}
				for n, begun := size(), time.Now(); time.Since(begun) < 3*time.Millisecond; {
					if size() != n {
						t.Fatal("the program writes on")
					}
				}
				got, s := shell(t, r, "rm -f log; cat half a; ls -A")
				want := "cat: half: No such file or directory\ncontent of a\na\n"
				if half == nil {
					want = ""
				}
				if i == 0 {
					want = "half\nx\na\nhalf\n"
				}
				if s.Code != 0 || want != "" && got != want {
					t.Errorf("after %d: %q, want %q", i, got, want)
				}
				must(t, r.Drop())
				kept++
			}
			if b, _ := os.ReadFile(o.Root + "/a"); string(b) != "content of a\n" {
				t.Fatalf("the root has changed: %q", b)
			}
		}
		if kept == 0 {
			t.Error("none was kept")
		}
		must(t, sweep(o.Data))
		if left, _ := os.ReadDir(filepath.Join(o.Data, "runs")); len(left) != 1 {
			t.Error("left behind:", left)
		}
	})
}

// A run whose helper is on its way out is opened when that has ended.
func TestOpenWaits(t *testing.T) {
	o := options(t)
	r := made(t, o)
	shell(t, r, "echo x > f")
	must(t, r.Close())
	cmd := exec.Command("sleep", "1000") // in the helper's place
	must(t, cmd.Start())
	defer cmd.Process.Kill()
	began, _ := seen(strconv.Itoa(cmd.Process.Pid))
	must(t, os.WriteFile(r.file("lock"), fmt.Appendf(nil, "%d %s\n", cmd.Process.Pid, began), 0o600))
	opened := make(chan error)
	go func() {
		again, err := Open(o.Data, r.ID())
		if err == nil {
			err = again.Drop()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("it was opened: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	must(t, cmd.Process.Kill())
	must(t, <-opened) // it is a zombie now
	_ = cmd.Wait()
}

// Directories with hidden names in them look as they did.
func TestLaid(t *testing.T) {
	both(t, func(t *testing.T) {
		o := options(t)
		lay(t, o.Root+"/a/b/.env", o.Root+"/a/b/f", o.Root+"/a/.env", o.Root+"/.env")
		dirs := []string{"a/b", "a", "."}
		for i, d := range dirs {
			d = filepath.Join(o.Root, d)
			must(t, unix.Setxattr(d, "user.x", []byte(d), 0))
			must(t, os.Chmod(d, []os.FileMode{0o500, 0o711 | os.ModeSticky, 0o755 | os.ModeSetgid}[i]))
			must(t, os.Chtimes(d, time.Unix(1, 0), time.Unix(int64(1000+i), 5)))
		}
		o.Hidden = []string{"a/b/.env", ".env", "a/.env", "a/b/.env/x", "f/y"}
		r := made(t, o)
		for _, d := range dirs {
			var was, is unix.Stat_t
			must(t, errors.Join(unix.Lstat(filepath.Join(o.Root, d), &was), unix.Lstat(filepath.Join(r.Upper().Dir, d), &is)))
			b := make([]byte, 1000)
			n, err := unix.Getxattr(filepath.Join(r.Upper().Dir, d), "user.x", b)
			if was.Mode != is.Mode || was.Uid != is.Uid || was.Gid != is.Gid || was.Mtim != is.Mtim || err != nil || string(b[:n]) != filepath.Join(o.Root, d) {
				t.Errorf("%s: %o %v, was %o %v; %q %v", d, is.Mode, is.Mtim, was.Mode, was.Mtim, b[:max(n, 0)], err)
			}
		}
		if out, _ := shell(t, r, "find . -name .env; stat -c '%a %Y' . a a/b"); out != "2755 1002\n1711 1001\n500 1000\n" {
			t.Error(out)
		}
		if laid := strings.Join(r.Upper().Laid, " "); laid != ".env a/.env a/b/.env" {
			t.Error(laid)
		}
	})
}

// A helper that is killed takes the program with it, and the upper layer stays.
func TestHelperKilled(t *testing.T) {
	r := made(t, options(t))
	out, w, err := os.Pipe()
	must(t, err)
	q, err := r.Start(t.Context(), Program{Args: []string{"sh", "-c", "echo half > half; echo begun; exec sleep 1000"}, Env: os.Environ(), Stdout: w})
	must(t, errors.Join(err, w.Close()))
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "begun\n" {
		t.Fatal(line, err)
	}
	must(t, q.cmd.Process.Kill())
	if s, err := q.Wait(); err != nil || s.Code != 137 || s.Limit != "" {
		t.Error(s, err)
	}
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Error("the program has its output open still:", err)
	}
	if got, _ := shell(t, r, "cat half"); got != "half\n" {
		t.Error(got)
	}
}

// Many at once get runs of their own, and what was never complete is swept away.
func TestManyAtOnce(t *testing.T) {
	o := options(t)
	made(t, o)
	must(t, os.MkdirAll(runs(o.Data)+"/run-HALFDONE00/upper/x", 0o700))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				r, err := New(o)
				if err == nil {
					err = r.Drop()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, _ := os.ReadDir(runs(o.Data)); len(left) != 1 {
		t.Error("left behind:", left)
	}
}

// A record that can't be read is said, and its run can be dropped.
func TestDamaged(t *testing.T) {
	o := options(t)
	r := made(t, o)
	shell(t, r, "echo x > f")
	must(t, r.Close())
	must(t, os.WriteFile(r.file("record"), []byte("nonsense"), 0o600))
	all, err := List(o.Data)
	if err != nil || len(all) != 1 || all[0].Root != "" {
		t.Fatalf("%+v %v", all, err)
	}
	again, err := Open(o.Data, r.ID())
	must(t, err)
	*r = *again
	if err := r.Renew(o); !refuses(err, "damaged") {
		t.Error(err)
	}
	if _, err := Derive(r.Upper()); !refuses(err, "damaged") {
		t.Error(err)
	}
	r2, err := New(o)
	must(t, err)
	r2.Args, r2.Boot = []string{"true"}, "another"
	must(t, errors.Join(r2.save(), r2.lock.Close()))
	must(t, r.Close())
	all, _ = List(o.Data)
	if len(all) != 2 || !all[1].Torn {
		t.Errorf("%+v", all)
	}
	r2, err = Open(o.Data, r2.ID())
	must(t, errors.Join(err, r2.Drop()))
}

// A change before the stamp has an earlier ctime, and a later one has not.
func TestStamp(t *testing.T) {
	both(t, func(t *testing.T) {
		o := options(t)
		made(t, o)
		for range 20 {
			lay(t, o.Root+"/before")
			r, err := New(o)
			must(t, err)
			lay(t, o.Root+"/after")
			ctime := func(name string) time.Time {
				var st unix.Stat_t
				must(t, unix.Lstat(o.Root+"/"+name, &st))
				return time.Unix(st.Ctim.Unix())
			}
			stamp := r.Upper().Stamp
			if stamp.IsZero() {
				t.Skip("SKIPPED: the file system has no clock that can be read")
			}
			if before, after := ctime("before"), ctime("after"); !before.Before(stamp) || after.Before(stamp) {
				t.Errorf("%v and %v around %v", before, after, stamp)
			}
			must(t, r.Drop())
		}
	})
}
