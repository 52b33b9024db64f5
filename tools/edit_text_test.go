package tools_test

import (
	"strings"
	"testing"

	"moltisfs/tools"
)

// The text of an Edit shows the lines that it made where its caller can't know them: when old_string
// was not found as it was sent, in a preview, and when the result looks odd. The patch has one line
// of context.
func TestEditTellsTheChangeOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file string
		args       map[string]any
		shows      string // in the text, behind its first line
		patch      []string
	}{
		{"exact", "a\nb\nc\nd\n", map[string]any{"old_string": "c", "new_string": "C"}, "", []string{" b", "-c", "+C", " d"}},
		{"not as sent", "a\n\tb\nc\nd\n", map[string]any{"old_string": "a\n    b", "new_string": "a\n    B"},
			"     2→\tB", []string{" a", "-\tb", "+\tB", " c"}},
		{"preview", "a\nb\nc\nd\n", map[string]any{"old_string": "b\n", "new_string": "", "dry_run": true},
			"     1→a\n     2→c", []string{" a", "-b", " c"}},
		{"odd", "a\nx = [1]\nc\n", map[string]any{"old_string": "[1]", "new_string": "[1"}, "     2→x = [1\nlook at it again: its [] balanced before and don't now", []string{" a", "-x = [1]", "+x = [1", " c"}},
		{"at the end", "a\nb\nc", map[string]any{"old_string": "c", "new_string": "C"}, "",
			[]string{" b", "-c", `\ No newline at end of file`, "+C", `\ No newline at end of file`}},
		{"before the end", "a\nb\nc\nd", map[string]any{"old_string": "c", "new_string": "C"}, "",
			[]string{" b", "-c", "+C", " d", `\ No newline at end of file`}},
	} {
		s, root := suite(t, nil, tools.Options{})
		c.args["file_path"] = write(t, root+"/f", c.file)
		e, ok := call(t, s, "Edit", c.args).(*tools.Edit)
		if !ok || len(e.Patch) != 1 {
			t.Errorf("%s: %+v", c.name, e)
			continue
		}
		_, shown, _ := strings.Cut(e.Text(), "\n")
		if shown != c.shows {
			t.Errorf("%s: shows %q, want %q", c.name, shown, c.shows)
		}
		h, lines := e.Patch[0], strings.Split(strings.TrimSuffix(c.file, "\n"), "\n")
		if strings.Join(h.Lines, "\n") != strings.Join(c.patch, "\n") || lines[h.OldStart-1] != h.Lines[0][1:] || h.OldLines > len(lines) {
			t.Errorf("%s: patch %+v, want %q", c.name, h, c.patch)
		}
	}
}
