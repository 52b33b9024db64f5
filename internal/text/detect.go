package text

import (
	"bytes"
	"unicode/utf8"
)

// binaryBytes is how much of a file is looked at for NUL bytes, as git does.
const binaryBytes = 8 << 10

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
	if bytes.IndexByte(b[:min(len(b), binaryBytes)], 0) >= 0 {
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
	case AnyOrder(asked) && bytes.HasPrefix(b, []byte(markUTF16BE)):
		e = Lookup("utf-16be")
	default:
		e = Lookup(asked)
	}
	if e != nil && bytes.HasPrefix(b, []byte(e.Mark)) {
		mark = len(e.Mark)
	}
	return e, mark, guessed
}

// ToRead is Of for reading only: GBK is read as GB 18030, which holds all of it.
func ToRead(asked string, b []byte) (e *Encoding, mark int) {
	if e, mark, _ = Of(asked, b); e != nil && e.Name == "gbk" {
		e = Lookup("gb18030")
	}
	return e, mark
}

// LooksBinary decides by the first bytes of a file that it is not text in any encoding. ended: they
// are all of it. known tells formats that happen to hold no NUL there.
func LooksBinary(head []byte, ended bool, known func([]byte) bool) bool {
	if ByMark(head) != nil {
		return false
	}
	if len(head) > binaryBytes {
		head, ended = head[:binaryBytes], false
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return Wide(head) == ""
	}
	if validStart(head, ended) {
		return tooManyControls(head, 10)
	}
	return tooManyControls(head, 50) || known(head)
}

// validStart is utf8.Valid for the beginning of a text that may be cut in a character.
func validStart(b []byte, ended bool) bool {
	if utf8.Valid(b) {
		return true
	}
	if ended {
		return false
	}
	for cut := 1; cut < utf8.UTFMax && cut <= len(b); cut++ {
		if tail := b[len(b)-cut:]; utf8.RuneStart(tail[0]) {
			return !utf8.FullRune(tail) && utf8.Valid(b[:len(b)-cut])
		}
	}
	return false
}

// tooManyControls reports whether more than one byte in per is a control that texts do not use.
func tooManyControls(b []byte, per int) bool {
	n := 0
	for _, c := range b {
		n += int(foreign[c])
	}
	return n*per > len(b)
}

// foreign is 1 for control characters that texts do not use, else 0.
var foreign = func() (t [256]uint8) {
	for c := range 0x20 {
		t[c] = 1
	}
	for _, c := range "\t\n\r\f\b\x1b" {
		t[c] = 0
	}
	return t
}()
