package office

import (
	"cmp"
	"iter"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"moltisfs/readers/unreadable"
)

const (
	sheetColumns  = 500      // in their places; cells beyond are led by their column's name
	sharedStrings = 32 << 20 // bytes of all of them
)

// xlsx writes the sheets that are wanted as tables: a row is a line, led by its number so that cells can be named. The targets of links and
// the comments of a sheet stand behind its rows, where the file has them.
func (d *Document) xlsx() error {
	relations := d.relations("xl/workbook.xml")
	type sheet struct{ name, part string }
	var sheets []sheet
	w := workbook{d: d, close: func() {}}
	defer func() { w.close() }()
	err := d.walk("xl/workbook.xml", xmlHandler{start: func(e *element) (bool, error) {
		switch e.name {
		case "workbookPr":
			w.date1904 = isTrue(e.get("date1904"))
		case "sheet":
			s := sheet{name: e.get("name")}
			if len(d.Sheets) == maxEntries || !d.wants(s.name) {
				return false, nil
			}
			if state := e.get("state"); state != "" && state != "visible" {
				s.name += " (hidden)"
			}
			for _, a := range e.attr {
				if a.Name.Local == "id" && a.Name.Space == "r" {
					s.part = relations[a.Value]
				}
			}
			sheets = append(sheets, s)
		}
		return false, nil
	}})
	if err != nil {
		return err
	}
	w.readFormats()
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

// workbook has the strings and formats that the cells of all sheets refer to. Strings are read as far as a cell has asked for them.
type workbook struct {
	d        *Document
	strings  []string
	next     func() (string, error, bool)
	close    func()
	err      error
	formats  []numberFormat // by style
	date1904 bool
}

// shared is a string of the workbook by its number.
func (w *workbook) shared(n int) (string, bool) {
	if w.next == nil {
		w.next, w.close = iter.Pull2(w.d.sharedStrings)
	}
	for n >= len(w.strings) {
		s, err, ok := w.next()
		if w.err = cmp.Or(w.err, err); err != nil || !ok {
			return "", false
		}
		w.strings = append(w.strings, s)
	}
	if n < 0 {
		return "", false
	}
	return w.strings[n], true
}

// sharedStrings gives the strings of the workbook one after the other, and an error at the end if there is one.
func (d *Document) sharedStrings(yield func(string, error) bool) {
	if d.parts["xl/sharedStrings.xml"] == nil {
		return
	}
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
			if name == "si" && !yield(b.String(), nil) {
				return errEnd
			}
			return nil
		},
	})
	if err != nil && err != errEnd {
		yield("", err)
	}
}

// readFormats reads the number format of each cell style.
func (w *workbook) readFormats() {
	custom := map[int]numberFormat{}
	inCells := false
	w.d.walk("xl/styles.xml", xmlHandler{ // without it numbers are shown as they are
		start: func(e *element) (bool, error) {
			id := atoi(e.get("numFmtId"))
			switch e.name {
			case "numFmt":
				if len(custom) < maxEntries {
					custom[id] = parseNumberFormat(unreadable.Clip(e.get("formatCode"), 1000))
				}
			case "cellXfs":
				inCells = true
			case "xf":
				if !inCells || len(w.formats) >= 100_000 {
					break
				}
				f, own := custom[id]
				if code := builtin[id]; !own && code != "" {
					f = parseNumberFormat(code)
					custom[id] = f
				}
				w.formats = append(w.formats, f)
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
}

// value is the text of a cell of this kind and style, whose elements v and t hold v and inline.
func (w *workbook) value(kind string, style int, v, inline string) string {
	switch kind {
	case "s":
		if i, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
			if s, ok := w.shared(i); ok {
				return s
			}
		}
		w.d.note("Texts of some cells are missing in the file; their numbers stand in for them.")
	case "inlineStr":
		return inline
	case "b":
		return map[string]string{"1": "TRUE", "0": "FALSE"}[strings.TrimSpace(v)]
	case "str", "e", "d":
	default:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return v
		}
		if style < len(w.formats) && style >= 0 && w.formats[style] != nil {
			if s := w.formats[style].show(f, w.date1904); strings.TrimSpace(s) != "" {
				return s
			}
			if f != 0 {
				w.d.hidden.vanished += len(v) // a format of nothing but semicolons
			}
		}
		return general(f)
	}
	return v
}

func (d *Document) sheet(part string, w *workbook) error {
	var row, far, hidden []string // far: cells beyond sheetColumns
	var value, inline, formula strings.Builder
	mark, computed := "", false // computed: the cell has a formula, perhaps one that is shared with others
	kind, style, column, number := "", 0, 0, 0
	var into *strings.Builder
	related, links := d.relations(part), false
	err := d.walk(part, xmlHandler{
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
			case "hyperlink":
				to := cmp.Or(related[e.get("id")], e.get("location"))
				if to == "" {
					break
				}
				if !links {
					d.block()
					links = true
					d.out = append(d.out, "Links:\n"...)
				}
				return false, d.add("- ", cellText(e.get("ref")), ": ", cellText(unreadable.Clip(to, 2000)), "\n")
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
					return w.err
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
	for _, target := range related {
		if err == nil && strings.Contains(target, "/comment") && path.Ext(target) == ".xml" && d.parts[target] != nil {
			err = d.sheetComments(target)
		}
	}
	return err
}

// sheetComments writes the comments on a sheet's cells, each with its cell and its author.
func (d *Document) sheetComments(part string) error {
	var authors []string
	var text strings.Builder
	who, cell, inText := 0, "", false
	d.block()
	d.out = append(d.out, "Comments:\n"...)
	return d.walk(part, xmlHandler{
		start: func(e *element) (bool, error) {
			switch e.name {
			case "comment":
				cell, who = e.get("ref"), atoi(e.get("authorId"))
				text.Reset()
			case "author":
				text.Reset()
			}
			inText = e.name == "t" || e.name == "author"
			return e.name == "rPh", nil
		},
		text: func(s []byte) error {
			if inText {
				text.Write(s)
			}
			return nil
		},
		end: func(name string) error {
			inText = false
			switch name {
			case "author":
				authors = append(authors, text.String())
			case "comment":
				author := ""
				if who >= 0 && who < len(authors) && authors[who] != "" {
					author = " (" + authors[who] + ")"
				}
				return d.add("- ", cellText(cell+author), ": ", cellText(text.String()), "\n")
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
