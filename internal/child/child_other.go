//go:build !linux

package child

import (
	"os"
	"os/exec"
	"time"
)

// Bound has this process end with its parent, as far as a system tells of that. Its own counting and
// its parent's deadline bound it otherwise.
func Bound(uint64, uint64) error {
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(time.Second)
		}
		os.Exit(1)
	}()
	return nil
}

func separate(*exec.Cmd) {}
