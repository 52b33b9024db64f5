// A client of MCP on mark3labs/mcp-go, driven by a test as .ci/inspector/mcp.mjs is:
//
//	go run . ERA COMMAND ARGS… < calls.jsonl > answers.jsonl
//
// It is a module of its own, so that ours does not need that one.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Answer    string          `json:"answer"`
	Times     int             `json:"times"`
	Cancel    int             `json:"cancel"`
}

type told struct {
	Result *mcp.CallToolResult `json:"result,omitempty"`
	Error  any                 `json:"error,omitempty"`
}

// user answers questions.
type user struct {
	mu     sync.Mutex
	answer string
	asked  []string
}

func (u *user) Elicit(_ context.Context, q mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, q.Params.Message)
	r := mcp.ElicitationResponse{Action: mcp.ElicitationResponseAction(u.answer)}
	if u.answer == "accept" {
		r.Content = map[string]any{}
	}
	return &mcp.ElicitationResult{ElicitationResponse: r}, nil
}

func main() {
	if err := drive(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		log.Fatal(err)
	}
}

func drive(ctx context.Context, era, command string, args []string) error {
	u := &user{}
	options := []client.ClientOption{client.WithElicitationHandler(u)}
	if era == "legacy" {
		options = append(options, client.WithLegacyProtocolOnly())
	}
	c := client.NewClient(transport.NewStdioWithOptions(command, nil, args, transport.WithCommandStderrWriter(os.Stderr)), options...)
	if err := c.Start(ctx); err != nil {
		return err
	}
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1.2.1"}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	server, err := c.Initialize(ctx, hello)
	if err != nil {
		return err
	}
	list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]any{"server": server.ServerInfo, "instructions": server.Instructions, "era": c.ProtocolVersion(), "tools": list.Tools}); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var q call
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return err
		}
		u.answer, u.asked = q.Answer, []string{}
		start := time.Now()
		answers := make([]told, max(1, q.Times))
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = once(ctx, c, q) })
		}
		all.Wait()
		if err := out.Encode(map[string]any{"answers": answers, "asked": u.asked, "ms": time.Since(start).Milliseconds()}); err != nil {
			return err
		}
	}
	return c.Close()
}

func once(ctx context.Context, c *client.Client, q call) told {
	if q.Cancel > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(q.Cancel)*time.Millisecond)
		defer cancel()
	}
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = q.Name, q.Arguments
	result, err := c.CallTool(ctx, r)
	if err != nil {
		return told{Error: map[string]string{"message": fmt.Sprint(err)}}
	}
	return told{Result: result}
}
