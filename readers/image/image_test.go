package image

import (
	"image"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestImagesCountTheirPixels: what is reserved covers what is decoded.
func TestImagesCountTheirPixels(t *testing.T) {
	memory := func(format, raw string) int64 {
		i := slices.IndexFunc(formats[:], func(f Format) bool { return f.Name == format })
		p := &Picture{format: &formats[i], raw: []byte(raw), header: image.Config{Width: 10_000, Height: MaxPixels / 10_000}}
		n, err := p.Memory()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		name, raw string
		at, most  int64 // bytes for 50 million pixels
	}{
		{"png", "", 400e6, 700e6}, {"jpeg", "", 300e6, 500e6}, {"jpeg", "\xff\xc2", 1100e6, 1300e6},
	} {
		if n := memory(c.name, c.raw); n < c.at || n > c.most {
			t.Errorf("%s: %d", c.name, n)
		}
	}
	for _, f := range formats {
		if memory(f.Name, "") < 3*MaxPixels {
			t.Errorf("%s is not weighed", f.Name)
		}
	}
}

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

func near(a, b color.RGBA, by int) bool {
	d := func(x, y uint8) bool { return max(int(x)-int(y), int(y)-int(x)) <= by }
	return d(a.R, b.R) && d(a.G, b.G) && d(a.B, b.B) && d(a.A, b.A)
}
