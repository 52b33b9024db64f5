package readers

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits of a document in a zip archive.
const (
	documentEntries = 20_000
	documentBytes   = 128 << 20 // unpacked, all parts together
	documentText    = 16 << 20  // bytes of text kept at a time
	documentEnd     = 64 << 10  // bytes of it that are kept whatever was asked for: what comes next depends on them
	documentDepth   = 500       // of elements
)

func knowsZip(f *file, o *Options) bool {
	return bytes.HasPrefix(f.head, []byte("PK\x03\x04")) && !forced(f, o)
}

// readZip reads the documents that are zip archives. Other archives go on to binary, which lists them.
func readZip(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	z, err := openZip(f)
	if err != nil {
		return nil, errNotMine
	}
	if len(z.File) > documentEntries {
		return nil, errNotMine
	}
	d := documentOf(z)
	d.ctx, d.o = ctx, o
	format, write := d.format()
	if write == nil {
		return nil, errNotMine
	}
	if f.Size > o.MaxFileBytes && !o.window() && !o.AllowLarge {
		return nil, &TooLarge{Size: f.Size, Max: o.MaxFileBytes, What: "file", Windowed: true}
	}
	free, err := r.reserve(ctx, "document", documentMemory)
	if err != nil {
		return nil, err
	}
	defer free()
	if err := write(d); err != nil && !errors.Is(err, errFull) {
		return nil, damagedOr(ctx, format+" document", err)
	}
	t, err := d.text(format, f.Size, o)
	if err != nil {
		return nil, err
	}
	t.Changed, t.ChangedBelow = f.grown, f.grown
	return t, f.addSum(ctx, &t.Sight)
}

// document collects the text of an archive's parts.
type document struct {
	ctx   context.Context
	parts map[string]*zip.File
	spent int64 // bytes unpacked
	out   []byte
	full  bool
	o     *Options // the window: what lies before it need not be kept
	// Lines and bytes of the text before out.
	droppedLines, droppedBytes int
	vanished                   int // characters that the document hides
	deleted                    int // characters of tracked deletions, which are not shown
	formulas                   int // of which only the value is shown
}

func documentOf(z *zip.Reader) *document {
	d := &document{ctx: context.Background(), parts: make(map[string]*zip.File, min(len(z.File), documentEntries))}
	for _, e := range z.File {
		if _, twice := d.parts[e.Name]; !twice {
			d.parts[e.Name] = e
		}
	}
	return d
}

// errFull ends the work on a document whose text is longer than can be kept.
var errFull = errors.New("the text is as long as it may be")

func (d *document) format() (string, func(*document) error) {
	d.findMain()
	has := func(name string) bool { return d.parts[name] != nil }
	switch {
	case has("word/document.xml"):
		return "docx", (*document).docx
	case has("ppt/presentation.xml"):
		return "pptx", (*document).pptx
	case has("xl/workbook.xml"):
		return "xlsx", (*document).xlsx
	case has("META-INF/container.xml") && has("mimetype"), has("content.xml") && has("mimetype"):
		media, err := d.part("mimetype", 256)
		if err != nil {
			return "", nil
		}
		switch m := strings.TrimSpace(string(media)); {
		case m == "application/epub+zip":
			return "epub", (*document).epub
		case !has("content.xml"):
		case strings.HasSuffix(m, "opendocument.text"), strings.HasSuffix(m, "opendocument.text-template"), strings.HasSuffix(m, "opendocument.text-web"):
			return "odt", (*document).opendocument
		case strings.HasSuffix(m, "opendocument.spreadsheet"):
			return "ods", (*document).opendocument
		case strings.HasSuffix(m, "opendocument.presentation"):
			return "odp", (*document).opendocument
		}
	}
	return "", nil
}

// findMain gives an Office document's main part its usual name. Word Online writes word/document2.xml.
func (d *document) findMain() {
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

// text is the window of what was collected from a document of size bytes.
func (d *document) text(format string, size int64, o *Options) (*Text, error) {
	if d.full && o.fromEnd() {
		return nil, endUnreachable(o, "it has a line of more than "+bytesText(documentText))
	}
	content := bytes.TrimRight(d.out, "\n")
	if len(content) > 0 {
		content = append(content, '\n')
	}
	t := renderAfter(d.droppedLines, content, o)
	t.Format, t.Encoding, t.Unit, t.Lossy = format, "utf-8", format+" line", true
	if t.TotalLines == 0 {
		t.noText(size, d.pictures())
	}
	t.Note = strings.TrimSpace(t.Note + " " + d.mentions(t.StartLine <= 1))
	if d.full {
		t.unknownTotal(t.Note)
		switch {
		case t.NextOffset > 0 || t.NextColumn > 0 || t.RenderedLines == 0:
		case d.goesOn():
			t.NextOffset = t.StartLine + t.RenderedLines
		default:
			t.Note = strings.TrimSpace(t.Note + " What follows cannot be shown: it is in or behind a line of more than " + bytesText(documentText) + ".")
		}
	}
	return t, nil
}

// mentions says what a reader of the text cannot know from it. That some of it is hidden is said of every window: hidden text is
// where a stranger's orders to a model are put.
func (d *document) mentions(beginning bool) string {
	var notes []string
	var missing []string
	if n := d.pictures(); n > 0 && len(d.out) > 0 { // without text it is said already
		missing = append(missing, plural(n, "image"))
	}
	if d.deleted > 0 {
		missing = append(missing, plural(d.deleted, "character")+" of tracked deletions")
	}
	if d.formulas > 0 {
		missing = append(missing, plural(d.formulas, "formula")+" (their values are)")
	}
	if n := d.margins(); n > 0 {
		missing = append(missing, plural(n, "header and footer part"))
	}
	if d.macros() {
		missing = append(missing, "macros")
	}
	if beginning && len(missing) > 0 {
		notes = append(notes, "Not shown: "+strings.Join(missing, ", ")+".")
	}
	if d.vanished > 0 {
		notes = append(notes, fmt.Sprintf("Hidden in the document, but shown here: %s.", plural(d.vanished, "character")))
	}
	return strings.Join(notes, " ")
}

// margins counts a docx's headers and footers.
func (d *document) margins() int {
	n := 0
	for name := range d.parts {
		if strings.HasPrefix(name, "word/header") || strings.HasPrefix(name, "word/footer") {
			n++
		}
	}
	return n
}

// macros says whether there are programs in the document.
func (d *document) macros() bool {
	for name := range d.parts {
		if path.Base(name) == "vbaProject.bin" || strings.HasPrefix(name, "Basic/") {
			return true
		}
	}
	return false
}

// pictures counts the archive's parts that are images.
func (d *document) pictures() int {
	n := 0
	for name := range d.parts {
		if strings.HasPrefix(name, "Thumbnails/") || strings.HasPrefix(name, "docProps/") {
			continue // of the document itself
		}
		switch strings.ToLower(path.Ext(name)) {
		case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".emf", ".wmf", ".svg":
			n++
		}
	}
	return n
}

// part unpacks one part of at most limit bytes.
func (d *document) part(name string, limit int64) ([]byte, error) {
	r, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, &Limit{What: "document", Resource: "bytes in " + name, Max: limit}
	}
	return b, err
}

