//go:build unix

package listen

import "syscall"

const lockFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
