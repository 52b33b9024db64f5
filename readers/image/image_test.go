package image

import (
	"errors"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/readers/unreadable"
)

// TestImagesCountTheirPixels: what is reserved covers what is decoded.
func TestImagesCountTheirPixels(t *testing.T) {
	memory := func(format, raw string) int64 {
		i := slices.IndexFunc(formats[:], func(f Format) bool { return f.Name == format })
		p := &Picture{format: &formats[i], raw: []byte(raw), header: image.Config{Width: 10_000, Height: MaxPixels / 10_000}}
		n, err := p.Memory(false)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		name, raw string
		at, most  int64 // bytes for 50 million pixels
	}{
		{"png", "", 400e6, 700e6}, {"jpeg", "", 300e6, 500e6}, {"jpeg", "\xff\xc2", 1100e6, 1300e6}, {"heic", "", workerMemory, workerMemory},
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
		img, err := FormatOf(raw).tryDecode(t.Context(), raw, image.Config{})
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

// An error of ours in a worker is not the file's, and names no path.
func TestErrorOfAWorker(t *testing.T) {
	var reply workReply
	reply.fail(&os.PathError{Op: "open", Path: "/secret/cache", Err: os.ErrPermission})
	if err := reply.error(); err == nil || errors.As(err, new(*unreadable.Damaged)) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
