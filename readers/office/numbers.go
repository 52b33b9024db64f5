package office

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// numberFormat is a number format of a spreadsheet, such as `#,##0.00 "EUR";[Red]-0.0%`, taken apart once for all cells that have it: a section for
// positive numbers, and perhaps one for negative ones and one for zero.
type numberFormat []formatSection

type formatSection struct {
	parts  []func(f float64, at time.Time) string // in their order; at is the date of f
	number bool                                   // one of them is a number
	date   bool                                   // one is a date or a time
	split  bool                                   // seconds are
	scale  float64
}

// builtin are the formats that a workbook does not spell out. Dates that look different in every country are written with the year first.
var builtin = map[int]string{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0;($#,##0)", 6: "$#,##0;($#,##0)",
	7: "$#,##0.00;($#,##0.00)", 8: "$#,##0.00;($#,##0.00)", 9: "0%", 10: "0.00%", 14: "yyyy-mm-dd", 15: "d-mmm-yy",
	16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)",
	38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 41: `#,##0;(#,##0);"-"`, 42: `$#,##0;$(#,##0);$"-"`,
	43: `#,##0.00;(#,##0.00);"-"`, 44: `$#,##0.00;$(#,##0.00);$"-"`, 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0"}

// formatTokens takes a format apart: text, white space of a width, colours and the like, numbers, and parts of dates and times.
var formatTokens = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?is)"[^"]*"?|[\\_*].|\[[^\]]*\]?|general|am/pm|[#0?][#0?,.]*|\.[#0?]+|y+|m+|d+|h+|s+(?:\.0+)?|.`)
})

// parseNumberFormat takes a format code apart. It is nil for a format that shows the number as it is: General, text; and, so that no digit is lost or
// mistaken, fractions, exponents, conditions, and numbers in several pieces, such as those of telephones.
func parseNumberFormat(code string) (all numberFormat) {
	if strings.EqualFold(code, "general") {
		return nil
	}
	tokens := formatTokens().FindAllString(code, -1)
	half := strings.Contains(strings.ToLower(code), "am/pm")
	s := formatSection{scale: 1}
	for i, t := range tokens {
		if t == ";" {
			all = append(all, s)
			s = formatSection{scale: 1}
		} else if !s.add(strings.ToLower(t), t, half, clock(tokens, i, -1) == 'h' || clock(tokens, i, 1) == 's') {
			return nil
		}
	}
	return append(all, s)
}

// clock is the first letter of the next part of a date or time before or behind the token at i; 0 where there is none in its section.
func clock(tokens []string, i, step int) byte {
	for i += step; i >= 0 && i < len(tokens) && tokens[i] != ";"; i += step {
		if t := strings.ToLower(strings.Trim(tokens[i], "[]")); t != "" && strings.Contains("ymdhs", t[:1]) {
			return t[0]
		}
	}
	return 0
}

// add appends the part that the token t is, which is written as was. half: hours go to twelve; minutes: an "m" is one. It reports false for a part that
// is not shown.
func (s *formatSection) add(t, was string, half, minutes bool) bool {
	text := ""
	switch c := t[0]; {
	case c == '"':
		text = strings.Trim(was, `"`)
	case c == '\\' && len(t) > 1:
		text = was[1:]
	case c == '_' && len(t) > 1:
		text = " "
	case c == '*' && len(t) > 1:
	case c == '[':
		switch t = strings.Trim(t, "[]"); {
		case strings.HasPrefix(t, "$"):
			text, _, _ = strings.Cut(strings.Trim(was, "[]")[1:], "-")
		case t != "" && strings.Contains("<>=", t[:1]):
			return false
		case t != "" && strings.Trim(t, "h") == "", t != "" && strings.Trim(t, "m") == "", t != "" && strings.Trim(t, "s") == "":
			s.date = true
			seconds := map[byte]int64{'h': 3600, 'm': 60, 's': 1}[t[0]]
			s.parts = append(s.parts, func(f float64, _ time.Time) string {
				return fmt.Sprintf("%0*d", len(t), int64(math.Round(f*86400))/seconds)
			})
			return !s.number
		}
	case t == "general":
		s.number = true
		s.parts = append(s.parts, func(f float64, _ time.Time) string { return general(f) })
		return true
	case strings.Contains("#0?", t[:1]), c == '.' && len(t) > 1:
		if s.number || s.date {
			return false
		}
		s.number = true
		digits := strings.TrimRight(t, ",")
		s.scale /= math.Pow(1000, float64(len(t)-len(digits)))
		s.parts = append(s.parts, func(f float64, _ time.Time) string { return placed(f, digits) })
		return true
	case c == '%':
		s.scale *= 100
		text = "%"
	case c == '@', c == 'e', c == '/' && !s.date:
		return false
	case t == "am/pm", strings.Contains("ymdhs", t[:1]):
		s.date = true
		layout := dateLayouts[t[:min(len(t), 4)]]
		switch {
		case c == 'm' && len(t) < 3 && minutes:
			layout = dateLayouts["n"+t]
		case c == 's':
			_, behind, split := strings.Cut(t, ".")
			s.split = s.split || split
			layout = strings.TrimSuffix("05."+behind[:min(len(behind), 3)], ".")
		case c == 'h' && half:
			layout = "03"[2-min(len(t), 2):]
		}
		s.parts = append(s.parts, func(_ float64, at time.Time) string {
			if c == 'h' && !half {
				return fmt.Sprintf("%0*d", min(len(t), 2), at.Hour())
			}
			return at.Format(layout)
		})
		return !s.number
	default:
		text = was
	}
	s.parts = append(s.parts, func(float64, time.Time) string { return text })
	return true
}

