package mcp

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/dialect"
)

// progress tells a client that asked for it each second that its call goes on, and how many files it
// has come to: a search of a large tree, a restore of many files. stop ends it, and returns when
// nothing more is sent.
func progress(ctx context.Context, req *sdk.CallToolRequest, p *dialect.Progress) (stop func()) {
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
		far := 0.0
		for n := 1; ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			files, total := p.Files.Load(), p.Total.Load()
			told := &sdk.ProgressNotificationParams{ProgressToken: token, Total: float64(total)}
			switch {
			case total > 0:
				told.Message = fmt.Sprintf("%s: %d of %d files, %d s", req.Params.Name, files, total, n)
			case files > 0:
				told.Message = fmt.Sprintf("%s: %d files so far, %d s", req.Params.Name, files, n)
			default:
				told.Message = fmt.Sprintf("%s goes on, %d s", req.Params.Name, n)
			}
			far = max(float64(files), far+1./1024) // it has to grow each time, also while a question waits
			told.Progress = far
			// One that can't be sent is no loss: the answer meets the same fault.
			_ = req.Session.NotifyProgress(ctx, told)
		}
	}()
	return func() { cancel(); <-ended }
}
