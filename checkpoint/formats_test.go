package checkpoint_test

import (
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/checkpointtest"
)

// unzip reads a file of testdata. format7.db is a store that the last program of that format wrote, but
// for its one large content, and format7.json what that program answered about it. format8.db and format9.db are what programs of these
// formats made of it.
func unzip(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// older makes the store of that format.
func older(t *testing.T, format string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	large := []byte(checkpointtest.Noise(300 << 10))
	blob := filepath.Join(dir, "blobs", sum(large)[:2], sum(large)+"-dbbdbda9")
	if err := os.MkdirAll(filepath.Dir(blob), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{filepath.Join(dir, "checkpoints.db"): unzip(t, "format"+format+".db.gz"), blob: large} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// byOrder is text with each id replaced by how many others came before it.
func byOrder(text string) string {
	seen := map[string]string{}
	return regexp.MustCompile(`\b(ck|tr)-[0-9A-Z]+`).ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprint("#", len(seen))
		}
		return seen[id]
	})
}

// The secret half of the key that one content of it is sealed to.
const format7Key = "AGE-SECRET-KEY-1LXCFRD5J7FFPCEJY7U6EKAMMDRNP4A8H0Q9XY229EM9WCEFMES8QJYUU5K"

func TestFormats(t *testing.T) {
	for _, format := range []string{"7", "8", "9"} {
		t.Run(format, func(t *testing.T) { testFormat(t, format) })
	}
}

func testFormat(t *testing.T, format string) {
	defer func(was *time.Location) { time.Local = was }(time.Local)
	time.Local = time.UTC
	dir := older(t, format)
	o := checkpoint.Options{Identities: []string{format7Key}, KeepWithin: 1 << 60}
	var all sync.WaitGroup // whoever comes first moves it forward
	for range 4 {
		all.Go(func() {
			d, err := checkpoint.Open(dir, o)
			if err != nil {
				t.Error(err)
				return
			}
			d.Close()
		})
	}
	all.Wait()
	d := open(t, dir, o)
	if r := sound(t, d); r.Read == 0 || r.Sealed > 0 || r.Checkpoints != 50 {
		t.Errorf("%+v", r)
	}
	answers := map[string]any{}
	page, err1 := d.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 1000})
	trash, err2 := d.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true})
	parking, err3 := d.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true, Unsettled: true})
	undone := 0
	for i := range page.Checkpoints { // format 7 did not tell
		if c := &page.Checkpoints[i]; c.UndoneBy != "" {
			undone++
			c.UndoneBy = ""
		}
	}
	if undone != 1 {
		t.Errorf("%d are undone", undone)
	}
	answers["list"], answers["trash"], answers["parking"] = page.Checkpoints, trash.Entries, parking.Entries
	var err4, err5, err6, err7 error
	answers["open"], err4 = d.Open(ctx)
	answers["known"], err5 = d.Known(ctx, ann)
	answers["undo"], err6 = d.Undo(ctx, ann)
	answers["rewind"], err7 = d.Plan(ctx, checkpoint.Restore{Turn: "t2", Principal: ann.Principal, Session: ann.Session})
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(answers, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := byOrder(string(got)), byOrder(string(unzip(t, "format7.json.gz"))); got != want {
		t.Errorf("the answers are others:\n%s", got)
	}
	for _, c := range page.Checkpoints {
		for _, ch := range c.Changes {
			for _, s := range []checkpoint.State{ch.Before, ch.After} {
				if s.Hash == "" {
					continue
				}
				if b, err := d.Content(ctx, s.Hash); err != nil || sum(b) != s.Hash {
					t.Errorf("%s %s: %v", c.ID, ch.Path, err)
				}
			}
		}
	}
	last := page.Checkpoints[0]
	id := save(t, d, op(edit("/w/a.go", []byte("outside"), []byte("and on"))))
	if len(id) != 13 || id == last.ID {
		t.Errorf("%s is no id of today", id)
	}
	if p, err := d.Undo(ctx, ann); err != nil || p.UndoOf != id {
		t.Errorf("%+v %v", p, err)
	}
	if r, err := d.GC(ctx, false); err != nil || r.Checkpoints+r.Contents+r.Files > 0 {
		t.Errorf("nothing has to go: %+v %v", r, err)
	}
	sound(t, d)
}

// Format 10 had nothing of what is sent to another store.
func TestFormat10(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	id := save(t, d, op(edit("/w/a", []byte("1"), []byte("2"))))
	undo := op(edit("/w/a", []byte("2"), []byte("1")))
	undo.Kind, undo.UndoOf = checkpoint.KindRestore, id
	save(t, d, undo)
	want := answers(t, d)
	d.Close()
	db, _ := rows(t, dir)
	if _, err := db.Exec("DROP TABLE unsent; DROP INDEX path_gone; DROP INDEX session_gone; PRAGMA user_version=10"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	d = open(t, dir, checkpoint.Options{Ships: true})
	sameAnswers(t, "moved forward", answers(t, d), want)
	save(t, d, op(edit("/w/b", []byte("1"), []byte("2"))))
	behind(t, d, 1)
	sound(t, d)
}

// Other formats are refused, and stay as they are.
func TestOtherFormats(t *testing.T) {
	for _, v := range []string{"6", "99"} {
		dir := older(t, "7")
		name := filepath.Join(dir, "checkpoints.db")
		db, err := sql.Open("sqlite", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("PRAGMA user_version=" + v); err != nil {
			t.Fatal(err)
		}
		db.Close()
		for range 2 {
			if _, err := checkpoint.Open(dir, checkpoint.Options{}); !errors.As(err, new(*checkpoint.VersionError)) {
				t.Errorf("format %s: %v", v, err)
			}
		}
	}
}
