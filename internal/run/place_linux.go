//go:build !rooted

package run

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const another = "name a data directory on a file system of its own, such as a volume, with --data-dir or MOLTIS_DATA_DIR"

// Probe says why a run over o.Root can't be had, by making one. That there is no true to run in it does not matter.
func Probe(o Options) error {
	r, err := New(o)
	if err != nil {
		return err
	}
	p, err := r.Start(context.Background(), Program{Args: []string{"true"}})
	if err == nil {
		_, err = p.Wait()
	}
	return errors.Join(err, r.Drop())
}

// checked gives the options with the names below the root taken out of Conceal, and whether a user namespace is needed. It refuses what
// can be told without trying.
func checked(o Options) (_ Options, own bool, err error) {
	refuse := func(why, do string) (Options, bool, error) {
		return o, own, &Error{Why: why, Do: do}
	}
	if architectures[runtime.GOARCH] == 0 {
		return refuse("there is no filter of system calls for "+runtime.GOARCH, "run it on amd64 or arm64")
	}
	if _, err := os.Lstat(marker); err == nil {
		return refuse("this is inside of a run already", "run the program itself: it is in the overlay of that run")
	}
	for _, kernels := range []string{"/", "/proc", "/sys", "/dev"} {
		if o.Root == kernels || kernels != "/" && within(o.Root, kernels) && !within(o.Root, "/dev/shm") {
			return refuse("the root is "+o.Root, "name a directory of files as the root")
		}
	}
	if within(o.Root, o.Data) {
		return refuse("the root lies in the data directory", "name another root, or another data directory")
	}
	if at, err := filepath.EvalSymlinks(o.Root); err != nil || at != o.Root || !isReal(o.Root) {
		return refuse("the root is no directory, or a link leads to it", "name the directory itself")
	}
	for _, w := range o.Write {
		for _, p := range slices.Concat([]string{o.Root, o.Data}, o.Conceal) {
			if within(w, p) || within(p, w) {
				return refuse(w+" can't be writable past the history: "+p+" is in it, or around it", "name a narrower directory as writable")
			}
		}
	}
	hidden, conceal := slices.Clone(o.Hidden), []string(nil)
	for _, p := range append(slices.Clip(o.Conceal), o.Data) {
		if name, below := strings.CutPrefix(p, o.Root+"/"); below {
			hidden = append(hidden, name)
		} else {
			conceal = append(conceal, p)
		}
	}
	o.Hidden, o.Conceal = hidden, conceal
	own = !privileged()
	var st unix.Stat_t
	if err := unix.Stat(o.Root, &st); err != nil {
		return o, own, failed("looking at the root", err)
	}
	if own && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		return refuse("the root "+o.Root+" belongs to another user or group than the one who runs this",
			"chown it to "+strconv.Itoa(os.Geteuid())+":"+strconv.Itoa(os.Getegid())+", or run this as its owner, with its group")
	}
	return o, own, nil
}

// privileged says whether this process may mount.
func privileged() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// initial says whether this is the machine's own user namespace.
func initial() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && slices.Equal(strings.Fields(string(b)), []string{"0", "0", "4294967295"})
}

// mountBelow gives a mount point below root; "" is none.
func mountBelow(root string) (string, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", failed("reading the mounts", err)
	}
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 {
			if at := plain.Replace(f[4]); at != root && within(at, root) {
				return at, nil
			}
		}
	}
	return "", nil
}

// sockets lists the socket files of the machine that a program could connect to, also where it can't write.
func sockets(root string) (all []string) {
	b, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(b)) {
		_, at, ok := strings.Cut(line, " /")
		at = "/" + strings.TrimSuffix(at, "\n")
		if !ok || within(at, root) || slices.Contains(all, at) {
			continue
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(at)); err == nil {
			all = append(all, filepath.Join(dir, filepath.Base(at)))
		}
	}
	return all
}

// A Process is a program in a run.
type Process struct {
	r       *Run
	cmd     *exec.Cmd
	control *os.File
	reports chan report
	over    chan struct{} // closed when all is copied that the program has written
	why     chan Limit    // why we have ended it: a limit, or ""
	screen  *screen
	stdin   *os.File // ours, of the program's input; nil where it is none of ours
	status  Status
	err     error
}

