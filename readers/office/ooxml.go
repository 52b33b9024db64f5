package office

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"moltisfs/readers/unreadable"
)

// docx writes the body, then footnotes, endnotes and comments, then headers and footers.
func (d *Document) docx() error {
	w := d.wordStyles()
	if err := d.wordPart("word/document.xml", w); err != nil {
		return err
	}
	var margins []string
	for name := range d.parts {
		if strings.HasPrefix(name, "word/header") || strings.HasPrefix(name, "word/footer") {
			margins = append(margins, name)
		}
	}
	slices.Sort(margins)
	for _, extra := range []struct {
		title string
		parts []string
	}{
		{"Footnotes", []string{"word/footnotes.xml"}}, {"Endnotes", []string{"word/endnotes.xml"}}, {"Comments", []string{"word/comments.xml"}},
		{"Headers and footers", margins},
	} {
		if err := d.section(extra.title, extra.parts, func(part string) error { return d.wordPart(part, w) }); err != nil {
			return err
		}
	}
	return nil
}

// section writes parts below a heading, those with the same text once. Without text there is no heading either.
func (d *Document) section(title string, parts []string, write func(part string) error) error {
	d.block()
	begin := len(d.out)
	if err := d.add("## ", title, "\n\n"); err != nil {
		return err
	}
	seen := map[string]bool{"": true}
	for _, part := range parts {
		if d.parts[part] == nil {
			continue
		}
		from := len(d.out)
		if err := write(part); err != nil {
			return err
		}
		if text := strings.TrimSpace(string(d.out[min(from, len(d.out)):])); seen[text] {
			d.out = d.out[:min(from, len(d.out))]
		} else {
			seen[text] = true
		}
	}
	if len(seen) == 1 {
		d.out = d.out[:begin]
	}
	return nil
}

// wordStyles has the names of a docx's paragraph styles and the numbering of its lists.
type wordStyles struct {
	names  map[string]string  // of a style, by its id
	lists  map[string]wordNum // of a style
	kinds  map[string]string  // of the abstract list, by the number of a list
	levels map[string]*[9]wordLevel
	counts map[string]*[9]int // by abstract list
	anew   map[string]bool    // the list, by its number, does not go on counting where one like it ended
}

type wordNum struct {
	list  string // "" and "0": none
	level int
}

type wordLevel struct {
	format, text string
	start        int
}

func (d *Document) wordStyles() *wordStyles {
	w := &wordStyles{map[string]string{}, map[string]wordNum{}, map[string]string{}, map[string]*[9]wordLevel{}, map[string]*[9]int{}, map[string]bool{}}
	id, abstract, level := "", "", 0
	d.walk("word/styles.xml", xmlHandler{start: func(e *element) (bool, error) {
		n := w.lists[id]
		switch v := e.get("val"); e.name {
		case "style":
			id = e.get("styleId")
			return len(w.names) >= maxEntries, nil
		case "name":
			w.names[id] = v
		case "basedOn":
			if n.list == "" && w.lists[v].list != "" {
				w.lists[id] = w.lists[v]
			}
		case "numId":
			w.lists[id] = wordNum{v, n.level}
		case "ilvl":
			w.lists[id] = wordNum{n.list, min(max(atoi(v), 0), 8)}
		}
		return false, nil
	}})
	d.walk("word/numbering.xml", xmlHandler{start: func(e *element) (bool, error) {
		l := w.levels[abstract]
		switch v := e.get("val"); e.name {
		case "abstractNum":
			abstract = e.get("abstractNumId")
			w.levels[abstract] = &[9]wordLevel{}
			return len(w.levels) >= maxEntries, nil
		case "num":
			id, abstract = e.get("numId"), ""
		case "abstractNumId":
			w.kinds[id] = v
		case "startOverride":
			w.anew[id] = true
		case "lvl":
			level = min(max(atoi(e.get("ilvl")), 0), 8)
		case "start":
			if l != nil {
				l[level].start = atoi(v)
			}
		case "numFmt":
			if l != nil {
				l[level].format = v
			}
		case "lvlText":
			if l != nil {
				l[level].text = unreadable.Clip(v, 100)
			}
		}
		return false, nil
	}})
	return w
}

