//go:build !unix

package acp

import (
	"os"
	"os/exec"
)

var terminate = os.Kill

func ownGroup(_, _ *exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, _ os.Signal) {
	_ = cmd.Process.Kill() // else it has ended
}

func watch() *exec.Cmd { return nil }

func status(s *os.ProcessState) int { return s.ExitCode() }
