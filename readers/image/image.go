// Package image decodes images and makes them fit for a model: PNG, JPEG, GIF, WebP, BMP, TIFF,
// ICO, AVIF and HEIC. A form of these that the decoders of the standard library and of golang.org/x/image
// do not read is refused: a picture in wrong colours would be worse.
//
// The files are strangers'. So the header is read first, and its pixels are bounded ([MaxPixels],
// [Picture.Memory]) before one is decoded. Most decoders are Go and run here, where a panic costs the
// image alone. Those of AVIF and HEIC are C compiled to WebAssembly: each file has a worker process of
// its own, which the system bounds in memory and time, and in it a sandbox (worker.go). Every error is
// one of package unreadable, or the context's.
//
// The package opens no file but compiled code, through package wasm, and starts no program but the
// worker that it was given. Its functions are safe for concurrent use.
package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
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

	"moltisfs/readers/unreadable"
)

// MaxPixels is how many pixels an image may have. One that takes a byte a pixel or less in memory, such as a scan in black and white, may have four times as many; one
// that is asked for in spite of its size, as many as fit into MaxMemory.
const (
	MaxPixels = 50_000_000
	MaxMemory = 1 << 30
)

// Decoders is the host's part in decoding.
type Decoders struct {
	Worker   []string      // the command line of a program that calls [RunWorker]; empty: no AVIF and no HEIC
	Deadline time.Duration // of one image
	CacheDir string        // of compiled decoders; see [wasm.Cache]
}

// Format is one image format: how to recognise it, how to read its header, how to decode it.
type Format struct {
	Name  string
	knows func(head []byte) bool
	size  func(io.Reader) (image.Config, error)
	// decode returns the first frame of b. It may trust size to have been in bounds. A format that has
	// neither of the two is decoded in a worker.
	decode func(ctx context.Context, b []byte) (image.Image, error)
	// passes says that models take the format as it is.
	passes bool
	// memory is how many bytes a pixel takes at most while an image is decoded and fitted: in a PNG
	// of 16 bits and interlaced, a progressive JPEG of four inks, a TIFF of 16 bits.
	memory int64
}

var formats = [...]Format{
	{"png", isPNG, png.DecodeConfig, decoder(png.Decode), true, 12},
	{"jpeg", begins("\xff\xd8\xff"), jpeg.DecodeConfig, decoder(jpeg.Decode), true, 24},
	{"gif", begins("GIF87a", "GIF89a"), gif.DecodeConfig, decodeGIF, true, 6},
	{"webp", func(h []byte) bool {
		return len(h) >= 16 && string(h[:4]) == "RIFF" && string(h[8:12]) == "WEBP"
	}, webp.DecodeConfig, decodeWebP, true, 16},
	{"bmp", isBMP, bmp.DecodeConfig, decoder(bmp.Decode), false, 8},
	{"tiff", begins("II*\x00", "MM\x00*"), tiff.DecodeConfig, decodeTIFF, false, 16},
	{"ico", isICO, sizeICO, decodeICO, false, 24},
	{"avif", branded("avif", "avis"), nil, nil, false, 0},
	{"heic", branded("heic", "heix", "hevc", "mif1"), nil, nil, false, 0},
}

var isPNG = begins("\x89PNG\r\n\x1a\n")

func begins(prefixes ...string) func([]byte) bool {
	return func(head []byte) bool {
		for _, p := range prefixes {
			if bytes.HasPrefix(head, []byte(p)) {
				return true
			}
		}
		return false
	}
}

func decoder(f func(io.Reader) (image.Image, error)) func(context.Context, []byte) (image.Image, error) {
	return func(ctx context.Context, b []byte) (image.Image, error) {
		return f(reader{ctx, bytes.NewReader(b)})
	}
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

// FormatOf returns the format of an image that begins with head; nil for any other file.
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
	turn   int // from 1 to 8, as EXIF counts
}

