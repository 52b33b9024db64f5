package readers

import (
	"bytes"
	"cmp"
	"context"

	"moltisfs/readers/image"
	"moltisfs/readers/office"
)

// ShownAs names what Read shows of a file in place of its own characters: "PNG image", "PDF", "docx", "gzip". It is empty where the text that Read
// shows is the text of the file, and for binary files, of which it shows none. Notebooks, HTML and email are text: what Read shows of them
// can be changed in the file. encoding is [Options].Encoding.
func ShownAs(content []byte, encoding string) string {
	head := content[:min(len(content), headBytes)]
	f := &file{Source: Source{R: bytes.NewReader(content), Size: int64(len(content))}, head: head, ended: len(head) == len(content)}
	o := &Options{Encoding: encoding}
	switch {
	case knowsImage(f, o):
		if p := image.FormatOf(head); noText(head) {
			return p.Name + " image"
		}
	case knowsPDF(f, o):
		return "PDF"
	case knowsZip(f, o):
		if z, err := openZip(f); err == nil {
			if d := office.Open(context.Background(), z, office.Window{}); d != nil {
				return d.Format
			}
		}
		return "zip archive"
	case knowsCompressed(f, o):
		return packingOf(head).name
	}
	return ""
}

// ShownDecoded names what Read shows in another form than the file's own text, though the file is text: "email" of one whose text is encoded,
// "notebook" of a notebook. The text itself can be read too, and edited: an email's with Options.Source, a notebook's with an Encoding.
func ShownDecoded(content []byte, encoding string) string {
	head := content[:min(len(content), headBytes)]
	f := &file{Source: Source{R: bytes.NewReader(content), Size: int64(len(content))}, head: head, ended: len(head) == len(content)}
	o := &Options{Encoding: encoding}
	switch {
	case knowsNotebook(f, o):
		return "notebook"
	case knowsMarkup(f, o):
		return "email"
	}
	return ""
}

// RenderedHTML is the text that Read shows of a page with Options.Render, without line numbers; empty where content is no page, or is larger than
// 8 MiB. encoding is [Options].Encoding.
func RenderedHTML(content []byte, encoding string) string {
	head := content[:min(len(content), headBytes)]
	if len(content) > 8<<20 || !office.LooksHTML(head) {
		return ""
	}
	_, text, err := decodeWhole(content, cmp.Or(encoding, htmlCharset(head)))
	if err != nil {
		return ""
	}
	d := office.New(context.Background(), office.Window{})
	_ = d.HTML(bytes.NewReader(text)) // what could be made of it counts
	return string(d.Text())
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