// dateLayouts are the parts of a date as package time writes them; nm are the minutes.
var dateLayouts = map[string]string{"y": "06", "yy": "06", "yyy": "2006", "yyyy": "2006", "m": "1", "mm": "01", "mmm": "Jan", "mmmm": "January",
	"d": "2", "dd": "02", "ddd": "Mon", "dddd": "Monday", "nm": "4", "nmm": "04", "am/p": "PM"}

// placed writes f, which is not negative, in the places of a format: "#,##0.0#".
func placed(f float64, places string) string {
	before, behind, point := strings.Cut(places, ".")
	if f != math.Trunc(f) {
		f *= 1 + 1e-15 // 1.005 is a little less, and is rounded as if it were not
	}
	whole, dec, _ := strings.Cut(strconv.FormatFloat(f, 'f', min(len(behind), 30), 64), ".")
	whole = strings.TrimLeft(whole, "0")
	whole = strings.Repeat("0", max(strings.Count(before, "0")-len(whole), 0)) + whole
	if strings.Contains(before, ",") {
		for at := len(whole) - 3; at > 0; at -= 3 {
			whole = whole[:at] + "," + whole[at:]
		}
	}
	for len(dec) > 0 && dec[len(dec)-1] == '0' && behind[len(dec)-1] != '0' {
		dec = dec[:len(dec)-1]
	}
	if point {
		whole += "."
	}
	return whole + dec
}

// show writes the number f. It is empty where the format shows nothing, or f is no date.
func (n numberFormat) show(f float64, date1904 bool) string {
	s, negative := &n[0], f < 0
	switch {
	case f < 0 && len(n) > 1:
		s, negative = &n[1], false
	case f == 0 && len(n) > 2:
		s = &n[2]
	}
	if s.date && !(f >= 0 && f <= 2_958_466) {
		return ""
	}
	at := time.Time{}
	if s.date {
		at = dateOf(f, date1904, map[bool]time.Duration{false: time.Second, true: time.Millisecond}[s.split])
	} else {
		f = math.Abs(f) * s.scale
	}
	var b strings.Builder
	for _, part := range s.parts {
		b.WriteString(part(f, at))
	}
	if negative && strings.Trim(b.String(), "0.,%") != "" {
		return "-" + b.String()
	}
	return b.String()
}

// dateOf is the time of the day number f, to a unit.
func dateOf(f float64, date1904 bool, unit time.Duration) time.Time {
	day, part := math.Modf(f)
	base := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if date1904 {
		base = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if day < 60 && day > 0 {
		day++ // day 60 is the 29th of February 1900, which never was but which everybody counts
	}
	return base.AddDate(0, 0, int(day)).Add(time.Duration(part * float64(24*time.Hour)).Round(unit))
}

// general writes a number as it is, to the fifteen digits that a spreadsheet keeps.
func general(f float64) string {
	s := strconv.FormatFloat(f, 'g', 15, 64)
	if g, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(g) < 1e21 && (math.Abs(g) >= 1e-7 || g == 0) {
		return strconv.FormatFloat(g, 'f', -1, 64)
	}
	return s
}
