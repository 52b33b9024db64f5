// Package notebook reads Jupyter notebooks and changes one of their cells. It is pure: bytes in, bytes and a report out. A change
// leaves every byte outside of the changed values as it is. All functions are safe for concurrent use.
package notebook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Edit is one change to the cells of a Jupyter notebook (nbformat 4).
type Edit struct {
	Mode string // "replace" (also ""), "insert" or "delete"
	// CellID is the cell's id as Read shows it: its own, or "cell-N" (from 0) where it has none. Insert puts the new cell after it, or
	// first when it is empty.
	CellID   string
	CellType string // "code", "markdown" or "raw"; "" keeps the type. Insert needs it
	Source   string // of the cell afterwards; delete ignores it
}

// Result is a notebook after an edit.
type Result struct {
	Content        []byte
	CellID         string // of the cell that was changed, made or removed
	CellType       string
	Cell           int // its position, from 1
	Cells          int // how many there are now
	OutputsCleared int
	// AttachmentsRemoved are images of a text cell that became a code cell, which must have none.
	AttachmentsRemoved int
	// FirstLine and LastLine are the lines of the content, from 1, on which the source of the replaced or deleted cell stood.
	FirstLine, LastLine int
}

// NotNotebookError says why the text can't be edited as a notebook.
type NotNotebookError struct{ Why string }

func (e *NotNotebookError) Error() string { return "not a notebook that can be edited: " + e.Why }

// ErrSource refuses a source, or a type, that is not UTF-8.
var ErrSource = errors.New("the source or the type is not valid UTF-8")

// NoCellError says that no single cell has the id.
type NoCellError struct {
	ID      string
	Count   int      // cells that have it: 0, or more than one in a damaged notebook
	Cells   []string // the ids there are, the first 50
	Nearest string   // the one most likely meant; may be empty
}

func (e *NoCellError) Error() string {
	if e.Count > 1 {
		return fmt.Sprintf("%d cells have the id %q", e.Count, e.ID)
	}
	return fmt.Sprintf("no cell has the id %q", e.ID)
}

// Apply changes one cell. All bytes outside of the changed values stay as they are: order of keys, indentation, escapes, line
// ends, the end of the file. New values are laid out as the notebook is around its
// cells. Replacing a code cell's source removes its outputs and
// its execution count, which no longer belong to it. The id of a new cell is derived from the notebook and the source, so that
// the same call on the same bytes gives the same bytes.
func Apply(content []byte, e Edit) (*Result, error) {
	if !utf8.ValidString(e.Source) || !utf8.ValidString(e.CellType) { // JSON could only hold it with other characters in its place
		return nil, ErrSource
	}
	n, err := locate(content)
	if err != nil {
		return nil, err
	}
	var r *Result
	switch e.Mode {
	case "insert":
		r, err = n.insert(e)
	case "delete":
		r, err = n.delete(e)
	default:
		r, err = n.replace(e)
	}
	if err != nil {
		return nil, err
	}
	after, err := locate(n.b)
	if err != nil {
		return nil, fmt.Errorf("checking the edited notebook: %w", err)
	}
	r.Content, r.Cells = n.b, len(after.cells)
	return r, nil
}

// notebook is a notebook's text and where things are in it.
type notebook struct {
	b      []byte
	ids    bool // the format has cell ids (4.5 on)
	array  span
	keyGap string // white space before the key "cells"
	cells  []cellPlace
}

type cellPlace struct {
	span
	id, kind string
	own      bool // the id is the cell's own, not made from its position
	members  []member
}

