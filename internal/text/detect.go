package text

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/lazy"
)

// marked has UTF-32 before UTF-16, whose mark begins like it.
var marked = [...]string{"utf-8", "utf-32le", "utf-32be", "utf-16le", "utf-16be"}

// ByMark returns the encoding whose byte order mark the text starts with; nil when it has none.
func ByMark(b []byte) *Encoding {
	if len(b) < 2 || b[0] != 0 && b[0] < 0xef {
		return nil
	}
	for _, name := range marked {
		e := Lookup(name)
		if bytes.HasPrefix(b, []byte(e.Mark)) {
			return e
		}
	}
	return nil
}

// Detected is the encoding of a text, and how sure that is.
type Detected struct {
	*Encoding
	Guessed bool        // by statistics
	Near    []*Encoding // those that are about as likely, whether or not they read the text otherwise
	Next    *Encoding   // the likeliest that reads the text otherwise; nil where none does
}

// Detect finds the encoding of the text b by its mark, by what it declares, or by its bytes. Valid UTF-8 wins over a
// declaration: text in another encoding is almost never valid by chance.
func Detect(b []byte) Detected {
	if e := ByMark(b); e != nil {
		return Detected{Encoding: e}
	}
	if bytes.IndexByte(b[:min(len(b), sniffLen)], 0) >= 0 {
		if wide := Lookup(Wide(b[:min(len(b), sampleBytes)])); wide != nil {
			return Detected{Encoding: wide, Guessed: true}
		}
		return Detected{Encoding: UTF8, Guessed: !utf8.Valid(b)} // NULs in any other encoding mean binary data
	}
	if e := Lookup(Stateful(b)); e != nil {
		return Detected{Encoding: e, Guessed: true}
	}
	valid := utf8.Valid(b)
	if e := Declared(b); e != nil && (!valid || isASCII(b)) {
		return Detected{Encoding: e}
	}
	switch {
	case valid:
		return Detected{Encoding: UTF8}
	case MostlyUTF8(b):
		return Detected{Encoding: UTF8, Guessed: true} // a few damaged characters do not make it another encoding
	}
	return Guess(b)
}

// declarations find the name of an encoding where programs look for it: in XML and HTML, in a stylesheet, in the first two lines of source (as
// Python, Ruby, Emacs and Vim do), in the header of a catalogue of messages, in LaTeX.
var declarations = sync.OnceValue(func() (all []*regexp.Regexp) {
	const name = `["']?([\w.:-]+)`
	for _, r := range []string{
		`^\s*<\?xml\s[^>]*?encoding\s*=\s*` + name,
		`(?is)^\s*<(?:.*?<)?meta\s[^>]*?charset\s*=\s*` + name,
		`^@charset ` + name,
		`^(?:[^\n]*\n)?[ \t]*(?:[#;%*"=]|//|/\*|--|\.\\"|<!--|\{-)[^\n]*?coding[:=][ \t]*` + name,
		`(?s)^(?:#|msgid ).*?\n"Content-Type:[^\n]*charset=` + name,
		`(?s)^\s*[\\%].*?\\(?:usepackage|RequirePackage)\[` + name + `\]\{inputenc\}`,
	} {
		all = append(all, regexp.MustCompile(r))
	}
	return all
})

// Declared is the encoding that the text b says it is in; nil where it says none that is known and explains its bytes.
func Declared(b []byte) *Encoding {
	head := b[:min(len(b), 4<<10)]
	if !slices.ContainsFunc([]string{"coding", "charset", "CHARSET", "inputenc"}, func(s string) bool { return bytes.Contains(head, []byte(s)) }) {
		return nil
	}
	for _, d := range declarations() {
		found := d.FindSubmatch(head)
		if found == nil {
			continue
		}
		e := Lookup(emacsEnds.Replace(string(found[1])))
		if e == nil || e.Unit > 1 || e.Stateful() || e.Name == "us-ascii" {
			return nil
		}
		text, _ := e.Decode(strangeLines(b, sampleBytes))
		c1 := bytes.ContainsFunc(text, func(r rune) bool { return r >= 0x80 && r < 0xa0 })
		switch wider := map[string]string{"iso-8859-1": "windows-1252", "iso-8859-9": "windows-1254"}[e.Name]; {
		case bytes.Contains(text, []byte("\ufffd")), c1 && wider == "":
			return nil
		case c1: // as browsers read it
			return Lookup(wider)
		}
		return e
	}
	return nil
}

// emacsEnds takes the line ends off Emacs' names.
var emacsEnds = strings.NewReplacer("-unix", "", "-dos", "")

// GuessMark behind the name of an encoding says that an earlier text of the file was guessed to be in it. The guess holds; where the text is now
// taken for another one, that is its runner-up.
const GuessMark = "?"

// SurelyUTF8 says that b is valid, with so many characters beyond ASCII that it is so in no other encoding by chance.
func SurelyUTF8(b []byte) bool { return utf8.Valid(b) && len(b)-utf8.RuneCount(b) >= 4 }

// Of is the encoding in which a file is read: the one asked for, where a name without a byte order
// leaves that to the file's mark; detected when asked is empty. mark is the length of the byte
// order mark. The encoding is nil when the name is not known.
func Of(asked string, b []byte) (d Detected, mark int) {
	if asked == "" {
		d = Detect(b)
	} else if was, guess := strings.CutSuffix(asked, GuessMark); guess {
		if d = Detect(b); d.Guessed && d.Encoding != Lookup(was) && Lookup(was) != nil {
			d = Detected{Lookup(was), true, append(d.Near, d.Encoding), d.Encoding}
		}
	} else if d.Encoding = Lookup(asked); AnyOrder(asked) {
		if marked := ByMark(b); marked != nil && marked.Unit == d.Unit {
			d.Encoding = marked
		}
	}
	if d.Encoding != nil && bytes.HasPrefix(b, []byte(d.Mark)) {
		mark = len(d.Mark)
	}
	return d, mark
}

