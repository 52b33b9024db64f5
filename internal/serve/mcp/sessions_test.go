package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"moltisfs/internal/dialect"
	"moltisfs/internal/serve/mcp"
)

// keeps is a dialect that keeps something for each session.
type keeps struct {
	mu    sync.Mutex
	ended []string
}

func (*keeps) Definitions() []dialect.Definition {
	return []dialect.Definition{{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object"}`), ReadOnly: true}}
}

func (*keeps) Call(context.Context, dialect.Call) (dialect.Answer, error) {
	return &dialect.Object{Of: "look", Content: json.RawMessage(`{}`)}, nil
}

func (k *keeps) EndSession(_ context.Context, principal, session string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = append(k.ended, principal+" "+session)
	return nil
}

// With the connection end the server's own session and all that calls have named, each once.
func TestSessionsEndWithTheConnection(t *testing.T) {
	t.Parallel()
	var in strings.Builder
	for i, session := range []string{"", "a", "b", "a"} {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"moltis-fs/session":%q,`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{}},"name":"look","arguments":{}}}`+"\n", i, session)
	}
	k := &keeps{}
	err := mcp.Serve(t.Context(), k, io.NopCloser(strings.NewReader(in.String())), io.Discard,
		mcp.Options{Principal: "ann", Session: "own"})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(k.ended)
	if got := strings.Join(k.ended, ", "); got != "ann a, ann b, ann own" {
		t.Errorf("ended are %s", got)
	}
}
