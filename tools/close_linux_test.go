//go:build linux && !rooted

package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/tools"
)

// TestCloseWaits: a call under way when Close begins runs to its end.
func TestCloseWaits(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := write(t, dir+"/ws/a.txt", "one\n")
	cfg := config.Default()
	cfg.Tools.FS.AllowPaths, cfg.Tools.FS.RequireApproval = []string{dir + "/ws/**"}, false
	hold, under, goOn := false, make(chan struct{}), make(chan struct{})
	s, err := tools.OpenFaulty(cfg, tools.Options{DataDir: dir + "/data"}, func(op string) *guardfs.Fault {
		if hold {
			hold = false
			close(under)
			<-goOn
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	hold = true
	type outcome struct {
		p   tools.Payload
		err error
	}
	ended, closed := make(chan outcome, 1), make(chan error, 1)
	go func() {
		p, err := s.Call(context.Background(), tools.Call{Tool: "Write", Args: json.RawMessage(`{"file_path":"` + f + `","content":"two\n"}`)})
		ended <- outcome{p, err}
	}()
	<-under
	go func() { closed <- s.Close() }()
	for { // until Close has begun
		if _, err := s.Call(context.Background(), tools.Call{Tool: "Nope"}); errors.Is(err, tools.ErrClosed) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	select {
	case <-closed:
		t.Error("Close came back in the middle of a call")
	default:
	}
	close(goOn)
	if o := <-ended; o.err != nil || tools.Refused(o.p) {
		t.Errorf("the call under way: %v %v", o.p, o.err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if got := content(t, f); got != "two\n" {
		t.Errorf("the call under way left %q", got)
	}
}
