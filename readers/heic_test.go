package readers

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"io/fs"
	"path/filepath"
	"testing"
)

// Every kind of sampling has its colours, to the first pixel and the last.
func TestHEIC(t *testing.T) {
	needDecoders(t, "image/still.heic")
	for _, file := range []string{"still", "half", "full", "deep", "odd"} {
		m := readAs[*Image](t, corpusFile(t, "image/"+file+".heic"), Options{})
		img := decodeImage(t, m.Base64)
		checkQuarters(t, img, asDrawn, 6)
		w, h := 60, 40
		if file == "odd" {
			w, h = 301, 203
		}
		if m.OriginalWidth != w || m.OriginalHeight != h || m.Width != w || m.OriginalFormat != "heic" || m.Scale != 1 {
			t.Errorf("%s: %d x %d of %d x %d, %s", file, m.Width, m.Height, m.OriginalWidth, m.OriginalHeight, m.OriginalFormat)
		}
		// The first row and the last: what a decoder frees too early, or reads with the wrong stride, shows there.
		for x := range w/2 - 8 {
			for _, c := range []struct {
				y    int
				want color.RGBA
			}{{0, asDrawn[0]}, {h - 1, asDrawn[2]}} {
				if got := color.RGBAModel.Convert(img.At(x, c.y)).(color.RGBA); !near(got, c.want, 12) {
					t.Fatalf("%s: %d, %d is %v, want %v", file, x, c.y, got, c.want)
				}
			}
		}
	}
	gray := decodeImage(t, readAs[*Image](t, corpusFile(t, "image/gray.heic"), Options{}).Base64)
	want := decodeImage(t, readAs[*Image](t, corpusFile(t, "image/gray.png"), Options{}).Base64)
	for _, p := range []image.Point{{0, 0}, {15, 10}, {45, 10}, {15, 30}, {59, 39}} {
		a, b := color.GrayModel.Convert(gray.At(p.X*2, p.Y*2)).(color.Gray), color.GrayModel.Convert(want.At(p.X, p.Y)).(color.Gray)
		if max(a.Y, b.Y)-min(a.Y, b.Y) > 4 {
			t.Errorf("grey %v: %d, want %d", p, a.Y, b.Y)
		}
	}
}

// What a decoder was compiled to is kept, and found by the next worker.
func TestDecodersAreCompiledOnce(t *testing.T) {
	needDecoders(t, "image/still.heic")
	if testing.Short() {
		t.Skip("SKIPPED: two decoders are compiled; it runs without -short")
	}
	c := testConfig()
	c.CacheDir = filepath.Join(t.TempDir(), "cache")
	kept := func() (names []string) {
		filepath.WalkDir(c.CacheDir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && filepath.Ext(path) != ".crc" {
				names = append(names, path)
			}
			return nil
		})
		return names
	}
	for i, name := range []string{"still.heic", "still.heic", "still.avif", "still.avif"} {
		r, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		raw := corpusFile(t, "image/"+name)
		_, err = r.Read(context.Background(), Source{R: bytes.NewReader(raw), Size: int64(len(raw))}, Options{})
		if got := len(kept()); err != nil || got != i/2+1 {
			t.Errorf("%s: %d decoders are kept, %v", name, got, err)
		}
		r.Close()
	}
}
