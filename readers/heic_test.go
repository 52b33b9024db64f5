package readers

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"io/fs"
	"os"
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

// The values are those of the colour bars of ITU-R BT.601, BT.709 and BT.2020 at full saturation, as their standards list them.
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
		"identity":            {box(0, 0x80), 10, 20, 30, color.RGBA{30, 10, 20, 255}},
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
	if _, ok := nclxOf(box(11, 0)); ok {
		t.Error("an unknown matrix is taken for a known one")
	}
}

// What lies in the cache is run: it is not used when others could have put it there.
func TestCacheDirIsOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if !private(dir) {
		t.Fatal("a new directory is not ours")
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("made as %v, %v", info.Mode(), err)
	}
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("SKIPPED: no symbolic links here")
	}
	if private(link) {
		t.Error("a link is followed")
	}
	inner := filepath.Join(dir, "wazero")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if !private(dir) {
		t.Error("a directory of ours in it is refused")
	}
	for _, d := range []string{inner, dir} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
		if os.PathSeparator == '/' && private(dir) {
			t.Errorf("%s may be written by everybody, and is used", d)
		}
		os.Chmod(d, 0o700)
	}
	if c := (&codeCache{dir: link}); c.get() == nil {
		t.Error("without a directory there is no cache in memory")
	} else {
		c.close()
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
			if err == nil && d.Type().IsRegular() && filepath.Ext(path) != sealed {
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