// Start runs a program. It returns when that has been started, and the program ends when ctx does. It is an *Error if the place can't be made;
// that the program can't be run is in its status.
func (r *Run) Start(ctx context.Context, p Program) (*Process, error) {
	if len(p.Args) == 0 {
		return nil, &Error{Why: "there is no program to run"}
	}
	if r.process != nil && !r.process.ended() {
		return nil, &Error{Why: "a program runs in the run " + r.id, Do: "wait until it ends"}
	}
	if at, err := mountBelow(r.Root); err != nil { // the overlay would have what is under it
		return nil, err
	} else if at != "" {
		return nil, &Error{Why: "a file system is mounted at " + at + ", below the root", Do: "unmount it, or name a root without it"}
	}
	// The kernel has marked there that the upper layer may not be on the disk. Until the machine is restarted that does not matter.
	_ = unix.Chmod(r.file("work/work"), 0o700)
	_ = clear(r.file("work/work"), "")
	if err := fresh(r.file("tmp")); err != nil { // a link of an earlier program's could lead elsewhere
		return nil, failed("making /tmp", err)
	}
	r.Args, r.Boot = p.Args, boot()
	if err := r.save(); err != nil {
		return nil, err
	}
	o := order{Options: r.Options, Run: r.dir, User: r.User, Own: r.Own, Sockets: sockets(r.Root),
		Args: p.Args, Env: p.Env, Dir: p.Dir, Terminal: p.Terminal}
	if o.Dir == "" {
		o.Dir = r.Root
	}
	q, err := r.launch(ctx, p, o)
	if err != nil {
		return nil, err
	}
	r.process = q
	return q, nil
}

// fresh makes an empty directory for temporary files.
func fresh(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		err = clear(dir, "")
	}
	return errors.Join(err, unix.Chmod(dir, 0o1777))
}

