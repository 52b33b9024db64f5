//go:build !rooted

package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"moltisfs/internal/testdir"
)

var must = testdir.Must

// somebody is the user and group of tests that are run as no root.
const somebody = 12345

// both runs a test as the user who runs the tests and, where that is root, as somebody else too.
func both(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	who := "root"
	if os.Getuid() != 0 {
		who = "user"
	}
	t.Run("as "+who, f)
	if who == "user" || t.Failed() {
		return
	}
	t.Run("as user", func(t *testing.T) {
		asSomebody(t, exec.Command("", "-test.run=^"+strings.ReplaceAll(strings.TrimSuffix(t.Name(), "/as_user"), "/", "$/^")+"$"))
	})
}

// asSomebody runs this program as somebody, whose temporary files are in a directory of his own.
func asSomebody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	dir := realTemp(t)
	must(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "test")
	b, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(program, b, 0o755))
	tmp := filepath.Join(dir, "tmp")
	must(t, os.Mkdir(tmp, 0o755))
	must(t, os.Chown(tmp, somebody, somebody))
	cmd.Path, cmd.Args[0] = program, program
	cmd.Args = append(cmd.Args, "-test.v", "-test.count=1", "-deaths="+strconv.Itoa(*deaths))
	cmd.Dir = tmp
	cmd.Env = append(os.Environ(), "RUN_TEST_DIR="+tmp, "HOME="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	case !bytes.Contains(out, []byte("--- PASS")):
		t.Errorf("nothing was tested: %s", out)
	default:
		t.Logf("%s", out)
	}
}

