package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand"
	"testing"

	"filippo.io/age"
)

// rows are the data keys of a test.
type rows [][]byte

func (r *rows) Newest(context.Context) (int64, error) { return int64(len(*r)), nil }

func (r *rows) Wrapped(_ context.Context, id int64) ([]byte, error) { return (*r)[id-1], nil }

func (r *rows) Add(_ context.Context, wrapped []byte) (int64, error) {
	*r = append(*r, wrapped)
	return int64(len(*r)), nil
}

// TestRoundTrip: whatever becomes of a content, it comes back, and sealed only to who has the key.
func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 600<<10)
	rand.New(rand.NewSource(1)).Read(noise)
	text := bytes.Repeat([]byte("a line of text that repeats\n"), 500)
	for name, c := range map[string]struct {
		content []byte
		base    []byte
		codec   Codec
	}{
		"empty":   {[]byte{}, text, 0},
		"short":   {[]byte("short"), nil, 0},
		"text":    {text, nil, codecZstd},
		"a delta": {append([]byte("new\n"), text...), text, CodecDelta},
		"large":   {noise, nil, CodecStore},
	} {
		for _, to := range []string{"", id.Recipient().String()} {
			keys := &rows{}
			files := &Files{Dir: t.TempDir()}
			p := packer(t, Options{Store: files, EncryptTo: to, Keys: keys})
			row, err := p.Pack(ctx, sha256.Sum256(c.content), c.content, c.base, 0)
			want := c.codec
			if to != "" {
				want |= CodecSealed
			}
			if err != nil || row.Codec != want || row.Key != int64(len(*keys)) {
				t.Errorf("%s: codec %b, not %b, key %d: %v", name, row.Codec, want, row.Key, err)
			}
			reader := packer(t, Options{Store: files, Identities: []string{id.String()}, Keys: keys})
			if got, err := reader.Unpack(ctx, &row, text); err != nil || !bytes.Equal(got, c.content) {
				t.Errorf("%s: it does not come back: %v", name, err)
			}
			other := packer(t, Options{Store: files, Keys: keys})
			if _, err := other.Unpack(ctx, &row, text); errors.Is(err, ErrSealed) != (to != "") {
				t.Errorf("%s: without the key: %v", name, err)
			}
			var names []string
			if err := files.List(ctx, func(name string, _ int64) error { names = append(names, name); return nil }); err != nil {
				t.Error(err)
			}
			if row.Name == "" && len(names) > 0 || row.Name != "" && (len(names) != 1 || names[0] != row.Name) {
				t.Errorf("%s: %q lies in %q", name, row.Name, names)
			}
			row.Hash[0] ^= 1
			if _, err := reader.Unpack(ctx, &row, text); to != "" && err == nil {
				t.Errorf("%s: what was sealed for another hash was opened", name)
			}
		}
	}
}

func packer(t *testing.T, o Options) *Packer {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

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
