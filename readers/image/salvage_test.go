package image

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
)

// TestSalvage cuts pictures at many places: the longer the file, the more rows are there, and these are those of the whole file.
func TestSalvage(t *testing.T) {
	const w, h = 100, 128
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	rng := rand.New(rand.NewPCG(1, 2))
	for y := range h {
		for x := range w {
			img.SetRGBA(x, y, color.RGBA{uint8(y), uint8(x), uint8(rng.IntN(16)), 255})
		}
	}
	palette := image.NewPaletted(img.Rect, color.Palette{color.Black, color.White, color.RGBA{200, 0, 0, 255}, color.RGBA{0, 100, 0, 255}})
	draw.Draw(palette, palette.Rect, img, image.Point{}, draw.Src)
	made := map[string][]byte{}
	make := func(name string, err error, b *bytes.Buffer) {
		if err != nil {
			t.Fatal(name, err)
		}
		made[name] = bytes.Clone(b.Bytes())
		b.Reset()
	}
	var b bytes.Buffer
	make("a.png", png.Encode(&b, img), &b)
	make("palette.png", png.Encode(&b, palette), &b)
	make("a.jpg", jpeg.Encode(&b, img, &jpeg.Options{Quality: 95}), &b)
	make("a.gif", gif.Encode(&b, palette, nil), &b)
	make("a.bmp", bmp.Encode(&b, img), &b)
	for _, name := range []string{"lossy.webp", "interlaced.png", "progressive.jpg"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "testdata", "readers", "image", name))
		if err != nil {
			t.Fatal(err)
		}
		made[name] = raw
	}
	d := Decoders{Deadline: time.Minute}
	for name, raw := range made {
		t.Run(name, func(t *testing.T) {
			f := FormatOf(raw)
			whole, err := f.decode(t.Context(), raw)
			if err != nil {
				t.Fatal(err)
			}
			last, most := 0, whole.Bounds().Dy()
			for cut := 2; cut < 100; cut += 6 {
				p, err := f.Open(raw[:len(raw)*cut/100])
				if err != nil {
					continue // within the header
				}
				shown, err := p.Show(t.Context(), &d, Want{Edge: 4000, Most: 1 << 30})
				if err != nil {
					if last > 0 {
						t.Fatalf("at %d %% %v, though less had %d rows", cut, err, last)
					}
					continue
				}
				if shown.Rows < last || shown.Rows > most {
					t.Fatalf("at %d %% there are %d rows; before there were %d", cut, shown.Rows, last)
				}
				last = shown.Rows
				got, err := FormatOf(shown.Data).decode(t.Context(), shown.Data)
				if err != nil || got.Bounds().Size() != whole.Bounds().Size() {
					t.Fatal(err, got.Bounds())
				}
				if strings.HasSuffix(name, ".png") && name != "interlaced.png" || strings.HasSuffix(name, ".gif") {
					for y := range last - 16 { // the answer may be a JPEG, whose blocks mix the last rows with the grey
						if !near(color.RGBAModel.Convert(got.At(w/3, y)).(color.RGBA), color.RGBAModel.Convert(whole.At(w/3, y)).(color.RGBA), 24) {
							t.Fatalf("at %d %% row %d of %d is %v, want %v", cut, y, last, got.At(w/3, y), whole.At(w/3, y))
						}
					}
				}
			}
			if last < most*3/4 {
				t.Errorf("of %d rows only %d come back", most, last)
			}
		})
	}
	// A TIFF has whole strips, and only where its directory comes first.
	strips := stripsTIFF(img)
	p, err := FormatOf(strips).Open(strips[:len(strips)*2/3])
	if err != nil {
		t.Fatal(err)
	}
	if shown, err := p.Show(t.Context(), &d, Want{Edge: 4000, Most: 1 << 30}); err != nil || shown.Rows < h/2 || shown.Rows > h*2/3 {
		t.Errorf("a TIFF of strips: %+v, %v", shown, err)
	}
}

