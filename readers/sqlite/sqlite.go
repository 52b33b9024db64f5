// Package sqlite tells what is in an SQLite database: its size and encoding, the rows of its schema, and of each table how many rows it has and the first of
// them, with the committed changes that are still in its write-ahead log. SQLite itself reads it, through a file system that can only be read: nothing is
// written, no lock is taken, and no view, trigger or virtual table of the database runs.
package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vfs"

	"moltisfs/readers/unreadable"
)

const (
	readBytes   = 256 << 20 // of the database, for all that is told of it
	logBytes    = 64 << 20  // of a write-ahead log
	valueBytes  = 16 << 20
	schemaRows  = 10_000
	countedRows = 1_000_000
	firstRows   = 3
	firstFields = 20 // of a row
)

// Describe reads the database r of size bytes. wal is the write-ahead log that stands beside it, nil for none. It calls row for each row of the schema, and
// says when there are more. Where SQLite can't read the database, or the time of ctx is over, the summary says so.
func Describe(ctx context.Context, r io.ReaderAt, size int64, wal io.Reader, row func(func() string)) (summary string, cut bool) {
	// No fault is known. Should a stranger's file find one in code that was C, it is a panic, which costs that file alone.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	files := files{"db": io.NewSectionReader(&budget{ctx, r, readBytes}, 0, size)}
	var log []byte
	if wal != nil {
		log, _ = io.ReadAll(io.LimitReader(wal, logBytes))
	}
	// A database that had a log can't be opened without one.
	files["db-wal"] = io.NewSectionReader(&budget{ctx, bytes.NewReader(log), readBytes}, 0, int64(len(log)))
	name, mount, err := vfs.New(files)
	if err != nil {
		return "SQLite database", true
	}
	defer mount.Close() //nolint:errcheck // nothing is open in it any more
	// Without locking_mode the log would need shared memory, which files don't have.
	db, err := sql.Open("sqlite", "file:db?mode=ro&vfs="+name+"&_defensive=1&_pragma=locking_mode(exclusive)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)")
	if err != nil {
		return "SQLite database", true
	}
	defer db.Close() //nolint:errcheck // nothing was written through it
	summary, schema, err := open(ctx, db)
	if len(log) > 0 {
		summary += ", with its write-ahead log"
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.New("it takes too long")
	}
	if err != nil {
		summary += "; it can't be read: " + unreadable.Clip(err.Error(), 200)
	}
	for _, e := range schema {
		row(func() string { return e.shown(ctx, db) })
	}
	return summary, err != nil || len(schema) == schemaRows
}

// entry is a row of the schema.
type entry struct {
	kind, name, sql string
}

// open reads what is so of all the database, and its schema as far as that goes.
func open(ctx context.Context, db *sql.DB) (summary string, schema []entry, err error) {
	summary = "SQLite database"
	db.SetMaxOpenConns(1)
	c, err := db.Conn(ctx)
	if err != nil {
		return summary, nil, err
	}
	defer c.Close() //nolint:errcheck // it goes back to db
	for limit, most := range map[int]int{sqlite3.SQLITE_LIMIT_LENGTH: valueBytes, sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0} {
		if _, err := sqlite.Limit(c, limit, most); err != nil {
			return summary, nil, err
		}
	}
	var pages, page, version int
	var encoding string
	err = c.QueryRowContext(ctx, "SELECT * FROM pragma_page_count, pragma_page_size, pragma_encoding, pragma_user_version").Scan(&pages, &page, &encoding, &version)
	if err != nil {
		return summary, nil, err
	}
	summary += fmt.Sprintf(", %s of %d bytes, %s, user_version %d", unreadable.Plural(pages, "page"), page, encoding, version)
	rows, err := c.QueryContext(ctx, "SELECT type, name, coalesce(substr(sql, 1, 1000), '') FROM sqlite_schema LIMIT ?", schemaRows)
	if err != nil {
		return summary, nil, err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.kind, &e.name, &e.sql); err != nil {
			return summary, schema, err
		}
		schema = append(schema, e)
	}
	return summary, schema, rows.Err()
}

// shown is an entry as it is listed: "table t: CREATE …; 2 rows: (1, 'a'), (2, 'b')".
func (e entry) shown(ctx context.Context, db *sql.DB) string {
	shown := unreadable.Clip(unreadable.Graphic(e.kind)+" "+unreadable.Graphic(e.name)+": "+oneLine(e.sql), 200)
	if !strings.HasPrefix(e.sql, "CREATE TABLE ") { // so SQLite writes it for a table that is in the file; a virtual one runs code to give its rows
		return shown
	}
	count := 0
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM "+quoted(e.name)+" LIMIT ?)", countedRows).Scan(&count); err != nil {
		return shown + "; its rows can't be read"
	}
	shown += "; " + unreadable.Plural(count, "row")
	if count == countedRows {
		shown += " or more"
	}
	if first := e.first(ctx, db); len(first) > 0 {
		shown += ": " + strings.Join(first, ", ")
	}
	return shown
}

// first shows the first rows of a table, without columns that are computed.
func (e entry) first(ctx context.Context, db *sql.DB) (all []string) {
	var columns string
	// With the sign a column has no declared type, by which the driver would make times of texts.
	err := db.QueryRowContext(ctx, `SELECT group_concat('+"' || replace(name, '"', '""') || '"') FROM (SELECT name FROM pragma_table_info(?) LIMIT ?)`, e.name, firstFields+1).Scan(&columns)
	if err != nil {
		return nil
	}
	rows, err := db.QueryContext(ctx, "SELECT "+columns+" FROM "+quoted(e.name)+" LIMIT ?", firstRows)
	if err != nil {
		return nil
	}
	defer rows.Close() //nolint:errcheck // as many as there are
	names, _ := rows.Columns()
	fields, into := make([]any, len(names)), make([]any, len(names))
	for i := range fields {
		into[i] = &fields[i]
	}
	for rows.Next() && rows.Scan(into...) == nil {
		shown := make([]string, len(fields))
		for i, v := range fields {
			shown[i] = value(v)
		}
		if len(shown) > firstFields {
			shown[firstFields] = "…"
		}
		all = append(all, "("+strings.Join(shown, ", ")+")")
	}
	return all
}

func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + unreadable.Clip(oneLine(v), 40) + "'"
	case []byte:
		return fmt.Sprintf("x'%x'", v[:min(len(v), 8)])
	}
	return fmt.Sprint(v)
}

// quoted is a name as SQL has it.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}

// budget gives the bytes of r until left are read, or ctx ends: the driver does not look at it while SQLite reads the schema, whose time grows with the
// square of the tables.
type budget struct {
	ctx  context.Context
	r    io.ReaderAt
	left int64
}

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errors.New("too much of the database would have to be read")
	}
	return b.r.ReadAt(p, off)
}

// files is the file system that SQLite sees.
type files map[string]*io.SectionReader

func (f files) Open(name string) (fs.File, error) {
	if r := f[name]; r != nil {
		return &opened{io.NewSectionReader(r, 0, r.Size()), name}, nil
	}
	return nil, fs.ErrNotExist
}

type opened struct {
	*io.SectionReader
	name string
}

func (o *opened) Stat() (fs.FileInfo, error) { return o, nil }
func (o *opened) Close() error               { return nil }
func (o *opened) Name() string               { return o.name }
func (o *opened) Mode() fs.FileMode          { return 0o400 }
func (o *opened) ModTime() time.Time         { return time.Time{} }
func (o *opened) IsDir() bool                { return false }
func (o *opened) Sys() any                   { return nil }
