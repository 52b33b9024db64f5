package image

import (
	"image"
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
