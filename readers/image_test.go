package readers

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"
)

// The corpus picture's quarters, as image/make draws them: top left, top right, bottom left, bottom right.
var (
	red    = color.RGBA{0xe0, 0x10, 0x10, 0xff}
	green  = color.RGBA{0x10, 0xc0, 0x10, 0xff}
	blue   = color.RGBA{0x10, 0x10, 0xe0, 0xff}
	yellow = color.RGBA{0xe0, 0xe0, 0x10, 0xff}

	asDrawn = [4]color.RGBA{red, green, blue, yellow}
)

// quarters names what is in the middle of each quarter.
func quarters(img image.Image) (q [4]color.RGBA) {
	b := img.Bounds()
	for i := range q {
		x, y := b.Min.X+b.Dx()*(1+2*(i%2))/4, b.Min.Y+b.Dy()*(1+2*(i/2))/4
		q[i] = color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
	}
	return q
}

func near(a, b color.RGBA, by float64) bool {
	d := func(x, y uint8) float64 { return math.Abs(float64(x) - float64(y)) }
	return d(a.R, b.R) <= by && d(a.G, b.G) <= by && d(a.B, b.B) <= by && d(a.A, b.A) <= by
}

func checkQuarters(t *testing.T, img image.Image, want [4]color.RGBA, by float64) {
	t.Helper()
	got := quarters(img)
	for i := range got {
		if !near(got[i], want[i], by) {
			t.Errorf("the quarters are %v, want %v", got, want)
			return
		}
	}
}

func TestImageFormats(t *testing.T) {
	grays := func(c [4]color.RGBA) (g [4]color.RGBA) {
		for i := range c {
			y := uint8(0.2126*float64(c[i].R) + 0.7152*float64(c[i].G) + 0.0722*float64(c[i].B))
			g[i] = color.RGBA{y, y, y, 0xff}
		}
		return g
	}
	black, white := color.RGBA{0, 0, 0, 0xff}, color.RGBA{0xff, 0xff, 0xff, 0xff}
	bits := [4]color.RGBA{black, white, black, white}
	half := [4]color.RGBA{}
	for i, c := range asDrawn {
		half[i] = color.RGBA{c.R / 2, c.G / 2, c.B / 2, 0x80} // premultiplied
	}
	for _, c := range []struct {
		file, format string
		same         bool // the bytes pass untouched
		want         [4]color.RGBA
		by           float64
	}{
		{"rgb.png", "png", true, asDrawn, 1},
		{"palette.png", "png", true, asDrawn, 1},
		{"rgb16.png", "png", true, asDrawn, 1},
		{"interlaced.png", "png", true, asDrawn, 1},
		{"gray.png", "png", true, grays(asDrawn), 40},
		{"alpha.png", "png", true, half, 2},
		{"bilevel.png", "png", true, bits, 0},
		{"baseline.jpg", "jpeg", true, asDrawn, 12},
		{"progressive.jpg", "jpeg", true, asDrawn, 12},
		{"sampled411.jpg", "jpeg", true, asDrawn, 12},
		{"gray.jpg", "jpeg", true, grays(asDrawn), 40},
		{"cmyk.jpg", "png", false, asDrawn, 45},
		{"still.gif", "gif", true, asDrawn, 1},
		{"animated.gif", "gif", true, asDrawn, 1},
		{"rgb24.bmp", "png", false, asDrawn, 1},
		{"rgba32.bmp", "png", false, asDrawn, 1},
		{"palette.bmp", "png", false, asDrawn, 1},
		{"none.tiff", "png", false, asDrawn, 1},
		{"lzw.tiff", "png", false, asDrawn, 1},
		{"zip.tiff", "png", false, asDrawn, 1},
		{"rgb16.tiff", "png", false, asDrawn, 1},
		{"group4.tiff", "png", false, bits, 0},
		{"lossy.webp", "webp", true, asDrawn, 12},
		{"lossless.webp", "webp", true, asDrawn, 1},
		{"alpha.webp", "webp", true, half, 14},
	} {
		t.Run(c.file, func(t *testing.T) {
			raw := corpusFile(t, "image/"+c.file)
			m := readAs[*Image](t, raw, Options{})
			if m.Width != 60 || m.Height != 40 || m.OriginalWidth != 60 || m.OriginalHeight != 40 || m.WasResized || m.Scale != 1 || !m.Whole || m.Sum == "" {
				t.Errorf("%+v", *m)
			}
			if m.Format != c.format || m.MediaType != "image/"+c.format || m.Kind() != "image" {
				t.Errorf("format %s %s", m.Format, m.MediaType)
			}
			if same := m.Bytes == len(raw) && m.Base64 == toBase64(raw); same != c.same {
				t.Errorf("the bytes passed untouched: %v", same)
			}
			if m.Format != "webp" { // which only our decoder shows as it is; see TestWebP
				checkQuarters(t, decodeImage(t, m.Base64), c.want, c.by)
			}
			// And scaled, which decodes every format for certain.
			small := readAs[*Image](t, raw, Options{ImageMaxEdge: 30})
			if small.Width != 30 || small.Height != 20 || !small.WasResized || small.Scale != 2 || small.OriginalWidth != 60 {
				t.Errorf("scaled: %d x %d, resized %v, scale %v", small.Width, small.Height, small.WasResized, small.Scale)
			}
			if strings.HasPrefix(c.file, "animated") && small.Frames != 3 {
				t.Errorf("an animation reduced to its first frame says %d frames", small.Frames)
			}
			if a := strings.HasPrefix(c.file, "alpha"); a && small.Format != "png" {
				t.Errorf("transparency became %s", small.Format)
			}
			checkQuarters(t, decodeImage(t, small.Base64), c.want, c.by+3)
			// The name never decides, and neither does a size that lies.
			renamed := Source{R: bytes.NewReader(raw), Size: int64(len(raw)), Name: "/x/notes.txt"}
			if got, err := testReaders(t).Read(context.Background(), renamed, Options{}); err != nil || got.Kind() != "image" {
				t.Errorf("as notes.txt: %v %v", got, err)
			}
		})
	}
	if c, err := readBytes(t, corpusFile(t, "image/drawing.svg"), Options{}); err != nil || c.Kind() != "text" {
		t.Errorf("svg is text: %v %v", c, err)
	}
}

