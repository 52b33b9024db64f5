package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/tools"
)

// What Read shows of a document cannot be found in its bytes. Edit says so; it does not send the model back to Read for a text that can never match.
func TestEditRefusesWhatIsShownFromOtherBytes(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	for _, name := range []string{"document/letter.docx", "document/sheet.ods", "pdf/office_letter.pdf", "image/rgb.png"} {
		raw, err := os.ReadFile("../testdata/readers/" + name)
		if err != nil {
			t.Fatal(err)
		}
		file := write(t, filepath.Join(root, filepath.Base(name)), string(raw))
		// The second one is in the bytes, by chance: to replace it would damage the file.
		for _, old := range []string{"any text that Read shows", string(raw[:4])} {
			for _, tool := range []string{"Edit", "MultiEdit"} {
				args := map[string]any{"file_path": file, "old_string": old, "new_string": "x", "replace_all": true}
				if tool == "MultiEdit" {
					args = map[string]any{"file_path": file, "edits": []any{map[string]any{"old_string": old, "new_string": "x"}}}
				}
				p := call(t, s, tool, args)
				if p.Kind() != tools.KindUnsupported || !strings.Contains(p.Text(), "not its bytes") || content(t, file) != string(raw) {
					t.Errorf("%s of %s: %s", tool, name, p.Text())
				}
			}
		}
	}
}
