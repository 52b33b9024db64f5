//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

const fileName = program

// withoutTerminal takes the terminal away that the tests may have been started from.
func withoutTerminal(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
