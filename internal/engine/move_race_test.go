//go:build unix

package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/engine"
)

// A tree gets a name while a file is written into it: what policy closes under the new name, or what runs
// code, does not come there without a question, whoever is first. A look and then a rename, as the control
// does it, lets it in.
func TestTreeGetsANameWhileItIsWrittenInto(t *testing.T) {
	t.Parallel()
	const rounds = 60
	closed := func(*config.FS) {}
	for name, c := range map[string]struct {
		set      func(*config.FS)
		to, leaf string
	}{
		"code, asked":      {closed, ".vscode", "tasks.json"},
		"code, refused":    {func(fs *config.FS) { fs.ProtectExec = "refuse" }, ".vscode", "tasks.json"},
		"code, below":      {closed, "n", ".cargo/config.toml"},
		"an instruction":   {closed, "n", "sub/AGENTS.md"},
		"CI":               {closed, ".github/workflows", "ci.yml"},
		"a secret":         {closed, ".aws", "credentials"},
		"a denied pattern": {func(fs *config.FS) { fs.DenyPaths = []string{"**/locked/*.conf"} }, "locked", "a.conf"},
	} {
		who := &asked{}
		e, root := guarded(t, who, c.set)
		moved, written := 0, 0
		for range rounds {
			dir, err := os.MkdirTemp(root, "r")
			must(t, err)
			must(t, errors.Join(os.MkdirAll(dir+"/w/"+filepath.Dir(c.leaf), 0o700), os.MkdirAll(filepath.Dir(dir+"/"+c.to), 0o700)))
			var moves, writes error
			var wg sync.WaitGroup
			wg.Go(func() {
				moves = through(e, func(ctx context.Context, call *engine.Call) error {
					_, err := e.Move(ctx, call, engine.MoveArgs{From: dir + "/w", To: dir + "/" + c.to})
					return err
				})
			})
			wg.Go(func() {
				writes = through(e, func(ctx context.Context, call *engine.Call) error {
					_, err := e.Create(ctx, call, dir+"/w/"+c.leaf, []byte("x"), engine.Rules{})
					return err
				})
			})
			wg.Wait()
			if _, err := os.Lstat(dir + "/" + c.to + "/" + c.leaf); err == nil {
				t.Fatalf("%s: it came there: %v %v", name, moves, writes)
			}
			if moves == nil {
				moved++
			}
			if writes == nil {
				written++
			}
		}
		if left, _ := filepath.Glob(root + "/r*/.moltis-*"); left != nil || moved == 0 && written == 0 {
			t.Errorf("%s: moved %d, written %d, left %v", name, moved, written, left)
		}
	}
	in, top := 0, t.TempDir()
	for end := 1000 * rounds; in < 3 && end > 0; end-- {
		dir, err := os.MkdirTemp(top, "r")
		must(t, errors.Join(err, os.Mkdir(dir+"/w", 0o700)))
		var looked atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !looked.Load() {
				runtime.Gosched()
			}
			os.WriteFile(dir+"/w/tasks.json", nil, 0o600) //nolint:errcheck // it may be late
		})
		there, err := os.ReadDir(dir + "/w")
		looked.Store(true)
		must(t, errors.Join(err, os.Rename(dir+"/w", dir+"/.vscode")))
		wg.Wait()
		if _, err := os.Lstat(dir + "/.vscode/tasks.json"); err == nil && len(there) == 0 {
			in++
		}
	}
	if in == 0 {
		t.Error("a look and then a rename lets nothing in: the race is none")
	}
}
