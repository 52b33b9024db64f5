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
	// WebP stores brightness from 16 to 235, as video does; Go takes all YCbCr for JPEG's, from 0 to
	// 255, and would show it pale.
	studio := nclx{kr: jfif.kr, kb: jfif.kb}
	switch m := img.(type) {
	case *image.YCbCr:
		return studio.apply(m), nil
	case *image.NYCbCrA:
		out := image.NRGBA(*studio.apply(&m.YCbCr))
		for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
			for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
				out.Pix[out.PixOffset(x, y)+3] = m.A[m.AOffset(x, y)]
			}
		}
		return &out, nil
	}
	return img, nil
}
