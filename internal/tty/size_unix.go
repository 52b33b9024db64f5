//go:build unix

package tty

import (
	"os"

	"golang.org/x/sys/unix"
)

// Size is how many columns and rows a terminal has, 0 where that can't be told.
func Size(f *os.File) (columns, rows int) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(w.Col), int(w.Row)
}

// LeadsNowhere says that nobody can read what is written to f: it was closed when the program
// started, and the runtime has put the null device in its place, open both ways. Some programs hand
// that in on purpose, as Python's DEVNULL; which of the two it is can't be told.
func LeadsNowhere(f *os.File) bool {
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	at, err := f.Stat()
	if err != nil || !os.SameFile(null, at) {
		return false
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}