// Forms that the decoders do not read, or read in wrong colours, are refused with a way out.
func TestImageFormsRefused(t *testing.T) {
	refused := map[string][]byte{}
	for _, name := range []string{"planes.tiff", "cmyk.tiff", "jpeg.tiff", "animated.webp"} {
		refused[name] = corpusFile(t, "refused/"+name)
	}
	// Four inks without Adobe's marker: whether they are inverted nobody says.
	inks := corpusFile(t, "image/cmyk.jpg")
	at := bytes.Index(inks, []byte("\xff\xee"))
	refused["inks without a marker"] = append(bytes.Clone(inks[:at]), inks[at+2+int(binary.BigEndian.Uint16(inks[at+2:])):]...)
	// A fourth colour that is not said to be transparency.
	var four bytes.Buffer
	must(t, tiff.Encode(&four, image.NewNRGBA(image.Rect(0, 0, 9, 9)), nil))
	refused["four colours"] = tiffWith(t, four.Bytes(), 338, 0)
	flat := webpWith(corpusFile(t, "image/lossy.webp"), nil)
	flat[20] |= 2 // said to be an animation
	refused["a still in an animation"] = flat
	for name, raw := range refused {
		for _, edge := range []int{0, 30} {
			var un *Unsupported
			if c, err := readBytes(t, raw, Options{ImageMaxEdge: edge}); !errors.As(err, &un) || !strings.Contains(un.Hint(), "onvert") || !strings.Contains(un.Hint(), "PNG") {
				t.Errorf("%s: %v %v", name, c, err)
			}
		}
	}
}

// needDecoders skips where the build has no decoders. Such a build refuses sample with a hint.
func needDecoders(t *testing.T, sample string) {
	t.Helper()
	m, err := readBytes(t, corpusFile(t, sample), Options{})
	var un *Unsupported
	if err == nil || errors.As(err, &un) && !strings.Contains(un.Why, "nodynamic") {
		return
	}
	if un == nil || un.Hint() == "" {
		t.Fatalf("%s: got %v, %v; want a refusal with a hint", sample, m, err)
	}
	t.Skip("SKIPPED: no decoders for AVIF and HEIC; test with -tags nodynamic, as users build")
}

