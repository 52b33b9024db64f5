// Package office makes text of documents: docx, xlsx, pptx, OpenDocument, EPUB, web pages and email. It is pure: an archive or
// a reader in, text out. It runs nothing found in a document, follows no reference out of it, and bounds the bytes it unpacks, the depth
// of elements and the text it keeps. Errors are those of package unreadable, NoSheet, the context's and those of the parsers.
package office

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"moltisfs/readers/unreadable"
)

const (
	MaxText = 32 << 20 // bytes of text

	maxEntries  = 20_000    // parts of an archive
	maxUnpacked = 128 << 20 // bytes, all parts together
	maxDepth    = 500       // of elements
)

// Document collects the text of a document. It is not for concurrent use.
type Document struct {
	Format string // "docx", …; of an archive
	Full   bool   // the text is longer than MaxText
	// Enough, where there is one, is asked now and then whether the text so far will do. Where it does, Write ends, and Partial is set.
	Enough  func(text []byte) bool
	Partial bool
	Sheet   string   // of a spreadsheet only this one is written: the first that has the name, or the number
	Sheets  []string // names of a spreadsheet's sheets
	// Pictures counts the archive's parts that are images.
	Pictures int

	ctx    context.Context
	parts  map[string]*zip.File
	write  func(*Document) error
	spent  int64 // bytes unpacked
	out    []byte
	found  bool // the sheet that is wanted
	ask    int  // bytes of text at which Enough is asked
	macros bool
	notes  []string // on what is wrong with it
	hidden hidden
}

// hidden counts the parts of a document that its text does not tell of.
type hidden struct {
	vanished int // characters that the document hides
	deleted  int // characters of tracked deletions, which are not shown
	formulas int // of which only the value is shown
}

// New is a document that HTML or Email writes to.
func New(ctx context.Context) *Document { return &Document{ctx: ctx} }

// Open finds the document in an archive; nil when there is none.
func Open(ctx context.Context, z *zip.Reader) *Document {
	if len(z.File) > maxEntries {
		return nil
	}
	d := New(ctx)
	d.parts = make(map[string]*zip.File, len(z.File))
	for _, e := range z.File {
		if _, twice := d.parts[e.Name]; !twice {
			d.parts[e.Name] = e
		}
	}
	if d.Format, d.write = d.format(); d.write == nil {
		return nil
	}
	for name := range d.parts {
		if strings.HasPrefix(name, "Thumbnails/") || strings.HasPrefix(name, "docProps/") {
			continue // of the document itself
		}
		switch strings.ToLower(path.Ext(name)) {
		case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".emf", ".wmf", ".svg":
			d.Pictures++
		}
		d.macros = d.macros || path.Base(name) == "vbaProject.bin" || strings.HasPrefix(name, "Basic/")
	}
	return d
}

