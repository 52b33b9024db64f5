// Package image decodes images and makes them fit for a model: PNG, JPEG, GIF, WebP, BMP, TIFF,
// AVIF and HEIC. What the decoders of the standard library and of golang.org/x/image do not read is
// refused: a picture in wrong colours would be worse.
//
// The files are strangers'. So the header is read first, and what it asks for is bounded
// ([MaxPixels], [Picture.Memory]) before a pixel is decoded. Most decoders are Go and run here,
// where a panic costs the image alone. Those of AVIF and HEIC are C compiled to WebAssembly: each
// file has a worker process of its own (worker.go), which the system bounds in memory and time, and
// in it a sandbox (sandbox.go). Whatever goes wrong is an error of package unreadable, or the
// context's.
//
// The package opens no file but compiled code, through package wasm, and starts no program but the
// worker that it was given.
package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"moltisfs/readers/image/fit"
	"moltisfs/readers/unreadable"
	"moltisfs/readers/wasm"
)

// MaxPixels is how many pixels an image may have.
const MaxPixels = 50_000_000

// Decoders is what decoding needs from its host.
type Decoders struct {
	Worker   []string      // the command line of a program that calls [RunWorker]; empty: no AVIF and no HEIC
	Deadline time.Duration // of one image
	Cache    *wasm.Cache   // of compiled decoders
}

// Format is one image format: how to recognise it, how to read its header, how to decode it.
type Format struct {
	Name  string
	knows func(head []byte) bool
	size  func(b []byte) (image.Config, error)
	// decode returns the first frame. It may trust size to have been in bounds. A format that has
	// neither of the two is decoded in a worker.
	decode func(ctx context.Context, b []byte) (image.Image, error)
	// passes says that models take the format as it is.
	passes bool
	// memory is how many bytes a pixel takes at most while an image is decoded and fitted: in a PNG
	// of 16 bits and interlaced, a progressive JPEG of four inks, a TIFF of 16 bits.
	memory int64
}

var formats = [...]Format{
	{"png", magic("\x89PNG\r\n\x1a\n"), header(png.DecodeConfig), decoder(png.Decode), true, 12},
	{"jpeg", magic("\xff\xd8\xff"), header(jpeg.DecodeConfig), decoder(jpeg.Decode), true, 24},
	{"gif", magic("GIF87a", "GIF89a"), header(gif.DecodeConfig), decodeGIF, true, 6},
	{"webp", isWebP, header(webp.DecodeConfig), decodeWebP, true, 16},
	{"bmp", isBMP, header(bmp.DecodeConfig), decoder(bmp.Decode), false, 8},
	{"tiff", magic("II*\x00", "MM\x00*"), header(tiff.DecodeConfig), decodeTIFF, false, 16},
	{"avif", branded("avif", "avis"), nil, nil, false, 0},
	{"heic", branded("heic", "heix", "hevc", "mif1"), nil, nil, false, 0},
}

func magic(prefixes ...string) func([]byte) bool {
	return func(head []byte) bool {
		for _, p := range prefixes {
			if bytes.HasPrefix(head, []byte(p)) {
				return true
			}
		}
		return false
	}
}

func header(f func(io.Reader) (image.Config, error)) func([]byte) (image.Config, error) {
	return func(b []byte) (image.Config, error) { return f(bytes.NewReader(b)) }
}

func decoder(f func(io.Reader) (image.Image, error)) func(context.Context, []byte) (image.Image, error) {
	return func(ctx context.Context, b []byte) (image.Image, error) {
		return f(reader{ctx, bytes.NewReader(b)})
	}
}

// branded asks for one of the brands of a file of the ISO base media format. The first is its own,
// those that follow are kinds that it can be read as.
func branded(names ...string) func([]byte) bool {
	return func(h []byte) bool {
		if len(h) < 16 || string(h[4:8]) != "ftyp" {
			return false
		}
		n := int(min(binary.BigEndian.Uint32(h), uint32(len(h)), 256))
		if n < 16 {
			return false
		}
		all := string(h[8:12]) + string(h[16:n])
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.Contains(all, name) && (name != "mif1" || strings.HasPrefix(all, name))
		})
	}
}

// isBMP asks for a known header size after the two letters, which begin many texts.
func isBMP(h []byte) bool {
	if len(h) < 26 || h[0] != 'B' || h[1] != 'M' || h[15] != 0 || h[16] != 0 || h[17] != 0 {
		return false
	}
	switch h[14] {
	case 12, 40, 52, 56, 64, 108, 124:
		return true
	}
	return false
}

// FormatOf tells by its first bytes what an image is; nil when it is none.
func FormatOf(head []byte) *Format {
	for i := range formats {
		if formats[i].knows(head) {
			return &formats[i]
		}
	}
	return nil
}

// Picture is an image file whose header has been read.
type Picture struct {
	Frames   int  // of an animation; 0 when it is none
	CutShort bool // the file ends within a frame

	format *Format
	raw    []byte
	header image.Config
}

