package notebook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
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
	for i := range unknown {
		raw.Cells[i].Unknown = true
	}
	b := &Book{Format: fmt.Sprintf("%d.%d", *raw.Format, raw.Minor), Language: raw.Meta.Language.Name, Cells: raw.Cells}
	if b.Language == "" {
		b.Language = raw.Meta.Kernel.Language
	}
	return b
}

// Plain removes terminal colours, which tracebacks are full of.
func Plain(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
	var b strings.Builder
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+2:]
		for len(s) > 0 && s[0] >= 0x20 && s[0] <= 0x3f {
			s = s[1:]
		}
		if len(s) > 0 {
			s = s[1:]
		}
	}
}

// Kinds of values in a notebook whose keys are looked at.
const (
	inOther = iota
	inRoot
	inCells
	inCell
	inOutputs
	inOutput
	inData
)

// The keys that nbformat 4 knows (nbformat.v4.schema.json).
var (
	rootKeys = []string{"cells", "metadata", "nbformat", "nbformat_minor"}
	cellKeys = []string{"id", "cell_type", "source", "metadata", "execution_count", "outputs", "attachments"}
)

// frame is an object or array that has begun.
type frame struct {
	kind   int
	object bool
	value  bool // of an object: its key has been read
	key    string
	keys   map[string]bool
	n      int // elements that have ended
}

// keysOf looks in b, which is valid JSON, for keys that encoding/json passes over in silence. ambiguous: a cell, or an object around it, has a key
// twice, or in two spellings that encoding/json takes for one, so that a value would hide another; or the notebook has a key that
// is shown nowhere. odd are the cells, from 0, with a key that is shown nowhere.
func keysOf(b []byte) (ambiguous bool, odd map[int]bool) {
	odd = map[int]bool{}
	var open []frame
	for i := 0; i < len(b); i++ {
		var top *frame
		if n := len(open); n > 0 {
			top = &open[n-1]
		}
		switch b[i] {
		case '{', '[':
			kind := inRoot
			if top != nil {
				kind = top.inside()
			}
			f := frame{kind: kind, object: b[i] == '{'}
			if f.object && kind != inOther {
				f.keys = map[string]bool{}
			}
			open = append(open, f)
		case '}', ']':
			open = open[:len(open)-1]
		case ':':
			top.value = true
		case ',':
			top.value = false
			top.n++
		case '"':
			from := i
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if top == nil || top.keys == nil || top.value {
				continue
			}
			var key string
			if json.Unmarshal(b[from:i+1], &key) != nil {
				return true, nil
			}
			top.key = key
			if key = foldedKey(key); top.kind == inData {
				key = top.key // a map: its keys are not folded
			}
			if top.keys[key] || top.kind == inRoot && !slices.Contains(rootKeys, top.key) {
				return true, nil
			}
			top.keys[key] = true
			if top.kind == inCell && !slices.Contains(cellKeys, top.key) {
				odd[open[len(open)-2].n] = true
			}
		}
	}
	return false, odd
}

// inside is the kind of a value that begins in f.
func (f *frame) inside() int {
	switch {
	case f.kind == inRoot && f.key == "cells":
		return inCells
	case f.kind == inCells:
		return inCell
	case f.kind == inCell && foldedKey(f.key) == foldedKey("outputs"):
		return inOutputs
	case f.kind == inOutputs:
		return inOutput
	case f.kind == inOutput && foldedKey(f.key) == foldedKey("data"):
		return inData
	}
	return inOther
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
