//go:build !unix

package fleetbox

import "syscall"

// asUser is of systems where nobody is root.
func asUser(int, int) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
