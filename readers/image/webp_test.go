package image

import (
	"image/color"
	"os"
	"path/filepath"
	"testing"
)

// Still WebP of every kind has its colours at its full size. The pictures are those of the corpus: a
// colour in each quarter.
func TestWebP(t *testing.T) {
	drawn := [4]color.RGBA{{0xe0, 0x10, 0x10, 0xff}, {0x10, 0xc0, 0x10, 0xff}, {0x10, 0x10, 0xe0, 0xff}, {0xe0, 0xe0, 0x10, 0xff}}
	half := drawn
	for i, c := range half {
		half[i] = color.RGBA{c.R / 2, c.G / 2, c.B / 2, 0x80} // premultiplied
	}
	for _, c := range []struct {
		file string
		want [4]color.RGBA
		by   int
	}{
		{"lossy", drawn, 12}, {"lossless", drawn, 1}, {"alpha", half, 14},
	} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "testdata", "readers", "image", c.file+".webp"))
		if err != nil {
			t.Fatal(err)
		}
		img, err := FormatOf(raw).tryDecode(t.Context(), raw)
		if err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		for i, want := range c.want {
			b := img.Bounds()
			at := img.At(b.Dx()*(1+2*(i%2))/4, b.Dy()*(1+2*(i/2))/4)
			if got := color.RGBAModel.Convert(at).(color.RGBA); !near(got, want, c.by) {
				t.Errorf("%s: quarter %d is %v, want %v", c.file, i, got, want)
			}
		}
	}
}
