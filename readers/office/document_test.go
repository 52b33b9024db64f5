package office

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"moltisfs/readers/unreadable"
)

// TestDocumentsUnpackSoMuch: the unpacked bytes of a document have one bound over all its parts.
func TestDocumentsUnpackSoMuch(t *testing.T) {
	var raw bytes.Buffer
	w := zip.NewWriter(&raw)
	for _, name := range []string{"a", "b"} {
		f, err := w.Create(name)
		must(t, err)
		f.Write([]byte(strings.Repeat(name, 100)))
	}
	must(t, w.Close())
	z, err := zip.NewReader(bytes.NewReader(raw.Bytes()), int64(raw.Len()))
	must(t, err)
	d := New(context.Background())
	d.parts = map[string]*zip.File{"a": z.File[0], "b": z.File[1]}
	d.spent = maxUnpacked - 150
	if _, err := d.part("a", 1000); err != nil {
		t.Error(err)
	}
	var limit *unreadable.Limit
	if _, err := d.part("b", 1000); !errors.As(err, &limit) || limit.Resource != "unpacked bytes" {
		t.Errorf("beyond the bound: %v", err)
	}
}

func FuzzHTML(f *testing.F) {
	f.Add("<html><body><h1>a</h1><table><tr><td>b|c</td></tr></table><ul><li>d<ol><li>e</ul><pre>f</pre><a href=x>g</a></body>")
	f.Add("<p>a<script>b</script><style>c</style><svg><p>d</svg>e<br>f&amp;&#x41;<td><li><pre><code>")
	f.Add(strings.Repeat("<div>", 500) + "x" + strings.Repeat("<ul><li>", 100))
	f.Fuzz(func(t *testing.T, page string) {
		d := New(context.Background())
		if err := d.HTML(strings.NewReader(page)); err != nil && err.Error() != "max buffer exceeded" {
			t.Fatalf("%v", err)
		}
		// Lists, headings and rows add marks, a bounded number for each tag.
		if len(d.out) > 80*len(page)+1000 {
			t.Errorf("%d bytes of page became %d", len(page), len(d.out))
		}
	})
}
