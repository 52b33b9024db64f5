package edit

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/text"
)

// document is a file between two edits: its text as UTF-8, and what is needed to get the bytes
// back. For UTF-8 the text is the bytes. For every other charset the bytes are a list of pieces,
// each a part of the original file, which is never encoded again, or the encoded text of an edit.
type document struct {
	enc  *text.Encoding
	bom  []byte
	text []byte
	own  bool // text may be changed in place
	more int  // edits still to come: room is left for them

	guessed bool // the charset rests on statistics

	before     []byte // whole lines around the only splice, before it; nil: all was kept
	beforeLine int    // lines before the stretch
	beforeAt   int    // bytes before it
	beforeTail int    // bytes behind it

	orig   []byte // original bytes after the mark, mapped charsets only
	marks  []text.Place
	pieces []piece
}

// piece is a run of text and the bytes it stands for.
type piece struct {
	text int    // length in the text
	from int    // where its text starts in the decoded original; only when raw is nil
	raw  []byte // encoded text of an edit; nil for a part of the original
}

// replacement is one splice: text[start:end] becomes with.
type replacement struct {
	start, end int
	with       string
}

// maxPieces bounds the list: past it the bytes are joined and decoded afresh.
const maxPieces = 4096

// openToChange is open for writing: it refuses a file whose bytes mean nothing by themselves.
func openToChange(content []byte, encoding string) (*document, error) {
	if encoding == "" {
		if name := text.Stateful(content); name != "" {
			return nil, &EncodingError{Name: name, Is: true}
		}
	}
	return open(content, encoding)
}

func open(content []byte, encoding string) (*document, error) {
	enc, bom, guessed := encodingOf(encoding, content)
	if enc == nil {
		return nil, &EncodingError{Name: encoding}
	}
	if len(content) == 0 && text.AsksForMark(encoding) {
		content, bom = []byte(enc.Mark), len(enc.Mark)
	}
	d := &document{enc: enc, bom: content[:bom:bom], text: content[bom:], guessed: guessed}
	if enc.Mapped() {
		d.load(content[bom:])
	}
	return d, nil
}

func (d *document) load(raw []byte) {
	d.orig = raw
	d.text, d.marks = d.enc.DecodePlaces(raw)
	d.own = true
	d.pieces = nil
	if len(d.text) > 0 {
		d.pieces = []piece{{text: len(d.text)}}
	}
}

// refuted says that the charset was guessed, and that there are bytes which are no character of it.
func (d *document) refuted() bool {
	return d.guessed && d.enc.Mapped() && bytes.Contains(d.text, []byte(text.Opaque))
}

// encode writes new text in the charset, and only ASCII where that is refuted: in another charset its
// bytes would be other characters. bad is as Encoding.Encode has it.
func (d *document) encode(s string) (raw []byte, bad int) {
	if at := strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }); at >= 0 && d.refuted() {
		return nil, at
	}
	return d.enc.Encode(s)
}

// bytes gives the file. While edits may follow, it shares nothing with the document's text.
func (d *document) bytes() []byte {
	if !d.enc.Mapped() {
		if len(d.bom) == 0 {
			return d.text
		}
		return append(append(make([]byte, 0, len(d.bom)+len(d.text)), d.bom...), d.text...)
	}
	out := make([]byte, 0, d.size())
	out = append(out, d.bom...)
	for _, p := range d.pieces {
		if p.raw != nil {
			out = append(out, p.raw...)
		} else {
			out = append(out, d.orig[d.origRaw(p.from):d.origRaw(p.from+p.text)]...)
		}
	}
	return out
}

// excerpt shows ten lines of the text on either side of a line, numbered.
func (d *document) excerpt(line int) string {
	const around = 10
	var b strings.Builder
	n := 1
	for at := 0; n <= line+around; n++ {
		l := lineFrom(d.text, at)
		if n >= line-around && (l.end > l.start || l.next > l.end) { // none after the last break
			fmt.Fprintf(&b, "%6d→%s\n", n, strings.ToValidUTF8(diff.CutLine(string(d.text[l.start:l.end])), "\ufffd"))
		}
		if at = l.next; l.next == l.end {
			break
		}
	}
	return b.String()
}

