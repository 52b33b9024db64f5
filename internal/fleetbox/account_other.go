//go:build !unix

package fleetbox

import "syscall"

// account is for root, who is not there.
func account(int, int) *syscall.SysProcAttr { return nil }