// mark counts the next paragraph of a list and gives what stands before it: "-", "2.", "1.3)", …
func (w *wordStyles) mark(n wordNum) string {
	abstract := w.kinds[n.list]
	levels := w.levels[abstract]
	if levels == nil || levels[n.level].format == "bullet" || levels[n.level].format == "" {
		return "-"
	}
	counts := w.counts[abstract]
	if counts == nil || w.anew[n.list] {
		delete(w.anew, n.list)
		counts = &[9]int{}
		for i := range counts {
			counts[i] = levels[i].start - 1
		}
		w.counts[abstract] = counts
	}
	counts[n.level]++
	for i := n.level + 1; i < 9; i++ {
		counts[i] = levels[i].start - 1
	}
	mark := levels[n.level].text
	for i, l := range levels {
		mark = strings.ReplaceAll(mark, "%"+strconv.Itoa(i+1), counted(max(counts[i], min(l.start, 1)), l.format))
	}
	return mark
}

// counted writes n as a list counts: in Roman numbers, letters or figures.
func counted(n int, format string) string {
	letter := ""
	switch {
	case strings.HasSuffix(format, "Letter") && n > 0 && n <= 26*20:
		letter = strings.Repeat(string(rune('a'+(n-1)%26)), (n-1)/26+1)
	case strings.HasSuffix(format, "Roman") && n > 0 && n < 4000:
		for i, value := range []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1} {
			for ; n >= value; n -= value {
				letter += []string{"m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"}[i]
			}
		}
	case format == "none":
		return ""
	case format == "decimalZero":
		return fmt.Sprintf("%02d", n)
	default:
		return strconv.Itoa(n)
	}
	if strings.HasPrefix(format, "upper") {
		return strings.ToUpper(letter)
	}
	return letter
}

// wordTable is a table being read; tables nest.
type wordTable struct {
	rows int
	row  []string
	cell strings.Builder
}

func (d *Document) wordPart(name string, styles *wordStyles) error {
	var p bytes.Buffer // the paragraph
	style := ""
	var list wordNum
	related, link, linkFrom := d.relations(name), "", 0
	inText, inProps, vanish := false, false, false
	var tables []*wordTable
	note := ""
	return d.walk(name, xmlHandler{
		start: func(e *element) (bool, error) {
			switch e.name {
			case "Fallback", "del", "moveFrom", "instrText", "delText", "pPrChange": // drawn twice, or struck out
				return true, nil
			case "p":
				if e.space == "w" {
					p.Reset()
					style, list, link = "", wordNum{}, ""
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
				list = styles.lists[style]
				if name := styles.names[style]; headingLevel(name) > 0 {
					style = name // the id may be in any language
				}
			case "outlineLvl":
				if style == "" {
					style = fmt.Sprintf("heading%d", atoi(e.get("val"))+1)
				}
			case "numId":
				list.list = e.get("val")
			case "ilvl":
				list.level = min(max(atoi(e.get("val")), 0), 8)
			case "hyperlink":
				link, linkFrom = related[e.get("id")], p.Len()
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
			case "hyperlink":
				linked(&p, linkFrom, link)
				link = ""
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
				mark := ""
				if list.list != "" && list.list != "0" {
					mark = styles.mark(list)
				}
				switch h := headingLevel(style); {
				case h > 0:
					d.block()
					return d.add(heading(h), strings.TrimLeft(strings.TrimPrefix(mark, "-")+" ", " "), strings.ReplaceAll(s, "\n", " "), "\n\n")
				case mark != "":
					return d.add(strings.Repeat("  ", list.level), mark, " ", s, "\n")
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

// linked writes the target of a link behind its text, which begins at from.
func linked(p *bytes.Buffer, from int, target string) {
	if text := strings.TrimSpace(string(p.Bytes()[min(from, p.Len()):])); target != "" && text != "" && text != target {
		p.Truncate(from)
		p.WriteString("[" + text + "](" + unreadable.Clip(target, 2000) + ")")
	}
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
	var p bytes.Buffer
	var cell strings.Builder
	var row []string
	title, number, inText, inTable, rows := false, false, false, false, 0
	related, link, linkFrom := d.relations(name), "", 0
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
			case "r":
				link, linkFrom = "", p.Len()
			case "hlinkClick":
				link = related[e.get("id")]
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
			case "r":
				linked(&p, linkFrom, link)
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
