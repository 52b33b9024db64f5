package readers

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/tiff"
)

// imageMemory is the longest image file that AllowLarge lets in.
const imageMemory = 64 << 20

// Image is a picture that a model can look at. The bytes are the file's own when they already fit; else it was turned as
// its EXIF data says, scaled, and encoded again.
type Image struct {
	Sight `json:"-"`

	Width          int    `json:"width"`
	Height         int    `json:"height"`
	Format         string `json:"format"` // of Base64: "png", "jpeg", "gif", "webp"
	MediaType      string `json:"media_type"`
	OriginalFormat string `json:"original_format"`
	OriginalWidth  int    `json:"original_width"` // as shown upright
	OriginalHeight int    `json:"original_height"`
	WasResized     bool   `json:"was_resized"`
	// Scale times a coordinate in this image is the coordinate in the original. 1 when it was not resized.
	Scale  float64 `json:"scale"`
	Frames int     `json:"frames,omitempty"` // of an animation, of which only the first is looked at, and shown when it was encoded again; or the pages of a TIFF
	// Page is the one of a TIFF's pages that is shown. NextPages is a Pages argument for those that follow.
	Page      int    `json:"page,omitempty"`
	NextPages string `json:"next_pages,omitempty"`
	Bytes     int    `json:"bytes"` // of the encoded image
	// TokenEstimate is what looking at it costs a model; a token for 750 pixels.
	TokenEstimate int    `json:"token_estimate"`
	Note          string `json:"note,omitempty"`
	Base64        string `json:"base64"`
}

// Kind is "image".
func (*Image) Kind() string { return "image" }
func (*Image) content()     {}

// picture is one image format: how to recognise it, how to read its header, how to decode it.
type picture struct {
	name  string
	knows func(head []byte) bool
	size  func(b []byte) (image.Config, error)
	// decode returns the first frame. It may trust size to have been in bounds.
	decode func(ctx context.Context, r *Readers, b []byte) (image.Image, error)
	// passes says that models take the format as it is.
	passes bool
}

