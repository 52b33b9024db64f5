package image

import (
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"strings"
)

// brands returns the major and compatible brands of a file of the ISO base media format.
func brands(h []byte) string {
	if len(h) < 16 || string(h[4:8]) != "ftyp" {
		return ""
	}
	n := int(min(binary.BigEndian.Uint32(h), uint32(len(h)), 256))
	if n < 16 {
		return ""
	}
	return string(h[8:12]) + string(h[16:n])
}

func isAVIF(h []byte) bool {
	b := brands(h)
	return strings.Contains(b, "avif") || strings.Contains(b, "avis")
}

func isHEIC(h []byte) bool {
	b := brands(h)
	return strings.Contains(b, "heic") || strings.Contains(b, "heix") || strings.Contains(b, "hevc") || strings.HasPrefix(b, "mif1")
}

// isobmffSize is the largest "ispe" property: meta/iprp/ipco/ispe.
func isobmffSize(b []byte) (image.Config, error) {
	c := image.Config{ColorModel: color.NRGBAModel}
	var walk func(b []byte, depth int)
	walk = func(b []byte, depth int) {
		for len(b) >= 8 {
			n, head := int64(binary.BigEndian.Uint32(b)), int64(8)
			if n == 1 && len(b) >= 16 {
				n, head = int64(binary.BigEndian.Uint64(b[8:])), 16
			}
			if n == 0 {
				n = int64(len(b))
			}
			if n < head || n > int64(len(b)) {
				return
			}
			body := b[head:n]
			switch string(b[4:8]) {
			case "meta":
				if len(body) > 4 && depth < 4 {
					walk(body[4:], depth+1)
				}
			case "iprp", "ipco":
				if depth < 4 {
					walk(body, depth+1)
				}
			case "ispe":
				if len(body) >= 12 {
					w, h := int(binary.BigEndian.Uint32(body[4:])), int(binary.BigEndian.Uint32(body[8:]))
					c.Width, c.Height = max(c.Width, w), max(c.Height, h)
				}
			}
			b = b[n:]
		}
	}
	walk(b, 0)
	if c.Width == 0 {
		return c, errors.New("no image size")
	}
	return c, nil
}