// stripsTIFF writes the red of img as a TIFF with its directory at the beginning, in strips of eight rows.
func stripsTIFF(img *image.RGBA) []byte {
	order := binary.LittleEndian
	w, h := img.Rect.Dx(), img.Rect.Dy()
	n := h / 8
	const head = 8 + 2 + 9*12 + 4
	b := append([]byte("II*\x00"), 8, 0, 0, 0, 9, 0)
	for _, e := range [][3]int{{256, 1, w}, {257, 1, h}, {258, 1, 8}, {259, 1, 1}, {262, 1, 1}, {273, n, head}, {277, 1, 1}, {278, 1, 8}, {279, n, head + 4*n}} {
		b = order.AppendUint16(b, uint16(e[0]))
		b = order.AppendUint16(b, 4)
		b = order.AppendUint32(order.AppendUint32(b, uint32(e[1])), uint32(e[2]))
	}
	b = append(b, 0, 0, 0, 0)
	for i := range n {
		b = order.AppendUint32(b, uint32(head+8*n+i*8*w))
	}
	for range n {
		b = order.AppendUint32(b, uint32(8*w))
	}
	for i := 0; i < len(img.Pix); i += 4 {
		b = append(b, img.Pix[i])
	}
	return b
}

// TestICO: the largest picture of an icon is shown, with what is transparent in it, whether it is a PNG or a bitmap.
func TestICO(t *testing.T) {
	le := binary.LittleEndian
	// A bitmap of 8 × 4 pixels and so many bits: blue above, red below, its left half transparent.
	bitmap := func(bits int) []byte {
		b := make([]byte, 40)
		le.PutUint32(b, 40)
		le.PutUint32(b[4:], 8)
		le.PutUint32(b[8:], 8)
		le.PutUint16(b[12:], 1)
		le.PutUint16(b[14:], uint16(bits))
		if bits == 8 {
			le.PutUint32(b[32:], 2)
			b = append(b, 0, 0, 255, 0, 255, 0, 0, 0)
		}
		for y := range 4 {
			for x := range 8 {
				pixel := []byte{0, 0, 255, 0} // from below
				if y > 1 {
					pixel = []byte{255, 0, 0, 0}
				}
				if x > 3 {
					pixel[3] = 255
				}
				if bits == 8 {
					pixel = []byte{byte(y / 2)}
				}
				b = append(b, pixel[:bits/8]...)
			}
		}
		for range 4 {
			b = append(b, 0xf0, 0, 0, 0)
		}
		return b
	}
	var small, large bytes.Buffer
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(png.Encode(&small, image.NewNRGBA(image.Rect(0, 0, 2, 2))))
	must(png.Encode(&large, image.NewNRGBA(image.Rect(0, 0, 256, 256))))
	icon := func(w, h byte, bits int, p []byte) []byte {
		b := []byte{0, 0, 1, 0, 2, 0}
		for i, e := range [][]byte{small.Bytes(), p} {
			side, high, at := byte(2), byte(2), 6+32
			if i == 1 {
				side, high, at = w, h, 6+32+small.Len()
			}
			b = append(b, side, high, 0, 0, 1, 0, byte(bits), 0)
			b = le.AppendUint32(le.AppendUint32(b, uint32(len(e))), uint32(at))
		}
		return append(append(b, small.Bytes()...), p...)
	}
	for bits, raw := range map[int][]byte{8: icon(8, 4, 8, bitmap(8)), 24: icon(8, 4, 24, bitmap(24)), 32: icon(8, 4, 32, bitmap(32)), 0: icon(0, 0, 32, large.Bytes())} {
		p, err := FormatOf(raw).Open(raw)
		must(err)
		shown, err := p.Show(t.Context(), &Decoders{Deadline: time.Minute}, Want{Edge: 500, Most: 1 << 20})
		must(err)
		img, err := png.Decode(bytes.NewReader(shown.Data))
		must(err)
		if bits == 0 {
			if img.Bounds().Dx() != 256 {
				t.Error(img.Bounds())
			}
			continue
		}
		for i, want := range []color.RGBA{{}, {0, 0, 255, 255}, {}, {255, 0, 0, 255}} {
			if got := color.RGBAModel.Convert(img.At(1+i%2*5, i/2*3)).(color.RGBA); got != want {
				t.Errorf("%d bits: quarter %d is %v, want %v", bits, i, got, want)
			}
		}
		for cut := range raw { // each is answered
			if f := FormatOf(raw[:cut]); f != nil {
				if p, err := f.Open(raw[:cut]); err == nil {
					p.Show(t.Context(), &Decoders{Deadline: time.Minute}, Want{Edge: 500, Most: 1 << 20})
				}
			}
		}
	}
}
