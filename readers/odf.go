package readers

import (
	"fmt"
	"strings"
)

// opendocument writes content.xml of a text, a spreadsheet or a presentation.
func (d *document) opendocument() error {
	type table struct {
		rows, repeat int
		row          []string
		cell         strings.Builder
	}
	var paragraphs []*strings.Builder // they nest: a note's inside another
	var tables []*table
	level, list, slides, sheets := 0, 0, 0, 0
	return d.walk("content.xml", xmlHandler{
		start: func(e *element) (bool, error) {
			switch e.name {
			case "tracked-changes", "automatic-styles", "font-face-decls", "scripts", "note-citation", "forms", "shapes":
				return true, nil
			case "h", "p":
				if len(paragraphs) < 50 {
					paragraphs = append(paragraphs, &strings.Builder{})
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
			case "list":
				list++
			case "page":
				if e.space == "draw" {
					slides++
					d.block()
					return false, d.add(fmt.Sprintf("## Slide %d\n\n", slides))
				}
			case "table":
				if e.space != "table" {
					break
				}
				if len(tables) == 0 {
					d.block()
					if name := e.get("name"); name != "" && slides == 0 && len(paragraphs) == 0 && strings.HasSuffix(string(d.out), "\n\n") || sheets == 0 && name != "" {
						if err := d.add("## Table: ", name, "\n\n"); err != nil {
							return false, err
						}
					}
					sheets++
				}
				if len(tables) < 50 {
					tables = append(tables, &table{})
				}
			case "table-row":
				if n := len(tables); n > 0 {
					tables[n-1].row = tables[n-1].row[:0]
				}
			case "table-cell", "covered-table-cell":
				if n := len(tables); n > 0 {
					t := tables[n-1]
					t.cell.Reset()
					t.repeat = max(atoi(e.get("number-columns-repeated")), 1)
				}
			}
			return false, nil
		},
		text: func(s []byte) error {
			write(paragraphs, string(s))
			return nil
		},
		end: func(name string) error {
			switch name {
			case "note-body", "annotation":
				write(paragraphs, ")")
			case "list":
				list--
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
				case list > 0:
					return d.add(strings.Repeat("  ", min(list-1, 8)), "- ", s, "\n")
				default:
					d.block()
					return d.add(s, "\n")
				}
			case "table-cell", "covered-table-cell":
				if n := len(tables); n > 0 {
					t := tables[n-1]
					text := cellText(t.cell.String())
					shown := min(t.repeat, sheetColumns-len(t.row))
					for range shown {
						t.row = append(t.row, text)
					}
					if text != "" {
						d.cellsCut += min(t.repeat-shown, 1<<20)
					}
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
				switch {
				case len(t.row) == 0:
				case n > 1:
					tables[n-2].cell.WriteString(strings.Join(t.row, ", ") + "; ")
				default:
					t.rows++
					return d.tableRow(t.row, t.rows == 1)
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

// write adds to the innermost paragraph.
func write(paragraphs []*strings.Builder, s string) {
	if n := len(paragraphs); n > 0 {
		paragraphs[n-1].WriteString(s)
	}
}
