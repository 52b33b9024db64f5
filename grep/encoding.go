package grep

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/text/transform"

	"moltisfs/grep/match"
	"moltisfs/internal/text"
)

// content is what the first bytes of a file say of it.
type content struct {
	binary bool
	wide   *text.Encoding // UTF-16 or UTF-32
}

var (
	isText   = content{}
	isBinary = content{binary: true}
)

const (
	sniffLen  = 8 << 10  // NUL bytes are looked for in this much, as git does
	headLen   = 64 << 10 // more than this is read of text only
	sampleLen = 64 << 10 // an encoding is guessed from this much
)

// bomLen is the length of UTF-8's mark at the beginning of b.
func bomLen(b []byte) int { return len(b) - len(bytes.TrimPrefix(b, []byte(text.UTF8.Mark))) }

// sniff tells text from UTF-16, UTF-32 and binary. A file whose first NUL byte comes later is taken for text here; the
// scan finds it should that matter.
func sniff(b []byte) content {
	if e := text.ByMark(b); e != nil && e.Unit > 1 {
		return content{wide: e}
	}
	head := b[:min(len(b), sniffLen)]
	if bytes.IndexByte(head, 0) < 0 {
		return isText
	}
	if e := text.Lookup(text.Wide(head)); e != nil {
		return content{wide: e}
	}
	return isBinary
}

// decoded searches the file as its text in UTF-8. Columns and offsets then are those of the UTF-8.
func (t *target) decoded(w *worker, st *state, e *text.Encoding) {
	var head [4]byte
	n, _ := t.file.ReadAt(head[:len(e.Mark)], 0) // an error comes again
	if string(head[:n]) != e.Mark {
		n = 0
	}
	t.read(w, st, transform.NewReader(io.NewSectionReader(t.file, int64(n), 1<<62), e.Codec.NewDecoder()))
}

// legacy searches a file that encodingOf calls foreign: decoded, or as bytes where nobody knows its encoding, which is counted.
func (t *target) legacy(w *worker, st *state, e *text.Encoding) {
	if e != nil {
		t.decoded(w, st, e)
		return
	}
	w.skipped.Encoding++
	t.bytes = true
	t.read(w, st, io.NewSectionReader(t.file, 0, 1<<62))
}

// read searches all that r gives, and asks no more what it is written in.
func (t *target) read(w *worker, st *state, r io.Reader) {
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

// encodingOf asks of a part of a file, whatever kind of part, whether a pattern outside ASCII can be looked for in it as it is. Where it is
// foreign the file has to be decoded from e, or nobody can tell from what. UTF-8 with a few errors is not foreign. torn: b may begin within
// a character; whole: it does not end in one.
func encodingOf(b []byte, torn, whole bool) (e *text.Encoding, foreign bool) {
	all := b // to guess from: what UTF-8 would cut is whole in others
	b = untorn(b, torn, !whole)
	switch {
	case plain(b):
		return nil, false
	case text.Escaped(b):
		return text.Lookup("iso-2022-jp"), true
	case utf8.Valid(b) || text.MostlyUTF8(b):
		return nil, false
	}
	if all = sample(all); text.MostlyUTF8(all) {
		return nil, true // in one encoding here, in another there
	}
	return guess(all), true
}

// encoding is encodingOf a chunk, where the pattern asks for that.
func (t *target) encoding(s *scan, c chunk) (e *text.Encoding, foreign bool) {
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
		s.plainTo = at + int64(start+match.ASCIIPrefix(b[start:min(len(b), max(end, start+lookAhead))]))
	}
	return at+int64(end) <= s.plainTo
}

// strange says that the text around has to be decoded, because line, in which a match lies, is not UTF-8 and the match may lie in the middle of
// characters. Encodings whose characters never end in ASCII need none of that.
func (s *scan) strange(line, around []byte) bool {
	switch {
	case s.asIs || match.ASCIIPrefix(line) == len(line) || s.q.Matcher.Bytes():
		return false
	case text.Escaped(line):
		s.foreign = text.Lookup("iso-2022-jp")
		return true
	case s.guessed:
		return false
	case utf8.Valid(line):
		s.utf8++
		s.guessed = s.utf8 == enoughUTF8
		return false
	}
	s.guessed = true // asking once is enough
	if around = sample(around); !text.MostlyUTF8(around) && !utf8.Valid(untorn(around, false, true)) {
		if e := guess(around); e != nil && e.EndsInASCII() {
			s.foreign = e
		}
	}
	return s.foreign != nil
}

// strangePiece is strange for a part of a line. A match of it may lie behind the escape in a part before.
func (s *scan) strangePiece(c chunk, end int) bool {
	if s.part.escaped {
		s.foreign = text.Lookup("iso-2022-jp")
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

// guess finds the encoding of text outside UTF-8, nil when it is not known.
func guess(b []byte) *text.Encoding { return text.Lookup(text.Guess(b)) }

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
	var e *text.Encoding
	if !text.MostlyUTF8(bad) {
		e = guess(bad)
	}
	for i := range rows {
		if utf8.ValidString(rows[i].Text) {
			continue
		}
		if e != nil {
			if decoded, err := e.Decode([]byte(rows[i].Text)); err == nil {
				rows[i].Text = string(decoded)
				continue
			}
		}
		rows[i].Text = validText(rows[i].Text)
	}
}
