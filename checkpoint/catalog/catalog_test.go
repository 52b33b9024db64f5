package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// store makes an empty one of our format, and carries out what is told.
func store(t *testing.T, script string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "old.db")
	db, err := sql.Open("sqlite", file+"?_pragma=synchronous(OFF)") // nothing is cut off here
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := Upgrade(t.Context(), conn, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	return file
}

func one(t *testing.T, db *sql.DB, query string) (answer string) {
	t.Helper()
	if err := db.QueryRowContext(context.Background(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

func TestEachFormatHasAWayUp(t *testing.T) {
	t.Parallel()
	for v := range Format {
		if (migrations[v] != "") != (v > 0) {
			t.Errorf("from format %d", v)
		}
	}
	if len(migrations) != Format-1 {
		t.Errorf("%d ways up to format %d", len(migrations), Format)
	}
	db, err := sql.Open("sqlite", store(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := one(t, db, "PRAGMA user_version"); got != fmt.Sprint(Format) {
		t.Errorf("a new store has format %s", got)
	}
}

// history is an operation of a session on two paths, one of which hangs in the air.
const history = `
INSERT INTO session(id, principal, name) VALUES(1, 'p', 's');
INSERT INTO path(id, path) VALUES(1, '/a'), (2, '/b');
INSERT INTO object(id, hash, size) VALUES(1, x'01', 3);
INSERT INTO data(id, codec, depth, bytes, z) VALUES(1, 0, 0, 3, 'old'), (9, 0, 0, 3, 'air');
INSERT INTO op(seq, ts, session, tool, kind) VALUES(1, 5, 1, 'Write', 'write'), (2, 6, 7, 'Edit', 'edit');
INSERT INTO change(op, n, path, role, bkind, bobj, akind) VALUES(1, 0, 1, 'target', 1, 1, 1), (2, 0, 2, 'target', 1, 8, 1), (2, 1, 3, 'target', 1, 1, 1), (4, 0, 1, 'target', 1, 1, 1);
INSERT INTO open_op(op, tag, steps) VALUES(1, 'x', ''), (3, 'y', '');
`

// What can be read comes over, whatever the header of the file says; what nothing holds is taken
// away or called lost.
func TestSalvage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"whole":             func(b []byte) []byte { return b },
		"no header":         func(b []byte) []byte { return append(make([]byte, len(header)), b[len(header):]...) },
		"another header":    func(b []byte) []byte { return append([]byte(strings.Repeat("x", len(header))), b[len(header):]...) },
		"junk at its end":   func(b []byte) []byte { return append(b, bytes.Repeat([]byte("junk"), 1024)...) },
		"journal mode lost": func(b []byte) []byte { b[18], b[19] = 9, 9; return b },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := salvaged(t, store(t, history), damage, func(why string) { t.Errorf("lost: %s", why) })
			for query, want := range map[string]string{
				"PRAGMA user_version": fmt.Sprint(Format),
				"SELECT group_concat(seq) FROM (SELECT seq FROM op ORDER BY seq)":                   "1,2",
				"SELECT group_concat(op||' '||path) FROM (SELECT op, path FROM change ORDER BY op)": "1 1,2 2",
				"SELECT group_concat(id||z) FROM data":                                              "1old",
				"SELECT group_concat(tag) FROM open_op":                                             "x",
				"SELECT name FROM session WHERE id=7":                                               "lost-7",
				"SELECT skipped FROM change WHERE op=2":                                             "damaged",
				"SELECT count(*) FROM change WHERE op=1 AND bobj=1 AND skipped IS NULL":             "1",
				"SELECT count(*) FROM change WHERE op=2 AND bobj IS NULL":                           "1",
				"SELECT count(*) FROM session WHERE gone IS NOT NULL":                               "0",
				"SELECT group_concat(name) FROM session WHERE principal='p' AND name='s' AND id=1":  "s",
				"SELECT count(*) FROM sqlite_schema WHERE name IN ('limits', 'unpurged', 'trash')":  "3",
			} {
				if got := one(t, db, query); got != want {
					t.Errorf("%s: %q, want %q", query, got, want)
				}
			}
		})
	}
}

func salvaged(t *testing.T, file string, damage func([]byte) []byte, lost func(string)) *sql.DB {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, damage(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Salvage(t.Context(), file, filepath.Join(t.TempDir(), "new.db"), lost)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Of a table of many pages a few can be read from either end of what is damaged, and what is lost is told.
func TestSalvageAroundDamage(t *testing.T) {
	t.Parallel()
	const rows = 4000
	file := store(t, fmt.Sprintf(`INSERT INTO session(id, principal, name) VALUES(1, 'p', 's');
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d) INSERT INTO op(seq, ts, session, tool, kind) SELECT i, i, 1, 'Write', 'damageable' FROM n`, rows))
	told := 0
	db := salvaged(t, file, func(b []byte) []byte {
		at := bytes.Index(b, []byte("damageable")) // a page of the table in the middle of it
		for ; b[at&^4095] != 13; at += bytes.Index(b[at+1:], []byte("damageable")) + 1 {
		}
		clear(b[at&^4095 : at&^4095+4096])
		return b
	}, func(string) { told++ })
	var n int
	if err := db.QueryRow("SELECT count(*) FROM op").Scan(&n); err != nil || n == 0 || n == rows || told == 0 {
		t.Errorf("%d of %d rows, %d losses told, %v", n, rows, told, err)
	}
	if n < rows/2 {
		t.Errorf("one page is damaged, and only %d of %d rows are there", n, rows)
	}
}

func TestSalvageOfOlderFormats(t *testing.T) {
	t.Parallel()
	for v := 1; v < Format; v++ {
		_, err := Salvage(t.Context(), store(t, fmt.Sprintf("PRAGMA user_version=%d", v)), filepath.Join(t.TempDir(), "new.db"), func(string) {})
		var format *FormatError
		if !errors.As(err, &format) || format.Format != v {
			t.Errorf("format %d: %v", v, err)
		}
	}
}