// open unpacks a part within the document's bounds.
func (d *document) open(name string) (io.ReadCloser, error) {
	e := d.parts[name]
	if e == nil {
		return nil, fmt.Errorf("there is no part %q", clip(name, 80))
	}
	if e.Flags&1 != 0 {
		return nil, &Encrypted{"document"}
	}
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	return &part{ReadCloser: r, d: d, packed: int64(e.CompressedSize64)}, nil
}

type part struct {
	io.ReadCloser
	d      *document
	packed int64
	n      int64
}

func (p *part) Read(b []byte) (int, error) {
	if err := p.d.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.ReadCloser.Read(b)
	p.n += int64(n)
	if p.d.spent += int64(n); p.d.spent > documentBytes {
		return n, &Limit{What: "document", Resource: "unpacked bytes", Max: documentBytes}
	}
	if p.n > ratioFree && p.n > ratioCap*max(p.packed, 1) {
		return n, &Limit{What: "document", Resource: "compression ratio", Max: ratioCap}
	}
	return n, err
}

// add appends text, within the bound.
func (d *document) add(s ...string) error {
	for _, s := range s {
		d.out = append(d.out, s...)
	}
	if len(d.out) > documentText && !d.drop() {
		d.full = true
		if end := bytes.LastIndexByte(d.out[:documentText], '\n') + 1; end > 0 {
			d.out = d.out[:end]
		}
		return errFull
	}
	return nil
}

// drop forgets text that lies before the window asked for, and reports whether that made room: what is kept behind the window's beginning is
// more than any answer may hold.
func (d *document) drop() bool {
	at := 0
	switch {
	case d.o == nil:
		return false
	case d.o.fromEnd():
		at = len(d.out) - documentText/2
	default:
		at = min(skipLines(d.out, max(d.o.Offset, 1)-1-d.droppedLines), len(d.out)-documentEnd)
	}
	at = bytes.LastIndexByte(d.out[:at], '\n') + 1
	if at < documentText/8 {
		return false
	}
	d.droppedLines += bytes.Count(d.out[:at], newline)
	d.droppedBytes += at
	d.out = d.out[:copy(d.out, d.out[at:])]
	return true
}

// goesOn reports whether the line after those that were kept can be had by asking for it: drop then makes room for it.
func (d *document) goesOn() bool {
	return len(d.out) <= documentText && bytes.LastIndexByte(d.out[:max(len(d.out)-documentEnd, 0)], '\n')+1 >= documentText/8
}

// block begins a new block: after an empty line, unless at the beginning.
func (d *document) block() {
	d.out = bytes.TrimRight(d.out, "\n ")
	if len(d.out) > 0 {
		d.out = append(d.out, "\n\n"...)
	}
}

// element is what a walk through XML meets: a start (with attributes), an end, or text.
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
func (d *document) walk(name string, h xmlHandler) error {
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
			if depth++; depth > documentDepth {
				return &Limit{What: "document", Resource: "depth", Max: documentDepth}
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
			if inner++; inner+*depth > documentDepth {
				return &Limit{What: "document", Resource: "depth", Max: documentDepth}
			}
		case xml.EndElement:
			inner--
			around = around[:len(around)-1]
		}
	}
	return nil
}

// relations reads a part's relationships: id to target, as a name in the archive.
func (d *document) relations(name string) map[string]string {
	out := map[string]string{}
	dir, base := path.Split(name)
	d.walk(dir+"_rels/"+base+".rels", xmlHandler{start: func(e *element) (bool, error) {
		if e.name == "Relationship" && e.get("TargetMode") != "External" && len(out) < documentEntries {
			target := e.get("Target")
			if strings.HasPrefix(target, "/") {
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
func (d *document) tableRow(cells []string, first bool) error {
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
	return d.add(b.String())
}

func heading(level int) string { return strings.Repeat("#", min(max(level, 1), 6)) + " " }

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
