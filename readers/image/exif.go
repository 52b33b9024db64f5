package image

import (
	"bytes"
	"encoding/binary"
)

// orientation reads the EXIF orientation, 1 to 8; 1 when there is none or it cannot be read.
func orientation(format string, b []byte) int {
	switch format {
	case "tiff":
		return tiffOrientation(b)
	case "jpeg":
		return tiffOrientation(jpegEXIF(b))
	case "png":
		return tiffOrientation(pngEXIF(b))
	case "webp":
		return tiffOrientation(webpChunk(b, "EXIF"))
	}
	return 1
}

// jpegEXIF finds the APP1 segment before the image data.
func jpegEXIF(b []byte) []byte {
	for i := 2; i+4 <= len(b); {
		if b[i] != 0xff {
			return nil
		}
		marker := b[i+1]
		switch {
		case marker == 0xff: // fill byte
			i++
			continue
		case marker == 0xda || marker == 0xd9:
			return nil
		case marker >= 0xd0 && marker <= 0xd8 || marker == 0x01:
			i += 2
			continue
		}
		n := int(binary.BigEndian.Uint16(b[i+2:]))
		if n < 2 || i+2+n > len(b) {
			return nil
		}
		body := b[i+4 : i+2+n]
		if marker == 0xe1 && bytes.HasPrefix(body, []byte("Exif\x00\x00")) {
			return body[6:]
		}
		i += 2 + n
	}
	return nil
}

func pngEXIF(b []byte) []byte {
	for i := 8; i+12 <= len(b); {
		n := int64(binary.BigEndian.Uint32(b[i:]))
		if n > int64(len(b)-i-12) {
			return nil
		}
		switch string(b[i+4 : i+8]) {
		case "eXIf":
			return b[i+8 : i+8+int(n)]
		case "IEND":
			return nil
		}
		i += 12 + int(n)
	}
	return nil
}

// tiffOrientation looks in the first directory.
func tiffOrientation(b []byte) int {
	b = bytes.TrimPrefix(b, []byte("Exif\x00\x00"))
	if !magic("II*\x00", "MM\x00*")(b) {
		return 1
	}
	if d := tiffDirectoryOf(b); d != nil {
		if v := d.number(tiffOrientationTag, 1); v >= 1 && v <= 8 {
			return v
		}
	}
	return 1
}