func TestAVIF(t *testing.T) {
	needDecoders(t, "image/still.avif")
	raw := corpusFile(t, "image/still.avif")
	img := decodeImage(t, readAs[*Image](t, raw, Options{}).Base64)
	checkQuarters(t, img, asDrawn, 4)
	for x := range 24 {
		if got := color.RGBAModel.Convert(img.At(x, 0)).(color.RGBA); !near(got, asDrawn[0], 6) {
			t.Errorf("%d, 0 is %v", x, got)
		}
	}
	// Turned a quarter to the left, then top and bottom changed places.
	turned := readAs[*Image](t, corpusFile(t, "image/turned.avif"), Options{})
	if turned.OriginalWidth != 40 || turned.OriginalHeight != 60 {
		t.Errorf("turned: %d x %d", turned.OriginalWidth, turned.OriginalHeight)
	}
	checkQuarters(t, decodeImage(t, turned.Base64), [4]color.RGBA{red, blue, green, yellow}, 6)
	// libavif does not say that no frame could be decoded: a blank picture would pass for the file's.
	bad := bytes.Clone(raw)
	clear(bad[len(bad)-60:])
	var damaged *Damaged
	if m, err := readBytes(t, bad, Options{}); !errors.As(err, &damaged) {
		t.Errorf("pixels that are damaged: %v %v", m, err)
	}
}

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

// The compiled code of a decoder is kept, and found by the next worker.
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
		must(t, err)
		raw := corpusFile(t, "image/"+name)
		_, err = r.Read(context.Background(), Source{R: bytes.NewReader(raw), Size: int64(len(raw))}, Options{})
		if got := len(kept()); err != nil || got != i/2+1 {
			t.Errorf("%s: %d decoders are kept, %v", name, got, err)
		}
		r.Close()
	}
}

// A worker that crashes, hangs, answers nonsense or is not there is an error, in time.
func TestWorkersThatFail(t *testing.T) {
	needDecoders(t, "image/still.heic")
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("SKIPPED: no shell to play the worker")
	}
	raw := corpusFile(t, "image/still.heic")
	for script, want := range map[string]string{
		"kill -9 $$":                  "its limit of memory or time",
		"echo no; exec cat /dev/zero": "its limit of memory or time", // of the write that nobody reads
		"exec sleep 100":              "its limit of time",
		"cat >/dev/null; echo '{}'":   "does not answer as it should",
	} {
		r := newReaders(t, time.Second)
		r.images.Worker = []string{"sh", "-c", script}
		if c, err := r.Read(t.Context(), Source{R: bytes.NewReader(raw), Size: int64(len(raw))}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", script, c, err)
		}
	}
}

// turnedAs has the quarters after an orientation is applied, when the stored picture is asDrawn.
var turnedAs = map[int][4]color.RGBA{
	1: {red, green, blue, yellow},
	2: {green, red, yellow, blue},
	3: {yellow, blue, green, red},
	4: {blue, yellow, red, green},
	5: {red, blue, green, yellow},
	6: {blue, red, yellow, green},
	7: {yellow, green, blue, red},
	8: {green, yellow, red, blue},
}

func exif(turn int, order binary.AppendByteOrder) []byte {
	b := []byte("II*\x00")
	if order.String() == "BigEndian" {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 1)
	b = order.AppendUint16(b, 0x0112)
	b = order.AppendUint16(b, 3)
	b = order.AppendUint32(b, 1)
	b = order.AppendUint16(b, uint16(turn))
	b = order.AppendUint16(b, 0)
	return order.AppendUint32(b, 0)
}

func jpegWith(raw, exif []byte) []byte {
	body := append([]byte("Exif\x00\x00"), exif...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(body)+2))
	out := append([]byte{0xff, 0xd8}, append(segment, body...)...)
	return append(out, raw[2:]...)
}

func pngWith(raw []byte, id string, body []byte) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	chunk = append(append(chunk, id...), body...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return append(append(bytes.Clone(raw[:33]), chunk...), raw[33:]...)
}

