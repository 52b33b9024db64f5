package image

import (
	"bytes"
	"image"

	"moltisfs/readers/unreadable"
)

// The numbers of libheif's public header.
const (
	heifYCbCr, heifMono          = 0, 2
	heifChroma420, heifChroma422 = 1, 2
)

// heifSentinel fills the last bytes of the pixels and a margin behind them, to see how far libheif
// wrote.
const (
	heifLast     = 48
	heifMargin   = 4096
	heifSentinel = 0xa5
)

// decodeHEIC runs in a worker process.
func decodeHEIC(s *sandbox, b []byte) (image.Image, error) {
	colour, ok := nclxOf(b)
	if !ok {
		return nil, convertIt("this kind of HEIC image", "how its colours are coded is not known")
	}
	in, at := s.put(b), s.alloc(5*4)
	h := uint64(at) // width, height, colour space, chroma, and whether alpha is premultiplied
	if !s.decode(uint64(in), uint64(len(b)), 1, h, h+4, h+8, h+12, h+16, 0) {
		return nil, s.failed(&unreadable.Damaged{What: "heic image", Why: "its header cannot be read"})
	}
	l, err := layoutOf(s.words(at, 4))
	if err != nil {
		return nil, err
	}
	out := s.alloc(l.size + heifMargin)
	pattern := bytes.Repeat([]byte{heifSentinel}, heifLast+heifMargin)
	if s.err != nil || !s.mod.Memory().Write(out+uint32(l.size-heifLast), pattern) {
		return nil, &unreadable.Limit{What: "image", Resource: "memory"}
	}
	if !s.decode(uint64(in), uint64(len(b)), 0, h, h+4, h+8, h+12, h+16, uint64(out)) {
		return nil, heifRefused // after a trap the reason is gone with the sandbox
	}
	seen, ok := s.mod.Memory().Read(out, uint32(l.size+heifMargin))
	if !ok {
		return nil, heifRefused
	}
	// The strides are known by libheif's rule, not said by it: had it written less or more, the
	// picture would be a wrong one.
	if !bytes.Equal(seen[l.size:], pattern[heifLast:]) || bytes.HasSuffix(seen[:l.size], pattern[:heifLast]) {
		return nil, convertIt("this kind of HEIC image", "its pixels are laid out in an unknown way")
	}
	return l.image(seen[:l.size], colour), nil
}

// heifRefused is for what libheif does not decode. It does not say whether the file is damaged or
// of a rare kind (grey of 10 bits is one).
var heifRefused = convertIt("this HEIC image", "the decoder gives up on it")

// heifLayout is how libheif lays out an image of 8 bits: planes one after the other.
type heifLayout struct {
	rect           image.Rectangle
	mono           bool
	ratio          image.YCbCrSubsampleRatio
	stride, chroma int // bytes in a row of the first plane and of the others
	first, other   int // bytes of a plane
	size           int
}

// heifStride is libheif's rule: at least 64 pixels, in rows of a multiple of 16 bytes.
func heifStride(pixels int) int { return (max(pixels, 64) + 15) &^ 15 }

func layoutOf(v []uint32) (*heifLayout, error) {
	if err := checkPixels(int(v[0]), int(v[1])); err != nil {
		return nil, err
	}
	w, h := int(v[0]), int(v[1])
	l := &heifLayout{rect: image.Rect(0, 0, w, h), mono: v[2] == heifMono}
	cw, ch := w, h
	switch {
	case l.mono:
		cw, ch = 0, 0
	case v[2] != heifYCbCr:
		return nil, convertIt("this kind of HEIC image", "its colours are not those of photographs")
	case v[3] == heifChroma420:
		l.ratio, cw, ch = image.YCbCrSubsampleRatio420, (w+1)/2, (h+1)/2
	case v[3] == heifChroma422:
		l.ratio, cw = image.YCbCrSubsampleRatio422, (w+1)/2
	default:
		l.ratio = image.YCbCrSubsampleRatio444
	}
	l.stride = heifStride(w)
	l.first = l.stride * h
	if ch > 0 {
		l.chroma = heifStride(cw)
		l.other = l.chroma * ch
	}
	l.size = l.first + 2*l.other
	return l, nil
}

func (l *heifLayout) image(b []byte, colour nclx) image.Image {
	if l.mono {
		if !colour.full {
			for i, c := range b {
				b[i] = clamp8((float32(c) - 16) * 255 / 219)
			}
		}
		return &image.Gray{Pix: b, Stride: l.stride, Rect: l.rect}
	}
	y, cb, cr := b[:l.first:l.first], b[l.first:l.first+l.other:l.first+l.other], b[l.first+l.other:]
	m := &image.YCbCr{Y: y, Cb: cb, Cr: cr, YStride: l.stride, CStride: l.chroma, SubsampleRatio: l.ratio, Rect: l.rect}
	if colour == jfif {
		return m // as Go takes it
	}
	return colour.apply(m)
}
