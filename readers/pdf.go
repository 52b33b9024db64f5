package readers

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/text"
	"moltisfs/readers/pdf"
	"moltisfs/readers/unreadable"
)

// pdfWindow is the longest PDF that is opened when pages are asked for.
const pdfWindow = 512 << 20

// PDF is the text of some pages in reading order, each after a line "--- Page N ---", and their
// images where asked for or where there is no text. Behind a page's text stand its form fields, as
// "[form] name: value", and the words of its annotations, as "[annotation] text", with those in the pictures of signatures and stamps;
// its image shows both.
type PDF struct {
	ReadRecord `json:"-"`

	Text          string `json:"text"`
	Pages         int    `json:"pages"` // in the document
	RenderedPages int    `json:"rendered_pages"`
	Truncated     bool   `json:"truncated"`            // pages were left out after the rendered ones, or text was cut
	NextPages     string `json:"next_pages,omitempty"` // a Pages argument for what follows
	// StartColumn is the character, from 1, at which the first page's text begins. NextColumn goes
	// with NextPages where that page's text was cut.
	StartColumn int `json:"start_column,omitempty"`
	NextColumn  int `json:"next_column,omitempty"`
	// PagesWithoutText have no text layer: they are scans, drawings or empty.
	PagesWithoutText []int       `json:"pages_without_text,omitempty"`
	PagesFailed      []int       `json:"pages_failed,omitempty"`
	PagesCut         []int       `json:"pages_cut,omitempty"` // their text was longer than the answer may be
	Images           []PageImage `json:"images,omitempty"`
	HiddenChars      int         `json:"hidden_chars,omitempty"`
	HiddenPages      []int       `json:"hidden_pages,omitempty"` // which have them
	TokenEstimate    int         `json:"token_estimate"`
	Note             string      `json:"note,omitempty"`

	read []pdf.Page
	late bool // the time was over
}

// PageImage is one page as it looks: Page, Width, Height, Format, MediaType, and the image itself
// as Base64.
type PageImage = pdf.PageImage

// Kind is "pdf".
func (*PDF) Kind() string     { return "pdf" }
func (c *PDF) noted() *string { return &c.Note }

// knowsPDF finds the mark within the first KB, as viewers do. A text that only speaks of PDFs is
// told apart by having no end of a PDF, a line "startxref".
func knowsPDF(f *file, o *Options) bool {
	if forced(f, o) {
		return false
	}
	switch {
	case !mayBePDF(f.head):
		return false
	case noText(f.head), bytes.HasPrefix(f.head, []byte("%PDF-")):
		return true
	case f.Size < 0:
		return false
	}
	tail := make([]byte, min(f.Size, 2048))
	n, err := readAt(f.R, tail, f.Size-int64(len(tail)))
	return err == nil && bytes.Contains(tail[:n], []byte("\nstartxref"))
}

func mayBePDF(head []byte) bool {
	return bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-"))
}

func readPDF(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	if _, err := parsePages(o.Pages, 0); err != nil {
		return nil, err
	}
	limit := o.longest(o.Pages != "", pdfWindow)
	if f.Size > limit {
		return nil, &TooLarge{Size: f.Size, Max: limit, What: "PDF", Windowed: limit < pdfWindow}
	}
	if f.ended && !bytes.Contains(f.head, []byte("obj")) {
		if _, rest, _ := bytes.Cut(f.head, newline); len(rest) > 0 && !noText(rest) {
			return nil, &Unsupported{What: "the PDF", Why: "there is nothing behind its header", Do: `If it is a text that only begins like a PDF, give encoding: "utf-8".`}
		}
		return nil, &Damaged{What: "PDF", Why: "there is nothing behind its header"} // told before an engine is started, which may have to be compiled
	}
	free, err := r.reserve(ctx, "PDF", r.config.PDFMemory+pdf.MemoryStep+2*min(max(f.Size, 0), pdf.Held)) // the file, and its copy with maps mended
	if err != nil {
		return nil, err
	}
	defer free()
	doc := pdf.Document{File: f.section()}
	if f.Size >= 0 && f.Size <= pdf.Held {
		if doc.Held, err = f.all(ctx, pdf.Held, "PDF", true); err != nil {
			return nil, err
		}
		if f.ended {
			doc.Held = bytes.Clone(doc.Held) // the head goes back to its pool even if the sandbox is still busy
		}
	}
	pages, err := r.pdfs.Read(ctx, doc, pdf.Job{
		Pages: func(total int) ([]int, error) {
			if o.all {
				return span(1, total), nil
			}
			return parsePages(o.Pages, total)
		},
		TextOnly: o.all, Render: o.Render, Edge: o.ImageMaxEdge, ImageMax: o.ImageMaxBytes, TextBytes: o.MaxBytes, Time: r.config.Deadline,
	})
	if err != nil {
		return nil, err
	}
	p := &PDF{Pages: pages.Total, read: pages.Pages, late: pages.Late}
	p.fill(pages, o)
	if f.Size <= memoryLimit {
		if raw, err := f.all(ctx, memoryLimit, "PDF", false); err == nil {
			p.Sum = sum(raw)
		}
	}
	return p, nil
}

