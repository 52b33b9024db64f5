package text

import (
	"bytes"
	"unicode/utf8"
)

// marked has UTF-32 before UTF-16, whose mark begins like it.
var marked = [...]*Encoding{UTF8, Lookup("utf-32le"), Lookup("utf-32be"), Lookup("utf-16le"), Lookup("utf-16be")}

// ByMark returns the encoding whose byte order mark the text starts with; nil when it has none.
func ByMark(b []byte) *Encoding {
	for _, e := range marked {
		if bytes.HasPrefix(b, []byte(e.Mark)) {
			return e
		}
	}
	return nil
}

// Detect finds the encoding of a text by its mark, or by what is in it. Valid UTF-8 always wins:
// text in another encoding is almost never valid by chance. guessed: by statistics.
func Detect(b []byte) (e *Encoding, guessed bool) {
	if e := ByMark(b); e != nil {
		return e, false
	}
	if bytes.IndexByte(b[:min(len(b), sniffLen)], 0) >= 0 {
		if wide := Lookup(Wide(b[:min(len(b), sampleBytes)])); wide != nil {
			return wide, true
		}
		valid := utf8.Valid(b)
		switch little, big := utf16Pattern(b, valid); {
		case little:
			return Lookup("utf-16le"), true
		case big:
			return Lookup("utf-16be"), true
		}
		return UTF8, !valid // NULs in any other encoding mean binary data
	}
	switch {
	case Escaped(b):
		return Lookup("iso-2022-jp"), true
	case utf8.Valid(b):
		return UTF8, false
	case MostlyUTF8(b):
		return UTF8, true // a few damaged characters do not make it another encoding
	}
	if e := Lookup(Guess(b)); e != nil && e.Unit == 1 {
		return e, true
	}
	return Lookup("windows-1252"), true
}

// Of is the encoding in which a file is read: the one asked for, where a name without a byte order
// leaves that to the file's mark; detected when asked is empty. mark is the length of the byte
// order mark. e is nil when the name is not known.
func Of(asked string, b []byte) (e *Encoding, mark int, guessed bool) {
	switch {
	case asked == "":
		e, guessed = Detect(b)
	default:
		e = Lookup(asked)
		if marked := ByMark(b); AnyOrder(asked) && marked != nil && marked.Unit == e.Unit {
			e = marked
		}
	}
	if e != nil && bytes.HasPrefix(b, []byte(e.Mark)) {
		mark = len(e.Mark)
	}
	return e, mark, guessed
}

// ToRead is Of for reading only: GBK is read as GB 18030, which holds all of it, and ASCII as UTF-8.
func ToRead(asked string, b []byte) (e *Encoding, mark int) {
	switch e, mark, _ = Of(asked, b); {
	case e == nil:
	case e.Name == "gbk":
		e = Lookup("gb18030")
	case e.Name == "us-ascii":
		e = UTF8
	}
	return e, mark
}