// Encrypted reports whether r is an Office document behind a password: a compound file that holds nothing but one.
func Encrypted(r io.ReaderAt) bool {
	var header [512]byte
	if _, err := r.ReadAt(header[:], 0); err != nil || !bytes.HasPrefix(header[:], []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
		return false
	}
	shift := min(binary.LittleEndian.Uint16(header[30:]), 12)
	directory := make([]byte, 4096) // its first names
	n, _ := r.ReadAt(directory, (int64(binary.LittleEndian.Uint32(header[48:]))+1)<<shift)
	return bytes.Contains(directory[:n], []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00"))
}

// Write collects the text of an archive's document, as far as it is wanted and can be kept.
func (d *Document) Write() error {
	err := d.write(d)
	if err == nil && d.Sheet != "" && !d.found {
		return &NoSheet{d.Sheets}
	}
	return d.end(err)
}

func (d *Document) note(s string) {
	if !slices.Contains(d.notes, s) {
		d.notes = append(d.notes, s)
	}
}

// Done lets go of the archive: nothing more is collected.
func (d *Document) Done() { d.ctx, d.parts, d.write, d.Enough = nil, nil, nil, nil }

// Text is the collected text. It ends with a newline, unless it is empty.
func (d *Document) Text() []byte { return d.out }

// errEnd ends the work on a document: there is as much text as is wanted, or as can be kept.
var errEnd = errors.New("there is text enough")

// end is after the last text; err says why it was the last.
func (d *Document) end(err error) error {
	if d.out = bytes.TrimRight(d.out, "\n"); len(d.out) > 0 {
		d.out = append(d.out, '\n')
	}
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// NoSheet says that the sheet that was asked for is not among those of the document.
type NoSheet struct{ Names []string }

func (e *NoSheet) Error() string { return "there is no such sheet" }

// wants notes the next sheet by its name, and reports whether it is written.
func (d *Document) wants(name string) bool {
	if len(d.Sheets) < maxEntries {
		d.Sheets = append(d.Sheets, name)
	}
	is := d.Sheet == "" || !d.found && (strings.EqualFold(d.Sheet, name) || d.Sheet == strconv.Itoa(len(d.Sheets)))
	d.found = d.found || is
	return is
}

func (d *Document) format() (string, func(*Document) error) {
	d.findMain()
	has := func(name string) bool { return d.parts[name] != nil }
	switch {
	case has("word/document.xml"):
		return "docx", (*Document).docx
	case has("ppt/presentation.xml"):
		return "pptx", (*Document).pptx
	case has("xl/workbook.xml"):
		return "xlsx", (*Document).xlsx
	case has("mimetype"):
		media, err := d.part("mimetype", 256)
		if err != nil {
			return "", nil
		}
		switch m := strings.TrimSpace(string(media)); {
		case m == "application/epub+zip":
			return "epub", (*Document).epub
		case !has("content.xml") && !has("encrypted-package"):
		case strings.HasSuffix(m, "opendocument.text"), strings.HasSuffix(m, "opendocument.text-template"), strings.HasSuffix(m, "opendocument.text-web"):
			return "odt", (*Document).opendocument
		case strings.HasSuffix(m, "opendocument.spreadsheet"):
			return "ods", (*Document).opendocument
		case strings.HasSuffix(m, "opendocument.presentation"):
			return "odp", (*Document).opendocument
		}
	}
	return "", nil
}

// findMain gives an Office document's main part its usual name. Word Online writes word/document2.xml.
func (d *Document) findMain() {
	d.walk("_rels/.rels", xmlHandler{start: func(e *element) (bool, error) {
		main := strings.TrimPrefix(path.Clean("/"+e.get("Target")), "/")
		if !strings.HasSuffix(e.get("Type"), "/officeDocument") || d.parts[main] == nil {
			return false, nil
		}
		dir, base := path.Split(main)
		for _, usual := range []string{"word/document.xml", "ppt/presentation.xml", "xl/workbook.xml"} {
			if strings.HasPrefix(usual, dir) && dir != "" && base != path.Base(usual) {
				d.parts[usual] = d.parts[main]
				if of := d.parts[dir+"_rels/"+base+".rels"]; of != nil {
					d.parts[dir+"_rels/"+path.Base(usual)+".rels"] = of
				}
			}
		}
		return false, nil
	}})
}

// Mentions names the parts of the document that its text does not tell of: pictures and the like at the beginning, hidden text in
// every window, because strangers put orders to a model there.
func (d *Document) Mentions(beginning bool) string {
	notes := slices.Clone(d.notes)
	var missing []string
	if n := d.Pictures; n > 0 && len(d.out) > 0 { // without text it is said already
		missing = append(missing, unreadable.Plural(n, "image"))
	}
	if d.hidden.deleted > 0 {
		missing = append(missing, unreadable.Plural(d.hidden.deleted, "character")+" of tracked deletions")
	}
	if d.hidden.formulas > 0 {
		missing = append(missing, unreadable.Plural(d.hidden.formulas, "formula")+" (their values are)")
	}
	if d.macros {
		missing = append(missing, "macros")
	}
	if beginning && len(missing) > 0 {
		notes = append(notes, "Not shown: "+strings.Join(missing, ", ")+".")
	}
	if d.hidden.vanished > 0 {
		notes = append(notes, fmt.Sprintf("Hidden in the document, but shown here: %s.", unreadable.Plural(d.hidden.vanished, "character")))
	}
	return strings.Join(notes, " ")
}

// part unpacks one part of at most limit bytes.
func (d *Document) part(name string, limit int64) ([]byte, error) {
	r, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, &unreadable.Limit{What: "document", Resource: "bytes in " + name, Max: limit}
	}
	return b, err
}

// open unpacks a part within the document's bounds.
func (d *Document) open(name string) (io.ReadCloser, error) {
	e := d.parts[name]
	if e == nil {
		return nil, fmt.Errorf("there is no part %q", unreadable.Clip(name, 80))
	}
	if e.Flags&1 != 0 {
		return nil, &unreadable.Encrypted{What: "document"}
	}
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	return &part{ReadCloser: r, d: d, packed: int64(e.CompressedSize64)}, nil
}

type part struct {
	io.ReadCloser
	d      *Document
	packed int64
	n      int64
}

func (p *part) Read(b []byte) (int, error) {
	if err := p.d.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.ReadCloser.Read(b)
	p.n += int64(n)
	if p.d.spent += int64(n); p.d.spent > maxUnpacked {
		return n, &unreadable.Limit{What: "document", Resource: "unpacked bytes", Max: maxUnpacked}
	}
	if p.n > unreadable.RatioFree && p.n > unreadable.RatioCap*max(p.packed, 1) {
		return n, &unreadable.Limit{What: "document", Resource: "compression ratio", Max: unreadable.RatioCap}
	}
	return n, err
}

// add appends text, as much as is wanted. Enough is asked each time that the text has doubled, so that going on page by page costs twice the whole.
func (d *Document) add(s ...string) error {
	for _, s := range s {
		d.out = append(d.out, s...)
	}
	if len(d.out) <= d.ask {
		return nil
	}
	if d.Full = len(d.out) > MaxText; !d.Full {
		if d.ask == 0 || d.Enough == nil || !d.Enough(d.out) {
			d.ask = min(max(2*len(d.out), 64<<10), MaxText)
			return nil
		}
		d.Partial = true
	}
	if end := bytes.LastIndexByte(d.out[:min(len(d.out), MaxText)], '\n') + 1; end > 0 {
		d.out = d.out[:end]
	}
	return errEnd
}

// block begins a new block: after an empty line, unless at the beginning.
func (d *Document) block() {
	d.out = bytes.TrimRight(d.out, "\n ")
	if len(d.out) > 0 {
		d.out = append(d.out, "\n\n"...)
	}
}

// element is the start of an XML element.
type element struct {
	name  string // local name
	space string // last part of the namespace or the prefix
	attr  []xml.Attr
}

func (e *element) get(name string) string {
	for _, a := range e.attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// xmlHandler is told of everything in a part in order. A start may return skip to leave the element out with all in it; then skipped, where
// there is one, is told of the text in it and of the element around that text.
type xmlHandler struct {
	start func(e *element) (skip bool, err error)
	end   func(name string) error
	text  func(s []byte) error

	skipped func(in string, s []byte)
}

// walk parses one part. The parser expands no entities of the document's own and loads nothing.
func (d *Document) walk(name string, h xmlHandler) error {
	r, err := d.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	return walkXML(r, h)
}

func walkXML(r io.Reader, h xmlHandler) error {
	x := xml.NewDecoder(r)
	x.Strict = false
	x.CharsetReader = charsetReader
	depth := 0
	var open []string // elements that have begun; RawToken does not see to it that they end
	for {
		tok, err := x.RawToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return &unreadable.Limit{What: "document", Resource: "depth", Max: maxDepth}
			}
			skip, err := h.start(&element{tok.Name.Local, tok.Name.Space, tok.Attr})
			if err != nil {
				return err
			}
			if skip {
				if err := skipElement(x, tok.Name.Local, &depth, h.skipped); err != nil {
					return err
				}
				depth--
			} else {
				open = append(open, tok.Name.Local)
			}
		case xml.EndElement:
			// An end without a beginning is dropped, and one that closes others with it ends them first.
			if !slices.Contains(open, tok.Name.Local) {
				continue
			}
			for name := ""; name != tok.Name.Local; {
				name, open = open[len(open)-1], open[:len(open)-1]
				depth--
				if h.end != nil {
					if err := h.end(name); err != nil {
						return err
					}
				}
			}
		case xml.CharData:
			if h.text != nil {
				if err := h.text(tok); err != nil {
					return err
				}
			}
		}
	}
}

