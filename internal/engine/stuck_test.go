package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// A call that does not end is left behind. One that has not begun to change anything never does so
// afterwards; one that has is told as what it is.
func TestLeftBehind(t *testing.T) {
	for _, began := range []bool{false, true} {
		t.Run(fmt.Sprint("began ", began), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := grow(t, nil)
				path := x.write("a.txt", "old\n")
				x.Close()
				frozen, once := make(chan bool), sync.Once{}
				x.fault = func(op string) *guardfs.Fault {
					if began && op == "rename" {
						once.Do(func() { <-frozen }) // as a system call is: no context ends it
					}
					return nil
				}
				x.open()
				x.Hurry(0)
				late := make(chan error, 1)
				c := x.call("s")
				op := engine.Operation{Changes: true, Time: time.Second,
					Run: func(ctx context.Context) error {
						if !began {
							<-frozen
							ctx = context.WithoutCancel(ctx) // an operation that has not looked at it yet
						}
						_, _, err := x.Write(ctx, c, engine.WriteArgs{Path: path, Text: "new\n"})
						late <- err
						return err
					},
					Refuse: func(context.Context, error) string { t.Error("asked of what runs"); return "" },
				}
				start := time.Now()
				left, ok := errors.AsType[*engine.LeftBehind](x.Do(t.Context(), c, op))
				if !ok || left.Refusal.Cause != engine.NoAnswer || left.Refusal.Facts != (engine.StuckFacts{began}) {
					t.Fatalf("%+v", left)
				}
				if took := time.Since(start); took > 3*time.Minute {
					t.Errorf("its caller waited %s", took)
				}
				if n := len(recorded(t, x)); n != 1+map[bool]int{true: 1}[began] {
					t.Errorf("%d records", n)
				}
				close(frozen)
				err := <-late
				now, _ := os.ReadFile(path)
				if !began && (err == nil || string(now) != "old\n") {
					t.Errorf("it changed the file after its caller was gone: %v, %q", err, now)
				}
				if began && string(now) != "old\n" && string(now) != "new\n" {
					t.Errorf("the file is torn: %q", now)
				}
			})
		})
	}
}

// What is left behind is bounded, and those of one principal are no others' business.
func TestLeftBehindIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, frozen := grow(t, nil), make(chan bool)
		x.Hurry(0)
		var calls sync.WaitGroup
		try := func(principal string) (err error) {
			c := x.call("s")
			c.Principal = principal
			x.Do(t.Context(), c, engine.Operation{Time: time.Second,
				Run:    func(context.Context) error { <-frozen; return nil },
				Refuse: func(_ context.Context, no error) string { err = no; return "refused" },
			})
			return err
		}
		for range 32 {
			calls.Go(func() { try("p") })
		}
		calls.Wait()
		if err := try("p"); !engine.TooManyCalls.In(err) {
			t.Errorf("one more: %v", err)
		}
		if err := try("q"); err != nil {
			t.Errorf("another principal: %v", err)
		}
		close(frozen)
		synctest.Wait()
		if err := try("p"); err != nil {
			t.Errorf("after the file system answered: %v", err)
		}
	})
}
