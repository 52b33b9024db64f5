package grep

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// rowKeeper keeps the first rows by path and line of a search that finds files in any order. When
// it has twice as many as needed, it drops the blocks of the last paths. A worker asks wants before
// it gathers rows that would be dropped.
type rowKeeper struct {
	limit  int // 0: all
	mu     sync.Mutex
	held   int
	max    atomic.Pointer[string] // set once rows were dropped: files after this one are not needed
	blocks []block
}

type block struct {
	path string // relative to the root
	rows []Row
}

func byPath(a, b block) int { return comparePaths(a.path, b.path) }

// wants says how many rows of the file rel+name can still be used: 0 for none, -1 for all.
func (r *rowKeeper) wants(rel, name string) int {
	if r.limit == 0 {
		return -1
	}
	if m := r.max.Load(); m != nil && comparePaths(rel+name, *m) > 0 {
		return 0
	}
	return r.limit
}

// add takes the rows of one file.
func (r *rowKeeper) add(path string, rows []Row) {
	if len(rows) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocks = append(r.blocks, block{path, rows})
	if r.held += len(rows); r.limit == 0 || r.held < 2*r.limit {
		return
	}
	slices.SortFunc(r.blocks, byPath)
	r.held = 0
	for i := range r.blocks {
		if r.held += len(r.blocks[i].rows); r.held >= r.limit {
			clear(r.blocks[i+1:])
			r.blocks = r.blocks[:i+1]
			last := r.blocks[i].path
			r.max.Store(&last)
			return
		}
	}
}

// page gives the rows from offset on, at most limit (0: all).
func (r *rowKeeper) page(root string, offset, limit int) []Row {
	slices.SortFunc(r.blocks, byPath)
	var out []Row
	for i := range r.blocks {
		b := &r.blocks[i]
		if offset >= len(b.rows) {
			offset -= len(b.rows)
			continue
		}
		path := joinRoot(root, b.path)
		for _, row := range b.rows[max(offset, 0):] {
			if limit > 0 && len(out) == limit {
				return out
			}
			row.Path = path
			out = append(out, row)
		}
		offset = 0
	}
	return out
}

// cutText makes the text of a row. Of a line longer than max it takes the part around byte at.
func cutText(line []byte, at, max int) (text string, from int, cut bool) {
	if len(line) <= max {
		return string(line), 0, false
	}
	from = min(at-max/4, len(line)-max)
	if from < 0 {
		from = 0
	}
	to := from + max
	// Neither end may split a character.
	for i := 0; i < utf8.UTFMax-1 && from > 0 && !utf8.RuneStart(line[from]); i++ {
		from++
	}
	for i := 0; i < utf8.UTFMax-1 && to < len(line) && !utf8.RuneStart(line[to]); i++ {
		to--
	}
	return string(line[from:to]), from, true
}

// validText replaces bytes that are not UTF-8, so that JSON can hold the row.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
