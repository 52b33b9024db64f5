package readers

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var mutations = flag.Int("readers.mutations", 60, "how many mutated files the PDF engine must survive")

func decodeImage(t *testing.T, encoded string) image.Image {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(encoded)
	must(t, err)
	img, _, err := image.Decode(bytes.NewReader(raw))
	must(t, err)
	return img
}

// ink is the share of dark pixels.
func ink(img image.Image) float64 {
	b := img.Bounds()
	dark := 0
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y < 128 {
				dark++
			}
		}
	}
	return float64(dark) / float64(b.Dx()*b.Dy())
}

func TestPDFPages(t *testing.T) {
	raw := corpusFile(t, "pdf/latex_100pages.pdf")
	for _, c := range []struct {
		pages    string
		want     []string
		next     string
		rendered int
	}{
		{"3", []string{"Page mark 3"}, "4-23", 1},
		{"1-3,7", []string{"Page mark 1", "Page mark 3", "Page mark 7"}, "8-27", 4},
		{"", []string{"Page mark 1", "Page mark 20"}, "21-40", 20},
		{"99-110", []string{"Page mark 99", "Page mark 100"}, "", 2},
		{"7,1-3,2", []string{"Page mark 1", "Page mark 3", "Page mark 7"}, "8-27", 4},
	} {
		p := readAs[*PDF](t, raw, Options{Pages: c.pages})
		at := 0
		for _, w := range c.want {
			i := strings.Index(p.Text[at:], w+"\n")
			if i < 0 {
				t.Errorf("%q: %q is missing or out of order", c.pages, w)
				continue
			}
			at += i
		}
		if p.Pages != 100 || p.RenderedPages != c.rendered || p.NextPages != c.next || p.Truncated != (c.next != "") || p.Whole {
			t.Errorf("%q: %d of %d pages, next %q, truncated %v, whole %v", c.pages, p.RenderedPages, p.Pages, p.NextPages, p.Truncated, p.Whole)
		}
		if len(p.Images) != 0 || p.TokenEstimate == 0 {
			t.Errorf("%q: %d images nobody asked for, %d tokens", c.pages, len(p.Images), p.TokenEstimate)
		}
	}
	for _, bad := range []string{"0", "a", "3-", "5-1", "1-21", "101", "1,,2", "1-3;7", strings.Repeat("1,", 300)} {
		var e *BadPages
		if _, err := readBytes(t, raw, Options{Pages: bad}); !errors.As(err, &e) || e.Hint() == "" {
			t.Errorf("pages %q: %v", bad, err)
		}
	}
	small := readAs[*PDF](t, raw, Options{MaxBytes: 4000})
	if small.RenderedPages == 0 || len(small.Text) > 4000 || !small.Truncated || small.NextPages == "" {
		t.Errorf("within 4000 bytes: %d pages, %d bytes, next %q", small.RenderedPages, len(small.Text), small.NextPages)
	}
	whole := readAs[*PDF](t, corpusFile(t, "pdf/latex_german.pdf"), Options{})
	if !whole.Whole || whole.Truncated || whole.Sum == "" {
		t.Errorf("a document of one page is not whole: %+v", whole)
	}
}

