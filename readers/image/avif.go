package image

import (
	"bytes"
	"context"
	"image"
	"image/png"

	"moltisfs/readers/unreadable"
)

// decodeAVIF decodes in the worker process.
func decodeAVIF(ctx context.Context, d *Decoders, b []byte) (image.Image, error) {
	if len(avifWasm) == 0 {
		return nil, notBuilt("an AVIF image")
	}
	reply, err := d.inWorker(ctx, "AVIF image", workRequest{Op: "avif", Size: int64(len(b)), Cache: d.Cache.OnDisk()}, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return png.Decode(bytes.NewReader(reply.PNG))
}

// avifPNG runs in a worker process and makes a PNG of the first frame, whose red, green, blue and
// alpha libavif gives premultiplied: a byte each, or two, low byte first, where the image has more
// than eight bits.
func avifPNG(s *sandbox, b []byte) ([]byte, error) {
	damaged := &unreadable.Damaged{What: "avif image", Why: "the decoder gives up on it"}
	in, at := s.put(b), s.alloc(4*4)
	h := uint64(at)
	if !s.decode(uint64(in), uint64(len(b)), 1, 0, h, h+4, h+8, h+12, 0, 0) {
		return nil, s.failed(damaged)
	}
	head := s.words(at, 3)
	w, high, deep := int(head[0]), int(head[1]), head[2] > 8
	if err := checkPixels(w, high); err != nil {
		return nil, err
	}
	size := w * high * 4
	if deep {
		size *= 2
	}
	unset := bytes.Repeat([]byte{0xff}, 8) // not a time: where it stays, no frame was decoded, which the decoder does not say
	out, delay := s.alloc(size), s.put(unset)
	if !s.decode(uint64(in), uint64(len(b)), 0, 0, h, h+4, h+8, h+12, uint64(delay), uint64(out)) {
		return nil, s.failed(damaged)
	}
	pix, ok := s.mod.Memory().Read(out, uint32(size))
	if shown, _ := s.mod.Memory().Read(delay, 8); !ok || bytes.Equal(shown, unset) {
		return nil, damaged
	}
	if deep { // no model sees more than eight bits
		for i := range size / 2 {
			pix[i] = pix[2*i+1]
		}
	}
	var buf bytes.Buffer
	m := &image.RGBA{Pix: pix[:w*high*4], Stride: w * 4, Rect: image.Rect(0, 0, w, high)}
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&buf, m); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
