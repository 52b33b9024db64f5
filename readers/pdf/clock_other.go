//go:build !linux

package pdf

import "time"

// threadClock tells how much time has passed since it was called.
func threadClock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
