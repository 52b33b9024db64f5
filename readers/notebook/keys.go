package notebook

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

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

// keysOf looks for what encoding/json passes over in silence. b is valid JSON. ambiguous: a cell, or what leads to it, has a key
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
