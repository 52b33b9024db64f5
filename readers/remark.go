package readers

import (
	"fmt"
	"strings"

	"moltisfs/readers/unreadable"
)

// remark adds to the note of c: the way out of a binary file, a window in which there is nothing, and arguments of o that mean nothing for
// this kind of content. The note of the reader itself comes first.
func remark(f *file, c Content, o *Options) {
	note := c.noted()
	add := func(s string) {
		if *note != "" {
			*note += " "
		}
		*note += s
	}
	if raw := rawBytes(f, o, c); raw != "" {
		add(raw)
	}
	if b, ok := c.(*Binary); ok && b.StartOffset == 0 {
		add(b.wayOut(f.head))
	}
	if empty := nothingThere(c, o); empty != "" {
		add(empty)
	}
	if ignored := o.ignoredBy(c); len(ignored) > 0 {
		add(fmt.Sprintf("Ignored, because they mean nothing for this %s: %s.", thing(c), strings.Join(ignored, ", ")))
	}
}

// waysOut say how a model comes by the content of a binary file whose media type begins with media.
var waysOut = []struct{ media, say string }{
	{"image/", "Of images PNG, JPEG, GIF, WebP, BMP, TIFF, ICO, AVIF and HEIC are shown; convert it to one of them first."},
	{"application/msword", toDocument + " LibreOffice does: soffice --headless --convert-to docx FILE"},
	{"application/vnd.ms-excel", toDocument + " LibreOffice does: soffice --headless --convert-to xlsx FILE"},
	{"application/vnd.ms-powerpoint", toDocument + " LibreOffice does: soffice --headless --convert-to pptx FILE"},
	{"application/vnd.ms-outlook", "An Outlook message: msgconvert FILE makes an .eml of it, which is read."},
	{"application/x-7z-compressed", "7z l FILE lists it, and 7z x FILE unpacks it."},
	{"application/vnd.rar", "unrar l FILE lists it, and unrar x FILE unpacks it."},
	{"application/x-archive", "ar t FILE lists it, and ar x FILE unpacks it."}, {"application/vnd.debian", "dpkg-deb -c FILE lists it, and dpkg-deb -x FILE DIRECTORY unpacks it."},
	{"application/x-elf", toProgram}, {"application/x-executable", toProgram}, {"application/x-object", toProgram}, {"application/x-sharedlib", toProgram}, {"application/x-coredump", toProgram},
	{"application/wasm", "wasm-objdump -x FILE shows its sections."},
	{"video/", toMedia}, {"audio/", toMedia},
	{"application/x-ole-storage", toDocument}, {"application/vnd.ms-", toDocument},
	{"application/vnd.apache.parquet", "Query it with a program for Parquet files, such as duckdb or Python's pyarrow."},
	{"application/vnd.sqlite3", "Query it with a program for SQLite databases."},
}

const (
	toDocument = "Of documents docx, xlsx, pptx, odt, ods, odp, epub and PDF are read; convert it to one of them first."
	toProgram  = "readelf -a FILE shows its headers and symbols, and strings FILE its texts."
	toMedia    = "ffprobe FILE shows its streams."
)

// wayOut is the next move for a binary file that begins with head, as its note says it.
func (b *Binary) wayOut(head []byte) string {
	for _, way := range waysOut {
		if strings.HasPrefix(b.MediaType, way.media) {
			return way.say
		}
	}
	if len(b.Listing) > 0 {
		return `pages: "NAME" shows a file of it by its name.`
	}
	if b.Summary == "" && (b.MediaType == "application/octet-stream" || strings.HasPrefix(b.MediaType, "text/")) && textButForNULs(head) {
		return `It has a NUL byte near its beginning; encoding: "utf-8" shows it as text.`
	}
	return `Its bytes are not shown; ask the operator for binary_policy = "base64" if they are needed.`
}

// rawBytes says that an encoding made bytes be shown as text that would not be without it.
func rawBytes(f *file, o *Options, c Content) string {
	t, ok := c.(*Text)
	if !ok || o.Encoding == "" || t.Format != "" {
		return ""
	}
	bare := *o
	bare.Encoding = ""
	switch {
	case knowsPDF(f, &bare):
		return "These are the bytes of a PDF; leave encoding out for its text."
	case isBinary(f.head):
		return "These are the bytes of a binary file, shown as text because encoding was given."
	}
	return ""
}

func thing(c Content) string {
	switch c := c.(type) {
	case *Text:
		switch c.Format {
		case "html", "email":
			return c.Format
		case "":
			return "text"
		}
		return c.Format + " text"
	case *Binary:
		return "binary file"
	case *PDF:
		return "PDF"
	}
	return c.Kind()
}

