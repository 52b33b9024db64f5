package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// database has SQLite make one by a script.
func database(t *testing.T, script string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(context.Background(), script); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func describe(raw []byte) (summary string, rows []string, cut bool) {
	summary, cut = Describe(context.Background(), bytes.NewReader(raw), int64(len(raw)), nil, func(row func() string) { rows = append(rows, row()) })
	return summary, rows, cut
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	many := strings.Builder{}
	for i := range 60 {
		many.WriteString("CREATE TABLE t" + strings.Repeat("x", i) + "(a);")
	}
	for name, c := range map[string]struct {
		script, summary string
		first           string
		rows            int
	}{
		"small": {"PRAGMA page_size=512; PRAGMA user_version=7; CREATE TABLE t(a, b); CREATE INDEX i ON t(a)",
			"SQLite database, 3 pages of 512 bytes, UTF-8, user_version 7", "table t: CREATE TABLE t(a, b); 0 rows", 2},
		"largest pages": {"PRAGMA page_size=65536; CREATE TABLE t(a)", "SQLite database, 2 pages of 65536 bytes, UTF-8, user_version 0", "table t: CREATE TABLE t(a); 0 rows", 1},
		"UTF-16":        {`PRAGMA encoding="UTF-16be"; CREATE TABLE größe(a)`, "SQLite database, 2 pages of 4096 bytes, UTF-16be, user_version 0", "table größe: CREATE TABLE größe(a); 0 rows", 1},
		"a tree":        {"PRAGMA page_size=512;" + many.String(), "SQLite database, ", "table t: CREATE TABLE t(a); 0 rows", 60},
		"odd names":     {"CREATE TABLE \"a\x1b\nb\"(a)", "SQLite database, 2 pages", `table "a\x1b\nb": CREATE TABLE "a` + "\ufffd" + ` b"(a); 0 rows`, 1},
	} {
		summary, rows, cut := describe(database(t, c.script))
		if !strings.HasPrefix(summary, c.summary) || len(rows) != c.rows || rows[0] != c.first || cut {
			t.Errorf("%s: %q, %d rows, %q, cut %v", name, summary, len(rows), rows[:min(len(rows), 1)], cut)
		}
	}
}

// TestRows holds the rows that are shown against those that SQLite gave, with a log beside the database that nobody has merged.
func TestRows(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), `PRAGMA page_size=1024; PRAGMA journal_mode=wal; CREATE TABLE t(a, id INTEGER PRIMARY KEY, b);
		CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO t VALUES ('old', 7, 1.5); PRAGMA wal_checkpoint(truncate); PRAGMA wal_autocheckpoint=0;
		UPDATE t SET a = 'new'; INSERT INTO t VALUES (x'00ff', -3, -129), (NULL, 9, '`+strings.Repeat("long", 2000)+`');
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5000) INSERT INTO w SELECT printf('%05d', i), i * 1000000007 FROM n;
		WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i+1 FROM n WHERE i < 5006) INSERT INTO t(id) SELECT i FROM n;`)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(name + "-wal")
	if err != nil || len(wal) == 0 {
		t.Fatal("no log", err)
	}
	with := func(wal []byte) (summary string, rows []string) {
		summary, _ = Describe(t.Context(), bytes.NewReader(raw), int64(len(raw)), bytes.NewReader(wal), func(row func() string) { rows = append(rows, row()) })
		return summary, rows
	}
	summary, rows := with(wal)
	for i, want := range []string{"; 5,000 rows: (x'00ff', -3, -129), ('new', 7, 1.5), (NULL, 9, 'longlonglong", "; 5,000 rows: ('00001', 1000000007), ('00002', 2000000014)"} {
		if !strings.Contains(rows[i], want) || !strings.Contains(summary, ", with its write-ahead log") {
			t.Errorf("%s: %s, want %s", summary, rows[i], want)
		}
	}
	// A transaction whose end is missing did not happen.
	last := []byte(nil)
	for cut := 0; cut < len(wal); cut += 10_000 {
		if _, rows := with(wal[:cut]); !strings.Contains(rows[0], "'old'") && !strings.Contains(rows[0], "'new'") {
			t.Errorf("a log of %d bytes: %s", cut, rows[0])
		}
		last = bytes.Clone(wal)
		last[cut] ^= 1
		with(last)
	}
	if _, rows := with(wal[:32]); !strings.HasSuffix(rows[0], "; 1 row: ('old', 7, 1.5)") {
		t.Errorf("an empty log: %s", rows[0])
	}
}

