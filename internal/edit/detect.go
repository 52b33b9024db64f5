package edit

import (
	"bytes"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"

	likelihood "moltisfs/internal/charset"
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

func detect(content []byte) (cs charset, bom int, guessed bool) {
	named := func(name string) charset {
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
	if bytes.IndexByte(content, 0) >= 0 {
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
	if mostlyUTF8(content) {
		return utf8Set(), 0, true
	}
	return guess(content), 0, true
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
// is valid UTF-8 too ("a\0b\0" is) must look like Latin text in UTF-16 in at least two units of five, because names
// separated by NULs could pass the rest.
func utf16Pattern(b []byte, validUTF8 bool) (little, big bool) {
	if len(b)%2 != 0 || len(b) == 0 {
		return false, false
	}
	sample := b
	if len(sample) > 256<<10 {
		sample = sample[:256<<10]
	}
	try := func(big bool) (ok bool, latin int) {
		high := false
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
			}
		}
		return true, latin
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

// mostlyUTF8 is true for UTF-8 with a few foreign bytes: at least three multi-byte characters for each byte that is none.
func mostlyUTF8(b []byte) bool {
	chars, strange := 0, 0
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			b = b[1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			strange++
		} else {
			chars++
		}
		b = b[n:]
	}
	return chars >= 3*strange
}

// guess asks the statistics, on the lines that hold anything but ASCII, and keeps the first answer that explains the bytes.
func guess(content []byte) charset {
	sample := strangeLines(content, 64<<10)
	answers := chardet.DetectAll(sample)
	top := ""
	if len(answers) > 0 {
		top = answers[0].Encoding
	}
	// The detector knows single-byte charsets badly; where another one is likelier, that one is meant. Within the family of GB 18030 it is
	// decided below.
	if likely := likelihood.Likeliest(sample, top); likely != "gb18030" && plainName(likely) != plainName(top) {
		if cs, _, ok := charsetNamed(likely); ok && cs.mapped() && explains(cs, sample) {
			return cs
		}
	}
	for i, r := range answers {
		if i > 0 && r.Confidence < 0.3 {
			break
		}
		name := r.Encoding
		switch plainName(name) {
		case "gb2312", "gb18030":
			// Big5 is taken for it, but half of its second bytes are where GB 2312 has none.
			if big5, _, _ := charsetNamed("big5"); lowTrails(sample) && explains(big5, sample) {
				return big5
			}
			// One family; the smallest member that explains the bytes, so that nothing is written that its readers do not know.
			if gbk, _, _ := charsetNamed("gbk"); explains(gbk, sample) {
				return gbk
			}
			name = "gb18030"
		case "iso88591":
			// C1 controls do not occur in text; cp1252 has letters and quotes there.
			if hasC1(content) {
				name = "windows-1252"
			}
		case "maccyrillic", "xmaccyrillic":
			// Small letters are in the same places; capitals are not.
			if c1, high := share(sample, 0x80, 0xa0), share(sample, 0xc0, 0xdf); c1 <= high {
				name = "windows-1251"
			}
		}
		if cs, _, ok := charsetNamed(name); ok && cs.mapped() && !strings.HasPrefix(cs.name, "utf-") && explains(cs, sample) {
			return cs
		}
	}
	// Nothing convinces. A few strange bytes in ASCII are Western text until somebody says otherwise (Options.Encoding).
	name := "iso-8859-1"
	if hasC1(content) {
		name = "windows-1252"
	}
	cs, _, _ := charsetNamed(name)
	return cs
}

// lowTrails is true where more than one in seven two-byte characters ends in a byte below 0xa1.
func lowTrails(b []byte) bool {
	low, all := 0, 0
	for i := 0; i+1 < len(b); i++ {
		if b[i] > 0x80 {
			i++
			all++
			if b[i] < 0xa1 {
				low++
			}
		}
	}
	return low*7 > all
}

// share counts bytes from lo up to hi.
func share(b []byte, lo, hi byte) (n int) {
	for _, c := range b {
		if lo <= c && c < hi {
			n++
		}
	}
	return n
}

func hasC1(b []byte) bool {
	for _, c := range b {
		if 0x80 <= c && c < 0xa0 {
			return true
		}
	}
	return false
}

// explains allows one byte in fifty that is no character: files are damaged more often than they are in exotic charsets.
func explains(cs charset, sample []byte) bool {
	text, _ := cs.decode(sample)
	return bytes.Count(text, []byte(opaque))*50 <= len(sample)-countASCII(sample)
}

func countASCII(b []byte) (n int) {
	for _, c := range b {
		if c < utf8.RuneSelf {
			n++
		}
	}
	return n
}

// strangeLines collects lines with bytes above ASCII, up to max bytes: whole lines, so that no character is cut.
func strangeLines(content []byte, max int) []byte {
	if len(content) <= max {
		return content
	}
	out := make([]byte, 0, max)
	for len(content) > 0 && len(out) < max {
		line := content
		if i := bytes.IndexByte(content, '\n'); i >= 0 {
			line = content[:i+1]
		}
		content = content[len(line):]
		if countASCII(line) < len(line) {
			out = append(out, line[:min(len(line), max-len(out))]...)
		}
	}
	return out
}
