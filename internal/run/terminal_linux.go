//go:build !rooted

package run

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A screen connects our terminal, or files, with that of a program.
type screen struct {
	in     *os.File // nil for none
	out    io.Writer
	shown  chan struct{} // closed when all that the program has written is copied
	master *os.File      // the program's, nil before it has one
	before *unix.Termios // the state of our terminal, nil where it is none
	wake   *os.File      // ends copying of the input; nil where nothing is copied
	ended  chan struct{} // closed when it has ended
}

func newScreen(in *os.File, out io.Writer) *screen {
	if out == nil {
		out = io.Discard
	}
	return &screen{in: in, out: out, shown: make(chan struct{})}
}

// begin connects the program's terminal fd, and puts ours into raw mode.
func (s *screen) begin(fd int) {
	_ = unix.SetNonblock(fd, true)
	s.master = os.NewFile(uintptr(fd), "terminal")
	go func() {
		defer close(s.shown)
		_, _ = io.Copy(s.out, s.master) // it ends with an error when the program has
	}()
	if s.in == nil {
		return
	}
	s.resize()
	fd = int(s.in.Fd())
	if state, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		before := *state
		s.before = &before
		state.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		state.Oflag &^= unix.OPOST
		state.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		state.Cflag = state.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		state.Cc[unix.VMIN], state.Cc[unix.VTIME] = 1, 0
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, state)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return // then nothing is typed
	}
	s.wake, s.ended = w, make(chan struct{})
	go copyInput(s.master, fd, r, s.ended)
}

// copyInput copies from the descriptor from until wake is closed on the other end. Then nothing more is read: it is for whoever reads next.
func copyInput(to *os.File, from int, wake *os.File, ended chan struct{}) {
	defer close(ended)
	defer wake.Close() //nolint:errcheck // nothing was written through it
	b := make([]byte, 4096)
	for {
		fds := []unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil || fds[1].Revents != 0 {
			return
		}
		n, err := unix.Read(from, b)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n == 0 {
			_, _ = to.Write([]byte{4}) // ^D
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// resize gives the program's terminal the size of ours.
func (s *screen) resize() {
	if s.in == nil {
		return
	}
	size, err := unix.IoctlGetWinsize(int(s.in.Fd()), unix.TIOCGWINSZ)
	raw, err2 := s.master.SyscallConn()
	if err == nil && err2 == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) })
	}
}

// close ends it when the program has ended, and gives our terminal back. What is typed from then on is for whoever reads next.
func (s *screen) close() {
	if s.master == nil {
		return
	}
	<-s.shown
	if s.wake != nil {
		s.wake.Close() //nolint:errcheck // nothing is written through it
		<-s.ended
	}
	if s.before != nil {
		_ = unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, s.before)
	}
	_ = s.master.Close()
}
