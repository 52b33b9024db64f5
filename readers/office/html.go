package office

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"moltisfs/readers/unreadable"
)

// HTML writes a page's text as Markdown, behind its title.
func (d *Document) HTML(r io.Reader) error { return d.end(d.html(r, true)) }

// html goes token by token: nothing grows with the page's depth, while a tree of it takes fifty times its size and html.Parse refuses more
// than 512 open elements. No text waits for an end tag: cells, rows and items that are not closed end where others begin, where the table ends, or with
// the page.
func (d *Document) html(r io.Reader, titled bool) error {
	z := html.NewTokenizer(r)
	z.SetMaxBuf(2 * MaxText)
	w := htmlWriter{d: d, titled: titled}
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if err := z.Err(); err != io.EOF {
				return err
			}
			w.skipped, w.deeper = 0, 0
			w.endPre()
			for len(w.tables) > 0 {
				w.end(atom.Table)
			}
			w.flush("")
			return w.bounded()
		}
		if err := d.ctx.Err(); err != nil {
			return err
		}
		if kind == html.TextToken {
			w.text(string(z.Text()))
			continue
		}
		if kind != html.StartTagToken && kind != html.EndTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		name, more := z.TagName()
		tag := atom.Lookup(name)
		if kind == html.SelfClosingTagToken {
			z.NextIsNotRawText() // XHTML: <title/> has nothing in it
		}
		if kind == html.EndTagToken {
			w.end(tag)
		} else {
			attr := map[string]string{}
			for more && len(attr) < 64 {
				var k, v []byte
				k, v, more = z.TagAttr()
				if _, ok := attr[string(k)]; !ok {
					attr[string(k)] = string(v)
				}
			}
			w.start(tag, attr, kind == html.SelfClosingTagToken)
		}
		if err := w.bounded(); err != nil {
			return err
		}
	}
}

// htmlWriter holds one block of text until it ends.
type htmlWriter struct {
	d            *Document
	titled       bool // the title is shown
	line         bytes.Buffer
	prefix       string
	skipped      atom.Atom // inside an element that has no text, such as a script
	skippedDepth int       // of that element in itself
	unseen       atom.Atom // inside an element that a browser does not show
	unseenDepth  int       // of that element in itself
	pre          bool
	lists        []int // numbers of ordered lists; -1 for others
	tables       []*htmlTable
	deeper       int // tables beyond maxTables, which are only blocks
	href         string
	anchor       int
}

// maxTables is how deep tables nest.
const maxTables = 32

// htmlTable is an open table. The cells of its open row stand in the document's text, a NUL before each.
type htmlTable struct {
	cells  []int // where they begin
	open   bool  // the last one
	blocks bool  // the row holds a table or a listing
	rows   int   // written as lines, one under the other
	end    int   // of them in the text
	lists  []int // around the table
}

// bounded ends the page where its text is longer than can be kept.
func (w *htmlWriter) bounded() error {
	if len(w.d.out) <= MaxText {
		return nil
	}
	w.d.out, w.tables = bytes.ReplaceAll(w.d.out, []byte{0}, nil), nil
	return w.d.add("")
}

func (w *htmlWriter) text(s string) {
	if w.skipped == atom.Title && w.titled {
		w.titled = false
		if s = cellText(s); s != "" {
			w.flush("")
			w.line.WriteString("Title: " + s)
			w.flush("")
		}
		return
	}
	if w.skipped != 0 {
		return
	}
	if w.unseen != 0 {
		w.d.hidden.vanished += utf8.RuneCountInString(strings.Join(strings.Fields(s), " "))
	}
	if w.pre {
		w.line.WriteString(s)
		return
	}
	fields := strings.Fields(s)
	if len(fields) == 0 {
		if s != "" {
			w.space()
		}
		return
	}
	if !strings.HasPrefix(s, fields[0]) {
		w.space()
	}
	w.line.WriteString(strings.Join(fields, " "))
	if !strings.HasSuffix(s, fields[len(fields)-1]) {
		w.line.WriteByte(' ')
	}
}

// space separates the line from the text that follows.
func (w *htmlWriter) space() {
	if w.line.Len() > 0 && !bytes.HasSuffix(w.line.Bytes(), []byte(" ")) {
		w.line.WriteByte(' ')
	}
}

// flush ends the block and says how the next one begins.
func (w *htmlWriter) flush(next string) {
	if w.pre {
		w.d.out = append(append(w.d.out, strings.Trim(w.take(), "\n")...), '\n')
		return
	}
	w.endLink()
	s := strings.TrimSpace(w.take())
	if s != "" {
		if !strings.HasPrefix(strings.TrimLeft(w.prefix, " "), "- ") && !numbered(w.prefix) {
			w.d.block()
		} else if n := len(w.d.out); n > 0 && w.d.out[n-1] != '\n' {
			w.d.out = append(w.d.out, '\n')
		}
		w.d.out = append(append(append(w.d.out, w.prefix...), s...), '\n')
	}
	if s != "" || next != "" {
		w.prefix = next
	}
}