// realTemp makes a directory that is not below /tmp, which a program in a run has its own of.
func realTemp(t testing.TB) string {
	t.Helper()
	base := os.Getenv("RUN_TEST_DIR")
	if base == "" && os.Getuid() == 0 {
		base = "/var/lib"
	} else if base == "" {
		base = os.Getenv("HOME")
	}
	dir, err := os.MkdirTemp(base, "moltis-fs-test-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Skip("SKIPPED: no directory outside of /tmp: ", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(clear(dir, ""), os.Remove(dir)); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// options gives those of a run over an empty root.
func options(t testing.TB) Options {
	t.Helper()
	dir := realTemp(t)
	o := Options{Root: filepath.Join(dir, "root"), Data: filepath.Join(dir, "data"), Network: true}
	for _, d := range []string{o.Root, o.Data} {
		must(t, os.Mkdir(d, 0o700))
		must(t, os.Chown(d, os.Getuid(), os.Getgid()))
	}
	return o
}

// lacking is in the reasons that the machine has.
var lacking = regexp.MustCompile("kernel|container|file system of")

// made makes a run, and skips the test loudly where there can't be one.
func made(t testing.TB, o Options) *Run {
	t.Helper()
	if err := Probe(o); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && (lacking.MatchString(e.Why)) {
			t.Skipf("SKIPPED: %v; %s", err, e.Do)
		}
		t.Fatal(err)
	}
	r, err := New(o)
	must(t, err)
	t.Cleanup(func() {
		if err := r.Drop(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return r
}

// shell runs a script, and gives its output and status.
func shell(t testing.TB, r *Run, script string, env ...string) (string, Status) {
	t.Helper()
	return program(t, r, Program{Args: []string{"sh", "-c", script}, Env: env})
}

func program(t testing.TB, r *Run, p Program) (string, Status) {
	t.Helper()
	var b bytes.Buffer
	if p.Stdout == nil {
		p.Stdout, p.Stderr = &b, &b
	}
	p.Env = append(os.Environ(), p.Env...)
	q, err := r.Start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := q.Wait()
	must(t, err)
	return b.String(), s
}

func lay(t testing.TB, files ...string) {
	t.Helper()
	for _, f := range files {
		must(t, os.MkdirAll(filepath.Dir(f), 0o755))
		must(t, os.WriteFile(f, []byte("content of "+filepath.Base(f)+"\n"), 0o644))
	}
}

// An attempt is a thing that a program tries. It succeeds where nobody holds the program.
type attempt struct {
	name string
	try  func() error
}

// attempts are what a program tries in the workspace W. O is outside of it, and the user's; D is the data directory.
func attempts() []attempt {
	w, o, d := os.Getenv("W"), os.Getenv("O"), os.Getenv("D")
	read := func(path string) func() error {
		return func() error {
			b, err := os.ReadFile(path)
			if err == nil && len(b) == 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	list := func(path string) func() error {
		return func() error {
			names, err := os.ReadDir(path)
			if err == nil && len(names) == 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	write := func(path string) func() error {
		return func() error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("x\n")
			return err
		}
	}
	call := func(number uintptr, args ...uintptr) func() error {
		return func() error {
			args = append(args, 0, 0, 0, 0, 0, 0)
			if _, _, e := unix.RawSyscall6(number, args[0], args[1], args[2], args[3], args[4], args[5]); e != 0 && e != unix.EBADF && e != unix.EINVAL && e != unix.EFAULT {
				return e
			}
			return nil
		}
	}
	dial := func(network, address string) func() error {
		return func() error {
			c, err := net.Dial(network, address)
			if err == nil {
				c.Close()
			}
			return err
		}
	}
	socket := func(family int, kind int) func() error {
		return func() error {
			fd, err := unix.Socket(family, kind, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	run := func(args ...string) func() error {
		return func() error { return exec.Command(args[0], args[1:]...).Run() }
	}
	return []attempt{
		{"read", read(w + "/a")},
		{"append", write(w + "/a")},
		{"new", write(w + "/new")},
		{"remove", func() error { return os.Remove(w + "/b") }},
		{"cache", write(o + "/cache/new")},
		{"read outside", read(o + "/o")},
		{"temporary", write("/tmp/" + os.Getenv("ABSTRACT"))},
		{"run", write("/run/" + os.Getenv("ABSTRACT"))},
		{"shm", write("/dev/shm/" + os.Getenv("ABSTRACT"))},
		{"null", write("/dev/null")},
		{"random", read2("/dev/urandom")},
		{"itself", read("/proc/self/status")},
		{"thread's name", write("/proc/self/comm")},
		{"shell", run("sh", "-c", "true | true")},

		{"hidden", read(w + "/.env")},
		{"hidden below", read(w + "/sub/.env")},
		{"hidden by a link", read(w + "/sub/link")},
		{"hidden is there", func() error { _, err := os.Lstat(w + "/.env"); return err }},
		{"hidden directory", list(w + "/secrets")},
		{"below a hidden directory", read(w + "/secrets/k")},
		{"link from a hidden directory", read(w + "/sub/k")},
		{"concealed", read(o + "/key")},
		{"concealed directory", list(o + "/keys")},
		{"below a concealed directory", read(o + "/keys/k")},
		{"write concealed", write(o + "/key")},
		{"data", list(d)},
		{"data by its name", list(d + "/runs")},

		{"cache that is a link by now", write(o + "/linked/x")},
		{"write outside", write(o + "/x")},
		{"append outside", write(o + "/o")},
		{"remove outside", func() error { return os.Remove(o + "/gone") }},
		{"link in", func() error { return os.Link(o+"/o", w+"/o3") }},
		{"chmod outside", func() error { return os.Chmod(o+"/o", 0o600) }},
		{"chown outside", func() error { return os.Chown(o+"/o", os.Getuid(), os.Getgid()) }},
		{"touch outside", func() error { return unix.UtimesNanoAt(unix.AT_FDCWD, o+"/o", []unix.Timespec{{}, {}}, 0) }},
		{"attribute outside", func() error { return unix.Setxattr(o+"/o", "user.x", []byte("x"), 0) }},
		{"move in", func() error { return os.Rename(o+"/o", w+"/o") }},
		{"move outside", func() error { return os.Rename(o+"/keys", o+"/keys2") }},
		{"outside by a symbolic link", func() error {
			if err := os.Symlink(o+"/x2", w+"/s"); err != nil {
				return err
			}
			return write(w + "/s")()
		}},
		{"etc", write("/etc/moltis-fs-test")},
		{"device outside", read2(o + "/zero")},
		{"set-id outside", func() error {
			b, err := exec.Command(o+"/id", "-u").Output()
			if err == nil && strings.TrimSpace(string(b)) == fmt.Sprint(os.Getuid()) {
				return io.ErrUnexpectedEOF
			}
			return err
		}},

		{"mount", func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") }},
		{"bind", func() error { return unix.Mount("/", "/tmp", "", unix.MS_BIND, "") }},
		{"remount", func() error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") }},
		{"unmount", func() error { return unix.Unmount(w, unix.MNT_DETACH) }},
		{"unmount a cover", func() error { return unix.Unmount(d, unix.MNT_DETACH) }},
		{"mount by a descriptor", func() error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE); return err }},
		{"attributes of mounts", func() error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}},
		{"file system", func() error { _, err := unix.Fsopen("tmpfs", 0); return err }},
		{"namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		{"user namespace", call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)},
		{"user namespace by clone", run("unshare", "-Ur", "true")},
		{"clone3", call(unix.SYS_CLONE3, 0, 0)},
		{"another namespace", func() error {
			fd, err := unix.Open("/proc/1/ns/mnt", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return unix.Setns(fd, 0)
		}},
		{"chroot", func() error { return unix.Chroot("/tmp") }},
		{"block device", func() error { return unix.Mknod("/tmp/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))) }},
		{"character device", func() error { return unix.Mknod(w+"/mem", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))) }},
		{"whiteout", func() error { return unix.Mknod(w+"/white", unix.S_IFCHR, 0) }},
		{"handle", call(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), 0, 0)},
		{"mark of the overlay", func() error { return unix.Setxattr(w+"/a", "trusted.overlay.redirect", []byte("/x"), 0) }},

		{"core pattern", write("/proc/sys/kernel/core_pattern")},
		{"sysctl", write("/proc/sys/kernel/hostname")},
		{"sysrq", write("/proc/sysrq-trigger")},
		{"sys", write("/sys/kernel/mm/transparent_hugepage/enabled")},
		{"control group", func() error { return os.Mkdir("/sys/fs/cgroup/pids/moltis-fs-test", 0o755) }},
		{"kernel's log", call(unix.SYS_SYSLOG, 3, 0, 0)},
		{"kernel's memory", read2("/proc/kcore")},

		{"root of process 1", list("/proc/1/root")},
		{"directory of process 1", list("/proc/1/cwd")},
		{"files of process 1", func() error {
			links, _ := filepath.Glob("/proc/1/fd/*")
			for _, l := range links {
				if _, err := os.Readlink(l); err == nil {
					return nil
				}
				if _, err := os.Lstat(l + "/.."); err == nil {
					return nil
				}
			}
			return io.ErrUnexpectedEOF
		}},
		{"environment of process 1", read("/proc/1/environ")},
		{"memory of process 1", func() error { _, err := os.Open("/proc/1/mem"); return err }},
		{"trace process 1", func() error { return unix.PtraceSeize(1) }},
		{"read from process 1", func() error {
			b := []byte{0}
			local, remote := unix.Iovec{Base: &b[0], Len: 1}, unix.RemoteIovec{Base: uintptr(0x400000), Len: 1}
			_, err := unix.ProcessVMReadv(1, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
			if err == unix.EFAULT {
				return nil
			}
			return err
		}},
		{"descriptor of process 1", func() error {
			pid, err := unix.PidfdOpen(1, 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(pid, 3, 0)
			return err
		}},
		{"privileges of process 1", func() error { // on each of its threads
			status, _ := filepath.Glob("/proc/1/task/*/status")
			for _, s := range status {
				b, err := os.ReadFile(s)
				_, caps, _ := strings.Cut(string(b), "CapPrm:")
				_, mounts := 0, uint64(0)
				fmt.Sscanf(caps, "%x", &mounts)
				if err != nil || mounts&(1<<unix.CAP_SYS_ADMIN) != 0 || !strings.Contains(string(b), "Seccomp:\t2") {
					return nil
				}
			}
			if len(status) > 1 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}},
		{"privileges", func() error {
			b, _ := os.ReadFile("/proc/self/status")
			if strings.Contains(string(b), "NoNewPrivs:\t1") && strings.Contains(string(b), "CapInh:\t0000000000000000") {
				return io.ErrUnexpectedEOF
			}
			return nil
		}},
		{"see a process outside", list("/proc/" + os.Getenv("OUTSIDE"))},
		{"descriptors of the caller", func() error {
			names, _ := os.ReadDir("/proc/self/fd")
			for _, n := range names {
				if to, err := os.Readlink("/proc/self/fd/" + n.Name()); err == nil && strings.HasPrefix(to, o) {
					return nil
				}
			}
			return io.ErrUnexpectedEOF
		}},

		{"type into a terminal", func() error { return tiocsti(unix.TIOCSTI) }},
		{"type with more bits", func() error { return tiocsti(unix.TIOCSTI | 1<<32) }},
		{"console", func() error { return tiocsti(unix.TIOCLINUX) }},
		{"keys", func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); return err }},
		{"add a key", func() error {
			_, err := unix.AddKey("user", "x", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
		{"ring", call(unix.SYS_IO_URING_SETUP, 1, 0)},
		{"bpf", call(unix.SYS_BPF, 0, 0, 0)},
		{"page faults", call(unix.SYS_USERFAULTFD, 0)},
		{"counters", call(unix.SYS_PERF_EVENT_OPEN, 0, 0)},
		{"other architecture", func() error {
			if _, _, e := unix.RawSyscall(0x4000_0000+39, 0, 0, 0); e != 0 { // getpid of x32
				return e
			}
			return nil
		}},
		{"packets", socket(unix.AF_PACKET, unix.SOCK_RAW)},
		{"sockets of virtual machines", socket(unix.AF_VSOCK, unix.SOCK_STREAM)},
		{"sockets of the kernel's crypto", socket(unix.AF_ALG, unix.SOCK_SEQPACKET)},
		{"socket file outside", dial("unix", o+"/socket")},
		{"socket file in the root", dial("unix", w+"/socket")},
		{"abstract socket", dial("unix", "@"+os.Getenv("ABSTRACT"))},

		{"own socket", func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			return dial("tcp", l.Addr().String())()
		}},
		{"loopback", dial("tcp", os.Getenv("TCP"))},
		{"remove the root", func() error { return unix.Rmdir(w) }},
		{"move the root", func() error { return os.Rename(w, w+".x") }},
	}
}

func tiocsti(number uint64) error {
	b := byte('x')
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, 0, uintptr(number), uintptr(unsafe.Pointer(&b))); e != 0 && e != unix.ENOTTY {
		return e
	}
	return nil
}

// read2 reads a byte.
func read2(path string) func() error {
	return func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Read(make([]byte, 1))
		return err
	}
}

// TestInside is what runs inside. It prints the names of the attempts that succeed.
func TestInside(*testing.T) {
	if os.Getenv("INSIDE") == "" {
		return
	}
	var done []string
	for _, a := range attempts() {
		if err := a.try(); err == nil {
			done = append(done, a.name)
		} else if os.Getenv("INSIDE") == "say" {
			fmt.Println(a.name, err)
		}
	}
	fmt.Printf("it could: %s.\n", strings.Join(done, ", "))
}

// A program in a run does what it may, and nothing else of what it tries.
func TestHeld(t *testing.T) {
	both(t, func(t *testing.T) {
		o := options(t)
		dir := filepath.Dir(o.Root)
		out := filepath.Join(dir, "out")
		lay(t, o.Root+"/a", o.Root+"/b", o.Root+"/.env", o.Root+"/sub/.env", o.Root+"/secrets/k", out+"/o", out+"/gone", out+"/key", out+"/keys/k", out+"/cache/c")
		must(t, os.Link(o.Root+"/.env", o.Root+"/sub/link"))
		must(t, os.Link(o.Root+"/secrets/k", o.Root+"/sub/k"))
		if os.Getuid() == 0 {
			must(t, unix.Mknod(out+"/zero", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))))
		}
		id, err := exec.LookPath("id")
		must(t, err)
		b, err := os.ReadFile(id)
		must(t, err)
		must(t, os.WriteFile(out+"/id", b, 0o755))
		must(t, os.Chmod(out+"/id", 0o755|os.ModeSetuid))
		if os.Getuid() == 0 {
			must(t, errors.Join(os.Chown(out+"/id", somebody, somebody), unix.Chmod(out+"/id", 0o4755)))
		}
		self := filepath.Join(out, "self")
		b, err = os.ReadFile(os.Args[0])
		must(t, errors.Join(err, os.WriteFile(self, b, 0o755)))
		abstract := fmt.Sprintf("moltis-fs-test-%d", os.Getpid())
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer tcp.Close()
		for _, name := range []string{out + "/socket", o.Root + "/socket", "@" + abstract} {
			l, err := net.Listen("unix", name)
			must(t, err)
			defer l.Close()
		}
		leak, err := unix.Open(out, unix.O_RDONLY, 0) // without O_CLOEXEC, as others leave it to us
		must(t, err)
		defer unix.Close(leak)

		o.Hidden, err = Closed(o.Root, func(in string) func(string, bool) (bool, bool) {
			return func(name string, _ bool) (shut, enter bool) { return name == ".env" || in+name == "secrets", true }
		})
		must(t, err)
		o.Hidden = append(o.Hidden, "not/there")
		o.Conceal = []string{out + "/key", out + "/keys", out + "/missing"}
		o.Write = []string{out + "/cache", out + "/nocache", out + "/linked"}
		must(t, errors.Join(os.Mkdir(out+"/other", 0o755), os.Symlink("other", out+"/linked")))
		may := "read, append, new, remove, cache, read outside, temporary, run, shm, null, random, itself, thread's name, shell"
		if info, _ := debug.ReadBuildInfo(); info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"}) {
			may += ", privileges of process 1" // see renounce
		}
		args := []string{self, "-test.run=^TestInside$"}
		env := []string{"INSIDE=" + cmp.Or(os.Getenv("SAY"), "1"), "W=" + o.Root, "O=" + out, "D=" + o.Data,
			"OUTSIDE=" + fmt.Sprint(os.Getpid()), "ABSTRACT=" + abstract, "TCP=" + tcp.Addr().String()}
		for _, c := range []struct {
			network bool
			want    string
		}{{true, may + ", own socket, loopback"}, {false, may + ", own socket"}} {
			o := o
			o.Network = c.network
			r := made(t, o)
			got, s := program(t, r, Program{Args: args, Env: env})
			if _, list, _ := strings.Cut(got, "it could: "); s.Code != 0 || !strings.HasPrefix(list, c.want+".\n") {
				t.Errorf("network %t: status %v\n%s\nwant: %s", c.network, s, got, c.want)
			}
			for name, want := range map[string]string{o.Root + "/a": "content of a\n", o.Root + "/b": "content of b\n", out + "/o": "content of o\n", out + "/key": "content of key\n"} {
				if got, err := os.ReadFile(name); err != nil || string(got) != want {
					t.Errorf("%s has %q, %v", name, got, err)
				}
			}
			laid := r.Upper().Laid
			slices.Sort(laid)
			if got := strings.Join(laid, " "); got != ".env secrets sub/.env sub/k sub/link" {
				t.Errorf("laid: %s", got)
			}
		}
		if _, err := os.Lstat(out + "/cache/new"); err != nil {
			t.Error("the cache was not written:", err)
		}
		if os.Getuid() != 0 { // the control: root would change the machine
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = append(os.Environ(), env...)
			b, err := cmd.CombinedOutput()
			for _, name := range []string{"hidden", "hidden below", "hidden by a link", "hidden directory", "below a hidden directory", "link from a hidden directory",
				"concealed", "concealed directory", "below a concealed directory", "write concealed", "data", "data by its name", "cache that is a link by now", "write outside", "append outside",
				"remove outside", "link in", "chmod outside", "touch outside", "move in", "move outside", "outside by a symbolic link", "whiteout",
				"see a process outside", "descriptors of the caller", "type into a terminal", "socket file outside", "socket file in the root", "abstract socket",
				"loopback", "move the root", "privileges"} {
				if !strings.Contains(string(b), ", "+name+",") && !strings.Contains(string(b), ", "+name+".") {
					t.Errorf("without a run it could not: %s; %v", name, err)
				}
			}
			_, _ = os.Remove("/tmp/"+abstract), os.Remove("/dev/shm/"+abstract)
		}
	})
}
