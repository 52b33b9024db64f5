package readers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"golang.org/x/text/transform"

	"moltisfs/internal/text"
	"moltisfs/readers/unreadable"
)

const (
	chunkBytes = 256 << 10
	// linePrefix is how much of a line is kept while streaming: enough for MaxLineChars in every encoding.
	linePrefix = MaxLineChars*4 + 192
	// countAhead is how far a window is followed to its file's end only to know the number of lines.
	countAhead = 16 << 20
	// tailCount is the same for a window that was asked for from the end, which has numbers only when the lines before it
	// are counted.
	tailCount = 64 << 20
	// lineSearch is how far the end of the last line of a window is looked for.
	lineSearch = 16 << 20
)

// scan reads one file for one window.
type scan struct {
	ctx   context.Context
	f     *file
	enc   *text.Encoding
	size  int64 // as first told; 1<<62 when the file does not say
	mark  int64 // bytes of the byte order mark
	buf   []byte
	total int       // lines in the file; -1 until its end was seen
	last  linePoint // the furthest line that is known to begin
	// follows says that a line is known to begin after the last one collected.
	follows bool
	// How far the file was walked through, for the answer when time runs out.
	at     linePoint
	column int
}

// linePoint is where a line begins. Lines count from 0 here.
type linePoint struct {
	line   int
	offset int64
}

// readWindow shows the window o of a file f that is too long to hold. It costs the way to the window, and the window.
func (r *Readers) readWindow(ctx context.Context, f *file, o *Options) (c Content, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Deadline)
	defer cancel()
	s := &scan{ctx: ctx, f: f, size: f.Size, total: -1}
	if s.size < 0 {
		s.size = 1 << 62
	}
	// The scratch buffer holds the head, which is needed no longer once the encoding is known.
	enc, mark, err := encodingOf(o.Encoding, trimPartial(f.head))
	if err != nil {
		return nil, err
	}
	certain := o.Encoding != "" || mark > 0 || asciiPrefix(f.head) < len(f.head)
	s.enc = enc.Encoding
	s.buf, s.mark = *f.scratch, int64(mark)
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) {
			c, err = nil, &OutOfTime{Line: s.at.line + 1, Column: s.column, Byte: s.at.offset, Size: f.Size}
		}
	}()

	t := &Text{}
	t.readAs(enc, mark)
	limit := o.lines()
	first := max(o.Offset, 1)
	if o.Tail || o.Offset < 0 {
		back := limit
		if o.Offset < 0 {
			back = -max(o.Offset, -1<<40)
		}
		if err := s.countToEnd(tailCount); err != nil {
			return nil, err
		}
		if s.total < 0 || o.Tail && s.size < 1<<62 {
			return t, s.fromEnd(t, back, limit, mark, o)
		}
		first = max(s.total-back+1, 1)
	}
	at, found, err := s.seek(first - 1)
	if err != nil {
		return nil, err
	}
	t.StartLine = first
	if !found {
		t.TotalLines = Count(s.total)
		return t, nil
	}
	if o.Column > 0 {
		err = s.columnAt(t, at, o)
	} else {
		err = s.linesAt(t, at, limit, certain, o)
	}
	if err != nil {
		return nil, err
	}
	return t, s.finish(t, first)
}

// trimPartial cuts a character that the end of the head may have split.
func trimPartial(head []byte) []byte {
	if i := bytes.LastIndexByte(head, '\n'); i > len(head)/2 {
		return head[:i+1]
	}
	return head
}

// finish counts what is left, if it is little, and fills in totals.
func (s *scan) finish(t *Text, first int) error {
	if err := s.countToEnd(countAhead); err != nil && !errors.Is(err, context.DeadlineExceeded) { // the window itself is at hand
		return err
	}
	next := first + t.RenderedLines
	if s.total >= 0 {
		t.TotalLines, t.Total = Count(s.total), s.total
		t.goOn(next, t.RenderedLines > 0 && next <= s.total)
		return nil
	}
	t.TotalLines, t.Total, t.TotalLinesAtLeast = -1, -1, max(s.last.line+1, next-1)
	more := s.follows || t.TotalLinesAtLeast >= next
	t.goOn(next, more)
	t.Truncated = true
	if more {
		t.TotalLinesAtLeast = max(t.TotalLinesAtLeast, next)
	} else if t.NextColumn == 0 {
		t.Note = fmt.Sprintf("Line %d does not end within %s; lines after it were not looked for.", next-1, unreadable.Bytes(lineSearch))
	}
	return nil
}

