package jsonrpc_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/tools"
)

var sessions = flag.Int("sessions", 30, "how many sessions TestManySessions has; at most 1024")

// Sessions at the same time, with ten calls each, lose nothing and see nothing of each other.
func TestManySessions(t *testing.T) {
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval, cfg.Tools.FS.CheckpointBeforeMutation = false, true
	s := serveTools(t, cfg, tools.Options{})
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	for i := range *sessions {
		all.Go(func() {
			var created struct {
				Result struct {
					ID string `json:"session_id"`
				}
			}
			if err := json.Unmarshal(s.send(t, "session.create", "{}"), &created); err != nil || created.Result.ID == "" {
				t.Errorf("no session: %v", err)
				return
			}
			file, text := filepath.Join(s.dir, fmt.Sprint("f", i)), ""
			invoke := func(tool, arguments string) string {
				start := time.Now()
				got := string(s.send(t, "capabilities.invoke", fmt.Sprintf(`{"capability":%q,"session_id":%q,"arguments":%s}`, tool, created.Result.ID, arguments)))
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
				if !strings.Contains(got, `"success":true`) {
					t.Errorf("%s %s: %s", tool, arguments, got)
				}
				return got
			}
			for n := range 5 {
				text += fmt.Sprintf("session %d says %d\n", i, n)
				invoke("Write", fmt.Sprintf(`{"file_path":%q,"content":%q}`, file, text))
				if got := invoke("Read", fmt.Sprintf(`{"file_path":%q}`, file)); !strings.Contains(got, fmt.Sprintf("session %d says %d", i, n)) {
					t.Errorf("session %d reads %s", i, got)
				}
			}
			if now, err := os.ReadFile(file); err != nil || string(now) != text {
				t.Errorf("session %d has lost something: %q, %v", i, now, err)
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d sessions, %d calls: median %v, p99 %v, at most %v; %d MB from the system", *sessions, len(took),
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1], m.Sys>>20)
	if len(took) != 10**sessions {
		t.Errorf("%d calls came back", len(took))
	}
}
