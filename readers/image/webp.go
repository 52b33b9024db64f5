package image

import (
	"bytes"
	"context"
	"image"

	"golang.org/x/image/webp"

	"moltisfs/readers/unreadable"
)

func isWebP(h []byte) bool {
	return len(h) >= 16 && string(h[:4]) == "RIFF" && string(h[8:12]) == "WEBP"
}

func decodeWebP(ctx context.Context, b []byte) (image.Image, error) {
	if len(b) > 20 && string(b[12:16]) == "VP8X" && b[20]&2 != 0 {
		return nil, &unreadable.Unsupported{What: "an animated WebP image", Why: "only still ones are read",
			Do: "Convert it to GIF, or one of its frames to PNG, first."}
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
