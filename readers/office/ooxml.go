package office

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// docx writes the body, then footnotes, endnotes and comments.
func (d *Document) docx() error {
	if err := d.wordPart("word/document.xml"); err != nil {
		return err
	}
	for _, extra := range []struct{ part, title string }{
		{"word/footnotes.xml", "Footnotes"}, {"word/endnotes.xml", "Endnotes"}, {"word/comments.xml", "Comments"},
	} {
		if d.parts[extra.part] == nil {
			continue
		}
		d.block()
		at := len(d.out)
		if err := d.add("## ", extra.title, "\n\n"); err != nil {
			return err
		}
		from := len(d.out)
		if err := d.wordPart(extra.part); err != nil {
			return err
		}
		if len(strings.TrimSpace(string(d.out[from:]))) == 0 {
			d.out = d.out[:at]
		}
	}
	return nil
}

// wordTable is a table being read; tables nest.
type wordTable struct {
	rows int
	row  []string
	cell strings.Builder
}

func (d *Document) wordPart(name string) error {
	var p strings.Builder // the paragraph
	style, list, level := "", false, 0
	inText, inProps, vanish := false, false, false
	var tables []*wordTable
	note := ""
	return d.walk(name, xmlHandler{
		start: func(e *element) (bool, error) {
			switch e.name {
			case "Fallback", "del", "moveFrom", "instrText", "delText": // drawn twice, or struck out
				return true, nil
			case "p":
				if e.space == "w" {
					p.Reset()
					style, list, level = "", false, 0
				}
			case "pPr":
				inProps = true
			case "r":
				vanish = false
			case "vanish":
				v := e.get("val")
				vanish = !inProps && v != "0" && v != "false" && v != "off" // in a paragraph's properties it is about its mark
			case "pStyle":
				style = e.get("val")
			case "outlineLvl":
				if style == "" {
					style = fmt.Sprintf("heading%d", atoi(e.get("val"))+1)
				}
			case "numPr":
				list = true
			case "ilvl":
				level = min(atoi(e.get("val")), 8)
			case "t":
				inText = true
			case "tab":
				if !inProps {
					p.WriteByte('\t')
				}
			case "br", "cr":
				p.WriteByte('\n')
			case "noBreakHyphen":
				p.WriteByte('-')
			case "footnoteReference", "endnoteReference":
				fmt.Fprintf(&p, "[^%s]", e.get("id"))
			case "footnote", "endnote":
				if t := e.get("type"); t == "separator" || t == "continuationSeparator" {
					return true, nil
				}
				note = "[^" + e.get("id") + "]: "
			case "comment":
				note = e.get("author") + ": "
			case "tbl":
				if len(tables) < 50 {
					if len(tables) == 0 {
						d.block()
					}
					tables = append(tables, &wordTable{})
				}
			case "tr":
				if n := len(tables); n > 0 {
					tables[n-1].row = tables[n-1].row[:0]
				}
			case "tc":
				if n := len(tables); n > 0 {
					tables[n-1].cell.Reset()
				}
			}
			return false, nil
		},
		skipped: func(in string, s []byte) {
			if in == "delText" {
				d.hidden.deleted += utf8.RuneCount(s)
			}
		},
		text: func(s []byte) error {
			if inText {
				p.Write(s)
				if vanish {
					d.hidden.vanished += utf8.RuneCount(s)
				}
			}
			return nil
		},
		end: func(name string) error {
			switch name {
			case "r":
				vanish = false
			case "t":
				inText = false
			case "pPr":
				inProps = false
			case "p":
				s := strings.TrimRight(p.String(), " \t\n")
				p.Reset()
				if n := len(tables); n > 0 {
					tables[n-1].cell.WriteString(s + " ")
					return nil
				}
				if s == "" {
					return nil
				}
				s, note = note+s, ""
				switch h := headingLevel(style); {
				case h > 0:
					d.block()
					return d.add(heading(h), strings.ReplaceAll(s, "\n", " "), "\n\n")
				case list:
					return d.add(strings.Repeat("  ", level), "- ", s, "\n")
				}
				d.block()
				return d.add(s, "\n")
			case "tc":
				if n := len(tables); n > 0 {
					tables[n-1].row = append(tables[n-1].row, cellText(tables[n-1].cell.String()))
				}
			case "tr":
				switch n := len(tables); {
				case n == 1:
					tables[0].rows++
					return d.tableRow(tables[0].row, tables[0].rows == 1)
				case n > 1: // a table in a cell becomes the cell's text
					tables[n-2].cell.WriteString(strings.Join(tables[n-1].row, ", ") + "; ")
				}
			case "tbl":
				if len(tables) > 0 {
					tables = tables[:len(tables)-1]
				}
			}
			return nil
		},
	})
}

