package checkpoint_test

import (
	"errors"
	"fmt"
	"testing"

	"filippo.io/age"

	"moltisfs/checkpoint"
)

// TestSealedByAnother: what a process saves it can read as long as it runs, also where another one has sealed the same content before, and
// where encryption was switched off in between.
func TestSealedByAnother(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sealing := checkpoint.Options{EncryptTo: id.Recipient().String()}
	texts := [][]byte{source(8000, 1)}
	for i := range 12 {
		texts = append(texts, append([]byte(fmt.Sprintf("// line %d\n", i)), texts[i]...))
	}
	readable := func(d *checkpoint.DB, who string, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if got, err := d.Content(ctx, sum(texts[i])); err != nil || string(got) != string(texts[i]) {
				t.Errorf("%s: text %d: %v", who, i, err)
			}
		}
	}
	at := 0
	for _, o := range []checkpoint.Options{sealing, sealing, {}, sealing} {
		d, err := openAt(dir, fleetOf(t, dir), o)
		if err != nil {
			t.Fatal(err)
		}
		from := at
		for range 3 {
			save(t, d, op(edit("/w/a", texts[at], texts[at+1])))
			at++
		}
		readable(d, fmt.Sprintf("the process that began at %d", from), from, at+1)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	plain := open(t, dir, checkpoint.Options{})
	readable(plain, "no key", 7, 10) // saved in clear, and based on nothing sealed
	if _, err := plain.Content(ctx, sum(texts[1])); !errors.Is(err, checkpoint.ErrSealed) {
		t.Errorf("sealed is sealed: %v", err)
	}
	key := open(t, dir, checkpoint.Options{Identities: []string{id.String()}})
	readable(key, "the identity", 0, at+1)
	sound(t, key)
}

// TestSealedStaysSealed: a purge stores anew what stood on a content that goes, sealed, also by a process that has the identity and does
// not encrypt.
func TestSealedStaysSealed(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d, err := openAt(dir, fleetOf(t, dir), checkpoint.Options{EncryptTo: id.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	needle := randomText(4000, 3)
	versions := [][]byte{randomText(8000, 4)}
	for i := range 8 {
		next := append(append([]byte(fmt.Sprintf("%d\n", i)), needle...), randomText(2000+i, 5)...)
		save(t, d, op(edit("/w/a", versions[i], next)))
		versions = append(versions, next)
	}
	if stats(t, d).Deltas == 0 {
		t.Fatal("without deltas nothing is stored anew")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, dir, checkpoint.Options{Identities: []string{id.String()}})
	for _, b := range versions[:2] {
		if r, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(b)}); err != nil || r.Contents != 1 {
			t.Fatal(r, err)
		}
	}
	if f := contains(t, dir, needle[1000:1040]); len(f) > 0 {
		t.Errorf("in clear in %v", f)
	}
	last := versions[8]
	if got, err := d.Content(ctx, sum(last)); err != nil || string(got) != string(last) {
		t.Error(err)
	}
	sound(t, d)
	blind := open(t, dir, checkpoint.Options{})
	if _, err := blind.Content(ctx, sum(last)); !errors.Is(err, checkpoint.ErrSealed) {
		t.Errorf("without the key: %v", err)
	}
}
