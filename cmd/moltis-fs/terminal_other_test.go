//go:build !unix

package main

import "os/exec"

const fileName = program + ".exe"

func withoutTerminal(*exec.Cmd) {}
