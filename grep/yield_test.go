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
	var end atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !end.Load() {
			others.Add(1)
			runtime.Gosched()
		}
	}()
	p := &worker{walk: &walker{}}
	const times = 200
	ran := 0
	for range times {
		p.yielded = time.Now().Add(-time.Hour) // it has kept the processor for long
		before := others.Load()
		for range 4 {
			if p.stopped() {
				t.Fatal("nothing stops it")
			}
		}
		if others.Load() > before {
			ran++
		}
		if since := time.Since(p.yielded); since >= time.Hour {
			t.Fatal("it does not remember when it yielded")
		}
	}
	// On one processor others run when it yields, or, seldom, when the runtime makes it.
	if ran < times/2 {
		t.Errorf("of %d times that a worker should have let others run they ran %d times", times, ran)
	}
	ran = 0
	for range times {
		p.yielded = time.Now().Add(time.Hour) // it has yielded just now
		before := others.Load()
		for range 8 {
			p.stopped()
		}
		if others.Load() > before {
			ran++
		}
	}
	if ran > times/2 {
		t.Errorf("%d times of %d it yielded though it had just done so", ran, times)
	}
	end.Store(true)
	<-done
	p.walk.stop.Store(true)
	if !p.stopped() {
		t.Error("it does not stop")
	}
}
