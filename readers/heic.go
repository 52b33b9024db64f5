package readers

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// heif decodes HEIC images with libheif in a sandbox of its own for every image: no file system, no network, a cap on memory, and an end at
// the deadline.
type heif struct {
	config Config
	cache  *codeCache
	turn   chan struct{} // held while an image is decoded
}

// The numbers of libheif's public header.
const (
	heifYCbCr, heifRGB, heifMono       = 0, 1, 2
	heifChroma420, heifChroma422       = 1, 2
	heifChroma444, heifInterleavedRGBA = 3, 11
)

// heifSentinel fills the last bytes of the pixels and a margin behind them, to see how far libheif wrote.
const (
	heifLast     = 48
	heifMargin   = 4096
	heifSentinel = 0xa5
)

func decodeHEIC(ctx context.Context, r *Readers, b []byte) (image.Image, error) {
	if len(heifWasm) == 0 {
		return nil, &Unsupported{What: "a HEIC image", Why: "this program was built without the tag nodynamic", Do: "Convert it to JPEG or PNG first."}
	}
	colour, ok := nclxOf(b)
	if !ok {
		return nil, &Unsupported{What: "this kind of HEIC image", Why: "how its colours are coded is not known", Do: "Convert it to JPEG or PNG first."}
	}
	return r.heifs.decode(ctx, b, colour)
}

func (h *heif) decode(ctx context.Context, b []byte, colour nclx) (img image.Image, err error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, h.config.Deadline)
	defer cancel()
	img, err = h.inSandbox(ctx, b, colour)
	var ours Hinter
	switch {
	case err == nil:
		return img, nil
	case caller.Err() != nil:
		return nil, caller.Err()
	case ctx.Err() != nil:
		return nil, &Limit{What: "image", Resource: "time"}
	case errors.As(err, &ours):
		return nil, err
	}
	return nil, heifRefused // a trap: the sandbox is gone, and with it the reason
}

func (h *heif) inSandbox(ctx context.Context, b []byte, colour nclx) (image.Image, error) {
	zip, err := gzip.NewReader(bytes.NewReader(heifWasm))
	if err != nil {
		return nil, err
	}
	code, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	run := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCompilationCache(h.cache.get()).
		WithMemoryLimitPages(uint32(h.config.PDFMemory>>16)).
		WithCloseOnContextDone(true))
	defer run.Close(context.Background())
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, run); err != nil {
		return nil, err
	}
	compiled, err := run.CompileModule(ctx, code)
	if err != nil {
		return nil, err
	}
	mod, err := run.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		return nil, err
	}
	s := heifSandbox{ctx: ctx, mod: mod}
	in := s.alloc(len(b))
	if !mod.Memory().Write(in, b) {
		return nil, errors.New("no memory for the file")
	}
	head := s.alloc(5 * 4)
	if !s.call(in, len(b), true, head, 0) {
		return nil, s.failed("its header cannot be read")
	}
	l, err := layoutOf(s.header(head))
	if err != nil {
		return nil, err
	}
	out := s.alloc(l.size + heifMargin)
	pattern := bytes.Repeat([]byte{heifSentinel}, heifLast+heifMargin)
	if s.err != nil || !mod.Memory().Write(out+uint32(l.size-heifLast), pattern) {
		return nil, &Limit{What: "image", Resource: "memory"}
	}
	if !s.call(in, len(b), false, head, out) {
		return nil, s.failed("")
	}
	seen, ok := mod.Memory().Read(out, uint32(l.size+heifMargin))
	if !ok {
		return nil, errors.New("the pixels cannot be read")
	}
	// The strides are known by libheif's rule, not said by it: had it written less or more, the picture would be a wrong one.
	if !bytes.Equal(seen[l.size:], pattern[heifLast:]) || bytes.HasSuffix(seen[:l.size], pattern[:heifLast]) {
		return nil, &Unsupported{What: "this kind of HEIC image", Why: "its pixels are laid out in an unknown way", Do: "Convert it to JPEG or PNG first."}
	}
	return l.image(bytes.Clone(seen[:l.size]), colour)
}

// heifSandbox calls into one instance. After the first error nothing is called any more.
type heifSandbox struct {
	ctx context.Context
	mod api.Module
	err error
}

func (s *heifSandbox) alloc(n int) uint32 {
	if s.err != nil {
		return 0
	}
	got, err := s.mod.ExportedFunction("malloc").Call(s.ctx, uint64(n))
	if err == nil && (len(got) == 0 || got[0] == 0) {
		err = &Limit{What: "image", Resource: "memory"}
	}
	if err != nil {
		s.err = err
		return 0
	}
	return uint32(got[0])
}

// call decodes, or reads only the header, and reports whether that went well.
func (s *heifSandbox) call(in uint32, size int, headerOnly bool, head, out uint32) bool {
	if s.err != nil {
		return false
	}
	only := uint64(0)
	if headerOnly {
		only = 1
	}
	h := uint64(head)
	got, err := s.mod.ExportedFunction("decode").Call(s.ctx, uint64(in), uint64(size), only, h, h+4, h+8, h+12, h+16, uint64(out))
	s.err = err
	return err == nil && len(got) > 0 && got[0] != 0
}

// heifRefused is for what libheif does not decode. It does not say whether the file is damaged or of a rare kind (grey of 10 bits is one).
var heifRefused = &Unsupported{What: "this HEIC image", Why: "the decoder gives up on it", Do: "Convert it to JPEG or PNG first."}

// failed is the error of the last call, or else damage, where the reason is known.
func (s *heifSandbox) failed(why string) error {
	if s.err != nil {
		return s.err
	}
	if why != "" {
		return &Damaged{"heic image", why}
	}
	return heifRefused
}

// header reads width, height, colour space, chroma and whether alpha is premultiplied.
func (s *heifSandbox) header(at uint32) (v [5]uint32) {
	b, _ := s.mod.Memory().Read(at, 20)
	for i := range v {
		if len(b) == 20 {
			v[i] = binary.LittleEndian.Uint32(b[i*4:])
		}
	}
	return v
}

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

// heifStride is libheif's rule: an even number of pixels, at least 64, in rows of a multiple of 16 bytes.
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
		return nil, &Unsupported{What: "this kind of HEIC image", Why: fmt.Sprintf("its colour space %d is unknown", v[2]), Do: "Convert it to JPEG or PNG first."}
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
