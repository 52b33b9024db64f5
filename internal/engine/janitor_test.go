package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

// anything allows everything.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

func TestJanitor(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default().Tools.FS
	cfg.RequireApproval = false
	e, err := Open(Options{Config: cfg, Judge: anything{}, DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.janitor.age = -time.Second // anything is old enough
	left, kept := filepath.Join(root, ".moltis-0123456789abcdef01234567.tmp"), filepath.Join(root, ".moltis-0123456789abcdef01234569.kept")
	change := func(content string) {
		t.Helper()
		for _, name := range []string{left, kept} {
			if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := e.Mutate(context.Background(), &Call{Tool: "Write"}, Mutation{Paths: []string{filepath.Join(root, "f")}, Next: func(ts []*Target) error {
			ts[0].After = After{Kind: guardfs.KindFile, Content: []byte(content)}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
	change("one")
	if _, err := os.Stat(left); err == nil {
		t.Error("the first change in a directory did not sweep it")
	}
	change("two")
	if _, err := os.Stat(left); err != nil {
		t.Error("the second did: every change would pay for it")
	}
}
