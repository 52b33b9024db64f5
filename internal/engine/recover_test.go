package engine_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
)

// kept counts the files below dir that hold secret.
func kept(t *testing.T, dir string, secret []byte) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, secret) {
			n++
		}
		return err
	})
	must(t, err)
	return n
}

func TestContentsOfReadsAreKeptOnlyWhereTheyMayBe(t *testing.T) {
	secret := []byte("hunter2-hunter2")
	keep := func(x *tree, path string) { (&engine.Call{Engine: x.Engine}).Keep(path, engine.HashOf(secret), secret) }
	for _, c := range []struct {
		name, path string
		change     func(*config.FS)
		want       int
	}{
		{"plain", "/notes", nil, 1},
		{"excluded", "/deep/.env", func(c *config.FS) { c.Checkpoint.Exclude = []string{".env*"} }, 0},
		{"encrypted", "/notes", func(c *config.FS) {
			c.Checkpoint.EncryptTo = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := grow(t, func(fs *config.FS) {
				fs.TrackReads = true
				if c.change != nil {
					c.change(fs)
				}
			})
			keep(x, x.ws+c.path)
			if n := kept(t, x.data, secret); n != c.want {
				t.Fatalf("%d files of the data directory hold it, want %d", n, c.want)
			}
			if err := engine.PurgeKept(x.data); err != nil || kept(t, x.data, secret) != 0 {
				t.Fatalf("a purge left it, %v", err)
			}
			keep(x, x.ws+c.path)
			if n := kept(t, x.data, secret); n != c.want {
				t.Errorf("after a purge %d files hold what was read again, want %d", n, c.want)
			}
		})
	}
	x := grow(t, func(c *config.FS) { c.TrackReads = true })
	keep(x, x.ws+"/notes")
	x.cfg.Checkpoint.EncryptTo = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	x.reopen()
	if kept(t, x.data, secret) != 0 {
		t.Error("what was kept before encrypt_to was set is still there")
	}
}

func TestTrashKeepsLongerWhatAPersonRemoves(t *testing.T) {
	for byUser, want := range map[bool]time.Duration{true: checkpoint.TrashOfUsers, false: checkpoint.TrashOfAgents} {
		x := grow(t, nil)
		path := x.write("a.txt", "a\n")
		must(t, errOf(x.call("s").Delete(ctx, path, engine.DeleteOptions{})))
		must(t, x.does(undoes))
		c := x.call("s")
		c.ByUser = byUser
		must(t, errOf(c.Redo(ctx, engine.RestoreOptions{})))
		page, err := c.Trash(ctx, checkpoint.TrashFilter{})
		if err != nil || len(page.Entries) == 0 {
			t.Fatalf("%+v, %v", page, err)
		}
		if e := page.Entries[0]; e.Expires.Sub(e.Deleted) != want {
			t.Errorf("by a person %v: kept for %v, want %v", byUser, e.Expires.Sub(e.Deleted), want)
		}
	}
}
