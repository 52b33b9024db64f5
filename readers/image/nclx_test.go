package image

import (
	"image"
	"image/color"
	"testing"
)

func near(a, b color.RGBA, by int) bool {
	d := func(x, y uint8) bool { return max(int(x)-int(y), int(y)-int(x)) <= by }
	return d(a.R, b.R) && d(a.G, b.G) && d(a.B, b.B) && d(a.A, b.A)
}

// The values are those of the colour bars of ITU-R BT.601, BT.709 and BT.2020 at full saturation,
// as their standards list them.
func TestNCLX(t *testing.T) {
	box := func(matrix byte, full byte) []byte {
		return append([]byte("....colrnclx\x00\x01\x00\x01\x00"), matrix, full)
	}
	for name, c := range map[string]struct {
		box       []byte
		y, cb, cr uint8
		want      color.RGBA
	}{
		"601 limited red":     {box(6, 0), 81, 90, 240, color.RGBA{255, 0, 0, 255}},
		"709 limited red":     {box(1, 0), 63, 102, 240, color.RGBA{255, 0, 0, 255}},
		"709 limited green":   {box(1, 0), 173, 42, 26, color.RGBA{0, 255, 0, 255}},
		"709 full blue":       {box(1, 0x80), 18, 255, 116, color.RGBA{0, 0, 255, 255}},
		"2020 limited blue":   {box(9, 0), 29, 240, 119, color.RGBA{0, 0, 255, 255}},
		"601 full, unchanged": {box(6, 0x80), 76, 85, 255, color.RGBA{254, 0, 0, 255}},
		"nothing said":        {[]byte("nothing"), 76, 85, 255, color.RGBA{254, 0, 0, 255}},
	} {
		colour, ok := nclxOf(c.box)
		if !ok {
			t.Fatalf("%s is not known", name)
		}
		m := image.NewYCbCr(image.Rect(0, 0, 2, 2), image.YCbCrSubsampleRatio420)
		for i := range m.Y {
			m.Y[i] = c.y
		}
		m.Cb[0], m.Cr[0] = c.cb, c.cr
		if got := color.RGBAModel.Convert(colour.apply(m).At(1, 1)).(color.RGBA); !near(got, c.want, 3) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for _, matrix := range []byte{0, 3, 4, 7, 8, 11, 14} {
		if _, ok := nclxOf(box(matrix, 0)); ok {
			t.Errorf("matrix %d is taken for a known one", matrix)
		}
	}
}
