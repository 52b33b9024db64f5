package readers

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/ledongthuc/pdf"
)

const (
	nativeDepth   = 64      // levels of the page tree
	nativeNodes   = 200_000 // of the page tree
	contentBytes  = 64 << 20
	contentGlyphs = 2_000_000
	// contentOperands is how many an operator may have: a line of text with every letter placed has hundreds.
	contentOperands = 1 << 20
	formDepth       = 12
)

// nativePages reads pages with the small engine. It runs in the worker: the library may panic, spin or allocate
// without bound on a bad file. From it come the structure and the filters; the decryption, the walk through the
// page tree and the interpretation of pages are ours. Words come in the order in which they are drawn, and where one ends is told by the direction
// of its own letters: how the page is turned for display, by /Rotate, makes no difference to either.
func nativePages(data []byte, job pdfJob) (out *pdfPages, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, &Damaged{"PDF", fmt.Sprintf("the engine gave up (%.120q)", fmt.Sprint(v))}
		}
	}()
	if data, err = decrypted(data); err != nil {
		return nil, err
	}
	r, err := openPDF(data)
	if err != nil {
		return nil, err
	}
	tree := pageTree{}
	tree.walk(r.Trailer().Key("Root").Key("Pages"), 0)
	total := len(tree.pages)
	if total == 0 {
		return nil, &Damaged{"PDF", "it has no pages"}
	}
	out = &pdfPages{Total: total}
	if out.Asked, err = parsePages(job.Pages, total); err != nil {
		return nil, err
	}
	fonts := map[string]*nativeFont{}
	text := int64(0)
	for _, n := range out.Asked {
		p := nativePage(tree.pages[n-1], n, fonts)
		out.Pages = append(out.Pages, p)
		if text += int64(len(p.Text)); text > job.TextBytes {
			break
		}
	}
	return out, nil
}

// openPDF opens a PDF that is not encrypted, or of which only what never is will be looked at.
func openPDF(data []byte) (*pdf.Reader, error) {
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, &Damaged{"PDF", clip(strconv.QuoteToGraphic(err.Error()), 120)}
	}
	return r, nil
}

var errNativeEncryption = &Unsupported{
	What: "an encrypted PDF",
	Why:  "its kind of encryption is not known to the native engine",
	Do:   `Ask the user for a copy that is not encrypted, or the operator for pdf_engine = "pdfium".`,
}

// pageTree lists the pages once, in order. The library's own look-up walks from the root for every page and follows loops.
type pageTree struct {
	pages []pdf.Value
	nodes int
}

func (t *pageTree) walk(v pdf.Value, depth int) {
	defer func() { recover() }() // a damaged branch does not spoil the others
	if t.nodes++; depth > nativeDepth || t.nodes > nativeNodes || v.Kind() != pdf.Dict {
		return
	}
	kids := v.Key("Kids")
	if kids.Kind() != pdf.Array {
		t.pages = append(t.pages, v)
		return
	}
	for i := range kids.Len() {
		t.walk(kids.Index(i), depth+1)
		if t.nodes > nativeNodes {
			return
		}
	}
}

func nativePage(v pdf.Value, number int, fonts map[string]*nativeFont) (p pdfPage) {
	p.Number = number
	in := &interpreter{fonts: fonts}
	defer func() {
		p.Failed = recover() != nil || in.cut
		p.Text, p.Objects = cleanPageText(foldLigatures(in.text.String())), in.objects
	}()
	resources := v.Key("Resources")
	for up, n := v, 0; resources.Kind() == pdf.Null && n < nativeDepth; n++ {
		up = up.Key("Parent")
		resources = up.Key("Resources")
	}
	in.run(contents(v.Key("Contents")), resources, 0)
	return p
}

