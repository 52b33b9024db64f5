//go:build unix

package fleetbox

import "syscall"

// asUser has a process run as that user and group.
func asUser(uid, gid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
