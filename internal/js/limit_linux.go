package js

import (
	"os/exec"
	"syscall"
)

// bound limits this process. RLIMIT_DATA counts what is written to: the heap of the script, and
// what Go holds of it on its way.
func bound(memory, seconds uint64) error {
	for _, l := range []struct {
		resource int
		value    uint64
	}{
		{syscall.RLIMIT_DATA, 4*memory + 256<<20},
		{syscall.RLIMIT_CPU, seconds},
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
