//go:build linux

package grep

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"moltisfs/grep/match"
)

// maxMemory bounds the memory of a search, above its result.
const maxMemory = 16 << 20

// heapNow is the memory that the heap holds, garbage that was not yet collected included.
func heapNow() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() + s[1].Value.Uint64())
}

// peak runs fn and gives how far the heap grew meanwhile.
func peak(fn func()) int64 {
	runtime.GC()
	runtime.GC()
	base := heapNow()
	stop := make(chan struct{})
	most := int64(0)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			most = max(most, heapNow()-base)
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Microsecond):
			}
		}
	})
	fn()
	close(stop)
	wg.Wait()
	return most
}

// TestMemoryFlat: neither the size of a tree nor that of a file shows in the memory of a search.
func TestMemoryFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: writes files that are larger than that")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 1))
	line := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
			if r.IntN(6) == 0 {
				b[i] = ' '
			}
		}
		return b
	}
	for i := range 1500 {
		d := filepath.Join(dir, "many", fmt.Sprint(i%97), fmt.Sprint(i%7))
		os.MkdirAll(d, 0o755)
		os.WriteFile(filepath.Join(d, fmt.Sprint(i, ".txt")), append(line(2000), []byte("\nneedle in it\n")...), 0o644)
	}
	lines := bytes.Repeat(append(line(90), '\n'), 3*maxMemory/2/91)
	for name, b := range map[string][]byte{
		"lines.log": lines, "one-line": bytes.ReplaceAll(lines, []byte("\n"), []byte(" ")), "needles.log": bytes.Repeat([]byte("needle\n"), 3<<20), "binary": bytes.Repeat([]byte{0, 1, 2, 3}, 4<<20),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	lines = nil
	d := guarded(t, dir, anything{})
	for _, c := range []struct {
		name string
		p    string
		o    match.Options
		q    Query
	}{
		{"files", "needle", match.Options{}, Query{Limit: 10}},
		{"count", "needle", match.Options{}, Query{Mode: Count, Limit: 10}},
		{"content", "needle", match.Options{}, Query{Mode: Content, Before: 3, After: 3, Limit: 250}},
		{"only", "needle", match.Options{}, Query{Mode: Content, OnlyMatching: true, Limit: 250}},
		{"no literal", `[a-z]{3} [x-z]{4} [a-f]{3}\b`, match.Options{}, Query{Mode: Count, Limit: 10}},
		{"many states", `a.{5,20}b.{5,20}z`, match.Options{}, Query{Mode: Count, Limit: 10}},
		{"multiline", `it\n.*needle`, match.Options{Multiline: true}, Query{Multiline: true, Mode: Content, Limit: 100}},
		{"fold", `straße|needle`, match.Options{IgnoreCase: true}, Query{Mode: Count, Limit: 10}},
	} {
		var res *Result
		grew := peak(func() {
			m := compile(t, c.p, c.o)
			c.q.Matcher = m
			var err error
			if res, err = Search(context.Background(), Walk{Dir: d}, c.q); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s: %.1f MB", c.name, float64(grew)/(1<<20))
		if grew > maxMemory {
			t.Errorf("%s: the heap grew by %.1f MB, more than %d", c.name, float64(grew)/(1<<20), maxMemory>>20)
		}
		runtime.KeepAlive(res)
	}
	grew := peak(func() {
		if _, err := Files(context.Background(), Walk{Dir: d}, GlobQuery{Limit: 100}); err != nil {
			t.Fatal(err)
		}
	})
	if t.Logf("glob: %.1f MB", float64(grew)/(1<<20)); grew > maxMemory {
		t.Errorf("glob: the heap grew by %.1f MB", float64(grew)/(1<<20))
	}
}
