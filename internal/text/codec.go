package text

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// Mapped reports whether text and bytes differ, so that offsets have to be translated.
func (e *Encoding) Mapped() bool { return e != UTF8 }

// Decode returns b as UTF-8, with U+FFFD in place of bytes that are no character. UTF-8 stays as it is, errors included.
func (e *Encoding) Decode(b []byte) ([]byte, error) {
	if !e.Mapped() {
		return b, nil
	}
	return e.Codec.NewDecoder().Bytes(b)
}

// Exact is the text of raw as UTF-8, and whether each byte of raw is a part of a character: a decoder replaces bytes that are none, and
// says nothing. A U+FFFD that is written in raw is a character.
func (e *Encoding) Exact(raw []byte) (text []byte, ok bool) {
	switch {
	case !e.Mapped():
		text = raw
	case e.Stateful(): // it cannot hold a U+FFFD
		out, err := e.Decode(raw)
		return out, err == nil && !bytes.Contains(out, []byte("\ufffd"))
	default:
		text, _ = e.DecodePlaces(raw)
	}
	return text, utf8.Valid(text)
}

// Part is the text of the characters that begin in raw[lo:hi], and where they stand in raw, which begins with a character, or with a
// text where the encoding is stateful. ended: no byte follows raw. ok is that of Exact. Parts side by side are the whole text.
func (e *Encoding) Part(raw []byte, lo, hi int, ended bool) (text []byte, from, to int, ok bool) {
	from = e.begins(raw, lo, ended)
	to = max(from, e.begins(raw, hi, ended))
	if !e.Stateful() {
		text, ok = e.Exact(raw[from:to])
		return text, from, to, ok
	}
	before, _ := e.Exact(raw[:from])
	text, ok = e.Exact(raw[:to])
	return text[min(len(before), len(text)):], from, to, ok
}

// begins is the first place from at on where a character begins.
func (e *Encoding) begins(raw []byte, at int, ended bool) int {
	if at >= len(raw) { // of a file that shrinks there is less than was asked for
		return len(raw)
	}
	var sink [4096]byte
	pos, d := max(e.Certain(raw[:at]), 0), e.Codec.NewDecoder()
	for to := at; pos < at; {
		_, n, err := d.Transform(sink[:], raw[pos:to], ended && to == len(raw))
		if pos += n; err == transform.ErrShortDst || n > 0 && pos < at {
			continue
		}
		if to++; to > len(raw) {
			return len(raw) // the character goes on behind raw
		}
	}
	return pos
}

// Certain is the last place in b at which a character begins whatever stands before b, which begins with a code unit; -1 for none.
func (e *Encoding) Certain(b []byte) int {
	alone := byte(utf8.RuneSelf) // bytes below it are no part of another character
	switch {
	case e.Stateful():
		return -1
	case e.Unit > 1: // the unit before may be half a character, and is so by itself
		return len(b)&^(e.Unit-1) - e.Unit
	case e.EndsInASCII():
		alone = '0'
	}
	return bytes.LastIndexFunc(b, func(r rune) bool { return r < rune(alone) })
}

// Encode writes text in the encoding. A character that it cannot hold, or that would read back as
// another one, is reported by its byte offset in text; bad is -1 when there is none.
func (e *Encoding) Encode(text string) (raw []byte, bad int) {
	if !e.Mapped() {
		return []byte(text), -1
	}
	if utf8.ValidString(text) {
		raw, err := e.Codec.NewEncoder().Bytes([]byte(text))
		if err == nil && e.reads(raw, text) {
			return raw, -1
		}
	}
	for i, r := range text {
		_, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n <= 1 {
			return nil, i
		}
		one, err := e.Codec.NewEncoder().Bytes([]byte(text[i : i+n]))
		if err != nil || !e.reads(one, text[i:i+n]) {
			return nil, i
		}
	}
	// Every character alone is fine and the whole is not: the first is as good a culprit as any.
	return nil, 0
}

func (e *Encoding) reads(raw []byte, text string) bool {
	back, err := e.Codec.NewDecoder().Bytes(raw)
	return err == nil && string(back) == text
}

// Place ties an offset in the text to the offset in the bytes where the same character starts.
type Place struct{ Text, Raw int }

