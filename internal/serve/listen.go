package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"moltisfs/internal/guardfs/flock"
)

// AddressError is an address that is not listened on: why, and what to do.
type AddressError struct{ Addr, Why, Do string }

func (e *AddressError) Error() string { return "can't listen on " + e.Addr + ": " + e.Why }

// Listen opens HOST:PORT, whose host is localhost or an address of this machine's loopback, or
// unix:PATH. beyond lets other machines in too.
func Listen(addr string, beyond bool) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return listenUnix(path)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &AddressError{addr, "it is no address",
			"write 127.0.0.1:PORT, with 0 for any port, or unix:PATH"}
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if host != "" && err != nil {
		return nil, &AddressError{addr, "its host is a name", "write an address, such as 127.0.0.1"}
	}
	if !ip.IsLoopback() && !beyond {
		return nil, &AddressError{addr,
			"other machines would reach it, and tokens and files would travel in the clear: there is " +
				"no TLS here",
			"listen on 127.0.0.1 and put a proxy with TLS before it; --beyond-loopback listens all " +
				"the same"}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &AddressError{addr, reason(err), "choose another port, or 0 for any"}
	}
	return l, nil
}

func reason(err error) string {
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Peer reports whether a connection came by a Unix socket, and if so, whether our own user is at its
// other end. known is false where the system can't tell.
func Peer(c net.Conn) (socket, known, ours bool) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false, false, false
	}
	uid, known := peerUID(u)
	return true, known, known && uid == os.Geteuid()
}

// socket is a Unix socket whose lock says that somebody serves it.
type socket struct {
	net.Listener
	lock *os.File
}

// Close removes the socket, and then gives the lock back.
func (s *socket) Close() error { return errors.Join(s.Listener.Close(), flock.Close(s.lock)) }

// maxPath bounds the name of a socket, in bytes, for every system.
const maxPath = 100

// listenUnix makes a socket that our own user alone may connect to. One that a dead server has left
// is replaced; the lock beside it tells, since two that start at once could remove each other's.
func listenUnix(path string) (_ net.Listener, err error) {
	no := func(why, do string) error { return &AddressError{"unix:" + path, why, do} }
	if path == "" || len(path) > maxPath {
		return nil, no(fmt.Sprintf("the path of a socket has 1 to %d bytes", maxPath),
			"choose another path")
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|flock.NoFollow, 0o600)
	if err != nil {
		return nil, no(err.Error(), "name a path in a directory of your own")
	}
	defer func() {
		if err != nil {
			_ = flock.Close(lock)
		}
	}()
	if free, err := flock.TryLock(lock); err != nil || !free {
		return nil, no("somebody serves there", "end that server, or choose another path")
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, no(err.Error(), "choose another path")
	case info.Mode()&fs.ModeSocket == 0:
		return nil, no("there is something that is no socket", "choose another path")
	default:
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, no("somebody serves there", "end that server, or choose another path")
		}
		if err := os.Remove(path); err != nil {
			return nil, no(err.Error(), "choose another path")
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, no(reason(err), "choose another path")
	}
	// Nobody is taken in before this: an earlier caller waits, and the peer is asked in any case.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(no(err.Error(), "choose another path"), l.Close())
	}
	return &socket{l, lock}, nil
}
