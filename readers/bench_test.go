package readers

import (
	"bytes"
	"context"
	"image/jpeg"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// gigabyte is a log of 10 million lines, in memory: what is measured is ours, not a disk's.
func gigabyte() (Source, *madeLog) {
	log := &madeLog{line: "2026-11-21T12:00:00Z INFO  request served path=/v1/items status=200 bytes=18213 duration=12.5ms id=4f2a\n", lines: 10_000_000}
	return Source{R: log, Size: log.size()}, log
}

func camera(b testing.TB) []byte {
	var out bytes.Buffer
	must(b, jpeg.Encode(&out, drawn(6000, 4000, 40), &jpeg.Options{Quality: 90}))
	return out.Bytes()
}

// workloads are the rows of docs/internals/benchmarks.md with times and memory peaks.
var workloads = map[string]func(b testing.TB) func(r *Readers, i int){
	"log, first page": func(b testing.TB) func(*Readers, int) {
		src, _ := gigabyte()
		return func(r *Readers, i int) { mustRead(b, r, src, Options{Limit: DefaultLines}) }
	},
	"log, line 5,000,000": func(b testing.TB) func(*Readers, int) {
		src, _ := gigabyte()
		return func(r *Readers, i int) {
			mustRead(b, r, src, Options{Offset: 5_000_000})
		}
	},
	"JPEG of 24 megapixels": func(b testing.TB) func(*Readers, int) {
		raw := camera(b)
		return func(r *Readers, i int) { mustRead(b, r, sourceOf(raw), Options{AllowLarge: true}) }
	},
	"PDF, 20 of 100 pages": func(b testing.TB) func(*Readers, int) {
		raw := corpusFile(b, "pdf/latex_100pages.pdf")
		return func(r *Readers, i int) { mustRead(b, r, sourceOf(raw), Options{MaxBytes: 1 << 20}) }
	},
	"PDF, all 100 pages": func(b testing.TB) func(*Readers, int) {
		raw := corpusFile(b, "pdf/latex_100pages.pdf")
		return func(r *Readers, i int) {
			for _, pages := range []string{"1-20", "21-40", "41-60", "61-80", "81-100"} {
				mustRead(b, r, sourceOf(raw), Options{Pages: pages, MaxBytes: 1 << 20})
			}
		}
	},
	"text of 4 KB": func(b testing.TB) func(*Readers, int) {
		raw := []byte(strings.Repeat("func main() { return 12345 }\n", 141))
		return func(r *Readers, i int) { mustRead(b, r, sourceOf(raw), Options{}) }
	},
}

func mustRead(b testing.TB, r *Readers, s Source, o Options) {
	if _, err := r.Read(context.Background(), s, o); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRead(b *testing.B) {
	for name, prepare := range workloads {
		b.Run(name, func(b *testing.B) {
			run := prepare(b)
			r := testReaders(b)
			run(r, -1) // engines are started; BenchmarkPDFStart is about that
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				run(r, i)
				i++
			}
		})
	}
}

// BenchmarkPDFStart is the first PDF of a process: without a compile cache, and with one.
func BenchmarkPDFStart(b *testing.B) {
	raw := corpusFile(b, "pdf/latex_100pages.pdf")
	warm := b.TempDir()
	once := func(dir string) {
		r, err := New(Config{CacheDir: dir})
		must(b, err)
		mustRead(b, r, sourceOf(raw), Options{Pages: "1-20", MaxBytes: 1 << 20})
		must(b, r.Close())
	}
	once(warm)
	for _, c := range []struct{ name, dir string }{{"cold", ""}, {"cached", warm}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				once(c.dir)
			}
		})
	}
}

// BenchmarkPeak runs each workload once in a process of its own and reports that process' peak of resident memory. What the preparation
// takes is in it: for the JPEG an image of 96 MB.
func BenchmarkPeak(b *testing.B) {
	for name := range workloads {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(os.Args[0], "readers-workload", name)
				out, err := cmd.CombinedOutput()
				if err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				before, after, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
				if !ok {
					b.Skip("SKIPPED: this system does not tell a process' peak of memory")
				}
				prepared, _ := strconv.ParseFloat(before, 64)
				peak, _ := strconv.ParseFloat(after, 64)
				b.ReportMetric(prepared/1024, "MB-before")
				b.ReportMetric(peak/1024, "MB-peak")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// peakMemory is this process' peak of resident memory in KB, reset to what is resident now when it is asked to; "" when it can't be told.
func peakMemory(reset bool) string {
	if reset {
		os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for _, l := range strings.Split(string(status), "\n") {
		if f := strings.Fields(l); len(f) > 1 && f[0] == "VmHWM:" {
			return f[1]
		}
	}
	return ""
}