func webpWith(raw, exif []byte) []byte {
	out := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x08\x00\x00\x00"), 59, 0, 0, 39, 0, 0)
	out = append(out, raw[12:]...)
	out = append(out, "EXIF"...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(exif)))
	out = append(out, exif...)
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}

// tiffWith changes the value of a tag that is there.
func tiffWith(t *testing.T, raw []byte, tag uint16, value int) []byte {
	t.Helper()
	raw = bytes.Clone(raw)
	at := int(binary.LittleEndian.Uint32(raw[4:]))
	for i := range int(binary.LittleEndian.Uint16(raw[at:])) {
		if e := at + 2 + i*12; binary.LittleEndian.Uint16(raw[e:]) == tag {
			binary.LittleEndian.PutUint16(raw[e+8:], uint16(value))
			return raw
		}
	}
	t.Fatalf("no tag %d in the file", tag)
	return nil
}

func TestOrientation(t *testing.T) {
	for turn := 1; turn <= 8; turn++ {
		for name, raw := range map[string][]byte{
			"jpeg":     jpegWith(corpusFile(t, "image/baseline.jpg"), exif(turn, binary.BigEndian)),
			"jpeg, LE": jpegWith(corpusFile(t, "image/progressive.jpg"), exif(turn, binary.LittleEndian)),
			"cmyk":     jpegWith(corpusFile(t, "image/cmyk.jpg"), exif(turn, binary.BigEndian)),
			"png":      pngWith(corpusFile(t, "image/rgb.png"), "eXIf", exif(turn, binary.BigEndian)),
			"png 16":   pngWith(corpusFile(t, "image/rgb16.png"), "eXIf", exif(turn, binary.LittleEndian)),
			"webp":     webpWith(corpusFile(t, "image/lossy.webp"), exif(turn, binary.LittleEndian)),
			"tiff":     tiffWith(t, corpusFile(t, "image/lzw.tiff"), 274, turn),
		} {
			t.Run(fmt.Sprintf("%s %d", name, turn), func(t *testing.T) {
				by := 20.0
				if name == "cmyk" {
					by = 50
				}
				for _, edge := range []int{0, 30} {
					m := readAs[*Image](t, raw, Options{ImageMaxEdge: edge})
					w, h := 60, 40
					if turn >= 5 {
						w, h = 40, 60
					}
					if m.OriginalWidth != w || m.OriginalHeight != h {
						t.Errorf("original %d x %d", m.OriginalWidth, m.OriginalHeight)
					}
					if edge > 0 {
						w, h = w/2, h/2
					}
					if m.Width != w || m.Height != h {
						t.Errorf("%d x %d, want %d x %d", m.Width, m.Height, w, h)
					}
					if m.Format != "webp" { // one that is upright passes untouched; see TestWebP
						checkQuarters(t, decodeImage(t, m.Base64), turnedAs[turn], by)
					}
				}
			})
		}
	}
	// Values that are none leave the picture as it is stored.
	for _, turn := range []int{0, 9, 65535} {
		m := readAs[*Image](t, jpegWith(corpusFile(t, "image/baseline.jpg"), exif(turn, binary.BigEndian)), Options{})
		checkQuarters(t, decodeImage(t, m.Base64), asDrawn, 12)
	}
}

// picturesOf draws the quarters at a size, in the colour model asked for, with noise that JPEG can't store small.
func drawn(w, h int, noise uint8) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	rng := rand.New(rand.NewPCG(1, 1))
	for y := range h {
		for x := range w {
			c := asDrawn[2*(2*y/h)+2*x/w]
			if noise > 0 {
				n := uint8(rng.UintN(uint(noise)))
				c.R, c.G, c.B = c.R^n, c.G^(n>>1), c.B^(n>>2)
			}
			m.SetRGBA(x, y, c)
		}
	}
	return m
}