// size is the length of the file in bytes.
func (d *document) size() int {
	if !d.enc.Mapped() {
		return len(d.bom) + len(d.text)
	}
	n := len(d.bom)
	for _, p := range d.pieces {
		n += d.rawLen(p)
	}
	return n
}

func (d *document) rawLen(p piece) int {
	if p.raw != nil {
		return len(p.raw)
	}
	return d.origRaw(p.from+p.text) - d.origRaw(p.from)
}

// origRaw translates an offset in the decoded original into one in its bytes.
func (d *document) origRaw(at int) int {
	i := sort.Search(len(d.marks), func(i int) bool { return d.marks[i].Text > at }) - 1
	if i < 0 {
		return 0
	}
	m := d.marks[i]
	return m.Raw + d.enc.RawOffset(d.orig[m.Raw:], at-m.Text)
}

// splice makes the replacements, which must be sorted and must not overlap, and gives the bytes
// they changed, in offsets of the file before them.
func (d *document) splice(rs []replacement, encoded [][]byte) []Span {
	if !d.enc.Mapped() {
		spans := make([]Span, 0, min(len(rs), maxSpans))
		for _, r := range rs {
			spans = addSpan(spans, Span{len(d.bom) + r.start, len(d.bom) + r.end, len(r.with)})
		}
		d.spliceText(rs)
		return spans
	}
	spans := d.splicePieces(rs, encoded)
	d.spliceText(rs)
	return spans
}

// tidy joins the pieces and decodes them afresh when there are too many.
func (d *document) tidy() {
	if len(d.pieces) > maxPieces {
		d.load(d.bytes()[len(d.bom):])
	}
}

// afterOpaque lists the replacements behind bytes that are no character: together they may be one.
func (d *document) afterOpaque(rs []replacement) (out []int) {
	if !d.enc.Mapped() {
		return nil
	}
	for i, r := range rs {
		if bytes.HasSuffix(d.text[:r.start], []byte(text.Opaque)) {
			out = append(out, i)
		}
	}
	return out
}

// joined reports whether, after a splice, the bytes around a listed replacement read as other text.
func (d *document) joined(rs []replacement, list []int) bool {
	if len(list) == 0 {
		return false
	}
	whole := len(list) > 64
	shift, next := 0, 0
	for i, r := range rs {
		if next < len(list) && list[next] == i && !whole {
			next++
			from := r.start + shift
			to := min(len(d.text), from+len(r.with)+4*utf8.UTFMax)
			for bytes.HasSuffix(d.text[:from], []byte(text.Opaque)) {
				from -= len(text.Opaque)
			}
			for to < len(d.text) && !utf8.RuneStart(d.text[to]) {
				to++
			}
			if whole = bytes.Contains(d.text[r.start+shift:to], []byte(text.Opaque[:1])); whole {
				break // where the next character starts cannot be told from here
			}
			if now, _ := d.enc.DecodePlaces(d.rawRange(from, to)); !bytes.Equal(now, d.text[from:to]) {
				return true
			}
		}
		shift += len(r.with) - (r.end - r.start)
	}
	if whole {
		now, _ := d.enc.DecodePlaces(d.bytes()[len(d.bom):])
		return !bytes.Equal(now, d.text)
	}
	return false
}

// rawRange gives the bytes of text[from:to].
func (d *document) rawRange(from, to int) (raw []byte) {
	pos := 0
	for _, p := range d.pieces {
		if a, b := max(from, pos), min(to, pos+p.text); a < b {
			p := d.cut(p, a-pos, b-a)
			if p.raw != nil {
				raw = append(raw, p.raw...)
			} else {
				raw = append(raw, d.orig[d.origRaw(p.from):d.origRaw(p.from+p.text)]...)
			}
		}
		pos += p.text
	}
	return raw
}

func (d *document) spliceText(rs []replacement) {
	grow := 0
	for _, r := range rs {
		grow += len(r.with) - (r.end - r.start)
	}
	size := len(d.text) + grow
	if len(rs) == 1 && !d.own && d.more == 0 && d.enc.Mapped() && d.before == nil && size <= cap(d.text) {
		d.keepStretch(rs[0])
		d.own = true
	}
	if len(rs) == 1 && d.own && size <= cap(d.text) {
		r := rs[0]
		tail := d.text[r.end:]
		d.text = d.text[:size]
		copy(d.text[r.start+len(r.with):], tail)
		copy(d.text[r.start:], r.with)
		return
	}
	room := size
	if d.more > 0 {
		room += size/8 + 4096 // later edits then splice in place
	}
	out := make([]byte, 0, room)
	pos := 0
	for _, r := range rs {
		out = append(out, d.text[pos:r.start]...)
		out = append(out, r.with...)
		pos = r.end
	}
	d.text = append(out, d.text[pos:]...)
	d.own = true
}