// read fills the buffer from the offset; it returns less only at the end.
func (s *scan) read(off int64, n int) ([]byte, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	n = int(min(int64(n), s.size-off))
	if n <= 0 {
		return nil, nil
	}
	m, err := readAt(s.f.R, s.buf[:n], off)
	if m < n && s.f.Size >= 0 {
		s.f.grown, s.size = true, off+int64(m)
	}
	return s.buf[:m], err
}

// seek finds where a line begins (from 0). Not found: the file ends before it, and the total is known.
func (s *scan) seek(line int) (at int64, found bool, err error) {
	if s.total >= 0 && line >= s.total {
		return 0, false, nil
	}
	s.last = linePoint{offset: s.mark}
	if line == 0 && s.size > s.mark {
		return s.mark, true, nil
	}
	at, err = s.walk(line)
	return at, at >= 0, err
}

// walk goes from the last known line to another, and gives its offset; -1 where the file ends before it. Then the total is known.
func (s *scan) walk(line int) (int64, error) {
	off, ended := max(s.last.offset, s.mark), true // ended: the byte before off was a newline
	p := s.last.line
	for {
		b, err := s.read(off, chunkBytes)
		if err != nil {
			s.at = linePoint{p, off}
			return -1, err
		}
		if len(b) == 0 {
			s.total = p
			if !ended {
				s.total++
			}
			return -1, nil
		}
		n, after := s.enc.CountLines(b)
		if p+n >= line {
			at := 0
			for ; p < line; p++ {
				at += s.enc.Newline(b[at:]) + s.enc.Unit
			}
			if off += int64(at); off < s.size || s.f.Size < 0 {
				s.last = linePoint{line, off}
				return off, nil
			}
			s.total = line
			return -1, nil
		}
		if n > 0 {
			p += n
			s.last = linePoint{p, off + int64(after)}
		}
		ended = after == len(b)
		off += int64(len(b))
	}
}

// countToEnd finds the total, unless the way to the end is longer than the budget.
func (s *scan) countToEnd(budget int64) error {
	if s.total >= 0 || s.f.Size < 0 || s.size-s.last.offset > budget {
		return nil
	}
	_, err := s.walk(math.MaxInt)
	return err
}

// piece is where a line stands among those collected.
type piece struct {
	from, to int
	more     bool // the line goes on
}

// linesAt renders up to limit lines from the offset. The lines are collected first: their bytes may tell the encoding
// better than the head did.
func (s *scan) linesAt(t *Text, off int64, limit int, certain bool, o *Options) error {
	var raw []byte
	var pieces []piece
	room := int(min(o.MaxBytes, 8<<20)) * 2
	line, long := piece{}, false
	start := off
collect:
	for len(pieces) < limit && len(raw) < room {
		b, err := s.read(off, chunkBytes)
		if err != nil {
			return err
		}
		if len(b) == 0 || off-start >= lineSearch {
			if off > start {
				line.to, line.more = len(raw), long
				pieces = append(pieces, line)
			}
			if len(b) == 0 {
				s.total = t.StartLine - 1 + len(pieces)
			} else {
				start = -1
			}
			break
		}
		off += int64(len(b))
		for len(b) > 0 {
			i := s.enc.Newline(b)
			body := b
			if i >= 0 {
				body = b[:i]
			}
			have := len(raw) - line.from
			if keep := linePrefix - have; keep < len(body) {
				body, long = body[:max(keep, 0)], true
			}
			raw = append(raw, body...)
			if i < 0 {
				break
			}
			b = b[i+s.enc.Unit:]
			start = off - int64(len(b))
			line.to, line.more = len(raw), long
			pieces = append(pieces, line)
			line, long = piece{from: len(raw)}, false
			if len(pieces) == limit || len(raw) >= room {
				break collect
			}
		}
	}
	if s.total < 0 && start >= 0 {
		b, err := s.read(start, s.enc.Unit)
		if err != nil {
			return err
		}
		after := t.StartLine - 1 + len(pieces)
		if s.follows = len(b) > 0; s.follows {
			s.last = linePoint{after, start}
		} else {
			s.total = after
		}
	}
	if !certain && s.enc.Name == "utf-8" {
		if e := text.Detect(raw); e.Unit == 1 && e.Mapped() {
			s.enc = e.Encoding
			t.readAs(e, 0)
		}
	}
	p := newPage(o, len(raw)+10*len(pieces))
	for i, l := range pieces {
		body, err := decode(s.enc, raw[l.from:l.to])
		if err != nil {
			return err
		}
		if !p.add(t.StartLine+i, body, l.more) {
			s.follows = true
			break
		}
	}
	t.finish(p, t.StartLine)
	return nil
}

