package child

import (
	"os/exec"
	"syscall"
)

// Bound limits this process for good: bytes of memory, seconds of the processor, no file to write.
// RLIMIT_DATA counts what is written to; RLIMIT_AS would count the address space that Go reserves
// without using.
func Bound(memory, seconds uint64) error {
	for _, l := range []struct {
		resource int
		value    uint64
	}{
		{syscall.RLIMIT_DATA, memory},
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

func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
