package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
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
	base := &Version{Content: text, Hash: sha256.Sum256(text)}
	for name, c := range map[string]struct {
		content []byte
		base    *Version
		codec   Codec
	}{
		"empty":   {[]byte{}, base, 0},
		"short":   {[]byte("short"), nil, 0},
		"text":    {text, nil, codecZstd},
		"a delta": {append([]byte("new\n"), text...), base, CodecDelta},
		"large":   {noise, nil, CodecFile},
	} {
		for _, to := range []string{"", id.Recipient().String()} {
			keys := &rows{}
			dir := t.TempDir()
			p := packer(t, Options{Dir: dir, EncryptTo: to, Keys: keys})
			h := Hash(sha256.Sum256(c.content))
			out, err := p.Pack(ctx, h, c.content, c.base)
			want := c.codec
			if to != "" {
				want |= CodecSealed
			}
			if err != nil || out.Codec != want || out.Key != int64(len(*keys)) {
				t.Errorf("%s: codec %b, not %b, key %d: %v", name, out.Codec, want, out.Key, err)
			}
			row := &Row{Hash: h, Size: int64(len(c.content)), Codec: out.Codec, Key: out.Key, Bytes: int64(len(out.Z)), Z: out.Z}
			if out.File != "" {
				row.Z = []byte(out.File)
			}
			reader := packer(t, Options{Dir: dir, Identities: []string{id.String()}, Keys: keys})
			if got, err := reader.Unpack(ctx, row, text); err != nil || !bytes.Equal(got, c.content) {
				t.Errorf("%s: it does not come back: %v", name, err)
			}
			other := packer(t, Options{Dir: dir, Keys: keys})
			if _, err := other.Unpack(ctx, row, text); errors.Is(err, ErrSealed) != (to != "") {
				t.Errorf("%s: without the key: %v", name, err)
			}
			var files []string
			if err := p.Walk(func(name string, _ fs.DirEntry) error { files = append(files, name); return nil }); err != nil {
				t.Error(err)
			}
			if out.File == "" && len(files) > 0 || out.File != "" && (len(files) != 1 || files[0] != out.File || !IsName(files[0])) {
				t.Errorf("%s: %q lies in %q", name, out.File, files)
			}
			row.Key, row.Hash[0] = out.Key, row.Hash[0]^1
			if _, err := reader.Unpack(ctx, row, text); to != "" && err == nil {
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
