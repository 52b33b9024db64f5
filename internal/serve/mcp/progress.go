package mcp

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// progress tells a client that asked for it each second that its call goes on: a search of a large
// tree, a restore of many files. How much there is to do is not known, so it counts seconds. stop
// ends it, and returns when nothing more is sent.
func progress(ctx context.Context, req *sdk.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			// One that can't be sent is no loss: the answer meets the same fault.
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token,
				Progress: float64(n), Message: fmt.Sprintf("%s goes on, %d s", req.Params.Name, n)})
		}
	}()
	return func() { cancel(); <-ended }
}
