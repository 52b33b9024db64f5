//go:build unix

package mcp_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	tokens "moltisfs/internal/serve"
	"moltisfs/internal/serve/jsonrpc"
	"moltisfs/internal/serve/mcp"
	"moltisfs/tools"
)

var load = flag.Bool("load", false, "TestHTTPLoad measures 1, 100 and 1,000 sessions: make bench")

// loaded is a server under load.
type loaded struct {
	name, addr, call string
	secrets          []string
	close            func()
}

// theirs is the SDK's own server with a tool that echoes: the floor.
func theirs(t *testing.T) loaded {
	srv := sdk.NewServer(&sdk.Implementation{Name: "echo"}, nil)
	type text struct {
		Text string `json:"text"`
	}
	sdk.AddTool(srv, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &http.Server{Handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil)}
	go func() { _ = s.Serve(l) }()
	return loaded{"the SDK's echo", l.Addr().String(), `"echo","arguments":{"text":"hello"}`, []string{""}, func() { _ = s.Close() }}
}

// ours is our server of a dialect, with ten principals.
func ours(t *testing.T, name, call string, d dialect.Dialect) loaded {
	store := tokens.Tokens(filepath.Join(t.TempDir(), "tokens"))
	h, err := mcp.NewHTTP(d, mcp.Options{Run: "run"})
	must(t, err)
	l, err := tokens.Listen("127.0.0.1:0", false)
	must(t, err)
	s := loaded{name: name, addr: l.Addr().String(), call: call}
	for i := range 10 {
		_, secret, err := store.Create(tokens.Token{Principal: fmt.Sprint("p", i)})
		must(t, err)
		s.secrets = append(s.secrets, secret)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- jsonrpc.New(d, jsonrpc.Options{Tokens: store, MCP: h}).Serve(ctx, l) }()
	s.close = func() { cancel(); must(t, <-ended) }
	return s
}

// TestHTTPLoad has sessions call at the same time, each with its stream for news open, and measures how long a call takes and what memory
// the sessions take: client and server together. The floor is the SDK's own server, in the same run.
func TestHTTPLoad(t *testing.T) {
	most, calls := []int{20}, 200
	if *load {
		most, calls = []int{1, 100, 1000}, 5000
	}
	file := filepath.Join(t.TempDir(), "f")
	writeFile(t, file, strings.Repeat("sixteen bytes it\n", 4096/17))
	cfg := config.Default()
	suite, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(t.TempDir(), "data")})
	must(t, err)
	defer func() { must(t, suite.Close()) }()
	for _, n := range most {
		for _, make := range []func() loaded{
			func() loaded { return theirs(t) },
			func() loaded { return ours(t, "ours, echo", `"who","arguments":{}`, &toy{}) },
			func() loaded {
				return ours(t, "ours, Read of 4 KB", fmt.Sprintf(`"Read","arguments":{"file_path":%q}`, file), suite.Dialect())
			},
		} {
			s := make()
			row := s.run(t, n, max(calls/n, 1))
			s.close()
			t.Log(row)
		}
	}
}

// run has n sessions make some calls each.
func (s loaded) run(t *testing.T, n, calls int) string {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * n}}
	defer client.CloseIdleConnections()
	do := func(i int, method, session, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+"/mcp", strings.NewReader(body))
		must(t, err)
		r.Header = with(old, "Authorization", "Bearer "+s.secrets[i%len(s.secrets)])
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return nil
		}
		return resp
	}
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := memory()
	sessions := make([]string, n)
	var all sync.WaitGroup
	var streams []io.Closer
	for i := range n {
		resp := do(i, "POST", "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		_, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		sessions[i] = resp.Header.Get("Mcp-Session-Id")
		resp = do(i, "POST", sessions[i], `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		_ = resp.Body.Close()
		stream := do(i, "GET", sessions[i], "")
		if _, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || stream.StatusCode != 200 {
			t.Fatalf("stream %d: %s, %v", i, stream.Status, err)
		}
		streams = append(streams, stream.Body)
	}
	var mu sync.Mutex
	var took []time.Duration
	failed := 0
	start, used := time.Now(), cpu()
	for i := range n {
		all.Go(func() {
			for c := range calls {
				begun := time.Now()
				resp := do(i, "POST", sessions[i], fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s}}`, c+1, s.call))
				if resp == nil {
					return
				}
				b, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				mu.Lock()
				took = append(took, time.Since(begun))
				if err != nil || !strings.Contains(string(b), `"result":`) || strings.Contains(string(b), `"isError":true`) {
					failed++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	whole := time.Since(start)
	used = cpu() - used
	after := memory()
	for _, c := range streams {
		_ = c.Close()
	}
	if failed > 0 {
		t.Errorf("%s, %d sessions: %d of %d calls failed", s.name, n, failed, len(took))
	}
	slices.Sort(took)
	return fmt.Sprintf("| %s | %d | %d | %.1f | %.1f | %.0f | %.2f | %.0f | %d |", s.name, n, len(took), ms(took[len(took)/2]), ms(took[len(took)*99/100]),
		float64(len(took))/whole.Seconds(), ms(used)/float64(len(took)), float64(after-min(before, after))/float64(n)/1024, failed)
}

// cpu is the time of processors that this process has had.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can't fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
