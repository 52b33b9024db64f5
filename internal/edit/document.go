package edit

import (
	"bytes"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/text"
)

// document is a file between two edits: its text as UTF-8, and the means to get the bytes back. For UTF-8 the text is the bytes. For every
// other charset only the text of an edit is encoded: the bytes around it stay.
type document struct {
	enc  *text.Encoding
	bom  []byte
	text []byte
	more int // edits still to come

	guessed bool             // the charset rests on statistics
	near    []*text.Encoding // the charsets that the file may be in as well, or is

	raw   []byte // the file with its mark, mapped charsets only
	marks []text.Place
}

// replacement is one splice: text[start:end] becomes with.
type replacement struct {
	start, end int
	with       string
}

// openToChange is open for writing: it refuses a file whose bytes mean nothing by themselves.
func openToChange(content []byte, encoding string) (*document, error) {
	if encoding == "" || strings.HasSuffix(encoding, text.GuessMark) {
		if name := text.Stateful(content); name != "" {
			return nil, &EncodingError{Name: name, Is: true}
		}
	}
	return open(content, encoding)
}

func open(content []byte, encoding string) (*document, error) {
	is, bom := encodingOf(encoding, content)
	enc := is.Encoding
	if enc == nil {
		return nil, &EncodingError{Name: encoding}
	}
	if len(content) == 0 && text.AsksForMark(encoding) {
		content, bom = []byte(enc.Mark), len(enc.Mark)
	}
	d := &document{enc: enc, bom: content[:bom:bom], text: content[bom:], guessed: is.Guessed}
	if enc.Mapped() {
		if d.near = is.Near; enc.Unit == 1 && text.SurelyUTF8(content) {
			d.near = []*text.Encoding{text.UTF8}
		}
		d.load(content)
	}
	return d, nil
}

// load takes the bytes of the file, and decodes them.
func (d *document) load(raw []byte) {
	d.raw = raw
	d.text, d.marks = d.enc.DecodePlaces(d.body())
}

// body is the file without its mark, in a mapped charset.
func (d *document) body() []byte { return d.raw[len(d.bom):] }

// refuted says that the charset was guessed, and that there are bytes which are no character of it.
func (d *document) refuted() bool {
	return d.guessed && d.enc.Mapped() && bytes.Contains(d.text, []byte(text.Opaque))
}

// encode writes new text in the charset. Where that is refuted, it writes only ASCII, else only characters that are the same bytes in every charset
// near: the others would be other characters if the file is in one of those. bad is as Encoding.Encode has it.
func (d *document) encode(s string) (raw []byte, bad int) {
	if at := strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf && (d.refuted() || d.rival(r) != nil) }); at >= 0 {
		return nil, at
	}
	return d.enc.Encode(s)
}

// rival is a charset near that has r in other bytes, or not at all; nil where there is none, or the charset lacks r too. For example a German text in
// windows-1252 may be in windows-1250 as well: both have "Ä" as C4, but F1 is "ñ" in the one and "ń" in the other.
func (d *document) rival(r rune) *text.Encoding {
	ours, bad := d.enc.Encode(string(r))
	for _, e := range d.near {
		if theirs, _ := e.Encode(string(r)); bad < 0 && !bytes.Equal(ours, theirs) {
			return e
		}
	}
	return nil
}

// bytes gives the file.
func (d *document) bytes() []byte {
	switch {
	case d.enc.Mapped():
		return d.raw
	case len(d.bom) == 0:
		return d.text
	}
	return slices.Concat(d.bom, d.text)
}

// rawOffset translates an offset in the decoded text into one in the bytes behind the mark.
func (d *document) rawOffset(at int) int {
	i := sort.Search(len(d.marks), func(i int) bool { return d.marks[i].Text > at }) - 1
	if i < 0 {
		return 0
	}
	m := d.marks[i]
	return m.Raw + d.enc.RawOffset(d.body()[m.Raw:], at-m.Text)
}

