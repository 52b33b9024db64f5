package office

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"moltisfs/readers/unreadable"
)

// sheetRows is how often a repeated row of a spreadsheet is written at the most.
const sheetRows = 1000

// opendocument writes content.xml of a text, a spreadsheet or a presentation, and headers and footers of a text.
func (d *Document) opendocument() error {
	manifest, _ := d.part("META-INF/manifest.xml", 8<<20)
	if d.parts["encrypted-package"] != nil || bytes.Contains(manifest, []byte("encryption-data")) {
		return &unreadable.Encrypted{What: "document"}
	}
	numbered := d.numberedLists()
	if err := d.openPart("content.xml", numbered); err != nil || d.Format != "odt" {
		return err
	}
	return d.section("Headers and footers", []string{"styles.xml"}, func(part string) error { return d.openPart(part, numbered) })
}

// numberedLists are the styles of lists that count, by name: for each level the format of its numbers, empty where there are none.
func (d *Document) numberedLists() map[string]*[10]string {
	lists := map[string]*[10]string{}
	for _, part := range []string{"styles.xml", "content.xml"} {
		name := ""
		d.walk(part, xmlHandler{start: func(e *element) (bool, error) {
			switch e.name {
			case "list-style":
				if name = e.get("name"); len(lists) < maxEntries {
					lists[name] = &[10]string{}
				}
			case "list-level-style-number":
				if l := lists[name]; l != nil {
					l[min(max(atoi(e.get("level")), 1), 10)-1] = e.get("num-format")
				}
			case "body":
				return false, errEnd
			}
			return false, nil
		}})
	}
	return lists
}

// openList is a list around the paragraph that is read.
type openList struct {
	style *[10]string
	count int
	mark  bool // the next paragraph is the first of its item
}

