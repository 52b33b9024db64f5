package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/tools"
)

// peak runs f with the garbage collector at work and gives the most memory that was in use at any moment, above what was before.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // what is dead goes at once: it is the live part that counts
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := before.HeapAlloc
	end, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(200 * time.Microsecond):
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
		}
	})
	f()
	close(end)
	done.Wait()
	return most - before.HeapAlloc
}

// TestMemoryOfAnEdit: an edit of one line in a file of 10 MB, from the call to the answer, holds less than four times the file at any moment.
func TestMemoryOfAnEdit(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	text := strings.Repeat("some line of code that is about sixty-four bytes in its length\n", 80_000)
	for charset, raw := range map[string]string{
		"utf-8":      text + "counter = 1;\n" + text,
		"iso-8859-1": text + "counter = 1; // d\xe9j\xe0 vu\n" + text,
	} {
		file := filepath.Join(root, charset+".go")
		if err := os.WriteFile(file, []byte(raw), 0o644); err != nil {
			t.Fatal(err)
		}
		args := fmt.Sprintf(`{"file_path":%q,"old_string":"counter = 1;","new_string":"counter = 2;"}`, file)
		got := peak(func() {
			p, err := s.Call(context.Background(), tools.Call{Tool: "Edit", Args: json.RawMessage(args)})
			if err != nil || tools.Refused(p) {
				t.Fatal(err, p)
			}
		})
		times := float64(got) / float64(len(raw))
		t.Logf("%s: %.2f times the file of %d bytes", charset, times, len(raw))
		if times >= 4 {
			t.Errorf("%s: %.2f times the file", charset, times)
		}
	}
}
