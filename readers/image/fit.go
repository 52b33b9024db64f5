package image

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"

	"golang.org/x/image/draw"
)

// fewColours is the number of colours up to which an image is taken for a drawing, which PNG keeps
// sharp and small.
const fewColours = 256

// Encoded is a picture as a model can take it.
type Encoded struct {
	Data          []byte
	Format        string // "png" or "jpeg"; of a file that was passed on, its own
	Width, Height int
}

// Fit scales img until its longer side has at most edge pixels, turns it upright from the EXIF orientation turn, and encodes it
// as PNG or JPEG in at most so many bytes of base64. Where the lowest quality is too large still, it takes fewer
// pixels; it returns nil where not even a few of them fit. Photographs and pages of PDFs both pass it.
func Fit(ctx context.Context, img image.Image, turn, edge int, bytes int64) (*Encoded, error) {
	for {
		out := upright(scale(img, edge), turn)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := out.Bounds()
		data, format, err := encode(out, bytes)
		if err != nil {
			return nil, err
		}
		if data != nil {
			return &Encoded{data, format, b.Dx(), b.Dy()}, nil
		}
		if edge = max(b.Dx(), b.Dy()) * 3 / 4; edge < 64 {
			return nil, nil
		}
		img, turn = out, 1
	}
}

// scale makes the longer side at most edge. Very large images are halved cheaply first: CatmullRom
// over all of their pixels costs seconds and hundreds of megabytes.
func scale(img image.Image, edge int) image.Image {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	if max(w, h) <= edge {
		return img
	}
	if n := max(w, h) * 4 / (5 * edge); n >= 2 {
		img = shrink(img, n) // leaves at least a quarter more than is wanted
	}
	tw, th := edge, max(1, int(math.Round(float64(h)*float64(edge)/float64(w))))
	if h > w {
		tw, th = max(1, int(math.Round(float64(w)*float64(edge)/float64(h)))), edge
	}
	r := image.Rect(0, 0, tw, th)
	var dst draw.Image = image.NewRGBA(r)
	if _, ok := img.(*image.Gray); ok {
		dst = image.NewGray(r)
	}
	draw.CatmullRom.Scale(dst, r, img, img.Bounds(), draw.Src, nil)
	return dst
}

// shrink averages squares of n × n pixels, premultiplied, so that no detail is skipped.
func shrink(img image.Image, n int) image.Image {
	b := img.Bounds()
	w, h := max(b.Dx()/n, 1), max(b.Dy()/n, 1)
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	row := image.NewRGBA(image.Rect(0, 0, b.Dx(), n))
	for y := range h {
		// draw.Draw converts a band of rows at a time with the fast paths of its type.
		draw.Draw(row, row.Bounds(), img, image.Pt(b.Min.X, b.Min.Y+y*n), draw.Src)
		for x := range w {
			var s [4]uint32
			for dy := range min(n, b.Dy()) {
				p := row.Pix[dy*row.Stride+x*n*4:]
				for dx := range min(n, b.Dx()) {
					q := p[dx*4 : dx*4+4 : dx*4+4]
					s[0] += uint32(q[0])
					s[1] += uint32(q[1])
					s[2] += uint32(q[2])
					s[3] += uint32(q[3])
				}
			}
			area := uint32(min(n, b.Dy()) * min(n, b.Dx()))
			o := dst.PixOffset(x, y)
			for i := range s {
				dst.Pix[o+i] = uint8((s[i] + area/2) / area)
			}
		}
	}
	return dst
}

// fits reports whether so many bytes are within the limit as base64. APIs of models count that, and
// refuse the whole conversation above it.
func fits(n int, limit int64) bool { return int64(base64.StdEncoding.EncodedLen(n)) <= limit }

// encode gives PNG for images with transparency or few colours when that fits, else JPEG of falling
// quality. A nil result means that nothing fits.
func encode(img image.Image, limit int64) (data []byte, format string, err error) {
	alpha, drawing := survey(img)
	var buf bytes.Buffer
	if alpha || drawing != nil {
		whole := img
		if !alpha { // a palette's colours are premultiplied, which rounds those that are nearly transparent
			whole = drawing
		}
		e := png.Encoder{CompressionLevel: png.DefaultCompression}
		if err := e.Encode(&buf, whole); err != nil {
			return nil, "", err
		}
		if fits(buf.Len(), limit) {
			return buf.Bytes(), "png", nil
		}
		if alpha {
			return nil, "", nil
		}
	}
	for _, q := range []int{85, 75, 65, 50, 35, 20} {
		buf.Reset()
		if err := jpeg.Encode(&buf, img, &jpeg.Options{Quality: q}); err != nil {
			return nil, "", err
		}
		if fits(buf.Len(), limit) {
			return buf.Bytes(), "jpeg", nil
		}
	}
	return nil, "", nil
}