func TestImageScaling(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: the race detector needs minutes for its bytes, which one goroutine goes through; it runs without -short")
	}
	enc := func(f func(*bytes.Buffer) error) []byte {
		var b bytes.Buffer
		must(t, f(&b))
		return b.Bytes()
	}
	asPNG := func(m image.Image) []byte { return enc(func(b *bytes.Buffer) error { return png.Encode(b, m) }) }
	asJPEG := func(m image.Image, q int) []byte {
		return enc(func(b *bytes.Buffer) error { return jpeg.Encode(b, m, &jpeg.Options{Quality: q}) })
	}
	big := readAs[*Image](t, asJPEG(drawn(4000, 1500, 0), 90), Options{})
	if big.Width != 1568 || big.Height != 588 || big.Scale != 2.551 || !big.WasResized || big.OriginalWidth != 4000 {
		t.Errorf("4000 x 1500: %d x %d %s, scale %v", big.Width, big.Height, big.Format, big.Scale)
	}
	checkQuarters(t, decodeImage(t, big.Base64), asDrawn, 12)
	tall := readAs[*Image](t, asPNG(drawn(900, 9000, 0)), Options{})
	if tall.Height != 1568 || tall.Width != 157 || tall.Format != "png" {
		t.Errorf("900 x 9000: %d x %d %s", tall.Width, tall.Height, tall.Format)
	}
	checkQuarters(t, decodeImage(t, tall.Base64), asDrawn, 4)
	line := readAs[*Image](t, asPNG(drawn(9000, 2, 0)), Options{})
	if line.Width != 1568 || line.Height != 1 {
		t.Errorf("9000 x 2: %d x %d", line.Width, line.Height)
	}
	// Small enough in pixels, too large in bytes: quality falls, then pixels.
	noisy := asJPEG(drawn(600, 600, 255), 100)
	for _, limit := range []int64{75 << 10, 15 << 10, 3 << 10} {
		m := readAs[*Image](t, noisy, Options{ImageMaxBytes: limit})
		if int64(m.Bytes) > limit || m.Format != "jpeg" {
			t.Errorf("%d bytes %s within %d", m.Bytes, m.Format, limit)
		}
		if m.WasResized != (m.Width != 600) {
			t.Errorf("%d x %d, resized %v", m.Width, m.Height, m.WasResized)
		}
		if want := math.Round(600/float64(m.Width)*1e4) / 1e4; m.Scale != want {
			t.Errorf("scale %v, want %v", m.Scale, want)
		}
	}
	var limit *Limit
	if _, err := readBytes(t, noisy, Options{ImageMaxBytes: 500}); !errors.As(err, &limit) {
		t.Errorf("half a KB: %v", err)
	}
	clear := image.NewNRGBA(image.Rect(0, 0, 2000, 1000))
	for i := range clear.Pix {
		clear.Pix[i] = uint8(i * 7)
	}
	if m := readAs[*Image](t, asPNG(clear), Options{}); m.Format != "png" {
		t.Errorf("transparency became %s", m.Format)
	}
}

// TestParts: a picture that has to be shrunk is to be had in parts at full size, whichever way it is turned.
func TestParts(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	must(t, png.Encode(&b, drawn(90, 900, 0)))
	whole := readAs[*Image](t, b.Bytes(), Options{ImageMaxEdge: 100})
	if whole.Scale != 9 || !strings.Contains(whole.Note, "the first of its 9 parts (1 × 9)") || !whole.Whole {
		t.Errorf("%+v", whole)
	}
	for part, want := range map[string][4]color.RGBA{"1": {red, green, red, green}, "last": {blue, yellow, blue, yellow}} {
		m := readAs[*Image](t, b.Bytes(), Options{ImageMaxEdge: 100, Pages: part})
		if m.Width != 90 || m.Height != 100 || m.Scale != 1 || m.Frames != 9 || m.OriginalHeight != 900 || m.Whole || m.Page == 1 && m.NextPages != "2-9" {
			t.Errorf("%s: %+v", part, m)
		}
		checkQuarters(t, decodeImage(t, m.Base64), want, 4)
	}
	var bad *BadPages
	if _, err := readBytes(t, b.Bytes(), Options{ImageMaxEdge: 100, Pages: "10"}); !errors.As(err, &bad) {
		t.Errorf("page 10 of 9: %v", err)
	}
	// The parts of a turned picture, put together, are the picture.
	for turn := range 8 {
		raw := jpegWith(corpusFile(t, "image/baseline.jpg"), exif(turn+1, binary.BigEndian))
		whole := decodeImage(t, readAs[*Image](t, raw, Options{}).Base64)
		for part := range 4 {
			m := readAs[*Image](t, raw, Options{ImageMaxEdge: 30, Pages: strconv.Itoa(part + 1)})
			if m.Frames != 4 || m.Width*m.Height != 600 {
				t.Errorf("%+v", m)
			}
			got, want := decodeImage(t, m.Base64), quarters(whole)[part]
			if c := color.RGBAModel.Convert(got.At(got.Bounds().Dx()/2, got.Bounds().Dy()/2)).(color.RGBA); !near(c, want, 20) {
				t.Errorf("turn %d, part %d: %v, want %v", turn+1, part+1, c, want)
			}
		}
	}
}

