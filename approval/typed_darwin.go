package approval

import (
	"os"

	"golang.org/x/sys/unix"
)

// typedAhead throws away what a terminal holds unread. It reports false for what is no terminal: piped answers stay.
func typedAhead(f *os.File) bool {
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, 1) == nil // 1: FREAD
}
