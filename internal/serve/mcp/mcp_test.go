package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/serve/mcp"
	"moltisfs/internal/testdir"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

var must = testdir.Must

// The two ways of the protocol: with a handshake and requests from the server, and without.
var revisions = []string{"2025-11-25", "2026-07-28"}

// serve serves a suite until the test ends.
func serve(t testing.TB, cfg config.Config, so tools.Options, o mcp.Options) (toServer *io.PipeWriter, fromServer *io.PipeReader) {
	t.Helper()
	if so.DataDir == "" {
		so.DataDir = filepath.Join(t.TempDir(), "data")
	}
	suite, err := tools.Open(cfg, so)
	must(t, err)
	t.Cleanup(func() { must(t, suite.Close()) })
	return serveDialect(t, suite.Dialect(), o)
}

// serveDialect serves a dialect until the test ends.
func serveDialect(t testing.TB, d dialect.Dialect, o mcp.Options) (toServer *io.PipeWriter, fromServer *io.PipeReader) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := mcp.Serve(context.Background(), d, in, out, o)
		out.Close()
		served <- err
	}()
	t.Cleanup(func() {
		toServer.Close()
		if err := <-served; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	return toServer, fromServer
}

// start serves a suite over the case's tree and connects a client to it.
func start(t *testing.T, cfg config.Config, so tools.Options, o mcp.Options, name, revision string, elicit func(*sdk.ElicitParams) string) *sdk.ClientSession {
	t.Helper()
	toServer, fromServer := serve(t, cfg, so, o)
	co := &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}
	if name == "test" { // a program, which asks for all that there is
		co.Capabilities.Experimental = map[string]any{"moltis-fs/structured": map[string]any{}}
	}
	if elicit != nil {
		co.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			res := &sdk.ElicitResult{Action: elicit(r.Params)}
			if action, ok := strings.CutSuffix(res.Action, " unseen"); ok {
				res.Action, res.Content = action, map[string]any{"unseen": true}
			}
			return res, nil
		}
	}
	return connect(t, toServer, fromServer, name, revision, co)
}

// connect connects a client of a revision to a server.
func connect(t testing.TB, in io.WriteCloser, out io.ReadCloser, name, revision string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: name, Version: "1"}, o).Connect(context.Background(),
		&sdk.IOTransport{Reader: out, Writer: in}, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args any) *sdk.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

func textOf(t *testing.T, r *sdk.CallToolResult) string {
	t.Helper()
	if len(r.Content) == 0 {
		t.Fatal("no content")
	}
	return r.Content[0].(*sdk.TextContent).Text
}

func kindOf(r *sdk.CallToolResult) string {
	m, _ := r.StructuredContent.(map[string]any)
	k, _ := m["kind"].(string)
	return k
}

func file(t *testing.T, root, name, content string) string {
	t.Helper()
	p := filepath.Join(root, name)
	writeFile(t, p, content)
	return p
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// Every golden call answers the same over MCP as in process, byte for byte.
func TestGoldenCallsOverMCP(t *testing.T) {
	toolstest.Run(t, "../../../testdata/calls", func(t *testing.T, cfg config.Config, o tools.Options) func(tools.Call) (toolstest.Answer, error) {
		var now tools.Approver // calls come one at a time
		o.Approver = approverFunc(func(ctx context.Context, q tools.Question) (tools.Answer, error) { return now.Ask(ctx, q) })
		p := newPlain(t, cfg, o, mcp.Options{Structured: mcp.StructuredAlways})
		return func(c tools.Call) (toolstest.Answer, error) {
			now = c.Approver
			line := p.call(1, `"`+mcp.MetaSession+`":`+string(mustJSON(t, c.Session))+`,"`+mcp.MetaTurn+`":`+string(mustJSON(t, c.Turn))+`,`, "tools/call",
				`"name":`+string(mustJSON(t, c.Tool))+`,"arguments":`+string(c.Args))
			var m struct {
				Result struct {
					IsError           bool
					StructuredContent json.RawMessage
					Content           []struct{ Text string }
				}
				Error *jsonrpc.Error
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				return toolstest.Answer{}, err
			}
			if m.Error != nil {
				u := &tools.UnknownToolError{Tool: c.Tool}
				if _, near, ok := strings.Cut(m.Error.Message, "did you mean "); ok {
					u.Nearest = strings.TrimSuffix(near, "?")
				}
				return toolstest.Answer{}, u
			}
			if refused := bytes.Contains(m.Result.StructuredContent, []byte(`,"hint":`)); m.Result.IsError && !refused {
				t.Errorf("isError is set for %s", m.Result.StructuredContent)
			}
			// The SDK writes three characters as escapes, which mean the same.
			plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
			text := ""
			if len(m.Result.Content) > 0 {
				text = m.Result.Content[0].Text
			}
			return toolstest.Answer{Payload: json.RawMessage(plain.Replace(string(m.Result.StructuredContent))), Text: text}, nil
		}
	})
}

type approverFunc func(context.Context, tools.Question) (tools.Answer, error)

func (f approverFunc) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	return f(ctx, q)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return b
}

