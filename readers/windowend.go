package readers

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"moltisfs/internal/text"
	"moltisfs/readers/unreadable"
)

// fromEnd renders the last lines of a file. Where it is too long to count (total is below zero) they are numbered from the end.
func (s *scan) fromEnd(t *Text, back, limit, mark, total int, o *Options) error {
	want := int(min(o.MaxBytes*2, 4<<20)) &^ 3
	from := max((s.size-int64(want))&^3, int64(mark))
	raw := make([]byte, s.size-from)
	n, err := readAt(s.f.R, raw, from)
	if err != nil {
		return err
	}
	raw = raw[:n]
	long := false // raw is from the middle of the last line
	if from > int64(mark) {
		if i := s.enc.Newline(raw); i >= 0 && i+s.enc.Unit < len(raw) {
			raw = raw[i+s.enc.Unit:]
		} else {
			long = true
		}
	}
	body, err := decode(s.enc, raw)
	if err != nil {
		return err
	}
	lines := countLines(body)
	body = body[text.SkipLines(body, max(lines-back, 0)):]
	if o.Column == 0 {
		body = body[text.SkipLines(body, fitTail(body, o)):]
	}
	lines = countLines(body)
	p := newPage(o, len(body)+lines*12)
	first := -lines
	if total >= 0 {
		first = total - lines + 1
	}
	if o.Column > 0 {
		if lines < back || long {
			return &BadRequest{Field: "column", Why: "the line begins too far from the end", Do: "Give its number from the beginning as offset, or search the file with Grep."}
		}
		t.StartLine = first
		t.column(body, o)
		t.Shown = nil
		t.goOn(first+1, lines > 1)
		t.TotalLines, t.TotalLinesAtLeast, t.Truncated = -1, max(s.index.last().line+1, lines), true
		return nil
	}
	t.StartLine = first
	if long {
		body = t.lineEnd(body, o)
	}
	for n := first; len(body) > 0 && p.lines < limit; n++ {
		line, rest, _ := bytes.Cut(body, newline)
		if !p.add(n, line, false) {
			break
		}
		body = rest
	}
	t.finish(p, t.StartLine)
	t.Changed, t.ChangedBelow = s.f.grown, s.f.grown
	if total >= 0 {
		t.TotalLines, t.Total = Count(total), total
		t.goOn(total+1, false)
		t.Truncated = t.Truncated || long
		if long {
			t.Shown = nil
		}
		return nil
	}
	t.Shown = nil // they have no numbers
	t.TotalLines, t.TotalLinesAtLeast = -1, max(s.index.last().line+1, lines)
	t.goOn(-lines+p.lines, p.lines < lines)
	t.Truncated = true
	return nil
}

// lineEnd cuts the end of the last line to what is shown of a long one.
func (t *Text) lineEnd(body []byte, o *Options) []byte {
	body = bytes.TrimSuffix(bytes.TrimSuffix(body, newline), []byte{'\r'})
	room := max(int(o.MaxBytes)-32, 1)
	if !utf8.Valid(body) {
		room = max(room/utf8.UTFMax, 1) // a bad byte is shown as more
	}
	at, chars := len(body), 0
	for at > 0 && chars < MaxLineChars {
		_, n := utf8.DecodeLastRune(body[:at])
		if len(body)-at+n > room {
			break
		}
		at -= n
		chars++
	}
	t.Note = fmt.Sprintf("Of the last line only its last %s are shown; where in it they begin was not counted.", unreadable.Plural(chars, "character"))
	return body[at:]
}
