package image

import (
	"bytes"
	"context"
	"fmt"
	"image"

	"moltisfs/readers/unreadable"
)

// The numbers of libheif's public header.
const (
	heifYCbCr, heifRGB, heifMono       = 0, 1, 2
	heifChroma420, heifChroma422       = 1, 2
	heifChroma444, heifInterleavedRGBA = 3, 11
)

// heifSentinel fills the last bytes of the pixels and a margin behind them, to see how far libheif
// wrote.
const (
	heifLast     = 48
	heifMargin   = 4096
	heifSentinel = 0xa5
)

func decodeHEIC(ctx context.Context, d *Decoders, b []byte) (image.Image, error) {
	if len(heifWasm) == 0 {
		return nil, notBuilt("a HEIC image")
	}
	colour, ok := nclxOf(b)
	if !ok {
		return nil, convertIt("this kind of HEIC image", "how its colours are coded is not known")
	}
	reply, err := d.inWorker(ctx, "HEIC image", workRequest{Op: "heic", Size: int64(len(b)), Cache: d.Cache.OnDisk()}, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(reply.Head)
	if err != nil {
		return nil, err
	}
	if len(reply.Planes) != l.size {
		return nil, heifRefused
	}
	return l.image(reply.Planes, colour)
}

// heifPlanes runs in a worker process, and gives libheif's header and its planes as they lie there:
// width, height, colour space, chroma, and whether alpha is premultiplied.
func heifPlanes(s *sandbox, b []byte) (head [5]uint32, planes []byte, err error) {
	in, at := s.put(b), s.alloc(5*4)
	h := uint64(at)
	if !s.decode(uint64(in), uint64(len(b)), 1, h, h+4, h+8, h+12, h+16, 0) {
		return head, nil, s.failed(&unreadable.Damaged{What: "heic image", Why: "its header cannot be read"})
	}
	copy(head[:], s.words(at, len(head)))
	l, err := layoutOf(head)
	if err != nil {
		return head, nil, err
	}
	out := s.alloc(l.size + heifMargin)
	pattern := bytes.Repeat([]byte{heifSentinel}, heifLast+heifMargin)
	if s.err != nil || !s.mod.Memory().Write(out+uint32(l.size-heifLast), pattern) {
		return head, nil, &unreadable.Limit{What: "image", Resource: "memory"}
	}
	if !s.decode(uint64(in), uint64(len(b)), 0, h, h+4, h+8, h+12, h+16, uint64(out)) {
		return head, nil, heifRefused // after a trap the reason is gone with the sandbox
	}
	seen, ok := s.mod.Memory().Read(out, uint32(l.size+heifMargin))
	if !ok {
		return head, nil, heifRefused
	}
	// The strides are known by libheif's rule, not said by it: had it written less or more, the
	// picture would be a wrong one.
	if !bytes.Equal(seen[l.size:], pattern[heifLast:]) || bytes.HasSuffix(seen[:l.size], pattern[:heifLast]) {
		return head, nil, convertIt("this kind of HEIC image", "its pixels are laid out in an unknown way")
	}
	return head, seen[:l.size], nil
}

// heifRefused is for what libheif does not decode. It does not say whether the file is damaged or
// of a rare kind (grey of 10 bits is one).
var heifRefused = convertIt("this HEIC image", "the decoder gives up on it")

// heifLayout is how libheif lays out an image of 8 bits: planes one after the other.
type heifLayout struct {
	rect           image.Rectangle
	space          uint32
	premultiplied  bool
	ratio          image.YCbCrSubsampleRatio
	stride, chroma int // bytes in a row of the first plane and of the others
	first, other   int // bytes of a plane
	size           int
}

// heifStride is libheif's rule: an even number of pixels, at least 64, in rows of a multiple of 16
// bytes.
func heifStride(pixels, bytes int) int {
	return (max((pixels+1)&^1, 64)*bytes + 15) &^ 15
}

func layoutOf(v [5]uint32) (*heifLayout, error) {
	if err := checkPixels(int(v[0]), int(v[1])); err != nil {
		return nil, err
	}
	w, h := int(v[0]), int(v[1])
	l := &heifLayout{rect: image.Rect(0, 0, w, h), space: v[2], premultiplied: v[4] == 1}
	cw, ch := w, h
	switch {
	case l.space == heifRGB:
		l.stride = heifStride(w, 4)
		l.first = l.stride * h
		l.size = l.first
		return l, nil
	case l.space == heifMono:
		cw, ch = 0, 0
	case l.space != heifYCbCr:
		return nil, convertIt("this kind of HEIC image", fmt.Sprintf("its colour space %d is unknown", v[2]))
	case v[3] == heifChroma420:
		l.ratio, cw, ch = image.YCbCrSubsampleRatio420, (w+1)/2, (h+1)/2
	case v[3] == heifChroma422:
		l.ratio, cw = image.YCbCrSubsampleRatio422, (w+1)/2
	default:
		l.ratio = image.YCbCrSubsampleRatio444
	}
	l.stride = heifStride(w, 1)
	l.first = l.stride * h
	if ch > 0 {
		l.chroma = heifStride(cw, 1)
		l.other = l.chroma * ch
	}
	l.size = l.first + 2*l.other
	return l, nil
}

func (l *heifLayout) image(b []byte, colour nclx) (image.Image, error) {
	switch l.space {
	case heifRGB:
		if l.premultiplied {
			return &image.RGBA{Pix: b, Stride: l.stride, Rect: l.rect}, nil
		}
		return &image.NRGBA{Pix: b, Stride: l.stride, Rect: l.rect}, nil
	case heifMono:
		if !colour.full {
			for i, c := range b {
				b[i] = clamp8((float32(c) - 16) * 255 / 219)
			}
		}
		return &image.Gray{Pix: b, Stride: l.stride, Rect: l.rect}, nil
	}
	y, cb, cr := b[:l.first:l.first], b[l.first:l.first+l.other:l.first+l.other], b[l.first+l.other:]
	m := &image.YCbCr{Y: y, Cb: cb, Cr: cr, YStride: l.stride, CStride: l.chroma, SubsampleRatio: l.ratio, Rect: l.rect}
	return colour.apply(m), nil
}
