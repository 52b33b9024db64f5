//go:build unix

package acp

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const terminate = syscall.SIGTERM

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(cmd *exec.Cmd, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(-cmd.Process.Pid, s) // else all of them have ended
	}
}

// watch has a process of its own end the agent's group when the pipe that it gives is closed, which our
// end does however it comes. Without a shell nobody watches.
func watch(cmd *exec.Cmd) *os.File {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer theirs.Close() //nolint:errcheck // it is the watcher's
	w := exec.Command("/bin/sh", "-c", `read x; kill -s TERM -- "-$0" && sleep 3 && kill -s KILL -- "-$0"`,
		strconv.Itoa(cmd.Process.Pid))
	w.Stdin = theirs
	ownGroup(w)
	if w.Start() == nil {
		go w.Wait() //nolint:errcheck // it leaves nothing but its status
	}
	return ours
}

func status(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
