package text

import (
	"bytes"
	"math/bits"
	"regexp"
)

// Escaped recognises ISO-2022-JP (RFC 1468): ASCII bytes and an escape that begins Japanese.
func Escaped(b []byte) bool {
	if bytes.IndexByte(b, 0x1b) < 0 || !bytes.Contains(b, []byte("\x1b$B")) && !bytes.Contains(b, []byte("\x1b$@")) {
		return false
	}
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// stateful are sequences that give ASCII bytes other letters: escapes of ISO 2022, brackets of HZ.
var stateful = regexp.MustCompile("\x1b\\$(?:[@AB]|[()*+][@-Z])|\x1b\\(I|~\\{(?:[!-w][!-~])+~\\}")

// Stateful names the encoding of ASCII bytes in which what a byte means depends on those before it;
// "" for all others. Such a text can't be searched by bytes: two letters may be one kanji.
func Stateful(b []byte) string {
	if bytes.IndexByte(b, 0x1b) < 0 && !bytes.Contains(b, []byte("~{")) {
		return ""
	}
	for _, c := range b {
		if c >= 0x80 {
			return ""
		}
	}
	switch found := stateful.Find(b); {
	case found == nil:
		return ""
	case found[0] == '~':
		return "hz-gb-2312"
	case Escaped(b):
		return "iso-2022-jp"
	}
	return "iso-2022"
}

// Wide recognises UTF-16 and UTF-32 without a mark by where the NULs are: in one position of each
// unit only, and with newlines or spaces that are whole units.
func Wide(b []byte) string {
	if len(b) < 4 {
		return ""
	}
	b = b[:len(b)&^3]
	var nul [4]int
	for i, c := range b {
		if c == 0 {
			nul[i&3]++
		}
	}
	quads := len(b) / 4
	switch {
	case nul[3] == quads && nul[2] > quads*9/10 && nul[0] == 0:
		return "utf-32le"
	case nul[0] == quads && nul[1] > quads*9/10 && nul[3] == 0:
		return "utf-32be"
	}
	even, odd := nul[0]+nul[2], nul[1]+nul[3]
	if even > 0 && odd > 0 && min(even, odd)*20 > max(even, odd) {
		return wideCJK(b)
	}
	name, big := "utf-16le", false
	if even > odd {
		name, big = "utf-16be", true
	}
	// Latin text has a NUL in nearly every unit, other scripts in their spaces and newlines.
	units, controls, plain, pairs := len(b)/2, 0, 0, 0
	var rows [256]int
	for i := 0; i+1 < len(b); i += 2 {
		lo, hi := b[i], b[i+1]
		if big {
			lo, hi = hi, lo
		}
		rows[hi]++
		if textual(lo) && textual(hi) {
			pairs++
		}
		switch {
		case hi == 0 && (lo < ' ' && lo != '\t' && lo != '\n' && lo != '\r' && lo != '\f' || lo == 0):
			controls++
		case hi == 0 && lo < 0x7f:
			plain++
		case hi >= 0xd8 && hi <= 0xdf || hi >= 0xe0 && hi <= 0xf8 || hi == 0xff && lo >= 0xfe:
			controls++ // surrogates are rare, private characters rarer
		}
	}
	if controls*20 > units || plain == 0 || namesApart(pairs, units-plain) {
		return ""
	}
	// Text keeps to few rows of Unicode; only ideographs spread.
	used, ideographs := 0, 0
	for row, n := range rows {
		if n == 0 {
			continue
		}
		if row >= 0x4e && row <= 0x9f || row >= 0xac && row <= 0xd7 {
			ideographs += n
		} else {
			used++
		}
	}
	if used > 12 && ideographs*4 < units {
		return ""
	}
	return name
}

// wideCJK recognises Chinese, Japanese and Korean in UTF-16, where NULs stand in both places since
// some of their characters end in one: 49 of 50 units are of their blocks or ASCII.
func wideCJK(b []byte) string {
	const fewest = 12 // units; noise passes for so many once in thousands
	for _, big := range []bool{false, true} {
		strange, plain, pairs, units := 0, 0, 0, len(b)/2
		for i := 0; i+1 < len(b); i += 2 {
			u := uint16(b[i]) | uint16(b[i+1])<<8
			if big {
				u = u<<8 | u>>8
			}
			if textual(b[i]) && textual(b[i+1]) {
				pairs++
			}
			switch {
			case u == '\n', u == '\r', u == '\t', u >= ' ' && u < 0x7f:
				plain++
			case u >= 0x3000 && u <= 0x30ff, u >= 0x4e00 && u <= 0x9fff,
				u >= 0xac00 && u <= 0xd7a3, u >= 0xff01 && u <= 0xff5e, u >= 0x2010 && u <= 0x2026:
			default:
				strange++
			}
			if strange*50 > units {
				break // enough is known: a walk asks this of every binary file
			}
		}
		if units >= fewest && strange*50 <= units && !namesApart(pairs, units-plain) {
			if big {
				return "utf-16be"
			}
			return "utf-16le"
		}
	}
	return ""
}

// namesApart tells ASCII with NULs between, as find -print0 writes it, from ideographs: two letters
// make an ideograph too, but ideographs are not that often two letters. others are the other units.
func namesApart(pairs, others int) bool { return pairs*4 > others*3 }

// textual: printable, or white space.
func textual(c byte) bool { return c >= '\t' && c < 0x7f }

// utf16Pattern looks for text in UTF-16 without a mark: whole units, no control characters, no
// broken surrogates. A file that is valid UTF-8 too ("a\0b\0" is, and so is Russian) must look like
// Latin text in UTF-16 in at least two units of five: names separated by NULs could pass the rest.
func utf16Pattern(b []byte, validUTF8 bool) (little, big bool) {
	if len(b)%2 != 0 || len(b) == 0 {
		return false, false
	}
	sample := b
	if len(sample) > 256<<10 {
		sample = sample[:256<<10]
	}
	try := func(big bool) (ok bool, latin int) {
		high, others, pairs := false, 0, 0
		for i := 0; i+1 < len(sample); i += 2 {
			u := uint16(sample[i]) | uint16(sample[i+1])<<8
			if big {
				u = bits.ReverseBytes16(u)
			}
			switch {
			case 0xdc00 <= u && u < 0xe000:
				if !high {
					return false, 0
				}
				high = false
				continue
			case high:
				return false, 0
			case 0xd800 <= u && u < 0xdc00:
				high = true
			case u < 0x20 && u != '\t' && u != '\n' && u != '\r' && u != '\f' && u != 0x1b,
				0x7f <= u && u < 0xa0, u >= 0xfffe, 0xe000 <= u && u < 0xf900:
				return false, 0
			case u < 0x7f:
				latin++
				continue
			}
			others++
			if lo, hi := sample[i], sample[i+1]; lo >= '\t' && lo < 0x7f && hi >= '\t' && hi < 0x7f {
				pairs++
			}
		}
		// Pairs of ASCII are ideographs too, but not that often: it is text with some NULs.
		return pairs*4 <= others*3, latin
	}
	l, nl := try(false)
	g, ng := try(true)
	if need := len(sample) / 2 * 2 / 5; validUTF8 {
		l, g = l && nl >= need, g && ng >= need
	}
	switch {
	case l && g:
		return nl > ng, ng > nl
	default:
		return l, g
	}
}