// A large picture without loss goes as a JPEG that looks the same, if there is one.
func TestAlike(t *testing.T) {
	t.Parallel()
	m := image.NewRGBA(image.Rect(0, 0, 900, 900))
	for y := range 900 {
		for x := range 900 {
			m.SetRGBA(x, y, color.RGBA{uint8(x / 4), uint8(y / 4), uint8((x + y) / 8), 255})
		}
	}
	var soft bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&soft, m))
	if c := readAs[*Image](t, soft.Bytes(), Options{}); c.Format != "jpeg" || c.Bytes > soft.Len()/4 || c.WasResized {
		t.Errorf("%s of %d bytes", c.Format, c.Bytes)
	}
	for i := range 400 { // a fine line of colour, which JPEG blurs
		m.SetRGBA(300+i, 300+i%2, color.RGBA{255, 0, 0, 255})
	}
	var sharp bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&sharp, m))
	if c := readAs[*Image](t, sharp.Bytes(), Options{}); c.Format != "png" || c.Bytes != sharp.Len() {
		t.Errorf("sharp: %s of %d bytes", c.Format, c.Bytes)
	}
}

// Scans in black and white are large in pixels only.
func TestManyPixels(t *testing.T) {
	t.Parallel()
	header := func(w, h uint32, depth, colours byte) []byte {
		b := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
		ihdr := append([]byte("IHDR"), 0, 0, 0, 0, 0, 0, 0, 0, depth, colours, 0, 0, 0)
		binary.BigEndian.PutUint32(ihdr[4:], w)
		binary.BigEndian.PutUint32(ihdr[8:], h)
		return binary.BigEndian.AppendUint32(append(b, ihdr...), crc32.ChecksumIEEE(ihdr))
	}
	for _, c := range []struct {
		w, h           uint32
		depth, colours byte
		large, refused bool
	}{{14000, 14000, 1, 0, false, false}, {15000, 15000, 1, 0, false, true}, {8000, 8000, 8, 2, false, true}, {8000, 8000, 8, 2, true, false}, {10000, 10000, 8, 2, true, true}} {
		_, err := readBytes(t, header(c.w, c.h, c.depth, c.colours), Options{AllowLarge: c.large})
		var limit *Limit
		if errors.As(err, &limit) != c.refused || c.refused && strings.Contains(limit.Hint(), "allow_large") == c.large {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestImageBombsAndDamage(t *testing.T) {
	header := func(w, h uint32) []byte {
		b := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
		ihdr := append([]byte("IHDR"), 0, 0, 0, 0, 0, 0, 0, 0, 8, 6, 0, 0, 0)
		binary.BigEndian.PutUint32(ihdr[4:], w)
		binary.BigEndian.PutUint32(ihdr[8:], h)
		return binary.BigEndian.AppendUint32(append(b, ihdr...), crc32.ChecksumIEEE(ihdr))
	}
	gifBomb := append([]byte("GIF89a"), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x2c, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 2, 0, 0, 0x3b)
	var tiffBomb bytes.Buffer
	must(t, tiff.Encode(&tiffBomb, image.NewGray(image.Rect(0, 0, 4, 4)), nil))
	wide := tiffBomb.Bytes()
	at := int(binary.LittleEndian.Uint32(wide[4:]))
	for i := range int(binary.LittleEndian.Uint16(wide[at:])) {
		if e := at + 2 + i*12; binary.LittleEndian.Uint16(wide[e:]) == 256 || binary.LittleEndian.Uint16(wide[e:]) == 257 {
			binary.LittleEndian.PutUint16(wide[e+2:], 4)
			binary.LittleEndian.PutUint32(wide[e+8:], 60000)
		}
	}
	webpBomb := webpWith(corpusFile(t, "image/lossy.webp"), nil)
	copy(webpBomb[24:], []byte{0xff, 0x3f, 0, 0xff, 0x3f, 0})
	for name, raw := range map[string][]byte{"png": header(60000, 60000), "png, one side": header(1, 1<<30), "gif": gifBomb, "tiff": wide, "webp": webpBomb} {
		var limit *Limit
		if _, err := readBytes(t, raw, Options{}); !errors.As(err, &limit) || limit.Resource != "pixels" {
			t.Errorf("%s of billions of pixels: %v", name, err)
		}
	}
	// A frame larger than the screen that the header declares.
	var frames bytes.Buffer
	must(t, gif.EncodeAll(&frames, &gif.GIF{Image: []*image.Paletted{image.NewPaletted(image.Rect(0, 0, 9, 9), color.Palette{color.Black, color.White})}, Delay: []int{0}}))
	lying := frames.Bytes()
	lying[6], lying[8] = 2, 2
	if _, err := readBytes(t, lying, Options{}); err == nil {
		t.Error("a frame outside of the screen was read")
	}
	names, _ := filepath.Glob(filepath.Join(corpusDir, "image", "*"))
	rng := rand.New(rand.NewPCG(3, 4))
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasSuffix(name, ".svg") {
			continue
		}
		raw := corpusFile(t, "image/"+base)
		step := 1
		if strings.HasSuffix(name, ".avif") || strings.HasSuffix(name, ".heic") {
			step = 10 // each starts a worker
		}
		for i := 0; i < 40; i += step {
			bad := raw[:len(raw)*(i%20)/20]
			if i >= 20 {
				bad = mutate(rng, raw)
			}
			c, err := readBytes(t, bad, Options{ImageMaxEdge: 20})
			var ours Hinter
			if err != nil && !errors.As(err, &ours) {
				t.Errorf("%s: an error without a next move: %v", base, err)
			}
			// The result must be a picture: one bad image spoils a whole conversation.
			if m, ok := c.(*Image); ok {
				if img := decodeImage(t, m.Base64); img.Bounds().Dx() != m.Width || img.Bounds().Dy() != m.Height {
					t.Errorf("%s: %v, said %d x %d", base, img.Bounds(), m.Width, m.Height)
				}
			}
		}
	}
	var damaged *Damaged
	if _, err := readBytes(t, corpusFile(t, "image/rgb.png")[:60], Options{}); !errors.As(err, &damaged) {
		t.Errorf("a cut PNG: %v", err)
	}
}

func toBase64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// pagesTIFF, by the numbers of TIFF 6.0, has a page of one shade of grey for each shade, and a small copy of each, which is no page.
func pagesTIFF(shades ...byte) []byte {
	const side = 40
	order := binary.LittleEndian
	b := append([]byte("II*\x00"), 0, 0, 0, 0)
	link := 4 // where the offset of the next directory stands
	for _, shade := range shades {
		for _, smaller := range []uint32{0, 1} {
			at := uint32(len(b))
			for range side * side {
				b = append(b, shade)
			}
			order.PutUint32(b[link:], uint32(len(b)))
			entries := [][2]uint32{{254, smaller}, {256, side}, {257, side}, {258, 8}, {259, 1}, {262, 1},
				{273, at}, {278, side}, {279, side * side}}
			b = order.AppendUint16(b, uint16(len(entries)))
			for _, e := range entries {
				b = order.AppendUint16(b, uint16(e[0]))
				b = order.AppendUint16(b, 4)
				b = order.AppendUint32(b, 1)
				b = order.AppendUint32(b, e[1])
			}
			link = len(b)
			b = append(b, 0, 0, 0, 0)
		}
	}
	return b
}

// A fax of several pages says how many, and shows each.
func TestTIFFPages(t *testing.T) {
	raw := pagesTIFF(10, 120, 230)
	for _, c := range []struct {
		pages string
		page  int
		shade uint8
		next  string
	}{{"", 1, 10, "2-3"}, {"2", 2, 120, "3"}, {"3", 3, 230, ""}, {"2-3", 2, 120, "3"}, {"1,3", 1, 10, "3"}} {
		m := readAs[*Image](t, raw, Options{Pages: c.pages})
		got := color.GrayModel.Convert(decodeImage(t, m.Base64).At(5, 5)).(color.Gray).Y
		if m.Frames != 3 || m.Page != c.page || m.NextPages != c.next || got != c.shade || m.Whole || m.Note != fmt.Sprintf("Page %d of 3; an answer shows one.", c.page) {
			t.Errorf("pages %q: page %d of %d, shade %d, next %q, %q", c.pages, m.Page, m.Frames, got, m.NextPages, m.Note)
		}
		if fmt.Sprintf("%s %d %v", m.Unit, m.Total, m.Shown) != fmt.Sprintf("page 3 [{%d %d}]", c.page, c.page) {
			t.Errorf("pages %q: shown %v of %d %ss", c.pages, m.Shown, m.Total, m.Unit)
		}
	}
	var bad *BadPages
	if _, err := readBytes(t, raw, Options{Pages: "4"}); !errors.As(err, &bad) {
		t.Errorf("page 4 of 3: %v", err)
	}
	one := readAs[*Image](t, pagesTIFF(10), Options{Pages: "1"})
	if one.Frames != 0 || one.Page != 0 || !one.Whole || !strings.Contains(one.Note, "pages") {
		t.Errorf("one page: %d of %d, %q", one.Page, one.Frames, one.Note)
	}
	// A chain of directories that comes back to its beginning ends.
	loop := pagesTIFF(10, 120)
	binary.LittleEndian.PutUint32(loop[len(loop)-4:], binary.LittleEndian.Uint32(loop[4:]))
	if m := readAs[*Image](t, loop, Options{}); m.Frames != 2 {
		t.Errorf("a loop has %d pages", m.Frames)
	}
}

// noisePNG is a PNG of noise whose size lies between three quarters of the limit and the limit: it fits as
// bytes, but not as base64.
func noisePNG(t *testing.T, limit int) []byte {
	t.Helper()
	side := 1
	for side*side*3 < limit*7/8 {
		side++
	}
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	rng := rand.New(rand.NewPCG(7, 7))
	for y := range side {
		for x := range side {
			v := rng.Uint32()
			m.SetRGBA(x, y, color.RGBA{uint8(v), uint8(v >> 8), uint8(v >> 16), 0xff})
		}
	}
	var b bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, m))
	if n := b.Len(); n <= limit/4*3 || n >= limit {
		t.Fatalf("%d bytes do not lie between %d and %d", n, limit/4*3, limit)
	}
	return b.Bytes()
}

