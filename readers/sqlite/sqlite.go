// Package sqlite tells what is in an SQLite database: the size and encoding from its header, and
// the rows of its schema. It reads bytes and runs nothing, so a damaged database costs at worst
// some pages read in vain.
package sqlite

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/text"
	"moltisfs/readers/unreadable"
)

// Of the tree that holds a schema.
const (
	schemaPages = 200
	schemaDepth = 8
)

// Describe reads the header and the schema, page by page, of a database of size bytes that begins
// with head. It calls row for each row of the schema, and says when there are more. See "Database
// File Format" on sqlite.org.
func Describe(r io.ReaderAt, head []byte, size int64, row func(func() string)) (summary string, cut bool) {
	if len(head) < 108 {
		return "", false
	}
	be := binary.BigEndian
	page := int(be.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	encoding := map[uint32]string{1: "UTF-8", 2: "UTF-16le", 3: "UTF-16be"}[be.Uint32(head[56:])]
	pages := be.Uint32(head[28:])
	summary = fmt.Sprintf("SQLite database, %s of %d bytes, %s, user_version %d", unreadable.Plural(int(pages), "page"), page, encoding, be.Uint32(head[60:]))
	// The number of pages is only kept true by writers that also write the number of the change it is
	// for.
	if whole := int64(pages) * int64(page); be.Uint32(head[24:]) == be.Uint32(head[92:]) && size < whole {
		summary += fmt.Sprintf("; truncated: it has %s of %s", unreadable.Bytes(size), unreadable.Bytes(whole))
	}
	if page < 512 || page&(page-1) != 0 || encoding == "" {
		return summary, false
	}
	e := text.Lookup(encoding)
	s := schema{r: r, row: row, size: page, decode: func(s string) string {
		if decoded, err := e.Decode([]byte(s)); err == nil {
			return string(decoded)
		}
		return s
	}}
	s.page(1, 0)
	return summary, s.cut
}

// schema walks the tree of sqlite_schema.
type schema struct {
	r      io.ReaderAt
	row    func(func() string)
	size   int // of a page
	decode func(string) string
	pages  int
	cut    bool
}

func (s *schema) page(number uint32, depth int) {
	if s.pages++; number == 0 || s.pages > schemaPages || depth > schemaDepth {
		s.cut = true
		return
	}
	p := make([]byte, s.size)
	if _, err := io.ReadFull(io.NewSectionReader(s.r, int64(number-1)*int64(s.size), int64(s.size)), p); err != nil {
		s.cut = true
		return
	}
	at := 0
	if number == 1 {
		at = 100 // behind the file's header
	}
	be := binary.BigEndian
	cells, cell := int(be.Uint16(p[at+3:])), at+8
	inner := p[at] == 5
	if inner {
		cell += 4
	} else if p[at] != 13 {
		s.cut = true
		return
	}
	for i := 0; i < cells && cell+2*i+2 <= s.size; i++ {
		to := int(be.Uint16(p[cell+2*i:]))
		switch {
		case !inner:
			s.row(func() string {
				if row := schemaRow(p, to, s.decode); row != "" {
					return row
				}
				return "(an entry that cannot be read)"
			})
		case to+4 <= s.size:
			s.page(be.Uint32(p[to:]), depth+1)
		}
	}
	if inner {
		s.page(be.Uint32(p[at+8:]), depth+1)
	}
}

// schemaRow reads one row of sqlite_schema: type, name, tbl_name, rootpage, sql. Returns "table t:
// CREATE …".
func schemaRow(p []byte, at int, decode func(string) string) string {
	next := func() (v uint64, ok bool) {
		for i := 0; i < 9; i++ {
			if at < 0 || at >= len(p) {
				return 0, false
			}
			c := p[at]
			at++
			if i == 8 {
				return v<<8 | uint64(c), true
			}
			v = v<<7 | uint64(c&0x7f)
			if c < 0x80 {
				return v, true
			}
		}
		return 0, false
	}
	next() // payload length
	next() // row id
	start := at
	header, ok := next()
	if !ok || header > 64 {
		return ""
	}
	body := start + int(header)
	var fields []string
	for at < body && len(fields) < 5 {
		kind, ok := next()
		if !ok {
			return ""
		}
		size := 0
		switch {
		case kind >= 13 && kind%2 == 1:
			size = int(min((kind-13)/2, 1<<20))
		case kind >= 12:
			size = int(min((kind-12)/2, 1<<20))
		case kind <= 4:
			size = int(kind)
		case kind == 5:
			size = 6
		case kind == 6 || kind == 7:
			size = 8
		}
		if body > len(p) {
			return ""
		}
		// The text of a long statement goes on in an overflow page; its beginning will do.
		fields = append(fields, string(p[body:min(body+size, len(p))]))
		body += size
	}
	if len(fields) < 5 {
		return ""
	}
	for i := range fields {
		fields[i] = decode(fields[i])
	}
	sql := strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(strings.Fields(fields[4]), " "))
	return unreadable.Clip(unreadable.Graphic(fields[0])+" "+unreadable.Graphic(fields[1])+": "+sql, 200)
}