// Open reads the header of the file raw.
func (f *Format) Open(raw []byte) (*Picture, error) {
	p := &Picture{format: f, raw: raw, turn: 1}
	if f.size == nil {
		p.header, p.turn = boxes(raw)
		return p, nil
	}
	p.turn = orientation(f.Name, raw)
	var err error
	if p.header, err = f.size(bytes.NewReader(raw)); err != nil {
		return nil, f.failed(err)
	}
	switch f.Name {
	case "gif":
		n, _, whole := gifFrames(raw)
		p.Frames, p.CutShort = n, n > 0 && !whole
	case "png":
		if i := bytes.Index(raw[:min(len(raw), 4096)], []byte("acTL")); i > 0 && i+8 <= len(raw) {
			p.Frames = int(binary.BigEndian.Uint32(raw[i+4:]))
		}
	}
	if p.Frames == 1 {
		p.Frames = 0
	}
	return p, nil
}

// gifFrames counts the frames of the GIF b without decoding them, and says where the first begins; -1 where there is none. whole is false where b ends within one of
// its blocks.
func gifFrames(b []byte) (n, first int, whole bool) {
	if len(b) < 13 {
		return 0, -1, false
	}
	i := 13
	if b[10]&0x80 != 0 {
		i += 3 << (b[10]&7 + 1)
	}
	skip := func() {
		for i < len(b) && b[i] != 0 {
			i += int(b[i]) + 1
		}
		i++
	}
	for first = -1; ; {
		if i+10 >= len(b) {
			// A file may end without its trailer, but not within a block.
			return n, first, i < len(b) && b[i] == 0x3b || i == len(b)
		}
		switch b[i] {
		case 0x21:
			i += 2
			skip()
		case 0x2c:
			if n++; n == 1 {
				first = i
			}
			flags := b[i+9]
			i += 10
			if flags&0x80 != 0 {
				i += 3 << (flags&7 + 1)
			}
			i++ // code size
			skip()
		default:
			return n, first, b[i] == 0x3b
		}
	}
}

// Size is how many pixels the header says, as shown upright.
func (p *Picture) Size() (w, h int) {
	if p.turn >= 5 {
		return p.header.Height, p.header.Width
	}
	return p.header.Width, p.header.Height
}

// Rows is how many rows of pixels the header says, as they are stored.
func (p *Picture) Rows() int { return p.header.Height }

// parts is how many parts across and down a picture of w × h pixels has, each of which fits at full size.
func parts(w, h, edge int) (across, down int) {
	return max((w+edge-1)/edge, 1), max((h+edge-1)/edge, 1)
}

// Parts is how many parts the picture has for [Want].Part.
func (p *Picture) Parts(edge int) (across, down int) {
	w, h := p.Size()
	return parts(w, h, edge)
}

// Memory is how many bytes [Picture.Show] takes at most. It refuses a picture of too many pixels; with large only one that goes over MaxMemory.
func (p *Picture) Memory(large bool) (int64, error) {
	if p.format.decode == nil {
		return workerMemory, nil
	}
	per, most := p.format.memory, int64(MaxPixels)
	switch {
	case p.compact():
		per, most = 2, 4*MaxPixels
	case p.format.Name == "jpeg" && !bytes.Contains(p.raw, []byte("\xff\xc2")): // not progressive
		per = 8
	}
	if large {
		most = max(most, MaxMemory/per)
	}
	n := int64(p.header.Width) * int64(p.header.Height)
	err := checkPixels(p.header.Width, p.header.Height, most)
	var limit *unreadable.Limit
	if errors.As(err, &limit) && n <= MaxMemory/per {
		limit.Do = "Call again with allow_large: true, or make a smaller version of the image first."
	}
	return per*n + int64(len(p.raw)), err
}

