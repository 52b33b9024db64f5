package office

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// numberFormat is a number format of a spreadsheet, such as `#,##0.00 "EUR";[Red]-0.0%`, taken apart once for all cells that have it.
type numberFormat []formatSection

// formatSection is one of the parts of a number format between semicolons: for positive numbers, negative ones, zero.
type formatSection struct {
	tokens     []formatToken
	date       bool
	half       bool // hours go to twelve
	thousands  bool
	scale      float64
	whole, dec int // places before and behind the point
}

// formatToken has as kind: 'l' a literal text, 'd' a part of a date, 'e' a time that does not begin anew ("[h]"), '0' a place before the point or
// behind it, '.' the point, 'G' the number as it is.
type formatToken struct {
	kind byte
	text string
}

// builtin are the formats that a workbook does not spell out. Dates that look different in every country are written with the year first.
var builtin = map[int]string{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0;($#,##0)", 6: "$#,##0;($#,##0)",
	7: "$#,##0.00;($#,##0.00)", 8: "$#,##0.00;($#,##0.00)", 9: "0%", 10: "0.00%", 14: "yyyy-mm-dd", 15: "d-mmm-yy",
	16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)",
	38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 41: `#,##0;(#,##0);"-"`, 42: `$#,##0;$(#,##0);$"-"`,
	43: `#,##0.00;(#,##0.00);"-"`, 44: `$#,##0.00;$(#,##0.00);$"-"`, 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0"}

// parseNumberFormat takes a format code apart. It is nil for a format that shows the number as it is: General, text; and, so that no digit is lost or
// mistaken, fractions, exponents and formats with conditions.
func parseNumberFormat(code string) numberFormat {
	var all numberFormat
	s := formatSection{scale: 1}
	point, commas := false, 0
	add := func(kind byte, text string) {
		s.tokens = append(s.tokens, formatToken{kind, text})
		s.date = s.date || kind == 'd' || kind == 'e'
	}
	end := func() {
		s.scale /= math.Pow(1000, float64(commas))
		s.minutes()
		all = append(all, s)
		s, point, commas = formatSection{scale: 1}, false, 0
	}
	for r := code; r != ""; {
		c, rest := r[0], r[1:]
		lower := c | 0x20
		switch {
		case c == ';':
			end()
		case c == '"':
			text, after, _ := strings.Cut(rest, `"`)
			add('l', text)
			rest = after
		case (c == '\\' || c == '_' || c == '*') && rest != "":
			_, n := utf8.DecodeRuneInString(rest)
			if c == '\\' {
				add('l', rest[:n])
			} else if c == '_' {
				add('l', " ")
			}
			rest = rest[n:]
		case c == '[':
			text, after, _ := strings.Cut(rest, "]")
			rest = after
			switch {
			case strings.HasPrefix(text, "<"), strings.HasPrefix(text, ">"), strings.HasPrefix(text, "="):
				return nil
			case strings.HasPrefix(text, "$"):
				money, _, _ := strings.Cut(text[1:], "-")
				add('l', money)
			case text != "" && strings.Trim(strings.ToLower(text), text[:1]) == "" && strings.Contains("hmsHMS", text[:1]):
				add('e', strings.ToLower(text))
			}
		case len(r) >= 7 && strings.EqualFold(r[:7], "general"):
			add('G', "")
			rest = r[7:]
		case len(r) >= 5 && strings.EqualFold(r[:5], "am/pm"):
			add('d', "am/pm")
			s.half, rest = true, r[5:]
		case c == '0' || c == '#' || c == '?':
			if commas > 0 && !point {
				s.thousands, commas = true, 0
			}
			if point {
				s.dec++
			} else {
				s.whole++
			}
			add('0', r[:1])
		case c == ',' && s.whole+s.dec > 0:
			commas++
		case c == '.' && !point:
			point = true
			add('.', "")
		case c == '%':
			s.scale *= 100
			add('l', "%")
		case c == '@' || c == '/' && s.whole > 0 && !s.date || lower == 'e' && s.whole+s.dec > 0:
			return nil
		case lower == 'y' || lower == 'm' || lower == 'd' || lower == 'h' || lower == 's' || lower == 'e':
			n := len(r) - len(strings.TrimLeft(r, string([]byte{c, c ^ 0x20})))
			add('d', strings.ToLower(r[:n]))
			rest = r[n:]
		default:
			add('l', r[:1])
		}
		r = rest
	}
	end()
	if t := all[0].tokens; len(all) == 1 && len(t) == 1 && t[0].kind == 'G' {
		return nil
	}
	return all
}

// minutes tells the months of a section from its minutes, which stand behind hours or before seconds.
func (s *formatSection) minutes() {
	last := -1
	for i, t := range s.tokens {
		if t.kind != 'd' && t.kind != 'e' {
			continue
		}
		if t.text[0] == 'm' && len(t.text) < 3 && t.kind == 'd' && last >= 0 && s.tokens[last].text[0] == 'h' {
			s.tokens[i].text = "n" + t.text
		}
		if t.text[0] == 's' && last >= 0 && s.tokens[last].kind == 'd' && s.tokens[last].text[0] == 'm' {
			s.tokens[last].text = "n" + s.tokens[last].text
		}
		last = i
	}
}

// show writes the number f. It is empty where the format shows nothing, or f is no date.
func (n numberFormat) show(f float64, date1904 bool) string {
	s, negative := n.section(f)
	if s.date {
		return s.showDate(f, date1904)
	}
	text := s.showNumber(math.Abs(f) * s.scale)
	if negative && strings.Trim(text, "0.,%") != "" {
		text = "-" + text
	}
	return text
}

// section is the part of the format that is meant for f; negative: a minus sign belongs before it.
func (n numberFormat) section(f float64) (s *formatSection, negative bool) {
	switch {
	case f < 0 && len(n) > 1:
		return &n[1], false
	case f == 0 && len(n) > 2:
		return &n[2], false
	}
	return &n[0], f < 0
}

// showNumber fills the places of the section with the digits of f, which is not negative.
func (s *formatSection) showNumber(f float64) string {
	if f != math.Trunc(f) {
		f *= 1 + 1e-15 // 1.005 is a little less, and is rounded as if it were not
	}
	whole, dec, _ := strings.Cut(strconv.FormatFloat(f, 'f', min(s.dec, 30), 64), ".")
	whole = strings.TrimLeft(whole, "0")
	var b strings.Builder
	// digit writes the digit of the whole number that has so many behind it; without one it writes none.
	digit := func(behind int, none string) {
		if behind < len(whole) {
			none = whole[len(whole)-1-behind:][:1]
		}
		if b.WriteString(none); s.thousands && behind > 0 && behind%3 == 0 && strings.TrimSpace(none) != "" {
			b.WriteByte(',')
		}
	}
	at := 0 // places so far
	for _, t := range s.tokens {
		switch t.kind {
		case 'l':
			b.WriteString(t.text)
		case 'G':
			b.WriteString(general(f))
		case '.':
			if s.whole == 0 {
				b.WriteString(whole)
			}
			b.WriteByte('.')
		case '0':
			none := map[string]string{"0": "0", "?": " "}[t.text]
			if at == 0 && s.whole > 0 {
				for behind := len(whole) - 1; behind >= s.whole; behind-- { // the first place takes all that have none
					digit(behind, "")
				}
			}
			if at < s.whole {
				digit(s.whole-1-at, none)
			} else if rest := dec[min(at-s.whole, len(dec)):]; rest != "" && (t.text == "0" || strings.Trim(rest, "0") != "") {
				b.WriteString(rest[:1])
			} else {
				b.WriteString(none)
			}
			at++
		}
	}
	return b.String()
}

// showDate writes the day number f as a date or as a length of time.
func (s *formatSection) showDate(f float64, date1904 bool) string {
	if f < 0 || f > 2_958_466 || math.IsNaN(f) {
		return ""
	}
	unit := time.Second
	if s.dec > 0 {
		unit = time.Millisecond
	}
	day, part := math.Modf(f)
	in := time.Duration(part * float64(24*time.Hour)).Round(unit)
	all := time.Duration(day)*24*time.Hour + in
	base := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if date1904 {
		base = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if day < 60 && day > 0 {
		day++ // day 60 is the 29th of February 1900, which never was but which everybody counts
	}
	t := base.AddDate(0, 0, int(day)).Add(in)
	var b strings.Builder
	behind := 0 // places behind the seconds' point
	for _, k := range s.tokens {
		switch k.kind {
		case 'l':
			b.WriteString(k.text)
		case '.':
			b.WriteByte('.')
		case '0':
			if behind < 3 {
				b.WriteByte(fmt.Sprintf("%03d", t.Nanosecond()/1e6)[behind])
			}
			behind++
		case 'e':
			n := map[byte]time.Duration{'h': time.Hour, 'm': time.Minute, 's': time.Second}[k.text[0]]
			fmt.Fprintf(&b, "%0*d", len(k.text), all/n)
		case 'd':
			if k.text[0] == 'h' {
				hour := t.Hour()
				if s.half {
					hour = (hour+11)%12 + 1
				}
				fmt.Fprintf(&b, "%0*d", min(len(k.text), 2), hour)
				break
			}
			b.WriteString(t.Format(dateLayouts[k.text[:min(len(k.text), 4)]]))
		}
	}
	return b.String()
}

// dateLayouts are the parts of a date as package time writes them; nm are the minutes.
var dateLayouts = map[string]string{"y": "06", "yy": "06", "yyy": "2006", "yyyy": "2006", "e": "2006", "ee": "2006", "eee": "2006", "eeee": "2006", "m": "1", "mm": "01", "mmm": "Jan",
	"mmmm": "January", "d": "2", "dd": "02", "ddd": "Mon", "dddd": "Monday", "nm": "4", "nmm": "04", "s": "5", "ss": "05", "sss": "05", "ssss": "05", "am/p": "PM"}

// general writes a number as it is, to the fifteen digits that a spreadsheet keeps.
func general(f float64) string {
	s := strconv.FormatFloat(f, 'g', 15, 64)
	if g, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(g) < 1e21 && (math.Abs(g) >= 1e-7 || g == 0) {
		return strconv.FormatFloat(g, 'f', -1, 64)
	}
	return s
}