func TestListing(t *testing.T) {
	for _, revision := range revisions {
		s := start(t, config.Default(), tools.Options{}, mcp.Options{}, "test", revision, nil)
		list, err := s.ListTools(t.Context(), nil)
		must(t, err)
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			a := tool.Annotations
			if a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil || a.Title == "" {
				t.Errorf("%s: annotations are missing: %+v", tool.Name, a)
			}
			if tool.OutputSchema == nil {
				t.Errorf("%s has no output schema", tool.Name)
			}
			// A tool that a client defers is not seen: it is found by its hint.
			rare := strings.HasPrefix(tool.Name, "checkpoint")
			if loaded := tool.Meta["anthropic/alwaysLoad"] == true; loaded == rare {
				t.Errorf("%s: alwaysLoad is %v", tool.Name, loaded)
			}
			if hint, _ := tool.Meta["anthropic/searchHint"].(string); hint == "" {
				t.Errorf("%s has no search hint", tool.Name)
			}
		}
		var want []string
		under, err := tools.DefinitionsUnder(config.Default().Tools)
		must(t, err)
		for _, d := range under {
			want = append(want, d.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s lists %v, want %v", revision, names, want)
		}
		if _, err := s.ListPrompts(t.Context(), nil); err == nil {
			t.Error("prompts are listed although there are none")
		}
	}
}

// Clients get structured content that are known to keep it apart, or that ask for it, and no schema that asks for it otherwise.
func TestStructured(t *testing.T) {
	for _, c := range []struct {
		mode   mcp.Structured
		client string
		want   bool
	}{
		{"", "somebody", false}, {"", "test", true}, {"", "ai-sdk-mcp-client", true}, {"", "mcp-inspector", true}, {"", "claude-code", false}, {"", "codex-mcp-client", false}, {"", "gemini-cli-mcp-client", false}, {mcp.StructuredAuto, "Visual Studio Code", false},
		{mcp.StructuredAlways, "claude-code", true}, {mcp.StructuredAlways, "somebody", true}, {mcp.StructuredNever, "test", false},
	} {
		root := toolstest.Tree(t)
		f := file(t, root, "a.txt", "one\ntwo\n")
		s := start(t, config.Default(), tools.Options{}, mcp.Options{Structured: c.mode}, c.client, "2025-11-25", nil)
		r := call(t, s, "Read", map[string]any{"file_path": f})
		want := "     1→one\n     2→two"
		if c.client == "claude-code" { // as its own Read writes today
			want = "1\tone\n2\ttwo"
		}
		if got := textOf(t, r); got != want {
			t.Errorf("%s: %q", c.client, got)
		}
		if got := r.StructuredContent != nil; got != c.want || got && kindOf(r) != "text" {
			t.Errorf("%s %s: structured content %v", c.mode, c.client, r.StructuredContent)
		}
		list, err := s.ListTools(t.Context(), nil)
		must(t, err)
		if got := list.Tools[0].OutputSchema != nil; got != c.want {
			t.Errorf("%s %s: output schema %v", c.mode, c.client, got)
		}
	}
}