// ignoredBy names the arguments that were given and had no effect on the content.
func (o *Options) ignoredBy(c Content) []string {
	var names []string
	when := func(given bool, name string) {
		if given {
			names = append(names, name)
		}
	}
	window := func() {
		when(o.Offset != 0, "offset")
		when(o.Limit != 0, "limit")
		when(o.Tail, "tail")
		when(o.Column != 0, "column")
	}
	pages := strings.TrimSpace(o.Pages) != ""
	switch c := c.(type) {
	case *Text:
		when(pages && c.Format != "xlsx" && c.Format != "ods", "pages")
		when(o.Column > 0 && o.Limit > 1, "limit (a column is of one line)")
		when(o.Encoding != "" && packed(c.Format), "encoding")
		when(o.Render && c.Format != "html" && c.Format != "email", "render")
	case *Image:
		when(o.ANSI, "ansi")
		window()
		when(o.Encoding != "", "encoding")
		when(pages && c.Page == 0, "pages")
		when(o.Render, "render")
	case *PDF:
		when(o.ANSI, "ansi")
		when(o.Offset != 0, "offset")
		when(o.Limit != 0, "limit")
		when(o.Tail, "tail")
		when(o.Encoding != "", "encoding")
	case *Notebook:
		when(o.ANSI, "ansi")
		when(pages, "pages")
		when(o.Column > 0 && o.Limit > 1, "limit (a column is of one cell)")
		when(o.Render, "render")
	case *Binary:
		when(o.ANSI, "ansi")
		switch {
		case c.StartOffset > 0:
			when(o.Column != 0, "column")
		case c.Entries > 0:
			when(o.Offset < 0, "offset (entries count from the first)")
			when(o.Tail, "tail")
			when(o.Column != 0, "column")
		default:
			window()
		}
		when(o.Encoding != "", "encoding")
		when(pages, "pages")
		when(o.Render, "render")
	}
	return names
}

// packed says that the format is one of a zip's documents, whose text has no encoding to be told.
func packed(format string) bool {
	switch format {
	case "docx", "pptx", "xlsx", "odt", "ods", "odp", "epub":
		return true
	}
	return false
}

// nothingThere says how long the content is when the window begins beyond its end.
func nothingThere(c Content, o *Options) string {
	switch c := c.(type) {
	case *Text:
		if c.TotalLines == 0 && !c.Empty && c.Format == "" {
			return "No text in this file, only its byte order mark."
		}
		if c.RenderedLines == 0 && c.TotalLinesAtLeast > 0 {
			return fmt.Sprintf("Nothing can be shown at line %d: the last within reach is %d.", c.StartLine, c.TotalLinesAtLeast)
		}
		if c.RenderedLines == 0 && c.TotalLines > 0 {
			return fmt.Sprintf("Nothing at line %d: there %s.", c.StartLine, isAre(int(c.TotalLines), "line"))
		}
		if c.StartColumn > 1 && c.RenderedLines == 1 && len(c.Content) == len(appendNumber(nil, c.StartLine, o.LineNumbers))+1 {
			return fmt.Sprintf("Nothing at column %d: line %d ends before it.", c.StartColumn, c.StartLine)
		}
	case *Notebook:
		if len(c.Cells) == 0 && c.TotalCells > 0 {
			return fmt.Sprintf("Nothing at cell %d: there %s.", c.StartCell, isAre(c.TotalCells, "cell"))
		}
		if c.StartColumn > 1 && len(c.Cells) == 1 && c.Cells[0].Source == "" && len(c.Cells[0].Outputs) == 0 {
			return fmt.Sprintf("Nothing at column %d: cell %d ends before it.", c.StartColumn, c.StartCell)
		}
	case *PDF:
		if head := "--- Page "; c.StartColumn > 1 && strings.HasPrefix(c.Text, head) && c.NextColumn == 0 {
			if n, rest, _ := strings.Cut(c.Text[len(head):], " ---\n"); rest == "" || strings.HasPrefix(rest, "\n"+head) {
				return fmt.Sprintf("Nothing at column %d: the text of page %s ends before it.", c.StartColumn, n)
			}
		}
		if asked := lastPage(o.Pages); asked > c.Pages {
			return fmt.Sprintf("No page %d: there %s.", asked, isAre(c.Pages, "page"))
		}
	case *Binary:
		if c.StartEntry > c.Entries {
			return fmt.Sprintf("Nothing at entry %d: there %s.", c.StartEntry, isAre(c.Entries, "entry"))
		}
		if c.StartOffset > c.Bytes && c.Bytes > 0 {
			return fmt.Sprintf("Nothing at byte %d: there %s.", c.StartOffset, isAre(int(c.Bytes), "byte"))
		}
	}
	return ""
}

func isAre(n int, noun string) string {
	if n == 1 {
		return "is 1 " + noun
	}
	return "are " + unreadable.Plural(n, noun)
}
