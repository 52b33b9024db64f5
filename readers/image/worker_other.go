//go:build !linux

package image

import "os/exec"

// limitSelf does nothing here: only the deadline bounds the worker.
func limitSelf() error { return nil }

func separate(*exec.Cmd) {}
