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

// BenchmarkReadOverJSONRPC is one Read of 4 KB over loopback, on a connection that stays: with its
// token looked up, its record in the audit log, and its answer taken.
func BenchmarkReadOverJSONRPC(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("sixteen bytes it\n", 4096/17)), 0o600); err != nil {
		b.Fatal(err)
	}
	suite, err := tools.Open(config.Default(), tools.Options{DataDir: filepath.Join(dir, "data")})
	if err != nil {
		b.Fatal(err)
	}
	defer suite.Close()
	tokens := token.At(filepath.Join(dir, "data", "tokens"))
	_, secret, err := tokens.Create(token.Token{Principal: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	l, err := listen.On("127.0.0.1:0", false)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- jsonrpc.New(suite.Dialect(), jsonrpc.Options{Tokens: tokens}).Serve(ctx, l) }()
	defer func() { cancel(); <-ended }()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"capabilities.invoke","params":{"capability":"Read","arguments":{"file_path":%q}}}`, file)
	for b.Loop() {
		req, err := http.NewRequest("POST", "http://"+l.Addr().String()+"/rpc", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(answer), `"success":true`) {
			b.Fatal(err, string(answer))
		}
	}
}
