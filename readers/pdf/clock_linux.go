package pdf

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadClock tells how long the thread that calls it has run from then on. Any thread may ask.
func threadClock() func() time.Duration {
	id := int32(^unix.Gettid()<<3 | 6) // the scheduler's clock of one thread
	ran := func() time.Duration {
		var t unix.Timespec
		if unix.ClockGettime(id, &t) != nil {
			return 0
		}
		return time.Duration(t.Nano())
	}
	before := ran()
	return func() time.Duration { return ran() - before }
}
