package checkpoint_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"moltisfs/checkpoint"
)

// blobs lists the files below blobs.
func blobs(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestCloneIsTakenForWhatItHoldsOnly(t *testing.T) {
	body := randomText(3<<20+777, 1)
	put := func(b []byte, err error) func(*os.File) error {
		return func(f *os.File) error {
			_, werr := f.Write(b)
			return errors.Join(werr, err)
		}
	}
	changed := bytes.Clone(body)
	changed[2<<20] ^= 1
	for name, clone := range map[string]func(*os.File) error{
		"the content":        put(body, nil),
		"one bit differs":    put(changed, nil),
		"longer":             put(append(bytes.Clone(body), 'x'), nil),
		"longer by a block":  put(append(bytes.Clone(body), make([]byte, 2<<20)...), nil),
		"shorter":            put(body[:len(body)-1], nil),
		"nothing":            put(nil, nil),
		"fails":              put(nil, errors.New("no clones here")),
		"fails in the midst": put(body[:1<<20], errors.New("input/output error")),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir, checkpoint.Options{})
			c, calls := edit("/w/a.bin", body, nil), 0
			c.Clone = func(f *os.File) error { calls++; return clone(f) }
			s, err := d.Save(ctx, op(c))
			if err != nil || len(s.Skipped) > 0 || calls != 1 {
				t.Fatalf("%+v, %v, cloned %d times", s, err, calls)
			}
			if got, err := d.Content(ctx, sum(body)); err != nil || !bytes.Equal(got, body) {
				t.Errorf("the content must come back: %d bytes, %v", len(got), err)
			}
			if n := blobs(t, dir); len(n) != 1 {
				t.Errorf("one blob file must be left: %v", n)
			}
			if r, err := d.Check(ctx, true); err != nil || len(r.Problems) > 0 || r.Read != 1 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// Packed, encrypted, small or as a difference content takes less room, or must not lie there as it is.
func TestCloneIsNotAskedForWhatIsBetterPacked(t *testing.T) {
	noise := randomText(3<<20, 1)
	next := append([]byte("a new first line\n"), noise...)
	for name, c := range map[string]struct {
		o     checkpoint.Options
		first []byte // stored for the same path before
		body  []byte
	}{
		"text":      {body: source(3<<20, 1)},
		"small":     {body: randomText(500<<10, 2)},
		"a delta":   {first: noise, body: next},
		"stored":    {first: noise, body: noise},
		"encrypted": {o: checkpoint.Options{EncryptTo: "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}, body: noise},
		"too large": {o: checkpoint.Options{MaxFileBytes: 2 << 20}, body: noise},
		"excluded":  {o: checkpoint.Options{Exclude: func(string) bool { return true }}, body: noise},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, t.TempDir(), c.o)
			if c.first != nil {
				save(t, d, op(edit("/w/a", nil, c.first)))
			}
			ch := edit("/w/a", c.body, nil)
			ch.Clone = func(*os.File) error { t.Error("cloned"); return nil }
			save(t, d, op(ch))
		})
	}
}
