package checkpoint

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"
)

func TestDelta(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	random := func(n int) []byte { b := make([]byte, n); rng.Read(b); return b }
	big := random(100_000)
	for name, c := range map[string]struct {
		base, target []byte
		max          int
	}{
		"both empty":   {nil, nil, 1},
		"from empty":   {nil, []byte("abc"), 5},
		"to empty":     {big, nil, 1},
		"same":         {big, big, 8},
		"one byte":     {big, append(append(append([]byte{}, big[:5000]...), 'x'), big[5001:]...), 20},
		"inserted":     {big, append(append(append([]byte{}, big[:5000]...), "hello"...), big[5000:]...), 24},
		"cut":          {big, append(append([]byte{}, big[:5000]...), big[5100:]...), 20},
		"moved block":  {big, append(append(append(append([]byte{}, big[:1000]...), big[50_000:60_000]...), big[1000:50_000]...), big[60_000:]...), 80},
		"doubled":      {big, append(append([]byte{}, big...), big...), 20},
		"grown":        {big[:100], big, 100_010},
		"other":        {big[:5000], random(5000), 5010},
		"short repeat": {[]byte("ab"), []byte("abab"), 8},
	} {
		d := makeDelta(nil, c.base, c.target)
		if len(d) > c.max {
			t.Errorf("%s: the delta takes %d bytes, at most %d are due", name, len(d), c.max)
		}
		got, err := applyDelta(c.base, d, int64(len(c.target)))
		if err != nil || !bytes.Equal(got, c.target) {
			t.Errorf("%s: does not give the target back: %v", name, err)
		}
		if _, err := applyDelta(c.base, d, int64(len(c.target))+1); !errors.Is(err, errDelta) {
			t.Errorf("%s: another size must be refused: %v", name, err)
		}
	}
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("0123456789abcdef0123456789abcdef"), []byte("x0123456789abcdef0123456789abcdefy"))
	f.Add(bytes.Repeat([]byte("line of text\n"), 50), append(bytes.Repeat([]byte("line of text\n"), 20), bytes.Repeat([]byte("line 0f text\n"), 31)...))
	f.Fuzz(func(t *testing.T, base, target []byte) {
		d := makeDelta(nil, base, target)
		got, err := applyDelta(base, d, int64(len(target)))
		if err != nil || !bytes.Equal(got, target) {
			t.Fatalf("delta of %q and %q: %q, %v", base, target, got, err)
		}
	})
}

// A damaged delta must neither panic nor write more than it may.
func FuzzApplyDelta(f *testing.F) {
	f.Add([]byte("base"), []byte{4, 9, 0}, int64(4))
	f.Add([]byte("base"), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 3, 0xff}, int64(1<<40))
	f.Fuzz(func(t *testing.T, base, delta []byte, size int64) {
		if size < 0 || size > 1<<20 {
			size = 1 << 20
		}
		out, err := applyDelta(base, delta, size)
		if err == nil && int64(len(out)) != size {
			t.Fatal("wrong size without an error")
		}
	})
}

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

func TestVersionLess(t *testing.T) {
	for _, c := range []struct {
		a, b string
		less bool
	}{{"3.51.2", minSQLite, true}, {"3.51.3", minSQLite, false}, {"3.7.0", minSQLite, true}, {"3.54.1", minSQLite, false}, {"4", minSQLite, false}, {"3.51", minSQLite, true}, {"", minSQLite, true}} {
		if versionLess(c.a, c.b) != c.less {
			t.Errorf("%s < %s: %v", c.a, c.b, !c.less)
		}
	}
}
