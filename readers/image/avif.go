package image

import (
	"bytes"
	"image"

	"moltisfs/readers/unreadable"
)

// decodeAVIF runs in a worker process and gives the first frame. libavif gives its red, green, blue
// and alpha premultiplied: a byte each, or two, low byte first, where the image has more than eight
// bits.
func decodeAVIF(s *sandbox, b []byte) (image.Image, error) {
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
		// It does not say whether the file is damaged or its memory too small.
		return nil, s.failed(convertIt("this AVIF image", "the decoder gives up on it"))
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
	return &image.RGBA{Pix: pix[:w*high*4], Stride: w * 4, Rect: image.Rect(0, 0, w, high)}, nil
}
