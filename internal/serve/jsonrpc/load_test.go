package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
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
	"moltisfs/internal/serve/jsonrpc"
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

// served is the tools on a loopback port, and a token for them.
type served struct {
	dir, url, secret string
	client           *http.Client
}

func serveTools(t testing.TB, cfg config.Config, o tools.Options) *served {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	o.DataDir = filepath.Join(t.TempDir(), "data")
	suite, err := tools.Open(cfg, o)
	must(t, err)
	tokens := serve.Tokens(filepath.Join(o.DataDir, "tokens"))
	_, secret, err := tokens.Create(serve.Token{Principal: "bench"})
	must(t, err)
	l, err := serve.Listen("127.0.0.1:0", false)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- jsonrpc.New(suite.Dialect(), jsonrpc.Options{Tokens: tokens}).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := suite.Close(); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 256}}
	return &served{dir, "http://" + l.Addr().String() + "/rpc", secret, client}
}

func (s *served) send(t testing.TB, method, params string) []byte {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	req, err := http.NewRequest("POST", s.url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+s.secret)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return answer
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkReadOverJSONRPC is one Read of 4 KB over loopback, on a connection that stays: with its
// token looked up, its record in the audit log, and its answer taken.
func BenchmarkReadOverJSONRPC(b *testing.B) {
	s := serveTools(b, config.Default(), tools.Options{})
	file := filepath.Join(s.dir, "a.txt")
	must(b, os.WriteFile(file, []byte(strings.Repeat("sixteen bytes it\n", 4096/17)), 0o600))
	params := fmt.Sprintf(`{"capability":"Read","arguments":{"file_path":%q}}`, file)
	for b.Loop() {
		if answer := s.send(b, "capabilities.invoke", params); !bytes.Contains(answer, []byte(`"success":true`)) {
			b.Fatalf("%s", answer)
		}
	}
}