// fill puts the pages into words.
func (p *PDF) fill(pages *pdf.Pages, o *Options) {
	var b strings.Builder
	full, done := false, 0
	for _, page := range pages.Pages {
		head := fmt.Sprintf("--- Page %d ---\n", page.Number)
		body := page.Text
		if done == 0 && o.Column > 1 {
			skip, _ := skipChars([]byte(body), o.Column-1)
			body, p.StartColumn = body[skip:], o.Column
		}
		room := int(o.MaxBytes) - b.Len() - len(head) - len("…\n")
		if len(body) > room {
			if done > 0 {
				full = true
				break
			}
			// At least one character, so that going on comes to an end.
			n := max(room, 1)
			for n < len(body) && !utf8.RuneStart(body[n]) {
				n++
			}
			p.NextColumn = max(o.Column, 1) + utf8.RuneCountInString(body[:n])
			body = body[:n] + "…"
			p.PagesCut = append(p.PagesCut, page.Number)
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if n := text.Hidden(body); n > 0 {
			p.HiddenChars, p.HiddenPages = p.HiddenChars+n, append(p.HiddenPages, page.Number)
		}
		b.WriteString(head)
		b.WriteString(body)
		if body != "" {
			b.WriteByte('\n')
		}
		done++
		switch {
		case page.Failed:
			p.PagesFailed = append(p.PagesFailed, page.Number)
		case page.NoText:
			p.PagesWithoutText = append(p.PagesWithoutText, page.Number)
		}
		if page.Image != nil {
			p.Images = append(p.Images, *page.Image)
		}
		if p.NextColumn > 0 {
			break
		}
	}
	full = full || len(pages.Pages) < len(pages.Asked)
	p.Text, p.RenderedPages = b.String(), done
	p.TokenEstimate = tokensOf(p.Text)
	for _, i := range p.Images {
		p.TokenEstimate += imageTokens(i.Width, i.Height)
	}
	switch last := 0; {
	case p.NextColumn > 0:
		p.NextPages = pageList(pages.Asked)
	case full:
		p.NextPages, p.Truncated = pageList(pages.Asked[done:]), true
	case len(pages.Asked) > 0:
		last = pages.Asked[len(pages.Asked)-1]
		p.Truncated = last < pages.Total
		if p.Truncated {
			p.NextPages = pageList(span(last+1, min(last+MaxPages, pages.Total)))
		}
	}
	p.Truncated = p.Truncated || len(p.PagesCut) > 0
	p.Unit, p.Total, p.Lossy = "page", pages.Total, true
	for _, page := range pages.Pages[:done] {
		// A page without text is a scan that somebody must look at, unless nothing at all is drawn on it.
		shown := page.Text != "" || page.Image != nil || !page.DrawnOn()
		if shown && !page.Failed && !slices.Contains(p.PagesCut, page.Number) && (p.StartColumn == 0 || page.Number != pages.Asked[0]) {
			p.shows(page.Number)
		}
	}
	p.Whole = p.all()
	p.say(pages.Pages[:done], pages.Late)
}

// say notes the parts of the shown pages that the text lacks. late: the time was over.
func (p *PDF) say(shown []pdf.Page, late bool) {
	drawn := 0 // of the pages without text
	for _, n := range p.PagesWithoutText {
		if slices.ContainsFunc(p.Images, func(i PageImage) bool { return i.Page == n }) {
			drawn++
		}
	}
	switch empty := len(p.PagesWithoutText) - drawn; {
	case drawn > 0 && empty > 0:
		p.note("Pages without a text layer are shown as images, unless they are empty.")
	case drawn > 0:
		p.note("Pages without a text layer are shown as images.")
	case empty > 0:
		p.note("The pages without a text layer are empty.")
	}
	unseen := func(page pdf.Page) bool { return page.Unsaid && page.Image == nil }
	if slices.ContainsFunc(shown, unseen) {
		p.note("Annotations without text are seen with render: true.")
	}
	if n := len(p.PagesFailed); n > 4 && p.PagesFailed[n-5] == shown[len(shown)-1].Number-4 {
		p.note("None of the last pages could be loaded; the document may have fewer pages than it says.")
	}
	switch {
	case late && p.NextPages != "":
		p.note("The time was over after these pages; go on with next_pages.")
	case late:
		p.note("The time was over before the last page was drawn.")
	}
}

func (p *PDF) note(s string) { p.Note = strings.TrimSpace(p.Note + " " + s) }

// tokensOf estimates as page.tokens does.
func tokensOf(s string) int {
	other := 0
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			other++
		}
	}
	return (len(s)*3 + other + 11) / 12
}