// headingLevel reads a paragraph style's name. Word keeps the English ids in every language, but not every writer is Word.
func headingLevel(style string) int {
	s := strings.ToLower(strings.ReplaceAll(style, " ", ""))
	if s == "title" {
		return 1
	}
	for _, p := range []string{"heading", "berschrift", "überschrift", "titre"} {
		if rest, ok := strings.CutPrefix(s, p); ok && len(rest) > 0 && rest[0] >= '1' && rest[0] <= '9' {
			return int(rest[0] - '0')
		}
	}
	return 0
}

// pptx writes the slides in the order of the presentation, each with its notes.
func (d *Document) pptx() error {
	relations := d.relations("ppt/presentation.xml")
	var slides []string
	err := d.walk("ppt/presentation.xml", xmlHandler{start: func(e *element) (bool, error) {
		if e.name == "sldId" {
			for _, a := range e.attr {
				if a.Name.Local == "id" && a.Name.Space == "r" && relations[a.Value] != "" {
					slides = append(slides, relations[a.Value])
				}
			}
		}
		return false, nil
	}})
	if err != nil {
		return err
	}
	for i, slide := range slides {
		if d.parts[slide] == nil {
			continue
		}
		d.block()
		if err := d.add(fmt.Sprintf("## Slide %d%s\n\n", i+1, d.hiddenSlide(slide))); err != nil {
			return err
		}
		if err := d.drawing(slide, ""); err != nil {
			return err
		}
		for _, target := range d.relations(slide) {
			if strings.Contains(target, "notesSlides/") && d.parts[target] != nil {
				d.block()
				if err := d.drawing(target, "Notes: "); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hiddenSlide is a mark for the heading of a slide that is left out when the others are shown.
func (d *Document) hiddenSlide(slide string) (mark string) {
	_ = d.walk(slide, xmlHandler{start: func(e *element) (bool, error) { // an error comes again when its text is read
		if show := e.get("show"); e.name == "sld" && (show == "0" || show == "false") {
			mark = " (hidden)"
		}
		return false, errEnd // the first element is enough
	}})
	return mark
}

// drawing writes the paragraphs and tables of a slide.
func (d *Document) drawing(name, prefix string) error {
	var p, cell strings.Builder
	var row []string
	title, number, inText, inTable, rows := false, false, false, false, 0
	return d.walk(name, xmlHandler{
		start: func(e *element) (bool, error) {
			switch e.name {
			case "Fallback":
				return true, nil
			case "sp":
				title, number = false, false
			case "ph":
				t := e.get("type")
				title = t == "title" || t == "ctrTitle"
				number = t == "sldNum" || t == "dt" || t == "ftr"
			case "t":
				inText = e.space == "a"
			case "br":
				p.WriteByte('\n')
			case "tbl":
				d.block()
				inTable, rows = true, 0
			case "tr":
				row = nil
			case "tc":
				cell.Reset()
			}
			return false, nil
		},
		text: func(s []byte) error {
			if inText && !number {
				p.Write(s)
			}
			return nil
		},
		end: func(name string) error {
			switch name {
			case "t":
				inText = false
			case "p":
				s := strings.TrimSpace(p.String())
				p.Reset()
				switch {
				case inTable:
					cell.WriteString(s + " ")
				case s == "":
				case title:
					return d.add("### ", strings.ReplaceAll(s, "\n", " "), "\n\n")
				default:
					s, prefix = prefix+s, ""
					return d.add(s, "\n")
				}
			case "tc":
				row = append(row, cellText(cell.String()))
			case "tr":
				if inTable {
					rows++
					return d.tableRow(row, rows == 1)
				}
			case "tbl":
				inTable = false
				return d.add("\n")
			}
			return nil
		},
	})
}