// Of a long answer the structured part goes without what the text holds, and says so.
func TestLongAnswersTravelOnce(t *testing.T) {
	root := toolstest.Tree(t)
	long := file(t, root, "a.txt", strings.Repeat("a needle\n", 3000))
	for i := range 60 {
		file(t, root, fmt.Sprintf("%0100d", i), "needle\n")
	}
	nb := file(t, root, "n.ipynb", `{"cells":[{"cell_type":"code","id":"a","metadata":{},"outputs":[],"execution_count":null,"source":["`+
		strings.Repeat("x", 5000)+`"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	for _, mode := range []mcp.Structured{"", mcp.StructuredAlways} {
		s := start(t, config.Default(), tools.Options{}, mcp.Options{Structured: mode}, "test", "2025-11-25", nil)
		for _, c := range []struct {
			tool, bulk string
			args       map[string]any
		}{
			{"Read", "content", map[string]any{"file_path": long}},
			{"Read", "cells", map[string]any{"file_path": nb}},
			{"Glob", "paths", map[string]any{"pattern": "**", "path": root}},
			{"Grep", "files", map[string]any{"pattern": "needle", "path": root}},
			{"Grep", "counts", map[string]any{"pattern": "needle", "path": root, "output_mode": "count"}},
			{"Grep", "matches", map[string]any{"pattern": "needle", "path": root, "output_mode": "content", "-C": 1}},
		} {
			r := call(t, s, c.tool, c.args)
			m := r.StructuredContent.(map[string]any)
			brief := fmt.Sprint(m["in_text"]) == "["+c.bulk+"]"
			if brief == (mode == mcp.StructuredAlways) || (m[c.bulk] == nil) != brief {
				t.Errorf("%s %s: %.300s", mode, c.tool, mustJSON(t, m))
			}
			if n := len(mustJSON(t, m)); brief && n > 1000 {
				t.Errorf("%s: the structured part still has %d bytes", c.tool, n)
			}
		}
	}
}

func TestBytesTravelOnce(t *testing.T) {
	root := toolstest.Tree(t)
	var b bytes.Buffer
	must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))))
	pic := file(t, root, "pic", b.String())
	bin := file(t, root, "bin", "\x00\x01\x02 \xff")
	cfg := config.Default()
	cfg.Tools.FS.BinaryPolicy = "base64"
	s := start(t, cfg, tools.Options{}, mcp.Options{}, "test", "2026-07-28", nil)

	r := call(t, s, "Read", map[string]any{"file_path": pic})
	if len(r.Content) != 2 || kindOf(r) != "image" {
		t.Fatalf("%s", mustJSON(t, r))
	}
	img, ok := r.Content[1].(*sdk.ImageContent)
	if !ok || img.MIMEType != "image/png" {
		t.Fatalf("%s", mustJSON(t, r))
	}
	if _, err := png.Decode(bytes.NewReader(img.Data)); err != nil {
		t.Errorf("the image does not decode: %v", err)
	}
	if strings.Contains(string(mustJSON(t, r.StructuredContent)), "base64") {
		t.Errorf("the bytes travel twice: %s", mustJSON(t, r))
	}
	r = call(t, s, "Read", map[string]any{"file_path": bin})
	res, ok := r.Content[len(r.Content)-1].(*sdk.EmbeddedResource)
	if !ok || string(res.Resource.Blob) != "\x00\x01\x02 \xff" || res.Resource.URI != "file://"+bin {
		t.Errorf("%s", mustJSON(t, r))
	}
	if s := base64.StdEncoding.EncodeToString([]byte("\x00\x01\x02 \xff")); strings.Contains(string(mustJSON(t, r.StructuredContent)), s) {
		t.Errorf("the bytes travel twice")
	}
}

func TestRefusalsAndProtocolErrors(t *testing.T) {
	for _, revision := range revisions {
		s := start(t, config.Default(), tools.Options{}, mcp.Options{}, "test", revision, nil)
		r := call(t, s, "Read", map[string]any{"file_path": "/nowhere/at/all"})
		if !r.IsError || kindOf(r) != "not_found" {
			t.Errorf("%s", mustJSON(t, r))
		}
		r = call(t, s, "Read", map[string]any{"file": 7})
		if !r.IsError || kindOf(r) != "bad_request" {
			t.Errorf("bad arguments: %s", mustJSON(t, r))
		}
		_, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "Raed"})
		werr, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || werr.Code != jsonrpc.CodeInvalidParams || !strings.Contains(werr.Message, "did you mean Read?") {
			t.Errorf("unknown tool: %v", err)
		}
	}
}

// A question that nobody answers ends with the approval timeout.
func TestNobodyAnswers(t *testing.T) {
	root := toolstest.Tree(t)
	f := file(t, root, "a.txt", "one\n")
	cfg := config.Default()
	must(t, cfg.Tools.FS.ApprovalTimeout.UnmarshalText([]byte("200ms")))
	over := make(chan struct{})
	s := start(t, cfg, tools.Options{}, mcp.Options{Elicit: true}, "test", "2025-11-25", func(*sdk.ElicitParams) string {
		<-over
		return "accept"
	})
	r := call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "one", "new_string": "two"})
	close(over) // the answer comes too late
	if kindOf(r) != "approval_timeout" || content(t, f) != "one\n" {
		t.Errorf("%s", mustJSON(t, r))
	}
}

func TestNobodyToAsk(t *testing.T) {
	for _, revision := range revisions {
		root := toolstest.Tree(t)
		f := file(t, root, "a.txt", "one\n")
		s := start(t, config.Default(), tools.Options{}, mcp.Options{Elicit: true}, "test", revision, nil)
		r := call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "one", "new_string": "two"})
		hint, _ := r.StructuredContent.(map[string]any)["hint"].(string)
		if kindOf(r) != "approval_denied" || !strings.Contains(hint, "--approve") || !strings.Contains(hint, "require_approval") {
			t.Errorf("%s", mustJSON(t, r))
		}
		if content(t, f) != "one\n" {
			t.Error("the file was changed")
		}
	}
}

// In the revision without requests from the server a call is held and goes on with the answer: the answer is good once, and for
// that very call.
func TestHeldCalls(t *testing.T) { synctest.Test(t, heldCalls) } // only the clock of the bubble lets a question run out

func heldCalls(t *testing.T) {
	root := toolstest.Tree(t)
	f := file(t, root, "a.txt", "one\n")
	cfg := config.Default()
	must(t, cfg.Tools.FS.ApprovalTimeout.UnmarshalText([]byte("300ms")))
	p := newPlain(t, cfg, tools.Options{}, mcp.Options{Elicit: true})
	edit := func(id int, to, more string) string {
		args := `{"file_path":"` + f + `","old_string":"one","new_string":"` + to + `"}`
		return p.ask(id, "tools/call", `"name":"Edit","arguments":`+args+more)
	}
	answer := func(state string) string {
		return `,"requestState":"` + state + `","inputResponses":{"approval":{"action":"accept"}}`
	}
	state := func(line string) string {
		var m struct {
			Result struct{ ResultType, RequestState string }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Result.ResultType != "input_required" || m.Result.RequestState == "" {
			t.Fatalf("no question in %s", line)
		}
		return m.Result.RequestState
	}
	first := state(edit(1, "two", ""))
	if got := edit(2, "evil", answer(first)); !strings.Contains(got, "another call") {
		t.Errorf("an answer for another call: %s", got)
	}
	if content(t, f) != "one\n" {
		t.Fatal("the file was changed")
	}
	if got := edit(3, "two", answer(first)); !strings.Contains(got, "has been updated") || content(t, f) != "two\n" {
		t.Errorf("the answer: %s", got)
	}
	if got := edit(3, "two", answer(first)); !strings.Contains(got, "question of this call is over") {
		t.Errorf("an answer given twice: %s", got)
	}
	file(t, root, "a.txt", "one\n")
	second := state(edit(4, "two", ""))
	time.Sleep(400 * time.Millisecond) // the question runs out
	if got := edit(5, "two", answer(second)); !strings.Contains(got, "question of this call is over") {
		t.Errorf("an answer that comes too late: %s", got)
	}
}

// asks is a dialect of one tool.
type asks func(context.Context, dialect.Call) (dialect.Answer, error)

func (a asks) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) { return a(ctx, c) }
func (a asks) Definitions() []dialect.Definition {
	return []dialect.Definition{{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}}
}

// An answer is for the question that the client had, also where that ran out and another one waits. One for the whole session
// is for those that wait, too.
func TestAnswersFindTheirQuestions(t *testing.T) {
	for _, c := range []struct {
		answers []string // to the first question after two seconds, then to the second
		want    string
	}{
		{[]string{`"accept"`, `"decline"`}, fmt.Sprint(approval.TimedOut, " ", approval.Denied)},
		{[]string{`"accept","content":{"allow":"session"}`}, fmt.Sprint(approval.TimedOut, " ", approval.Approved)},
	} {
		synctest.Test(t, func(t *testing.T) {
			ask := func(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
				second := make(chan approval.Answer)
				go func() {
					time.Sleep(time.Millisecond)
					a, _ := c.Approver.Ask(ctx, approval.Question{Tool: "second"})
					second <- a
				}()
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				a, _ := c.Approver.Ask(short, approval.Question{Tool: "first"})
				text, err := json.Marshal(fmt.Sprint(a.Decision, " ", (<-second).Decision))
				return &dialect.Object{Of: "ask", Content: text}, err
			}
			toServer, fromServer := serveDialect(t, asks(ask), mcp.Options{Elicit: true})
			p := &plain{t, toServer, bufio.NewReader(fromServer)}
			got := p.ask(1, "tools/call", `"name":"ask"`)
			time.Sleep(2 * time.Second)
			for i, answer := range c.answers {
				time.Sleep(2 * time.Second) // an answer of a person
				if asked := []string{"first", "second"}[i]; !strings.Contains(got, `"message":"`+asked) {
					t.Errorf("not asked the %s: %s", asked, got)
				}
				_, state, _ := strings.Cut(got, `"requestState":"`)
				state, _, _ = strings.Cut(state, `"`)
				got = p.ask(i+2, "tools/call", `"name":"ask","requestState":"`+state+`","inputResponses":{"approval":{"action":`+answer+`}}`)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// plain talks to the server line by line.
type plain struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Reader
}

