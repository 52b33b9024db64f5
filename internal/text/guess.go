package text

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
)

// sampleBytes of a text are looked at.
const sampleBytes = 64 << 10

// MostlyUTF8 is true for UTF-8 with few foreign bytes: at most one for three multi-byte characters.
func MostlyUTF8(b []byte) bool {
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

// Guess names the charset of content, which is not UTF-8, in lower case and by a name that Lookup
// knows. It asks the statistics about lines beyond ASCII; the first answer that explains the bytes
// wins.
func Guess(content []byte) string {
	sample := strangeLines(content, sampleBytes)
	answers := ask(sample)
	top := ""
	if len(answers) > 0 {
		top = usual(answers[0].Encoding)
	}
	// A likelier encoding beats the detector's answer. The family of GB 18030 is decided below.
	if likely := likeliest(sample, top); likely != "gb18030" && likely != top {
		if e := decoder(likely); e != nil && explains(e, sample) {
			return e.Name
		}
	}
	for i, r := range answers {
		if i > 0 && r.Confidence < 0.3 {
			break
		}
		name := strings.ToLower(r.Encoding)
		switch name {
		case "gb2312", "gb18030":
			// Big5 is taken for it, but half of its second bytes are where GB 2312 has none.
			if lowTrails(sample) && explains(Lookup("big5"), sample) {
				return "big5"
			}
			name = "gb18030" // it reads all of its family, and can hold every character
		case "iso-8859-1":
			// C1 controls do not occur in text; cp1252 has letters and quotes there.
			if share(content, 0x80, 0xa0) > 0 {
				name = "windows-1252"
			}
		case "maccyrillic", "x-mac-cyrillic":
			// Small letters are in the same places; capitals are not.
			name = "x-mac-cyrillic"
			if c1, high := share(sample, 0x80, 0xa0), share(sample, 0xc0, 0xdf); c1 <= high {
				name = "windows-1251"
			}
		}
		if e := decoder(name); e != nil && explains(e, sample) {
			return e.Name
		}
	}
	// Nothing convinces. A few strange bytes in ASCII are Western text until somebody says otherwise.
	if share(content, 0x80, 0xa0) > 0 {
		return "windows-1252"
	}
	return "iso-8859-1"
}

// ask asks the detector. It is not ours and sees whatever a tree holds; a panic is no answer.
func ask(sample []byte) (all []chardet.Result) {
	defer func() {
		if recover() != nil {
			all = nil
		}
	}()
	return chardet.DetectAll(sample)
}

// decoder finds an encoding of bytes by the name that a detector gives; nil for unknown names and for
// those that are not guessed.
func decoder(name string) *Encoding {
	e := Lookup(name)
	if e == nil || e == UTF8 || e.Unit > 1 || e.Stateful() {
		return nil
	}
	return e
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

// explains allows one bad byte in fifty: damage is more frequent than exotic charsets.
func explains(e *Encoding, sample []byte) bool {
	text, err := e.Codec.NewDecoder().Bytes(sample)
	return err == nil && bytes.Count(text, []byte("\ufffd"))*50 <= len(sample)-share(sample, 0, utf8.RuneSelf)
}

// strangeLines collects whole lines with bytes above ASCII, wherever they are, up to max bytes.
func strangeLines(content []byte, max int) []byte {
	out := make([]byte, 0, min(len(content), max))
	for len(content) > 0 && len(out) < max {
		line := content
		if i := bytes.IndexByte(content, '\n'); i >= 0 {
			line = content[:i+1]
		}
		content = content[len(line):]
		if share(line, 0, utf8.RuneSelf) < len(line) {
			out = append(out, line[:min(len(line), max-len(out))]...)
		}
	}
	return out
}
