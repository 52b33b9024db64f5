package checkpoint_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/checkpoint"
)

// damagedStore makes a store with chains, large contents and a hundred paths, and returns what is in it.
func damagedStore(t *testing.T) (dir string, ids []checkpoint.ID, contents [][]byte) {
	t.Helper()
	dir = t.TempDir()
	d, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		path := fmt.Sprintf("/w/f%d", i%20)
		body := source(2000, int64(i%20))
		rng := rand.New(rand.NewSource(int64(i)))
		next := nextVersion(rng, body)
		if i%20 == 19 {
			next = randomText(300<<10, int64(i))
		} else if i == 18 {
			next = randomText(30<<10, int64(i)) // takes pages of its own
		}
		o := op(edit(path, body, next))
		if i == 7 {
			o.Tag = "open"
		}
		ids = append(ids, save(t, d, o))
		contents = append(contents, body, next)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, ids, contents
}

func blobFiles(t *testing.T, dir string) (out []string) {
	t.Helper()
	filepath.WalkDir(filepath.Join(dir, "blobs"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, p)
		}
		return err
	})
	return out
}

// Repair makes a sound store of whatever is left, says what is not, and keeps what it found.
func TestRepair(t *testing.T) {
	model, ids, contents := damagedStore(t)
	database := func(dir string) string { return filepath.Join(dir, "checkpoints.db") }
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
		damage func(t *testing.T, dir string)
		least  int // contents that can be read afterwards, of 200
		all    bool
	}{
		"nothing": {func(*testing.T, string) {}, 200, true},
		"an index": {func(t *testing.T, dir string) {
			tamper(t, dir, "PRAGMA writable_schema=1; DELETE FROM sqlite_schema WHERE name='change_path'")
		}, 200, true},
		"the header":       {func(t *testing.T, dir string) { overwrite(t, database(dir), 0, 24) }, 200, true},
		"a blob file":      {func(t *testing.T, dir string) { overwrite(t, blobFiles(t, dir)[0], 1000, 10) }, 198, true},
		"a blob file gone": {func(t *testing.T, dir string) { os.Remove(blobFiles(t, dir)[0]) }, 198, true},
		"a base":           {func(t *testing.T, dir string) { tamper(t, dir, "UPDATE data SET z=x'00' WHERE id=1") }, 150, true},
		"bases gone":       {func(t *testing.T, dir string) { tamper(t, dir, "DELETE FROM data WHERE base IS NULL AND id < 10") }, 100, true},
		"names gone": {func(t *testing.T, dir string) {
			tamper(t, dir, "DELETE FROM session")
		}, 200, true},
		"a page in the middle": {func(t *testing.T, dir string) { overwrite(t, database(dir), 4096*30, 4096) }, 20, false},
		"a page of one content": {func(t *testing.T, dir string) {
			db, err := sql.Open("sqlite", database(dir))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var page int
			if err := db.QueryRow("SELECT min(pageno) FROM dbstat WHERE name='data' AND pagetype='overflow'").Scan(&page); err != nil {
				t.Fatal(err)
			}
			overwrite(t, database(dir), 4096*(page-1), 4096)
		}, 190, false},
		"many pages": {func(t *testing.T, dir string) { overwrite(t, database(dir), 4096*20, 4096*10) }, 0, false},
		"the schema": {func(t *testing.T, dir string) { overwrite(t, database(dir), 0, 4096) }, 0, false},
		"half of it": {func(t *testing.T, dir string) { os.Truncate(database(dir), 4096*25) }, 0, false},
		"everything": {func(t *testing.T, dir string) { os.Truncate(database(dir), 0) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(model)); err != nil {
				t.Fatal(err)
			}
			c.damage(t, dir)
			was, err := os.ReadFile(database(dir))
			if err != nil {
				t.Fatal(err)
			}
			r, err := checkpoint.Repair(ctx, dir, checkpoint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d checkpoints, %d contents, %d losses: %.200v", r.Checkpoints, r.Contents, len(r.Lost), r.Lost)
			if name == "nothing" {
				if r.Kept != "" {
					t.Errorf("a sound store must be left alone: %+v", r)
				}
			} else if kept, err := os.ReadFile(database(r.Kept)); err != nil || !bytes.Equal(kept, was) {
				t.Error("what was there must be kept as it was:", err)
			}
			d := open(t, dir, checkpoint.Options{})
			sound(t, d)
			readable, known := 0, 0
			for i, id := range ids {
				for _, b := range contents[2*i : 2*i+2] {
					if got, err := d.Content(ctx, sum(b)); err == nil {
						if !bytes.Equal(got, b) {
							t.Fatal("a content became another one")
						}
						readable++
					}
				}
				got, err := d.Get(ctx, id, checkpoint.Scope{AllSessions: true})
				if err != nil {
					continue
				}
				known++
				for _, ch := range got.Changes {
					if c.all && ch.Before.Mode != 0o644 {
						t.Errorf("%s: the mode is %v", id, ch.Before.Mode)
					}
					if !ch.Stored && ch.Skipped == "" || c.all && !ch.AfterStored && ch.AfterSkipped == "" {
						t.Errorf("%s does not say that a content of it is lost: %+v", id, ch)
					}
				}
			}
			if ops, err := d.Open(ctx); c.all && (err != nil || len(ops) != 1 || ops[0].ID != ids[7] || ops[0].Tag != "open") {
				t.Errorf("what is open must stay so: %+v %v", ops, err)
			}
			if readable < c.least || c.all && known != len(ids) {
				t.Errorf("only %d contents of 200 are readable, %d checkpoints of %d known", readable, known, len(ids))
			}
			if readable < len(contents) && len(r.Lost) == 0 && name != "everything" {
				t.Error("a loss that is not named")
			}
			save(t, d, op(edit("/w/f1", []byte("1"), []byte("2"))))
			sound(t, d)
			left, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range left {
				if strings.HasPrefix(e.Name(), "repair-") {
					t.Errorf("%s is left", e.Name())
				}
			}
		})
	}
}

