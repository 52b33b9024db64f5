package readers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tablePages is how many pages of a document count.
const tablePages = 20

// TestTablePDF compares other people's PDFs with pdftotext: the share of its words that Read gives (recall), the share of Read's that it
// has (precision), and the share of its pairs of words that stand side by side (order). Of the three modes of pdftotext
// each file counts with the best one. The last columns say how far the modes of pdftotext agree with one another.
func TestTablePDF(t *testing.T) {
	if *tables == "" {
		t.Skip("SKIPPED: -readers.tables names no files")
	}
	program, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip("SKIPPED: pdftotext is not installed")
	}
	t.Logf("| set | files | pages | recall | precision | order | below .9 | refused | pdftotext: recall | order |")
	for _, set := range []string{"a", "b"} {
		names, _ := filepath.Glob(filepath.Join(*tables, "pdf", set, "*.pdf"))
		var files, pages, below, refused, sum1, precision, sum2, modes1, modes2 float64
		for _, name := range names {
			var modes [][]string
			for _, mode := range []string{"-raw", "-layout", "-q"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // there are bombs
				out, err := exec.CommandContext(ctx, program, "-q", mode, "-enc", "UTF-8", "-l", "20", name, "-").Output()
				cancel()
				if all := words(strings.ReplaceAll(string(out), "-\n", "")); err == nil && len(all) >= 20 {
					modes = append(modes, all)
				}
			}
			raw, err := os.ReadFile(name)
			if err != nil || len(modes) < 3 {
				continue
			}
			got, n, err := firstWords(t, raw)
			if err != nil {
				t.Logf("refused: %s: %v", filepath.Base(name), err)
				refused++
				continue
			}
			best := func(f func(mode []string) float64) float64 {
				return max(f(modes[0]), f(modes[1]), f(modes[2]))
			}
			r := best(func(want []string) float64 { return recall(want, got, 1) })
			p := best(func(want []string) float64 { return recall(got, want, 1) })
			o := best(func(want []string) float64 { return recall(want, got, 2) })
			files, pages, sum1, precision, sum2 = files+1, pages+float64(n), sum1+r, precision+p, sum2+o
			modes1 += max(recall(modes[1], modes[0], 1), recall(modes[2], modes[0], 1))
			modes2 += max(recall(modes[1], modes[0], 2), recall(modes[2], modes[0], 2))
			if r < .9 {
				below++
			}
			if r < .97 || o < .9 {
				t.Logf("%-70s recall %.3f precision %.3f order %.3f of %d words", filepath.Base(name), r, p, o, len(modes[0]))
			}
		}
		t.Logf("| %s | %.0f | %.0f | %.3f | %.3f | %.3f | %.0f | %.0f | %.3f | %.3f |", set, files, pages, sum1/files, precision/files, sum2/files, below, refused, modes1/files, modes2/files)
	}
}

// firstWords reads the first pages of a document, until there are no more or time is up for one of them.
func firstWords(t *testing.T, raw []byte) (all []string, pages int, err error) {
	var text strings.Builder
	for ask := "1-20"; ; {
		c, err := readBytes(t, raw, Options{Pages: ask, MaxBytes: 4 << 20, ImageMaxEdge: 100})
		if err != nil {
			return nil, 0, err
		}
		p, ok := c.(*PDF)
		if !ok {
			text, _ := c.(*Text)
			if text == nil {
				return nil, 0, fmt.Errorf("%T", c)
			}
			return words(text.Content), 1, nil
		}
		for _, line := range strings.Split(p.Text, "\n") {
			if !strings.HasPrefix(line, "--- Page ") {
				text.WriteString(line + "\n")
			}
		}
		pages += p.RenderedPages
		next, _ := parsePages(p.NextPages, p.Pages)
		next = slices.DeleteFunc(next, func(n int) bool { return n > tablePages })
		if ask = pageList(next); ask == "" || p.NextPages == "" || p.NextColumn > 0 {
			return words(strings.ReplaceAll(text.String(), "-\n", "")), pages, nil
		}
	}
}
