package pdf

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	engine "github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// angleSamples is how many characters of a page are asked for their direction.
const angleSamples = 24

// pageText reads a page's text. PDFium orders the words by their place on the page as
// displayed, which is wrong for a page whose text is displayed lying on its side: such a page is
// turned until the text stands upright, and turned back.
func (p *Engine) pageText(in engine.Pdfium, at requests.Page) (string, error) {
	text, turn, err := p.textAndTurn(in, at)
	if err != nil || text == "" || turn < 0 {
		return text, err
	}
	was, err := in.FPDFPage_GetRotation(&requests.FPDFPage_GetRotation{Page: at})
	if err != nil || was.PageRotation == turn {
		return text, nil
	}
	if _, err := in.FPDFPage_SetRotation(&requests.FPDFPage_SetRotation{Page: at, Rotate: turn}); err != nil {
		return text, nil
	}
	upright, _, err := p.textAndTurn(in, at)
	if _, back := in.FPDFPage_SetRotation(&requests.FPDFPage_SetRotation{Page: at, Rotate: was.PageRotation}); back != nil {
		return "", back // its image would be another page
	}
	if err != nil || upright == "" {
		return text, nil
	}
	return upright, nil
}

// textAndTurn reads the text in one piece (the package's own GetPageText crosses into the sandbox
// for each character, which costs five times as much), and tells which rotation of the page shows
// it upright; below zero when the text has no one direction.
func (p *Engine) textAndTurn(in engine.Pdfium, at requests.Page) (string, enums.FPDF_PAGE_ROTATION, error) {
	loaded, err := in.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: at})
	if err != nil {
		return "", -1, err
	}
	defer in.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: loaded.TextPage})
	chars, err := in.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: loaded.TextPage})
	if err != nil || chars.Count <= 0 {
		return "", -1, err
	}
	text, err := in.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: loaded.TextPage, Count: chars.Count})
	if err != nil {
		return "", -1, err
	}
	turn, all := uprightTurn(in, loaded.TextPage, chars.Count), []rune(text.Text)
	if len(all) != chars.Count || p.text.mod == nil {
		return strings.TrimRight(text.Text, "\x00"), turn, nil
	}
	boxes, err := p.text.boxes(chars.Count)
	if err != nil {
		return "", -1, err
	}
	return strings.TrimRight(spaced(all, boxes), "\x00"), turn, nil
}

// uprightTurn asks characters from all over the page for their angle in the page's own space.
func uprightTurn(in engine.Pdfium, page references.FPDF_TEXTPAGE, chars int) enums.FPDF_PAGE_ROTATION {
	var quarters [4]int
	asked := 0
	for i := range min(angleSamples, chars) {
		a, err := in.FPDFText_GetCharAngle(&requests.FPDFText_GetCharAngle{TextPage: page, Index: i * chars / min(angleSamples, chars)})
		if err != nil || math.IsNaN(float64(a.CharAngle)) {
			continue // a blank or a line end that PDFium made up has none
		}
		asked++
		quarter := math.Round(float64(a.CharAngle) / (math.Pi / 2))
		quarters[(int(quarter)%4+4)%4]++
	}
	for q, n := range quarters {
		if n*4 > asked*3 {
			return enums.FPDF_PAGE_ROTATION(q)
		}
	}
	return -1
}

// cleanPageText makes an engine's text plain: one kind of line end, no characters that only mean
// something to a typesetter, no blanks at line ends, no more than one empty line in a row.
func cleanPageText(s string) string {
	s = joinHyphenated(strings.ReplaceAll(s, "\r\n", "\n"))
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff:
			return -1
		case r == 0xa0:
			return ' '
		}
		return r
	}, s)
	lines := strings.Split(s, "\n")
	kept := lines[:0]
	for _, l := range lines {
		l = strings.TrimRightFunc(l, unicode.IsSpace)
		if l == "" && (len(kept) == 0 || kept[len(kept)-1] == "") {
			continue
		}
		kept = append(kept, l)
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// joinHyphenated resolves U+0002, which pdfium writes for a hyphen at a line's end, where it takes
// the line end out: the hyphen goes before a small letter, where it only marked the break, and
// stays before anything else, as in a name of two parts.
func joinHyphenated(s string) string {
	if strings.IndexByte(s, 2) < 0 {
		return s
	}
	parts := strings.Split(s, "\x02")
	var b strings.Builder
	for i, part := range parts {
		if r, _ := utf8.DecodeRuneInString(part); i > 0 && !unicode.IsLower(r) {
			b.WriteByte('-')
		}
		b.WriteString(part)
	}
	return b.String()
}
