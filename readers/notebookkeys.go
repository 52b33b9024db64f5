package readers

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// Kinds of values in a notebook whose keys are looked at.
const (
	notebookOther = iota
	notebookRoot
	notebookCells
	notebookCell
	notebookOutputs
	notebookOutput
	notebookData
)

// The keys that nbformat 4 knows (nbformat.v4.schema.json).
var (
	rootKeys = []string{"cells", "metadata", "nbformat", "nbformat_minor"}
	cellKeys = []string{"id", "cell_type", "source", "metadata", "execution_count", "outputs", "attachments"}
)

// notebookFrame is an object or array that has begun.
type notebookFrame struct {
	kind   int
	object bool
	value  bool // of an object: its key has been read
	key    string
	keys   map[string]bool
	n      int // elements that have ended
}

// notebookKeys looks for what encoding/json passes over in silence. b is valid JSON. ambiguous: a cell or what leads to it has a key twice, or
// in two spellings that encoding/json takes for one, so that a value would hide another; or the notebook has a key that is shown nowhere.
// odd are the cells, from 0, with a key that is shown nowhere.
func notebookKeys(b []byte) (ambiguous bool, odd map[int]bool) {
	odd = map[int]bool{}
	var open []notebookFrame
	for i := 0; i < len(b); i++ {
		var top *notebookFrame
		if n := len(open); n > 0 {
			top = &open[n-1]
		}
		switch b[i] {
		case '{', '[':
			kind := notebookRoot
			if top != nil {
				kind = top.inside()
			}
			f := notebookFrame{kind: kind, object: b[i] == '{'}
			if f.object && kind != notebookOther {
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
			if key = foldedKey(key); top.kind == notebookData {
				key = top.key // a map: its keys are not folded
			}
			if top.keys[key] || top.kind == notebookRoot && !slices.Contains(rootKeys, top.key) {
				return true, nil
			}
			top.keys[key] = true
			if top.kind == notebookCell && !slices.Contains(cellKeys, top.key) {
				odd[open[len(open)-2].n] = true
			}
		}
	}
	return false, odd
}

// inside is the kind of a value that begins in f.
func (f *notebookFrame) inside() int {
	switch {
	case f.kind == notebookRoot && f.key == "cells":
		return notebookCells
	case f.kind == notebookCells:
		return notebookCell
	case f.kind == notebookCell && foldedKey(f.key) == foldedKey("outputs"):
		return notebookOutputs
	case f.kind == notebookOutputs:
		return notebookOutput
	case f.kind == notebookOutput && foldedKey(f.key) == foldedKey("data"):
		return notebookData
	}
	return notebookOther
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
