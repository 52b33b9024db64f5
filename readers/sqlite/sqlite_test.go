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
	summary, cut = Describe(bytes.NewReader(raw), raw[:min(len(raw), 108)], int64(len(raw)), func(row func() string) { rows = append(rows, row()) })
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
			"SQLite database, 3 pages of 512 bytes, UTF-8, user_version 7", "table t: CREATE TABLE t(a, b)", 2},
		"largest pages": {"PRAGMA page_size=65536; CREATE TABLE t(a)", "SQLite database, 2 pages of 65536 bytes, UTF-8, user_version 0", "table t: CREATE TABLE t(a)", 1},
		"UTF-16":        {`PRAGMA encoding="UTF-16be"; CREATE TABLE größe(a)`, "SQLite database, 2 pages of 4096 bytes, UTF-16be, user_version 0", "table größe: CREATE TABLE größe(a)", 1},
		"a tree":        {"PRAGMA page_size=512;" + many.String(), "SQLite database, ", "table t: CREATE TABLE t(a)", 60},
		"odd names":     {"CREATE TABLE \"a\x1b\nb\"(a)", "SQLite database, 2 pages", `table "a\x1b\nb": CREATE TABLE "a` + "\ufffd" + ` b"(a)`, 1},
	} {
		summary, rows, cut := describe(database(t, c.script))
		if !strings.HasPrefix(summary, c.summary) || len(rows) != c.rows || rows[0] != c.first || cut {
			t.Errorf("%s: %q, %d rows, %q, cut %v", name, summary, len(rows), rows[:min(len(rows), 1)], cut)
		}
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
