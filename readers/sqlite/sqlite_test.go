package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the oracle
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
	summary, cut = Describe(bytes.NewReader(raw), raw[:min(len(raw), 108)], int64(len(raw)), nil, func(row func() string) { rows = append(rows, row()) })
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
		summary, _ = Describe(bytes.NewReader(raw), raw[:108], int64(len(raw)), bytes.NewReader(wal), func(row func() string) { rows = append(rows, row()) })
		return summary, rows
	}
	summary, rows := with(wal)
	for i, want := range []string{"; 5,000 rows: (x'00ff', -3, -129), ('new', 7, 1.5), (NULL, 9, 'longlonglong", "; 5,000 rows: ('00001', 1000000007), ('00002', 2000000014)"} {
		if !strings.Contains(rows[i], want) || !strings.Contains(summary, "of its write-ahead log") {
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

// A damaged schema ends, and is said to be cut.
func TestDamagedSchema(t *testing.T) {
	t.Parallel()
	raw := database(t, "PRAGMA page_size=512; CREATE TABLE t(a, b); CREATE TABLE u(a, b)")
	whole, rows, _ := describe(raw)
	for name, c := range map[string]struct {
		damage func([]byte) []byte
		rows   int
		cut    bool
		says   string
	}{
		"a short head":    {func(b []byte) []byte { return b[:107] }, 0, false, ""},
		"no first page":   {func(b []byte) []byte { return b[:511] }, 0, true, "truncated: it has 511 bytes of"},
		"the second half": {func(b []byte) []byte { return b[:600] }, 2, false, "truncated: it has 600 bytes of 1,536 bytes"},
		"no kind of page": {func(b []byte) []byte { b[100] = 9; return b }, 0, true, whole},
		"its own child": {func(b []byte) []byte {
			b[100] = 5
			binary.BigEndian.PutUint32(b[108:], 1)
			return b
		}, 0, true, whole},
		"a size that is none": {func(b []byte) []byte { b[16], b[17] = 3, 0; return b }, 0, false, "of 768 bytes"},
		"no encoding":         {func(b []byte) []byte { b[59] = 9; return b }, 0, false, "SQLite database"},
		"entries outside":     {func(b []byte) []byte { b[108], b[109] = 0xff, 0xff; return b }, 2, false, whole},
	} {
		summary, got, cut := describe(c.damage(bytes.Clone(raw)))
		if !strings.Contains(summary, c.says) || len(got) != c.rows || cut != c.cut {
			t.Errorf("%s: %q, %q, cut %v", name, summary, got, cut)
		}
		if name == "entries outside" && !slices.Equal(got, []string{"(an entry that cannot be read)", rows[1]}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
