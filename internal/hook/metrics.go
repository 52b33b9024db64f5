package hook

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Metrics counts calls for Prometheus, without its library, which would make the program 7 MB larger. It is an
// Observer, and safe for concurrent use. No label holds a text that a caller made up.
type Metrics struct {
	mu       sync.Mutex
	inFlight int
	ended    map[[2]string]int // by tool and success
	failed   map[[2]string]int // by tool and kind
	took     map[string]*histogram
}

type histogram struct {
	buckets [10]int
	count   int
	sum     float64
}

// bucket is the upper bound of one, in seconds: from 0.5 ms to 131 s.
func bucket(i int) float64 { return 0.0005 * float64(int(1)<<(2*i)) }

// Begin counts a call in.
func (m *Metrics) Begin(ctx context.Context, i Info) (context.Context, func(End)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight++
	return ctx, func(e End) {
		tool := "unknown"
		if e.Known {
			tool = i.Tool
		}
		m.end(tool, e.Outcome, e.Duration)
	}
}

func (m *Metrics) end(tool, outcome string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended == nil {
		m.ended, m.failed, m.took = map[[2]string]int{}, map[[2]string]int{}, map[string]*histogram{}
	}
	m.inFlight--
	m.ended[[2]string{tool, strconv.FormatBool(outcome == "ok")}]++
	if outcome != "ok" {
		m.failed[[2]string{tool, outcome}]++
	}
	h := m.took[tool]
	if h == nil {
		h = &histogram{}
		m.took[tool] = h
	}
	h.count++
	h.sum += took.Seconds()
	for i := range h.buckets {
		if took.Seconds() <= bucket(i) {
			h.buckets[i]++
		}
	}
}

// Text is the metrics in the text format of Prometheus, 0.0.4.
func (m *Metrics) Text() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	counter := func(name, help, label string, of map[[2]string]int) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s counter\n", name, help, name)
		byName := func(x, y [2]string) int { return slices.Compare(x[:], y[:]) }
		for _, k := range slices.SortedFunc(maps.Keys(of), byName) {
			fmt.Fprintf(&b, "%s{tool=%q,%s=%q} %d\n", name, k[0], label, k[1], of[k])
		}
	}
	counter("moltis_tool_executions_total", "Tool calls that have ended.", "success", m.ended)
	counter("moltis_tool_execution_errors_total", "Tool calls that did not succeed.", "kind", m.failed)
	const took = "moltis_tool_execution_duration_seconds"
	fmt.Fprintf(&b, "# HELP %s How long tool calls took.\n# TYPE %s histogram\n", took, took)
	for _, tool := range slices.Sorted(maps.Keys(m.took)) {
		h := m.took[tool]
		for i, n := range h.buckets {
			fmt.Fprintf(&b, "%s_bucket{tool=%q,le=\"%g\"} %d\n", took, tool, bucket(i), n)
		}
		fmt.Fprintf(&b, "%s_bucket{tool=%q,le=\"+Inf\"} %d\n%s_sum{tool=%q} %g\n%s_count{tool=%q} %d\n",
			took, tool, h.count, took, tool, h.sum, took, tool, h.count)
	}
	const flight = "moltis_tool_executions_in_flight"
	fmt.Fprintf(&b, "# HELP %s Tool calls under way.\n# TYPE %s gauge\n%s %d\n", flight, flight,
		flight, m.inFlight)
	return b.Bytes()
}