// Opaque stands in the text for bytes that are no character of the encoding. It is no valid UTF-8,
// so that nothing a caller sends matches it, and as long as the U+FFFD of the decoders.
const Opaque = "\xff\xff\xff"

const (
	decodeChunk  = 1024
	decodeSample = 64 << 10 // of the text, from which its size is told
)

// DecodePlaces gives the text of raw, with Opaque in place of bytes that are no character, and places at
// least every decodeChunk bytes of it. The encoding must not be stateful.
func (e *Encoding) DecodePlaces(raw []byte) ([]byte, []Place) {
	dec := e.Codec.NewDecoder()
	out := make([]byte, 0, min(len(raw), decodeSample)+decodeChunk)
	places := make([]Place, 0, len(raw)/decodeChunk+1)
	for pos := 0; pos < len(raw); {
		places = append(places, Place{len(out), pos})
		if cap(out)-len(out) < decodeChunk {
			// As long as the text so far suggests, and more: large texts are taken once.
			size := len(out) + decodeChunk + 4096
			if pos > 0 {
				size += int(float64(len(out)) / float64(pos) * float64(len(raw)-pos) * 1.03)
			}
			grown := make([]byte, len(out), size)
			copy(grown, out)
			out = grown
		}
		n, used, _ := dec.Transform(out[len(out):len(out)+decodeChunk], raw[pos:], true)
		if used == 0 {
			break // cannot happen: every decoder here takes at least a byte of any input
		}
		chunk := out[len(out) : len(out)+n]
		out = out[:len(out)+n]
		e.markOpaque(chunk, raw[pos:pos+used])
		pos += used
	}
	return out, places
}

// markOpaque replaces each U+FFFD in chunk that is not written as such in raw.
func (e *Encoding) markOpaque(chunk, raw []byte) {
	const sign = "\ufffd"
	at := bytes.Index(chunk, []byte(sign))
	if at < 0 {
		return
	}
	real, _ := e.Codec.NewEncoder().Bytes([]byte(sign))
	for pos := 0; at >= 0; {
		from := e.RawOffset(raw, at)
		to := e.RawOffset(raw, at+len(sign))
		if len(real) == 0 || !bytes.Equal(raw[from:to], real) {
			copy(chunk[at:], Opaque)
		}
		pos = at + len(sign)
		if at = bytes.Index(chunk[pos:], []byte(sign)); at >= 0 {
			at += pos
		}
	}
}

// RawOffset tells how many bytes of raw hold the first n bytes of its text, in whole characters.
func (e *Encoding) RawOffset(raw []byte, n int) int {
	if n == 0 {
		return 0
	}
	_, used, _ := e.Codec.NewDecoder().Transform(make([]byte, n), raw, true)
	return used
}

// Newline finds the next newline of b, which begins on a unit; -1 when there is none.
func (e *Encoding) Newline(b []byte) int {
	if e.Unit == 1 {
		return bytes.IndexByte(b, '\n')
	}
	low := 0
	if e.Big {
		low = e.Unit - 1
	}
	for i := 0; ; {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return -1
		}
		i += j
		start := i - i%e.Unit
		if i%e.Unit == low && start+e.Unit <= len(b) && onlyByte(b[start:start+e.Unit]) {
			return start
		}
		i++
	}
}

// onlyByte reports whether all bytes of a unit but one are zero.
func onlyByte(unit []byte) bool { return bytes.Count(unit, []byte{0}) == len(unit)-1 }

// CountLines counts the newlines of b, which begins on a unit, and says where the last line begins.
func (e *Encoding) CountLines(b []byte) (n, after int) {
	if e.Unit == 1 {
		return bytes.Count(b, []byte{'\n'}), bytes.LastIndexByte(b, '\n') + 1
	}
	for at := 0; ; n++ {
		i := e.Newline(b[at:])
		if i < 0 {
			return n, at
		}
		at += i + e.Unit
	}
}

// SkipLines is where the line after the first n begins; the length of b when there is none.
func SkipLines(b []byte, n int) int {
	at := 0
	for n > 256 && len(b)-at > 16<<10 { // count in blocks first
		c := bytes.Count(b[at:at+16<<10], []byte{'\n'})
		if c >= n {
			break
		}
		n -= c
		at += 16 << 10
	}
	for ; n > 0; n-- {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return len(b)
		}
		at += i + 1
	}
	return at
}
