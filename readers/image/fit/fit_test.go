package fit

import (
	"image"
	"image/color"
	"image/draw"
	"testing"
)

func near(a, b color.RGBA, by int) bool {
	d := func(x, y uint8) bool { return max(int(x)-int(y), int(y)-int(x)) <= by }
	return d(a.R, b.R) && d(a.G, b.G) && d(a.B, b.B) && d(a.A, b.A)
}

// The way over planes gives the same picture as the one over colours.
func TestShrinkPlanes(t *testing.T) {
	for _, ratio := range []image.YCbCrSubsampleRatio{image.YCbCrSubsampleRatio444, image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420, image.YCbCrSubsampleRatio440, image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410} {
		for _, size := range []image.Point{{120, 90}, {121, 91}, {67, 133}} {
			m := image.NewYCbCr(image.Rectangle{Max: size}, ratio)
			for y := range size.Y {
				for x := range size.X {
					m.Y[m.YOffset(x, y)] = uint8(x + y)
					m.Cb[m.COffset(x, y)], m.Cr[m.COffset(x, y)] = uint8(80+x/2), uint8(200-y/2)
				}
			}
			rgb := image.NewRGBA(m.Rect)
			draw.Draw(rgb, rgb.Rect, m, image.Point{}, draw.Src)
			for _, n := range []int{2, 3, 5} {
				a, b := shrink(m, n), shrink(rgb, n)
				if a.Bounds() != b.Bounds() {
					t.Fatalf("%v %v by %d: %v, want %v", ratio, size, n, a.Bounds(), b.Bounds())
				}
				for y := range a.Bounds().Dy() {
					for x := range a.Bounds().Dx() {
						// Chroma of a coarser grid moves by less than a pixel.
						p, q := a.At(x, y).(color.RGBA), b.At(x, y).(color.RGBA)
						if !near(p, q, 14) {
							t.Fatalf("%v %v by %d at %d, %d: %v, want %v", ratio, size, n, x, y, p, q)
						}
					}
				}
			}
		}
	}
}