// APIs count base64. An image above their limit makes every following request of the conversation fail.
func TestImageLimitIsOfBase64(t *testing.T) {
	check := func(what, encoded string, limit int) {
		if n := len(encoded); n == 0 || n > limit {
			t.Errorf("%s: %d bytes of base64, the limit is %d", what, n, limit)
		}
	}
	const api = 5_242_880 // "image exceeds 5 MB maximum"
	check("default", readAs[*Image](t, noisePNG(t, api), Options{}).Base64, api)
	const small = 40_000
	raw := noisePNG(t, small)
	o := Options{ImageMaxBytes: small}
	check("file", readAs[*Image](t, raw, o).Base64, small)
	notebook, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{},
		"cells": []any{map[string]any{"id": "c", "cell_type": "code", "source": "draw()", "metadata": map[string]any{}, "execution_count": 1,
			"outputs": []any{map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": map[string]any{"image/png": toBase64(raw)}}}}}})
	must(t, err)
	check("notebook", readAs[*Notebook](t, notebook, o).Cells[0].Outputs[0].Base64, small)
	for limit := 8_000; limit < 40_000; limit += 4_000 {
		page := readAs[*PDF](t, corpusFile(t, "pdf/gs_standard.pdf"), Options{Render: true, Pages: "1", ImageMaxEdge: 500, ImageMaxBytes: int64(limit)})
		check(fmt.Sprintf("page within %d", limit), page.Images[0].Base64, limit)
	}
}
