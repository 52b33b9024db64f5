package tools

import (
	"strings"
	"unicode/utf8"

	"moltisfs/internal/edit"
	"moltisfs/readers"
)

// shownOtherwise refuses an old_string that was probably taken from what Read shows of a file in
// place of its text; nil where it was not.
func shownOtherwise(path string, content []byte, encoding, old string,
	e *edit.NoMatchError) *Refusal {
	const untouched = "; the file is untouched"
	r := &Refusal{Reason: KindUnsupported}
	cause := "shown_decoded"
	switch readers.ShownDecoded(content, encoding) {
	case "email":
		r.Message = "old_string is not in the file: of an email whose text is encoded Read shows the " +
			"decoded text, which is not the file's bytes" + untouched
		r.Hint = "Read the source with render: false and take old_string from there."
		r.Next = &NextCall{"Read", map[string]any{"file_path": path, "render": false}}
	case "notebook":
		r.Message = "old_string is not in the file: of a notebook Read shows the cells, which are " +
			"written in another way in the file" + untouched
		r.Hint = "Use NotebookEdit, or read the source with encoding: utf-8 and take old_string from " +
			"there."
		r.Next = &NextCall{"Read", map[string]any{"file_path": path, "encoding": "utf-8"}}
	default:
		if e.Resend != "" && !e.Partial {
			return nil // it is in the file, written a little differently
		}
		sent := strings.TrimSpace(old)
		switch {
		case strings.ContainsRune(sent, utf8.RuneError) && !utf8.Valid(content):
			cause, r.Reason = "replacement_character", KindNoMatch
			r.Message = "old_string has U+FFFD, which Read shows in place of bytes that are no text in " +
				"that encoding: it is not in the file" + untouched
			r.Hint = "Take an old_string without U+FFFD from beside those bytes, or read and edit with " +
				"the encoding that the file is really in."
			if encoding != "" {
				r.Hint += " It was given here; left out, it is detected."
				r.Next = read(path)
			}
		case sent != "" && strings.Contains(readers.RenderedHTML(content, encoding), sent):
			r.Message = "old_string is not in the file: it is in the text that Read shows of HTML with " +
				"render: true, which is made from the source" + untouched
			r.Hint = "Read the source with render: false and take old_string from there."
			r.Next = &NextCall{"Read", map[string]any{"file_path": path, "render": false}}
		default:
			return nil
		}
	}
	r.Fields = struct {
		Cause string `json:"cause"`
	}{cause}
	return r
}
