package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// cellStyle is how a notebook's author, or the program that saved it, lays out a cell. A gap is the white space before a thing; where
// it holds a newline, the thing has a line of its own.
type cellStyle struct {
	cellGap   string // before the first cell
	between   string // between a comma and the next cell
	arrayEnd  string // before the end of the list of cells
	memberGap string // before a member
	comma     string // between a comma and the next member, or the next line of source
	colon     string // from a key to its value
	cellEnd   string
	unit      string // of indentation
	list      bool   // sources are lists of lines
	order     []string
}

// usual is the order in which nbformat itself writes the keys of a cell.
var usual = []string{"cell_type", "execution_count", "id", "metadata", "outputs", "source"}

// styleFor looks at the first cell of the kind, else at the first cell, else at the notebook around them.
func (n *notebook) styleFor(kind string) cellStyle {
	model := -1
	for i, c := range n.cells {
		if len(c.members) > 1 && (c.kind == kind || model < 0) {
			if model = i; c.kind == kind {
				break
			}
		}
	}
	s := cellStyle{colon: ": ", comma: " ", list: true, order: usual}
	if model < 0 {
		return n.bareStyle(s)
	}
	c := n.cells[model]
	s.readMembers(n.b, c)
	if c.kind == kind {
		s.order = nil
		for _, m := range c.members {
			s.order = append(s.order, m.key)
		}
	}
	s.cellGap = blankBefore(n.b, n.cells[0].from)
	s.between = s.cellGap
	switch {
	case len(n.cells) > 1:
		s.between = blankBefore(n.b, n.cells[1].from)
	case !strings.Contains(s.cellGap, "\n"):
		s.between = s.comma
	}
	if m := n.member(model, "source"); m != nil {
		s.list = n.b[m.value.from] == '['
	}
	return s
}

// readMembers takes the layout inside a cell with two members or more.
func (s *cellStyle) readMembers(b []byte, c cellPlace) {
	s.memberGap, s.cellEnd = blankBefore(b, c.members[0].from), blankBefore(b, c.to-1)
	s.comma = blankBefore(b, c.members[1].from)
	m := c.members[0]
	s.colon = string(b[m.keyEnd:m.value.from])
	s.unit = strings.TrimPrefix(s.memberGap, s.cellEnd)
	if strings.Contains(s.unit, "\n") {
		s.unit = " "
	}
}

// bareStyle is for a notebook without cells: the gap before the key "cells" is one unit.
func (n *notebook) bareStyle(s cellStyle) cellStyle {
	i := strings.LastIndexByte(n.keyGap, '\n')
	if i < 0 {
		if colon := bytes.IndexByte(n.b, ':'); colon >= 0 && n.b[colon+1] != ' ' {
			s.colon, s.comma = ":", ""
		}
		s.between = s.comma
		return s
	}
	s.unit = n.keyGap[i+1:]
	s.arrayEnd = n.keyGap
	s.cellGap = n.keyGap + s.unit
	s.between, s.cellEnd = s.cellGap, s.cellGap
	s.memberGap = s.cellGap + s.unit
	s.comma = s.memberGap
	return s
}

