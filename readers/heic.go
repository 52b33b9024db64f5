package readers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

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
	heifMemory   = 512 << 20
)

func decodeHEIC(ctx context.Context, r *Readers, b []byte) (image.Image, error) {
	if len(heifWasm) == 0 {
		return nil, &Unsupported{What: "a HEIC image", Why: "this program was built without the tag nodynamic", Do: "Convert it to JPEG or PNG first."}
	}
	colour, ok := nclxOf(b)
	if !ok {
		return nil, &Unsupported{What: "this kind of HEIC image", Why: "how its colours are coded is not known", Do: "Convert it to JPEG or PNG first."}
	}
	reply, err := r.inWorker(ctx, "HEIC image", workRequest{Op: "heic", Size: int64(len(b)), Cache: r.code.onDisk()}, bytes.NewReader(b))
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

// heicDecoder runs in a worker process: to be cut off at a deadline, WebAssembly has to look at the clock in every loop, which makes this decoder four
// times slower; a process can be killed.
func heicDecoder(cache string) (func([]byte, *workReply) error, error) {
	ctx := context.Background()
	run, code, err := compiled(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(heifMemory>>16), cache, heifWasm)
	if err != nil {
		return nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, run); err != nil {
		return nil, err
	}
	return func(data []byte, reply *workReply) (err error) {
		reply.Head, reply.Planes, err = heifPlanes(ctx, run, code, data)
		return err
	}, nil
}

// heifPlanes decodes in a sandbox of libheif, and gives its header and its planes as they lie there.
func heifPlanes(ctx context.Context, run wazero.Runtime, code wazero.CompiledModule, b []byte) (head [5]uint32, planes []byte, err error) {
	defer run.Close(ctx)
	mod, err := run.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		return head, nil, err
	}
	s := heifSandbox{ctx: ctx, mod: mod}
	in := s.alloc(len(b))
	if s.err != nil || !mod.Memory().Write(in, b) {
		return head, nil, &Limit{What: "image", Resource: "memory"}
	}
	at := s.alloc(5 * 4)
	if !s.call(in, len(b), true, at, 0) {
		return head, nil, s.failed(&Damaged{"heic image", "its header cannot be read"})
	}
	head = s.header(at)
	l, err := layoutOf(head)
	if err != nil {
		return head, nil, err
	}
	out := s.alloc(l.size + heifMargin)
	pattern := bytes.Repeat([]byte{heifSentinel}, heifLast+heifMargin)
	if s.err != nil || !mod.Memory().Write(out+uint32(l.size-heifLast), pattern) {
		return head, nil, &Limit{What: "image", Resource: "memory"}
	}
	if !s.call(in, len(b), false, at, out) {
		return head, nil, heifRefused // after a trap the reason is gone with the sandbox
	}
	seen, ok := mod.Memory().Read(out, uint32(l.size+heifMargin))
	if !ok {
		return head, nil, heifRefused
	}
	// The strides are known by libheif's rule, not said by it: had it written less or more, the picture would be a wrong one.
	if !bytes.Equal(seen[l.size:], pattern[heifLast:]) || bytes.HasSuffix(seen[:l.size], pattern[:heifLast]) {
		return head, nil, &Unsupported{What: "this kind of HEIC image", Why: "its pixels are laid out in an unknown way", Do: "Convert it to JPEG or PNG first."}
	}
	return head, seen[:l.size], nil
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

// failed is the limit that the last call ran into, or else the given reason.
func (s *heifSandbox) failed(why error) error {
	var limit *Limit
	if errors.As(s.err, &limit) {
		return limit
	}
	return why
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
