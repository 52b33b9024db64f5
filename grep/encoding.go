package grep

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	utext "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"

	"moltisfs/grep/match"
	"moltisfs/internal/charset"
)

// content is what the first bytes of a file say of it.
type content uint8

const (
	isText content = iota
	isBinary
	isUTF16LE
	isUTF16BE
	isUTF32LE
	isUTF32BE
)

const (
	sniffLen  = 8 << 10  // NUL bytes are looked for in this much, as git does
	headLen   = 64 << 10 // more than this is read of text only
	sampleLen = 64 << 10 // an encoding is guessed from this much
)

var utf8BOM = []byte("\xef\xbb\xbf")

func bomLen(b []byte) int {
	if bytes.HasPrefix(b, utf8BOM) {
		return len(utf8BOM)
	}
	return 0
}

// sniff tells text from UTF-16, UTF-32 and binary. A file whose first NUL byte comes later is taken for text here; the
// scan finds it should that matter.
func sniff(b []byte) content {
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")):
		return isUTF32LE
	case bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return isUTF32BE
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return isUTF16LE
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		return isUTF16BE
	}
	head := b[:min(len(b), sniffLen)]
	if bytes.IndexByte(head, 0) < 0 {
		return isText
	}
	switch charset.Wide(head) {
	case "utf-16le":
		return isUTF16LE
	case "utf-16be":
		return isUTF16BE
	case "utf-32le":
		return isUTF32LE
	case "utf-32be":
		return isUTF32BE
	}
	return isBinary
}

func (c content) decoder() encoding.Encoding {
	switch c {
	case isUTF16LE:
		return utext.UTF16(utext.LittleEndian, utext.UseBOM)
	case isUTF16BE:
		return utext.UTF16(utext.BigEndian, utext.UseBOM)
	case isUTF32LE:
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	}
	return utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
}

// decoded searches the file as its text in UTF-8. Columns and offsets then are those of the UTF-8.
func (t *target) decoded(w *worker, st *state, e encoding.Encoding) {
	r := transform.NewReader(io.NewSectionReader(t.file, 0, 1<<62), e.NewDecoder())
	st.scan.reset(st.scan.want)
	st.scan.asIs = true
	if t.q.Multiline {
		n, eof, err := readFull(r, st.buf)
		if err != nil {
			w.skipped.Unreadable++
			return
		}
		t.multiline(w, st, r, n, eof)
		return
	}
	x := stream{r: r, buf: st.buf, big: t.big, size: &t.size, lines: t.q.Before, stop: w.stopped}
	t.finish(w, &st.scan, x.run(st.scan.chunk))
}

// legacy searches a file that encodingOf calls foreign: decoded, or as bytes where nobody knows its encoding, which is counted.
func (t *target) legacy(w *worker, st *state, e encoding.Encoding) {
	if e != nil {
		t.decoded(w, st, e)
		return
	}
	w.skipped.Encoding++
	st.scan.reset(st.scan.want)
	st.scan.asIs = true
	t.bytes = true
	r := io.NewSectionReader(t.file, 0, 1<<62)
	if t.q.Multiline {
		n, eof, err := readFull(r, st.buf)
		if err != nil {
			w.skipped.Unreadable++
			return
		}
		t.multiline(w, st, r, n, eof)
		return
	}
	x := stream{r: r, buf: st.buf, big: t.big, size: &t.size, lines: t.q.Before, stop: w.stopped}
	t.finish(w, &st.scan, x.run(st.scan.chunk))
}

// encodingOf asks of a part of a file, whatever kind of part, whether a pattern outside ASCII can be looked for in it as it is. Where it is
// foreign the file has to be decoded from e, or nobody can tell from what. UTF-8 with a few errors is not foreign. torn: b may begin within
// a character; whole: it does not end in one.
func encodingOf(b []byte, torn, whole bool) (e encoding.Encoding, foreign bool) {
	all := b // to guess from: what UTF-8 would cut is whole in others
	b = untorn(b, torn, !whole)
	switch {
	case plain(b):
		return nil, false
	case charset.Escaped(b):
		return japanese.ISO2022JP, true
	case utf8.Valid(b) || charset.MostlyUTF8(b):
		return nil, false
	}
	if all = sample(all); charset.MostlyUTF8(all) {
		return nil, true // in one encoding here, in another there
	}
	return guess(all), true
}

