package approval

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTypeahead drops the unread input of a terminal. It reports false when f is no terminal:
// piped answers stay.
func discardTypeahead(f *os.File) bool {
	return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) == nil
}
