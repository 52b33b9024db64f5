//go:build !rooted

package run

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that a program of root's keeps: those over files and accounts.
var kept = []uint{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID,
	unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE}

// renounce gives up all that the program must not have: capabilities on every thread of this process, the way to new ones, system calls,
// abstract sockets of the machine. The program is started from this thread, the main one. own says that the user namespace is ours: then
// no capability is left.
func renounce(own bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return step("renouncing privileges", "", err)
	}
	var keep [2]uint32
	for _, c := range kept {
		if !own {
			keep[c/32] |= 1 << (c % 32)
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := range uint(64) {
		if keep[c/32]&(1<<(c%32)) == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0) // the kernel has fewer
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return step("reading capabilities", "", err)
	}
	for i := range data {
		data[i].Effective &= keep[i]
		data[i].Permitted &= keep[i]
		data[i].Inheritable = 0
	}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if e == unix.ENOTSUP { // in a build with cgo; then the other threads are closed to all by PR_SET_DUMPABLE alone
		_, _, e = unix.Syscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	}
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&data)
	if e != 0 {
		return step("dropping capabilities", "", e)
	}
	if err := scope(); err != nil {
		return err
	}
	return filter()
}

// scope keeps the program from abstract sockets and signals to processes that are not its own, where the kernel can (Linux 6.12).
func scope() error {
	rules := struct{ files, network, scoped uint64 }{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if e != 0 {
		return nil // then abstract sockets are open where the network is
	}
	defer unix.Close(int(fd)) //nolint:errcheck // it is in force
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return step("closing abstract sockets", "", e)
	}
	return nil
}

// architectures lists the architectures that have a filter, as seccomp names them.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// refused are system calls that get EPERM: mounts and namespaces, keys of the user, other parts of the kernel that no program here needs
// and that had holes. Flatpak refuses the same.
var refused = []uint32{unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_MOVE_PAGES, unix.SYS_MBIND, unix.SYS_GET_MEMPOLICY, unix.SYS_SET_MEMPOLICY, unix.SYS_MIGRATE_PAGES, unix.SYS_SYSLOG,
	unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_OPEN_BY_HANDLE_AT}

// absent are system calls that get ENOSYS: programs do without them, and clone3's arguments can't be looked at.
var absent = []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, 467 /* open_tree_attr */, unix.SYS_QUOTACTL_FD}

// families are the kinds of sockets there are. Others reach past a namespace, as AF_VSOCK does, or are seldom used and had holes.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// Offsets in struct seccomp_data. Of an argument it is the low half: both architectures are little-endian.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16
	atSecond = 24
)

// x32 is the first number of another kind of system calls on amd64.
const x32 = 0x4000_0000

// filter takes system calls from this process, and from the program. Programs of another architecture have other numbers, and none. A
// terminal that is shared with others can't be typed into: that would run commands as its user.
func filter() error {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	jump := func(how uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	no := func(e unix.Errno) unix.SockFilter { return end(unix.SECCOMP_RET_ERRNO | uint32(e)) }
	f := []unix.SockFilter{load(atArch), jump(unix.BPF_JEQ, architectures[runtime.GOARCH], 1, 0), no(unix.ENOSYS),
		load(atNumber), jump(unix.BPF_JGE, x32, 0, 1), no(unix.ENOSYS)}
	deny := refused
	if runtime.GOARCH == "amd64" {
		deny = append(deny[:len(deny):len(deny)], 134 /* uselib */, 154 /* modify_ldt */)
	}
	for _, n := range deny {
		f = append(f, jump(unix.BPF_JEQ, n, 0, 1), no(unix.EPERM))
	}
	for _, n := range absent {
		f = append(f, jump(unix.BPF_JEQ, n, 0, 1), no(unix.ENOSYS))
	}
	f = append(f, jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4),
		load(atFirst), jump(unix.BPF_JSET, unix.CLONE_NEWUSER, 0, 1), no(unix.EPERM), end(unix.SECCOMP_RET_ALLOW))
	f = append(f, jump(unix.BPF_JEQ, unix.SYS_IOCTL, 0, 5), load(atSecond),
		jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0), jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1), no(unix.EPERM), end(unix.SECCOMP_RET_ALLOW))
	n := uint8(len(families))
	f = append(f, jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, n+2), load(atFirst))
	for i, family := range families {
		f = append(f, jump(unix.BPF_JEQ, family, n-uint8(i), 0))
	}
	f = append(f, no(unix.EAFNOSUPPORT), end(unix.SECCOMP_RET_ALLOW))
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if runtime.KeepAlive(f); e != 0 {
		return step("filtering system calls", "", e)
	}
	return nil
}
