package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
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

func FuzzID(f *testing.F) {
	for _, s := range []string{"ck-1H0", "CK-1h0", "ck-", "ck-ZZZZZZZZZZZZZZZ", "ck-O0", "tr-1H0", "ck-1H0\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			var bad *BadIDError
			if !errors.As(err, &bad) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		again, err := ParseID(string(id))
		if err != nil || again != id {
			t.Fatalf("%q is %s is %s, %v", s, id, again, err)
		}
	})
}

func TestIDs(t *testing.T) {
	seen := map[ID]int64{}
	for _, base := range []int64{1, 31, 32, 1023, 1024, 1 << 20, 1 << 40, 1<<62 - 1} {
		for n := base; n < base+40 && n > 0 && n <= 1<<62; n++ {
			id := idOf(n)
			if other, ok := seen[id]; ok && other != n {
				t.Fatalf("%d and %d share %s", n, other, id)
			}
			seen[id] = n
			if got, err := id.seq(); err != nil || got != n {
				t.Fatalf("%s of %d is read as %d: %v", id, n, got, err)
			}
		}
	}
	// Every single and double substitution and every exchange of neighbours, exhaustively for one id.
	good := []byte(idOf(123456))
	try := func(b []byte) {
		if bytes.Equal(b, good) {
			return
		}
		if n, err := ID(b).seq(); err == nil {
			t.Fatalf("%s, mistyped from %s, is taken for %d", b, good, n)
		}
	}
	for i := 3; i < len(good); i++ {
		for _, c := range []byte(crockford) {
			b := bytes.Clone(good)
			b[i] = c
			try(b)
			for j := i + 1; j < len(good); j++ {
				for _, e := range []byte(crockford) {
					b2 := bytes.Clone(b)
					b2[j] = e
					try(b2)
				}
			}
		}
		if i+1 < len(good) {
			b := bytes.Clone(good)
			b[i], b[i+1] = b[i+1], b[i]
			try(b)
		}
		try(append(bytes.Clone(good[:i]), good[i+1:]...))
	}
}

// TestSQLite: before 3.51.3 a reset of the write-ahead log could corrupt a database with several connections. Which
// version is linked go.mod says; nobody may go back behind that one.
func TestSQLite(t *testing.T) {
	d, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.Stats(t.Context())
	var v [3]int
	if _, err2 := fmt.Sscanf(s.SQLite, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || err2 != nil {
		t.Fatal(s.SQLite, err, err2)
	}
	if slices.Compare(v[:], []int{3, 51, 3}) < 0 {
		t.Errorf("SQLite %s can corrupt a store", s.SQLite)
	}
}
