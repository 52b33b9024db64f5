package notebook

import (
	"bytes"
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
	ID      string            `json:"id"` // empty before nbformat 4.5
	Type    string            `json:"cell_type"`
	Source  Text              `json:"source"`
	Count   *int              `json:"execution_count"`
	Outputs []json.RawMessage `json:"outputs"` // each an Output, or damaged
	// Attachments are by name. A value that is no object counts as none.
	Attachments Attachments `json:"attachments"`
	// Unknown says that the cell has a key that nbformat does not know, so that Book does not hold all of it.
	Unknown bool `json:"-"`
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
// hides another: shown as cells, that one would stay unseen.
func Parse(file []byte) *Book {
	var raw struct {
		Format *int `json:"nbformat"`
		Minor  int  `json:"nbformat_minor"`
		Meta   struct {
			Kernel struct {
				Language string `json:"language"`
			} `json:"kernelspec"`
			Language struct {
				Name string `json:"name"`
			} `json:"language_info"`
		} `json:"metadata"`
		Cells []Cell `json:"cells"`
	}
	text := bytes.TrimPrefix(file, []byte("\xef\xbb\xbf"))
	if err := json.Unmarshal(text, &raw); err != nil || raw.Format == nil || *raw.Format < 4 || len(raw.Cells) == 0 {
		return nil
	}
	ambiguous, unknown := keysOf(text)
	if ambiguous {
		return nil
	}
	for i, is := range unknown {
		raw.Cells[i].Unknown = is
	}
	b := &Book{Format: fmt.Sprintf("%d.%d", *raw.Format, raw.Minor), Language: raw.Meta.Language.Name, Cells: raw.Cells}
	if b.Language == "" {
		b.Language = raw.Meta.Kernel.Language
	}
	return b
}

// Plain removes terminal colours, which tracebacks are full of.
func Plain(s string) string { return string(text.WithoutCodes([]byte(s))) }

// The keys that nbformat 4 knows (nbformat.v4.schema.json).
var (
	rootKeys = []string{"cells", "metadata", "nbformat", "nbformat_minor"}
	cellKeys = []string{"id", "cell_type", "source", "metadata", "execution_count", "outputs", "attachments"}
)

// keysOf looks in b, a valid JSON object, for keys that encoding/json passes over in silence. ambiguous: a cell, an output, or an object around
// it, has a key twice, or in two spellings that encoding/json takes for one, so that a value would hide another; or the notebook has a key
// that is shown nowhere. odd are the cells, from 0, with a key that is shown nowhere.
func keysOf(b []byte) (ambiguous bool, odd map[int]bool) {
	odd = map[int]bool{}
	// members gives the members of the object at an offset; none if it is no object.
	members := func(at int, fold func(string) string) (found []member) {
		if b[at] != '{' {
			return nil
		}
		found, _ = jsonObject(b, at)
		seen := map[string]bool{}
		for _, m := range found {
			key := fold(m.key)
			ambiguous = ambiguous || seen[key]
			seen[key] = true
		}
		return found
	}
	asIs := func(key string) string { return key }
	for _, m := range members(jsonSkipBlank(b, 0), foldedKey) {
		if !slices.Contains(rootKeys, m.key) {
			return true, nil
		}
		if m.key != "cells" {
			continue
		}
		for i, cell := range jsonArray(b, m.value.from) {
			for _, m := range members(cell.from, foldedKey) {
				odd[i] = odd[i] || !slices.Contains(cellKeys, m.key)
				if foldedKey(m.key) != foldedKey("outputs") {
					continue
				}
				for _, output := range jsonArray(b, m.value.from) {
					for _, m := range members(output.from, foldedKey) {
						if foldedKey(m.key) == foldedKey("data") {
							members(m.value.from, asIs) // a map: its keys are not folded
						}
					}
				}
			}
		}
	}
	return ambiguous, odd
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