// A damaged store of an older format is refused: its rows would be read for others.
func TestRepairRefusesOlderFormats(t *testing.T) {
	dir, _, _ := damagedStore(t)
	tamper(t, dir, "PRAGMA user_version=4; DELETE FROM path WHERE id=1")
	if r, err := checkpoint.Repair(ctx, dir, checkpoint.Options{}); !errors.As(err, new(*checkpoint.VersionError)) {
		t.Errorf("%+v %v", r, err)
	}
}

// What somebody commits to the old database while a new one is made would be lost.
func TestRepairIsAlone(t *testing.T) {
	dir, ids, _ := damagedStore(t)
	tamper(t, dir, "PRAGMA writable_schema=1; DELETE FROM sqlite_schema WHERE name='change_path'")
	d, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Repair(ctx, dir, checkpoint.Options{}); !errors.Is(err, checkpoint.ErrInUse) {
		t.Errorf("repaired under somebody's feet: %v", err)
	}
	late := save(t, d, op(edit("/w/late", []byte("late"), nil)))
	if kept, _ := filepath.Glob(filepath.Join(dir, "damaged-*")); len(kept) > 0 {
		t.Errorf("refused, and yet there is %q", kept)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := checkpoint.Repair(ctx, dir, checkpoint.Options{})
	if err != nil || r.Checkpoints != len(ids)+1 {
		t.Fatalf("got %+v, %v; want %d checkpoints", r, err, len(ids)+1)
	}
	if d, err = checkpoint.Open(dir, checkpoint.Options{}); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Get(ctx, late, checkpoint.Scope{AllSessions: true}); err != nil {
		t.Error(err)
	}
}

// A catalog that is empty, or gone, or says that it is empty, where there was one is damage and no new store; a store that nobody came to use is none.
func TestEmptiedCatalogIsDamage(t *testing.T) {
	for name, empty := range map[string]func(db string) error{
		"empty": func(db string) error { return os.Truncate(db, 0) },
		"gone":  os.Remove,
		"says so": func(db string) error {
			f, err := os.OpenFile(db, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(make([]byte, 4), 60) // user_version
			return errors.Join(err, f.Close())
		},
	} {
		for _, large := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, large %v", name, large), func(t *testing.T) {
				dir := t.TempDir()
				db := filepath.Join(dir, "checkpoints.db")
				d := open(t, dir, checkpoint.Options{})
				content := []byte("small")
				if large {
					content = randomText(600<<10, 1)
				}
				first := save(t, d, op(edit("/w/a", content, nil)))
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				if err := empty(db); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if d, err := checkpoint.Open(dir, checkpoint.Options{}); !errors.Is(err, checkpoint.ErrDamaged) {
						if err == nil {
							d.Close()
						}
						t.Fatalf("it is taken for a new store: %v", err)
					}
				}
				r, err := checkpoint.Repair(ctx, dir, checkpoint.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if kept := contains(t, r.Kept, content[:5]); len(kept) == 0 && !large && name == "says so" {
					t.Error("what it was made from is gone")
				}
				d = open(t, dir, checkpoint.Options{})
				if next := save(t, d, op(edit("/w/a", []byte("x"), nil))); next == first {
					t.Errorf("%s names another checkpoint now", first)
				}
				sound(t, d)
			})
		}
	}
	unused := t.TempDir()
	if err := os.WriteFile(filepath.Join(unused, "checkpoints.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(unused, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	save(t, open(t, unused, checkpoint.Options{}), op(edit("/w/a", nil, []byte("x"))))
}

// What the damaged catalog named is not thrown away after the repair, and what it gave out as an id never names something else.
func TestRepairKeepsWhatTheOldCatalogNamed(t *testing.T) {
	for _, lost := range []bool{false, true} {
		dir := t.TempDir()
		d := open(t, dir, checkpoint.Options{})
		ids := map[string]bool{}
		for i := range 60 {
			c := edit(fmt.Sprint("/w/", i), randomText(30<<10, int64(i)), nil)
			if i%20 == 3 {
				c = edit("/w/large", randomText(600<<10, int64(i)), nil)
			}
			c.Trash = &checkpoint.Trashed{Files: 1}
			c.After = checkpoint.State{Kind: checkpoint.Absent}
			s, err := d.Save(ctx, op(c))
			if err != nil {
				t.Fatal(err)
			}
			ids[string(s.ID)], ids[string(s.Trashed[0].ID)] = true, true
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, "checkpoints.db"), 50000); err != nil {
			t.Fatal(err)
		}
		if lost {
			if err := os.Remove(filepath.Join(dir, "numbers")); err != nil {
				t.Fatal(err)
			}
		}
		r, err := checkpoint.Repair(ctx, dir, checkpoint.Options{})
		if err != nil || len(r.Lost) == 0 {
			t.Fatalf("%+v %v", r, err)
		}
		kept := map[string]bool{}
		err = filepath.WalkDir(filepath.Join(r.Kept, "blobs"), func(p string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				kept[filepath.Base(p)] = true
			}
			return err
		})
		if err != nil || len(kept) != 3 {
			t.Errorf("beside the old catalog are %d of the 3 contents that only it names: %v", len(kept), err)
		}
		for range 2 {
			d = open(t, dir, checkpoint.Options{})
			c := edit("/w/new", []byte("x"), nil)
			c.Trash, c.After = &checkpoint.Trashed{Files: 1}, checkpoint.State{Kind: checkpoint.Absent}
			for range 70 {
				s, err := d.Save(ctx, op(c))
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range []string{string(s.ID), string(s.Trashed[0].ID)} {
					if ids[id] {
						t.Fatalf("%s was given out before", id)
					}
					ids[id] = true
				}
			}
			sound(t, d)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
