package mcp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/serve/mcp"
	"moltisfs/tools"
	"moltisfs/tools/toolstest"
)

// A call of more than a second tells whoever asked that it goes on, and is silent once answered.
func TestProgress(t *testing.T) {
	for _, revision := range revisions {
		for _, c := range []struct {
			token any
			takes time.Duration
			want  int
		}{{"x", 3500 * time.Millisecond, 3}, {nil, 3500 * time.Millisecond, 0}, {"x", 900 * time.Millisecond, 0}} {
			synctest.Test(t, func(t *testing.T) {
				f := file(t, toolstest.Tree(t), "a.txt", "one\n")
				o := tools.Options{Approver: approverFunc(func(context.Context, tools.Question) (tools.Answer, error) {
					time.Sleep(c.takes)
					return tools.Answer{Decision: tools.Approved}, nil
				})}
				toServer, fromServer := serve(t, config.Default(), o, mcp.Options{})
				var heard []float64
				client := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
						heard = append(heard, r.Params.Progress)
					}})
				s, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer},
					&sdk.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				p := &sdk.CallToolParams{Name: "Write", Arguments: map[string]any{"file_path": f, "content": "2"}}
				if c.token != nil {
					p.SetProgressToken(c.token)
				}
				if r, err := s.CallTool(t.Context(), p); err != nil || r.IsError {
					t.Fatal(r, err)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if len(heard) != c.want || c.want > 0 && heard[c.want-1] != float64(c.want) {
					t.Errorf("%s, %v, %s: heard %v", revision, c.token, c.takes, heard)
				}
			})
		}
	}
}
