package doctor

import "golang.org/x/sys/unix"

// oldKernel says whether the kernel has no openat2, or a filter of system calls keeps it from us.
func oldKernel() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err == nil {
		_ = unix.Close(fd) // nothing was written through it
	}
	return err != nil
}
