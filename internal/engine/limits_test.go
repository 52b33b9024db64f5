package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"moltisfs/config"
	"moltisfs/internal/engine"
)

// Each limit refuses what is over it by its name, for that session alone, and lets calls in again
// after the time that it tells.
func TestLimits(t *testing.T) {
	for _, row := range []struct {
		name   string
		limits config.Limits
		calls  int                // that are taken
		args   func(i int) string // of the i-th call
	}{
		{"calls_per_second", config.Limits{CallsPerSecond: 2}, 20, func(i int) string { return fmt.Sprint(i) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := grow(t, func(c *config.FS) { c.Limits = row.limits })
				try := func(session string, i int) (no *engine.Refusal) {
					c := x.call(session)
					x.Do(t.Context(), c, engine.Operation{Args: json.RawMessage(row.args(i)),
						Run:    func(context.Context) error { return nil },
						Refuse: func(_ context.Context, err error) string { no = engine.Reason(err); return "refused" },
					})
					return no
				}
				for i := range row.calls {
					if no := try("s", i); no != nil {
						t.Fatalf("call %d: %v", i, no)
					}
				}
				no := try("s", row.calls)
				if no == nil || no.Cause != engine.TooManyCalls {
					t.Fatalf("one too many: %v", no)
				}
				f := no.Facts.(engine.CallFacts)
				if f.Limit != row.name || f.Wait <= 0 {
					t.Errorf("%+v", f)
				}
				if no := try("other", 0); no != nil {
					t.Errorf("another session: %v", no)
				}
				time.Sleep(f.Wait + 1)
				if no := try("s", row.calls); no != nil {
					t.Errorf("after %s: %v", f.Wait, no)
				}
			})
		})
	}
}

func TestCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, wait := grow(t, func(c *config.FS) { c.Limits = config.Limits{CallsAtOnce: 3} }), make(chan bool)
		try := func(run func(context.Context) error) (no *engine.Refusal) {
			x.Do(t.Context(), x.call("s"), engine.Operation{Run: run,
				Refuse: func(_ context.Context, err error) string { no = engine.Reason(err); return "refused" }})
			return no
		}
		for range 3 {
			go try(func(context.Context) error { <-wait; return nil })
		}
		synctest.Wait()
		quick := func(context.Context) error { return nil }
		if no := try(quick); no == nil || no.Facts != (engine.CallFacts{Limit: "calls_at_once", Most: 3}) {
			t.Errorf("the fourth: %v", no)
		}
		close(wait)
		synctest.Wait()
		if no := try(quick); no != nil {
			t.Errorf("after they ended: %v", no)
		}
	})
}
