package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"

	"golang.org/x/image/webp"
)

func isWebP(h []byte) bool {
	return len(h) >= 16 && string(h[:4]) == "RIFF" && string(h[8:12]) == "WEBP"
}

// webpChunks calls f for the chunks of a WebP file or of a frame's body until f returns false.
func webpChunks(b []byte, f func(id string, body []byte) bool) {
	for len(b) >= 8 {
		n := int64(binary.LittleEndian.Uint32(b[4:]))
		if n > int64(len(b)-8) {
			return
		}
		if !f(string(b[:4]), b[8:8+n]) {
			return
		}
		b = b[min(int64(len(b)), 8+n+n&1):]
	}
}

// webpChunk returns the body of the first chunk with the id.
func webpChunk(b []byte, id string) (body []byte) {
	if !isWebP(b) {
		return nil
	}
	webpChunks(b[12:], func(name string, p []byte) bool {
		if name == id {
			body = p
		}
		return name != id
	})
	return body
}

func webpSize(b []byte) (image.Config, error) {
	// The size of an extended file is in its header; x/image refuses animated ones.
	if x := webpChunk(b, "VP8X"); len(x) >= 10 {
		c := image.Config{Width: int(u24(x[4:])) + 1, Height: int(u24(x[7:])) + 1, ColorModel: color.NRGBAModel}
		if x[0]&2 != 0 {
			return c, nil
		}
		inner, err := webp.DecodeConfig(bytes.NewReader(b))
		if err != nil {
			return inner, err
		}
		c.Width, c.Height = max(c.Width, inner.Width), max(c.Height, inner.Height)
		return c, nil
	}
	return webp.DecodeConfig(bytes.NewReader(b))
}

func decodeWebP(ctx context.Context, _ *Decoders, b []byte) (image.Image, error) {
	if x := webpChunk(b, "VP8X"); len(x) >= 10 && x[0]&2 != 0 {
		return webpFirstFrame(b)
	}
	img, err := webp.Decode(reader{ctx, bytes.NewReader(b)})
	if err != nil {
		return nil, err
	}
	return studioRange(img), nil
}

// studioRange converts a lossy image to what it looks like. WebP stores brightness from 16 to 235,
// as video does; Go takes all YCbCr for JPEG's, from 0 to 255, and would show it pale.
func studioRange(img image.Image) image.Image {
	var yuv *image.YCbCr
	var alpha func(x, y int) uint8
	switch m := img.(type) {
	case *image.YCbCr:
		yuv, alpha = m, func(int, int) uint8 { return 0xff }
	case *image.NYCbCrA:
		yuv, alpha = &m.YCbCr, func(x, y int) uint8 { return m.A[m.AOffset(x, y)] }
	default:
		return img
	}
	b := yuv.Rect
	out := image.NewNRGBA(b)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		row := out.Pix[out.PixOffset(b.Min.X, y):]
		for x := b.Min.X; x < b.Max.X; x++ {
			c := yuv.COffset(x, y)
			luma := (int32(yuv.Y[yuv.YOffset(x, y)]) - 16) * 76309
			cb, cr := int32(yuv.Cb[c])-128, int32(yuv.Cr[c])-128
			p := row[(x-b.Min.X)*4:][:4]
			// BT.601, in 65536ths.
			p[0] = byteOf(luma + 104597*cr)
			p[1] = byteOf(luma - 25675*cb - 53279*cr)
			p[2] = byteOf(luma + 132201*cb)
			p[3] = alpha(x, y)
		}
	}
	return out
}

// byteOf rounds and clamps a value in 65536ths.
func byteOf(v int32) uint8 { return uint8(min(max((v+1<<15)>>16, 0), 255)) }

// webpFirstFrame decodes the first frame of an animation: its chunks are those of a still image, so
// they are put into a file of their own and that is laid onto the canvas.
func webpFirstFrame(b []byte) (image.Image, error) {
	head, frame := webpChunk(b, "VP8X"), webpChunk(b, "ANMF")
	if len(frame) < 16 {
		return nil, errors.New("an animation without a frame")
	}
	x, y := int(u24(frame))*2, int(u24(frame[3:]))*2
	w, h := int(u24(frame[6:]))+1, int(u24(frame[9:]))+1
	if err := checkPixels(w, h); err != nil {
		return nil, err
	}
	canvas := image.Rect(0, 0, int(u24(head[4:]))+1, int(u24(head[7:]))+1)
	alpha := byte(0)
	webpChunks(frame[16:], func(id string, _ []byte) bool {
		if id == "ALPH" {
			alpha = 0x10
		}
		return true
	})
	still := append([]byte("RIFF\x00\x00\x00\x00WEBP"), "VP8X\x0a\x00\x00\x00"...)
	still = append(still, alpha, 0, 0, 0)
	still = append(still, frame[6:12]...)
	webpChunks(frame[16:], func(id string, body []byte) bool {
		if id == "ALPH" || id == "VP8 " || id == "VP8L" {
			if id == "VP8L" && alpha == 0 {
				still = still[:12] // a lossless image stands alone
			}
			still = append(still, id...)
			still = binary.LittleEndian.AppendUint32(still, uint32(len(body)))
			still = append(still, body...)
			if len(body)&1 != 0 {
				still = append(still, 0)
			}
		}
		return true
	})
	binary.LittleEndian.PutUint32(still[4:], uint32(len(still)-8))
	img, err := webp.Decode(bytes.NewReader(still))
	if err != nil {
		return nil, err
	}
	img = studioRange(img)
	if img.Bounds() == canvas {
		return img, nil
	}
	dst := image.NewNRGBA(canvas)
	r := img.Bounds().Add(image.Pt(x, y)).Intersect(canvas)
	for py := r.Min.Y; py < r.Max.Y; py++ {
		for px := r.Min.X; px < r.Max.X; px++ {
			dst.Set(px, py, img.At(px-x, py-y))
		}
	}
	return dst, nil
}

func u24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// frames counts the frames of an animation, when there is more than one.
func frames(format string, b []byte) int {
	n := 0
	switch format {
	case "webp":
		if isWebP(b) {
			webpChunks(b[12:], func(id string, _ []byte) bool {
				if id == "ANMF" {
					n++
				}
				return true
			})
		}
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

// cutShort says that the file of an animation ends before its last frame does. Only the first frame
// is decoded, so no decoder tells.
func cutShort(format string, b []byte) bool {
	switch format {
	case "webp":
		return isWebP(b) && int64(binary.LittleEndian.Uint32(b[4:]))+8 > int64(len(b))
	case "gif":
		n, whole := gifFrames(b)
		return n > 0 && !whole
	}
	return false
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
