//go:build unix

package checkpoint_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// Nobody waits for a writer to a named pipe that lies where a content should.
func TestAPipeIsNoBlobFile(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	save(t, d, op(edit("/w/a", randomText(600<<10, 1), nil)))
	name := blobFiles(t, dir)[0]
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip("SKIPPED: no named pipes here:", err)
	}
	checked := make(chan *checkpoint.Report, 1)
	go func() {
		r, _ := d.Check(ctx, true)
		checked <- r
	}()
	select {
	case r := <-checked:
		if r == nil || len(r.Problems) == 0 {
			t.Errorf("check must find it: %+v", r)
		}
	case <-time.After(20 * time.Second):
		t.Error("check waits for a pipe")
		if w, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil { // let it go, so that the store can be closed
			w.Close()
		}
	}
}
