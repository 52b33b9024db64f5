package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/serve/mcp"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
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

func (k *keeps) EndSession(_ context.Context, principal, session string, forever bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended = append(k.ended, principal+" "+session); forever {
		k.ended[len(k.ended)-1] += " for ever"
	}
	return nil
}

// With the connection end the server's own session and all that calls have named, each once. Only the name of a run never comes again.
func TestSessionsEndWithTheConnection(t *testing.T) {
	t.Parallel()
	for own, o := range map[string]mcp.Options{"own": {Principal: "ann", Session: "own", Run: "run"}, "run for ever": {Principal: "ann", Run: "run"}} {
		var in strings.Builder
		for i, session := range []string{"", "a", "b", "a"} {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"moltis-fs/session":%q,%s},"name":"look","arguments":{}}}`+"\n",
				i, session, stateless)
		}
		k := &keeps{}
		err := mcp.Serve(t.Context(), k, io.NopCloser(strings.NewReader(in.String())), io.Discard,
			o)
		must(t, err)
		slices.Sort(k.ended)
		if got := strings.Join(k.ended, ", "); got != "ann a, ann b, ann "+own {
			t.Errorf("ended are %s", got)
		}
	}
}

// A diff that is too long to be shown whole is not approved by accepting the form alone.
func TestElicitationOfWhatIsNotShown(t *testing.T) {
	long := strings.Repeat("x\n", 1500)
	for _, revision := range revisions {
		for _, c := range []struct{ action, content, kind string }{
			{"accept", long, "approval_denied"},
			{"accept unseen", long, "write"},
			{"decline unseen", long, "approval_denied"},
			{"accept", "short\n", "write"},
		} {
			root := toolstest.Tree(t)
			f := file(t, root, "a.txt", "one\n")
			form := ""
			s := start(t, config.Default(), tools.Options{}, mcp.Options{Elicit: true}, "test", revision, func(p *sdk.ElicitParams) string {
				form = fmt.Sprint(p.RequestedSchema)
				return c.action
			})
			r := call(t, s, "Write", map[string]any{"file_path": f, "content": c.content})
			if kindOf(r) != c.kind || (content(t, f) == c.content) != (c.kind == "write") {
				t.Errorf("%s, %s of %d bytes: %s", revision, c.action, len(c.content), mustJSON(t, r))
			}
			if strings.Contains(form, "lines of the diff unseen") != (c.content == long) {
				t.Errorf("%s, %d bytes: the form is %s", revision, len(c.content), form)
			}
			if c.action == "accept" && c.content == long && !strings.Contains(textOf(t, r), "too long to be shown whole") {
				t.Errorf("%s: %s", revision, textOf(t, r))
			}
		}
	}
}

func chmodX(path string) error { return os.Chmod(path, 0o755) }

// A request that says no revision, before any handshake, has bad parameters: there is no code 0.
func TestStrayRequests(t *testing.T) {
	for _, c := range []struct{ method, params, want string }{
		{"tools/list", ``, `-32602`},
		{"tools/list", `,"params":{}`, `-32602`},
		{"tools/call", `,"params":{"name":"Read","arguments":{}}`, `-32602`},
		{"server/discover", `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`, `"code":-32`},
		{"tools/list", `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`, `-32602`},
		{"tools/list", `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, `-32602`},
		{"nonsense", ``, `-32602`},
		{"ping", ``, `"result"`},
	} {
		p := newPlain(t, config.Default(), tools.Options{}, mcp.Options{})
		got := p.line(`{"jsonrpc":"2.0","id":"x","method":"` + c.method + `"` + c.params + `}`)
		if !strings.Contains(got, c.want) || !strings.Contains(got, `"id":"x"`) {
			t.Errorf("%s%s: %s", c.method, c.params, got)
		}
	}
	p := newPlain(t, config.Default(), tools.Options{}, mcp.Options{})
	p.hello("2025-06-18", "{}")
	for method, want := range map[string]string{"tools/list": `"Read"`, "nonsense": "-32601"} {
		if got := p.line(`{"jsonrpc":"2.0","id":2,"method":"` + method + `"}`); !strings.Contains(got, want) {
			t.Errorf("%s after the handshake: %s", method, got)
		}
	}
}
