package readers

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// nativeFont turns the codes of a string into text and widths.
type nativeFont struct {
	wide    bool // codes of two bytes
	guessed bool // widths are guesses
	legacy  *textEncoding
	unicode map[int]string  // from the font's ToUnicode map
	table   [256]string     // of a font with codes of one byte
	widths  map[int]float64 // in ems
	missing float64
}

// font finds a font by its resource name. The dictionary's own text is the key, so that a font used on many pages is
// read once.
func (in *interpreter) font(resources pdf.Value, name string) *nativeFont {
	v := resources.Key("Font").Key(name)
	key := v.String()
	if f, ok := in.fonts[key]; ok {
		return f
	}
	f := newNativeFont(v)
	if len(in.fonts) < 10_000 {
		in.fonts[key] = f
	}
	return f
}

func newNativeFont(v pdf.Value) (f *nativeFont) {
	f = &nativeFont{widths: map[int]float64{}}
	defer func() { recover() }() // what was read of a bad font is used
	f.wide = v.Key("Subtype").Name() == "Type0"
	if f.wide {
		f.readWide(v)
	} else {
		f.readSimple(v)
	}
	if u := v.Key("ToUnicode"); u.Kind() == pdf.Stream {
		f.unicode = map[int]string{}
		readToUnicode(u, f.unicode)
	}
	return f
}

func (f *nativeFont) readSimple(v pdf.Value) {
	scale := 0.001
	if v.Key("Subtype").Name() == "Type3" {
		if m := v.Key("FontMatrix"); m.Len() == 6 && m.Index(0).Float64() != 0 {
			scale = m.Index(0).Float64()
		}
	}
	w, first := v.Key("Widths"), int(v.Key("FirstChar").Int64())
	for i := range min(w.Len(), 256) {
		f.widths[first+i] = w.Index(i).Float64() * scale
	}
	f.missing = v.Key("FontDescriptor").Key("MissingWidth").Float64() * scale
	base := v.Key("BaseFont").Name()
	if w.Len() == 0 {
		f.useStandardWidths(base)
	}
	font := pdf.Font{V: v}
	dec := font.Encoder()
	for c := range 256 {
		s := dec.Decode(string([]byte{byte(c)}))
		// What the library has no name for comes back as the byte itself.
		if r, n := utf8.DecodeRuneInString(s); n == len(s) && (r == utf8.RuneError || r >= 0x80 && r < 0xa0) {
			s = string(charmap.Windows1252.DecodeByte(byte(c)))
		}
		f.table[c] = s
	}
	symbolic := strings.Contains(base, "Symbol") || strings.Contains(base, "Dingbats")
	if !symbolic && v.Key("Encoding").Kind() == pdf.Null && f.table['A'] == "" {
		for c := range 256 {
			f.table[c] = string(charmap.Windows1252.DecodeByte(byte(c)))
		}
	}
}

func (f *nativeFont) useStandardWidths(base string) {
	if strings.Contains(base, "Courier") {
		f.missing = 0.6
		return
	}
	w := standardWidths(base)
	f.guessed, f.missing = true, 0.52
	for i, v := range w {
		f.widths[' '+i] = float64(v) / 1000
	}
}

func (f *nativeFont) readWide(v pdf.Value) {
	d := v.Key("DescendantFonts").Index(0)
	f.missing = 1
	if dw := d.Key("DW"); dw.Kind() != pdf.Null {
		f.missing = dw.Float64() / 1000
	}
	w := d.Key("W")
	for i := 0; i+1 < min(w.Len(), 200_000) && len(f.widths) < 70_000; {
		from := int(w.Index(i).Int64())
		if list := w.Index(i + 1); list.Kind() == pdf.Array {
			for j := range min(list.Len(), 65536) {
				f.widths[from+j] = list.Index(j).Float64() / 1000
			}
			i += 2
			continue
		}
		to, width := int(w.Index(i+1).Int64()), w.Index(i+2).Float64()/1000
		for c := from; c <= min(to, from+65535, 65535); c++ {
			f.widths[c] = width
		}
		i += 3
	}
	name := v.Key("Encoding").Name()
	switch {
	case strings.HasPrefix(name, "GBK"), strings.HasPrefix(name, "GB-EUC"):
		f.legacy = mustEncoding("gb18030")
	case strings.HasPrefix(name, "90ms-RKSJ"), strings.HasPrefix(name, "90pv-RKSJ"):
		f.legacy = mustEncoding("shift_jis")
	case strings.HasPrefix(name, "KSC"):
		f.legacy = mustEncoding("euc-kr")
	case strings.HasPrefix(name, "ETen-B5"), strings.HasPrefix(name, "B5pc"):
		f.legacy = mustEncoding("big5")
	case strings.HasPrefix(name, "EUC-H"), strings.HasPrefix(name, "EUC-V"):
		f.legacy = mustEncoding("euc-jp")
	case strings.HasPrefix(name, "Uni"):
		f.legacy = mustEncoding("utf-16be")
	}
}