// contents reads a stream or an array of them as one.
func contents(v pdf.Value) []byte {
	var out []byte
	part := func(v pdf.Value) {
		defer func() { recover() }() // a bad part does not spoil the others
		if v.Kind() != pdf.Stream {
			return
		}
		rd := v.Reader()
		defer rd.Close()
		b, _ := io.ReadAll(io.LimitReader(rd, int64(contentBytes-len(out))))
		out = append(append(out, b...), '\n')
	}
	if v.Kind() != pdf.Array {
		part(v)
		return out
	}
	for i := 0; i < v.Len() && len(out) < contentBytes; i++ {
		part(v.Index(i))
	}
	return out
}

// matrix is [a b c d e f] as in a content stream.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// times applies m first, then n.
func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// graphics is the part of the graphics state that places text.
type graphics struct {
	ctm                                 matrix
	font                                *nativeFont
	size, char, word, scale, lead, rise float64
}

// interpreter runs content streams and writes their text in the order it is drawn, with blanks and line ends where
// the glyphs' places call for them.
type interpreter struct {
	fonts   map[string]*nativeFont
	text    strings.Builder
	objects int
	glyphs  int
	cut     bool // a bound was reached: there is more on the page

	g     graphics
	stack []graphics
	tm    matrix
	line  matrix

	drawn  bool    // the rest is about the last glyph
	x, y   float64 // where it ends
	x0, y0 float64 // where it begins
	dx, dy float64 // its direction
	em     float64
	last   string
}

func (in *interpreter) run(stream []byte, resources pdf.Value, depth int) {
	if depth == 0 {
		in.g = graphics{ctm: identity, scale: 1}
		in.tm, in.line = identity, identity
	}
	lex := contentLexer{b: stream}
	var args []operand
	for {
		tok, ok := lex.next()
		if !ok || in.glyphs > contentGlyphs {
			in.cut = in.cut || ok
			return
		}
		if tok.kind != operatorToken {
			if len(args) < contentOperands {
				args = append(args, tok)
			} else {
				in.cut = true
			}
			continue
		}
		in.do(tok.s, args, resources, depth, &lex)
		args = args[:0]
	}
}

func numbers(args []operand, n int) (v [6]float64, ok bool) {
	if len(args) < n {
		return v, false
	}
	for i, a := range args[len(args)-n:] {
		v[i] = a.n
	}
	return v, true
}

func (in *interpreter) do(op string, args []operand, resources pdf.Value, depth int, lex *contentLexer) {
	g := &in.g
	switch op {
	case "q":
		if len(in.stack) < 512 {
			in.stack = append(in.stack, *g)
		}
	case "Q":
		if n := len(in.stack); n > 0 {
			*g, in.stack = in.stack[n-1], in.stack[:n-1]
		}
	case "cm":
		if v, ok := numbers(args, 6); ok {
			g.ctm = matrix(v).times(g.ctm)
		}
	case "BT":
		in.tm, in.line = identity, identity
	case "Tc":
		in.set(&g.char, args, 1)
	case "Tw":
		in.set(&g.word, args, 1)
	case "Tz":
		in.set(&g.scale, args, 0.01)
	case "TL":
		in.set(&g.lead, args, 1)
	case "Ts":
		in.set(&g.rise, args, 1)
	case "Tf":
		if len(args) >= 2 {
			g.font, g.size = in.font(resources, args[0].s), args[len(args)-1].n
		}
	case "Td", "TD":
		if v, ok := numbers(args, 2); ok {
			if op == "TD" {
				g.lead = -v[1]
			}
			in.move(v[0], v[1])
		}
	case "Tm":
		if v, ok := numbers(args, 6); ok {
			in.tm, in.line = v, v
		}
	case "T*":
		in.move(0, -g.lead)
	case "'", "\"":
		if op == "\"" && len(args) >= 3 {
			g.word, g.char = args[0].n, args[1].n
		}
		in.move(0, -g.lead)
		fallthrough
	case "Tj":
		if len(args) > 0 {
			in.show(args[len(args)-1].s)
		}
	case "TJ":
		for _, a := range args {
			switch a.kind {
			case stringToken:
				in.show(a.s)
			case numberToken:
				in.advance(-a.n / 1000 * g.size)
			}
		}
	case "Do":
		if len(args) > 0 {
			in.object(resources.Key("XObject").Key(args[0].s), resources, depth)
		}
	case "BI":
		in.objects++
		lex.skipInlineImage()
	case "f", "F", "f*", "S", "s", "B", "B*", "b", "b*", "sh":
		in.objects++
	}
}

