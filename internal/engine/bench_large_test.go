//go:build linux && !rooted

package engine_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"moltisfs/internal/engine"
)

const gigabyte = 1 << 30

// median is the middle one, in µs.
func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Nanoseconds()) / 1e3
}

// BenchmarkAppendLarge appends 1 KB to a file of 1 GB, in turns by the engine and by plain calls:
// open O_APPEND, write, fsync, close. Report: medians in µs, and what the data
// directory grew by with each append.
//
//	go test ./internal/engine -run - -bench AppendLarge -benchtime 500x
func BenchmarkAppendLarge(b *testing.B) {
	x := grow(b, nil)
	var files [2]string
	for i := range files {
		files[i] = x.write([]string{"large", "plain"}[i], "")
		must(b, os.Truncate(files[i], gigabyte))
	}
	kb := bytes.Repeat([]byte("a line of 32 bytes, as in a log\n"), 32)
	must(b, errOf(x.call("s").Append(ctx, files[0], kb, engine.Rules{})))
	before := size(b, x.data)
	var ours, plain []time.Duration
	b.ResetTimer()
	for i := range b.N {
		copy(kb, fmt.Sprintf("%08d", i)) // else the store has it once
		start := time.Now()
		must(b, errOf(x.call("s").Append(ctx, files[0], kb, engine.Rules{})))
		ours = append(ours, time.Since(start))
		start = time.Now()
		f, err := os.OpenFile(files[1], os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.Write(kb)
		}
		if err == nil {
			err = f.Sync()
		}
		must(b, err)
		must(b, f.Close())
		plain = append(plain, time.Since(start))
	}
	b.StopTimer()
	must(b, x.Close()) // what waits for the next save is written
	b.ReportMetric(median(ours), "µs")
	b.ReportMetric(median(plain), "plain-µs")
	b.ReportMetric(float64(size(b, x.data)-before)/float64(b.N), "store-bytes")
	b.ReportMetric(0, "ns/op")
}

// size is what the files below a directory hold.
func size(t testing.TB, dir string) (n int64) {
	must(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var i fs.FileInfo
			if i, err = d.Info(); err == nil {
				n += i.Size()
			}
		}
		return err
	}))
	return n
}

// BenchmarkCopyLarge copies a file of 1 GB, in turns by the engine and by io.Copy, which may have the
// kernel do it, and piece by piece as ours does but without a hash. Report: medians in ms, and all
// that a copy allocated.
//
//	go test ./internal/engine -run - -bench CopyLarge -benchtime 5x
func BenchmarkCopyLarge(b *testing.B) {
	x := grow(b, nil)
	from := x.write("large", "")
	f, err := os.Create(from)
	must(b, err)
	for range gigabyte >> 20 {
		piece := make([]byte, 1<<20)
		rand.Read(piece) //nolint:errcheck // never fails
		must(b, errOf(f.Write(piece)))
	}
	must(b, errors.Join(f.Sync(), f.Close()))
	plain := func(hide bool) error {
		in, err := os.Open(from)
		must(b, err)
		defer in.Close() //nolint:errcheck // nothing was written through it
		out, err := os.Create(x.ws + "/plain")
		must(b, err)
		if !hide {
			_, err = io.Copy(out, in)
			return errors.Join(err, out.Close())
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 1<<20))
		return errors.Join(err, out.Close())
	}
	var spent [3][]time.Duration
	most := uint64(0)
	b.ResetTimer()
	for range b.N {
		for i, run := range []func() error{
			func() error {
				return errOf(x.call("s").Copy(ctx, engine.CopyArgs{From: from, To: x.ws + "/ours"}))
			},
			func() error { return plain(false) },
			func() error { return plain(true) },
		} {
			must(b, errors.Join(os.RemoveAll(x.ws+"/ours"), os.RemoveAll(x.ws+"/plain")))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			must(b, run())
			spent[i] = append(spent[i], time.Since(start))
			if runtime.ReadMemStats(&after); i == 0 {
				most = max(most, after.TotalAlloc-before.TotalAlloc)
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(median(spent[0])/1e3, "ms")
	b.ReportMetric(median(spent[1])/1e3, "io.Copy-ms")
	b.ReportMetric(median(spent[2])/1e3, "pieces-ms")
	b.ReportMetric(float64(most)/(1<<20), "allocated-MB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMove renames a file there and back, of any size, and a directory of 10,000 files. Report: medians in µs, and what the data directory
// grew by.
//
//	go test ./internal/engine -run - -bench 'Move$' -benchtime 20x
func BenchmarkMove(b *testing.B) {
	for _, of := range []string{"1 KB", "60 MB", "70 MB", "1 GB", "10,000 files"} {
		b.Run(of, func(b *testing.B) {
			x := grow(b, nil)
			names := [2]string{x.ws + "/a", x.ws + "/b"}
			if of == "10,000 files" {
				for i := range 10_000 {
					x.write(fmt.Sprintf("a/%d/%d", i/100, i), "")
				}
			} else {
				n := map[string]int64{"1 KB": 1 << 10, "60 MB": 60e6, "70 MB": 70e6, "1 GB": gigabyte}[of]
				must(b, os.WriteFile(names[0], nil, 0o600))
				must(b, os.Truncate(names[0], n))
			}
			x.write("other", "")
			_, err := x.call("s").Move(ctx, engine.MoveArgs{From: x.ws + "/other", To: x.ws + "/another"}) // the store is made
			must(b, err)
			before := size(b, x.data)
			var took []time.Duration
			b.ResetTimer()
			for i := range b.N {
				start := time.Now()
				must(b, errOf(x.call("s").Move(ctx, engine.MoveArgs{From: names[i%2], To: names[1-i%2]})))
				took = append(took, time.Since(start))
			}
			b.StopTimer()
			b.ReportMetric(median(took), "µs/move")
			b.ReportMetric(float64(size(b, x.data)-before)/float64(b.N), "B/move")
		})
	}
}
