package readers

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"

	"moltisfs/readers/image"
)

// notebookImage passes an embedded image through the image reader, so that it is checked and scaled like a file. Nil when
// it is none.
func notebookImage(ctx context.Context, r *Readers, encoded string, o *Options) *Image {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	if err != nil || image.FormatOf(data) == nil {
		return nil
	}
	inner := Options{ImageMaxEdge: o.ImageMaxEdge, ImageMaxBytes: o.ImageMaxBytes, MaxFileBytes: memoryLimit}
	inner.fill()
	c, err := readMemory(ctx, r, data, &inner, readImage)
	if err != nil {
		return nil
	}
	img, _ := c.(*Image)
	return img
}

// readMemory runs one reader over bytes that are already here.
func readMemory(ctx context.Context, r *Readers, data []byte, o *Options, read func(context.Context, *Readers, *file, *Options) (Content, error)) (Content, error) {
	f := &file{Source: Source{R: bytes.NewReader(data), Size: int64(len(data))}}
	if err := f.begin(); err != nil {
		return nil, err
	}
	defer f.release()
	return read(ctx, r, f, o)
}