// Open reads the header.
func (f *Format) Open(raw []byte) (*Picture, error) {
	if f.size == nil {
		return &Picture{format: f, raw: raw}, nil
	}
	c, err := f.size(raw)
	if err != nil {
		return nil, f.failed(err)
	}
	return &Picture{frames(f.Name, raw), cutShort(f.Name, raw), f, raw, c}, nil
}

// Memory is what [Picture.Show] takes at most. It refuses a picture of too many pixels.
func (p *Picture) Memory() (int64, error) {
	if p.format.decode == nil {
		return workerMemory, nil
	}
	if err := checkPixels(p.header.Width, p.header.Height); err != nil {
		return 0, err
	}
	per := p.format.memory
	if p.format.Name == "jpeg" && !bytes.Contains(p.raw, []byte("\xff\xc2")) { // not progressive
		per = 8
	}
	return per*int64(p.header.Width)*int64(p.header.Height) + int64(len(p.raw)), nil
}

// Shown is a picture as a model gets it.
type Shown struct {
	fit.Image
	OriginalWidth, OriginalHeight int // upright
}

// Show decodes the picture and makes it fit. Its bytes stay as they are when models take its format
// and it fits already.
func (p *Picture) Show(ctx context.Context, d *Decoders, edge int, most int64) (*Shown, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Deadline)
	defer cancel()
	if p.format.decode == nil {
		return d.inWorker(ctx, p.format.Name, p.raw, edge, most)
	}
	// Decoded even when the bytes are passed on: what cannot be decoded must not reach a model, where
	// one bad image spoils a whole conversation.
	img, err := p.format.tryDecode(ctx, p.raw)
	if err != nil {
		return nil, err
	}
	inks, ink := img.(*image.CMYK)
	if ink { // who looks at it may know colours of light only, or may take Adobe's inverted inks for plain ones
		rgb := image.NewRGBA(inks.Rect)
		draw.Draw(rgb, rgb.Rect, inks, inks.Rect.Min, draw.Src)
		img = rgb
	}
	w, h, turn := p.header.Width, p.header.Height, orientation(p.format.Name, p.raw)
	if p.format.passes && !ink && turn == 1 && max(w, h) <= edge && fit.Fits(len(p.raw), most) {
		return &Shown{fit.Image{Data: p.raw, Format: p.format.Name, Width: w, Height: h}, w, h}, nil
	}
	return fitted(ctx, img, turn, edge, most)
}

// fitted scales and encodes what was decoded.
func fitted(ctx context.Context, img image.Image, turn, edge int, most int64) (*Shown, error) {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	if turn >= 5 {
		w, h = h, w
	}
	out, err := fit.Within(ctx, img, turn, edge, most)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, &unreadable.Limit{What: "image", Resource: "time"}
	}
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, &unreadable.Limit{What: "image", Resource: "bytes of base64", Max: most}
	}
	return &Shown{*out, w, h}, nil
}

// reader ends with the context's error once it is over.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (c reader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func checkPixels(w, h int) error {
	if w <= 0 || h <= 0 {
		return &unreadable.Damaged{What: "image", Why: fmt.Sprintf("its header says %d × %d pixels", w, h)}
	}
	if n := int64(w) * int64(h); n > MaxPixels || w > 1<<20 || h > 1<<20 {
		return &unreadable.Limit{What: "image", Resource: "pixels", Is: n, Max: MaxPixels}
	}
	return nil
}

// tryDecode turns a decoder's panic into an error: none is known, but decoders read what strangers
// wrote.
func (f *Format) tryDecode(ctx context.Context, raw []byte) (img image.Image, err error) {
	defer func() {
		if v := recover(); v != nil {
			img, err = nil, &unreadable.Damaged{What: f.Name + " image", Why: fmt.Sprintf("the decoder gave up (%v)", v)}
		}
	}()
	img, err = f.decode(ctx, raw)
	var ours unreadable.Hinter
	switch {
	case err == nil:
		b := img.Bounds()
		return img, checkPixels(b.Dx(), b.Dy())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &unreadable.Limit{What: "image", Resource: "time"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &ours):
		return nil, err
	}
	return nil, f.failed(err)
}

// failed tells a file that a decoder does not know from one that is broken.
func (f *Format) failed(err error) error {
	var j jpeg.UnsupportedError
	var n png.UnsupportedError
	var t tiff.UnsupportedError
	var form tiff.FormatError
	more := errors.As(err, &form) && strings.Contains(string(form), "samples") // whole, with more than three colours
	if errors.As(err, &j) || errors.As(err, &n) || errors.As(err, &t) || more || errors.Is(err, bmp.ErrUnsupported) {
		return convertIt("this kind of "+f.Name+" image", err.Error())
	}
	return &unreadable.Damaged{What: f.Name + " image", Why: err.Error()}
}

func convertIt(what, why string) error {
	return &unreadable.Unsupported{What: what, Why: why, Do: "Convert it to JPEG or PNG first."}
}
