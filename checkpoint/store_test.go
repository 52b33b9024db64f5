package checkpoint_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"moltisfs/checkpoint"
)

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no mode bits on this system")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "data", "store")
	d := open(t, dir, checkpoint.Options{})
	save(t, d, op(edit("/w/big", randomText(600<<10, 1), nil)))
	n := 0
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", p, fi.Mode().Perm(), want)
		}
		n++
		return nil
	})
	if err != nil || n < 6 {
		t.Fatalf("%d files seen: %v", n, err)
	}
	for mode, ok := range map[fs.FileMode]bool{0o755: true, 0o775: true, 0o777: false, 0o777 | fs.ModeSticky: false} {
		other := filepath.Join(root, mode.String())
		if err := errors.Join(os.Mkdir(other, 0o700), os.Chmod(other, mode)); err != nil {
			t.Fatal(err)
		}
		if d, err := checkpoint.Open(other, checkpoint.Options{}); (err == nil) != ok {
			t.Errorf("a directory of mode %v: %v", mode, err)
		} else if err == nil {
			d.Close()
		}
		if fi, err := os.Stat(other); err != nil || fi.Mode() != fs.ModeDir|mode {
			t.Errorf("the mode of a directory that was there is %v, not %v: %v", fi.Mode(), mode, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(root, "linked")
	os.Mkdir(linked, 0o700)
	os.Symlink(file, filepath.Join(linked, "checkpoints.db"))
	for name, dir := range map[string]string{"a file": file, "a symlink": link, "a linked database": linked} {
		if d, err := checkpoint.Open(dir, checkpoint.Options{}); err == nil {
			d.Close()
			t.Errorf("%s must be refused", name)
		}
	}
	for name, o := range map[string]checkpoint.Options{
		"negative": {MaxBytes: -1}, "sent from a database": {Ships: true, Database: "postgres:///x"}, "recipient": {EncryptTo: "age1nonsense"}, "identity": {Identities: []string{"x"}},
	} {
		if d, err := checkpoint.Open(t.TempDir(), o); err == nil {
			d.Close()
			t.Errorf("bad %s must be refused", name)
		}
	}
	odd := filepath.Join(root, "sp ace", "per%41cent?#&x=y")
	d := open(t, odd, checkpoint.Options{})
	save(t, d, op(edit("/w/a", []byte("1"), nil)))
	if _, err := os.Stat(filepath.Join(odd, "checkpoints.db-wal")); err != nil {
		t.Error("the store must be where it was asked to be:", err)
	}
}

// rows opens the catalog of the store in dir as it is.
func rows(t *testing.T, dir string) (db *sql.DB, postgres bool) {
	t.Helper()
	driver, at := "sqlite", filepath.Join(dir, "checkpoints.db")+"?_pragma=busy_timeout(20000)"
	if fleet := fleetOf(t, dir); fleet != "" {
		driver, at = "pgx", strings.Fields(fleet)[0]
	}
	db, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	return db, driver == "pgx"
}

// tamper changes stored bytes behind the store's back.
func tamper(t *testing.T, dir, q string, args ...any) {
	t.Helper()
	db, postgres := rows(t, dir)
	defer db.Close()
	if postgres {
		q = strings.NewReplacer("randomblob(length(z))", "decode(repeat('ab', length(z)), 'hex')", "x'00'", `'\x00'`, "1<<60", "1::bigint<<60").Replace(q)
	}
	r, err := db.Exec(q, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := r.RowsAffected(); n == 0 {
		t.Fatal("nothing was tampered with")
	}
}

func TestTamperedContentIsCorrupt(t *testing.T) {
	for name, q := range map[string]string{
		"payload":           "UPDATE content SET z=randomblob(length(z)) WHERE base IS NULL",
		"raw payload":       "UPDATE content SET z=x'00', codec=0",
		"delta":             "UPDATE content SET z=randomblob(length(z)) WHERE base IS NOT NULL",
		"size":              "UPDATE content SET size=size+1",
		"negative size":     "UPDATE content SET size=-5",
		"huge size":         "UPDATE content SET size=1<<60",
		"codec":             "UPDATE content SET codec=codec|2",
		"unknown codec":     "UPDATE content SET codec=8",
		"file name":         "UPDATE content SET codec=4, name='../../../../../../etc/passwd', bytes=10",
		"absolute name":     "UPDATE content SET codec=4, name='/etc/passwd', bytes=10",
		"base gone":         "UPDATE content SET base=999999 WHERE base IS NOT NULL",
		"base is itself":    "UPDATE content SET base=id WHERE base IS NOT NULL",
		"another's payload": "UPDATE content SET z=(SELECT z FROM content WHERE base IS NULL LIMIT 1), codec=1, base=NULL",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir, checkpoint.Options{})
			v := series(t, d, "/w/a", 3000, 5, 1)
			for _, b := range v {
				if _, err := d.Content(ctx, sum(b)); err != nil {
					t.Fatal(err)
				}
			}
			tamper(t, dir, q)
			bad := 0
			for _, b := range v {
				got, err := d.Content(ctx, sum(b))
				var corrupt *checkpoint.CorruptError
				switch {
				case err == nil && string(got) == string(b):
				case errors.As(err, &corrupt), errors.Is(err, checkpoint.ErrSealed):
					bad++
				default:
					t.Errorf("damage must be a CorruptError and never other bytes: %v", err)
				}
			}
			if bad == 0 {
				t.Error("the damage went unnoticed")
			}
			r, err := d.Check(ctx, true)
			if err != nil || len(r.Problems)+r.Sealed == 0 {
				t.Errorf("check must find it: %+v %v", r, err)
			}
			// The store must still take saves: a damaged base is no base.
			save(t, d, op(edit("/w/a", v[len(v)-1], []byte("fresh"))))
		})
	}
}

