// Package landlock has the kernel keep this process, and all that it starts, to some files, for good. It has no network then.
package landlock

import (
	"fmt"
	"math"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ABI is the version of Landlock that the kernel has, 0 without any.
func ABI() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// Restrict leaves the files read to be read, and the directories write with all in them. Descriptors that are open stay with this
// program. An older kernel holds the part that it knows.
func Restrict(read, write []string) error {
	var rules []landlock.Rule
	rules = append(rules, landlock.ROFiles(read...))
	if dirs := landlock.RWDirs(write...); ABI() > 1 {
		rules = append(rules, dirs.WithRefer())
	} else {
		rules = append(rules, dirs)
	}
	c, err := landlock.NewConfig(landlock.AccessFSSet(1<<16-1), landlock.ScopedSet(1<<2-1), landlock.AccessNetSet(1<<2-1))
	if err != nil {
		return fmt.Errorf("restricting: %w", err)
	}
	// In one step: a second one that is not about files would forbid to move them.
	if err := c.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("restricting: %w", err)
	}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping open files: %w", err)
	}
	return nil
}
