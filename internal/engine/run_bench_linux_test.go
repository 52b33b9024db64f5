package engine_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"moltisfs/internal/engine"
)

// BenchmarkRun has a program change many files, and compares what it takes to bring that into the workspace with what the same program takes
// there by itself: the ratios "applied/bare" and "undone/bare". It needs root, and the right to mount.
func BenchmarkRun(b *testing.B) {
	write := func(dir string, n int, content string) {
		for i := range n {
			if i%100 == 0 {
				must(b, os.MkdirAll(fmt.Sprintf("%s/%d", dir, i/100), 0o755))
			}
			must(b, os.WriteFile(fmt.Sprintf("%s/%d/f%d", dir, i/100, i), []byte(content), 0o644))
		}
	}
	for name, of := range map[string]struct{ before, program func(dir string) }{
		"sed_over_3000": {func(dir string) { write(dir, 3000, "one two three\n") }, func(dir string) {
			if out, err := exec.Command("sh", "-c", "find "+dir+" -name 'f*' | xargs sed -i s/two/2/").CombinedOutput(); err != nil {
				b.Fatal(string(out), err)
			}
		}},
		"50000_ignored": {func(dir string) { must(b, os.WriteFile(dir+"/.gitignore", []byte("target\n"), 0o644)) },
			func(dir string) { write(dir+"/target", 50_000, "built\n") }},
	} {
		b.Run(name, func(b *testing.B) {
			var bare, derived, applied, undone time.Duration
			for b.Loop() {
				r := newRan(b, nil)
				of.before(r.ws)
				took := func(d *time.Duration, do func()) {
					start := time.Now()
					do()
					*d += time.Since(start)
				}
				u := r.layer(b, "", of.program)
				took(&derived, func() {
					_, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: name, DryRun: true})
					must(b, err)
				})
				took(&applied, func() {
					_, err := r.call().ApplyRun(ctx, engine.RunArgs{Upper: u, Command: name})
					must(b, err)
				})
				took(&undone, func() {
					_, err := r.call().Undo(ctx, engine.RestoreOptions{})
					must(b, err)
				})
				took(&bare, func() { of.program(r.ws) })
			}
			n := time.Duration(b.N)
			b.ReportMetric((bare / n).Seconds(), "bare-s/op")
			b.ReportMetric((derived / n).Seconds(), "planned-s/op")
			b.ReportMetric((applied / n).Seconds(), "applied-s/op")
			b.ReportMetric(applied.Seconds()/bare.Seconds(), "applied/bare")
			b.ReportMetric(undone.Seconds()/bare.Seconds(), "undone/bare")
		})
	}
}