func (d *Document) openPart(part string, numbered map[string]*[10]string) error {
	type table struct {
		rows, repeat, again, column int
		row, far                    []string // far: cells beyond sheetColumns
		cell                        strings.Builder
		mark                        string   // of a hidden row
		columns                     int      // declared so far
		hidden                      []string // columns
	}
	hidden := map[string]bool{} // names of styles
	inStyles, style := false, ""
	tracked := false  // the last element holds deleted text
	var unseen []bool // one for each open element with text: it or one around it is hidden
	mark := func(e *element) string {
		if hidden[e.get("style-name")] {
			return " (hidden)"
		}
		return ""
	}
	var paragraphs []*bytes.Buffer // they nest: a note's inside another
	var lists []openList
	link, linkFrom := "", 0
	var tables []*table
	innermost := func() *table {
		if len(tables) == 0 {
			return nil
		}
		return tables[len(tables)-1]
	}
	level, slides, sheets := 0, 0, 0
	return d.walk(part, xmlHandler{
		start: func(e *element) (bool, error) {
			switch {
			case e.name == "automatic-styles":
				inStyles = true
			case e.name == "style" && inStyles:
				style = e.get("name")
			case inStyles:
				if e.name == "text-properties" && e.get("display") == "none" || e.name == "table-properties" && e.get("display") == "false" ||
					e.name == "section-properties" && e.get("display") == "none" || e.name == "drawing-page-properties" && e.get("visibility") == "hidden" {
					hidden[style] = true
				}
			}
			if inStyles {
				return false, nil
			}
			if hides(e.name) {
				unseen = append(unseen, len(unseen) > 0 && unseen[len(unseen)-1] || hidden[e.get("style-name")] || e.get("is-hidden") == "true" || e.name == "section" && e.get("display") == "none")
			}
			tracked = e.name == "tracked-changes"
			switch e.name {
			case "tracked-changes", "font-face-decls", "scripts", "note-citation", "forms", "shapes":
				return true, nil
			case "h", "p":
				if len(paragraphs) < 50 {
					paragraphs = append(paragraphs, &bytes.Buffer{})
				}
				level = 0
				if e.name == "h" {
					level = max(atoi(e.get("outline-level")), 1)
				}
			case "s":
				write(paragraphs, strings.Repeat(" ", min(max(atoi(e.get("c")), 1), 100)))
			case "tab":
				write(paragraphs, "\t")
			case "line-break":
				write(paragraphs, "\n")
			case "note-body":
				write(paragraphs, " (note: ")
			case "annotation":
				write(paragraphs, " (comment: ")
			case "a":
				if link = e.get("href"); len(paragraphs) > 0 {
					linkFrom = paragraphs[len(paragraphs)-1].Len()
				}
			case "list":
				l := openList{style: numbered[e.get("style-name")]}
				if n := len(lists); l.style == nil && n > 0 {
					l.style = lists[n-1].style
				}
				if len(lists) < maxDepth {
					lists = append(lists, l)
				}
			case "list-item":
				if n := len(lists); n > 0 {
					lists[n-1].mark = true
					lists[n-1].count = cmp.Or(atoi(e.get("start-value")), lists[n-1].count+1)
				}
			case "page":
				if e.space == "draw" {
					slides++
					d.block()
					return false, d.add(fmt.Sprintf("## Slide %d%s\n\n", slides, mark(e)))
				}
			case "table":
				if e.space != "table" {
					break
				}
				if len(tables) == 0 && d.Format == "ods" && !d.wants(e.get("name")) {
					return true, nil
				}
				if len(tables) == 0 {
					d.block()
					if name := e.get("name"); name != "" && slides == 0 && len(paragraphs) == 0 && strings.HasSuffix(string(d.out), "\n\n") || sheets == 0 && name != "" {
						kind := map[bool]string{true: "Sheet", false: "Table"}[d.Format == "ods"]
						if err := d.add("## ", kind, ": ", name, mark(e), "\n\n"); err != nil {
							return false, err
						}
					}
					sheets++
				}
				if len(tables) < 50 {
					tables = append(tables, &table{})
				}
			case "table-column":
				if t := innermost(); t != nil {
					from := t.columns + 1
					t.columns += max(atoi(e.get("number-columns-repeated")), 1)
					if e.get("visibility") == "collapse" && len(t.hidden) < 1000 {
						t.hidden = append(t.hidden, columnSpan(from, t.columns))
					}
				}
			case "table-row":
				if t := innermost(); t != nil {
					t.row, t.far, t.column, t.mark = t.row[:0], t.far[:0], 0, ""
					t.again = max(atoi(e.get("number-rows-repeated")), 1)
					if v := e.get("visibility"); v == "collapse" || v == "filter" {
						t.mark = "(hidden) "
					}
				}
			case "table-cell", "covered-table-cell":
				if t := innermost(); t != nil {
					t.cell.Reset()
					t.repeat = max(atoi(e.get("number-columns-repeated")), 1)
				}
			}
			return false, nil
		},
		skipped: func(in string, s []byte) {
			if tracked && (in == "p" || in == "h" || in == "span" || in == "a") {
				d.hidden.deleted += utf8.RuneCount(s)
			}
		},
		text: func(s []byte) error {
			if len(unseen) > 0 && unseen[len(unseen)-1] && len(paragraphs) > 0 {
				d.hidden.vanished += utf8.RuneCount(s)
			}
			write(paragraphs, string(s))
			return nil
		},
		end: func(name string) error {
			if inStyles = inStyles && name != "automatic-styles"; inStyles {
				return nil
			}
			if hides(name) && len(unseen) > 0 {
				unseen = unseen[:len(unseen)-1]
			}
			switch name {
			case "note-body", "annotation":
				write(paragraphs, ")")
			case "a":
				if n := len(paragraphs); n > 0 {
					linked(paragraphs[n-1], linkFrom, link)
				}
				link = ""
			case "list":
				lists = lists[:max(len(lists)-1, 0)]
			case "h", "p":
				n := len(paragraphs)
				if n == 0 {
					return nil
				}
				s := strings.TrimRight(paragraphs[n-1].String(), " \n\t")
				paragraphs = paragraphs[:n-1]
				switch {
				case n > 1:
					paragraphs[n-2].WriteString(s)
				case len(tables) > 0:
					tables[len(tables)-1].cell.WriteString(s + " ")
				case s == "":
				case level > 0:
					d.block()
					err := d.add(heading(level), strings.ReplaceAll(s, "\n", " "), "\n\n")
					level = 0
					return err
				case len(lists) > 0:
					l := &lists[len(lists)-1]
					mark, depth := "  ", min(len(lists)-1, 8)
					if l.mark {
						mark = "- "
						if l.style != nil && l.style[depth] != "" {
							mark = counted(l.count, map[string]string{"a": "Letter", "A": "upperLetter", "i": "Roman", "I": "upperRoman"}[l.style[depth]]) + ". "
						}
					}
					l.mark = false
					return d.add(strings.Repeat("  ", depth), mark, s, "\n")
				default:
					d.block()
					return d.add(s, "\n")
				}
			case "table-cell", "covered-table-cell":
				if t := innermost(); t != nil {
					text := cellText(t.cell.String())
					shown := min(t.repeat, sheetColumns-len(t.row))
					for range shown {
						t.row = append(t.row, text)
					}
					if text != "" && t.repeat > shown {
						t.far = append(t.far, columnSpan(t.column+shown+1, t.column+t.repeat)+": "+text)
					}
					t.column += t.repeat
				}
			case "table-row":
				n := len(tables)
				if n == 0 {
					return nil
				}
				t := tables[n-1]
				for len(t.row) > 0 && t.row[len(t.row)-1] == "" {
					t.row = t.row[:len(t.row)-1]
				}
				t.row = append(t.row, t.far...)
				switch {
				case len(t.row) == 0:
				case n > 1:
					tables[n-2].cell.WriteString(strings.Join(t.row, ", ") + "; ")
				default:
					if len(t.hidden) > 0 && t.rows == 0 {
						if err := d.add("Hidden columns: ", strings.Join(t.hidden, ", "), "\n\n"); err != nil {
							return err
						}
					}
					t.row[0] = t.mark + t.row[0]
					for range min(t.again, sheetRows) {
						t.rows++
						if err := d.tableRow(t.row, t.rows == 1); err != nil {
							return err
						}
					}
					if more := t.again - sheetRows; more > 0 {
						return d.tableRow([]string{fmt.Sprintf("(%s more like the last)", unreadable.Plural(more, "row"))}, false)
					}
				}
			case "table":
				if len(tables) > 0 {
					tables = tables[:len(tables)-1]
				}
			}
			return nil
		},
	})
}

// hides says that an OpenDocument element of that name can hide the text in it.
func hides(name string) bool {
	switch name {
	case "h", "p", "span", "section", "hidden-text", "hidden-paragraph":
		return true
	}
	return false
}

// write adds s to the innermost paragraph.
func write(paragraphs []*bytes.Buffer, s string) {
	if n := len(paragraphs); n > 0 {
		paragraphs[n-1].WriteString(s)
	}
}
