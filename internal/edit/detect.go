package edit

import (
	"bytes"
	"math/bits"
	"unicode/utf8"

	"moltisfs/internal/charset"
)

// Detect names the charset of a file's bytes, as Apply would assume it, and the length of its byte order mark.
// guessed is true when the answer rests on statistics and not on a mark or on the bytes being valid UTF-8.
func Detect(content []byte) (name string, bom int, guessed bool) {
	cs, n, guessed := detect(content)
	return cs.name, n, guessed
}

// Decode gives the text of content as UTF-8 without byte order mark, for Patch, Snippet and the guards. encoding "" means
// detect. For UTF-8 the text is a part of content itself. Bytes that are no character become the bytes FF FF FF in
// other charsets and stay as they are in UTF-8.
func Decode(content []byte, encoding string) (text []byte, name string, err error) {
	d, err := open(content, encoding)
	if err != nil {
		return nil, "", err
	}
	return d.text, d.cs.name, nil
}

func detect(content []byte) (cs coding, bom int, guessed bool) {
	named := func(name string) coding {
		cs, _, _ := charsetNamed(name)
		return cs
	}
	switch {
	case bytes.HasPrefix(content, []byte("\xef\xbb\xbf")):
		return utf8Set(), 3, false
	case bytes.HasPrefix(content, []byte("\xff\xfe\x00\x00")) && plausible32(content, false):
		return named("utf-32le"), 4, false
	case bytes.HasPrefix(content, []byte("\x00\x00\xfe\xff")) && plausible32(content, true):
		return named("utf-32be"), 4, false
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		return named("utf-16le"), 2, false
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		return named("utf-16be"), 2, false
	}
	valid := utf8.Valid(content)
	if at := bytes.IndexByte(content, 0); at >= 0 {
		if wide := charset.Wide(content[:min(len(content), 64<<10)]); wide != "" && at < 8<<10 {
			return named(wide), 0, true // as Read shows it
		}
		if little, big := utf16Pattern(content, valid); little {
			return named("utf-16le"), 0, true
		} else if big {
			return named("utf-16be"), 0, true
		}
		// NULs in any other charset mean binary data; statistics about it are worth nothing.
		return utf8Set(), 0, !valid
	}
	if valid {
		return utf8Set(), 0, false
	}
	if charset.MostlyUTF8(content) {
		return utf8Set(), 0, true
	}
	return named(charset.Guess(content)), 0, true
}

// plausible32 keeps a UTF-16 file that starts with U+0000 from being taken for UTF-32.
func plausible32(b []byte, big bool) bool {
	if len(b)%4 != 0 {
		return false
	}
	for i := 0; i < len(b) && i < 64<<10; i += 4 {
		r := uint32(b[i]) | uint32(b[i+1])<<8 | uint32(b[i+2])<<16 | uint32(b[i+3])<<24
		if big {
			r = bits.ReverseBytes32(r)
		}
		if r > utf8.MaxRune || 0xd800 <= r && r < 0xe000 {
			return false
		}
	}
	return true
}

// utf16Pattern looks for text in UTF-16 without a mark: whole units, no control characters, no broken surrogates. A file that
// is valid UTF-8 too ("a\0b\0" is, and so is Russian) must look like Latin text in UTF-16 in at least two units of five: names separated
// by NULs could pass the rest.
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
		// Pairs of ASCII are ideographs too, but ideographs are not that often pairs of ASCII: it is text with some NULs.
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
