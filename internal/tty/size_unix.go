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