// skipElement reads to the end of the element just begun. text may be nil.
func skipElement(x *xml.Decoder, in string, depth *int, text func(in string, s []byte)) error {
	around := []string{in}
	for inner := 1; inner > 0; {
		tok, err := x.RawToken()
		if err != nil {
			return err
		}
		switch tok := tok.(type) {
		case xml.CharData:
			if text != nil {
				text(around[len(around)-1], bytes.TrimSpace(tok))
			}
		case xml.StartElement:
			around = append(around, tok.Name.Local)
			if inner++; inner+*depth > maxDepth {
				return &unreadable.Limit{What: "document", Resource: "depth", Max: maxDepth}
			}
		case xml.EndElement:
			inner--
			around = around[:len(around)-1]
		}
	}
	return nil
}

// relations reads a part's relationships: id to target, as a name in the archive or, outside of it, as an address.
func (d *Document) relations(name string) map[string]string {
	out := map[string]string{}
	dir, base := path.Split(name)
	d.walk(dir+"_rels/"+base+".rels", xmlHandler{start: func(e *element) (bool, error) {
		if e.name == "Relationship" && len(out) < maxEntries {
			target := e.get("Target")
			if e.get("TargetMode") == "External" {
				// an address
			} else if strings.HasPrefix(target, "/") {
				target = target[1:]
			} else {
				target = path.Join(dir, target)
			}
			out[e.get("Id")] = target
		}
		return false, nil
	}})
	return out
}

// cellText makes a table cell's text one line that does not break the table.
func cellText(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// tableRow writes one row of a Markdown table, and the rule after the first.
func (d *Document) tableRow(cells []string, first bool) error { return d.add(tableLine(cells, first)) }

func tableLine(cells []string, first bool) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteString("| ")
		b.WriteString(c)
		b.WriteByte(' ')
	}
	b.WriteString("|\n")
	if first {
		b.WriteString(strings.Repeat("| --- ", len(cells)))
		b.WriteString("|\n")
	}
	return b.String()
}

func heading(level int) string { return strings.Repeat("#", min(max(level, 1), 6)) + " " }

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
