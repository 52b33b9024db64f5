// Package sqlite tells what is in an SQLite database: the size and encoding from its header, the rows of its schema, and of each table how many
// rows it has and the first of them, with the committed changes that are still in its write-ahead log. It reads bytes and runs nothing, so a damaged
// database costs at worst some pages read in vain. See "Database File Format" on sqlite.org.
package sqlite

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/text"
	"moltisfs/readers/unreadable"
)

const (
	schemaPages = 200      // of the tree that holds a schema
	treeDepth   = 12       // 200 pages of two children each are no deeper, nor are 2^32
	treeBytes   = 64 << 20 // of pages that are read to count rows
	logBytes    = 64 << 20 // of a write-ahead log
	firstRows   = 3
)

// Describe reads the header and the schema, page by page, of a database of size bytes that begins with head. wal is the write-ahead log that stands beside it,
// nil for none. It calls row for each row of the schema, and says when there are more.
func Describe(r io.ReaderAt, head []byte, size int64, wal io.Reader, row func(func() string)) (summary string, cut bool) {
	if len(head) < 108 {
		return "", false
	}
	be := binary.BigEndian
	page := int(be.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	d := base{r: r, size: page, usable: page - int(head[20]), left: schemaPages * page}
	if wal != nil && page >= 512 && page&(page-1) == 0 {
		d.readLog(wal)
	}
	if first := d.log[1]; first != nil {
		head = first
	}
	encoding := map[uint32]string{1: "UTF-8", 2: "UTF-16le", 3: "UTF-16be"}[be.Uint32(head[56:])]
	pages := be.Uint32(head[28:])
	summary = fmt.Sprintf("SQLite database, %s of %d bytes, %s, user_version %d", unreadable.Plural(int(pages), "page"), page, encoding, be.Uint32(head[60:]))
	if len(d.log) > 0 {
		summary += fmt.Sprintf(", with %s of its write-ahead log", unreadable.Plural(len(d.log), "page"))
	}
	// The number of pages is only kept true by writers that also write the number of the change it is
	// for.
	if whole := int64(pages) * int64(page); len(d.log) == 0 && be.Uint32(head[24:]) == be.Uint32(head[92:]) && size < whole {
		summary += fmt.Sprintf("; truncated: it has %s of %s", unreadable.Bytes(size), unreadable.Bytes(whole))
	}
	if page < 512 || page&(page-1) != 0 || d.usable < 480 || encoding == "" {
		return summary, false
	}
	e := text.Lookup(encoding)
	d.decode = func(b []byte) string {
		if decoded, err := e.Decode(b); err == nil {
			return string(decoded)
		}
		return string(b)
	}
	schema := d
	cut = !schema.walk(1, 0, func(c cell) { row(func() string { return d.entry(c) }) })
	return summary, cut
}

// base reads the pages of a database, and of its log those that are newer.
type base struct {
	r            io.ReaderAt
	size, usable int // of a page
	log          map[uint32][]byte
	decode       func([]byte) string
	left         int // bytes of pages that may be read
}

// readLog takes the pages of all transactions that the log has whole.
func (d *base) readLog(wal io.Reader) {
	wal = io.LimitReader(wal, logBytes)
	head := make([]byte, 32)
	if _, err := io.ReadFull(wal, head); err != nil {
		return
	}
	be := binary.BigEndian
	var order binary.ByteOrder = binary.LittleEndian
	switch be.Uint32(head) {
	case 0x377f0683:
		order = be
	case 0x377f0682:
	default:
		return
	}
	var a, b uint32
	check := func(p []byte) {
		for ; len(p) >= 8; p = p[8:] {
			a += order.Uint32(p) + b
			b += order.Uint32(p[4:]) + a
		}
	}
	if check(head[:24]); int(be.Uint32(head[8:])) != d.size || a != be.Uint32(head[24:]) || b != be.Uint32(head[28:]) {
		return
	}
	begun := map[uint32][]byte{}
	d.log = map[uint32][]byte{}
	for {
		frame := make([]byte, 24+d.size)
		if _, err := io.ReadFull(wal, frame); err != nil || string(frame[8:16]) != string(head[16:24]) {
			return
		}
		check(frame[:8])
		if check(frame[24:]); a != be.Uint32(frame[16:]) || b != be.Uint32(frame[20:]) {
			return
		}
		begun[be.Uint32(frame)] = frame[24:]
		if be.Uint32(frame[4:]) != 0 {
			for n, p := range begun {
				d.log[n] = p
			}
			clear(begun)
		}
	}
}

// A cell is one row in a tree, as far as it stands in its page.
type cell struct {
	id   uint64 // of the row, in trees that have them
	body []byte
}

// walk calls row for each cell of the tree below a page, in order. It returns false when it could not see all of them.
func (d *base) walk(number uint32, depth int, row func(cell)) bool {
	if d.left -= d.size; number == 0 || d.left < 0 || depth > treeDepth {
		return false
	}
	p := d.log[number]
	if p == nil {
		p = make([]byte, d.size)
		if _, err := io.ReadFull(io.NewSectionReader(d.r, int64(number-1)*int64(d.size), int64(d.size)), p); err != nil {
			return false
		}
	}
	at := 0
	if number == 1 {
		at = 100 // behind the file's header
	}
	be := binary.BigEndian
	kind, cells, pointers := p[at], int(be.Uint16(p[at+3:])), at+8
	inner, rowids := kind == 5 || kind == 2, kind == 5 || kind == 13
	switch kind {
	case 5, 2:
		pointers += 4
	case 13, 10:
	default:
		return false
	}
	whole := true
	for i := 0; i < cells && pointers+2*i+2 <= d.size && whole; i++ {
		to := int(be.Uint16(p[pointers+2*i:]))
		if inner {
			if to+4 > d.size || !d.walk(be.Uint32(p[to:]), depth+1, row) {
				whole = false
				break
			}
			to += 4
		}
		if !inner || !rowids { // inner cells of a table have only keys
			row(d.cell(p, to, rowids))
		}
	}
	return whole && (!inner || d.walk(be.Uint32(p[at+8:]), depth+1, row))
}

func (d *base) cell(p []byte, at int, rowids bool) (c cell) {
	rest := p[min(at, len(p)):]
	size, n := varint(rest)
	rest = rest[n:]
	most, least := d.usable-35, (d.usable-12)*32/255-23
	if rowids {
		c.id, n = varint(rest)
		rest = rest[n:]
	} else {
		most = (d.usable-12)*64/255 - 23
	}
	if size > uint64(most) { // the rest is in pages of its own; its beginning will do
		if size = uint64(least) + (size-uint64(least))%uint64(d.usable-4); size > uint64(most) {
			size = uint64(least)
		}
	}
	c.body = rest[:min(size, uint64(len(rest)))]
	return c
}

// varint reads a number of one to nine bytes; n is 0 where there is none.
func varint(b []byte) (v uint64, n int) {
	for n < len(b) && n < 9 {
		c := b[n]
		if n++; n == 9 {
			return v<<8 | uint64(c), n
		}
		if v = v<<7 | uint64(c&0x7f); c < 0x80 {
			return v, n
		}
	}
	return 0, 0
}

// A value is nil, an int64, a float64, a string or a []byte.
type value any

// values reads the record of a row, as far as its bytes are there.
func (d *base) values(record []byte) (all []value) {
	size, n := varint(record)
	if n == 0 || size > uint64(len(record)) {
		return nil
	}
	kinds, body := record[n:max(int(size), n)], record[size:]
	for len(kinds) > 0 {
		kind, n := varint(kinds)
		if n == 0 {
			return nil
		}
		kinds = kinds[n:]
		wide := 0
		switch {
		case kind >= 12:
			wide = int(min((kind-12)/2, 1<<40))
		case kind < 8:
			wide = []int{0, 1, 2, 3, 4, 6, 8, 8}[kind]
		}
		if len(body) == 0 && wide > 0 {
			return all
		}
		field := body[:min(wide, len(body))]
		body = body[len(field):]
		switch {
		case kind >= 12 && kind%2 == 1:
			all = append(all, d.decode(field))
		case kind >= 12:
			all = append(all, field)
		case kind == 0 || kind > 9:
			all = append(all, nil)
		case kind > 7:
			all = append(all, int64(kind-8))
		default:
			bits := uint64(0)
			if len(field) > 0 && field[0] >= 0x80 && kind < 7 {
				bits = math.MaxUint64
			}
			for _, c := range field {
				bits = bits<<8 | uint64(c)
			}
			if kind == 7 {
				all = append(all, math.Float64frombits(bits))
			} else {
				all = append(all, int64(bits))
			}
		}
	}
	return all
}

// entry shows one row of sqlite_schema, which has type, name, tbl_name, rootpage, sql: "table t: CREATE …; 2 rows: (1, 'a'), (2, 'b')".
func (d *base) entry(c cell) string {
	fields := d.values(c.body)
	if len(fields) < 4 {
		return "(an entry that cannot be read)"
	}
	kind, ok := fields[0].(string)
	name, ok2 := fields[1].(string)
	root, ok3 := fields[3].(int64)
	if !ok || !ok2 || !ok3 {
		return "(an entry that cannot be read)"
	}
	sql := ""
	if len(fields) > 4 {
		sql, _ = fields[4].(string)
	}
	shown := unreadable.Clip(unreadable.Graphic(kind)+" "+unreadable.Graphic(name)+": "+oneLine(sql), 200)
	if kind != "table" || root <= 0 || root > math.MaxUint32 {
		return shown
	}
	id := -1 // the column that is another name of the row's number; the record has it empty
	if at := integerKey.FindStringIndex(sql); at != nil {
		id = strings.Count(sql[:at[0]], ",")
	}
	count := 0
	var first []string
	table := *d
	table.left = treeBytes
	whole := table.walk(uint32(root), 0, func(c cell) {
		if count++; count <= firstRows {
			first = append(first, d.row(c, id))
		}
	})
	rows := unreadable.Plural(count, "row")
	if !whole {
		rows += " or more"
	}
	if count == 0 {
		return shown + "; " + rows
	}
	return shown + "; " + rows + ": " + strings.Join(first, ", ")
}

var integerKey = regexp.MustCompile(`(?i)\binteger\s+(not\s+null\s+)?primary\s+key\b`)

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}

func (d *base) row(c cell, id int) string {
	var shown []string
	for i, v := range d.values(c.body) {
		if i == 20 {
			shown = append(shown, "…")
			break
		}
		switch v := v.(type) {
		case nil:
			if i == id {
				shown = append(shown, fmt.Sprint(int64(c.id)))
			} else {
				shown = append(shown, "NULL")
			}
		case string:
			shown = append(shown, "'"+unreadable.Clip(oneLine(v), 40)+"'")
		case []byte:
			shown = append(shown, fmt.Sprintf("x'%x'", v[:min(len(v), 8)]))
		default:
			shown = append(shown, fmt.Sprint(v))
		}
	}
	return "(" + strings.Join(shown, ", ") + ")"
}
