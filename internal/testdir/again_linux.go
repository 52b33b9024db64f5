package testdir

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// OwnMounts runs the test again in a process that has its mounts for itself, where it answers true.
func OwnMounts(t *testing.T) bool {
	t.Helper()
	const mark = "MOLTISFS_TEST_MOUNTS"
	if os.Getenv(mark) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	flag.Visit(func(f *flag.Flag) { // such as how many kills there are
		if !strings.HasPrefix(f.Name, "test.") {
			cmd.Args = append(cmd.Args, "-"+f.Name+"="+f.Value.String())
		}
	})
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skip("SKIPPED: a process can't have mounts of its own here: ", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("with mounts of its own: %v\n%s", err, out.String())
	} else if strings.Contains(out.String(), "SKIPPED") {
		t.Skip(out.String())
	}
	return false
}

// Mount binds from to at, which is made; a from without a slash is a file system to be made there.
func Mount(t *testing.T, from, at string, flags uintptr) {
	t.Helper()
	kind := ""
	info, err := os.Stat(from)
	switch {
	case !strings.Contains(from, "/"):
		kind = from
		fallthrough
	case err == nil && info.IsDir():
		err = os.MkdirAll(at, 0o755)
	case err == nil:
		err = os.WriteFile(at, nil, 0o644)
	}
	if err == nil {
		err = syscall.Mount(from, at, kind, flags, "")
	}
	if err != nil {
		t.Fatalf("mounting %s: %v", at, err)
	}
	t.Cleanup(func() { syscall.Unmount(at, syscall.MNT_DETACH) })
}

// Nobody is the user that BeNobody makes of root.
const Nobody = 65534

// BeNobody makes an ordinary user of root until the test ends; the process has to be one of OwnMounts.
func BeNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can be two users")
	}
	be := func(id int) error {
		var err error
		if id == 0 { // first, since the rest takes root
			err = syscall.Setresuid(id, id, 0)
		}
		err = errors.Join(err, syscall.Setgroups([]int{}), syscall.Setresgid(id, id, 0), syscall.Setresuid(id, id, 0))
		syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 1, 0) // else its own /proc is closed to it
		return err
	}
	if err := be(Nobody); err != nil {
		t.Skip("SKIPPED: root can't become nobody here: ", err)
	}
	t.Cleanup(func() {
		if err := be(0); err != nil {
			t.Error(err)
		}
	})
}
