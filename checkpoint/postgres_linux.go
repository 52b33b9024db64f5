package checkpoint

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpAfter makes a connection fail if the other end confirms nothing of what was sent for that long. Without it the system goes on trying for a
// quarter of an hour.
func giveUpAfter(d time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) (err error) {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		if e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
		}); e != nil {
			return e
		}
		return err
	}
}
