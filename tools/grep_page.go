package tools

import (
	"strconv"

	"moltisfs/grep"
)

const (
	maxAnswer  = 4_000_000 // bytes of JSON that the rows or files of one answer take, about
	maxEntries = 50_000    // rows or files of one answer
	maxBinary  = 20        // binary files that are named
)

// page is the part of the rows or files that one answer shows.
type page struct {
	offset, limit int
	most          int // bytes of text
}

// newPage reads offset and head_limit; 0 is as many as one answer holds.
func newPage(offset, limit, most int) page {
	if limit <= 0 || limit > maxEntries {
		limit = maxEntries
	}
	return page{offset, limit, most}
}

// around is the page with one row more on each side. Those tell whether a block goes on there.
func (p page) around() (offset, limit int) {
	if p.offset == 0 {
		return 0, p.limit + 1
	}
	return p.offset - 1, p.limit + 2
}

// part takes the page out of the rows that around asked for.
func (p page) part(rows []grep.Row) (before, rest []grep.Row) {
	if p.offset > 0 {
		k := min(1, len(rows))
		return rows[:k], rows[k:]
	}
	return nil, rows
}

// fitting is how many entries of an answer fit into so many bytes, given what each adds to it. The
// first is given whatever it takes.
func fitting(n, most int, cost func(i int) int) int {
	sum := 0
	for i := range n {
		if sum += cost(i); sum > most && i > 0 {
			return i
		}
	}
	return n
}

// shownBytes is what the name of a file adds to a text, without what all have in common.
func shownBytes(root, path string) int { return len(relative(root, path)) + 1 }

// jsonSize is about what s takes in JSON.
func jsonSize(s string) int {
	n := len(s) + 3
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ':
			n += 5
		case c == '"' || c == '\\':
			n++
		}
	}
	return n
}

func (g *Grep) fill(r *grep.Result, q grep.Query, p page) {
	g.Root, g.Partial, g.Skipped = r.Root, r.Partial, skippedOf(r.Skipped)
	g.Total = GrepTotals{Files: r.Totals.Files, Lines: r.Totals.Lines, Matches: r.Totals.Matches, Binary: len(r.Binary)}
	g.Binary = r.Binary[:min(len(r.Binary), maxBinary)]
	if r.Engine == "backtracking" {
		g.Engine = r.Engine
	}
	if q.Mode == grep.Content {
		g.Total.Rows = r.Totals.Rows
		g.end(p, g.fillRows(r.Rows, q, p), r.Totals.Rows)
		return
	}
	const count = 40 // the numbers and the names of the fields
	g.shown = fitting(len(r.Files), maxAnswer, func(i int) int { return jsonSize(r.Files[i].Path) + count })
	each := 0
	if q.Mode == grep.Count {
		each = 6 // the figure
	}
	g.shown = fitting(g.shown, p.most, func(i int) int { return shownBytes(g.Root, r.Files[i].Path) + each })
	for _, f := range r.Files[:g.shown] {
		if q.Mode == grep.Count {
			g.Counts = append(g.Counts, GrepCount{f.Path, f.Lines, f.Matches})
		} else {
			g.Files = append(g.Files, f.Path)
		}
	}
	g.end(p, len(r.Files), r.Totals.Files)
}

// end says whether there is more than this page, and whether that is for want of room: found rows
// or files could have been on it.
func (g *Grep) end(p page, found, all int) {
	g.Truncated = g.LinesCut > 0
	if p.offset+g.shown >= all || g.shown == 0 {
		return
	}
	g.Truncated, g.NextOffset = true, p.offset+g.shown
	g.SizeLimited = g.shown < found || g.shown == maxEntries
}

