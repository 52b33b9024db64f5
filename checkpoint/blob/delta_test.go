package blob

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
