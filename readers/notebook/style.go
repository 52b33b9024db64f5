package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// layout is how a notebook is laid out: with a line for each member and element, deeper by a unit in each object and list, or all on one line.
type layout struct {
	newline, unit string // empty where all is on one line
	comma, colon  string // behind the sign
}

// layout gives the layout of the notebook, by what stands before its key "cells": that is one unit deep, on a line of its own or not.
func (n *notebook) layout() layout {
	if at := strings.LastIndexByte(n.keyGap, '\n'); at >= 0 {
		l := layout{newline: "\n", unit: n.keyGap[at+1:], colon: ": "}
		if strings.HasSuffix(n.keyGap[:at], "\r") {
			l.newline = "\r\n"
		}
		return l
	}
	if colon := bytes.IndexByte(n.b, ':'); n.b[colon+1] == ' ' {
		return layout{comma: " ", colon: ": "}
	}
	return layout{colon: ":"}
}

// line begins a line that is so many units deep.
func (l layout) line(depth int) string {
	if l.newline == "" {
		return ""
	}
	return l.newline + strings.Repeat(l.unit, depth)
}

// between gives the text from one element of a list to the next, where they are depth units deep.
func (l layout) between(depth int) string { return "," + l.comma + l.line(depth) }

// list is an object or a list, which is so many units deep itself.
func (l layout) list(depth int, open, end string, items []string) string {
	if len(items) == 0 {
		return open + end
	}
	return open + l.line(depth+1) + strings.Join(items, l.between(depth+1)) + l.line(depth) + end
}

// How many units deep a cell and its members are.
const cellDepth, memberDepth = 2, 3

// newCell has its members in the order in which nbformat itself writes them.
func (n *notebook) newCell(r *Result, e Edit) string {
	l := n.layout()
	var members []string
	add := func(key, value string) { members = append(members, quoteJSON(key, false)+l.colon+value) }
	add("cell_type", quoteJSON(e.CellType, n.ascii()))
	if e.CellType == "code" {
		add("execution_count", "null")
	}
	if n.ids {
		add("id", quoteJSON(r.CellID, n.ascii()))
	}
	add("metadata", "{}")
	if e.CellType == "code" {
		add("outputs", "[]")
	}
	add("source", n.sourceValue(0, e.Source))
	return l.list(cellDepth, "{", "}", members)
}

// sourceValue is a source in the form of that of cell i, where there is one: a list of lines, or a text.
func (n *notebook) sourceValue(i int, src string) string {
	if i < len(n.cells) {
		if m := n.member(i, "source"); m != nil && n.b[m.value.from] == '"' {
			return quoteJSON(src, n.ascii())
		}
	}
	lines, ascii := splitSource(src), n.ascii()
	for i := range lines {
		lines[i] = quoteJSON(lines[i], ascii)
	}
	return n.layout().list(memberDepth, "[", "]", lines)
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
	l, c := n.layout(), n.cells[i]
	text := quoteJSON(key, n.ascii()) + l.colon + value
	if len(c.members) == 0 {
		return n.change(i, c.from, c.to, l.list(cellDepth, "{", "}", []string{text}))
	}
	sorted := slices.IsSortedFunc(c.members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	for _, m := range c.members {
		if sorted && m.key > key {
			return n.change(i, m.from, m.from, text+l.between(memberDepth))
		}
	}
	last := c.members[len(c.members)-1].value.to
	return n.change(i, last, last, l.between(memberDepth)+text)
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
