package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// architectures lists the architectures that have a filter, as seccomp names them.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filtered says whether there is a filter here.
func filtered() bool { return architectures[runtime.GOARCH] != 0 }

// Offsets in struct seccomp_data. Of an argument it is the low half: both architectures are
// little-endian.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16
	atSecond = 24
)

// x32 is the first number of another kind of system calls on amd64.
const x32 = 0x4000_0000

// filter takes from this thread, and the program that it becomes, calls that Landlock does not know of. A terminal
// that is shared with the user who started this can't be typed into: that would run commands as him.
// Without sockets there are none but those of the machine itself and the kernel's. Landlock knows
// plain TCP only: UDP and Multipath TCP are others. Limits of other processes, by which they could be
// killed, and the keys of the session are out of reach. io_uring makes sockets, too, and programs of
// another architecture have other numbers.
func filter(sockets bool) error {
	arch := architectures[runtime.GOARCH]
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(how uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	ring, socket := uint32(unix.SYS_IO_URING_SETUP), uint32(unix.SYS_SOCKET)
	if sockets {
		ring, socket = x32-1, x32-1 // there is no such call
	}
	filter := []unix.SockFilter{
		load(atArch), jump(unix.BPF_JEQ, arch, 0, 19),
		load(atNumber), jump(unix.BPF_JGE, x32, 17, 0),
		jump(unix.BPF_JEQ, ring, 16, 0),
		jump(unix.BPF_JEQ, socket, 0, 3),
		load(atFirst), jump(unix.BPF_JEQ, unix.AF_UNIX, 11, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 10, 11),
		jump(unix.BPF_JEQ, unix.SYS_KEYCTL, 10, 0), jump(unix.BPF_JEQ, unix.SYS_ADD_KEY, 9, 0),
		jump(unix.BPF_JEQ, unix.SYS_REQUEST_KEY, 8, 0),
		jump(unix.BPF_JEQ, unix.SYS_PRLIMIT64, 0, 2),
		load(atFirst), jump(unix.BPF_JEQ, 0, 4, 5), // its own
		jump(unix.BPF_JEQ, unix.SYS_IOCTL, 0, 3),
		load(atSecond), jump(unix.BPF_JEQ, unix.TIOCSTI, 2, 0),
		jump(unix.BPF_JEQ, unix.TIOCLINUX, 1, 0),
		end(unix.SECCOMP_RET_ALLOW), end(unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)),
		end(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&program)), 0, 0)
	if runtime.KeepAlive(filter); err != nil {
		return fmt.Errorf("filtering system calls: %w", err)
	}
	return nil
}
