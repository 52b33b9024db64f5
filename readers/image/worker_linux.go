package image

import (
	"os/exec"
	"syscall"
)

// limitSelf bounds this process. RLIMIT_DATA counts what is written to; RLIMIT_AS would count the
// address space that Go reserves without using.
func limitSelf() error {
	for _, l := range []struct {
		resource int
		value    uint64
	}{
		{syscall.RLIMIT_DATA, workerMemory},
		{syscall.RLIMIT_CPU, workerCPU},
		{syscall.RLIMIT_FSIZE, 0},
		{syscall.RLIMIT_CORE, 0},
		{syscall.RLIMIT_NOFILE, 16},
	} {
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return err
		}
	}
	return nil
}

// separate makes the child die with us and keeps our terminal's signals from it.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