// compact says that a pixel takes one byte while the picture is decoded.
func (p *Picture) compact() bool {
	switch _, palette := p.header.ColorModel.(color.Palette); p.format.Name {
	case "png":
		return palette || p.header.ColorModel == color.GrayModel && !bytes.Contains(p.raw, []byte("tRNS"))
	case "tiff":
		return tiffFirst(p.raw)[tiffBits] == 1
	default:
		return palette && p.format.Name == "bmp"
	}
}

func checkPixels(w, h int, most int64) error {
	if w <= 0 || h <= 0 {
		return &unreadable.Damaged{What: "image", Why: fmt.Sprintf("its header says %d × %d pixels", w, h)}
	}
	if n := int64(w) * int64(h); n > most || w > 1<<20 || h > 1<<20 {
		return &unreadable.Limit{What: "image", Resource: "pixels", Is: n, Max: most}
	}
	return nil
}

// Want is the form in which a picture is wanted: at most so many pixels on its longer side, and bytes of base64. Part is the number of the part that is wanted, row by
// row from 1; 0 is all of it.
type Want struct {
	Edge int
	Most int64
	Part int
}

// Shown is a picture as a model gets it.
type Shown struct {
	Encoded
	OriginalWidth, OriginalHeight int             // upright
	Area                          image.Rectangle // of it that is shown
	// Rows is how many rows of pixels of a damaged file, as they are stored, could be decoded at least in part; -1 of a file that is not damaged.
	Rows int
}

// Show decodes the picture, turns it upright, and makes it fit as [Fit] does. Its bytes stay as they are when models take its
// format, they fit already, and a JPEG that looks the same is not much smaller.
func (p *Picture) Show(ctx context.Context, d *Decoders, want Want) (*Shown, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Deadline)
	defer cancel()
	if p.format.decode == nil {
		return d.inWorker(ctx, p.format.Name, p.raw, want)
	}
	// Decoded even when the bytes are passed on: an image that cannot be decoded must not reach a model, where
	// it spoils a whole conversation.
	rows := -1
	img, err := p.format.tryDecode(ctx, p.raw, p.header)
	if err != nil {
		if img, rows, err = p.salvage(ctx, err); err != nil {
			return nil, err
		}
	}
	inks, ink := img.(*image.CMYK)
	if ink { // a viewer may know colours of light only, or may take Adobe's inverted inks for plain ones
		rgb := image.NewRGBA(inks.Rect)
		draw.Draw(rgb, rgb.Rect, inks, inks.Rect.Min, draw.Src)
		img = rgb
	}
	w, h := p.header.Width, p.header.Height
	if p.format.passes && !ink && rows < 0 && want.Part == 0 && p.turn == 1 && max(w, h) <= want.Edge && fits(len(p.raw), want.Most) {
		shown := &Shown{Encoded{Data: p.raw, Format: p.format.Name, Width: w, Height: h}, w, h, image.Rect(0, 0, w, h), -1}
		if data := alike(img, len(p.raw)); data != nil {
			shown.Data, shown.Format = data, "jpeg"
		}
		return shown, nil
	}
	shown, err := fitted(ctx, img, p.turn, want)
	if err == nil {
		shown.Rows = rows
	}
	return shown, err
}

// fitted makes the decoded image img, or the part of it that is wanted, fit for a model.
func fitted(ctx context.Context, img image.Image, turn int, want Want) (*Shown, error) {
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	if turn >= 5 {
		w, h = h, w
	}
	area := image.Rect(0, 0, w, h)
	if want.Part > 0 {
		across, down := parts(w, h, want.Edge)
		wide, high := (w+across-1)/across, (h+down-1)/down
		at := image.Pt((want.Part-1)%across*wide, (want.Part-1)/across*high)
		area = image.Rectangle{at, at.Add(image.Pt(wide, high))}.Intersect(area)
		sub, ok := img.(interface {
			SubImage(image.Rectangle) image.Image
		})
		if !ok || area.Empty() {
			return nil, &unreadable.Damaged{What: "image", Why: "its header says another size"}
		}
		b := img.Bounds()
		x, y := stored(area.Min.X, area.Min.Y, b.Dx(), b.Dy(), turn)
		x2, y2 := stored(area.Max.X-1, area.Max.Y-1, b.Dx(), b.Dy(), turn)
		img = sub.SubImage(image.Rect(min(x, x2), min(y, y2), max(x, x2)+1, max(y, y2)+1).Add(b.Min))
	}
	out, err := Fit(ctx, img, turn, want.Edge, want.Most)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &unreadable.Limit{What: "image", Resource: "time"}
	case err != nil:
		return nil, err
	case out == nil:
		return nil, &unreadable.Limit{What: "image", Resource: "bytes of base64", Max: want.Most}
	}
	return &Shown{*out, w, h, area, -1}, nil
}

