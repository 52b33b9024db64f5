package office

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"moltisfs/readers/unreadable"
)

const (
	sheetColumns  = 500      // in their places; cells beyond are led by their column's name
	sharedStrings = 32 << 20 // bytes of all of them
)

// xlsx writes every sheet as a table: a row is a line, led by its number so that cells can be named.
func (d *Document) xlsx() error {
	relations := d.relations("xl/workbook.xml")
	type sheet struct{ name, part string }
	var sheets []sheet
	var w workbook
	err := d.walk("xl/workbook.xml", xmlHandler{start: func(e *element) (bool, error) {
		switch e.name {
		case "workbookPr":
			w.date1904 = isTrue(e.get("date1904"))
		case "sheet":
			s := sheet{name: e.get("name")}
			if state := e.get("state"); state != "" && state != "visible" {
				s.name += " (hidden)"
			}
			for _, a := range e.attr {
				if a.Name.Local == "id" && a.Name.Space == "r" {
					s.part = relations[a.Value]
				}
			}
			if len(sheets) < maxEntries {
				sheets = append(sheets, s)
			}
		}
		return false, nil
	}})
	if err != nil {
		return err
	}
	if w.shared, err = d.sharedStrings(); err != nil {
		return err
	}
	w.dates = d.dateStyles()
	for _, s := range sheets {
		if d.parts[s.part] == nil {
			continue
		}
		d.block()
		if err := d.add("## Sheet: ", s.name, "\n\n"); err != nil {
			return err
		}
		if err := d.sheet(s.part, &w); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) sharedStrings() ([]string, error) {
	if d.parts["xl/sharedStrings.xml"] == nil {
		return nil, nil
	}
	var all []string
	var b strings.Builder
	inText, size := false, 0
	err := d.walk("xl/sharedStrings.xml", xmlHandler{
		start: func(e *element) (bool, error) {
			if e.name == "si" {
				b.Reset()
			}
			inText = e.name == "t"
			return e.name == "rPh", nil // phonetic help is not the text
		},
		text: func(s []byte) error {
			if inText {
				if size += len(s); size > sharedStrings {
					return &unreadable.Limit{What: "document", Resource: "bytes of shared strings", Max: sharedStrings}
				}
				b.Write(s)
			}
			return nil
		},
		end: func(name string) error {
			inText = false
			if name == "si" {
				all = append(all, b.String())
			}
			return nil
		},
	})
	return all, err
}

// dateStyles returns for each cell style whether it shows its number as a date.
func (d *Document) dateStyles() []bool {
	var styles []bool
	custom := map[string]bool{}
	inCells := false
	d.walk("xl/styles.xml", xmlHandler{
		start: func(e *element) (bool, error) {
			switch e.name {
			case "numFmt":
				custom[e.get("numFmtId")] = dateFormat(e.get("formatCode"))
			case "cellXfs":
				inCells = true
			case "xf":
				if inCells && len(styles) < 100_000 {
					id := e.get("numFmtId")
					n := atoi(id)
					styles = append(styles, n >= 14 && n <= 22 || n >= 45 && n <= 47 || custom[id])
				}
			}
			return false, nil
		},
		end: func(name string) error {
			if name == "cellXfs" {
				inCells = false
			}
			return nil
		},
	})
	return styles
}

// dateFormat looks for parts of a date in a number format, outside quotes and brackets.
func dateFormat(code string) bool {
	quoted, bracket := false, false
	for i := 0; i < len(code); i++ {
		switch c := code[i] | 0x20; {
		case code[i] == '"':
			quoted = !quoted
		case code[i] == '\\':
			i++
		case code[i] == '[':
			bracket = true
		case code[i] == ']':
			bracket = false
		case !quoted && !bracket && (c == 'y' || c == 'd' || c == 'h' || c == 'm' || c == 's'):
			return true
		}
	}
	return false
}

// workbook has the strings and styles that the cells of all sheets refer to.
type workbook struct {
	shared   []string
	dates    []bool // by style: the number is shown as a date
	date1904 bool
}

// value is the text of a cell of this kind and style, whose elements v and t hold v and inline.
func (w *workbook) value(kind string, style int, v, inline string) string {
	switch kind {
	case "s":
		if i, err := strconv.Atoi(strings.TrimSpace(v)); err == nil && i >= 0 && i < len(w.shared) {
			return w.shared[i]
		}
	case "inlineStr":
		return inline
	case "b":
		return map[string]string{"1": "TRUE", "0": "FALSE"}[strings.TrimSpace(v)]
	case "str", "e", "d":
	default:
		if style < len(w.dates) && style >= 0 && w.dates[style] {
			return serialDate(v, w.date1904)
		}
	}
	return v
}

func (d *Document) sheet(part string, w *workbook) error {
	var row, far, hidden []string // far: cells beyond sheetColumns
	var value, inline, formula strings.Builder
	mark, computed := "", false // computed: the cell has a formula, perhaps one that is shared with others
	kind, style, column, number := "", 0, 0, 0
	var into *strings.Builder
	return d.walk(part, xmlHandler{
		start: func(e *element) (bool, error) {
			into = nil
			switch e.name {
			case "row":
				number = cmp.Or(max(atoi(e.get("r")), 0), number+1)
				row, far, column, mark = row[:0], far[:0], 0, ""
				if isTrue(e.get("hidden")) {
					mark = " (hidden)"
				}
			case "col":
				if isTrue(e.get("hidden")) && len(hidden) < 1000 {
					hidden = append(hidden, columnSpan(atoi(e.get("min")), atoi(e.get("max"))))
				}
			case "sheetData":
				if len(hidden) > 0 {
					return false, d.add("Hidden columns: ", strings.Join(hidden, ", "), "\n\n")
				}
			case "c":
				value.Reset()
				inline.Reset()
				formula.Reset()
				computed = false
				kind, style = e.get("t"), atoi(e.get("s"))
				column = cmp.Or(columnOf(e.get("r")), column+1)
			case "v":
				into = &value
			case "t":
				into = &inline
			case "f":
				into, computed = &formula, true
			case "rPh", "headerFooter", "extLst":
				return true, nil
			}
			return false, nil
		},
		text: func(s []byte) error {
			if into != nil {
				into.Write(s)
			}
			return nil
		},
		end: func(name string) error {
			into = nil
			switch name {
			case "c":
				v := w.value(kind, style, value.String(), inline.String())
				if v == "" && formula.Len() > 0 {
					v = "=" + formula.String()
				} else if computed {
					d.hidden.formulas++
				}
				if v == "" || column < 1 {
					return nil
				}
				if column > sheetColumns { // not in its place: before it there may be thousands of empty ones
					far = append(far, columnName(column)+": "+cellText(v))
					return nil
				}
				for len(row) < column {
					row = append(row, "")
				}
				row[column-1] = cellText(v)
			case "row":
				if row = append(row, far...); len(row) == 0 {
					return nil
				}
				return d.add(strconv.Itoa(number), mark, " | ", strings.Join(row, " | "), "\n")
			}
			return nil
		},
	})
}

// columnOf is the column of a cell's name: 1 for "A7", 28 for "AB1"; 0 when there is none.
func columnOf(ref string) int {
	n := 0
	for i := 0; i < len(ref) && ref[i] >= 'A' && ref[i] <= 'Z' && n < 1<<20; i++ {
		n = n*26 + int(ref[i]-'A') + 1
	}
	return n
}

// columnName is the name of a column: "A" for 1, "AB" for 28.
func columnName(n int) string {
	var b []byte
	for ; n > 0; n = (n - 1) / 26 {
		b = append(b, byte('A'+(n-1)%26))
	}
	slices.Reverse(b)
	return string(b)
}

// columnSpan is "C" or "C-F".
func columnSpan(from, to int) string {
	if to <= from {
		return columnName(from)
	}
	return columnName(from) + "-" + columnName(to)
}

func isTrue(s string) bool { return s == "1" || s == "true" }

// serialDate writes a day number as a date. Day 60 is the 29th of February 1900, which never was but which everybody counts.
func serialDate(v string, date1904 bool) string {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || f < 0 || f > 2_958_466 || math.IsNaN(f) {
		return v
	}
	day, frac := math.Modf(f)
	seconds := int(math.Round(frac * 86400))
	if day == 0 && seconds > 0 {
		return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	base := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if date1904 {
		base = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if day < 60 {
		day++
	}
	t := base.AddDate(0, 0, int(day)).Add(time.Duration(seconds) * time.Second)
	if seconds == 0 {
		return t.Format("2006-01-02")
	}
	return t.Format("2006-01-02 15:04:05")
}