func (in *interpreter) set(v *float64, args []operand, by float64) {
	if len(args) > 0 {
		*v = args[len(args)-1].n * by
	}
}

func (in *interpreter) move(x, y float64) {
	in.line = matrix{1, 0, 0, 1, x, y}.times(in.line)
	in.tm = in.line
}

func (in *interpreter) advance(tx float64) {
	in.tm = matrix{1, 0, 0, 1, tx * in.g.scale, 0}.times(in.tm)
}

// object draws a form, which is a content stream of its own, or counts an image.
func (in *interpreter) object(v, resources pdf.Value, depth int) {
	in.objects++
	if v.Key("Subtype").Name() != "Form" || depth >= formDepth {
		return
	}
	own := v.Key("Resources")
	if own.Kind() != pdf.Dict {
		own = resources
	}
	saved, stack, tm, line := in.g, in.stack, in.tm, in.line
	in.stack = nil
	if m := v.Key("Matrix"); m.Kind() == pdf.Array && m.Len() == 6 {
		var mm matrix
		for i := range mm {
			mm[i] = m.Index(i).Float64()
		}
		in.g.ctm = mm.times(in.g.ctm)
	}
	in.run(contents(v), own, depth+1)
	in.g, in.stack, in.tm, in.line = saved, stack, tm, line
}

// show draws a string.
func (in *interpreter) show(s string) {
	f := in.g.font
	if f == nil {
		return
	}
	in.objects++
	for len(s) > 0 {
		code, text, width := f.next(&s)
		if in.glyphs++; in.glyphs > contentGlyphs {
			in.cut = true
			return
		}
		m := matrix{in.g.size * in.g.scale, 0, 0, in.g.size, 0, in.g.rise}.times(in.tm).times(in.g.ctm)
		// Letters of one string that are spaced out on purpose are still one word: the extra belongs to the glyph.
		end := width
		if in.g.size != 0 && in.g.char > 0 && len(s) > 0 {
			if extra := in.g.char / in.g.size; extra < 0.22 { // more is as wide as a blank, and some writers use it as one
				end += extra
			}
		}
		in.place(text, m, end, f.guessed)
		tx := width*in.g.size + in.g.char
		if code == ' ' && !f.wide {
			tx += in.g.word
		}
		in.advance(tx)
	}
}

// place writes one glyph, which ends at width ems, after deciding what lies between it and the one before.
func (in *interpreter) place(text string, m matrix, width float64, guessed bool) {
	em := math.Hypot(m[2], m[3])
	length := math.Hypot(m[0], m[1])
	if em == 0 || length == 0 || text == "" || math.IsNaN(em+length+m[4]+m[5]) {
		return
	}
	dx, dy := m[0]/length, m[1]/length
	if in.drawn {
		gx, gy := m[4]-in.x, m[5]-in.y
		along, across := gx*in.dx+gy*in.dy, math.Abs(gy*in.dx-gx*in.dy)
		turned := dx*in.dx+dy*in.dy < 0.9
		size := math.Max(em, in.em)
		gap := 0.13
		if guessed {
			gap = 0.22
		}
		switch {
		case !turned && text == in.last && math.Hypot(m[4]-in.x0, m[5]-in.y0) < 0.12*em:
			return // drawn twice to look bold
		case turned, across > 0.55*size, along < -2*size:
			in.text.WriteByte('\n')
		case along > gap*math.Min(em, in.em), along < -0.6*size:
			if in.last != " " && text != " " {
				in.text.WriteByte(' ')
			}
		}
	}
	in.text.WriteString(text)
	in.drawn, in.last, in.em, in.dx, in.dy = true, text, em, dx, dy
	in.x0, in.y0 = m[4], m[5]
	in.x, in.y = m[4]+width*m[0], m[5]+width*m[1]
}
