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
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// BenchmarkRewind takes 1,000 files of 10 KB back to what they were and forth again, everything on stable storage: plan, policy, look at every
// file, its own checkpoint, temporary files, exchange. Report: one direction in ms.
//
//	go test ./internal/engine -run - -bench Rewind -benchtime 5x
func BenchmarkRewind(b *testing.B) {
	x := grow(b, nil)
	c := x.call("s")
	c.Turn = "t"
	const files = 1000
	var paths []string
	for i := range files {
		old := bytes.Repeat([]byte(fmt.Sprintf("file %d, a line of it\n", i)), 500)
		path := fmt.Sprintf("%s/d%d/f%d.txt", x.ws, i%20, i)
		must(b, os.MkdirAll(filepath.Dir(path), 0o755))
		must(b, os.WriteFile(path, old, 0o644))
		paths = append(paths, path)
	}
	must(b, errOf(c.ChangeFiles(ctx, engine.Files{Paths: paths, Next: func(ts []*engine.Target) error {
		for _, t := range ts {
			t.After = engine.After{Kind: guardfs.KindFile, Content: append([]byte("a new first line\n"), t.Before.Content...)}
		}
		return nil
	}})))
	must(b, errOf(c.Restore(ctx, rewindTo("t"), engine.RestoreOptions{})))
	var spent []time.Duration
	b.ResetTimer()
	for i := range b.N {
		carry := (*engine.Call).Undo
		if i%2 == 1 {
			carry = (*engine.Call).Redo
		}
		start := time.Now()
		r, err := carry(x.call("s"), ctx, engine.RestoreOptions{})
		if err != nil || len(r.Targets) != files {
			b.Fatal(err)
		}
		spent = append(spent, time.Since(start))
	}
	b.StopTimer()
	var all time.Duration
	for _, d := range spent {
		all += d
	}
	b.ReportMetric(float64(all.Milliseconds())/float64(len(spent)), "ms/1000-files")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkChange changes a file of 10 KB, everything on stable storage, without a checkpoint and with a strict one, in turns. Report: medians in µs of the
// whole chain, and what the checkpoint adds.
//
//	go test ./internal/engine -run - -bench Change -benchtime 300x
func BenchmarkChange(b *testing.B) {
	var trees [2]*tree
	for i := range trees {
		trees[i] = grow(b, func(fs *config.FS) {
			fs.CheckpointBeforeMutation = i == 1
		})
		trees[i].write("f.txt", strings.Repeat("0 a line of a file of ten kilobytes\n", 280))
	}
	var spent [2][]time.Duration
	b.ResetTimer()
	for n := range b.N {
		for i, x := range trees {
			next := func(ts []*engine.Target) error {
				old := ts[0].Before.Content
				at := n * 36 % len(old)
				content := append([]byte(nil), old...)
				content[at] = byte('0' + (content[at]-'0'+1)%10)
				ts[0].After = engine.After{Kind: guardfs.KindFile, Content: content}
				return nil
			}
			start := time.Now()
			must(b, errOf(x.call("s").ChangeFiles(ctx, engine.Files{Paths: []string{x.ws + "/f.txt"}, Next: next})))
			spent[i] = append(spent[i], time.Since(start))
		}
	}
	b.StopTimer()
	plain, strict := median(spent[0]), median(spent[1])
	b.ReportMetric(plain, "plain-µs")
	b.ReportMetric(strict, "strict-µs")
	b.ReportMetric(strict-plain, "added-µs")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPark moves a tree of 20,000 files that the store can't hold to the trash and back, everything on stable storage. Report: one
// direction in ms; nearly all of it is the walk that asks the policy about every name.
func BenchmarkPark(b *testing.B) {
	x := grow(b, nil)
	const files = 20_000
	for i := range files {
		path := fmt.Sprintf("%s/t/d%d/f%d.txt", x.ws, i%200, i)
		must(b, os.MkdirAll(filepath.Dir(path), 0o755))
		must(b, os.WriteFile(path, nil, 0o644))
	}
	var there, back time.Duration
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		done, err := x.call("s").Delete(ctx, x.ws+"/t", engine.DeleteOptions{Recursive: true})
		if err != nil || done.Trashed[0].Parked == "" {
			b.Fatal(err)
		}
		there += time.Since(start)
		start = time.Now()
		must(b, errOf(x.call("s").Untrash(ctx, done.Trashed[0].ID, false)))
		back += time.Since(start)
	}
	b.ReportMetric(float64(there.Microseconds())/1000/float64(b.N), "ms/park")
	b.ReportMetric(float64(back.Microseconds())/1000/float64(b.N), "ms/unpark")
	b.ReportMetric(0, "ns/op")
}

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

// size adds up the files below the directory dir.
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
