package notebook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"moltisfs/internal/text"
)

// Book is a notebook as it is read.
type Book struct {
	Format   string // "4.5"
	Language string
	Cells    []Cell
}

// Cell is one cell as the file has it.
type Cell struct {
	ID      string // empty before nbformat 4.5
	Type    string
	Source  Text
	Count   *int
	Outputs []json.RawMessage // each an Output, or damaged; parts of the file
	// Attachments are by name. A value that is no object counts as none.
	Attachments Attachments
	// Unknown says that the cell has a key that nbformat does not know, so that Book does not hold all of it.
	Unknown bool
}

// Output is one result of running a cell.
type Output struct {
	Type      string                     `json:"output_type"`
	Text      Text                       `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	Name      string                     `json:"ename"`
	Value     string                     `json:"evalue"`
	Traceback []string                   `json:"traceback"`
}

// Text is a string, which the file may have as a list of strings to be joined.
type Text string

func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '[' {
		var parts []string
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		s = strings.Join(parts, "")
	} else if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*t = Text(s)
	return nil
}

// Attachments are the files in a text cell, by name.
type Attachments map[string]json.RawMessage

func (a *Attachments) UnmarshalJSON(b []byte) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) == nil {
		*a = m
	}
	return nil
}

// Parse reads a notebook of nbformat 4 or later that has cells. It returns nil for any other file, and for one in which a value
// hides another: shown as cells, that one would stay unseen. Of the outputs, which are most of a long notebook, it only says where they are.
func Parse(file []byte) *Book {
	text := bytes.TrimPrefix(file, []byte("\xef\xbb\xbf"))
	if !json.Valid(text) {
		return nil
	}
	w := walk{b: text}
	book := w.book()
	if w.bad || len(book.Cells) == 0 {
		return nil
	}
	return book
}

// Plain removes terminal colours, which tracebacks are full of.
func Plain(s string) string { return string(text.WithoutCodes([]byte(s))) }

// cellKeys lists the members of a cell in nbformat 4 (nbformat.v4.schema.json).
var cellKeys = []string{"id", "cell_type", "source", "metadata", "execution_count", "outputs", "attachments"}

// walk goes through a valid JSON text as encoding/json would decode it. bad: a value is of another type than nbformat has; or a cell, an output, or an
// object around it, has a key twice, or in two spellings that encoding/json takes for one, so that a value would hide another; or the notebook has a key
// that is shown nowhere.
type walk struct {
	b   []byte
	bad bool
}

// members gives the members of the object at an offset, under their folded keys; none if it is no object.
func (w *walk) members(at int, fold func(string) string) (found []member) {
	if w.b[at] != '{' {
		return nil
	}
	found, _ = jsonObject(w.b, at)
	seen := make(map[string]bool, len(found))
	for i := range found {
		key := fold(found[i].key)
		w.bad = w.bad || seen[key]
		seen[key] = true
	}
	return found
}

func (w *walk) decode(s span, into any) {
	w.bad = w.bad || json.Unmarshal(w.b[s.from:s.to], into) != nil
}

func (w *walk) book() *Book {
	book := &Book{}
	var format *int
	minor := 0
	var meta struct {
		Kernel struct {
			Language string `json:"language"`
		} `json:"kernelspec"`
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
	}
	for _, m := range w.members(jsonSkipBlank(w.b, 0), foldedKey) {
		switch m.key {
		case "nbformat":
			w.decode(m.value, &format)
		case "nbformat_minor":
			w.decode(m.value, &minor)
		case "metadata":
			w.decode(m.value, &meta)
		case "cells":
			for _, cell := range jsonArray(w.b, m.value.from) {
				book.Cells = append(book.Cells, w.cell(cell.from))
			}
		default:
			w.bad = true
		}
	}
	if format == nil || *format < 4 {
		w.bad = true
		return book
	}
	book.Format = fmt.Sprintf("%d.%d", *format, minor)
	book.Language = cmp.Or(meta.Language.Name, meta.Kernel.Language)
	return book
}

func (w *walk) cell(at int) (c Cell) {
	w.bad = w.bad || w.b[at] != '{'
	for _, m := range w.members(at, foldedKey) {
		switch known := foldedKey(m.key); known {
		case foldedKey("id"):
			w.decode(m.value, &c.ID)
		case foldedKey("cell_type"):
			w.decode(m.value, &c.Type)
		case foldedKey("source"):
			w.decode(m.value, &c.Source)
		case foldedKey("execution_count"):
			w.decode(m.value, &c.Count)
		case foldedKey("attachments"):
			w.decode(m.value, &c.Attachments)
		case foldedKey("outputs"):
			w.bad = w.bad || w.b[m.value.from] != '[' && w.b[m.value.from] != 'n'
			for _, output := range jsonArray(w.b, m.value.from) {
				c.Outputs = append(c.Outputs, w.b[output.from:output.to])
				for _, m := range w.members(output.from, foldedKey) {
					if foldedKey(m.key) == foldedKey("data") {
						w.members(m.value.from, func(key string) string { return key }) // a map: its keys are not folded
					}
				}
			}
		}
		c.Unknown = c.Unknown || !slices.Contains(cellKeys, m.key)
	}
	return c
}

// foldedKey is the same for all spellings that encoding/json takes for one name of a field.
func foldedKey(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, s)
}