// next takes one code off the string.
func (f *nativeFont) next(s *string) (code int, text string, width float64) {
	n := 1
	code = int((*s)[0])
	if f.wide && len(*s) > 1 && (f.legacy == nil || f.legacy.unit == 2 || code >= 0x80) {
		n, code = 2, code<<8|int((*s)[1])
	}
	raw := (*s)[:n]
	*s = (*s)[n:]
	width, ok := f.widths[code]
	if !ok {
		width = f.missing
	}
	if t, ok := f.unicode[code]; ok {
		return code, t, width
	}
	switch {
	case f.legacy != nil:
		b, _ := f.legacy.decode([]byte(raw))
		text = string(b)
	case !f.wide:
		text = f.table[code&0xff]
	}
	return code, text, width
}

// readToUnicode reads the ranges of a CMap. The library has a reader of its own but asks it only for fonts without an
// encoding, where the map should come first.
func readToUnicode(v pdf.Value, out map[int]string) {
	rd := v.Reader()
	defer rd.Close()
	b := make([]byte, 0, 64<<10)
	for len(b) < 4<<20 {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := rd.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			break
		}
	}
	lex := contentLexer{b: b}
	var args []operand
	inRange, inList := false, false
	for len(out) < 70_000 {
		// Arrays matter here, so they are told by their brackets.
		for lex.i < len(lex.b) && (blank(lex.b[lex.i]) || lex.b[lex.i] == ']') {
			inList = inList && lex.b[lex.i] != ']'
			lex.i++
		}
		if lex.i < len(lex.b) && lex.b[lex.i] == '[' {
			inList = true
		}
		t, ok := lex.next()
		if !ok {
			return
		}
		switch {
		case t.kind == stringToken && inList && inRange && len(args) >= 2:
			out[codeOf(args[0].s)+len(args)-2] = utf16Text(t.s)
			args = append(args, t)
		case t.kind == stringToken:
			if inRange && len(args) > 2 {
				args = args[:0] // a list has ended
			}
			args = append(args, t)
			if inRange && len(args) == 3 {
				addRange(out, codeOf(args[0].s), codeOf(args[1].s), args[2].s)
				args = args[:0]
			} else if !inRange && len(args) == 2 {
				out[codeOf(args[0].s)] = utf16Text(args[1].s)
				args = args[:0]
			}
		case t.kind == operatorToken:
			inRange = t.s == "beginbfrange"
			if t.s == "begincodespacerange" {
				skipTo(&lex, "endcodespacerange")
			}
			args = args[:0]
		}
	}
}

func skipTo(lex *contentLexer, op string) {
	for {
		t, ok := lex.next()
		if !ok || t.kind == operatorToken && t.s == op {
			return
		}
	}
}

func addRange(out map[int]string, lo, hi int, first string) {
	if hi-lo > 65535 || len(first) == 0 {
		return
	}
	dst := []byte(first)
	for c := lo; c <= hi; c++ {
		out[c] = utf16Text(string(dst))
		for i := len(dst) - 1; i >= 0; i-- {
			if dst[i]++; dst[i] != 0 {
				break
			}
		}
	}
}

func codeOf(s string) int {
	n := 0
	for i := range min(len(s), 4) {
		n = n<<8 | int(s[i])
	}
	return n
}

func utf16Text(s string) string {
	if len(s) == 1 {
		return string(rune(s[0]))
	}
	u := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		u = append(u, uint16(s[i])<<8|uint16(s[i+1]))
	}
	t := string(utf16.Decode(u))
	return strings.TrimRight(t, "\x00")
}

// foldLigatures writes Latin ligatures and Arabic presentation forms as the letters they stand for: "ﬁ" as "fi".
func foldLigatures(s string) string {
	if strings.IndexFunc(s, presentation) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if presentation(r) {
			b.WriteString(norm.NFKC.String(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func presentation(r rune) bool { return r >= 0xfb00 && r <= 0xfdff || r >= 0xfe70 && r <= 0xfefc }
