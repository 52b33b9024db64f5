package readers

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/text"
)

// Encodings lists the names that Options.Encoding takes, the common ones first. Usual aliases are taken too.
func Encodings() []string {
	return slices.DeleteFunc(text.Names(), func(name string) bool {
		e, _ := text.ToRead(name, nil)
		return e.Name != name // is read as another that holds it
	})
}

// encodingOf is the encoding in which a file that begins with b is read, and the length of its byte order mark. asked overrules
// detection.
func encodingOf(asked string, b []byte) (e *text.Encoding, mark int, err error) {
	if e, mark = text.ToRead(asked, b); e == nil {
		return nil, 0, &BadEncoding{Name: asked, Why: "there is no such encoding"}
	}
	return e, mark, nil
}

// decodeWhole turns a whole file into UTF-8. For UTF-8 the result is the file itself, bad bytes included.
func decodeWhole(raw []byte, asked string) (name string, content []byte, err error) {
	e, mark, err := encodingOf(asked, raw)
	if err != nil {
		return "", nil, err
	}
	content, err = decode(e, raw[mark:])
	return encodingLabel(e, mark), content, err
}

// decode returns UTF-8. Bytes that the encoding does not know become U+FFFD.
func decode(e *text.Encoding, b []byte) ([]byte, error) {
	out, err := e.Decode(b)
	if err != nil {
		return nil, &BadEncoding{Name: e.Name, Why: fmt.Sprintf("the file is not in it (%v)", err)}
	}
	return out, nil
}

func encodingLabel(e *text.Encoding, mark int) string {
	if mark > 0 {
		return e.Name + " with BOM"
	}
	return e.Name
}

// isBinary decides by the first bytes that a file is not text in any encoding.
func isBinary(head []byte) bool { return text.Sniff(head) == text.Binary }

// noText says of a file that begins like a picture or a PDF that it is no text that only speaks of one.
func noText(head []byte) bool { return isBinary(head) || !text.MostlyUTF8(head) }

// textButForNULs says that the first bytes of a binary file are text in UTF-8, had they no NULs.
func textButForNULs(head []byte) bool {
	rest := bytes.ReplaceAll(head, []byte{0}, nil)
	controls := 0
	for _, c := range rest {
		if c < ' ' && !bytes.ContainsRune([]byte("\t\n\r\f\b\x1b"), rune(c)) {
			controls++
		}
	}
	return len(rest) > 0 && controls*10 <= len(rest) && text.MostlyUTF8(rest)
}

// countReplaced counts what a decoder showed as U+FFFD. In UTF-8 the page counts it, where the bad bytes are still there; a U+FFFD that was written
// as such, which other encodings can hardly hold, is counted with the others.
func (t *Text) countReplaced() {
	name, _, _ := strings.Cut(t.Encoding, " ")
	if e := text.Lookup(name); e != nil && e.Mapped() {
		t.InvalidBytes += strings.Count(t.Content, "\uFFFD") * e.Unit
	}
}

// skipChars returns how many bytes the first n characters take, and how many of the n there were.
func skipChars(b []byte, n int) (size, chars int) {
	for chars < n && size < len(b) {
		if b[size] < utf8.RuneSelf {
			size++
		} else {
			_, w := utf8.DecodeRune(b[size:])
			size += w
		}
		chars++
	}
	return size, chars
}