// encoding is encodingOf a chunk, where the pattern asks for that.
func (t *target) encoding(s *scan, c chunk) (e encoding.Encoding, foreign bool) {
	if !t.nonASCII || s.asIs {
		return nil, false
	}
	return encodingOf(c.b[c.from:], c.piece > pieceFirst, c.last || c.piece == pieceLast)
}

// plain says that b is UTF-8 and has no escape to another character set.
func plain(b []byte) bool { return bytes.IndexByte(b, escape) < 0 && utf8.Valid(b) }

const escape = 0x1b

// untorn drops the parts of characters at the ends of b that may be cut.
func untorn(b []byte, head, tail bool) []byte {
	for k := 1; head && k < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); k++ {
		b = b[1:]
	}
	for k := 1; tail && k < utf8.UTFMax && k <= len(b); k++ {
		if c := b[len(b)-k]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-k:]) {
				b = b[:len(b)-k]
			}
			break
		}
	}
	return b
}

// enoughUTF8 lines with more than ASCII in them, and the file is in UTF-8.
const enoughUTF8 = 256

// lookAhead bytes are looked at together: lines that match often follow one another.
const lookAhead = 1024

// plainLine says that b[start:end], a line that matches, has nothing but ASCII without escapes, and so need not be asked strange. Lines come
// in order; b lies at `at` of the file.
func (s *scan) plainLine(b []byte, at int64, start, end int) bool {
	if at+int64(end) > s.plainTo {
		s.plainTo = at + int64(start+match.Plain(b[start:min(len(b), max(end, start+lookAhead))]))
	}
	return at+int64(end) <= s.plainTo
}

// strange says that text has to be decoded, because line, in which a match lies, is not UTF-8 and the match may lie in the middle of
// characters. Encodings whose characters never end in ASCII need none of that.
func (s *scan) strange(line, text []byte) bool {
	switch {
	case s.asIs || match.Plain(line) == len(line) || s.q.Matcher.Bytes():
		return false
	case charset.Escaped(line):
		s.foreign = japanese.ISO2022JP
		return true
	case s.guessed:
		return false
	case utf8.Valid(line):
		s.utf8++
		s.guessed = s.utf8 == enoughUTF8
		return false
	}
	s.guessed = true // asking once is enough
	if text = sample(text); !charset.MostlyUTF8(text) && !utf8.Valid(untorn(text, false, true)) {
		switch e := guess(text); e {
		case japanese.ShiftJIS, simplifiedchinese.GBK, simplifiedchinese.GB18030, traditionalchinese.Big5, korean.EUCKR:
			s.foreign = e
		}
	}
	return s.foreign != nil
}

// strangePiece is strange for a part of a line. A match of it may lie behind the escape in a part before.
func (s *scan) strangePiece(c chunk, end int) bool {
	if s.part.escaped {
		s.foreign = japanese.ISO2022JP
		return true
	}
	b := untorn(c.b[c.from:end], c.piece != pieceFirst, c.piece != pieceLast)
	return s.strange(b, c.b[c.from:end])
}

// sample is the part of b around its first byte outside ASCII.
func sample(b []byte) []byte {
	i := bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf })
	from := max(0, i-1024)
	return b[from:min(len(b), from+sampleLen)]
}

// guess finds the encoding of text outside UTF-8, nil when it is not known here.
func guess(b []byte) encoding.Encoding {
	e, err := htmlindex.Get(charset.Guess(b))
	if err != nil || e == encoding.Nop {
		return nil
	}
	return e
}

// presentable makes the texts of rows UTF-8: decoded where their encoding can be guessed, with replacement characters otherwise.
func (t *target) presentable(rows []Row) {
	var bad []byte
	for i := range rows {
		if !utf8.ValidString(rows[i].Text) && len(bad) < sampleLen {
			bad = append(append(bad, rows[i].Text...), '\n')
		}
	}
	if bad == nil {
		return
	}
	var d *encoding.Decoder
	if !charset.MostlyUTF8(bad) {
		if e := guess(bad); e != nil {
			d = e.NewDecoder()
		}
	}
	for i := range rows {
		if utf8.ValidString(rows[i].Text) {
			continue
		}
		if d != nil {
			if text, err := d.String(rows[i].Text); err == nil {
				rows[i].Text = text
				continue
			}
		}
		rows[i].Text = validText(rows[i].Text)
	}
}