var pictures = [...]picture{
	{"png", magic("\x89PNG\r\n\x1a\n"), header(png.DecodeConfig), decoder(png.Decode), true},
	{"jpeg", magic("\xff\xd8\xff"), header(jpeg.DecodeConfig), decodeJPEG, true},
	{"gif", magic("GIF87a", "GIF89a"), header(gif.DecodeConfig), decodeGIF, true},
	{"webp", isWebP, webpSize, decodeWebP, true},
	{"bmp", isBMP, header(bmp.DecodeConfig), decoder(bmp.Decode), false},
	{"tiff", magic("II*\x00", "MM\x00*"), tiffSize, decodeTIFF, false},
	{"avif", isAVIF, isobmffSize, decodeAVIF, false},
	{"heic", isHEIC, isobmffSize, decodeHEIC, false},
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

func decoder(f func(io.Reader) (image.Image, error)) func(context.Context, *Readers, []byte) (image.Image, error) {
	return func(ctx context.Context, _ *Readers, b []byte) (image.Image, error) {
		return f(contextReader{ctx, bytes.NewReader(b)})
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

// decodeGIF puts the first frame in its place on the canvas, of which it may be a part.
func decodeGIF(ctx context.Context, _ *Readers, b []byte) (image.Image, error) {
	frame, err := gif.Decode(contextReader{ctx, bytes.NewReader(b)})
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

func pictureOf(head []byte) *picture {
	for i := range pictures {
		if pictures[i].knows(head) {
			return &pictures[i]
		}
	}
	return nil
}

func knowsImage(f *file, o *Options) bool { return pictureOf(f.head) != nil && !forced(f, o) }

func readImage(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	p := pictureOf(f.head)
	limit := o.MaxFileBytes
	if o.AllowLarge {
		limit = max(limit, imageMemory)
	}
	raw, err := f.all(ctx, limit, "image file", false)
	if err != nil {
		return nil, err
	}
	m := &Image{OriginalFormat: p.name, Scale: 1}
	m.Sum, m.Whole, m.Changed = sum(raw), true, f.grown
	if p.name == "tiff" {
		if raw, err = m.turnToPage(raw, o); err != nil {
			return nil, err
		}
	}
	c, err := p.size(raw)
	if err != nil {
		if !looksBinary(f.head, f.ended) {
			return nil, errNotMine // a text that begins like an image
		}
		return nil, p.failed(err)
	}
	if err := checkPixels(c.Width, c.Height); err != nil {
		return nil, err
	}
	free, err := r.reserve(ctx, "image", p.memory(int64(c.Width)*int64(c.Height), raw))
	if err != nil {
		return nil, err
	}
	defer free()
	ctx, cancel := context.WithTimeout(ctx, r.config.Deadline)
	defer cancel()
	turn := 1
	switch p.name {
	case "jpeg", "tiff", "png", "webp":
		turn = orientation(p.name, raw)
	}
	m.OriginalWidth, m.OriginalHeight = c.Width, c.Height
	if turn >= 5 {
		m.OriginalWidth, m.OriginalHeight = c.Height, c.Width
	}
	if n := frames(p.name, raw); n > 0 {
		m.Frames, m.Note = n, fmt.Sprintf("An animation of %d frames; expect to see only the first.", n)
	}
	if cutShort(p.name, raw) {
		m.Note = strings.TrimSpace(m.Note + " The file is cut off: it ends within a frame.")
	}
	// Decoded even when the bytes are passed on: what cannot be decoded must not reach a model, where one bad image spoils a
	// whole conversation.
	img, err := p.tryDecode(ctx, r, raw)
	if err != nil {
		return nil, err
	}
	inks, ink := img.(*image.CMYK)
	if ink { // who looks at it may know colours of light only, or may take Adobe's inverted inks for plain ones
		rgb := image.NewRGBA(inks.Rect)
		draw.Draw(rgb, rgb.Rect, inks, inks.Rect.Min, draw.Src)
		img = rgb
	}
	if p.passes && !ink && turn == 1 && max(c.Width, c.Height) <= o.ImageMaxEdge && fits(len(raw), o.ImageMaxBytes) {
		m.Width, m.Height, m.Format, m.Bytes = c.Width, c.Height, p.name, len(raw)
		m.MediaType, m.Base64 = "image/"+p.name, base64.StdEncoding.EncodeToString(raw)
		m.TokenEstimate = imageTokens(m.Width, m.Height)
		return m, nil
	}
	if b := img.Bounds(); turn == 1 && (b.Dx() != c.Width || b.Dy() != c.Height) {
		m.OriginalWidth, m.OriginalHeight = b.Dx(), b.Dy()
	}
	if err := m.fit(ctx, img, turn, o.ImageMaxEdge, o.ImageMaxBytes); err != nil {
		return nil, err
	}
	m.TokenEstimate = imageTokens(m.Width, m.Height)
	return m, nil
}

// imageTokens estimates what an image costs a model: a token for 750 pixels, and not more than 1600, to which larger images are scaled down
// before the model sees them. Both figures are from the vision page of Anthropic's documentation.
func imageTokens(width, height int) int { return min((width*height+749)/750, 1600) }

func checkPixels(w, h int) error {
	if w <= 0 || h <= 0 {
		return &Damaged{What: "image", Why: fmt.Sprintf("its header says %d × %d pixels", w, h)}
	}
	if n := int64(w) * int64(h); n > MaxPixels || w > 1<<20 || h > 1<<20 {
		return &Limit{What: "image", Resource: "pixels", Is: n, Max: MaxPixels}
	}
	return nil
}

// tryDecode turns a decoder's panic into an error: none is known, but decoders read what strangers wrote.
func (p *picture) tryDecode(ctx context.Context, r *Readers, raw []byte) (img image.Image, err error) {
	defer func() {
		if v := recover(); v != nil {
			img, err = nil, &Damaged{What: p.name + " image", Why: fmt.Sprintf("the decoder gave up (%v)", v)}
		}
	}()
	img, err = p.decode(ctx, r, raw)
	var ours Hinter
	switch {
	case err == nil:
		b := img.Bounds()
		if err := checkPixels(b.Dx(), b.Dy()); err != nil {
			return nil, err
		}
		return img, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &Limit{What: "image", Resource: "time"}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &ours):
		return nil, err
	}
	return nil, p.failed(err)
}

// failed tells a file that a decoder does not know from one that is broken.
func (p *picture) failed(err error) error {
	var j jpeg.UnsupportedError
	var n png.UnsupportedError
	var t tiff.UnsupportedError
	if errors.As(err, &j) || errors.As(err, &n) || errors.As(err, &t) || errors.Is(err, bmp.ErrUnsupported) {
		return &Unsupported{What: "this kind of " + p.name + " image", Why: err.Error(), Do: "Convert it to JPEG or PNG first."}
	}
	return &Damaged{What: p.name + " image", Why: err.Error()}
}
