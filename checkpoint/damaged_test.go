package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/checkpoint"
)

// A damaged catalog is moved aside and said, with the large contents, and a new store is begun. Of the old
// one all can be had that can still be read.
func TestDamaged(t *testing.T) {
	overwrite := func(t *testing.T, file string, from, n int) {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[min(from, len(b)):], bytes.Repeat([]byte{0xA5}, n))
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, db string)
		check  bool // it is a check that finds the damage
		least  int  // contents of 80 that can still be read
	}{
		"the header": {damage: func(t *testing.T, db string) { overwrite(t, db, 0, 24) }},
		"the schema": {damage: func(t *testing.T, db string) { overwrite(t, db, 0, 4096) }},
		"half of it": {damage: func(t *testing.T, db string) { os.Truncate(db, 4096*25+100) }, check: true},
		"pages":      {damage: func(t *testing.T, db string) { overwrite(t, db, 4096*70, 4096*3) }, check: true, least: 20},
		"everything": {damage: func(t *testing.T, db string) { os.Truncate(db, 0) }},
		"gone":       {damage: func(t *testing.T, db string) { os.Remove(db) }},
		"says that it is empty": {damage: func(t *testing.T, db string) {
			f, err := os.OpenFile(db, os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt(make([]byte, 4), 60) // the format
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := filepath.Join(dir, "checkpoints.db")
			var log bytes.Buffer
			o := checkpoint.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			d := open(t, dir, o)
			var contents [][]byte
			for i := range 40 {
				contents = append(contents, randomText(3000, int64(i)), randomText(4000, int64(i+1000)))
				save(t, d, op(edit(fmt.Sprint("/w/", i), contents[2*i], contents[2*i+1])))
			}
			large := randomText(600<<10, 1)
			save(t, d, op(edit("/w/large", large, nil)))
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			c.damage(t, db)
			was, err := os.ReadFile(db)
			if err != nil && name != "gone" {
				t.Fatal(err)
			}
			if c.check {
				d, err := checkpoint.Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(log.String(), "moved aside") {
					r, err := d.Check(ctx, true)
					if !errors.Is(err, checkpoint.ErrDamaged) && (err != nil || len(r.Problems) == 0) {
						t.Fatalf("the damage is not found: %+v %v", r, err)
					}
					again, err := checkpoint.Open(dir, o) // beside one who has it open
					if !errors.Is(err, checkpoint.ErrDamaged) || !errors.Is(err, checkpoint.ErrInUse) {
						t.Errorf("moved under somebody's feet: %v", err)
						again.Close()
					}
				}
				d.Close()
			}
			d = open(t, dir, o)
			if !strings.Contains(log.String(), "moved aside") {
				t.Errorf("nobody was told: %s", log.String())
			}
			if p, err := d.List(ctx, checkpoint.Filter{AllSessions: true}); err != nil || len(p.Checkpoints) > 0 {
				t.Errorf("it is no new store: %+v %v", p, err)
			}
			save(t, d, op(edit("/w/1", []byte("1"), []byte("2"))))
			r := sound(t, d)
			if len(r.Beside) != 1 {
				t.Fatalf("beside are %v", r.Beside)
			}
			beside := filepath.Join(r.Beside[0], "checkpoints")
			if kept, err := os.ReadFile(filepath.Join(beside, "checkpoints.db")); name != "gone" && (err != nil || !bytes.Equal(kept, was)) {
				t.Errorf("the old catalog is not as it was: %v", err)
			}
			if len(blobFiles(t, beside)) != 1 || len(blobFiles(t, dir)) != 0 {
				t.Error("the large contents belong to the old catalog")
			}
			if _, err := d.GC(ctx, false); err != nil || len(blobFiles(t, beside)) != 1 {
				t.Error("and stay there:", err)
			}
			old, err := checkpoint.Open(beside, o)
			if err != nil {
				if c.least > 0 || !errors.Is(err, checkpoint.ErrDamaged) {
					t.Error("the old one does not open:", err)
				}
				return
			}
			defer old.Close()
			n := 0
			for _, b := range contents {
				if got, err := old.Content(ctx, sum(b)); err == nil {
					n++
					if !bytes.Equal(got, b) {
						t.Error("a content became another one")
					}
				}
			}
			if n < c.least {
				t.Errorf("%d contents can be read, at least %d should", n, c.least)
			}
			if _, err := old.Save(ctx, op(edit("/w/1", nil, []byte("2")))); !errors.Is(err, checkpoint.ErrReadOnly) {
				t.Errorf("what lies aside stays as it is: %v", err)
			}
		})
	}
	unused := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(unused, "checkpoints.db"), nil, 0o600), os.Mkdir(filepath.Join(unused, "blobs"), 0o700)); err != nil {
		t.Fatal(err)
	}
	d := open(t, unused, checkpoint.Options{})
	save(t, d, op(edit("/w/a", nil, []byte("x"))))
	if r := sound(t, d); r.Beside != nil {
		t.Errorf("a store that nobody came to use is not damaged: %v", r.Beside)
	}
}
