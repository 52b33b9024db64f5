package grep

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A worker that is asked often enough lets others run, though nothing makes it stop, and not at
// every question.
func TestWorkerYields(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var others atomic.Int64
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				others.Add(1)
				runtime.Gosched()
			}
		}
	}()
	// On one processor others run when it yields, or, seldom, when the runtime makes it.
	const times = 200
	ran := func(since time.Duration) (n int) {
		p := &worker{walk: &walker{}}
		for range times {
			p.yielded = time.Now().Add(-since)
			before := others.Load()
			for range 4 {
				p.stopped()
			}
			if others.Load() > before {
				n++
			}
		}
		return n
	}
	if n := ran(time.Hour); n < times/2 {
		t.Errorf("of %d times that a worker should have let others run they ran %d times", times, n)
	}
	if n := ran(-time.Hour); n > times/2 {
		t.Errorf("%d times of %d it yielded though it had just done so", n, times)
	}
}