func locate(b []byte) (*notebook, error) {
	bad := func(why string, args ...any) (*notebook, error) {
		return nil, &NotNotebookError{fmt.Sprintf(why, args...)}
	}
	text := bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if !json.Valid(text) {
		return bad("it is not valid JSON")
	}
	start := jsonSkipBlank(b, len(b)-len(text))
	if b[start] != '{' {
		return bad("it is not a JSON object")
	}
	n := &notebook{b: b}
	major, minor := -1, 0
	var cells *member
	top, _ := jsonObject(b, start)
	for i, m := range top {
		switch m.key {
		case "nbformat":
			major = atoiOr(b[m.value.from:m.value.to], -1)
		case "nbformat_minor":
			minor = atoiOr(b[m.value.from:m.value.to], 0)
		case "cells":
			if cells != nil {
				return bad(`it has the key "cells" twice`)
			}
			cells = &top[i]
		}
	}
	switch {
	case major < 0:
		return bad("it has no nbformat")
	case major != 4:
		return bad("its format is nbformat %d; only 4 is known", major)
	case cells == nil || b[cells.value.from] != '[':
		return bad("it has no list of cells")
	}
	n.ids = minor >= 5
	n.array, n.keyGap = cells.value, blankBefore(b, cells.from)
	for i, s := range jsonArray(b, cells.value.from) {
		if b[s.from] != '{' {
			return bad("its cell %d is not an object", i+1)
		}
		c := cellPlace{span: s, id: "cell-" + strconv.Itoa(i)}
		c.members, _ = jsonObject(b, s.from)
		seen := map[string]bool{}
		for _, m := range c.members {
			if seen[m.key] {
				return bad("its cell %d has the key %q twice", i+1, m.key)
			}
			seen[m.key] = true
			raw := b[m.value.from:m.value.to]
			switch m.key {
			case "id":
				if id, err := jsonString(raw); err == nil && id != "" {
					c.id, c.own = id, true
				}
			case "cell_type":
				c.kind, _ = jsonString(raw)
			}
		}
		n.cells = append(n.cells, c)
	}
	return n, nil
}

func (n *notebook) find(id string) (int, error) {
	e := &NoCellError{ID: id}
	at, near := -1, 0
	for i, c := range n.cells {
		if c.id == id {
			at = i
			e.Count++
		}
		if len(e.Cells) < 50 {
			e.Cells = append(e.Cells, c.id)
		}
		if strings.EqualFold(strings.TrimSpace(id), c.id) || len(id) >= 4 && strings.HasPrefix(c.id, id) {
			e.Nearest = c.id
			near++
		}
	}
	if e.Count > 1 || near > 1 { // a call with the nearest id may be sent unseen
		e.Nearest = ""
	}
	if e.Count != 1 {
		return 0, e
	}
	return at, nil
}

