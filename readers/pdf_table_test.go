package readers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// tablePages is how many pages of a document count.
const tablePages = 20

// formNames matches what Read says of form fields beside their values.
var formNames = regexp.MustCompile(`(?m)^\[form\] (empty or not checked: .*$|[^:\n]*: )`)

// TestTablePDF compares other people's PDFs with pdftotext: the share of its words that Read gives (recall), the share of Read's that it
// has (precision), and the share of its pairs of words that stand side by side (order). Precision and order are those of the page's words:
// without the names of the form fields, which no page shows. Of the three modes of pdftotext each file counts with the best one. The last
// columns say how far the modes of pdftotext agree with one another.
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
		var all, plain row // plain have no form
		names, _ := filepath.Glob(filepath.Join(*tables, "pdf", set, "*.pdf"))
		for _, name := range names {
			var modes [][]string
			for _, mode := range []string{"-raw", "-layout", "-q"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // there are bombs
				out, err := exec.CommandContext(ctx, program, "-q", mode, "-enc", "UTF-8", "-l", fmt.Sprint(tablePages), name, "-").Output()
				cancel()
				all := words(strings.ReplaceAll(string(out), "-\n", ""))
				if err != nil || len(all) < 20 {
					break
				}
				modes = append(modes, all)
			}
			if len(modes) < 3 {
				continue
			}
			raw, err := os.ReadFile(name)
			must(t, err)
			text, n, err := firstPages(t, raw)
			if err != nil {
				t.Logf("refused: %s: %v", filepath.Base(name), err)
				all.refused++
				continue
			}
			got := words(strings.ReplaceAll(text, "-\n", ""))
			shown := words(strings.ReplaceAll(formNames.ReplaceAllString(text, ""), "-\n", ""))
			best := func(f func(mode []string) float64) float64 {
				return max(f(modes[0]), f(modes[1]), f(modes[2]))
			}
			one := row{files: 1, pages: n,
				recall:    best(func(want []string) float64 { return recall(want, got, 1) }),
				precision: best(func(want []string) float64 { return recall(shown, want, 1) }),
				order:     best(func(want []string) float64 { return recall(want, shown, 2) }),
				modes1:    max(recall(modes[1], modes[0], 1), recall(modes[2], modes[0], 1)),
				modes2:    max(recall(modes[1], modes[0], 2), recall(modes[2], modes[0], 2))}
			if one.recall < .9 {
				one.below = 1
			}
			if one.recall < .97 || one.order < .9 {
				t.Logf("%-70s recall %.3f precision %.3f order %.3f of %d words", filepath.Base(name), one.recall, one.precision, one.order, len(modes[0]))
			}
			all.add(one)
			if !strings.Contains(text, "\n[form] ") {
				plain.add(one)
			}
		}
		t.Log(all.line(set))
		t.Log(plain.line(set + " without forms"))
	}
}

// row is the sum of some files.
type row struct {
	files, pages, below, refused             int
	recall, precision, order, modes1, modes2 float64
}

func (r *row) add(o row) {
	r.files, r.pages, r.below = r.files+o.files, r.pages+o.pages, r.below+o.below
	r.recall, r.precision, r.order, r.modes1, r.modes2 = r.recall+o.recall, r.precision+o.precision, r.order+o.order, r.modes1+o.modes1, r.modes2+o.modes2
}

func (r *row) line(name string) string {
	n := float64(max(r.files, 1))
	return fmt.Sprintf("| %s | %d | %d | %.3f | %.3f | %.3f | %d | %d | %.3f | %.3f |", name, r.files, r.pages, r.recall/n, r.precision/n, r.order/n, r.below, r.refused, r.modes1/n, r.modes2/n)
}

// firstPages reads the first pages of a document.
func firstPages(t *testing.T, raw []byte) (all string, pages int, err error) {
	var text strings.Builder
	for ask := "1-20"; ; {
		c, err := readBytes(t, raw, Options{Pages: ask, MaxBytes: 4 << 20, ImageMaxEdge: 100})
		if err != nil {
			return "", 0, err
		}
		p, ok := c.(*PDF)
		if !ok {
			text, _ := c.(*Text)
			if text == nil {
				return "", 0, fmt.Errorf("%T", c)
			}
			return text.Content, 1, nil
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
			return text.String(), pages, nil
		}
	}
}
