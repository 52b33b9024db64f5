package tools_test

import (
	"archive/zip"
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

const fourCells = `{"cells":[
{"cell_type":"markdown","id":"c1","metadata":{},"source":["one"]},
{"cell_type":"code","id":"c2","metadata":{},"execution_count":1,"outputs":[{"output_type":"display_data","data":{"application/x-chart":{}},"metadata":{}}],"source":["two"]},
{"cell_type":"markdown","id":"c3","metadata":{},"source":["three"]},
{"cell_type":"markdown","id":"c4","metadata":{},"source":["four"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}
`

func mustRead(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true }

// A NotebookEdit holds nothing of the cell it takes away: the cell must have been shown, as cells or in the source.
func TestNotebookEditOfUnseenCells(t *testing.T) {
	for name, c := range map[string]struct {
		read   map[string]any // beside the path
		edit   map[string]any
		refuse bool
	}{
		"replace unseen": {map[string]any{"limit": 1}, map[string]any{"cell_id": "c3", "new_source": "x"}, true},
		"delete unseen":  {map[string]any{"limit": 1}, map[string]any{"cell_id": "c4", "edit_mode": "delete"}, true},
		"replace seen":   {map[string]any{"offset": 3, "limit": 1}, map[string]any{"cell_id": "c3", "new_source": "x"}, false},
		"insert":         {map[string]any{"limit": 1}, map[string]any{"cell_id": "c3", "edit_mode": "insert", "cell_type": "raw", "new_source": "x"}, false},
		// What is not shown of a cell's outputs does not matter.
		"outputs unseen": {map[string]any{"offset": 2, "limit": 1}, map[string]any{"cell_id": "c2", "new_source": "x"}, false},
		"begun only":     {map[string]any{"offset": 3, "column": 3}, map[string]any{"cell_id": "c3", "new_source": "x"}, true},
		"source seen":    {map[string]any{"encoding": "utf-8", "offset": 4, "limit": 1}, map[string]any{"cell_id": "c3", "new_source": "x"}, false},
		"other source":   {map[string]any{"encoding": "utf-8", "offset": 3, "limit": 1}, map[string]any{"cell_id": "c3", "new_source": "x"}, true},
		"all":            {map[string]any{}, map[string]any{"cell_id": "c4", "edit_mode": "delete"}, false},
	} {
		s, root := suite(t, mustRead, tools.Options{})
		file := write(t, filepath.Join(root, "n.ipynb"), fourCells)
		c.read["file_path"], c.edit["notebook_path"] = file, file
		call(t, s, "Read", c.read)
		p := call(t, s, "NotebookEdit", c.edit)
		if c.refuse != (p.Kind() == tools.KindMustRead) || c.refuse != (content(t, file) == fourCells) {
			t.Errorf("%s: %s", name, mustEncode(t, p))
		}
		if r, ok := p.(*tools.Refusal); ok && c.refuse {
			call(t, s, r.Next.Tool, r.Next.Args)
			if p := call(t, s, "NotebookEdit", c.edit); tools.Refused(p) {
				t.Errorf("%s, read as told: %s", name, mustEncode(t, p))
			}
		}
	}
}

// After a NotebookEdit the session knows the cells it knew, in their new places, and the one it wrote.
func TestNotebookEditKeepsWhatWasSeen(t *testing.T) {
	s, root := suite(t, mustRead, tools.Options{})
	file := write(t, filepath.Join(root, "n.ipynb"), fourCells)
	edit := func(id, mode string) tools.Payload {
		return call(t, s, "NotebookEdit", map[string]any{"notebook_path": file, "cell_id": id, "edit_mode": mode, "cell_type": "markdown", "new_source": "new"})
	}
	call(t, s, "Read", map[string]any{"file_path": file, "limit": 1})
	call(t, s, "Read", map[string]any{"file_path": file, "offset": 4})
	for _, step := range []struct {
		id, mode string
		refused  bool
	}{{"c1", "insert", false}, {"c4", "replace", false}, {"c3", "replace", true}, {"c1", "delete", false}, {"c3", "delete", true}, {"c2", "replace", true}, {"c4", "delete", false}} {
		if p := edit(step.id, step.mode); tools.Refused(p) != step.refused {
			t.Errorf("%s %s: %s", step.mode, step.id, mustEncode(t, p))
		}
	}
	over := map[string]any{"file_path": file, "content": "{}"} // the cells are: the new one, c2, c3
	p := call(t, s, "Write", over)
	r, ok := p.(*tools.Refusal)
	if !ok || p.Kind() != tools.KindMustRead || !strings.Contains(p.Text(), "1 of the 3 cells (not 2 to 3);") || r.Next == nil || r.Next.Args["offset"] != 2 {
		t.Errorf("%s", mustEncode(t, p))
	}
}

// Where an Edit moved the lines that were seen, reading is offered, and not only to overwrite blindly.
func TestWriteAfterAnEditThatMovesLines(t *testing.T) {
	s, root := suite(t, mustRead, tools.Options{})
	file := write(t, filepath.Join(root, "f.txt"), "a\nb\nc\nd\n")
	call(t, s, "Read", map[string]any{"file_path": file, "limit": 2})
	call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "a\n", "new_string": "a\na2\n"})
	p := call(t, s, "Write", map[string]any{"file_path": file, "content": "x"})
	if r, ok := p.(*tools.Refusal); !ok || p.Kind() != tools.KindMustRead || r.Next == nil || !strings.Contains(p.Text(), "none of the 5 lines as they are now") {
		t.Errorf("%s", mustEncode(t, p))
	}
}

