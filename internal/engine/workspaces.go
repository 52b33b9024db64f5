package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"sync"

	"moltisfs/approval"
	"moltisfs/internal/guardfs"
)

// Workspaces gives each principal, or each session of it, a directory of its own. The operator has
// asked for that, so nobody else is. It is safe for concurrent use.
type Workspaces struct {
	e          *Engine
	dir        string // that holds them; "": all have the workspace_root
	perSession bool

	mu   sync.Mutex
	uses map[string]*guardfs.Use // of those that end with their session
}

// Workspaces are those below a directory; below none all callers share the workspace_root.
func (e *Engine) Workspaces(dir string, perSession bool) *Workspaces {
	return &Workspaces{e: e, dir: dir, perSession: perSession && dir != "",
		uses: map[string]*guardfs.Use{}}
}

// Of is where a caller's workspace is, also before it is made.
func (w *Workspaces) Of(principal, session string) string {
	if w.dir == "" {
		return w.e.cfg.WorkspaceRoot
	}
	name := dirName(principal, "local")
	if w.perSession {
		name += "%" + dirName(session, "default")
	}
	return path.Join(w.dir, name)
}

var plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// dirName is a directory's name for a caller's: two callers never share one, on any file system. A
// name that is not plain is hashed.
func dirName(name, fallback string) string {
	if name == "" {
		name = fallback
	}
	if plainName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "%" + hex.EncodeToString(sum[:16])
}

// Enter says that we use a workspace. One that ends with its session stays until End of the last
// process that entered it.
func (w *Workspaces) Enter(ctx context.Context, home string) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.perSession && w.uses[home] == nil {
		w.uses[home], err = w.e.locks.Use(ctx, home)
	}
	return err
}

// Make makes a workspace where it is missing. Lazy says that it may be: nobody has made it yet.
func (w *Workspaces) Make(ctx context.Context, c *Call, home string) error {
	if !w.Lazy() {
		return nil
	}
	_, err := w.e.Stat(ctx, c, home, true)
	if errors.Is(err, fs.ErrNotExist) {
		asked := c.Approver
		c.Approver = approval.Yes("tools.jettson.workspaces")
		_, err = w.e.Mkdir(ctx, c, MkdirArgs{Path: home, Exists: true})
		c.Approver = asked
	}
	return err
}

// Lazy says that workspaces are made when they are wanted.
func (w *Workspaces) Lazy() bool { return w.dir != "" }

// End moves the workspace of a session to the trash, where each session has one, unless another
// process still uses it.
func (w *Workspaces) End(ctx context.Context, c *Call) error {
	home := w.Of(c.Principal, c.Session)
	w.mu.Lock()
	use := w.uses[home]
	delete(w.uses, home)
	w.mu.Unlock()
	if use == nil {
		return nil
	}
	c.Approver = approval.Yes("tools.jettson.per_session")
	return use.Last(func() error {
		return w.e.Do(ctx, c, Operation{Changes: true,
			Run: func(ctx context.Context) error {
				_, err := w.e.Delete(ctx, c, home, DeleteOptions{Recursive: true})
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			},
			Refuse: func(context.Context, error) string { return "" }, // nobody is there to be refused
		})
	})
}
