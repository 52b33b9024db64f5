package image

import (
	"bytes"
	"encoding/binary"
	"image"

	"moltisfs/readers/unreadable"
)

// decodeAVIF runs in a worker process and returns the first frame. libavif gives its red, green, blue
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
	if err := checkPixels(w, high, MaxPixels); err != nil {
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

// boxes reads from the properties of an AVIF or HEIC file the size of its largest picture, which others are parts or small copies of, and how it is to be turned, as
// EXIF counts: the boxes irot (quarters to the left) and imir, in that order.
func boxes(b []byte) (c image.Config, turn int) {
	head := b[:min(len(b), 1<<20)]
	for rest := head; ; {
		i := bytes.Index(rest, []byte("\x00\x00\x00\x14ispe"))
		if i < 0 || i+20 > len(rest) {
			break
		}
		w, h := binary.BigEndian.Uint32(rest[i+12:]), binary.BigEndian.Uint32(rest[i+16:])
		if w < 1<<20 && h < 1<<20 && int(w)*int(h) > c.Width*c.Height {
			c.Width, c.Height = int(w), int(h)
		}
		rest = rest[i+20:]
	}
	value := func(box string) int {
		if i := bytes.Index(head, []byte("\x00\x00\x00\x09"+box)); i >= 0 && i+8 < len(head) {
			return int(head[i+8] & 3)
		}
		return -1
	}
	turned := max(value("irot"), 0)
	switch value("imir") {
	case 0: // top and bottom change places
		return c, [4]int{4, 5, 2, 7}[turned]
	case 1:
		return c, [4]int{2, 7, 4, 5}[turned]
	}
	return c, [4]int{1, 8, 3, 6}[turned]
}

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

// heifRefused is the error for files that libheif does not decode. It does not say whether they are damaged or
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
	if err := checkPixels(int(v[0]), int(v[1]), MaxPixels); err != nil {
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

// nclx says how three planes become colours: a row of the table of matrix coefficients in ITU-T
// H.273, and the range of the numbers.
type nclx struct {
	kr, kb float32
	full   bool // 0 to 255; else 16 to 235 (brightness) and 16 to 240
}

// jfif is the coding of JPEG, of image.YCbCr, and of HEIC that has no colr box.
var jfif = nclx{kr: 0.299, kb: 0.114, full: true}

// nclxOf reads the first "colr" box of type nclx. It reports false for a matrix that is not known.
func nclxOf(b []byte) (nclx, bool) {
	i := bytes.Index(b[:min(len(b), 1<<20)], []byte("colrnclx"))
	if i < 0 || i+15 > len(b) {
		return jfif, true
	}
	c := nclx{full: b[i+14]&0x80 != 0}
	switch matrix := int(b[i+12])<<8 | int(b[i+13]); matrix {
	case 1:
		c.kr, c.kb = 0.2126, 0.0722
	case 2, 5, 6:
		c.kr, c.kb = 0.299, 0.114
	case 9, 10:
		c.kr, c.kb = 0.2627, 0.0593
	default:
		return c, false
	}
	return c, true
}

// apply returns m in the colours that c means.
func (c nclx) apply(m *image.YCbCr) *image.RGBA {
	yOff, yBy, cBy := float32(0), float32(1), float32(1)
	if !c.full {
		yOff, yBy, cBy = 16, 255.0/219, 255.0/224
	}
	kg := 1 - c.kr - c.kb
	out := image.NewRGBA(m.Rect)
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		p := out.Pix[out.PixOffset(m.Rect.Min.X, y):]
		for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
			l := (float32(m.Y[m.YOffset(x, y)]) - yOff) * yBy
			at := m.COffset(x, y)
			cb, cr := (float32(m.Cb[at])-128)*cBy, (float32(m.Cr[at])-128)*cBy
			r, b := l+2*(1-c.kr)*cr, l+2*(1-c.kb)*cb
			g := l - (2*(1-c.kr)*c.kr*cr+2*(1-c.kb)*c.kb*cb)/kg
			p[0], p[1], p[2], p[3] = clamp8(r), clamp8(g), clamp8(b), 0xff
			p = p[4:]
		}
	}
	return out
}

func clamp8(v float32) uint8 {
	return uint8(min(max(v+0.5, 0), 255))
}
