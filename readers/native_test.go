package readers

import (
	"fmt"
	"strings"
	"testing"
)

// The small engine shows all of what one operator draws, however many pieces the writer made of it.
func TestNativeLongArrays(t *testing.T) {
	var b, want strings.Builder
	b.WriteString("BT /F1 10 Tf 10 700 Td [")
	for i := range 500 {
		fmt.Fprintf(&b, "(w%d) -300 ", i)
		fmt.Fprintf(&want, "w%d ", i)
	}
	b.WriteString("] TJ ET")
	p := readAs[*PDF](t, onePage(b.String()), Options{PDFEngine: "native"})
	if got := strings.Join(strings.Fields(strings.TrimPrefix(p.Text, "--- Page 1 ---")), " ") + " "; got != want.String() || len(p.PagesFailed) > 0 {
		t.Errorf("%d of %d characters, failed %v", len(got), want.Len(), p.PagesFailed)
	}
	endless := readAs[*PDF](t, onePage("BT /F1 10 Tf 10 700 Td (first) Tj ["+strings.Repeat("1 ", contentOperands+1)+"] TJ ET"), Options{PDFEngine: "native"})
	if !strings.Contains(endless.Text, "first") || len(endless.PagesFailed) != 1 || endless.Whole {
		t.Errorf("a bound was reached without a word: %.80q, failed %v, whole %v", endless.Text, endless.PagesFailed, endless.Whole)
	}
}

func TestNativeKeepsTextAboutEncryption(t *testing.T) {
	const text = "the key /Encrypt in the trailer"
	if p := readAs[*PDF](t, onePage("BT /F1 10 Tf 10 700 Td ("+text+") Tj ET"), Options{PDFEngine: "native"}); !strings.Contains(p.Text, text) {
		t.Errorf("%q", p.Text)
	}
}