func newPlain(t *testing.T, cfg config.Config, so tools.Options, o mcp.Options) *plain {
	toServer, fromServer := serve(t, cfg, so, o)
	return &plain{t, toServer, bufio.NewReader(fromServer)}
}

func (p *plain) line(l string) string {
	if _, err := io.WriteString(p.in, l+"\n"); err != nil {
		p.t.Fatal(err)
	}
	got, err := p.out.ReadString('\n')
	must(p.t, err)
	return got
}

// hello opens a connection of a revision with a handshake, for a client of these capabilities.
func (p *plain) hello(revision, capabilities string) string {
	return p.line(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + revision + `","capabilities":` + capabilities +
		`,"clientInfo":{"name":"t","version":"1"}}}`)
}

// stateless is the _meta of a request of revision 2026-07-28, for a client that can ask its user.
const stateless = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}`

func (p *plain) ask(id int, method, params string) string { return p.call(id, "", method, params) }

// call sends one request of revision 2026-07-28; meta is more of its _meta, with a comma behind.
func (p *plain) call(id int, meta, method, params string) string {
	if params != "" {
		params = "," + params
	}
	return p.line(`{"jsonrpc":"2.0","id":` + string(mustJSON(p.t, id)) + `,"method":"` + method + `","params":{"_meta":{` + meta +
		stateless + `}` + params + `}}`)
}

// Our keys in _meta are understood or refused: they are never passed over, which would make the call one of the server's own session.
func TestOurKeysInMeta(t *testing.T) {
	f := file(t, toolstest.Tree(t), "a.txt", "one\n")
	p := newPlain(t, config.Default(), tools.Options{}, mcp.Options{Session: "servers"})
	for i, c := range []struct{ meta, want string }{
		{`"moltis-fs/session":41`, `\"moltis-fs/session\" in _meta is no string; send it as a string`},
		{`"moltis-fs/session":["x"]`, "is no string"},
		{`"moltis-fs/session":{"x":1}`, "is no string"},
		{`"moltis-fs/session":false`, "is no string"},
		{`"moltis-fs/turn":7`, `\"moltis-fs/turn\" in _meta is no string`},
		{`"moltis-fs/sesion":"x"`, `the keys are \"moltis-fs/session\" and \"moltis-fs/turn\"`},
		{`"Moltis-FS/session":"x"`, `there is no \"Moltis-FS/session\"`},
		{`"moltis-fs/session":41,"moltis-fs/turn":"t"`, "is no string"},
	} {
		for _, tool := range []string{"Read", "Raed"} {
			got := p.call(i+1, c.meta+",", "tools/call", `"name":"`+tool+`","arguments":{"file_path":`+string(mustJSON(t, f))+`}`)
			if !strings.Contains(got, "-32602") || !strings.Contains(got, c.want) || strings.Contains(got, "result") {
				t.Errorf("%s %s: %s", tool, c.meta, got)
			}
		}
	}
	for i, meta := range []string{`"moltis-fs/session":"41",`, `"moltis-fs/session":null,"moltis-fs/turn":"",`, `"others/session":41,`, ""} {
		if got := p.call(i+1, meta, "tools/call", `"name":"Read","arguments":{"file_path":`+string(mustJSON(t, f))+`}`); !strings.Contains(got, "one") {
			t.Errorf("%s: %s", meta, got)
		}
	}
}

