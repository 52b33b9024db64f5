package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"slices"

	"golang.org/x/image/draw"
	"golang.org/x/image/tiff"
)

// Tags of TIFF 6.0, and JPEGTables of Adobe's technical note 2.
const (
	tiffWidth, tiffHeight, tiffBits, tiffCompression, tiffPhotometric = 256, 257, 258, 259, 262
	tiffStripOffsets, tiffStripRows, tiffStripBytes, tiffPlanar       = 273, 278, 279, 284
	tiffTileWidth, tiffTileHeight, tiffTileOffsets, tiffTileBytes     = 322, 323, 324, 325
	tiffExtraSamples, tiffJPEGTables, tiffSubfile, tiffOrientationTag = 338, 347, 254, 274
)

// maxTIFFPages is how many directories of a file are looked at.
const maxTIFFPages = 10_000

// tiffDirectory is a directory of a file, which describes one page: what golang.org/x/image/tiff
// does not read is told apart and prepared by it.
type tiffDirectory struct {
	b       []byte
	order   tiffByteOrder
	entries [][]byte // of 12 bytes
}

// tiffDirectoryOf is the first directory.
func tiffDirectoryOf(b []byte) *tiffDirectory {
	if len(b) < 8 {
		return nil
	}
	d, _ := tiffDirectoryAt(b, tiffOrder(b).Uint32(b[4:]))
	return d
}

type tiffByteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func tiffOrder(b []byte) tiffByteOrder {
	if b[0] == 'M' {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// tiffDirectoryAt also says where the next one is; 0 after the last.
func tiffDirectoryAt(b []byte, offset uint32) (d *tiffDirectory, next uint32) {
	d, at := &tiffDirectory{b: b, order: tiffOrder(b)}, int64(offset)
	if at+2 > int64(len(b)) {
		return nil, 0
	}
	n := int64(d.order.Uint16(b[at:]))
	if at+2+n*12 > int64(len(b)) {
		return nil, 0
	}
	for e := range n {
		d.entries = append(d.entries, b[at+2+e*12:at+14+e*12])
	}
	if end := at + 2 + n*12; end+4 <= int64(len(b)) {
		next = d.order.Uint32(b[end:])
	}
	return d, next
}

// TIFFPages is where the directories of the pages are, without those of smaller copies and of
// masks.
func TIFFPages(b []byte) (pages []uint32) {
	if len(b) < 8 {
		return nil
	}
	seen := map[uint32]bool{}
	for at := tiffOrder(b).Uint32(b[4:]); at != 0 && !seen[at] && len(seen) < maxTIFFPages; {
		seen[at] = true
		d, next := tiffDirectoryAt(b, at)
		if d != nil && d.number(tiffSubfile, 0)&0b101 == 0 {
			pages = append(pages, at)
		}
		at = next
	}
	return pages
}

// TIFFPage is the file with the page at so much as its first, which is the one that decoders read.
// See [TIFFPages].
func TIFFPage(b []byte, at uint32) []byte {
	if at == tiffOrder(b).Uint32(b[4:]) {
		return b
	}
	b = bytes.Clone(b)
	tiffOrder(b).PutUint32(b[4:], at)
	return b
}

// raw is a tag's value as bytes, with the size of one number.
func (d *tiffDirectory) raw(tag uint16) (value []byte, size int) {
	for _, e := range d.entries {
		if d.order.Uint16(e) != tag {
			continue
		}
		switch d.order.Uint16(e[2:]) {
		case 1, 7:
			size = 1
		case 3:
			size = 2
		case 4:
			size = 4
		default:
			return nil, 0
		}
		n := int64(d.order.Uint32(e[4:])) * int64(size)
		if n <= 4 {
			return e[8 : 8+n], size
		}
		at := int64(d.order.Uint32(e[8:]))
		if at+n > int64(len(d.b)) {
			return nil, 0
		}
		return d.b[at : at+n], size
	}
	return nil, 0
}

func (d *tiffDirectory) numbers(tag uint16) []int {
	value, size := d.raw(tag)
	var out []int
	for ; size > 0 && len(value) >= size; value = value[size:] {
		switch size {
		case 1:
			out = append(out, int(value[0]))
		case 2:
			out = append(out, int(d.order.Uint16(value)))
		case 4:
			out = append(out, int(d.order.Uint32(value)))
		}
	}
	return out
}

// number is the first number of a tag, or the default.
func (d *tiffDirectory) number(tag uint16, without int) int {
	if n := d.numbers(tag); len(n) > 0 {
		return n[0]
	}
	return without
}

func tiffSize(b []byte) (image.Config, error) {
	c, err := tiff.DecodeConfig(bytes.NewReader(b))
	if d := tiffDirectoryOf(b); err != nil && d != nil && d.ours() {
		return image.Config{Width: d.number(tiffWidth, 0), Height: d.number(tiffHeight, 0), ColorModel: color.RGBAModel}, nil
	}
	return c, err
}

// ours says that the package does not know the file's colours or compression, and we do.
func (d *tiffDirectory) ours() bool {
	return d.number(tiffCompression, 1) == 7 || d.number(tiffPhotometric, -1) == 5
}

func decodeTIFF(ctx context.Context, _ *Decoders, b []byte) (image.Image, error) {
	d := tiffDirectoryOf(b)
	if d != nil && d.number(tiffPlanar, 1) == 2 && len(d.numbers(tiffBits)) > 1 {
		return nil, tiff.UnsupportedError("a plane for each colour") // which the package takes for one plane, and shows stripes
	}
	switch {
	case d == nil || !d.ours():
		return tiff.Decode(reader{ctx, bytes.NewReader(b)})
	case d.number(tiffCompression, 1) == 7:
		return d.jpegs(ctx)
	}
	return d.cmyk(ctx)
}

// cmyk has the package read four inks as red, green, blue and alpha, which are four numbers a pixel
// too, by a directory that says so.
func (d *tiffDirectory) cmyk(ctx context.Context) (image.Image, error) {
	if bits := d.numbers(tiffBits); !slices.Equal(bits, []int{8, 8, 8, 8}) {
		return nil, tiff.UnsupportedError("inks other than four of 8 bits")
	}
	entry := func(tag, value uint16) []byte {
		e := d.order.AppendUint16(nil, tag)
		e = d.order.AppendUint16(e, 3)
		e = d.order.AppendUint32(e, 1)
		return append(d.order.AppendUint16(e, value), 0, 0)
	}
	var entries [][]byte
	for _, e := range d.entries {
		if tag := d.order.Uint16(e); tag != tiffPhotometric && tag != tiffExtraSamples {
			entries = append(entries, e)
		}
	}
	entries = append(entries, entry(tiffPhotometric, 2), entry(tiffExtraSamples, 2))
	slices.SortStableFunc(entries, func(a, b []byte) int { return int(d.order.Uint16(a)) - int(d.order.Uint16(b)) })
	file := append(bytes.Clone(d.b), make([]byte, len(d.b)%2)...) // a directory begins on an even byte
	d.order.PutUint32(file[4:], uint32(len(file)))
	file = d.order.AppendUint16(file, uint16(len(entries)))
	file = append(file, bytes.Join(entries, nil)...)
	file = append(file, 0, 0, 0, 0)
	img, err := tiff.Decode(reader{ctx, bytes.NewReader(file)})
	if err != nil {
		return nil, err
	}
	m, ok := img.(*image.NRGBA)
	if !ok {
		return nil, tiff.UnsupportedError("color model")
	}
	return &image.CMYK{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}, nil
}

// jpegs decodes strips or tiles that are JPEG streams with their tables kept apart.
func (d *tiffDirectory) jpegs(ctx context.Context) (image.Image, error) {
	transform := byte(1)
	switch d.number(tiffPhotometric, -1) {
	case 1, 6: // grey, YCbCr
	case 2:
		transform = 0
	default:
		return nil, tiff.UnsupportedError("color model of a JPEG")
	}
	w, h := d.number(tiffWidth, 0), d.number(tiffHeight, 0)
	bw, bh := d.number(tiffTileWidth, w), d.number(tiffTileHeight, min(d.number(tiffStripRows, h), h))
	offsets, sizes := d.numbers(tiffTileOffsets), d.numbers(tiffTileBytes)
	if len(offsets) == 0 {
		offsets, sizes = d.numbers(tiffStripOffsets), d.numbers(tiffStripBytes)
	}
	if bw < 8 || bh < 1 || bw > w+1024 || bh > h+1024 {
		return nil, tiff.FormatError("its blocks have no sensible size")
	}
	across, down := (w+bw-1)/bw, (h+bh-1)/bh
	if len(offsets) != across*down || len(sizes) != len(offsets) {
		return nil, tiff.FormatError("its blocks are not as many as its size needs")
	}
	tables, _ := d.raw(tiffJPEGTables)
	if len(tables) < 4 {
		tables = []byte{0xff, 0xd8, 0xff, 0xd9}
	}
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	for i, at := range offsets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at < 0 || sizes[i] < 4 || at+sizes[i] > len(d.b) {
			return nil, tiff.FormatError("a block lies outside of the file")
		}
		stream := append([]byte{0xff, 0xd8}, adobeMarker(transform)...)
		stream = append(stream, tables[2:len(tables)-2]...)
		stream = append(stream, d.b[at+2:at+sizes[i]]...)
		c, err := jpeg.DecodeConfig(bytes.NewReader(stream))
		if err == nil && (c.Width > bw+16 || c.Height > bh+16) {
			err = tiff.FormatError("a block is larger than it may be")
		}
		if err != nil {
			return nil, err
		}
		block, err := jpeg.Decode(bytes.NewReader(stream))
		if err != nil {
			return nil, err
		}
		place := image.Rect(0, 0, bw, bh).Add(image.Pt(i%across*bw, i/across*bh)).Intersect(dst.Rect)
		draw.Draw(dst, place, block, block.Bounds().Min, draw.Src)
	}
	return dst, nil
}

// adobeMarker is the APP14 segment that tells a decoder whether the first three components are
// YCbCr (1) or not (0).
func adobeMarker(transform byte) []byte {
	return []byte{0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, transform}
}

// decodeJPEG reads four components without Adobe's marker too. The package refuses them, since
// Adobe's files hold inks inverted and others do not: without the marker they are taken as they
// are, like libjpeg does.
func decodeJPEG(ctx context.Context, _ *Decoders, b []byte) (image.Image, error) {
	img, err := jpeg.Decode(reader{ctx, bytes.NewReader(b)})
	var un jpeg.UnsupportedError
	if !errors.As(err, &un) {
		return img, err
	}
	if c, e := jpeg.DecodeConfig(bytes.NewReader(b)); e != nil || c.ColorModel != color.CMYKModel {
		return nil, err
	}
	marked := slices.Concat(b[:2], adobeMarker(0), b[2:])
	if img, e := jpeg.Decode(reader{ctx, bytes.NewReader(marked)}); e == nil {
		if m, ok := img.(*image.CMYK); ok {
			for i := range m.Pix {
				m.Pix[i] = 255 - m.Pix[i]
			}
			return m, nil
		}
	}
	return nil, err
}