// parsePages reads a list like "1-3,7", "last" or "-3" (the last three) into page numbers in the order of the document, each once,
// however it was written: so no page behind the last of them has been shown. It is fitted to the document:
// a range may end beyond it, but must not begin there. An empty list means the first pages. Where the total is 0, only the form of the list is looked at.
func parsePages(list string, total int) ([]int, error) {
	if strings.TrimSpace(list) == "" {
		return span(1, min(total, MaxPages)), nil
	}
	bad := func(why string) ([]int, error) {
		return nil, &BadPages{Pages: unreadable.Clip(list, 60), Why: why, Total: total}
	}
	var pages []int
	if len(list) > 400 {
		return bad("the list is too long")
	}
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := pageNumber(from, total)
		b := a
		switch {
		case isRange && strings.TrimSpace(from) == "":
			b, err = pageNumber(to, total)
			if err == nil && b > 0 {
				a, b = max(total-b, 0)+1, max(total, 1)
			}
		case err == nil && isRange:
			b, err = pageNumber(to, total)
		}
		switch {
		case err != nil:
			return bad(fmt.Sprintf("%q is not a page or a range", strings.TrimSpace(part)))
		case a < 1 || b < 1:
			return bad("pages count from 1")
		case a > b:
			return bad(fmt.Sprintf("%q runs backwards", strings.TrimSpace(part)))
		case total > 0 && a > total:
			return bad(fmt.Sprintf("page %d is beyond the end", a))
		}
		if total > 0 {
			b = min(b, total)
		}
		pages = append(pages, span(a, min(b, a+MaxPages))...)
	}
	slices.Sort(pages)
	pages = slices.Compact(pages)
	if total > 0 && len(pages) > MaxPages {
		return bad(fmt.Sprintf("it asks for more than %d pages", MaxPages))
	}
	return pages, nil
}

// lastPage is the highest number in a list that parsePages took; 0 where it names none.
func lastPage(list string) int {
	last := 0
	for _, part := range strings.Split(list, ",") {
		from, to, _ := strings.Cut(part, "-")
		if strings.TrimSpace(from) == "" {
			continue // counted from the end
		}
		for _, s := range []string{from, to} {
			if n, err := pageNumber(s, 0); err == nil && n != lastOne {
				last = max(last, n)
			}
		}
	}
	return last
}

// lastOne stands for the last page where the number of pages is not known.
const lastOne = math.MaxInt32

func pageNumber(s string, total int) (int, error) {
	s = strings.TrimSpace(s)
	if strings.EqualFold(s, "last") {
		return cmp.Or(total, lastOne), nil
	}
	if s == "" || strings.TrimLeft(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}

func span(from, to int) []int {
	var s []int
	for ; from <= to; from++ {
		s = append(s, from)
	}
	return s
}

// pageList writes pages as parsePages reads them.
func pageList(pages []int) string {
	var b []byte
	for i := 0; i < len(pages); {
		j := i
		for j+1 < len(pages) && pages[j+1] == pages[j]+1 {
			j++
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(pages[i]), 10)
		if j > i {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(pages[j]), 10)
		}
		i = j + 1
	}
	return string(b)
}
