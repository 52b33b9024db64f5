package mcp

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/dialect"
)

// briefOver is how long a text may be, in bytes, that stands in the structured part as well. That may
// be twice as long.
const briefOver = 2 << 10

// result carries an answer: its text, a block for each image or file in it, and with structured its
// JSON. Unless whole is set that goes without what the blocks hold.
func (s *server) result(a dialect.Answer, structured, whole bool) (*sdk.CallToolResult, error) {
	blocks, err := a.Blocks()
	if err != nil {
		return nil, fmt.Errorf("rendering the %s answer: %w", a.Kind(), err)
	}
	text := a.Text()
	r := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s.long.mark(text)}}, IsError: a.Refused()}
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
type tooLate struct{}

const (
	tooLateError = "the approval question of this call is over; nothing was changed"
	tooLateHint  = "Tell the user that an approval is wanted, then call again."
)

func (tooLate) Kind() string                     { return "approval_timeout" }
func (tooLate) Refused() bool                    { return true }
func (tooLate) Text() string                     { return tooLateError + "\n" + tooLateHint }
func (tooLate) Blocks() ([]dialect.Block, error) { return nil, nil }

func (a tooLate) JSON(bool) ([]byte, error) {
	return json.Marshal(struct {
		Kind  string `json:"kind"`
		Error string `json:"error"`
		Hint  string `json:"hint"`
	}{a.Kind(), tooLateError, tooLateHint})
}
