package jsonrpc

import (
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
	"moltisfs/internal/serve"
	"moltisfs/tools"
)

var sessionCount = flag.Int("sessions", 30, "how many sessions TestManySessions has; at most 1024")

// Sessions at the same time, with ten calls each, lose nothing and see nothing of each other.
func TestManySessions(t *testing.T) {
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval, cfg.Tools.FS.CheckpointBeforeMutation = false, true
	r, secret := runTools(t, cfg)
	dir := t.TempDir()
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	for i := range *sessionCount {
		all.Go(func() {
			id := r.session(secret)
			file, text := filepath.Join(dir, fmt.Sprint("f", i)), ""
			invoke := func(tool, arguments string) string {
				start := time.Now()
				_, got := r.send(secret, invocation(tool, fmt.Sprintf(`,"session_id":%q,"arguments":%s`, id, arguments)))
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
	t.Logf("%d sessions, %d calls: median %v, p99 %v, at most %v; %d MB from the system", *sessionCount, len(took),
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1], m.Sys>>20)
}

// runTools serves the tools, and makes a token for them.
func runTools(t testing.TB, cfg config.Config) (r *running, secret string) {
	t.Helper()
	suite, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(t.TempDir(), "data")})
	must(t, err)
	t.Cleanup(func() { must(t, suite.Close()) })
	r = runDialect(t, suite.Dialect(), func(*Server) {})
	_, secret = r.token(serve.Token{Principal: "bench"})
	return r, secret
}

// BenchmarkReadOverJSONRPC is one Read of 4 KB over loopback, on a connection that stays: with its
// token looked up, its record in the audit log, and its answer taken.
func BenchmarkReadOverJSONRPC(b *testing.B) {
	r, secret := runTools(b, config.Default())
	file := filepath.Join(b.TempDir(), "a.txt")
	must(b, os.WriteFile(file, []byte(strings.Repeat("sixteen bytes it\n", 4096/17)), 0o600))
	body := invocation("Read", fmt.Sprintf(`,"arguments":{"file_path":%q}`, file))
	for b.Loop() {
		if _, answer := r.send(secret, body); !strings.Contains(answer, `"success":true`) {
			b.Fatal(answer)
		}
	}
}