// launch starts the helper, gives it the order, and waits until it has started the program.
func (r *Run) launch(ctx context.Context, p Program, o order) (*Process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, failed("making a socket", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()                //nolint:errcheck // the helper has it
	_ = unix.SetNonblock(pair[0], true) // so that a read can be ended
	q := &Process{r: r, control: os.NewFile(uintptr(pair[0]), "control"), reports: make(chan report, 4),
		over: make(chan struct{}), why: make(chan Limit, 1)}
	written, err := written(o)
	if err != nil {
		return nil, errors.Join(failed("writing the order", err), q.control.Close())
	}
	defer written.Close() //nolint:errcheck // the helper has it
	cmd := exec.Command("/proc/self/exe")
	q.cmd = cmd
	cmd.Args = []string{helperName}
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=32MiB", "GOTRACEBACK=none"}
	for _, v := range o.Env { // by which the program is found
		if strings.HasPrefix(v, "PATH=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{theirs, written, r.lock}
	if err := q.connect(p); err != nil {
		return nil, errors.Join(err, q.control.Close())
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC}
	if o.Own {
		uid, gid := os.Geteuid(), os.Getegid()
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_NET_ADMIN}
	}
	if !o.Network {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	}
	err = cmd.Start()
	if q.stdin != nil {
		q.stdin.Close() //nolint:errcheck // the helper has it
	}
	if err != nil {
		return nil, errors.Join(explain(step(stepPrivate, "/", err).(*stepError), o), q.control.Close())
	}
	theirs.Close() //nolint:errcheck // its end is how we hear of the helper's
	go q.listen()
	first, ok := <-q.reports
	if ok && first.Started {
		go q.wait(ctx, o.Limits)
		return q, nil
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = q.control.Close()
	if q.screen != nil {
		q.screen.close()
	}
	if !ok {
		return nil, &Error{Why: "the helper ended: " + cmd.ProcessState.String()}
	}
	return nil, explain(first.Failed, o)
}

// explain gives the reason for which the helper failed at a step.
func explain(e *stepError, o order) error {
	errno := e.Errno
	switch denied := errno == unix.EPERM || errno == unix.EACCES || errno == unix.ENOSPC || errno == unix.EUSERS; {
	case e.Step == stepProc && denied:
		return &Error{"this container hides parts of /proc, so that programs can't have one of their own",
			"start the container with --security-opt systempaths=unconfined, or use moltis-fs outside of it", e}
	case e.Step == stepPrivate && (denied || errno == unix.EINVAL || errno == unix.ENOSYS):
		return &Error{"the kernel gives this user no namespaces", allow(), e}
	case e.Step == stepOverlay && errno == unix.ENODEV:
		return &Error{"the kernel has no overlayfs", "modprobe overlay", e}
	case e.Step == stepOverlay:
		why := "the kernel makes no overlay over " + o.Root + " with its upper layer in " + o.Data
		if e.Said != "" {
			why += " (" + e.Said + ")"
		}
		return &Error{why, another + "; it takes Linux 5.11, and ext4, xfs, btrfs or tmpfs", e}
	case e.Step == stepDir:
		return &Error{"the program can't begin in " + e.Path, "name a directory that is there, and not hidden", e}
	}
	return &Error{e.Step, "", e.cause()}
}

// allow says what to change where there are no namespaces.
func allow() string {
	for _, s := range []struct{ file, bad, do string }{
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "give moltis-fs an AppArmor profile with userns, or sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
		{"kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"},
		{"user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"},
	} {
		if b, err := os.ReadFile("/proc/sys/" + s.file); err == nil && strings.TrimSpace(string(b)) == s.bad {
			return s.do
		}
	}
	return "in a container, start that with --cap-add SYS_ADMIN or --security-opt seccomp=unconfined, or use moltis-fs outside of it"
}

// written gives an order as a file.
func written(o order) (*os.File, error) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "order")
	if err = gob.NewEncoder(f).Encode(o); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	return f, err
}

// listen takes the helper's reports until it ends.
func (q *Process) listen() {
	defer close(q.reports)
	raw, err := q.control.SyscallConn()
	for err == nil {
		var r report
		b, rights := make([]byte, 1<<16), make([]byte, unix.CmsgSpace(4))
		n, m := 0, 0
		readErr := raw.Read(func(fd uintptr) bool {
			n, m, _, _, err = unix.Recvmsg(int(fd), b, rights, unix.MSG_CMSG_CLOEXEC)
			return err != unix.EAGAIN
		})
		if readErr != nil || err != nil || n == 0 || gob.NewDecoder(bytes.NewReader(b[:n])).Decode(&r) != nil {
			return
		}
		if messages, err := unix.ParseSocketControlMessage(rights[:m]); err == nil && len(messages) > 0 {
			if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && q.screen != nil {
				q.screen.begin(fds[0])
			}
		}
		q.reports <- r
	}
}

// wait ends the program when it has to, and takes its status.
func (q *Process) wait(ctx context.Context, l Limits) {
	defer close(q.over)
	if l.Time > 0 {
		defer time.AfterFunc(l.Time, func() { q.stop(LimitTime) }).Stop()
	}
	defer context.AfterFunc(ctx, func() { q.stop("") })()
	done := make(chan struct{})
	var watch sync.WaitGroup
	if l.Disk > 0 {
		watch.Go(func() { q.watchDisk(l.Disk, done) })
	}
	last, ok := <-q.reports
	err := q.cmd.Wait()
	close(done)
	watch.Wait()
	_ = q.control.Close()
	if q.screen != nil {
		q.screen.close()
	}
	switch {
	case ok && last.Status != nil:
		q.status = *last.Status
	case ok && last.Failed != nil:
		q.err = explain(last.Failed, order{})
	default: // it was killed, and the program with it
		q.status = Status{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL}
		if len(q.why) > 0 {
			q.status.Limit = <-q.why
		}
	}
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit && q.err == nil {
		q.err = failed("copying the program's output", err)
	}
}

// watchDisk looks now and then at how much is in the run, and ends the program if it is more than most.
func (q *Process) watchDisk(most int64, done chan struct{}) {
	for wait := 300 * time.Millisecond; ; {
		select {
		case <-done:
			return
		case <-time.After(wait):
		}
		begun := time.Now()
		var sum int64
		if dir, err := unix.Open(q.r.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err == nil {
			_ = walk(dir, ".", func(_ string, st *unix.Stat_t) bool { sum += st.Blocks * 512; return true })
			unix.Close(dir) //nolint:errcheck // it is O_PATH
		}
		if sum > most {
			q.stop(LimitDisk)
			return
		}
		wait = max(300*time.Millisecond, 20*time.Since(begun))
	}
}

// stop ends the program for a limit, or for none.
func (q *Process) stop(l Limit) {
	select {
	case q.why <- l:
	default: // for another reason first
	}
	_ = q.cmd.Process.Kill() // it may have ended
}

func (r *Run) stop() {
	if r.process != nil {
		r.process.stop("")
		<-r.process.over
	}
}

func (q *Process) ended() bool {
	select {
	case <-q.over:
		return true
	default:
		return false
	}
}

// Wait waits until the program has ended, and with it all that it has started.
func (q *Process) Wait() (Status, error) {
	<-q.over
	return q.status, q.err
}

// Signal sends a signal to the program's group of processes. SIGWINCH gives its terminal the size of ours.
func (q *Process) Signal(s syscall.Signal) error {
	if s == unix.SIGWINCH && q.screen != nil {
		q.screen.resize()
		return nil
	}
	if _, err := q.control.Write([]byte{byte(s)}); err != nil {
		return failed("reaching the helper", err)
	}
	return nil
}

// Kill ends the program and all that it has started.
func (q *Process) Kill() { q.stop("") }

// connect connects the helper's standard files, which the program inherits, or those of its terminal.
func (q *Process) connect(p Program) error {
	in, file := p.Stdin.(*os.File)
	if p.Terminal && p.Stdin != nil && !file {
		return &Error{Why: "the input of a terminal is no file"}
	}
	if p.Terminal {
		q.screen = newScreen(in, p.Stdout)
		return nil
	}
	q.cmd.Stdout, q.cmd.Stderr = p.Stdout, p.Stderr
	if file {
		q.cmd.Stdin = in
	}
	if file || p.Stdin == nil {
		return nil
	}
	r, w, err := os.Pipe() // os/exec would wait for the reader's end
	if err != nil {
		return failed("making a pipe", err)
	}
	q.cmd.Stdin, q.stdin = r, r
	go func() {
		_, _ = io.Copy(w, p.Stdin) // it fails when the program has ended
		_ = w.Close()
	}()
	return nil
}