// TestDamaged mutates a database with tables, indexes and a view, and cuts it. Each copy is told, or why not.
func TestDamaged(t *testing.T) {
	t.Parallel()
	raw := database(t, `PRAGMA page_size=512; CREATE TABLE t(a, b INTEGER, c AS (a || b)); CREATE INDEX i ON t(b, a); CREATE VIEW v AS SELECT * FROM t;
		CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID; CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('one two'), ('three');
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100) INSERT INTO t SELECT printf('%040d', i), i FROM n;
		INSERT INTO w SELECT a, b FROM t;`)
	summary, whole, cut := describe(raw)
	if cut || !strings.HasPrefix(whole[0], "table t: ") || !strings.Contains(whole[0], "; 100 rows: ('0000000000000000000000000000000000000001', 1), (") || !strings.Contains(strings.Join(whole, "\n"), "view v: ") {
		t.Fatalf("%s: %q, cut %v", summary, whole, cut)
	}
	for _, size := range []int{16, 107, 511, 512, 600} {
		if summary, _, cut := describe(raw[:size]); !cut || !strings.Contains(summary, "it can't be read: ") {
			t.Errorf("%d bytes: %q, cut %v", size, summary, cut)
		}
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range *mutations {
		bad := bytes.Clone(raw)
		for range 1 + i%7 {
			at := rng.IntN(len(bad))
			if i%2 == 0 {
				at = rng.IntN(1024) // the schema
			}
			bad[at] = byte(rng.Uint32())
		}
		summary, rows, _ := describe(bad)
		for _, row := range append(rows, summary) {
			if len(row) > 4000 {
				t.Fatalf("mutation %d: %d bytes", i, len(row))
			}
		}
	}
}

var mutations = flag.Int("sqlite.mutations", 300, "how many mutated databases are described")

// TestBounds: a value that is too long is not shown, and no query outlives its context.
func TestBounds(t *testing.T) {
	t.Parallel()
	raw := database(t, "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(20000000))")
	if summary, rows, cut := describe(raw); cut || len(rows) != 1 || !strings.HasSuffix(rows[0], "; 1 row") {
		t.Errorf("%s: %q, cut %v", summary, rows, cut)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if summary, cut := Describe(ctx, bytes.NewReader(raw), int64(len(raw)), nil, func(func() string) {}); !cut || !strings.Contains(summary, "canceled") {
		t.Errorf("%s, cut %v", summary, cut)
	}
	many := strings.Builder{}
	for range 300 {
		fmt.Fprintf(&many, "CREATE TABLE t%d(a);", many.Len())
	}
	raw = database(t, "PRAGMA page_size=512; BEGIN;"+many.String()+"COMMIT")
	ctx, cancel = context.WithCancel(t.Context())
	r := &ending{r: bytes.NewReader(raw), left: 5, end: cancel} // while the schema is read
	if summary, cut := Describe(ctx, r, int64(len(raw)), nil, func(func() string) {}); !cut || r.left != 0 {
		t.Errorf("%s, cut %v, %d reads after its end", summary, cut, -r.left)
	}
}

// ending is r, of which the last read calls end.
type ending struct {
	r    io.ReaderAt
	left int
	end  func()
}

func (e *ending) ReadAt(p []byte, off int64) (int, error) {
	if e.left--; e.left == 0 {
		e.end()
	}
	return e.r.ReadAt(p, off)
}

// TestVirtual: a virtual table that names a page as tables do is not run for its rows.
func TestVirtual(t *testing.T) {
	t.Parallel()
	raw := database(t, `CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('one');
		PRAGMA writable_schema=1; UPDATE sqlite_schema SET rootpage=2 WHERE name='f'`)
	if summary, rows, cut := describe(raw); cut || len(rows) == 0 || rows[0] != "table f: CREATE VIRTUAL TABLE f USING fts5(x)" {
		t.Errorf("%s: %q, cut %v", summary, rows, cut)
	}
}
