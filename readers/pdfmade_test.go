package readers

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// madePDF writes a PDF from numbered object bodies, the first of which is the catalog.
func madePDF(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.5\n")
	at := make([]int, len(objects))
	for i, o := range objects {
		at[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, a := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", a)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, xref)
	return b.Bytes()
}

const madeFont = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"

func madeStream(dict, body string) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", dict, len(body), body)
}

// onePage is a page with this content stream, which may use the font /F1.
func onePage(content string) []byte {
	return madePDF("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		madeStream("", content), madeFont)
}

func deflated(body []byte) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(body)
	w.Close()
	return b.String()
}

// hostilePDFs are the files that made engines spin, trap or eat memory.
func hostilePDFs() map[string][]byte {
	const catalog = "<< /Type /Catalog /Pages 2 0 R >>"
	text := "BT /F1 12 Tf 72 700 Td (Hello hostile world) Tj ET"
	page := func(contents, more string) string {
		return "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents " + contents + " /Resources << /Font << /F1 5 0 R >> " + more + " >> >>"
	}
	whole := onePage(text)
	m := map[string][]byte{
		"page tree loop":     madePDF(catalog, "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"),
		"two billion pages":  madePDF(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 2000000000 >>", page("4 0 R", ""), madeStream("", text), madeFont),
		"negative count":     madePDF(catalog, "<< /Type /Pages /Kids [3 0 R] /Count -5 >>", page("4 0 R", ""), madeStream("", text), madeFont),
		"deep page tree":     deepTree(3000),
		"form draws itself":  madePDF(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page("4 0 R", "/XObject << /X 6 0 R >>"), madeStream("", "/X Do"), madeFont, madeStream("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>", "/X Do /X Do")),
		"billion drawings":   laughs(12),
		"bomb":               madePDF(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page("4 0 R", ""), madeStream("/Filter /FlateDecode", deflated(bytes.Repeat([]byte("0 0 m 1 1 l S\n"), 6_000_000))), madeFont),
		"bomb in a bomb":     madePDF(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page("4 0 R", ""), madeStream("/Filter [/FlateDecode /FlateDecode]", deflated([]byte(deflated(make([]byte, 200<<20))))), madeFont),
		"nested arrays":      onePage(strings.Repeat("[", 2_000_000) + text),
		"nested in a value":  madePDF(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 /X "+strings.Repeat("[", 500_000)+strings.Repeat("]", 500_000)+" >>", page("4 0 R", ""), madeStream("", text), madeFont),
		"content is missing": madePDF(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page("99 0 R", ""), "null", madeFont),
		"length of a loop":   madePDF(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page("4 0 R", ""), "<< /Length 4 0 R >>\nstream\n"+text+"\nendstream", madeFont),
		"huge page":          bytes.Replace(whole, []byte("612 792"), []byte("9999999 9999999"), 1),
		"page of no size":    bytes.Replace(whole, []byte("612 792"), []byte("0 0"), 1),
		"half":               whole[:len(whole)/2],
		"no end":             whole[:bytes.LastIndex(whole, []byte("startxref"))],
		"only the mark":      []byte("%PDF-1.7\n"),
		"mark and noise":     append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte{0xff, 0, 1, '('}, 50_000)...),
		"many pages":         manyPages(1500),
	}
	return m
}

func deepTree(n int) []byte {
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>"}
	for i := range n {
		objects = append(objects, fmt.Sprintf("<< /Type /Pages /Kids [%d 0 R] /Count 1 >>", i+3))
	}
	return madePDF(append(objects, "<< /Type /Page /MediaBox [0 0 9 9] >>")...)
}

// laughs draws a form that draws ten forms, and so on, n deep.
func laughs(n int) []byte {
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>", madeStream("", "/X Do")}
	for i := range n {
		body := strings.Repeat("/X Do ", 10)
		if i == n-1 {
			body = "0 0 m 5 5 l S"
		}
		objects = append(objects, madeStream(fmt.Sprintf("/Type /XObject /Subtype /Form /BBox [0 0 99 99] /Resources << /XObject << /X %d 0 R >> >>", i+6), body))
	}
	return madePDF(append(objects, "null")...)
}

func manyPages(n int) []byte {
	var kids strings.Builder
	for i := range n {
		fmt.Fprintf(&kids, "%d 0 R ", i*2+4)
	}
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids.String(), n), madeFont}
	for i := range n {
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>", i*2+5),
			madeStream("", fmt.Sprintf("BT /F1 12 Tf 72 700 Td (This is page %d.) Tj ET", i+1)))
	}
	return madePDF(objects...)
}