func TestPDFImages(t *testing.T) {
	scan := readAs[*PDF](t, corpusFile(t, "pdf/scan.pdf"), Options{})
	if len(scan.Images) != 1 || !slices.Equal(scan.PagesWithoutText, []int{1}) {
		t.Fatalf("a scan: %d images, without text %v", len(scan.Images), scan.PagesWithoutText)
	}
	if scan.Images[0].Format == "png" && decodeImage(t, scan.Images[0].Base64).ColorModel() == color.RGBAModel {
		t.Error("a scan in shades of grey takes three bytes a pixel")
	}
	if img := decodeImage(t, scan.Images[0].Base64); max(img.Bounds().Dx(), img.Bounds().Dy()) != DefaultImageMaxEdge || ink(img) < 0.002 || ink(img) > 0.2 {
		t.Errorf("the scan is %v with %.4f ink", img.Bounds(), ink(img))
	}
	page := readAs[*PDF](t, corpusFile(t, "pdf/qpdf_joined.pdf"), Options{Render: true, Pages: "1,3", ImageMaxEdge: 600})
	if len(page.Images) != 2 || page.Images[1].Page != 3 || !strings.Contains(page.Text, "Times Roman") {
		t.Fatalf("%d images, text %.80q", len(page.Images), page.Text)
	}
	for _, p := range page.Images {
		img := decodeImage(t, p.Base64)
		if b := img.Bounds(); b.Dx() != p.Width || b.Dy() != p.Height || max(b.Dx(), b.Dy()) != 600 || ink(img) < 0.001 {
			t.Errorf("page %d: %v, said %d x %d, ink %.4f", p.Page, b, p.Width, p.Height, ink(img))
		}
	}
	turned := readAs[*PDF](t, corpusFile(t, "pdf/qpdf_rotated.pdf"), Options{Render: true}).Images[0]
	if turned.Width <= turned.Height {
		t.Errorf("a page turned by 90 degrees is %d x %d", turned.Width, turned.Height)
	}
	// An empty page is not a scan: there is nothing to look at.
	empty := readAs[*PDF](t, corpusFile(t, "pdf/gs_empty_pages.pdf"), Options{})
	if len(empty.Images) != 0 || !slices.Equal(empty.PagesWithoutText, []int{1, 3}) || !strings.Contains(empty.Text, "second page") {
		t.Errorf("empty pages: %d images, without text %v", len(empty.Images), empty.PagesWithoutText)
	}
}

func TestPDFOddText(t *testing.T) {
	odd := readAs[*PDF](t, corpusFile(t, "pdf/gs_odd.pdf"), Options{})
	for _, line := range []string{"Spaced out letters stay words.", "A slanted line.", "Up along the margin.", "Bold by drawing twice."} {
		if !strings.Contains(odd.Text, line) {
			t.Errorf("%q is not in %q", line, odd.Text)
		}
	}
	form := madePDF("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /XObject << /X 6 0 R >> >> >>", madeStream("", "q 1 0 0 1 0 100 cm /X Do Q"), madeFont,
		madeStream("/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >>", "BT /F1 12 Tf 72 500 Td [(Words in) -300 (a form)] TJ ET"))
	if p := readAs[*PDF](t, form, Options{}); !strings.Contains(p.Text, "Words in a form") {
		t.Errorf("text in a form: %q", p.Text)
	}
	late := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n"), corpusFile(t, "pdf/gs_standard.pdf")...)
	if p := readAs[*PDF](t, late, Options{}); !strings.Contains(p.Text, "Courier keeps") {
		t.Errorf("a mark within the first KB: %q", p.Text)
	}
	if c, err := readBytes(t, []byte("# Notes\nA file that begins with %PDF-1.4 is a PDF.\n"), Options{}); err != nil || c.Kind() != "text" {
		t.Errorf("a text about PDFs: %v %v", c, err)
	}
}

func TestPDFSaysWhatIsWrong(t *testing.T) {
	var encrypted *Encrypted
	if _, err := readBytes(t, corpusFile(t, "pdf/qpdf_password.pdf"), Options{}); !errors.As(err, &encrypted) {
		t.Errorf("a password: %v", err)
	}
	var damaged *Damaged
	for _, bad := range [][]byte{[]byte("%PDF-1.7\n"), append([]byte("%PDF-1.7\n"), make([]byte, 5000)...)} {
		if _, err := readBytes(t, bad, Options{}); !errors.As(err, &damaged) || damaged.Hint() == "" {
			t.Errorf("damage: %v", err)
		}
	}
	big := append(bytes.Repeat([]byte("%"+strings.Repeat("x", 1023)), 11<<10), onePage("BT /F1 9 Tf 9 9 Td (far) Tj ET")...)
	copy(big, "%PDF-1.5\n")
	var large *TooLarge
	if _, err := readBytes(t, big, Options{}); !errors.As(err, &large) || !large.Windowed {
		t.Errorf("11 MB without pages: %v", err)
	}
	if _, err := readBytes(t, big, Options{Pages: "1"}); errors.As(err, &large) {
		t.Errorf("11 MB with pages: %v", err)
	}
}

