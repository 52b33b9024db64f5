package checkpoint_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

var alone = flag.Bool("alone", false, "BenchmarkEdit leaves the copies and git out, which keep the disk busy for the others")

var large = flag.Bool("large", false, "BenchmarkHistory with 500,000 checkpoints")

type times []time.Duration

func (t times) at(q float64) float64 {
	slices.Sort(t)
	return float64(t[int(float64(len(t)-1)*q)].Nanoseconds()) / 1e3
}

func diskUse(b *testing.B, dir string) (n int64) {
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			fi, err := e.Info()
			if err != nil {
				return err
			}
			n += fi.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

// publish makes an edit without any checkpoint: a synced temporary file, renamed over the old one.
func publish(b *testing.B, path string, body []byte) {
	f, err := os.Create(path + ".tmp")
	must(b, err)
	_, err = f.Write(body)
	must(b, err)
	must(b, f.Sync())
	must(b, f.Close())
	must(b, os.Rename(path+".tmp", path))
}

func copySynced(b *testing.B, dir string, i int, body []byte) {
	f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
	must(b, err)
	_, err = f.Write(body)
	must(b, err)
	must(b, f.Sync())
	must(b, f.Close())
	d, err := os.Open(dir)
	must(b, err)
	must(b, d.Sync())
	must(b, d.Close())
}

// BenchmarkEdit measures a whole synced edit without a checkpoint, with a strict one beside it, with a plain synced copy
// before it, and with git add and write-tree before it: interleaved, so that all meet the same disk. Report: medians in µs,
// what the checkpoint adds, bytes of the store per edit.
//
//	go test ./checkpoint -run - -bench Edit -benchtime 500x
func BenchmarkEdit(b *testing.B) {
	for _, size := range []int{10 << 10, 200 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			root := b.TempDir()
			d, err := checkpoint.Open(filepath.Join(root, "store"), checkpoint.Options{})
			must(b, err)
			defer d.Close()
			copies, work := filepath.Join(root, "copies"), filepath.Join(root, "work")
			must(b, os.Mkdir(copies, 0o700))
			must(b, os.Mkdir(work, 0o700))
			git, _ := exec.LookPath("git")
			switch {
			case *alone:
				git = ""
			case git != "":
				must(b, exec.Command(git, "-C", work, "init", "-q").Run())
			default:
				b.Log("SKIPPED: git is not here to compare with")
			}
			rng := rand.New(rand.NewSource(1))
			v := source(size, 1)
			path := filepath.Join(work, "a.go")
			publish(b, path, v)
			save(b, d, op(edit("/w/a", nil, v))) // the key frame belongs to no edit
			u0 := held(b, d)
			var plain, strict, copied, gitted times
			b.ResetTimer()
			for i := range b.N {
				next := nextVersion(rng, v)
				t := time.Now()
				publish(b, path, next)
				plain = append(plain, time.Since(t))

				o := op(edit("/w/a", v, next))
				o.Changes[0].Before.Hash, o.Changes[0].After.Hash = "", "" // whatever has to be hashed, Save hashes
				t = time.Now()
				saving := func() error {
					_, err := d.Save(ctx, o)
					return err
				}
				create := func() *os.File {
					f, err := os.Create(path + ".tmp")
					must(b, err)
					_, err = f.Write(next)
					must(b, err)
					return f
				}
				f := create() // in the order of the engine
				done := make(chan error, 1)
				go func() { done <- f.Sync() }()
				must(b, errors.Join(saving(), <-done, f.Close()))
				must(b, os.Rename(path+".tmp", path))
				strict = append(strict, time.Since(t))

				if !*alone {
					t = time.Now()
					copySynced(b, copies, i, v)
					publish(b, path, next)
					copied = append(copied, time.Since(t))
				}

				if git != "" && i%10 == 0 {
					t = time.Now()
					must(b, exec.Command(git, "-C", work, "add", ".").Run())
					must(b, exec.Command(git, "-C", work, "write-tree").Run())
					publish(b, path, next)
					gitted = append(gitted, time.Since(t))
				}
				v = next
			}
			b.StopTimer()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(plain.at(.5), "plain-µs")
			b.ReportMetric(strict.at(.5), "strict-µs")
			b.ReportMetric(strict.at(.5)-plain.at(.5), "added-µs")
			b.ReportMetric(strict.at(.99)-plain.at(.99), "added-p99-µs")
			if len(copied) > 0 {
				b.ReportMetric(copied.at(.5)-plain.at(.5), "added-by-copy-µs")
			}
			if len(gitted) > 0 {
				b.ReportMetric(gitted.at(.5)-plain.at(.5), "added-by-git-µs")
			}
			b.ReportMetric(float64(held(b, d)-u0)/float64(b.N), "store-B/edit")
			b.ReportMetric(float64(diskUse(b, copies))/float64(b.N), "copy-B/edit")
		})
	}
}

// held gives the bytes that the store d uses, without its write-ahead log.
func held(tb testing.TB, d *checkpoint.DB) int64 { return stats(tb, d).UsedBytes }