func (n *notebook) replace(e Edit) (*Result, error) {
	i, err := n.find(e.CellID)
	if err != nil {
		return nil, err
	}
	c := n.cells[i]
	r := &Result{CellID: c.id, CellType: c.kind, Cell: i + 1}
	r.FirstLine, r.LastLine = n.sourceLines(i)
	old, err := n.source(i)
	if err != nil {
		return nil, err
	}
	if e.CellType == "" || e.CellType == c.kind {
		if old == e.Source {
			return r, nil // nothing changes, so the outputs still belong to it
		}
	} else {
		r.CellType = e.CellType
	}
	if m := n.member(i, "outputs"); m != nil {
		r.OutputsCleared = len(jsonArray(n.b, m.value.from))
	}
	turned := r.CellType != c.kind
	if turned {
		if err := n.set(i, "cell_type", quoteJSON(r.CellType, n.ascii())); err != nil {
			return nil, err
		}
	}
	if m := n.member(i, "attachments"); m != nil && turned && r.CellType == "code" {
		if n.b[m.value.from] == '{' {
			held, _ := jsonObject(n.b, m.value.from)
			r.AttachmentsRemoved = len(held)
		}
		if err := n.remove(i, "attachments"); err != nil {
			return nil, err
		}
	}
	for _, m := range [][2]string{{"execution_count", "null"}, {"outputs", "[]"}} {
		key, empty := m[0], m[1]
		switch {
		case r.CellType != "code":
			err = n.remove(i, key)
		case turned || n.member(i, key) != nil:
			err = n.set(i, key, empty)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, n.set(i, "source", n.sourceValue(i, e.Source))
}

func (n *notebook) delete(e Edit) (*Result, error) {
	i, err := n.find(e.CellID)
	if err != nil {
		return nil, err
	}
	c := n.cells[i]
	r := &Result{CellID: c.id, CellType: c.kind, Cell: i + 1}
	r.FirstLine, r.LastLine = n.sourceLines(i)
	if m := n.member(i, "outputs"); m != nil {
		r.OutputsCleared = len(jsonArray(n.b, m.value.from))
	}
	switch {
	case len(n.cells) == 1:
		n.splice(n.array.from, n.array.to, "[]")
	case i > 0:
		n.splice(n.cells[i-1].to, c.to, "")
	default:
		n.splice(c.from, n.cells[1].from, "")
	}
	return r, nil
}

// sourceLines are the lines that the source of cell i stands on, or all of the cell where it has none.
func (n *notebook) sourceLines(i int) (first, last int) {
	at := n.cells[i].span
	if m := n.member(i, "source"); m != nil {
		at = m.value
	}
	return 1 + bytes.Count(n.b[:at.from], []byte("\n")), 1 + bytes.Count(n.b[:at.to], []byte("\n"))
}

func (n *notebook) insert(e Edit) (*Result, error) {
	at := 0
	if e.CellID != "" {
		i, err := n.find(e.CellID)
		if err != nil {
			return nil, err
		}
		at = i + 1
	}
	r := &Result{CellID: "cell-" + strconv.Itoa(at), CellType: e.CellType, Cell: at + 1}
	if n.ids {
		r.CellID = n.freshID(at, e)
	}
	l, cell := n.layout(), n.newCell(r, e)
	between := l.between(cellDepth)
	if len(n.cells) > 0 { // also where a cell has a line, and its members have none
		if gap := blankBefore(n.b, n.cells[0].from); strings.Contains(gap, "\n") {
			between = "," + gap
		}
	}
	switch {
	case len(n.cells) == 0:
		n.splice(n.array.from, n.array.to, l.list(cellDepth-1, "[", "]", []string{cell}))
	case at == 0:
		first := n.cells[0].from
		n.splice(first, first, cell+between)
	default:
		end := n.cells[at-1].to
		n.splice(end, end, between+cell)
	}
	return r, nil
}

// freshID makes an id of eight characters that no cell has.
func (n *notebook) freshID(at int, e Edit) string {
	taken := map[string]bool{}
	for _, c := range n.cells {
		taken[c.id] = true
	}
	for try := 0; ; try++ {
		h := sha256.New()
		h.Write(n.b)
		fmt.Fprintf(h, "\x00%d\x00%s\x00%s\x00%d", at, e.CellType, e.Source, try)
		if id := hex.EncodeToString(h.Sum(nil)[:4]); !taken[id] {
			return id
		}
	}
}

// Where things are in a JSON text that encoding/json has found valid: the functions here rely on that and check nothing.

// span is a value: its first byte, and the one after its last.
type span struct{ from, to int }

// member is one member of an object.
type member struct {
	key    string
	from   int // of the key's quote
	keyEnd int
	value  span
}

func jsonSkipBlank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// blankBefore is the white space that ends before i.
func blankBefore(b []byte, i int) string {
	from := i
	for from > 0 && (b[from-1] == ' ' || b[from-1] == '\t' || b[from-1] == '\n' || b[from-1] == '\r') {
		from--
	}
	return string(b[from:i])
}

// jsonValue returns where the value that begins at i ends.
func jsonValue(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '"':
			i = jsonStringEnd(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
		default:
			for i < len(b) && strings.IndexByte(" \t\r\n,:]}", b[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

// jsonStringEnd returns where the string that begins at i ends.
func jsonStringEnd(b []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		slashes := i
		for b[slashes-1] == '\\' {
			slashes--
		}
		if (i-slashes)%2 == 0 { // none of them is for the quote
			return i + 1
		}
	}
}

// jsonObject returns the members of the object that begins at i, and where it ends.
func jsonObject(b []byte, i int) (members []member, end int) {
	for i = jsonSkipBlank(b, i+1); b[i] != '}'; {
		m := member{from: i, keyEnd: jsonValue(b, i)}
		m.key, _ = jsonString(b[i:m.keyEnd])
		m.value.from = jsonSkipBlank(b, jsonSkipBlank(b, m.keyEnd)+1)
		m.value.to = jsonValue(b, m.value.from)
		members = append(members, m)
		if i = jsonSkipBlank(b, m.value.to); b[i] == ',' {
			i = jsonSkipBlank(b, i+1)
		}
	}
	return members, i + 1
}

// jsonArray returns the elements of the array that begins at i; none when it is no array.
func jsonArray(b []byte, i int) (items []span) {
	if b[i] != '[' {
		return nil
	}
	for i = jsonSkipBlank(b, i+1); b[i] != ']'; {
		s := span{i, jsonValue(b, i)}
		items = append(items, s)
		if i = jsonSkipBlank(b, s.to); b[i] == ',' {
			i = jsonSkipBlank(b, i+1)
		}
	}
	return items
}

func jsonString(raw []byte) (s string, err error) {
	err = json.Unmarshal(raw, &s)
	return s, err
}

func atoiOr(b []byte, other int) int {
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return other
	}
	return n
}

// quoteJSON writes s as JSON: only the characters that must be escaped are, and with ascii everything beyond ASCII too, as Python's json module does,
// which writes most notebooks.
func quoteJSON(s string, ascii bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	quoted := strings.TrimSuffix(b.String(), "\n")
	if !ascii {
		return quoted
	}
	b.Reset()
	for _, r := range quoted {
		if r <= '~' {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
