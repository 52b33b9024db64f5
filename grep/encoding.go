package grep

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/text/transform"

	"moltisfs/grep/match"
	"moltisfs/internal/text"
)

const (
	headLen   = 64 << 10 // only of text is more than this read
	sampleLen = 64 << 10 // an encoding is guessed from this much
)

// bomLen is the length of UTF-8's mark at the beginning of b.
func bomLen(b []byte) int { return len(b) - len(bytes.TrimPrefix(b, []byte(text.UTF8.Mark))) }

// decoded searches the file as its text in UTF-8. Columns and offsets are then those of the UTF-8.
func (t *target) decoded(w *worker, st *state, e *text.Encoding) {
	var head [4]byte
	n, _ := t.file.ReadAt(head[:len(e.Mark)], 0) // an error will come again
	if string(head[:n]) != e.Mark {
		n = 0
	}
	raw := io.NewSectionReader(t.file, int64(n), 1<<62)
	t.read(w, st, transform.NewReader(raw, e.Codec.NewDecoder()))
}

// legacy searches a file that encodingOf calls foreign: decoded, or as bytes when its encoding is
// unknown, which is counted.
func (t *target) legacy(w *worker, st *state, e *text.Encoding) {
	if e != nil {
		t.decoded(w, st, e)
		return
	}
	w.skipped.Encoding++
	t.bytes = true
	t.read(w, st, io.NewSectionReader(t.file, 0, 1<<62))
}

// read searches everything that r gives, without asking for its encoding again.
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

// encodingOf says whether a pattern outside ASCII can be looked for in a part of a file as it is.
// When the part is foreign, the file must be decoded from e, or from an unknown encoding when e is
// nil. UTF-8 with a few errors is not foreign.
//
// cut says that b may begin within a character, whole that it does not end within one.
func encodingOf(b []byte, cut, whole bool) (e *text.Encoding, foreign bool) {
	all := b // to guess from: a character that UTF-8 would cut is whole in other encodings
	b = trimPartialRunes(b, cut, !whole)
	switch {
	case text.IsPlainUTF8(b):
		return nil, false
	case text.Escaped(b):
		return text.Lookup("iso-2022-jp"), true
	case utf8.Valid(b) || text.MostlyUTF8(b):
		return nil, false
	}
	if all = sample(all); text.MostlyUTF8(all) {
		return nil, true // a mixture of encodings
	}
	return text.Guess(all).Encoding, true
}

// encoding is encodingOf for a chunk, when the pattern asks for it.
func (t *target) encoding(s *scan, c chunk) (e *text.Encoding, foreign bool) {
	if !t.nonASCII || s.asIs {
		return nil, false
	}
	e, foreign = encodingOf(c.b[c.from:], c.piece > pieceFirst, c.last || c.piece == pieceLast)
	if foreign {
		e = t.says(e)
	}
	return e, foreign
}

// says is the encoding that the query or the file's own beginning names, or the guess e.
func (t *target) says(e *text.Encoding) *text.Encoding {
	if named := text.Lookup(t.q.Encoding); named != nil {
		return named
	}
	head := make([]byte, 4<<10)
	n, _ := t.file.ReadAt(head, 0) // an error will come again
	if declared := text.Declared(head[:n]); declared != nil {
		return declared
	}
	return e
}

// trimPartialRunes drops the parts of characters at the ends of b that may be cut.
func trimPartialRunes(b []byte, head, tail bool) []byte {
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

// enoughUTF8 is how many matching lines beyond ASCII must be valid before the file counts as UTF-8.
const enoughUTF8 = 256

// lookAhead bytes are checked together: matching lines often follow one another.
const lookAhead = 1024

// isASCIILine says that b[start:end], a matching line, is ASCII without escapes. Then mustDecode
// need not be asked. Lines come in order. b lies at offset at of the file.
func (s *scan) isASCIILine(b []byte, at int64, start, end int) bool {
	if at+int64(end) > s.plainTo {
		ahead := min(len(b), max(end, start+lookAhead))
		s.plainTo = at + int64(start+match.ASCIIPrefix(b[start:ahead]))
	}
	return at+int64(end) <= s.plainTo
}

// mustDecode says that the text around line must be decoded: line, which holds a match, is not
// UTF-8, and the match may begin in the middle of a character. Encodings whose characters never end
// in ASCII need no decoding.
func (s *scan) mustDecode(line, around []byte) bool {
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
	s.guessed = true // one guess is enough
	around = sample(around)
	if !text.MostlyUTF8(around) && !utf8.Valid(trimPartialRunes(around, false, true)) {
		e := text.Lookup(s.q.Encoding)
		if e == nil {
			e = text.Guess(around).Encoding
		}
		if e.EndsInASCII() {
			s.foreign = e
		}
	}
	return s.foreign != nil
}

// mustDecodePiece is mustDecode for a part of a line. The escape may stand in an earlier
// part.
func (s *scan) mustDecodePiece(c chunk, end int) bool {
	if s.part.escaped {
		s.foreign = text.Lookup("iso-2022-jp")
		return true
	}
	b := trimPartialRunes(c.b[c.from:end], c.piece != pieceFirst, c.piece != pieceLast)
	return s.mustDecode(b, c.b[c.from:end])
}

// sample is the part of b around its first byte outside ASCII.
func sample(b []byte) []byte {
	i := bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf })
	from := max(0, i-1024)
	return b[from:min(len(b), from+sampleLen)]
}

// rowsToUTF8 makes the texts of rows UTF-8: decoded where their encoding can be guessed, else with
// replacement characters.
func (t *target) rowsToUTF8(rows []Row) {
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
		e = t.says(text.Guess(bad).Encoding)
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
