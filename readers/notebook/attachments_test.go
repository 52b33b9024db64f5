package notebook

import (
	"strings"
	"testing"
)

// nbformat 4 gives attachments to markdown and raw cells only: one that becomes a code cell must lose them, and says so.
func TestACodeCellHasNoAttachments(t *testing.T) {
	const cell = `{"attachments":{"a.png":{"image/png":"iVBORw0KGgo="},"b.png":{}},"cell_type":"markdown","id":"m","metadata":{},"source":"![a](attachment:a.png)"}`
	nb := []byte(`{"cells":[` + cell + `],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	for kind, want := range map[string]int{"code": 2, "raw": 0, "markdown": 0, "": 0} {
		r, err := Apply(nb, Edit{CellID: "m", CellType: kind, Source: "x = 1"})
		must(t, err)
		if kept := strings.Contains(string(r.Content), "attachments"); kept == (want > 0) || r.AttachmentsRemoved != want {
			t.Errorf("as %q: %d removed, kept %v: %s", kind, r.AttachmentsRemoved, kept, r.Content)
		}
	}
	odd := []byte(strings.Replace(string(nb), `{"a.png":{"image/png":"iVBORw0KGgo="},"b.png":{}}`, "[]", 1))
	if r, err := Apply(odd, Edit{CellID: "m", CellType: "code", Source: "x"}); err != nil || strings.Contains(string(r.Content), "attachments") {
		t.Errorf("attachments that are no object: %v", err)
	}
}
