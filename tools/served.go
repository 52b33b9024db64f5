package tools

import (
	"bytes"
	"context"
	"encoding/base64"

	"moltisfs/internal/dialect"
	"moltisfs/readers"
)

// Dialect is the suite for whatever serves calls and knows no payloads.
func (s *Suite) Dialect() Dialect { return served{s} }

type served struct{ *Suite }

func (s served) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	p, err := s.Suite.call(ctx, c)
	if err != nil {
		return nil, err
	}
	return answer{p}, nil
}

// answer is a payload on its way out.
type answer struct{ Payload }

// Unwrap is the payload, for who knows those of the tools.
func (a answer) Unwrap() Payload { return a.Payload }

func (a answer) Refused() bool { return Refused(a.Payload) }

func (a answer) JSON(bytes bool) ([]byte, error) {
	body, err := Encode(a.Payload)
	if _, ok := a.Payload.(*Content); err == nil && ok && !bytes {
		body = withoutBytes(body)
	}
	return body, err
}

// Blocks are the images of a payload, and the bytes of a binary file.
func (a answer) Blocks() (out []dialect.Block, err error) {
	c, ok := a.Payload.(*Content)
	if !ok {
		return nil, nil
	}
	add := func(path, mediaType, encoded string) {
		data, derr := base64.StdEncoding.DecodeString(encoded)
		if err == nil {
			err = derr
		}
		if len(data) > 0 {
			out = append(out, dialect.Block{Path: path, MediaType: mediaType, Data: data})
		}
	}
	switch body := c.Body.(type) {
	case *readers.Image:
		add("", body.MediaType, body.Base64)
	case *readers.PDF:
		for i := range body.Images {
			add("", body.Images[i].MediaType, body.Images[i].Base64)
		}
	case *readers.Notebook:
		for _, cell := range body.Cells {
			for _, o := range cell.Outputs {
				add("", o.MediaType, o.Base64)
			}
		}
	case *readers.Binary:
		add(c.FilePath, body.MediaType, body.Base64)
	}
	return out, err
}

// withoutBytes takes every "base64" member out of an encoded payload. No text can be mistaken for
// the key: within a string its quotes would be escaped. It is never the first member, and its value
// holds no quotes.
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
