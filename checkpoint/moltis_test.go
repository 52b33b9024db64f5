package checkpoint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"moltisfs/checkpoint"
)

// writeMoltis makes a Moltis folder with one checkpoint a second, each of the file /w/a.
func writeMoltis(t *testing.T, ids ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, id := range ids {
		snap := filepath.Join(dir, id, "snapshot")
		if err := os.MkdirAll(snap, 0o700); err != nil {
			t.Fatal(err)
		}
		manifest := fmt.Sprintf(`{"id":%q,"created_at":%d,"reason":"Edit","source_path":"/w/a","source_kind":"file","existed":true,"backup_path":"snapshot/file"}`, id, 1_700_000_000+i)
		for name, text := range map[string]string{"snapshot/file": fmt.Sprint("version ", i), "manifest.json": manifest} {
			if err := os.WriteFile(filepath.Join(dir, id, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// What was imported before imports belonged to anybody is given to the principal with the next import, and imports lie in the past.
func TestImportAdoptsEarlierOnes(t *testing.T) {
	a, b := "0123456789abcdef0123456789abcde0", "0123456789abcdef0123456789abcde1"
	for _, both := range []bool{false, true} { // the principal has a session of that name, or not
		d := open(t, t.TempDir(), checkpoint.Options{})
		today := save(t, d, op(edit("/w/a", []byte("1"), []byte("2"))))
		nobodys := op(edit("/w/other", []byte("1"), []byte("2")))
		nobodys.Principal = ""
		save(t, d, nobodys)
		if both {
			if r, err := checkpoint.ImportMoltis(ctx, d, writeMoltis(t, b), "local"); err != nil || r.Imported != 1 {
				t.Fatal(r, err)
			}
		}
		if r, err := checkpoint.ImportMoltis(ctx, d, writeMoltis(t, a), ""); err != nil || r.Imported != 1 {
			t.Fatal(r, err)
		}
		if r, err := checkpoint.ImportMoltis(ctx, d, writeMoltis(t, a, b), "local"); err != nil || r.Imported+r.Known != 2 {
			t.Fatal(r, err)
		}
		p, err := d.List(ctx, checkpoint.Filter{Principal: "local", Session: "moltis"})
		if err != nil || len(p.Checkpoints) != 2 {
			t.Errorf("the earlier import must be the principal's: %+v %v", p, err)
		}
		p, err = d.List(ctx, checkpoint.Filter{AllSessions: true, Path: "/w/a"})
		if err != nil || len(p.Checkpoints) != 3 || p.Checkpoints[0].ID != today {
			t.Errorf("what was imported later is older: %+v %v", p, err)
		}
		p, err = d.List(ctx, checkpoint.Filter{Session: nobodys.Session})
		if err != nil || len(p.Checkpoints) != 1 {
			t.Errorf("what is not imported stays nobody's: %+v %v", p, err)
		}
		sound(t, d)
	}
}