// spans gives the bytes that replacements change, in offsets of the file, and the size that they make of it.
// encoded are their texts, in a mapped charset.
func (d *document) spans(rs []replacement, encoded [][]byte) (spans []Span, size int64) {
	size = int64(len(d.bom) + len(d.text))
	if d.enc.Mapped() {
		size = int64(len(d.raw))
	}
	spans = make([]Span, len(rs))
	for i, r := range rs {
		s := Span{r.start, r.end, len(r.with)}
		if d.enc.Mapped() {
			s = Span{d.rawOffset(r.start), d.rawOffset(r.end), len(encoded[i])}
		}
		size += int64(s.Length - (s.End - s.Start))
		spans[i] = Span{len(d.bom) + s.Start, len(d.bom) + s.End, s.Length}
	}
	return spans, size
}

// splice makes the replacements, which must be sorted and must not overlap. ok is false where the bytes of
// a new text and those beside it read as other text together.
func (d *document) splice(rs []replacement, encoded [][]byte, spans []Span, size int64) (ok bool) {
	risky := slices.ContainsFunc(rs, d.afterOpaque)
	d.spliceText(rs)
	if !d.enc.Mapped() {
		return true
	}
	raw, pos := make([]byte, 0, size), 0
	for i, s := range spans {
		raw = append(append(raw, d.raw[pos:s.Start]...), encoded[i]...)
		pos = s.End
	}
	raw = append(raw, d.raw[pos:]...)
	if was := d.text; risky || d.more > 0 {
		d.load(raw)
		return bytes.Equal(d.text, was)
	}
	d.raw = raw // its text is no longer asked for by offset
	return true
}

// afterOpaque says that a replacement stands behind bytes that are no character: together they may be one.
func (d *document) afterOpaque(r replacement) bool {
	return d.enc.Mapped() && bytes.HasSuffix(d.text[:r.start], []byte(text.Opaque))
}

// spliceText makes the replacements in a copy of the text.
func (d *document) spliceText(rs []replacement) {
	size := len(d.text)
	for _, r := range rs {
		size += len(r.with) - (r.end - r.start)
	}
	out, pos := make([]byte, 0, size), 0
	for _, r := range rs {
		out = append(append(out, d.text[pos:r.start]...), r.with...)
		pos = r.end
	}
	d.text = append(out, d.text[pos:]...)
}

// whole widens text[start:end] so that no mark is divided from the letter that it stands on: in Big5 two such runes may be one
// character.
func (d *document) whole(start, end int) (int, int) {
	mark := func(at int) (size int) {
		if r, n := utf8.DecodeRune(d.text[at:]); unicode.Is(unicode.Mn, r) {
			return n
		}
		return 0
	}
	for start > 0 && mark(start) > 0 {
		r, n := utf8.DecodeLastRune(d.text[:start])
		if r == utf8.RuneError {
			break
		}
		start -= n
	}
	for mark(end) > 0 {
		end += mark(end)
	}
	return start, end
}

// encodingOf is text.Of for changes in place. A stateful encoding, which gives ASCII bytes another meaning, is taken for UTF-8 if it was
// detected; openToChange refuses such a file.
func encodingOf(asked string, content []byte) (is text.Detected, bom int) {
	is, bom = text.Of(asked, content)
	if is.Encoding != nil && is.Stateful() {
		if asked != "" && !strings.HasSuffix(asked, text.GuessMark) {
			return text.Detected{}, 0
		}
		is.Encoding = text.UTF8
	}
	return is, bom
}

// Decode gives the text of content as UTF-8 without byte order mark, for Patch, Snippet and the
// guards. encoding "" means detect. For UTF-8 the text is a part of content itself. Bytes that are
// no character become the bytes FF FF FF in other encodings and stay as they are in UTF-8.
func Decode(content []byte, encoding string) (text []byte, name string, err error) {
	d, err := open(content, encoding)
	if err != nil {
		return nil, "", err
	}
	return d.text, d.enc.Name, nil
}

// KeepEnds gives content the line ends of the text like, which it replaces: all CRLF where those are,
// and content has bare LF only. kept says that it has others now than were sent.
func KeepEnds(content string, like []byte) (text string, kept bool) {
	if lineEnding(like) != "crlf" || !strings.Contains(content, "\n") || strings.Contains(content, "\r\n") {
		return content, false
	}
	return strings.ReplaceAll(content, "\n", "\r\n"), true
}

