package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// architectures are those for which there is a filter, as seccomp names them.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in struct seccomp_data.
const (
	atNumber = 0
	atArch   = 4
	atDomain = 16 // the low half of the first argument; both architectures are little-endian
)

// x32 is the first number of another kind of system calls on amd64.
const x32 = 0x4000_0000

// closeSockets leaves this thread, and what it becomes, no sockets but those of the machine itself
// and the kernel's. Landlock knows plain TCP only: UDP and Multipath TCP are others. io_uring makes
// sockets, too, and programs of another architecture have other numbers.
func closeSockets() error {
	arch := architectures[runtime.GOARCH]
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(how uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{
		load(atArch), jump(unix.BPF_JEQ, arch, 0, 9),
		load(atNumber), jump(unix.BPF_JGE, x32, 7, 0),
		jump(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, 6, 0),
		jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 3),
		load(atDomain), jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 1),
		end(unix.SECCOMP_RET_ALLOW), end(unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)),
		end(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&program)), 0, 0)
	if runtime.KeepAlive(filter); err != nil {
		return fmt.Errorf("closing sockets: %w", err)
	}
	return nil
}
