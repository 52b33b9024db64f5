package tools_test

import (
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/tools"
)

// TestPatchIsBounded: however long the lines and many the places of a change are, its answer stays small and says what it leaves out.
func TestPatchIsBounded(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	for _, c := range []struct {
		name, line   string
		lines, hunks int
		truncated    bool
	}{
		{"long lines", strings.Repeat("y", 100<<10), 20, 0, true},
		{"escaped bytes", strings.Repeat("\x01", 10<<10), 1, 0, true},
		{"many lines", "", 401, 0, true},
		{"some lines", "", 150, 1, false},
		{"one long line", strings.Repeat("y", 10<<10), 1, 1, false},
	} {
		text := strings.Repeat("x"+c.line+"\n", c.lines)
		file := write(t, filepath.Join(root, strings.ReplaceAll(c.name, " ", "_")), text)
		call(t, s, "Read", map[string]any{"file_path": file, "limit": 1})
		p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "x", "new_string": "z", "replace_all": true})
		e, ok := p.(*tools.Edit)
		if !ok {
			t.Fatalf("%s: %s", c.name, p.Text())
		}
		if e.PatchTruncated != c.truncated || len(e.Patch) != c.hunks || e.Added != c.lines || e.Removed != c.lines {
			t.Errorf("%s: truncated %v, %d hunks, +%d -%d; want %v, %d, %d lines", c.name, e.PatchTruncated, len(e.Patch), e.Added, e.Removed, c.truncated, c.hunks, c.lines)
		}
		if n := len(mustEncode(t, p)); n > 64<<10 {
			t.Errorf("%s: the answer has %d bytes", c.name, n)
		}
		if strings.Contains(p.Text(), "patch") != c.truncated {
			t.Errorf("%s: the text is %.300s", c.name, p.Text())
		}
	}
}
