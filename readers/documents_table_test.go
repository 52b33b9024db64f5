package readers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// otherReader prints the words of documents as Python's readers give them: the strings in the cells of a workbook, the paragraphs and tables of a docx.
const otherReader = `
import sys
def words(name):
    if name.endswith(".xlsx"):
        import openpyxl
        for sheet in openpyxl.load_workbook(name, data_only=True):
            for row in sheet.iter_rows():
                for cell in row:
                    if isinstance(cell.value, (str, int)) and cell.number_format in ("General", "@"):
                        yield str(cell.value)
    else:
        import docx
        from docx.table import Table
        from docx.text.paragraph import Paragraph
        def walk(parent, element):
            for child in element.iterchildren():
                if child.tag.endswith("}p"):
                    yield Paragraph(child, parent).text
                elif child.tag.endswith("}tbl"):
                    for row in Table(child, parent).rows:
                        for cell in row.cells:
                            yield from walk(cell, cell._tc)
        d = docx.Document(name)
        yield from walk(d, d.element.body)
sys.stdout.reconfigure(encoding="utf-8", errors="replace")
print("\n".join(words(sys.argv[1])))
`

// TestTableDocuments compares other people's web pages and office files with other readers: the tree of golang.org/x/net/html, Python's
// openpyxl and python-docx. It gives the share of their words that Read shows (recall), the share of Read's that they have (precision), and the share
// of their pairs of words that stand side by side (order).
func TestTableDocuments(t *testing.T) {
	if *tables == "" {
		t.Skip("SKIPPED: -readers.tables names no files")
	}
	python := "/usr/bin/python3" // to which Debian's packages belong
	if err := exec.Command(python, "-c", "import openpyxl, docx").Run(); err != nil {
		t.Log("SKIPPED: python3-openpyxl or python3-docx is not installed")
		python = ""
	}
	t.Logf("| kind | files | recall | precision | order | below .95 | only Read shows text | few words | refused |")
	for _, kind := range []string{"html/*.html", "office/*.docx", "office/*.xlsx", "office/*.pptx", "office/*.od[tsp]"} {
		names, _ := filepath.Glob(filepath.Join(*tables, "documents", kind))
		var files, sum1, precision, sum2, below, only, alone, refused float64
		for _, name := range names {
			raw, err := os.ReadFile(name)
			must(t, err)
			c, err := readBytes(t, raw, Options{Render: true, MaxBytes: 64 << 20, Limit: 1 << 30, AllowLarge: true})
			m, ok := c.(*Text)
			if err != nil || !ok || m.TotalLines < 0 {
				t.Logf("refused: %s: %v", filepath.Base(name), err)
				refused++
				continue
			}
			var want []string
			if strings.HasPrefix(kind, "html") {
				want = words(treeText(raw))
			} else if out, err := exec.Command(python, "-c", otherReader, name).Output(); err == nil {
				want = words(string(out))
			} else if m.TotalLines > 0 {
				only++
			}
			got := words(plainLines(m))
			if len(want) < 5 {
				alone++
				continue
			}
			r := recall(want, got, 1)
			files, sum1, precision, sum2 = files+1, sum1+r, precision+recall(got, want, 1), sum2+recall(want, got, 2)
			if r < .95 {
				below++
				t.Logf("%.3f of %d words: %s", r, len(want), filepath.Base(name))
			}
		}
		t.Logf("| %s | %.0f | %s | %.0f | %.0f | %.0f | %.0f |", kind, files, fmt.Sprintf("%.3f | %.3f | %.3f", sum1/max(files, 1), precision/max(files, 1), sum2/max(files, 1)), below, only, alone-only, refused)
	}
}

// treeText is the text of a page by the algorithm of browsers.
func treeText(raw []byte) string {
	_, _, content, err := decodeWhole(raw, "")
	if err != nil {
		return ""
	}
	root, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		return ""
	}
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch n.DataAtom {
		case atom.Style, atom.Script, atom.Noscript, atom.Template, atom.Svg, atom.Math, atom.Iframe:
			return
		}
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		switch n.DataAtom {
		case atom.A, atom.B, atom.I, atom.Em, atom.Strong, atom.Code, atom.Span, atom.Tt, atom.Var, atom.Font, atom.Sub, atom.Sup, atom.Kbd, atom.Samp, atom.Small, atom.U, atom.Cite, atom.Dfn, atom.Abbr:
		default:
			b.WriteByte(' ')
		}
	}
	walk(root)
	return b.String()
}
