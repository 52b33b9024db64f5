package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/gif"

	"golang.org/x/image/draw"
)

// decodeGIF puts the first frame in its place on the canvas, of which it may be a part.
func decodeGIF(ctx context.Context, b []byte) (image.Image, error) {
	frame, err := gif.Decode(reader{ctx, bytes.NewReader(b)})
	if err != nil {
		return nil, err
	}
	c, err := gif.DecodeConfig(bytes.NewReader(b))
	if whole := image.Rect(0, 0, c.Width, c.Height); err == nil && frame.Bounds() != whole {
		canvas := image.NewRGBA(whole)
		draw.Draw(canvas, frame.Bounds(), frame, frame.Bounds().Min, draw.Src)
		return canvas, nil
	}
	return frame, err
}

// frames counts the frames of an animation, when there is more than one.
func frames(format string, b []byte) int {
	n := 0
	switch format {
	case "gif":
		n, _ = gifFrames(b)
	case "png":
		if i := bytes.Index(b[:min(len(b), 4096)], []byte("acTL")); i > 0 && i+8 <= len(b) {
			n = int(binary.BigEndian.Uint32(b[i+4:]))
		}
	}
	if n > 1 {
		return n
	}
	return 0
}

// cutShort says that a GIF ends before its last frame does. Only the first frame is decoded, so no
// decoder tells.
func cutShort(format string, b []byte) bool {
	if format != "gif" {
		return false
	}
	n, whole := gifFrames(b)
	return n > 0 && !whole
}

// gifFrames walks the blocks without decoding them. whole is false where the file ends within one
// of them.
func gifFrames(b []byte) (n int, whole bool) {
	if len(b) < 13 {
		return 0, false
	}
	i := 13
	if b[10]&0x80 != 0 {
		i += 3 << (b[10]&7 + 1)
	}
	skip := func() {
		for i < len(b) && b[i] != 0 {
			i += int(b[i]) + 1
		}
		i++
	}
	for {
		if i+10 >= len(b) {
			// A file may end without its trailer, but not within a block.
			return n, i < len(b) && b[i] == 0x3b || i == len(b)
		}
		switch b[i] {
		case 0x21:
			i += 2
			skip()
		case 0x2c:
			n++
			flags := b[i+9]
			i += 10
			if flags&0x80 != 0 {
				i += 3 << (flags&7 + 1)
			}
			i++ // code size
			skip()
		default:
			return n, b[i] == 0x3b
		}
	}
}
