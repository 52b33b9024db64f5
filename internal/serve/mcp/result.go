package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/readers"
	"moltisfs/tools"
)

// result carries a payload: its text, a block for each image or file in it, and with structured the payload itself. Unless
// whole is set the payload goes without the bytes that the blocks hold.
func result(p tools.Payload, structured, whole bool) (*sdk.CallToolResult, error) {
	blocks, err := blocks(p)
	if err != nil {
		return nil, fmt.Errorf("rendering the %s payload: %w", p.Kind(), err)
	}
	r := &sdk.CallToolResult{Content: append([]sdk.Content{&sdk.TextContent{Text: p.Text()}}, blocks...), IsError: tools.Refused(p)}
	if !structured {
		return r, nil
	}
	body, err := tools.Encode(p)
	if err != nil {
		return nil, err
	}
	if !whole && len(blocks) > 0 {
		body = withoutBytes(body)
	}
	r.StructuredContent = json.RawMessage(body)
	return r, nil
}

// blocks are the images of a payload, and the bytes of a binary file.
func blocks(p tools.Payload) ([]sdk.Content, error) {
	c, ok := p.(*tools.Content)
	if !ok {
		return nil, nil
	}
	var out []sdk.Content
	image := func(mediaType, encoded string) error {
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(data) == 0 {
			return err
		}
		out = append(out, &sdk.ImageContent{Data: data, MIMEType: mediaType})
		return nil
	}
	var err error
	switch body := c.Body.(type) {
	case *readers.Image:
		err = image(body.MediaType, body.Base64)
	case *readers.PDF:
		for i := range body.Images {
			if err == nil {
				err = image(body.Images[i].MediaType, body.Images[i].Base64)
			}
		}
	case *readers.Notebook:
		for _, cell := range body.Cells {
			for _, o := range cell.Outputs {
				if err == nil && o.Base64 != "" {
					err = image(o.MediaType, o.Base64)
				}
			}
		}
	case *readers.Binary:
		var data []byte
		if data, err = base64.StdEncoding.DecodeString(body.Base64); len(data) > 0 {
			out = append(out, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: fileURI(c.FilePath), MIMEType: body.MediaType, Blob: data}})
		}
	}
	return out, err
}

func fileURI(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// withoutBytes takes every "base64" member out of an encoded payload. The key can't be mistaken for text: within a string its
// quotes would be escaped. It is never the first member, and its value holds no quotes.
func withoutBytes(body []byte) []byte {
	key := []byte(`,"base64":"`)
	var out []byte
	for {
		i := bytes.Index(body, key)
		if i < 0 {
			return append(out, body...)
		}
		out = append(out, body[:i]...)
		body = body[i+len(key):]
		body = body[bytes.IndexByte(body, '"')+1:]
	}
}
