package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"moltisfs/dialect"
	"moltisfs/internal/serve/mcp"
)

// toy is a whole dialect: one tool that says what it is given.
type toy struct{}

func (toy) Definitions() []dialect.Definition {
	return []dialect.Definition{{
		Name: "echo", Description: "Say it again.", ReadOnly: true,
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"say":{"type":"string"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object"}`),
	}}
}

func (toy) Call(_ context.Context, c dialect.Call) (dialect.Answer, error) {
	if c.Tool != "echo" {
		return nil, &dialect.UnknownToolError{Tool: c.Tool, Nearest: "echo"}
	}
	var args struct{ Say string }
	if err := json.Unmarshal(c.Args, &args); err != nil || args.Say == "" {
		return said{"say something", true}, nil
	}
	return said{c.Session + " says " + args.Say, false}, nil
}

type said struct {
	text string
	no   bool
}

func (s said) Kind() string                     { return "said" }
func (s said) Refused() bool                    { return s.no }
func (s said) Text() string                     { return s.text }
func (s said) JSON(bool) ([]byte, error)        { return json.Marshal(map[string]string{"said": s.text}) }
func (s said) Blocks() ([]dialect.Block, error) { return nil, nil }

// Whatever serves calls takes any dialect: the command line and MCP know nothing of tools.
func TestAnyDialectIsServed(t *testing.T) {
	var out bytes.Buffer
	in := &invocation{streams: streams{in: strings.NewReader(`{"id":1,"tool":"echo","args":{"say":"b"}}
{"id":2,"tool":"echo"}
{"id":3,"tool":"ecko"}
`), out: &out}}
	call := dialect.Call{Session: "s", Tool: "echo", Args: json.RawMessage(`{"say":"a"}`)}
	if err := callOnce(t.Context(), in, toy{}, call); err != nil {
		t.Error(err)
	}
	if e := exitOf(callOnce(t.Context(), in, toy{}, dialect.Call{Tool: "echo"})); e.status != exitRefused {
		t.Errorf("a refusal ends with %d", e.status)
	}
	if e := exitOf(runBatch(t.Context(), in, toy{}, call)); e.status != exitMisuse {
		t.Errorf("a batch with an unknown tool ends with %d", e.status)
	}
	messages := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"say":"c"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ecko"}}
`)
	if err := mcp.Serve(t.Context(), toy{}, messages, &out, mcp.Options{Session: "m"}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`{"said":"s says a"}`, `{"said":"say something"}`, `{"id":1,"result":{"said":"s says b"}}`,
		`"hint":"did you mean echo?"`, `"text":"m says c"`, `"structuredContent":{"said":"m says c"}`,
		`there is no tool \"ecko\"; did you mean echo?`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}
