package image

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
)

// isICO asks for a directory of pictures whose first lies behind it.
func isICO(h []byte) bool {
	if len(h) < 22 || string(h[:4]) != "\x00\x00\x01\x00" || h[9] != 0 {
		return false
	}
	n := int(binary.LittleEndian.Uint16(h[4:]))
	return n > 0 && n <= 256 && binary.LittleEndian.Uint32(h[18:]) >= uint32(6+16*n)
}

// icoLargest is the picture of the icon b that has the most pixels, and of these the most colours: a PNG, or a BMP without its first header and of twice the height.
func icoLargest(b []byte) (picture []byte, err error) {
	le, best := binary.LittleEndian, -1
	for i := 0; i < int(le.Uint16(b[4:])) && 22+16*i <= len(b); i++ {
		e := b[6+16*i:]
		from, size := int64(le.Uint32(e[12:])), int64(le.Uint32(e[8:]))
		if n := (int(e[0]-1)+1)*(int(e[1]-1)+1)<<8 | int(e[6]); n > best && from+size <= int64(len(b)) && size > 40 {
			best, picture = n, b[from:from+size]
		}
	}
	if picture == nil {
		return nil, errors.New("none of its pictures is whole")
	}
	return picture, nil
}

// icoBMP makes a whole BMP of a picture of an icon. mask is where its bits of transparency begin.
func icoBMP(p []byte) (file []byte, c image.Config, mask int, err error) {
	le := binary.LittleEndian
	w, h, bits, colours := int(int32(le.Uint32(p[4:]))), int(int32(le.Uint32(p[8:])))/2, int(le.Uint16(p[14:])), int(le.Uint32(p[32:]))
	if le.Uint32(p) != 40 || w <= 0 || h <= 0 || w > 1024 || h > 1024 || colours > 256 || bits > 32 {
		return nil, c, 0, bmp.ErrUnsupported
	}
	if bits > 8 {
		colours = 0
	} else if colours == 0 {
		colours = 1 << bits
	}
	at := 40 + 4*colours
	file = append([]byte("BM"), make([]byte, 12)...)
	le.PutUint32(file[10:], uint32(14+at))
	file = append(file, p...)
	le.PutUint32(file[14+8:], uint32(h))
	return file, image.Config{Width: w, Height: h}, at + (w*bits+31)/32*4*h, nil
}

func sizeICO(r io.Reader) (c image.Config, err error) {
	b, err := io.ReadAll(r)
	if err == nil {
		b, err = icoLargest(b)
	}
	if err == nil && isPNG(b) {
		return png.DecodeConfig(bytes.NewReader(b))
	}
	if err == nil {
		_, c, _, err = icoBMP(b)
	}
	return c, err
}

// decodeICO takes what is transparent from the fourth byte of a pixel, or where these are all zero from the mask.
func decodeICO(ctx context.Context, b []byte) (image.Image, error) {
	p, err := icoLargest(b)
	if err != nil {
		return nil, err
	}
	if isPNG(p) {
		return png.Decode(reader{ctx, bytes.NewReader(p)})
	}
	file, c, mask, err := icoBMP(p)
	if err != nil {
		return nil, err
	}
	img, err := bmp.Decode(reader{ctx, bytes.NewReader(file)})
	if err != nil {
		return nil, err
	}
	out := image.NewNRGBA(img.Bounds())
	draw.Draw(out, out.Rect, img, image.Point{}, draw.Src)
	deep := binary.LittleEndian.Uint16(p[14:]) == 32
	if deep {
		any := byte(0)
		for i := range c.Width * c.Height {
			any |= p[40+4*i+3]
		}
		deep = any != 0
	}
	row := (c.Width + 31) / 32 * 4
	for y := range c.Height {
		for x := range c.Width {
			a, up := byte(255), c.Height-1-y // rows go from below
			if at := mask + up*row + x/8; deep {
				a = p[40+4*(up*c.Width+x)+3]
			} else if at < len(p) && p[at]>>(7-x%8)&1 == 1 {
				a = 0
			}
			out.Pix[out.PixOffset(x, y)+3] = a
		}
	}
	return out, nil
}
