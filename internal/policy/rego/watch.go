package rego

import (
	"runtime/metrics"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"

	"moltisfs/internal/policy"
)

// watch cancels an evaluation that takes too long, or while which this process grows by too much.
// OPA does not count what an evaluation takes, so others' memory counts too; and it looks for a
// cancel between two steps, so one builtin that makes something huge of its operands ends first.
type watch struct {
	cancel topdown.Cancel
	end    time.Time
	most   uint64 // bytes by which this process may grow

	mu     sync.Mutex
	timer  *time.Timer // nil: it is over
	before uint64      // bytes that were alive at the first look
	big    bool
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	now := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(now)
	alive := now[0].Value.Uint64()
	if w.before == 0 {
		w.before = max(alive, 1)
	}
	w.big = alive > w.before+w.most
	if w.big || !time.Now().Before(w.end) {
		w.cancel.Cancel()
		return
	}
	w.timer.Reset(lookEvery)
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.timer = nil
}

func (w *watch) grown() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.big
}

// size is how many bytes of text an input has.
func size(in *policy.Input) int {
	n := len(in.Path) + len(in.Destination) + len(in.ResolvedPath) + len(in.ResolvedDestination)
	for name, text := range in.Headers {
		n += len(name) + len(text)
	}
	return n
}
