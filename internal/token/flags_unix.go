//go:build unix

package token

import "syscall"

// A link in place of the file must not lead elsewhere; a fifo must not block.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