func TestTamperedFile(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	body := randomText(600<<10, 1)
	save(t, d, op(edit("/w/a", body, nil)))
	name := blobFiles(t, dir)[0]
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{"short": good[:len(good)-1], "long": append(append([]byte{}, good...), 0), "flipped": append(append([]byte{}, good[:len(good)-1]...), good[len(good)-1]^1), "empty": {}, "gone": nil} {
		if b == nil {
			err = os.Remove(name)
		} else {
			err = os.WriteFile(name, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		var corrupt *checkpoint.CorruptError
		if _, err := d.Content(ctx, sum(body)); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", what, err)
		}
		if r, err := d.Check(ctx, true); err != nil || len(r.Problems) == 0 || len(r.Problems[0].Paths) != 1 {
			t.Errorf("%s: check must find it and say which path it was: %+v %v", what, r, err)
		}
	}
}

func TestEncryption(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := checkpoint.Options{EncryptTo: id.Recipient().String()}
	needle := "the secret words in this file"
	body := append(source(5000, 1), needle...)
	big := randomText(600<<10, 7)
	d, err := openAt(dir, fleetOf(t, dir), o)
	if err != nil {
		t.Fatal(err)
	}
	next := append([]byte("// edited\n"), body...)
	save(t, d, op(edit("/w/a", body, next), edit("/w/big", big, nil), edit("/w/tiny", []byte(needle), nil)))
	for _, b := range [][]byte{body, next, big, []byte(needle)} {
		if got, err := d.Content(ctx, sum(b)); err != nil || string(got) != string(b) {
			t.Error("a process must read back what it saved itself:", err)
		}
	}
	if s := stats(t, d); s.Deltas != 1 {
		t.Errorf("encryption must not end deltas: %+v", s)
	}
	sound(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range [][]byte{[]byte(needle), big[1000:1040]} {
		if f := contains(t, dir, n); len(f) > 0 {
			t.Errorf("plain text in %v", f)
		}
	}
	blind := open(t, dir, o)
	if _, err := blind.Content(ctx, sum(body)); !errors.Is(err, checkpoint.ErrSealed) {
		t.Errorf("without the identity an earlier process' content is ErrSealed, not %v", err)
	}
	save(t, blind, op(edit("/w/a", next, body[:100]))) // no base to be read, no trouble
	if r, err := blind.Check(ctx, true); err != nil || r.Sealed == 0 || len(r.Problems) > 0 {
		t.Errorf("sealed is not damaged: %+v %v", r, err)
	}
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for who, with := range map[string][]string{"nobody's key": nil, "another's key": {stranger.String()}} {
		other := open(t, dir, checkpoint.Options{Identities: with})
		if _, err := other.Content(ctx, sum(body)); !errors.Is(err, checkpoint.ErrSealed) {
			t.Errorf("with %s: %v", who, err)
		}
	}
	o.Identities = []string{"# a comment\n" + id.String() + "\n"}
	key := open(t, dir, o)
	for _, b := range [][]byte{body, next, big, body[:100]} {
		if got, err := key.Content(ctx, sum(b)); err != nil || string(got) != string(b) {
			t.Error("with the identity everything can be read:", err)
		}
	}
	save(t, key, op(edit("/w/a", body[:100], body[:50])))
	sound(t, key)
	if _, err := key.Purge(ctx, checkpoint.Purge{Hash: sum(body)}); err != nil {
		t.Error(err)
	}
	if got, err := key.Content(ctx, sum(next)); err != nil || string(got) != string(next) {
		t.Error("what stood on the purged content must be readable:", err)
	}
	tamper(t, dir, "UPDATE content SET z=(SELECT z FROM content WHERE codec=8 LIMIT 1)")
	r, err := key.Check(ctx, true)
	if err != nil || len(r.Problems) == 0 {
		t.Errorf("exchanged rows must be found: %+v %v", r, err)
	}
}

// To open the store, look at it and close it again takes no lock that a writer holds, or holds while it is stopped.
func TestLookingDoesNotWaitForAWriter(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	id := save(t, d, op(edit("/w/a", []byte("1"), []byte("2"))))
	db, postgres := rows(t, dir)
	defer db.Close()
	db.SetMaxOpenConns(1)
	begin := "BEGIN IMMEDIATE"
	if postgres {
		begin = "BEGIN; SELECT pg_advisory_xact_lock(7411, hashtext(current_schema()::text))"
	}
	if _, err := db.Exec(begin); err != nil {
		t.Fatal(err)
	}
	looked := make(chan error, 1)
	go func() {
		d, err := openAt(dir, fleetOf(t, dir), checkpoint.Options{})
		if err != nil {
			looked <- err
			return
		}
		_, err1 := d.List(ctx, checkpoint.Filter{AllSessions: true})
		_, err2 := d.Get(ctx, id, checkpoint.Scope{AllSessions: true})
		_, err3 := d.Stats(ctx)
		_, err4 := d.Check(ctx, true)
		_, err5 := d.Purge(ctx, checkpoint.Purge{Match: func(string) bool { return true }, DryRun: true})
		if errors.Is(err5, checkpoint.ErrUnderWay) { // as it is
			err5 = nil
		}
		looked <- errors.Join(err1, err2, err3, err4, err5, d.Close())
	}()
	select {
	case err := <-looked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second): // half of what SQLite waits for a lock
		t.Error("it waits")
	}
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}
