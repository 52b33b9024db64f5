package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func FuzzXattrs(f *testing.F) {
	f.Add(encodeXattrs(map[string][]byte{"user.a": []byte("x"), "user.b": nil}))
	f.Add([]byte{1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := decodeXattrs(b)
		if err != nil {
			return
		}
		y, err := decodeXattrs(encodeXattrs(x))
		if err != nil || len(x) != len(y) {
			t.Fatalf("%q: %v %v", b, x, y)
		}
	})
}

func fresh(t *testing.T, o Options) *DB {
	t.Helper()
	d, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Before 3.51.3 a reset of the write-ahead log could corrupt a database with several connections. Which
// version is linked go.mod says; nobody may go back behind that one.
func TestSQLite(t *testing.T) {
	d := fresh(t, Options{})
	s, err := one[string](t.Context(), d.r, "SELECT sqlite_version()")
	var v [3]int
	if _, err2 := fmt.Sscanf(s, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || err2 != nil {
		t.Fatal(s, err, err2)
	}
	if slices.Compare(v[:], []int{3, 51, 3}) < 0 {
		t.Errorf("SQLite %s can corrupt a store", s)
	}
}

// Outside of one file there is no SQL that only SQLite has.
func TestPortableSQL(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if name == "sqlite.go" || name == "schema.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"PRAGMA", "pragma_", "ifnull(", "json_each", "INDEXED BY", "INSERT OR", "CROSS JOIN", "x''", "VACUUM", "rowid", "hex(", "?1"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s has %s", name, word)
			}
		}
	}
}

// However a look at the catalog ends, the next ones find connections that are in no transaction.
func TestLooksThatAreCutOff(t *testing.T) {
	d := fresh(t, Options{})
	all := func(after string) {
		t.Helper()
		// One within the other: each has a connection of its own.
		var nest func(n int) error
		nest = func(n int) error {
			if n == 0 {
				return nil
			}
			return d.view(t.Context(), func(h *history) error {
				_, err := one[int64](t.Context(), h.q, "SELECT count(*) FROM op")
				return errors.Join(err, nest(n-1))
			})
		}
		if err := nest(8); err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
	}
	for range 16 {
		func() {
			defer func() { recover() }()
			d.view(t.Context(), func(*history) error { panic("in the midst of it") })
		}()
	}
	all("a panic")
	for range 2000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(200_000)))
		err := d.view(ctx, func(h *history) error {
			_, err := one[int64](ctx, h.q, "SELECT v FROM meta")
			return err
		})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a look that ran out of time: %v", err)
		}
		cancel()
	}
	all("looks that ran out of time")
}
