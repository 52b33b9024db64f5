package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"

	"golang.org/x/image/tiff"
)

// Tags of TIFF 6.0.
const tiffSubfile, tiffBits, tiffPhotometric, tiffTurn, tiffPlanar = 254, 258, 262, 274, 284

// maxTIFFPages is how many directories of a file are looked at.
const maxTIFFPages = 10_000

func tiffOrder(b []byte) binary.ByteOrder {
	if b[0] == 'M' {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// tiffDirectory returns the directory at an offset of the file b, which describes one page: the value
// of each tag that is one number. next is the offset of the next directory; 0 after the last.
func tiffDirectory(b []byte, offset uint32) (tags map[uint16]uint32, next uint32) {
	order, at := tiffOrder(b), int64(offset)
	if at+2 > int64(len(b)) {
		return nil, 0
	}
	end := at + 2 + 12*int64(order.Uint16(b[at:]))
	if end > int64(len(b)) {
		return nil, 0
	}
	tags = map[uint16]uint32{}
	for e := b[at+2 : end]; len(e) > 0; e = e[12:] {
		switch tag := order.Uint16(e); order.Uint16(e[2:]) {
		case 3:
			tags[tag] = uint32(order.Uint16(e[8:]))
		case 4:
			tags[tag] = order.Uint32(e[8:])
		}
	}
	if end+4 <= int64(len(b)) {
		next = order.Uint32(b[end:])
	}
	return tags, next
}

// tiffFirst is the first directory, which decoders read; nil where there is none.
func tiffFirst(b []byte) map[uint16]uint32 {
	if len(b) < 8 {
		return nil
	}
	tags, _ := tiffDirectory(b, tiffOrder(b).Uint32(b[4:]))
	return tags
}

// TIFFPages returns the offsets of the directories of the pages of the TIFF file b, without those of smaller
// copies and of masks.
func TIFFPages(b []byte) (pages []uint32) {
	if len(b) < 8 {
		return nil
	}
	seen := map[uint32]bool{}
	for at := tiffOrder(b).Uint32(b[4:]); at != 0 && !seen[at] && len(seen) < maxTIFFPages; {
		seen[at] = true
		tags, next := tiffDirectory(b, at)
		if tags != nil && tags[tiffSubfile]&0b101 == 0 {
			pages = append(pages, at)
		}
		at = next
	}
	return pages
}

// TIFFPage returns the TIFF file b with the page whose directory is at the offset at as its first, which decoders
// read. See [TIFFPages].
func TIFFPage(b []byte, at uint32) []byte {
	if at == tiffOrder(b).Uint32(b[4:]) {
		return b
	}
	b = bytes.Clone(b)
	tiffOrder(b).PutUint32(b[4:], at)
	return b
}

// tiffTurned is the orientation in the first directory, 1 to 8; 1 where there is none.
func tiffTurned(b []byte) int {
	if v := tiffFirst(b)[tiffTurn]; v >= 1 && v <= 8 {
		return int(v)
	}
	return 1
}

func decodeTIFF(ctx context.Context, b []byte) (image.Image, error) {
	if tags := tiffFirst(b); tags[tiffPlanar] == 2 && tags[tiffPhotometric] == 2 {
		return nil, tiff.UnsupportedError("a plane for each colour") // which the package takes for one plane, and shows stripes
	}
	return tiff.Decode(reader{ctx, bytes.NewReader(b)})
}
