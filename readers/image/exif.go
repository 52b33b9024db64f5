package image

import "bytes"

// orientation reads the EXIF orientation, 1 to 8; 1 where there is none or it cannot be read. EXIF
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
		if exif := bytes.TrimPrefix(b[length:], []byte(jpegMark)); magic("II*\x00", "MM\x00*")(exif) {
			return tiffTurned(exif)
		}
	}
}

// tiffTurned looks in the first directory.
func tiffTurned(b []byte) int {
	if v := tiffFirst(b)[tiffTurn]; v >= 1 && v <= 8 {
		return int(v)
	}
	return 1
}