func sourceOf(b []byte) Source { return Source{R: bytes.NewReader(b), Size: int64(len(b))} }

// guarded reads under a deadline and reports what came back and whether the time was kept.
func guarded(t *testing.T, r *Readers, raw []byte, o Options, deadline time.Duration) (Content, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	start := time.Now()
	c, err := r.Read(ctx, sourceOf(raw), o)
	if took := time.Since(start); took > deadline+5*time.Second {
		t.Errorf("took %s under a deadline of %s", took, deadline) // a hang, not a speed claim
	}
	var ours Hinter
	if err != nil && !errors.As(err, &ours) {
		t.Errorf("an error without a next move: %v", err)
	}
	return c, err
}

func TestHostilePDFs(t *testing.T) {
	files := hostilePDFs()
	const hello = "Hello hostile world"
	readable := map[string]string{"two billion pages": hello, "negative count": hello, "nested in a value": hello, "length of a loop": hello,
		"no end": hello, "huge page": hello, "many pages": "This is page 20."}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		t.Run(name, func(t *testing.T) {
			deadline := time.Second // some take what there is
			if readable[name] != "" {
				deadline = time.Minute // however busy the machine: that it is read is what is asked
			}
			c, err := guarded(t, testReaders(t), files[name], Options{}, deadline)
			text := ""
			if p, ok := c.(*PDF); ok {
				text = p.Text
			}
			t.Logf("%v %.60q", err, text)
			if want := readable[name]; !strings.Contains(text, want) {
				t.Errorf("%q is not in %.200q", want, text)
			}
			// After each of them the next file is read.
			if p, err := readBytes(t, onePage("BT /F1 12 Tf 72 700 Td (still here) Tj ET"), Options{}); err != nil || !strings.Contains(p.(*PDF).Text, "still here") {
				t.Fatalf("the engine did not recover: %v", err)
			}
		})
	}
}

