package readers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
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
	index *lineIndex
	enc   *text.Encoding
	size  int64 // as first told; 1<<62 when the file does not say
	mark  int64 // bytes of the byte order mark
	buf   []byte
	// follows says that a line is known to begin after the last one collected.
	follows bool
	// How far the file was walked through, for the answer when time runs out.
	at     linePoint
	column int
}

// readWindow shows a window of a file that is too long to hold. It costs the way to the window, which later calls are
// spared by the index, and the window.
func (r *Readers) readWindow(ctx context.Context, f *file, o *Options) (c Content, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Deadline)
	defer cancel()
	s := &scan{ctx: ctx, f: f, size: f.Size, index: r.indexes.take(f)}
	if s.size < 0 {
		s.size = 1 << 62
	}
	// The scratch buffer holds the head, which is needed no longer once the encoding is known.
	enc, mark, err := encodingOf(o.Encoding, trimPartial(f.head))
	if err != nil {
		return nil, err
	}
	certain := o.Encoding != "" || mark > 0 || asciiPrefix(f.head) < len(f.head)
	s.enc = enc
	s.buf, s.mark = *f.scratch, int64(mark)
	defer func() {
		r.indexes.put(f, s.index, r.config.Now())
		if errors.Is(err, context.DeadlineExceeded) {
			c, err = nil, &OutOfTime{Line: s.at.line + 1, Column: s.column, Byte: s.at.offset, Size: f.Size, Unpacks: f.unpacks}
		}
	}()

	t := &Text{Encoding: encodingLabel(enc, mark)}
	limit := o.lines()
	first := max(o.Offset, 1)
	if o.Tail || o.Offset < 0 {
		back := limit
		if o.Offset < 0 {
			back = -max(o.Offset, -1<<40)
		}
		if f.unpacks {
			s.index.total = -1 // the size is wanted too
		}
		total, err := s.countToEnd(tailCount)
		if err != nil {
			return nil, err
		}
		if total < 0 || o.Tail && s.size < 1<<62 {
			return t, s.fromEnd(t, back, limit, mark, total, o)
		}
		first = max(total-back+1, 1)
	}
	at, found, err := s.seek(first - 1)
	if err != nil {
		return nil, err
	}
	t.StartLine = first
	if !found {
		t.TotalLines = Count(s.index.total)
		t.Changed, t.ChangedBelow = f.grown, f.grown
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
	t.Changed, t.ChangedBelow = s.f.grown, s.f.grown
	total, err := s.countToEnd(countAhead)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) { // the window itself is at hand
		return err
	}
	next := first + t.RenderedLines
	if total >= 0 {
		t.TotalLines, t.Total = Count(total), total
		t.goOn(next, t.RenderedLines > 0 && next <= total)
		return nil
	}
	t.TotalLines, t.Total, t.TotalLinesAtLeast = -1, -1, max(s.index.last().line+1, next-1)
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
	p := s.index.before(line)
	if s.index.total >= 0 && line >= s.index.total {
		return 0, false, nil
	}
	if p.line == line {
		if at := max(p.offset, s.mark); s.size > at {
			return at, true, nil
		}
		s.index.total = line
		return 0, false, nil
	}
	at, err = s.walk(p, line, math.MaxInt64)
	return at, at >= 0, err
}

// walk goes forward from a point, learning beginnings, until the line is found (its offset), or the end or the budget is
// reached (-1). At the end the total is known.
func (s *scan) walk(p linePoint, line int, budget int64) (int64, error) {
	off, ended := max(p.offset, s.mark), true // ended: the byte before off was a newline
	for {
		b, err := s.read(off, chunkBytes)
		if err != nil {
			s.at = linePoint{p.line, off}
			return -1, err
		}
		if len(b) == 0 {
			s.index.total = p.line
			if !ended {
				s.index.total++
			}
			if s.f.unpacks {
				s.size = off
			}
			return -1, nil
		}
		n, after := s.enc.CountLines(b)
		if p.line+n >= line {
			at := 0
			for ; p.line < line; p.line++ {
				at += s.enc.Newline(b[at:]) + s.enc.Unit
			}
			if off += int64(at); off < s.size || s.f.Size < 0 {
				s.index.learn(linePoint{line, off}) // if the time ends behind it, the way was not in vain
				return off, nil
			}
			s.index.total = line
			return -1, nil
		}
		if n > 0 {
			p.line += n
			s.index.learn(linePoint{p.line, off + int64(after)})
		}
		ended = after == len(b)
		off += int64(len(b))
		if budget -= int64(len(b)); budget <= 0 {
			return -1, nil
		}
	}
}

