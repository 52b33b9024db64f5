package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

// A lock that somebody never gives back is no hang: the change is refused, with the name of who has it.
func TestALockThatIsHeld(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	cfg := config.Default().Tools.FS
	cfg.RequireApproval = false
	e, err := OpenOver(Options{Config: cfg, Judge: anything{}, DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.lockWait = 50 * time.Millisecond
	file := filepath.Join(root, "f")
	change := func() error {
		_, err := e.ChangeFiles(context.Background(), &Call{Tool: "Write", Session: "secret"}, Files{Paths: []string{file}, Next: func(ts []*Target) error {
			ts[0].After = After{Kind: guardfs.KindFile, Content: []byte("x")}
			return nil
		}})
		return err
	}
	place, err := e.fs.Place(file)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	others, err := guardfs.OpenLocks(filepath.Join(data, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := others.For("a backup").Lock(context.Background(), place.LockKey())
	if err != nil {
		t.Fatal(err)
	}
	var locked *guardfs.LockedError
	if err := change(); !errors.As(err, &locked) || !strings.HasSuffix(locked.Holder, ", a backup") {
		t.Errorf("while it is held: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is there")
	}
	unlock()
	if err := change(); err != nil {
		t.Errorf("when it is free: %v", err)
	}
	if err := errors.Join(os.Remove(file), os.RemoveAll(filepath.Join(data, "locks"))); err != nil {
		t.Fatal(err)
	}
	if err := change(); !errors.Is(err, ErrHost) {
		t.Errorf("a data directory that is gone is not the agent's file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(data, "locks"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := change(); !errors.Is(err, ErrHost) {
		t.Errorf("locks that can't be opened are not the agent's file: %v", err)
	}
}

// Whoever has to wait a little gets his turn.
func TestALockThatIsFreeSoon(t *testing.T) {
	data := t.TempDir()
	cfg := config.Default().Tools.FS
	cfg.RequireApproval = false
	e, err := OpenOver(Options{Config: cfg, Judge: anything{}, DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	others, err := guardfs.OpenLocks(filepath.Join(data, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := others.Lock(context.Background(), "k")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(30*time.Millisecond, unlock)
	mine, err := e.lock(context.Background(), "Write", []string{"k"})
	if err != nil {
		t.Fatal(err)
	}
	mine()
}