// A bomb costs the sandbox its memory, never ours, and a deadline in the middle of a page is kept.
func TestPDFDeadline(t *testing.T) {
	slow := madePDF("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>",
		madeStream("/Filter /FlateDecode", deflated(bytes.Repeat([]byte("0 0 m 500 500 l 0 500 l 3 w S\n"), 8_000_000))))
	r := opened(t, testConfig())
	if _, err := guarded(t, r, onePage("BT /F1 9 Tf (x) Tj ET"), Options{}, 60*time.Second); err != nil {
		t.Fatal(err)
	}
	var limit *Limit
	if _, err := guarded(t, r, slow, Options{Render: true}, 500*time.Millisecond); !errors.As(err, &limit) || limit.Resource != "time" {
		t.Errorf("half a second: %v", err)
	}
	if p, err := guarded(t, r, onePage("BT /F1 12 Tf 72 700 Td (after) Tj ET"), Options{}, 60*time.Second); err != nil || !strings.Contains(p.(*PDF).Text, "after") {
		t.Errorf("after the deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Read(ctx, sourceOf(slow), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The pages that were done when the time was over are given, and the way to the others.
func TestPDFDeadlineKeepsPages(t *testing.T) {
	page := "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 8 0 R >> >> >>"
	raw := madePDF("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R 4 0 R 5 0 R] /Count 3 >>",
		fmt.Sprintf(page, 6), fmt.Sprintf(page, 7), fmt.Sprintf(page, 6), madeStream("", "BT /F1 12 Tf 72 700 Td (in time) Tj ET"),
		madeStream("/Filter /FlateDecode", deflated(bytes.Repeat([]byte("0 0 m 500 500 l 0 500 l 3 w S\n"), 8_000_000))), madeFont)
	testReaders(t).pdfs.Ready(t.Context())
	for deadline := 2 * time.Second; ; deadline *= 2 {
		c, err := guarded(t, testReaders(t), raw, Options{Render: true}, deadline)
		p, ok := c.(*PDF)
		if (err != nil || ok && p.RenderedPages == 0) && deadline < 15*time.Second {
			continue // a machine so busy that not even the first page was done
		}
		if !ok || !strings.Contains(p.Text, "in time") || p.RenderedPages != 1 || !p.Truncated || p.NextPages != "2-3" || !strings.Contains(p.Note, "time was over") {
			t.Errorf("%v %+v", err, c)
		}
		return
	}
}

// A count of pages that is a lie must not send a model through thousands of calls without a word.
func TestPDFPagesThatAreNotThere(t *testing.T) {
	raw := madePDF("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 100000 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>", madeStream("", ""))
	if p := readAs[*PDF](t, raw, Options{}); !strings.Contains(p.Note, "fewer pages than it says") || len(p.PagesFailed) < 5 {
		t.Errorf("failed %v, %q", p.PagesFailed, p.Note)
	}
}

func TestPDFsSideBySide(t *testing.T) {
	raw := corpusFile(t, "pdf/gs_standard.pdf")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if c, err := testReaders(t).Read(context.Background(), sourceOf(raw), Options{}); err != nil || !strings.Contains(c.(*PDF).Text, "AVATAR") {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
}

// Mutated files: bytes changed, cut out, doubled, the end cut off.
func TestMutatedPDFs(t *testing.T) {
	names, _ := filepath.Glob(filepath.Join(corpusDir, "pdf", "*.pdf"))
	names = slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, "100pages") || strings.Contains(n, "password") })
	rng := rand.New(rand.NewPCG(11, 5))
	read, refused := 0, map[string]int{}
	for i := range *mutations {
		var raw []byte
		switch k := i % (len(names) + 4); {
		case k < len(names):
			raw = corpusFile(t, "pdf/"+filepath.Base(names[k]))
		case k%2 == 0:
			raw = formPDF()
		default:
			raw = notesPDF()
		}
		o := Options{ImageMaxEdge: 400, Render: i%3 == 0} // forms are drawn too
		c, err := guarded(t, testReaders(t), mutate(rng, raw), o, 15*time.Second)
		if err != nil {
			refused[err.Error()]++
		} else if _, ok := c.(*PDF); ok {
			read++
		}
	}
	t.Logf("of %d: %d read, refused %v", *mutations, read, refused)
	if read < *mutations/4 {
		t.Errorf("only %d of %d were read: the mutations or the engine are too rough to prove anything", read, *mutations)
	}
}

func mutate(rng *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	switch rng.IntN(6) {
	case 0:
		return b[:rng.IntN(len(b))]
	case 1:
		at := rng.IntN(len(b))
		return slices.Delete(b, at, min(len(b), at+1+rng.IntN(500)))
	case 2:
		at := rng.IntN(len(b))
		return slices.Insert(b, at, bytes.Clone(b[at:min(len(b), at+1+rng.IntN(2000))])...)
	case 3: // numbers: lengths, offsets, counts
		for range 1 + rng.IntN(20) {
			if i := bytes.IndexAny(b[rng.IntN(len(b)):], "0123456789"); i >= 0 {
				b[i] = '0' + byte(rng.IntN(10))
			}
		}
		return b
	}
	for range 1 + rng.IntN(200) {
		b[rng.IntN(len(b))] = byte(rng.IntN(256))
	}
	return b
}

// An engine that does not start is the operator's matter.
func TestEngineThatDoesNotStart(t *testing.T) {
	r, err := New(testConfig())
	must(t, err)
	r.pdfs.Close()
	var un *Unsupported
	if c, err := r.Read(context.Background(), sourceOf(onePage("")), Options{}); !errors.As(err, &un) || !strings.Contains(un.Why, "engine does not start") {
		t.Errorf("%+v %v", c, err)
	}
}
