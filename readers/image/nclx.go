package image

import (
	"bytes"
	"image"
)

// nclx is how three planes become colours: a row of the table of matrix coefficients in ITU-T
// H.273, and the range of the numbers.
type nclx struct {
	kr, kb float32
	full   bool // 0 to 255; else 16 to 235 (brightness) and 16 to 240
}

// jfif is what JPEG and image.YCbCr mean, and what HEIC means that says nothing.
var jfif = nclx{kr: 0.299, kb: 0.114, full: true}

// nclxOf reads the first "colr" box of type nclx. It reports false for a matrix that is not known.
func nclxOf(b []byte) (nclx, bool) {
	i := bytes.Index(b[:min(len(b), 1<<20)], []byte("colrnclx"))
	if i < 0 || i+15 > len(b) {
		return jfif, true
	}
	c := nclx{full: b[i+14]&0x80 != 0}
	switch matrix := int(b[i+12])<<8 | int(b[i+13]); matrix {
	case 1:
		c.kr, c.kb = 0.2126, 0.0722
	case 2, 5, 6:
		c.kr, c.kb = 0.299, 0.114
	case 9, 10:
		c.kr, c.kb = 0.2627, 0.0593
	default:
		return c, false
	}
	return c, true
}

// apply gives the image its colours.
func (c nclx) apply(m *image.YCbCr) *image.RGBA {
	yOff, yBy, cBy := float32(0), float32(1), float32(1)
	if !c.full {
		yOff, yBy, cBy = 16, 255.0/219, 255.0/224
	}
	kg := 1 - c.kr - c.kb
	out := image.NewRGBA(m.Rect)
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		p := out.Pix[out.PixOffset(m.Rect.Min.X, y):]
		for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
			l := (float32(m.Y[m.YOffset(x, y)]) - yOff) * yBy
			at := m.COffset(x, y)
			cb, cr := (float32(m.Cb[at])-128)*cBy, (float32(m.Cr[at])-128)*cBy
			r, b := l+2*(1-c.kr)*cr, l+2*(1-c.kb)*cb
			g := l - (2*(1-c.kr)*c.kr*cr+2*(1-c.kb)*c.kb*cb)/kg
			p[0], p[1], p[2], p[3] = clamp8(r), clamp8(g), clamp8(b), 0xff
			p = p[4:]
		}
	}
	return out
}

func clamp8(v float32) uint8 {
	return uint8(min(max(v+0.5, 0), 255))
}
