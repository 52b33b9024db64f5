package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/serve/mcp"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
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
				s := connect(t, toServer, fromServer, "test", revision, &sdk.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
						if !strings.HasPrefix(r.Params.Message, "Write waits for an answer to its question, ") {
							t.Error(r.Params.Message)
						}
						heard = append(heard, r.Params.Progress)
					}})
				p := &sdk.CallToolParams{Name: "Write", Arguments: map[string]any{"file_path": f, "content": "2"}}
				if c.token != nil {
					p.SetProgressToken(c.token)
				}
				if r, err := s.CallTool(t.Context(), p); err != nil || r.IsError {
					t.Fatal(r, err)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if len(heard) != c.want || !slices.IsSorted(heard) || len(slices.Compact(heard)) != c.want {
					t.Errorf("%s, %v, %s: heard %v", revision, c.token, c.takes, heard)
				}
			})
		}
	}
}

// counting is a dialect with one tool, which comes to ten files a second.
type counting struct{ of int64 }

func (counting) Definitions() []dialect.Definition {
	return []dialect.Definition{{Name: "Count", InputSchema: json.RawMessage(`{"type":"object"}`)}}
}

func (d counting) Call(_ context.Context, c dialect.Call) (dialect.Answer, error) {
	c.Progress.Total.Store(d.of)
	for range 35 {
		time.Sleep(101 * time.Millisecond)
		c.Progress.Files.Add(1)
	}
	return nil, io.ErrUnexpectedEOF // whatever it answers
}

// Progress counts the files of a call, and has their sum where that is known.
func TestProgressCountsFiles(t *testing.T) {
	for _, revision := range revisions {
		for of, want := range map[int64]string{0: "Count: 29 files so far, 3 s", 40: "Count: 29 of 40 files, 3 s"} {
			synctest.Test(t, func(t *testing.T) {
				toServer, fromServer := serveDialect(t, counting{of}, mcp.Options{Elicit: true})
				var heard []string
				s := connect(t, toServer, fromServer, "test", revision, &sdk.ClientOptions{
					ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) { return nil, io.EOF },
					ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
						heard = append(heard, fmt.Sprint(r.Params.Message, " ", r.Params.Progress, " ", r.Params.Total))
					}})
				p := &sdk.CallToolParams{Name: "Count"}
				p.SetProgressToken("x")
				_, _ = s.CallTool(t.Context(), p)
				synctest.Wait()
				if want := fmt.Sprint(want, " 29 ", of); len(heard) != 3 || heard[2] != want {
					t.Errorf("%s: heard %q, not %q", revision, heard, want)
				}
			})
		}
	}
}