// survey reports whether any pixel is transparent, and draws an image of few colours with a
// palette: a byte a pixel or less in place of three, which matters for scans.
func survey(img image.Image) (alpha bool, drawing *image.Paletted) {
	switch m := img.(type) {
	case *image.YCbCr, *image.CMYK:
		return false, nil
	case *image.Paletted:
		return !m.Opaque(), m
	}
	if o, ok := img.(interface{ Opaque() bool }); ok {
		alpha = !o.Opaque()
	}
	b := img.Bounds()
	drawing = image.NewPaletted(b, make(color.Palette, 0, fewColours))
	index := make(map[color.RGBA]uint8, fewColours)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			var c color.RGBA
			if m, ok := img.(*image.RGBA); ok {
				c = m.RGBAAt(x, y)
			} else {
				c = color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			}
			i, known := index[c]
			if !known {
				if len(drawing.Palette) == fewColours {
					return alpha, nil
				}
				i = uint8(len(drawing.Palette))
				index[c] = i
				drawing.Palette = append(drawing.Palette, c)
			}
			drawing.Pix[drawing.PixOffset(x, y)] = i
		}
	}
	return alpha, drawing
}

// upright applies one of the eight EXIF orientations.
func upright(img image.Image, turn int) image.Image {
	if turn <= 1 || turn > 8 {
		return img
	}
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	src := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(src, src.Bounds(), img, b.Min, draw.Src)
	dw, dh := w, h
	if turn >= 5 {
		dw, dh = h, w
	}
	dst := image.NewRGBA(image.Rect(0, 0, dw, dh))
	for y := range dh {
		for x := range dw {
			sx, sy := stored(x, y, w, h, turn)
			copy(dst.Pix[dst.PixOffset(x, y):][:4], src.Pix[src.PixOffset(sx, sy):][:4])
		}
	}
	return dst
}

// stored is where a pixel at x, y of the upright picture stands in one of w × h pixels that is to be turned.
func stored(x, y, w, h, turn int) (sx, sy int) {
	if turn >= 5 {
		x, y = y, x
	}
	if turn == 2 || turn == 3 || turn >= 7 {
		x = w - 1 - x
	}
	if turn == 3 || turn == 4 || turn == 6 || turn == 7 {
		y = h - 1 - y
	}
	return x, y
}

// Of a picture that was passed on without loss.
const (
	losslessBytes = 1 << 20 // more is worth a look
	alikeRatio    = 4       // a JPEG has to be so much smaller
	alikeError    = 60      // and have no larger mean square of errors in any block of its pixels: 30 dB
)

// alike gives img as a JPEG that looks the same and is much smaller than its size bytes; nil where there is none.
func alike(img image.Image, size int) []byte {
	if size < losslessBytes {
		return nil
	}
	if alpha, drawing := survey(img); alpha || drawing != nil {
		return nil
	}
	if _, ok := img.(*image.YCbCr); ok {
		return nil // a JPEG itself
	}
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, img, &jpeg.Options{Quality: 92}); err != nil || buf.Len() > size/alikeRatio {
		return nil
	}
	got, err := jpeg.Decode(bytes.NewReader(buf.Bytes()))
	if err != nil {
		return nil
	}
	b := img.Bounds()
	const side = 16
	want, is := image.NewRGBA(image.Rect(0, 0, side, side)), image.NewRGBA(image.Rect(0, 0, side, side))
	for y := 0; y < b.Dy(); y += side {
		for x := 0; x < b.Dx(); x += side {
			block := image.Rect(0, 0, min(side, b.Dx()-x), min(side, b.Dy()-y))
			draw.Draw(want, block, img, b.Min.Add(image.Pt(x, y)), draw.Src)
			draw.Draw(is, block, got, image.Pt(x, y), draw.Src)
			sum := 0
			for row := range block.Dy() {
				for i := row * want.Stride; i < row*want.Stride+4*block.Dx(); i++ {
					d := int(want.Pix[i]) - int(is.Pix[i])
					sum += d * d
				}
			}
			if sum > alikeError*3*block.Dx()*block.Dy() {
				return nil
			}
		}
	}
	return buf.Bytes()
}
