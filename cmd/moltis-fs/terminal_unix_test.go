//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const fileName = program

// withoutTerminal takes the terminal away that the tests may have been started from.
func withoutTerminal(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// A service has the null device as its standard input, whatever that is called: it is no terminal.
func TestNothingIsNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	fd, err := syscall.Dup(int(null.Fd()))
	must(t, err)
	f := os.NewFile(uintptr(fd), "/dev/stdin")
	defer f.Close()
	if isTerminal(f) || isTerminal(null) {
		t.Error("the null device counts as a terminal")
	}
}