func (n *notebook) newCell(s cellStyle, r *Result, e Edit) string {
	ascii := n.ascii()
	values := map[string]string{"cell_type": quoteJSON(e.CellType, ascii), "metadata": "{}"}
	if n.ids {
		values["id"] = quoteJSON(r.CellID, ascii)
	}
	if e.CellType == "code" {
		values["execution_count"], values["outputs"] = "null", "[]"
	}
	if s.list {
		values["source"] = s.listGaps().sourceList(splitSource(e.Source), ascii, nil)
	} else {
		values["source"] = quoteJSON(e.Source, ascii)
	}
	var keys []string
	for _, k := range append(slices.Clone(s.order), usual...) {
		if _, wanted := values[k]; wanted && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range keys {
		gap := s.memberGap
		if i > 0 {
			b.WriteByte(',')
			gap = s.comma
		}
		b.WriteString(gap + quoteJSON(k, ascii) + s.colon + values[k])
	}
	return b.String() + s.cellEnd + "}"
}

// listGaps is how a list of source lines is laid out.
type listGaps struct{ first, between, end string }

// listGaps follows from the members: on lines of their own when the members are.
func (s *cellStyle) listGaps() listGaps {
	if !strings.Contains(s.memberGap, "\n") {
		return listGaps{between: s.comma}
	}
	gap := s.memberGap + s.unit
	return listGaps{gap, gap, s.memberGap}
}

// sourceList writes a list of source lines. known gives the bytes of lines that were there before, which stay as they were.
func (g listGaps) sourceList(src []string, ascii bool, known map[string]string) string {
	if len(src) == 0 {
		return "[]"
	}
	var b strings.Builder
	b.WriteString("[" + g.first)
	for i, l := range src {
		if i > 0 {
			b.WriteString("," + g.between)
		}
		if raw, ok := known[l]; ok {
			b.WriteString(raw)
		} else {
			b.WriteString(quoteJSON(l, ascii))
		}
	}
	return b.String() + g.end + "]"
}

// sourceValue is a cell's new source in the form of its old one.
func (n *notebook) sourceValue(i int, src string) string {
	m := n.member(i, "source")
	if m != nil && n.b[m.value.from] == '"' {
		return quoteJSON(src, n.ascii())
	}
	s := cellStyle{comma: " "}
	if c := n.cells[i]; len(c.members) > 1 {
		s.readMembers(n.b, c)
	}
	gaps := s.listGaps()
	known := map[string]string{}
	if m != nil {
		old := jsonArray(n.b, m.value.from)
		for j, l := range old {
			raw := n.b[l.from:l.to]
			if text, err := jsonString(raw); err == nil {
				known[text] = string(raw)
			}
			switch gap := blankBefore(n.b, l.from); j {
			case 0:
				gaps.first, gaps.end = gap, blankBefore(n.b, m.value.to-1)
				if strings.Contains(gap, "\n") {
					gaps.between = gap
				}
			case 1:
				gaps.between = gap
			}
		}
	}
	return gaps.sourceList(splitSource(src), n.ascii(), known)
}

// source is a cell's text.
func (n *notebook) source(i int) (string, error) {
	m := n.member(i, "source")
	if m == nil {
		return "", nil
	}
	raw := n.b[m.value.from:m.value.to]
	if raw[0] == '"' {
		return jsonString(raw)
	}
	var parts []string
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", &NotNotebookError{"the source of the cell is neither text nor a list of lines"}
	}
	return strings.Join(parts, ""), nil
}

func (n *notebook) member(i int, key string) *member {
	for j := range n.cells[i].members {
		if n.cells[i].members[j].key == key {
			return &n.cells[i].members[j]
		}
	}
	return nil
}

// set changes a member of a cell, or adds it: where the alphabet puts it when the keys are sorted, else last.
func (n *notebook) set(i int, key, value string) error {
	if m := n.member(i, key); m != nil {
		return n.change(i, m.value.from, m.value.to, value)
	}
	c := n.cells[i]
	s := cellStyle{colon: ": ", comma: " "}
	switch len(c.members) {
	case 0:
		return n.change(i, c.from+1, c.from+1, quoteJSON(key, n.ascii())+": "+value)
	case 1:
	default:
		s.readMembers(n.b, c)
	}
	text := quoteJSON(key, n.ascii()) + s.colon + value
	sorted := slices.IsSortedFunc(c.members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	for _, m := range c.members {
		if sorted && m.key > key {
			return n.change(i, m.from, m.from, text+","+s.comma)
		}
	}
	last := c.members[len(c.members)-1].value.to
	return n.change(i, last, last, ","+s.comma+text)
}

// remove takes a member out of a cell, with its comma.
func (n *notebook) remove(i int, key string) error {
	members := n.cells[i].members
	for j, m := range members {
		switch {
		case m.key != key:
			continue
		case j > 0:
			return n.change(i, members[j-1].value.to, m.value.to, "")
		case len(members) > 1:
			return n.change(i, m.from, members[1].from, "")
		}
		return n.change(i, m.from, m.value.to, "")
	}
	return nil
}

func (n *notebook) splice(from, to int, text string) {
	n.b = slices.Concat(n.b[:from], []byte(text), n.b[to:])
}

// change splices within cell i and reads it anew, and no other: one of a hundred thousand is changed, several times. The cells
// behind it are no longer where n says.
func (n *notebook) change(i, from, to int, text string) error {
	c := &n.cells[i]
	n.splice(from, to, text)
	if c.to += len(text) - (to - from); !json.Valid(n.b[c.from:c.to]) {
		return errors.New("the changed cell is not valid JSON")
	}
	c.members, _ = jsonObject(n.b, c.from)
	return nil
}

// ascii says that the file writes all characters beyond ASCII as escapes.
func (n *notebook) ascii() bool {
	escaped := false
	for i := 0; i < len(n.b); i++ {
		switch {
		case n.b[i] >= 0x80:
			return false
		case n.b[i] == '\\' && i+5 < len(n.b):
			if i++; n.b[i] == 'u' && string(n.b[i+1:i+3]) != "00" {
				escaped = true
			} else if n.b[i] == 'u' && n.b[i+3] >= '8' {
				escaped = true
			}
		}
	}
	return escaped
}

// splitSource cuts a source into the lines that nbformat stores: each with its newline, the last without.
func splitSource(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
