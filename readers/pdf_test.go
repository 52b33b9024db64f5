package readers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const corpusDir = "../testdata/readers"

func corpusFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(corpusDir, name))
	must(t, err)
	return b
}

// words are the units that two engines can agree on: runs of letters and digits, in one form. Ideographs are words each, because engines differ in
// where they put blanks between them.
func words(s string) []string {
	s = strings.ReplaceAll(norm.NFKC.String(s), "\u00ad", "")
	var out []string
	from := -1
	flush := func(to int) {
		if from >= 0 {
			out = append(out, strings.ToLower(s[from:to]))
			from = -1
		}
	}
	for i, r := range s {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			flush(i)
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if from < 0 {
				from = i
			}
		default:
			flush(i)
		}
	}
	flush(len(s))
	return out
}

// recall is the part of want's n-grams that got has, as multisets.
func recall(want, got []string, n int) float64 {
	if len(want) < n {
		return 1
	}
	have := map[string]int{}
	for i := range max(len(got)-n+1, 0) {
		have[strings.Join(got[i:i+n], " ")]++
	}
	hit := 0
	for i := range len(want) - n + 1 {
		g := strings.Join(want[i:i+n], " ")
		if have[g] > 0 {
			have[g]--
			hit++
		}
	}
	return float64(hit) / float64(len(want)-n+1)
}

// pdfWords reads all of a document, twenty pages a call.
func pdfWords(t *testing.T, raw []byte) []string {
	t.Helper()
	var all strings.Builder
	for pages := ""; ; {
		p := readAs[*PDF](t, raw, Options{Pages: pages, MaxBytes: 4 << 20})
		for _, line := range strings.Split(p.Text, "\n") {
			if !strings.HasPrefix(line, "--- Page ") {
				all.WriteString(line + "\n")
			}
		}
		if pages = p.NextPages; pages == "" {
			return words(strings.ReplaceAll(all.String(), "-\n", ""))
		}
	}
}

// TestPDFWordsAgreeWithPdftotext measures our reader against pdftotext, whose texts lie beside the PDFs, as the mean over the corpus.
func TestPDFWordsAgreeWithPdftotext(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(corpusDir, "pdf", "*.txt"))
	if err != nil || len(names) < 15 {
		t.Fatalf("%v: the corpus has %d expected texts", err, len(names))
	}
	sum1, sum2, n := 0.0, 0.0, 0.0
	for _, name := range names {
		if testing.Short() && strings.Contains(name, "100pages") {
			continue
		}
		expected, err := os.ReadFile(name)
		must(t, err)
		want := words(strings.ReplaceAll(string(expected), "-\n", ""))
		if len(want) == 0 {
			continue // a scan
		}
		raw, err := os.ReadFile(strings.TrimSuffix(name, ".txt") + ".pdf")
		must(t, err)
		got := pdfWords(t, raw)
		r1, r2 := recall(want, got, 1), recall(want, got, 2)
		t.Logf("%-24s words %.3f order %.3f precision %.3f", filepath.Base(name), r1, r2, recall(got, want, 1))
		if r1 < 0.95 {
			t.Errorf("%s: word recall %.3f", filepath.Base(name), r1)
		}
		sum1, sum2, n = sum1+r1, sum2+r2, n+1
	}
	t.Logf("mean of %.0f: words %.4f order %.4f", n, sum1/n, sum2/n)
	if sum1/n < 0.99 || sum2/n < 0.92 {
		t.Errorf("mean word recall %.4f and order %.4f, want 0.99 and 0.92", sum1/n, sum2/n)
	}
}

func TestPDFSightOfPages(t *testing.T) {
	p := readAs[*PDF](t, manyPages(30), Options{Pages: "2,4-5"})
	if got := fmt.Sprint(p.Whole, " ", p.Unit, " ", p.Total, " ", p.Shown); got != "false page 30 [{2 2} {4 5}]" {
		t.Errorf("of 30 pages: %s", got)
	}
}

// The order of words is that of the text however the page lies: drawn in each direction, displayed in each.
func TestPDFOrderOfTurnedPages(t *testing.T) {
	const want = "First line of the page\nSecond line follows here\nThird line ends it\n"
	for _, rotate := range []int{0, 90, 180, 270} {
		for _, matrix := range []string{"1 0 0 1 100 700", "0 1 -1 0 300 50", "-1 0 0 -1 500 300", "0 -1 1 0 100 700"} {
			raw := madePDF("<< /Type /Catalog /Pages 2 0 R >>", fmt.Sprintf("<< /Type /Pages /Kids [3 0 R] /Count 1 /Rotate %d >>", rotate),
				"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
				madeStream("", "BT /F1 12 Tf "+matrix+" Tm 14 TL (First line of the page) Tj T* (Second line follows here) Tj T* (Third line ends it) Tj ET"), madeFont)
			p := readAs[*PDF](t, raw, Options{})
			if _, text, _ := strings.Cut(p.Text, "\n"); text != want {
				t.Errorf("displayed at %d, drawn by %s:\n%s", rotate, matrix, text)
			}
		}
	}
	// The page is turned back before it is drawn.
	upright := readAs[*PDF](t, corpusFile(t, "pdf/latex_german.pdf"), Options{})
	turned := readAs[*PDF](t, corpusFile(t, "pdf/qpdf_rotated.pdf"), Options{Render: true, ImageMaxEdge: 300})
	if turned.Text != upright.Text || turned.Images[0].Width <= turned.Images[0].Height {
		t.Errorf("turned (%d x %d):\n%s\nupright:\n%s", turned.Images[0].Width, turned.Images[0].Height, turned.Text, upright.Text)
	}
}