// keepStretch keeps of the text what Patch and the guards need to know of it: the lines around r. A
// decoded text is then changed in place, instead of having two of them.
func (d *document) keepStretch(r replacement) {
	from, to := r.start, r.end
	for i := 0; i <= 2*diff.Context && from > 0; i++ {
		from = lineStart(d.text, from-min(i, 1))
	}
	for i := 0; i <= 2*diff.Context && to < len(d.text); i++ {
		to = lineFrom(d.text, to).next
	}
	d.before = append([]byte{}, d.text[from:to]...)
	d.beforeAt, d.beforeTail = from, len(d.text)-to
	d.beforeLine = bytes.Count(d.text[:from], []byte("\n"))
}

// splicePieces cuts the pieces at the replacements and puts the encoded texts in between.
func (d *document) splicePieces(rs []replacement, encoded [][]byte) []Span {
	var (
		out   = make([]piece, 0, len(d.pieces)+2*len(rs))
		spans []Span
		i     = 0          // next piece
		head  piece        // what is left of the piece under the cursor
		left  = 0          // text left in it
		raw   = len(d.bom) // cursor in the bytes
	)
	take := func(n int, keep bool) {
		for n > 0 {
			if left == 0 {
				head, left = d.pieces[i], d.pieces[i].text
				i++
			}
			k := min(n, left)
			p := d.cut(head, head.text-left, k)
			left -= k
			n -= k
			raw += d.rawLen(p)
			if keep {
				out = append(out, p)
			}
		}
	}
	pos := 0
	for k, r := range rs {
		take(r.start-pos, true)
		from := raw
		take(r.end-r.start, false)
		spans = addSpan(spans, Span{from, raw, len(encoded[k])})
		if len(r.with) > 0 {
			out = append(out, piece{text: len(r.with), raw: encoded[k]})
		}
		pos = r.end
	}
	take(len(d.text)-pos, true)
	d.pieces = out
	return spans
}

// cut gives the part of p that holds n bytes of text from offset at.
func (d *document) cut(p piece, at, n int) piece {
	if p.raw == nil {
		return piece{text: n, from: p.from + at}
	}
	a := d.enc.RawOffset(p.raw, at)
	b := len(p.raw)
	if at+n < p.text {
		b = d.enc.RawOffset(p.raw, at+n)
	}
	return piece{text: n, raw: p.raw[a:b]}
}

// whole moves offsets in the text out of the middle of characters of the charset. Only combined
// letters of Big5, two runes in one character, ever need it.
func (d *document) whole(start, end int) (int, int) {
	if !d.enc.Mapped() {
		return start, end
	}
	for start > 0 && !d.onBoundary(start) {
		_, n := utf8.DecodeLastRune(d.text[:start])
		start -= n
	}
	for end < len(d.text) && !d.onBoundary(end) {
		_, n := utf8.DecodeRune(d.text[end:])
		end += n
	}
	return start, end
}

func (d *document) onBoundary(at int) bool {
	// The only such characters of any charset here decode to Ê or ê and a combining macron or caron.
	if at < 2 || at+2 > len(d.text) || d.enc.Name != "big5" {
		return true
	}
	second := string(d.text[at : at+2])
	if second != "\u0304" && second != "\u030c" {
		return true
	}
	first := string(d.text[at-2 : at])
	return first != "Ê" && first != "ê"
}

// maxSpans bounds what a step reports; past it neighbours are joined.
const maxSpans = 4096

func addSpan(spans []Span, s Span) []Span {
	if len(spans) == maxSpans {
		half := spans[:0]
		for i := 0; i+1 < len(spans); i += 2 {
			a, b := spans[i], spans[i+1]
			half = append(half, Span{a.Start, b.End, a.Length + (b.Start - a.End) + b.Length})
		}
		spans = half
	}
	return append(spans, s)
}
