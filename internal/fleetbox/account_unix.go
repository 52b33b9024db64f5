//go:build unix

package fleetbox

import "syscall"

// account makes a process run as that user.
func account(uid, gid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