// columnAt renders one line from a character on.
func (s *scan) columnAt(t *Text, off int64, o *Options) error {
	t.StartColumn = o.Column
	skip := o.Column - 1
	var text io.Reader = contextReader{s.ctx, io.NewSectionReader(s.f.R, off, s.size-off)}
	if s.enc.Name != "utf-8" {
		text = transform.NewReader(text, s.enc.Codec.NewDecoder())
	}
	body := make([]byte, 0, o.MaxBytes)
	have := 0 // bytes in buf not yet used: the beginning of a split character
	more, passed := true, int64(0)
	for more && int64(len(body)) < o.MaxBytes {
		n, err := io.ReadAtLeast(text, s.buf[have:chunkBytes], 1)
		if err != nil && err != io.EOF {
			s.at, s.column = linePoint{t.StartLine - 1, off + passed}, o.Column-skip
			return err
		}
		b := s.buf[:have+n]
		if err == io.EOF {
			more = false
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			s.follows = i+1 < len(b)
			if !s.follows && more { // asked of the file, as far as it may be read
				n, _ := io.ReadFull(text, make([]byte, 1))
				s.follows = n > 0
			}
			b, more = b[:i], false
		}
		if !more && !s.follows && s.f.Size >= 0 {
			s.total = t.StartLine
		}
		if skip > 0 {
			whole := b
			if more {
				whole = wholeChars(b)
			}
			size, chars := skipChars(whole, skip)
			skip -= chars
			passed += int64(size)
			if skip > 0 {
				have = copy(s.buf, b[size:])
				continue
			}
			b = b[size:]
		}
		have = 0
		body = append(body, b...)
	}
	if !more && len(body) > 0 && body[len(body)-1] == '\r' {
		body = body[:len(body)-1]
	}
	if more {
		body = wholeChars(body)
	}
	p := newPage(o, len(body)+16)
	p.chars = math.MaxInt
	p.add(t.StartLine, body, more)
	t.finish(p, t.StartLine)
	if t.NextColumn > 0 {
		t.NextColumn += o.Column - 1
	}
	return nil
}

// wholeChars cuts a UTF-8 character that has not all of its bytes yet.
func wholeChars(b []byte) []byte {
	for cut := 1; cut < utf8.UTFMax && cut <= len(b); cut++ {
		if tail := b[len(b)-cut:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return b
			}
			return b[:len(b)-cut]
		}
	}
	return b
}

// fromEnd renders the last lines of a file. Where it is too long to count they are numbered from the end.
func (s *scan) fromEnd(t *Text, back, limit, mark int, o *Options) error {
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
	if s.total >= 0 {
		first = s.total - lines + 1
	}
	if o.Column > 0 {
		if lines < back || long {
			return &BadRequest{Field: "column", Why: "the line begins too far from the end", Do: "Give its number from the beginning as offset, or search the file with Grep."}
		}
		t.StartLine = first
		t.column(body, o)
		t.Shown = nil
		t.goOn(first+1, lines > 1)
		t.TotalLines, t.TotalLinesAtLeast, t.Truncated = -1, max(s.last.line+1, lines), true
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
	if s.total >= 0 {
		t.TotalLines, t.Total = Count(s.total), s.total
		t.goOn(s.total+1, false)
		t.Truncated = t.Truncated || long
		if long {
			t.Shown = nil
		}
		return nil
	}
	t.Shown = nil // they have no numbers
	t.TotalLines, t.TotalLinesAtLeast = -1, max(s.last.line+1, lines)
	t.goOn(-lines+p.lines, p.lines < lines)
	t.Truncated = true
	return nil
}

// lineEnd returns the end of the last line, body, as much as is shown of a long line.
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