// ToRead is Of for reading only: GBK is read as GB 18030, which holds all of it, and ASCII as UTF-8.
func ToRead(asked string, b []byte) (d Detected, mark int) {
	switch d, mark = Of(asked, b); {
	case d.Encoding == nil:
	case d.Name == "gbk":
		d.Encoding = Lookup("gb18030")
	case d.Name == "us-ascii":
		d.Encoding = UTF8
	}
	return d, mark
}

// Content is the finding of Sniff about the first bytes of a file. Reading, searching and editing all ask Sniff.
type Content struct {
	NUL  bool      // it is binary
	Wide *Encoding // UTF-16 or UTF-32
}

// Plain is text with bytes to search as they are; Binary is no text.
var (
	Plain  = Content{}
	Binary = Content{NUL: true}
)

// sniffLen bytes are looked at: a NUL byte in this much makes a file binary, as in git.
const sniffLen = 8000

// Sniff tells text from UTF-16, UTF-32 and binary by the first bytes of a file. One whose first NUL comes after sniffLen is text.
func Sniff(b []byte) Content {
	if e := ByMark(b); e != nil && e.Unit > 1 {
		return Content{Wide: e}
	}
	head := b[:min(len(b), sniffLen)]
	if bytes.IndexByte(head, 0) < 0 {
		return Plain
	}
	if e := Lookup(Wide(head)); e != nil {
		return Content{Wide: e}
	}
	return Binary
}

// IsPlainUTF8 says that b is UTF-8 without an escape to another character set.
func IsPlainUTF8(b []byte) bool { return bytes.IndexByte(b, 0x1b) < 0 && utf8.Valid(b) }

// Escaped recognises ISO-2022-JP (RFC 1468): ASCII bytes and an escape that begins Japanese.
func Escaped(b []byte) bool {
	return bytes.IndexByte(b, 0x1b) >= 0 && (bytes.Contains(b, []byte("\x1b$B")) || bytes.Contains(b, []byte("\x1b$@"))) && isASCII(b)
}

func isASCII(b []byte) bool { return bytes.IndexFunc(b, beyondASCII) < 0 }

func beyondASCII(r rune) bool { return r >= utf8.RuneSelf }

// stateful are sequences that give ASCII bytes other letters: escapes of ISO 2022, brackets of HZ.
var stateful = lazy.Regexp("\x1b\\$(?:[@AB]|[()*+][@-Z])|\x1b\\(I|~\\{(?:[!-#0-W][!-~]){2,}~\\}")

// Stateful names the encoding of the ASCII bytes b in which the meaning of a byte depends on those before it;
// "" for all others. Such a text can't be searched by bytes: two letters may be one kanji.
func Stateful(b []byte) string {
	if bytes.IndexByte(b, 0x1b) < 0 && !bytes.Contains(b, []byte("~{")) || !isASCII(b) {
		return ""
	}
	switch found := stateful().Find(b); {
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
	for _, name := range [2]string{"utf-32le", "utf-32be"} {
		if wide32(Lookup(name), b) {
			return name
		}
	}
	var nul [4]int
	for i, c := range b {
		if c == 0 {
			nul[i&3]++
		}
	}
	even, odd := nul[0]+nul[2], nul[1]+nul[3]
	if even > 0 && odd > 0 && min(even, odd)*20 > max(even, odd) {
		return wideCJK(b)
	}
	name, high := "utf-16le", 1 // high: where a unit has its high byte
	if even > odd {
		name, high = "utf-16be", 0
	}
	// Latin text has a NUL in nearly every unit, other scripts in their spaces and newlines.
	units, controls, plain, pairs := len(b)/2, 0, 0, 0
	var rows [256]int
	for i := 0; i+1 < len(b); i += 2 {
		lo, hi := b[i+1-high], b[i+high]
		rows[hi]++
		if textual(lo) && textual(hi) {
			pairs++
		}
		switch {
		case hi == 0 && (lo < ' ' && lo != '\t' && lo != '\n' && lo != '\r' && lo != '\f' || lo == 0):
			controls++
		case hi == 0 && lo < 0x7f:
			plain++
		case hi >= 0xd8 && hi <= 0xdb && i+3 < len(b) && b[i+2+high]&0xfc == 0xdc:
			i += 2 // two surrogates are one character
		case hi >= 0xd8 && hi <= 0xdf || hi >= 0xe0 && hi <= 0xf8 || hi == 0xff && lo >= 0xfe:
			controls++ // a lone surrogate is none, and private characters are rare
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

// wide32 says that b is UTF-32: every unit is a printable character, in text that keeps to few rows of Unicode or is of ideographs.
// Numbers of four bytes are that hardly ever.
func wide32(e *Encoding, b []byte) bool {
	const fewest, spread = 3, 12
	rows := map[rune]bool{}
	for i := 0; i < len(b); i += 4 {
		r := rune(b[i]) | rune(b[i+1])<<8 | rune(b[i+2])<<16 | rune(b[i+3])<<24
		if e.Big {
			r = rune(b[i])<<24 | rune(b[i+1])<<16 | rune(b[i+2])<<8 | rune(b[i+3])
		}
		switch {
		case !unicode.IsPrint(r) && !unicode.IsSpace(r):
			return false
		case r < 0x3400 || r > 0x9fff && r < 0xac00 || r > 0xd7a3:
			rows[r>>8] = true
		}
	}
	return len(b) >= 4*fewest && len(rows) > 0 && len(rows) <= spread
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
