//go:build unix

package acp

import (
	"cmp"
	"os"
	"os/exec"
	"syscall"
)

const terminate = syscall.SIGTERM

// watch starts the leader of the agent's group: a shell that waits for the end of its input, which our
// end brings however it comes, and then ends the group. nil: there is no shell.
func watch() *exec.Cmd {
	w := exec.Command("/bin/sh", "-c",
		"trap '' HUP INT QUIT TERM; read x; kill -s TERM 0; sleep 3; kill -s KILL 0")
	ownGroup(w, nil)
	if _, err := w.StdinPipe(); err != nil || w.Start() != nil {
		return nil
	}
	return w
}

// ownGroup has a process lead a group of its own, or join that of its watcher.
func ownGroup(cmd, watcher *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if watcher != nil {
		cmd.SysProcAttr.Pgid = watcher.Process.Pid
	}
}

func signalGroup(cmd *exec.Cmd, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(-cmp.Or(cmd.SysProcAttr.Pgid, cmd.Process.Pid), s) // else all of them have ended
	}
}

func status(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
