package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
	var median [2]float64
	for i, d := range spent {
		slices.Sort(d)
		median[i] = float64(d[len(d)/2].Nanoseconds()) / 1e3
	}
	b.ReportMetric(median[0], "plain-µs")
	b.ReportMetric(median[1], "strict-µs")
	b.ReportMetric(median[1]-median[0], "added-µs")
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
