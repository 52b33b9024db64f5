package acp

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var whole = flag.Bool("whole", false, "long lines of 100 MB")

// BenchmarkAdded measures what the proxy adds to the way of a message from the agent to the editor, by pipes of the system, at 10,000
// messages a second: beside the same way without a proxy.
func BenchmarkAdded(b *testing.B) {
	pipe := func() (*os.File, *os.File) {
		r, w, err := os.Pipe()
		must(b, err)
		return r, w
	}
	for _, size := range []int{200, 4 << 10} {
		for _, proxied := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=%d/proxy=%v", size, proxied), func(b *testing.B) {
				reading, said := pipe()
				from := reading
				if proxied {
					r, w := pipe()
					p := New(&deaf{}, w, io.Discard, Options{Terminal: "pass", Tell: func(string, ...any) {}})
					never, _ := io.Pipe()
					go func() { _ = p.Serve(b.Context(), never, reading, func() {}); _ = w.Close() }()
					from = r
				}
				line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"text":"%s"}}}`+"\n", strings.Repeat("x", size))
				took := make([]time.Duration, 0, b.N)
				sent := make(chan time.Time, b.N)
				done := make(chan struct{})
				go func() {
					defer close(done)
					for r := bufio.NewReaderSize(from, 64<<10); len(took) < b.N; {
						if _, err := r.ReadSlice('\n'); err != nil {
							return
						}
						took = append(took, time.Since(<-sent))
					}
				}()
				start := time.Now()
				for i := range b.N {
					for time.Since(start) < time.Duration(i)*100*time.Microsecond { // a sleep is too coarse
						if left := time.Duration(i)*100*time.Microsecond - time.Since(start); left > 80*time.Microsecond {
							time.Sleep(left / 2)
						}
					}
					sent <- time.Now()
					if _, err := io.WriteString(said, line); err != nil {
						b.Fatal(err)
					}
				}
				<-done
				b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "msgs/s")
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
				_ = said.Close()
			})
		}
	}
}

func BenchmarkPass(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"text":"` + strings.Repeat("some words ", 30) + `"}}}` + "\n")
	p := New(&deaf{}, io.Discard, io.Discard, Options{Terminal: "pass", Tell: func(string, ...any) {}})
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		must(b, p.fromAgent(b.Context(), line))
	}
}
