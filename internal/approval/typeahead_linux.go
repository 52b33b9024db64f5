package approval

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTypeahead drops what a terminal holds unread. It reports false when f is no terminal:
// piped answers stay.
func discardTypeahead(f *os.File) bool {
	return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) == nil
}
