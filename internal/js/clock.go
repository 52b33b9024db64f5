package js

import (
	"sync"
	"time"
)

// clock runs for so long, but for the time in which it is held.
type clock struct {
	C <-chan time.Time

	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	since time.Time
	held  int
}

func newClock(d time.Duration) *clock {
	t := time.NewTimer(d)
	return &clock{C: t.C, timer: t, left: d, since: time.Now()}
}

// hold stops the clock until what it gives is called.
func (c *clock) hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held++; c.held == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held--; c.held == 0 {
			c.since = time.Now()
			c.timer.Reset(max(c.left, 0))
		}
	}
}

func (c *clock) stop() { c.timer.Stop() }
