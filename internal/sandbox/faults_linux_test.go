//go:build !rooted

package sandbox

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// bare leaves out directories: one whose removal failed stays, and the answer tells of it, as without a worker.
func bare(looks string) string { return directory.ReplaceAllString(looks, "") }

var directory = regexp.MustCompile(`(?m)^\S* d.*\n`)

// The worker's answer to the N-th request of every change is an errno, whether it made the call or not: the change is made
// or was not, the answer says which, and the next start leaves nothing of it.
func TestFaultInWorkersAnswers(t *testing.T) {
	faults, failed := 0, 0
	for i, name := range slices.Sorted(maps.Keys(changes)) {
		t.Run(name, func(t *testing.T) {
			f, b := changes[name], box(t)
			total, old, done := b.counted(&f)
			for j, bad := range []struct {
				how   string
				errno unix.Errno
				after bool
			}{{"all", unix.EIO, false}, {"all", unix.ENOSPC, false}, {"changing", unix.EIO, true}} {
				n, stride := 1, *frameStride
				if stride == 0 {
					n, stride = 1+total*((i+2*j)%5)/5, total
				}
				for ; n <= total; n += stride {
					err := errors.Join(b.relay(&f), b.arm(bad.how, n, bad.errno, bad.after))
					if err != nil {
						t.Fatal("laying it: ", err)
					}
					cause := f.run(b)
					if _, err := b.s.now.ask(&request{op: opPing, a: 1}, nil, nil); err != nil || errors.Is(cause, guardfs.ErrUnavailable) {
						t.Fatalf("%v at %d of %d: the worker: %v, %v", bad, n, total, err, cause)
					}
					faults++
					now, litter := b.looks()
					if litter != nil {
						b.Close()
						b.open()
						now, litter = b.looks()
					}
					switch {
					case litter != nil || cause == nil && now != done || cause != nil && now != old && bare(now) != bare(done):
						t.Fatalf("%v at %d of %d: %v, left %v, and the tree is\n%s\nit was\n%s\nand should have become\n%s",
							bad, n, total, cause, litter, now, old, done)
					case cause != nil:
						failed++
					}
				}
			}
			b.settled()
		})
	}
	if t.Logf("%d faults, %d failed", faults, failed); failed == 0 {
		t.Error("no fault came to anybody: the test tests nothing")
	}
}
