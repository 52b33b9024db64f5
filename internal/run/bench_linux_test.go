//go:build !rooted

package run

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkTrue runs true bare, under bubblewrap and in a run, turn about. It gives the medians, the least times, which depend less on
// what else the machine does, and our ratios to bubblewrap.
func BenchmarkTrue(b *testing.B) {
	o := options(b)
	must(b, made(b, o).Drop())
	if _, err := exec.LookPath("bwrap"); err != nil {
		b.Skip("SKIPPED: no bubblewrap")
	}
	bwrap := []string{"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", o.Root, o.Root, "--unshare-pid", "--unshare-ipc", "true"}
	ways := []struct {
		name string
		run  func() error
	}{
		{"bare", func() error { return exec.Command("true").Run() }},
		{"bwrap", func() error { return exec.Command(bwrap[0], bwrap[1:]...).Run() }},
		{"run", func() error {
			r, err := New(o)
			if err != nil {
				return err
			}
			p, err := r.Start(b.Context(), Program{Args: []string{"true"}, Env: os.Environ()})
			if err == nil {
				_, err = p.Wait()
			}
			if err != nil {
				return err
			}
			return r.Drop()
		}},
	}
	times := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, w := range ways {
			begun := time.Now()
			if err := w.run(); err != nil {
				b.Fatal(w.name, err)
			}
			times[i] = append(times[i], time.Since(begun))
		}
	}
	for i, w := range ways {
		slices.Sort(times[i])
		b.ReportMetric(float64(times[i][0].Microseconds())/1000, w.name+"-least-ms")
		b.ReportMetric(float64(times[i][len(times[i])/2].Microseconds())/1000, w.name+"-ms")
	}
	b.ReportMetric(float64(times[2][0])/float64(times[1][0]), "least/bwrap")
	b.ReportMetric(float64(times[2][len(times[2])/2])/float64(times[1][len(times[1])/2]), "run/bwrap")
}