// tryDecode decodes raw and turns a decoder's panic into an error: none is known, but decoders read what strangers wrote.
func (f *Format) tryDecode(ctx context.Context, raw []byte, header image.Config) (img image.Image, err error) {
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
		return img, checkPixels(b.Dx(), b.Dy(), max(MaxPixels, int64(header.Width)*int64(header.Height)))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &unreadable.Limit{What: "image", Resource: "time"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &ours):
		return nil, err
	}
	return nil, f.failed(err)
}

// failed tells a file in a form that the decoder does not know from one that is broken.
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
	return &unreadable.Unsupported{What: what, Why: why, Do: "Convert it to a plain JPEG or PNG first."}
}

// decodeGIF puts the first frame in its place on the canvas, of which it may be a part.
func decodeGIF(ctx context.Context, b []byte) (image.Image, error) {
	frame, err := gif.Decode(reader{ctx, bytes.NewReader(b)})
	if err != nil {
		return nil, err
	}
	c, err := gif.DecodeConfig(bytes.NewReader(b))
	if whole := image.Rect(0, 0, c.Width, c.Height); err == nil && frame.Bounds() != whole {
		canvas := image.NewRGBA(whole)
		draw.Draw(canvas, frame.Bounds(), frame, frame.Bounds().Min, draw.Src)
		return canvas, nil
	}
	return frame, err
}

// decodeWebP decodes a still WebP. Its brightness goes from 16 to 235, as in video; Go takes all YCbCr for that of JPEG,
// from 0 to 255, and would show it pale.
func decodeWebP(ctx context.Context, b []byte) (image.Image, error) {
	if len(b) > 20 && string(b[12:16]) == "VP8X" && b[20]&2 != 0 {
		return nil, &unreadable.Unsupported{What: "an animated WebP image", Why: "only still ones are read",
			Do: "Convert it to GIF, or one of its frames to PNG, first."}
	}
	return webpShown(webp.Decode(reader{ctx, bytes.NewReader(b)}))
}

// webpShown gives the decoded img the colours that are meant.
func webpShown(img image.Image, err error) (image.Image, error) {
	if err != nil {
		return nil, err
	}
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

// orientation reads the EXIF orientation, 1 to 8, of the file b; 1 where there is none or it cannot be read. EXIF
// is a TIFF file behind a mark: that of a JPEG segment, or the name of a chunk, with which PNG and
// WebP have its length and may have the mark of JPEG too.
func orientation(format string, b []byte) int {
	const jpegMark = "Exif\x00\x00"
	mark, length := jpegMark, 0
	switch format {
	case "tiff":
		return tiffTurned(b)
	case "jpeg":
	case "png":
		mark = "eXIf"
	case "webp":
		mark, length = "EXIF", 4
	default:
		return 1
	}
	for {
		i := bytes.Index(b, []byte(mark))
		if i < 0 || i+len(mark)+length > len(b) {
			return 1
		}
		b = b[i+len(mark):]
		if exif := bytes.TrimPrefix(b[length:], []byte(jpegMark)); begins("II*\x00", "MM\x00*")(exif) {
			return tiffTurned(exif)
		}
	}
}
