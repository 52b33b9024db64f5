package mcp_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/serve/mcp"
	"moltisfs/internal/testdir"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// A search that its client gave up takes no more time, and the server, which answers what is under way, ends with its input. It
// takes many minutes otherwise.
func TestCancelledSearch(t *testing.T) {
	root := toolstest.Tree(t)
	writeFile(t, filepath.Join(root, "min.js"), strings.Repeat("a", 20<<20))
	cfg := config.Default()
	cfg.Tools.FS.SearchDeadline = config.Duration(100 * time.Hour)
	toServer, fromServer := serve(t, cfg, tools.Options{}, mcp.Options{})
	var said strings.Builder
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(&said, fromServer)
		ended <- err
	}()
	send := func(line string) {
		if _, err := io.WriteString(toServer, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Grep","arguments":{"pattern":"[^y]{1000}[^z]{1000}x","output_mode":"count","path":"` + root + `"}}}`)
	testdir.Running(t, "moltisfs/grep/match.") // it is within the line now
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	toServer.Close()
	if err := <-ended; err != nil || strings.Contains(said.String(), `"kind":"grep"`) {
		t.Error(said.String(), err)
	}
}

// The end of the input takes back calls that wait for approval, by every approver and in every revision: a yes that comes later is for
// nobody. A call that asks nobody is answered.
func TestEndOfInputWithdrawsQuestions(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		for _, elicit := range []bool{false, true} {
			root := toolstest.Tree(t)
			f, data := file(t, root, "a.txt", "one\n"), filepath.Join(t.TempDir(), "data")
			asked := make(chan struct{}, 1)
			never := approverFunc(func(ctx context.Context, _ tools.Question) (tools.Answer, error) {
				asked <- struct{}{}
				<-ctx.Done() // as the queue does, for the approval timeout
				return tools.Answer{Decision: tools.Cancelled}, nil
			})
			p := newPlain(t, config.Default(), tools.Options{Approver: never, DataDir: data}, mcp.Options{Elicit: elicit})
			send := func(id int, tool, args string) {
				meta := ""
				if revision == "2026-07-28" {
					meta = `,"_meta":{` + stateless + `}`
				}
				_, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"file_path":%q%s}%s}}`+"\n", id, tool, f, args, meta)
				must(t, err)
			}
			if revision != "2026-07-28" {
				p.hello(revision, `{"elicitation":{}}`)
				io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
			}
			send(2, "Write", `,"content":"new\n"`)
			if elicit {
				p.out.ReadString('\n') // the question
			} else {
				<-asked
			}
			send(3, "Read", "")
			p.in.Close()
			rest, err := io.ReadAll(p.out)
			if err != nil || !strings.Contains(string(rest), `"id":3,"result"`) || !strings.Contains(string(rest), "one") || content(t, f) != "one\n" {
				t.Errorf("%s, elicit %v: %s %v", revision, elicit, rest, err)
			}
			if log := content(t, filepath.Join(data, "audit", "audit.jsonl")); !strings.Contains(log, `"approval":"cancelled"`) || strings.Contains(log, "denied") {
				t.Errorf("%s, elicit %v: on record: %s", revision, elicit, log)
			}
		}
	}
}

// Nobody has to hear a yes that nobody is asked for: calls that come last before the end of the input are carried out.
func TestEndOfInputWithoutQuestions(t *testing.T) {
	f := file(t, toolstest.Tree(t), "a.txt", "one\n")
	suite, err := tools.Open(config.Default(), tools.Options{Approver: approval.Yes("--approve yes"), DataDir: filepath.Join(t.TempDir(), "data")})
	must(t, err)
	defer suite.Close()
	in := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Write","arguments":{"file_path":%q,"content":"new\n"},"_meta":{%s}}}`+"\n",
		f, stateless)
	var out strings.Builder
	slow := waits{suite.Dialect(), make(chan struct{})}
	if err := mcp.Serve(t.Context(), slow, io.MultiReader(strings.NewReader(in), slow), &out, mcp.Options{}); err != nil || content(t, f) != "new\n" {
		t.Error(out.String(), err)
	}
}

// waits is a dialect whose calls begin after the end of the input.
type waits struct {
	dialect.Dialect
	ended chan struct{}
}

func (w waits) Read([]byte) (int, error) { close(w.ended); return 0, io.EOF }

func (w waits) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	<-w.ended
	<-c.Heard.Done()
	return w.Dialect.Call(ctx, c)
}