// fillRows turns rows into Moltis' matches: one a matching line, with the lines around it as its
// block. Lines of context whose match is on another page are listed apart. It says how many rows
// the page could have had.
func (g *Grep) fillRows(rows []grep.Row, q grep.Query, p page) (found int) {
	g.context = q.Before > 0 || q.After > 0
	before, rows := p.part(rows)
	found = min(len(rows), p.limit)
	g.shown = fitting(found, maxAnswer, g.rowCost(rows, q))
	g.shown = fitting(g.shown, p.most, func(i int) int {
		n := len(windowed(rows[i])) + 1
		if g.context {
			n += len("--\n")
		}
		if !g.single {
			n += shownBytes(g.Root, rows[i].Path)
		}
		if g.numbers {
			n += len(strconv.Itoa(rows[i].Line)) + 1
		}
		return n
	})
	g.rows = rows[:g.shown]
	behind := rows[g.shown:]
	if n := g.shown; g.context && n > 0 && len(behind) > 0 {
		g.parted = behind[0].Path == rows[n-1].Path && behind[0].Line == rows[n-1].Line+1
	}
	inBlock := make([]bool, g.shown)
	for i, r := range g.rows {
		if r.Cut {
			g.LinesCut++
		}
		if r.Context {
			continue
		}
		m := GrepMatch{Path: r.Path, Line: r.Line, Match: r.Text}
		if r.Cut {
			m.CutFrom, m.LineBytes = &r.From, r.Bytes
		}
		if !g.context {
			m.Block = g.lines(i, i+1)
		} else {
			from, to := i, i+1
			for from > 0 && around(g.rows[from-1], r, q) {
				from--
			}
			for to < g.shown && around(g.rows[to], r, q) {
				to++
			}
			m.Block = g.lines(from, to)
			for k := from; k < to; k++ {
				inBlock[k] = true
			}
			atStart := from == 0 && len(before) > 0 && around(before[0], r, q)
			atEnd := to == g.shown && len(behind) > 0 && around(behind[0], r, q)
			switch {
			case atStart && atEnd:
				m.BlockCut = "both"
			case atStart:
				m.BlockCut = "start"
			case atEnd:
				m.BlockCut = "end"
			}
		}
		g.Matches = append(g.Matches, m)
	}
	for i := 0; g.context && i < g.shown; i++ {
		if inBlock[i] {
			continue
		}
		from := i
		for i+1 < g.shown && !inBlock[i+1] && g.rows[i+1].Path == g.rows[i].Path &&
			g.rows[i+1].Line == g.rows[i].Line+1 {
			i++
		}
		g.ContextOnly = append(g.ContextOnly, GrepContext{g.rows[from].Path, g.rows[from].Line,
			g.lines(from, i+1)})
	}
	return found
}

// around says whether row x belongs to the block of the match m.
func around(x, m grep.Row, q grep.Query) bool {
	return x.Path == m.Path && x.Line >= m.Line-q.Before && x.Line <= m.Line+q.After
}

// lines are rows as they stand in a block.
func (g *Grep) lines(from, to int) []string {
	out := make([]string, 0, to-from)
	for _, r := range g.rows[from:to] {
		line := windowed(r)
		if g.numbers {
			line = strconv.Itoa(r.Line) + ":" + line
		}
		out = append(out, line)
	}
	return out
}

// rowCost gives what each row adds to an answer that ends with it. A match adds itself with the
// lines before it, and again in the block of each match before it.
func (g *Grep) rowCost(rows []grep.Row, q grep.Query) func(i int) int {
	const each = 40 // the names of the fields
	if !g.context {
		return func(i int) int { return jsonSize(rows[i].Path) + 2*jsonSize(rows[i].Text) + 2*each }
	}
	first, above := 0, 0    // the block before row i begins at first, and takes above
	oldest, matches := 0, 0 // of the matches from oldest on, so many have row i in their blocks
	return func(i int) int {
		r := rows[i]
		size := jsonSize(r.Text) + 8
		for ; first < i && !around(rows[first], r, grep.Query{Before: q.Before}); first++ {
			above -= jsonSize(rows[first].Text) + 8
		}
		for ; oldest < i && !around(r, rows[oldest], grep.Query{After: q.After}); oldest++ {
			if !rows[oldest].Context {
				matches--
			}
		}
		cost := size * matches
		if above += size; !r.Context {
			cost += jsonSize(r.Path) + size + above + each
			matches++
		} else {
			cost += size
		}
		return cost
	}
}