// A line that is no message is answered and skipped.
func TestBrokenLines(t *testing.T) {
	p := newPlain(t, config.Default(), tools.Options{}, mcp.Options{})
	for _, c := range []struct{ line, want string }{
		{`{"jsonrpc":`, "-32700"},
		{`nonsense`, "-32700"},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "-32600"},
		{`{"id":1}`, "-32600"},
		{`{"jsonrpc":"2.0","id":{"id":1},"method":"ping"}`, "-32600"},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, "-32600"},
		{`{"jsonrpc":"2.0","id":[1],"method":"ping"}`, "-32600"},
		{`{"jsonrpc":"2.0","id":01,"method":"ping"}`, "-32700"},
		{`{"jsonrpc":"2.0","id":1.,"method":"ping"}`, "-32700"},
		{`{"id":1,"method":"ping","x":"\`, "-32700"},
		{"\x00\xff", "-32700"},
		{strings.Repeat("x", 65<<20), "64 MiB"},
	} {
		if got := p.line(c.line); !strings.Contains(got, c.want) || !strings.Contains(got, `"id":null`) {
			t.Errorf("%.40q: %s", c.line, got)
		}
	}
	if got := p.ask(1, "tools/list", ""); !strings.Contains(got, `"Read"`) {
		t.Errorf("afterwards: %s", got)
	}
}

// A client that gives a call up ends it: the question to the approver is withdrawn.
func TestCancellation(t *testing.T) {
	for _, revision := range revisions {
		root := toolstest.Tree(t)
		f := file(t, root, "a.txt", "one\n")
		asked, withdrawn := make(chan struct{}), make(chan struct{})
		o := tools.Options{Approver: approverFunc(func(ctx context.Context, q tools.Question) (tools.Answer, error) {
			close(asked)
			<-ctx.Done()
			close(withdrawn)
			return tools.Answer{Decision: tools.Approved}, nil // too late
		})}
		s := start(t, config.Default(), o, mcp.Options{}, "test", revision, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "Write", Arguments: map[string]any{"file_path": f, "content": "two\n"}}); err == nil {
			t.Error("the call was answered")
		}
		<-withdrawn
	}
}

// Told to stop, the server ends although a call waits for an answer.
func TestStop(t *testing.T) {
	root := toolstest.Tree(t)
	f := file(t, root, "a.txt", "one\n")
	asked := make(chan struct{})
	suite, err := tools.Open(config.Default(), tools.Options{DataDir: filepath.Join(t.TempDir(), "data"),
		Approver: approverFunc(func(ctx context.Context, q tools.Question) (tools.Answer, error) {
			close(asked)
			<-ctx.Done()
			return tools.Answer{}, ctx.Err()
		})})
	must(t, err)
	defer suite.Close()
	in, toServer := io.Pipe()
	defer toServer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- mcp.Serve(ctx, suite.Dialect(), in, io.Discard, mcp.Options{}) }()
	io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Write","arguments":{"file_path":"`+f+`","content":"two"}}}
`)
	<-asked
	cancel()
	select {
	case err := <-served:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still serving")
	}
	if content(t, f) != "one\n" {
		t.Error("the file was changed")
	}
}
