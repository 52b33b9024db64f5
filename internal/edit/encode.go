package edit

import (
	"strings"

	"moltisfs/internal/text"
)

// encodingOf is text.Of for who changes text in place: ASCII bytes, which a stateful encoding gives
// another meaning, are taken as they are. openToChange refuses such a file.
func encodingOf(asked string, content []byte) (e *text.Encoding, bom int, guessed bool) {
	e, bom, guessed = text.Of(asked, content)
	if e != nil && e.Stateful() {
		if asked != "" {
			return nil, 0, false
		}
		e = text.UTF8
	}
	if guessed && e.Name == "gb18030" && !fourBytes(content) {
		e = text.Lookup("gbk") // what reads GBK stops at a character of four bytes
	}
	return e, bom, guessed
}

// fourBytes says that a text in GB 18030 has a character of four bytes.
func fourBytes(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] > 0x80 {
			if i++; '0' <= raw[i] && raw[i] <= '9' {
				return true
			}
		}
	}
	return false
}

// Decode gives the text of content as UTF-8 without byte order mark, for Patch, Snippet and the
// guards. encoding "" means detect. For UTF-8 the text is a part of content itself. Bytes that are
// no character become the bytes FF FF FF in other encodings and stay as they are in UTF-8.
func Decode(content []byte, encoding string) (text []byte, name string, err error) {
	d, err := open(content, encoding)
	if err != nil {
		return nil, "", err
	}
	return d.text, d.enc.Name, nil
}

// KeepEnds gives content the line ends of the text like, which it replaces: all CRLF where those are,
// and content has bare LF only. kept says that it has others now than were sent.
func KeepEnds(content string, like []byte) (text string, kept bool) {
	if lineEnding(like) != "crlf" || !strings.Contains(content, "\n") || strings.Contains(content, "\r\n") {
		return content, false
	}
	return strings.ReplaceAll(content, "\n", "\r\n"), true
}

// Encode writes a whole new text the way the file that it replaces is written: in its charset, with
// its byte order mark if it has one. encoding names another charset; "" keeps that of like, which
// is UTF-8 when like is nil, empty or binary. Line endings are taken as they are: see KeepEnds. name
// is the charset as Detect names it.
//
// Errors are *UnencodableError (Index 0) and *EncodingError.
func Encode(content string, like []byte, encoding string) (raw []byte, name string, err error) {
	d, err := openToChange(like, encoding)
	if err == nil && encoding != "" && len(d.bom) == 0 {
		d, err = open(nil, encoding) // a mark is made only if the name asks for one
	}
	if err != nil {
		return nil, "", err
	}
	if len(d.bom) > 0 {
		content = strings.TrimPrefix(content, "\ufeff")
	}
	if !d.enc.Mapped() {
		return append(append(make([]byte, 0, len(d.bom)+len(content)), d.bom...), content...), d.enc.Name, nil
	}
	body, bad := d.encode(content)
	if bad >= 0 {
		return nil, "", d.unencodable(0, content, content, bad)
	}
	return append(append(make([]byte, 0, len(d.bom)+len(body)), d.bom...), body...), d.enc.Name, nil
}