// Encode writes a whole new text the way the file that it replaces is written: in its charset, with
// its byte order mark if it has one. encoding names another charset; "" keeps that of like, which
// is UTF-8 when like is nil, empty or binary. Line endings are taken as they are: see KeepEnds. name
// is the charset as Detect names it.
//
// Errors are *UnencodableError (Index 0) and *EncodingError.
func Encode(content string, like []byte, encoding string) (raw []byte, name string, err error) {
	d, err := openToChange(like, encoding)
	if err == nil && encoding != "" && len(d.bom) == 0 && !strings.HasSuffix(encoding, text.GuessMark) {
		d, err = open(nil, encoding) // a mark is made only if the name asks for one
	}
	if err != nil {
		return nil, "", err
	}
	if len(d.bom) > 0 {
		content = strings.TrimPrefix(content, "\ufeff")
	}
	body := []byte(content)
	if d.enc.Mapped() {
		bad := -1
		if body, bad = d.encode(content); bad >= 0 {
			return nil, "", d.unencodable(0, content, content, bad)
		}
	}
	return slices.Concat(d.bom, body), d.enc.Name, nil
}

// put trims the replacements, encodes them, checks the new size, and splices. e is the edit that they come from.
func (d *document) put(index int, e Edit, rs []replacement, o Options) ([]Span, error) {
	if len(d.bom) > 0 && rs[0].start == 0 && len(rs[0].with) >= 3 && rs[0].with[:3] == "\ufeff" {
		rs[0].with = rs[0].with[3:]
	}
	kept := rs[:0]
	for _, r := range rs {
		if r = d.trim(r); r.start < r.end || r.with != "" {
			kept = append(kept, r)
		}
	}
	var encoded [][]byte
	if d.enc.Mapped() {
		var err error
		if encoded, err = d.encodeAll(index, e, kept); err != nil {
			return nil, err
		}
	}
	spans, size := d.spans(kept, encoded)
	if size > o.MaxBytes {
		return nil, &TooLargeError{index, size, o.MaxBytes}
	}
	line := 0
	if risky := slices.IndexFunc(kept, d.afterOpaque); risky >= 0 {
		line = lineAt(d.text, kept[risky].start)
	}
	if !d.splice(kept, encoded, spans, size) {
		return nil, &DamagedError{index, line, d.enc.Name}
	}
	return spans, nil
}

func (d *document) encodeAll(index int, e Edit, rs []replacement) ([][]byte, error) {
	done := make(map[string][]byte)
	encoded := make([][]byte, len(rs))
	for i, r := range rs {
		raw, ok := done[r.with]
		if !ok {
			bad := -1
			if raw, bad = d.encode(r.with); bad >= 0 {
				return nil, d.unencodable(index, e.New, r.with, bad)
			}
			if raw == nil {
				raw = []byte{}
			}
			done[r.with] = raw
		}
		encoded[i] = raw
	}
	return encoded, nil
}

// trim takes the common ends off a replacement, in whole characters: of "one two" for "one six" it leaves "two" for "six".
func (d *document) trim(r replacement) replacement {
	n, m := commonEnds(d.text[r.start:r.end], r.with)
	r.start, r.end, r.with = r.start+n, r.end-m, r.with[n:len(r.with)-m]
	if d.enc.Mapped() && (r.start < r.end || r.with != "") {
		if start, end := d.whole(r.start, r.end); start != r.start || end != r.end {
			r.with = string(d.text[start:r.start]) + r.with + string(d.text[r.end:end])
			r.start, r.end = start, end
		}
	}
	return r
}

// unencodable places a character that could not be encoded in the new string as it was sent. with is the part of it that was encoded,
// perhaps with other indentation or repaired, and bad the offset there.
func (d *document) unencodable(index int, sent, with string, bad int) error {
	r, n := utf8.DecodeRuneInString(with[bad:])
	at := strings.Index(sent, with) + bad
	if at < bad { // the first such character then
		at = max(0, strings.Index(sent, with[bad:bad+n]))
	}
	head := lf(sent[:at])
	last := head[strings.LastIndexByte(head, '\n')+1:]
	rival := ""
	if other := d.rival(r); other != nil && !d.refuted() {
		rival = other.Name
	}
	return &UnencodableError{Index: index, Char: r, Rival: rival, Line: 1 + strings.Count(head, "\n"), Column: 1 + utf8.RuneCountInString(last),
		Encoding: d.enc.Name, Guessed: d.guessed, Refuted: d.refuted()}
}