// take empties the line.
func (w *htmlWriter) take() string {
	s := strings.ReplaceAll(w.line.String(), "\x00", "\uFFFD")
	w.line.Reset()
	w.anchor = min(w.anchor, 1)
	return s
}

// endLink writes the target of the link behind its text, where there is text. Of a link over several blocks the first one gets it.
func (w *htmlWriter) endLink() {
	if w.anchor == 0 || w.anchor > w.line.Len() {
		return
	}
	s := strings.TrimSpace(string(w.line.Bytes()[w.anchor-1:]))
	if s == "" {
		return
	}
	w.line.Truncate(w.anchor - 1)
	w.line.WriteString("[" + s + "](" + unreadable.Clip(w.href, 2000) + ")")
	w.anchor = 0
}

func numbered(p string) bool {
	p = strings.TrimLeft(p, " ")
	return len(p) > 2 && p[0] >= '0' && p[0] <= '9'
}

func (w *htmlWriter) start(tag atom.Atom, attr map[string]string, closed bool) {
	if blocks[tag] && (w.skipped == atom.Svg || w.skipped == atom.Math) {
		w.skipped = 0 // no drawing has paragraphs: it was not closed
	}
	if w.skipped != 0 {
		if tag == w.skipped && !closed {
			w.skippedDepth++
		}
		return
	}
	w.markUnseen(tag, attr, closed)
	switch tag {
	case atom.Title, atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Svg, atom.Math, atom.Iframe:
		if !closed {
			w.skipped, w.skippedDepth = tag, 1
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.flush(heading(int(tag.String()[1] - '0')))
	case atom.Br:
		w.line.WriteString("\n")
	case atom.Hr:
		w.flush("")
		w.d.block()
		w.d.out = append(w.d.out, "---\n"...)
	case atom.Pre:
		w.endPre()
		w.flush("")
		w.d.block()
		w.d.out = append(w.d.out, "```\n"...)
		w.pre = true
		w.inBlocks()
	case atom.Code:
		if !w.pre {
			w.line.WriteByte('`')
		}
	case atom.Ul, atom.Ol:
		w.flush("")
		n := -1
		if tag == atom.Ol {
			n = 0
		}
		if len(w.lists) == 0 {
			w.d.block()
		}
		if len(w.lists) < 32 {
			w.lists = append(w.lists, n)
		}
	case atom.Li:
		mark := "- "
		if n := len(w.lists); n > 0 {
			if w.lists[n-1] >= 0 {
				w.lists[n-1]++
				mark = strconv.Itoa(w.lists[n-1]) + ". "
			}
			mark = strings.Repeat("  ", n-1) + mark
		}
		w.flush(mark)
	case atom.Blockquote:
		w.flush("> ")
	case atom.Table:
		w.flush("")
		w.inBlocks()
		if len(w.tables) == maxTables {
			w.deeper++
			break
		}
		w.tables = append(w.tables, &htmlTable{lists: w.lists, end: -1})
		w.lists, w.prefix = nil, ""
	case atom.Tr, atom.Thead, atom.Tbody, atom.Tfoot:
		w.endRow()
	case atom.Td, atom.Th:
		w.endCell()
		w.flush("")
		if n := len(w.tables); n > 0 {
			t := w.tables[n-1]
			t.cells, t.open = append(t.cells, len(w.d.out)), true
			w.d.out = append(w.d.out, 0)
		}
	case atom.A:
		w.endLink()
		w.anchor = 0
		if w.href = attr["href"]; w.href != "" && !strings.HasPrefix(w.href, "#") && !strings.HasPrefix(w.href, "javascript:") {
			w.anchor = w.line.Len() + 1
		}
	case atom.Img:
		if alt := strings.TrimSpace(attr["alt"]); alt != "" {
			w.line.WriteString("![" + alt + "]")
		}
	default:
		if blocks[tag] {
			w.flush("")
		}
	}
}

// markUnseen keeps count of the element that a browser would not show. Its text is written all the same: a page may show it later.
func (w *htmlWriter) markUnseen(tag atom.Atom, attr map[string]string, closed bool) {
	switch tag {
	case 0, atom.Br, atom.Img, atom.Input, atom.Hr, atom.Meta, atom.Link, atom.Col, atom.Wbr, atom.Source, atom.Area, atom.Base, atom.Embed, atom.Track:
		return // has no end
	}
	if w.unseen == tag {
		switch tag {
		case atom.P, atom.Li, atom.Td, atom.Th, atom.Tr, atom.Dt, atom.Dd, atom.Option:
			w.unseen = 0 // begins where the other ends
		default:
			w.unseenDepth++
		}
	}
	_, hidden := attr["hidden"]
	style := strings.ToLower(strings.Join(strings.Fields(attr["style"]), ""))
	if w.unseen == 0 && !closed && (hidden || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")) {
		w.unseen, w.unseenDepth = tag, 1
	}
}

func (w *htmlWriter) end(tag atom.Atom) {
	if w.skipped != 0 {
		if tag == w.skipped {
			if w.skippedDepth--; w.skippedDepth == 0 {
				w.skipped = 0
			}
		}
		return
	}
	if tag == w.unseen {
		if w.unseenDepth--; w.unseenDepth <= 0 {
			w.unseen = 0
		}
	}
	switch tag {
	case atom.Pre:
		w.endPre()
	case atom.Code:
		if !w.pre {
			w.line.WriteByte('`')
		}
	case atom.Ul, atom.Ol:
		w.flush("")
		w.prefix = ""
		if n := len(w.lists); n > 0 {
			w.lists = w.lists[:n-1]
		}
	case atom.A:
		w.endLink()
		w.anchor = 0
	case atom.Td, atom.Th:
		w.endCell()
	case atom.Tr, atom.Thead, atom.Tbody, atom.Tfoot:
		w.endRow()
	case atom.Table:
		if w.deeper > 0 {
			w.flush("")
			w.deeper--
			break
		}
		w.endRow()
		w.flush("")
		w.prefix = ""
		if n := len(w.tables); n > 0 {
			t := w.tables[n-1]
			if w.lists, w.tables = t.lists, w.tables[:n-1]; len(w.d.out) == t.end {
				w.d.out = append(w.d.out, '\n')
			}
		}
	default:
		if blocks[tag] {
			w.flush("")
			w.prefix = ""
		}
	}
}

// blocks are the elements that begin and end a paragraph.
var blocks = func() map[atom.Atom]bool {
	m := map[atom.Atom]bool{}
	for _, tag := range []atom.Atom{
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.P, atom.Li, atom.Blockquote, atom.Div, atom.Section, atom.Article,
		atom.Header, atom.Footer, atom.Main, atom.Nav, atom.Aside, atom.Dl, atom.Dt, atom.Dd, atom.Table, atom.Tr, atom.Td, atom.Th,
		atom.Caption, atom.Details, atom.Summary, atom.Form, atom.Fieldset, atom.Legend, atom.Option, atom.Optgroup, atom.Figure,
		atom.Figcaption, atom.Address, atom.Center, atom.Ul, atom.Ol, atom.Pre, atom.Hr, atom.Body,
	} {
		m[tag] = true
	}
	return m
}()

func (w *htmlWriter) endPre() {
	if w.pre {
		w.flush("")
		w.d.out = append(w.d.out, "```\n"...)
		w.pre = false
	}
}

// inBlocks says of the row around that it is no line.
func (w *htmlWriter) inBlocks() {
	if n := len(w.tables); n > 0 && w.tables[n-1].open {
		w.tables[n-1].blocks = true
	}
}

func (w *htmlWriter) endCell() {
	w.flush("")
	if n := len(w.tables); n > 0 && w.tables[n-1].open {
		w.lists, w.prefix, w.tables[n-1].open = nil, "", false
	}
}

// endRow writes the pending row as a line of a table. A row that lays out a page becomes blocks, one for each cell: it holds a table or a listing,
// or several lines of some length, or is a single cell that is not under others.
func (w *htmlWriter) endRow() {
	w.endCell()
	n := len(w.tables)
	if n == 0 || len(w.tables[n-1].cells) == 0 {
		return
	}
	t, d := w.tables[n-1], w.d
	if t.cells[0] != t.end {
		t.rows = 0 // something stands between
	}
	texts, asBlocks, length := make([]string, len(t.cells)), t.blocks || len(t.cells) == 1 && t.rows == 0, 0
	for i := len(t.cells) - 1; i >= 0; i-- {
		texts[i] = strings.Trim(string(d.out[t.cells[i]+1:]), "\n ")
		d.out = d.out[:t.cells[i]]
		length += len(texts[i])
		asBlocks = asBlocks || len(texts[i]) > 500 && strings.Contains(texts[i], "\n")
	}
	t.cells, t.blocks = t.cells[:0], false
	if length == 0 {
		return
	}
	if asBlocks {
		for _, text := range texts {
			if text != "" {
				d.block()
				d.out = append(append(d.out, text...), '\n')
			}
		}
		return
	}
	for i := range texts {
		texts[i] = cellText(texts[i])
	}
	if t.rows++; t.rows == 1 {
		d.block()
	}
	d.out = append(d.out, tableLine(texts, t.rows == 1)...)
	t.end = len(d.out)
}

// LooksHTML recognises a page by how it begins.
func LooksHTML(head []byte) bool {
	b := bytes.TrimLeft(bytes.TrimPrefix(head[:min(len(head), 1024)], []byte("\xef\xbb\xbf")), " \t\r\n")
	for bytes.HasPrefix(b, []byte("<!--")) || bytes.HasPrefix(b, []byte("<?xml")) {
		i := bytes.IndexByte(b, '>')
		if i < 0 {
			return false
		}
		b = bytes.TrimLeft(b[i+1:], " \t\r\n")
	}
	b = bytes.ToLower(b[:min(len(b), 16)])
	for _, p := range []string{"<!doctype html", "<html", "<head>", "<body"} {
		if bytes.HasPrefix(b, []byte(p)) {
			return true
		}
	}
	return false
}
