package jsonrpc_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/listen"
	"moltisfs/internal/serve/jsonrpc"
	"moltisfs/internal/token"
	"moltisfs/tools"
)

// served is the tools on a loopback port, and a token for them.
type served struct {
	dir, url, secret string
	client           *http.Client
}

func serveTools(t testing.TB, cfg config.Config, o tools.Options) *served {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.DataDir = filepath.Join(t.TempDir(), "data")
	suite, err := tools.Open(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	tokens := token.At(filepath.Join(o.DataDir, "tokens"))
	_, secret, err := tokens.Create(token.Token{Principal: "bench"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen.On("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
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

// BenchmarkReadOverJSONRPC is one Read of 4 KB over loopback, on a connection that stays: with its
// token looked up, its record in the audit log, and its answer taken.
func BenchmarkReadOverJSONRPC(b *testing.B) {
	s := serveTools(b, config.Default(), tools.Options{})
	file := filepath.Join(s.dir, "a.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("sixteen bytes it\n", 4096/17)), 0o600); err != nil {
		b.Fatal(err)
	}
	params := fmt.Sprintf(`{"capability":"Read","arguments":{"file_path":%q}}`, file)
	for b.Loop() {
		if answer := s.send(b, "capabilities.invoke", params); !strings.Contains(string(answer), `"success":true`) {
			b.Fatalf("%s", answer)
		}
	}
}