// What is in a file and was not shown is not overwritten unasked, though all that can be shown was.
func TestWriteOverWhatCannotBeShown(t *testing.T) {
	docx := func(parts ...string) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := 0; i < len(parts); i += 2 {
			w, err := z.CreateHeader(&zip.FileHeader{Name: parts[i], Method: zip.Store})
			if err != nil {
				t.Fatal(err)
			}
			w.Write([]byte(parts[i+1]))
		}
		z.Close()
		return b.String()
	}
	s, root := suite(t, mustRead, tools.Options{})
	for name, raw := range map[string]string{
		"cells twice":    `{"cells":[{"cell_type":"raw","source":"PRECIOUS"}],"metadata":{},"nbformat":4,"nbformat_minor":5,"cells":[]}`,
		"cells and more": `{"cells":[{"cell_type":"raw","source":"x"}],"metadata":{},"nbformat":4,"nbformat_minor":5,"worksheets":["PRECIOUS"]}`,
		"cells folded":   `{"cells":[{"cell_type":"raw","source":"PRECIOUS"}],"metadata":{},"nbformat":4,"nbformat_minor":5,"Cells":[]}`,
		"source folded":  `{"cells":[{"cell_type":"raw","source":"PRECIOUS","\u017fource":""}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
		"output twice":   `{"cells":[{"cell_type":"code","source":"x","outputs":[{"output_type":"stream","text":"PRECIOUS","text":""}]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
		"only metadata":  `{"cells":[],"metadata":{"a":"PRECIOUS"},"nbformat":4,"nbformat_minor":5}`,
	} {
		file := write(t, filepath.Join(root, name+".ipynb"), raw)
		if p := call(t, s, "Read", map[string]any{"file_path": file}); !strings.Contains(p.Text(), "PRECIOUS") {
			t.Errorf("%s: Read does not show it: %s", name, mustEncode(t, p))
		}
	}
	free, there := suite(t, func(fs *config.FS) { fs.TrackReads = true }, tools.Options{})
	letter := write(t, filepath.Join(there, "l.docx"), docx("word/document.xml", `<w:document><w:body><w:p><w:r><w:t>kept</w:t></w:r></w:p></w:body></w:document>`, "x", strings.Repeat("\n", 20)))
	call(t, free, "Read", map[string]any{"file_path": letter})
	if p := call(t, free, "Write", map[string]any{"file_path": letter, "content": "x"}); !tools.Refused(p) || (strings.Contains(p.Text(), "lines were read") || p.(*tools.Refusal).Next != nil) {
		t.Errorf("there is no more to read: %s", mustEncode(t, p))
	}
	for name, raw := range map[string]string{
		"odd.ipynb":    `{"cells":[{"cell_type":"raw","source":"x","notes":"PRECIOUS"}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
		"deleted.docx": docx("word/document.xml", `<w:document><w:body><w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:delText>PRECIOUS</w:delText></w:r></w:del></w:p></w:body></w:document>`),
		"macros.docx":  docx("word/document.xml", `<w:document><w:body><w:p><w:r><w:t>kept</w:t></w:r></w:p></w:body></w:document>`, "word/vbaProject.bin", "x"),
		"tracked.odt": docx("mimetype", "application/vnd.oasis.opendocument.text", "content.xml", `<office:document-content><office:body><office:text><text:tracked-changes><text:changed-region><text:deletion><office:change-info>`+
			`<dc:creator>me</dc:creator></office:change-info><text:p>PREC<text:s/>IOUS</text:p></text:deletion></text:changed-region></text:tracked-changes><text:p>kept</text:p></office:text></office:body></office:document-content>`),
	} {
		file := write(t, filepath.Join(root, name), raw)
		p := call(t, s, "Read", map[string]any{"file_path": file})
		if said := map[string]string{"deleted.docx": "8 characters of tracked deletions", "tracked.odt": "8 characters of tracked deletions", "macros.docx": "macros", "odd.ipynb": "What is not shown"}[name]; !strings.Contains(p.Text(), said) {
			t.Errorf("%s: Read does not say %q: %s", name, said, mustEncode(t, p))
		}
		over := map[string]any{"file_path": file, "content": "gone"}
		if p := call(t, s, "Write", over); p.Kind() != tools.KindMustRead || content(t, file) != raw || !strings.Contains(p.Text(), "acknowledge") {
			t.Errorf("%s: %s", name, mustEncode(t, p))
		}
		over["acknowledge"] = true
		if p := call(t, s, "Write", over); tools.Refused(p) {
			t.Errorf("%s, acknowledged: %s", name, mustEncode(t, p))
		}
	}
}