// countToEnd returns the number of lines, or -1 when the way to the end is longer than the budget.
func (s *scan) countToEnd(budget int64) (int, error) {
	if s.index.total >= 0 {
		return s.index.total, nil
	}
	from := s.index.last()
	if s.f.unpacks && budget == tailCount {
		budget = math.MaxInt64
	} else if s.f.Size < 0 || s.size-from.offset > budget {
		return -1, nil
	}
	_, err := s.walk(from, math.MaxInt, math.MaxInt64)
	return s.index.total, err
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
				s.index.total = t.StartLine - 1 + len(pieces)
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
	if s.index.total < 0 && start >= 0 {
		b, err := s.read(start, s.enc.Unit)
		if err != nil {
			return err
		}
		if s.follows = len(b) > 0; !s.follows {
			s.index.total = t.StartLine - 1 + len(pieces)
		}
	}
	if !certain && s.enc.Name == "utf-8" {
		if e, _ := text.Detect(raw); e.Unit == 1 && e.Mapped() {
			s.enc, t.Encoding = e, e.Name
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
			s.index.total = t.StartLine
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

// indexStride is how far apart remembered line beginnings are at first, in bytes. When an index has too many points every
// second one is dropped and the stride doubles, so that an index takes at most 64 KB.
const (
	indexStride = 256 << 10
	indexPoints = 4096
	// settled is how old a change must be before an index of the file is believed later: a second change within the
	// same tick of the file system's clock would not show.
	settled = 2 * time.Second
)

// lineIndex remembers where some lines of one file begin. Lines count from 0 here.
type lineIndex struct {
	size    int64
	changed time.Time
	points  []linePoint // ascending
	stride  int64
	total   int // lines in the file; -1 when nobody has seen the end
}

type linePoint struct {
	line   int
	offset int64
}

// before returns the last remembered beginning at or before the line.
func (x *lineIndex) before(line int) linePoint {
	lo, hi := 0, len(x.points)
	for lo < hi {
		mid := (lo + hi) / 2
		if x.points[mid].line <= line {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return linePoint{}
	}
	return x.points[lo-1]
}

// last is the furthest line beginning known.
func (x *lineIndex) last() linePoint {
	if len(x.points) == 0 {
		return linePoint{}
	}
	return x.points[len(x.points)-1]
}

// learn adds a beginning found while reading, if it is beyond the last one by a stride.
func (x *lineIndex) learn(p linePoint) {
	if p.offset < x.last().offset+x.stride {
		return
	}
	x.points = append(x.points, p)
	if len(x.points) > indexPoints {
		keep := x.points[:0]
		for i := 1; i < len(x.points); i += 2 {
			keep = append(keep, x.points[i])
		}
		x.points, x.stride = keep, x.stride*2
	}
}

// lineIndexes keeps the indexes of the files read last.
type lineIndexes struct {
	mu    sync.Mutex
	max   int
	known map[string]*lineIndex
	order []string // least recently used first
}

func newLineIndexes(max int) *lineIndexes {
	return &lineIndexes{max: max, known: map[string]*lineIndex{}}
}

// take returns the index of the source for one reader's use: nobody else has it until it is put back. It is new when
// the file is not known or has changed.
func (s *lineIndexes) take(f *file) *lineIndex {
	fresh := &lineIndex{size: f.Size, changed: f.Changed, stride: indexStride, total: -1}
	if f.ID == "" {
		return fresh
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.known[f.ID]
	if x == nil {
		return fresh
	}
	delete(s.known, f.ID)
	for i, id := range s.order {
		if id == f.ID {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	if x.size != f.Size || !x.changed.Equal(f.Changed) {
		return fresh
	}
	return x
}

// put remembers the index, but not where the file is so young that it may change without showing.
func (s *lineIndexes) put(f *file, x *lineIndex, now time.Time) {
	if f.ID == "" || f.grown || f.Changed.IsZero() || now.Sub(f.Changed) < settled {
		return
	}
	if p, ok := f.R.(*packedAt); ok && p.short() {
		return // where it ended is not the end
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[f.ID]; !ok {
		s.order = append(s.order, f.ID)
	}
	s.known[f.ID] = x
	for len(s.order) > s.max {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
}
