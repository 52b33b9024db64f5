package readers

import (
	"bytes"
	"context"

	"github.com/gabriel-vasile/mimetype"

	"moltisfs/readers/image"
	"moltisfs/readers/office"
)

// ShownAs names the format of a file with this content whose bytes are not the characters of a text: "png image", "PDF", "docx", "gzip", or the
// media type of a database, a program or another format that is known by its first bytes. It is empty for text, for binary bytes of no known
// format, and for notebooks, HTML and email, whose text can be changed in the file. encoding is [Options].Encoding.
func ShownAs(content []byte, encoding string) string {
	f, o := inMemory(content), &Options{Encoding: encoding}
	head := f.head
	switch {
	case knowsImage(f, o):
		if p := image.FormatOf(head); noText(head) {
			return p.Name + " image"
		}
	case knowsPDF(f, o):
		return "PDF"
	case knowsZip(f, o):
		if z, err := openZip(f); err == nil {
			if d := office.Open(context.Background(), z); d != nil {
				return d.Format
			}
		}
		return "zip archive"
	case knowsCompressed(f, o):
		return packingOf(head).name
	}
	if isBinary(head) && knownMagic(head) {
		return mediaType(head)
	}
	return ""
}

// NoText names the format of a file that Read, given this encoding, does not show as the text of its bytes: as [ShownAs] does, or "notebook", or the
// media type of any other binary file. A text that is written over such a file destroys it.
func NoText(content []byte, encoding string) string {
	f := inMemory(content)
	switch shown := ShownAs(content, encoding); {
	case shown != "":
		return shown
	case knowsNotebook(f, &Options{}):
		return "notebook"
	case isBinary(f.head) && !forced(f, &Options{Encoding: encoding}):
		return mediaType(f.head)
	}
	return ""
}

// knownMagic says that the first bytes are those of a format, and not of text.
func knownMagic(head []byte) bool {
	m := mimetype.Detect(head[:min(len(head), 3072)])
	if m.Parent() == nil {
		return false // application/octet-stream itself says nothing
	}
	for ; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return false
		}
	}
	return true
}

// inMemory is a file of these bytes.
func inMemory(content []byte) *file {
	head := content[:min(len(content), headBytes)]
	return &file{Source: Source{R: bytes.NewReader(content), Size: int64(len(content))}, head: head, ended: len(head) == len(content)}
}

// ShownDecoded names a text file that Read shows in another form: "email" of one whose text is encoded, or "notebook". The text itself can be read too, and edited: an email's with Options.Source, a notebook's with an Encoding.
func ShownDecoded(content []byte, encoding string) string {
	f, o := inMemory(content), &Options{Encoding: encoding}
	switch {
	case knowsNotebook(f, o):
		return "notebook"
	case knowsMarkup(f, o):
		return "email"
	}
	return ""
}

// forced says that the file is to be read as text whatever it begins with, because an encoding was given. UTF-8, which some callers send with
// every call, does not make text of a picture: its bytes are none in UTF-8.
func forced(f *file, o *Options) bool {
	if o.Encoding == "" {
		return false
	}
	e, _, err := encodingOf(o.Encoding, nil)
	return err != nil || e.Mapped() || !noText(f.head)
}
