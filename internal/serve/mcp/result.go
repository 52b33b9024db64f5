package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/dialect"
)

// briefOver bounds a text, in bytes, that stands in the structured part as well. That may
// be twice as long.
const briefOver = 2 << 10

// result carries an answer: its text, a block for each image or file in it, and with structured its
// JSON. Unless whole is set, the JSON goes without the contents of the blocks.
func (s *server) result(a dialect.Answer, structured, whole bool) (*sdk.CallToolResult, error) {
	blocks, err := a.Blocks()
	if err != nil {
		return nil, fmt.Errorf("rendering the %s answer: %w", a.Kind(), err)
	}
	text := a.Text()
	r := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: a.Refused()}
	for _, b := range blocks {
		r.Content = append(r.Content, content(b))
	}
	if !structured {
		return r, nil
	}
	b, may := a.(dialect.Brief)
	may = may && !whole
	var body []byte
	long := len(text) > briefOver
	if !long || !may {
		body, err = a.JSON(whole || len(blocks) == 0)
		long = len(body) > 2*briefOver
	}
	if long && may && err == nil {
		body, err = b.Brief()
	}
	if err != nil {
		return nil, err
	}
	r.StructuredContent = json.RawMessage(body)
	return r, nil
}

func content(b dialect.Block) sdk.Content {
	if b.Path == "" {
		return &sdk.ImageContent{Data: b.Data, MIMEType: b.MediaType}
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(b.Path)}
	return &sdk.EmbeddedResource{
		Resource: &sdk.ResourceContents{URI: uri.String(), MIMEType: b.MediaType, Blob: b.Data},
	}
}

// tooLate answers a call that comes back when its question is over.
type tooLate struct{ *dialect.Object }

const (
	tooLateError = "the approval question of this call is over; nothing was changed"
	tooLateHint  = "Tell the user that an approval is wanted, then call again."
)

func newTooLate() tooLate {
	const kind = "approval_timeout"
	return tooLate{&dialect.Object{Of: kind, No: true,
		Content: fmt.Appendf(nil, `{"kind":%q,"error":%q,"hint":%q}`, kind, tooLateError, tooLateHint)}}
}

func (tooLate) Text() string { return tooLateError + "\n" + tooLateHint }

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
			note := &sdk.ProgressNotificationParams{ProgressToken: token, Total: float64(total)}
			switch {
			case p.Asked.Load():
				note.Message = fmt.Sprintf("%s waits for an answer to its question, %d s", req.Params.Name, n)
			case total > 0:
				note.Message = fmt.Sprintf("%s: %d of %d files, %d s", req.Params.Name, files, total, n)
			case files > 0:
				note.Message = fmt.Sprintf("%s: %d files so far, %d s", req.Params.Name, files, n)
			default:
				note.Message = fmt.Sprintf("%s goes on, %d s", req.Params.Name, n)
			}
			far = max(float64(files), far+1./1024) // it has to grow each time, also while a question waits
			note.Progress = far
			// One that can't be sent is no loss: the answer meets the same fault.
			_ = req.Session.NotifyProgress(ctx, note)
		}
	}()
	return func() { cancel(); <-ended }
}
