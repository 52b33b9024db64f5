package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"sync"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/lazy"
)

// Workspaces gives each principal, or each session of it, a directory of its own. The operator has
// asked for that, so nobody else is. It is safe for concurrent use.
type Workspaces struct {
	e          *Engine
	dir        string // that holds them; "": all have the workspace_root
	perSession bool
	homes      *Homes
}

// Homes are the workspaces that a process has entered and that end with their sessions. They outlive
// an engine. The zero value is ready.
type Homes struct {
	mu   sync.Mutex
	uses map[home]*guardfs.Use
}

// home is the workspace of a session, for as long as that lasts.
type home struct{ Principal, Session, Dir string }

func homeOf(c *Call, dir string) home {
	return home{cmp.Or(c.Principal, "local"), cmp.Or(c.Session, "default"), dir}
}

// Workspaces are the workspaces below a directory; below none all callers share the workspace_root.
func (e *Engine) Workspaces(dir string, perSession bool, homes *Homes) *Workspaces {
	return &Workspaces{e, dir, perSession && dir != "", homes}
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

// dirName is a directory's name for a caller's: two callers never share one, on any file system. A
// name that is not plain is hashed.
func dirName(name, fallback string) string {
	if name == "" {
		name = fallback
	}
	if plainName().MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "%" + hex.EncodeToString(sum[:16])
}

var plainName = lazy.Regexp(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// Enter says that we use a workspace. One that ends with its session stays until End of the last
// process that entered it.
func (w *Workspaces) Enter(ctx context.Context, c *Call, dir string) error {
	w.homes.mu.Lock()
	defer w.homes.mu.Unlock()
	key := homeOf(c, dir)
	if !w.perSession || w.homes.uses[key] != nil {
		return nil
	}
	what, err := json.Marshal(key)
	if err != nil {
		return err
	}
	use, err := w.e.locks.Use(ctx, dir, what)
	if err != nil {
		return err
	}
	if w.homes.uses == nil {
		w.homes.uses = map[home]*guardfs.Use{}
	}
	w.homes.uses[key] = use
	return nil
}

// Make makes a workspace where it is missing. Lazy says that it may be: nobody has made it yet.
func (w *Workspaces) Make(ctx context.Context, c *Call, home string) error {
	if !w.Lazy() {
		return nil
	}
	_, err := c.Stat(ctx, home, true)
	if errors.Is(err, fs.ErrNotExist) {
		asked := c.Approver
		c.Approver = approval.Yes("tools.jettson.workspaces")
		_, err = c.Mkdir(ctx, MkdirArgs{Path: home, Exists: true})
		c.Approver = asked
	}
	return err
}

// Lazy says that workspaces are made when they are wanted.
func (w *Workspaces) Lazy() bool { return w.dir != "" }

// End moves the workspaces of a session to the trash, where each session has one, unless another
// process still uses them.
func (w *Workspaces) End(ctx context.Context, c *Call) error {
	of := homeOf(c, "")
	ending := map[home]*guardfs.Use{}
	w.homes.mu.Lock()
	for key, use := range w.homes.uses {
		if key.Principal == of.Principal && key.Session == of.Session {
			ending[key] = use
			delete(w.homes.uses, key)
		}
	}
	w.homes.mu.Unlock()
	var errs []error
	for key, use := range ending {
		errs = append(errs, use.Last(func() error { return w.discard(ctx, *c, key.Dir) }))
	}
	return errors.Join(errs...)
}

// Sweep moves the workspaces to the trash whose sessions ended with processes that were killed. c is
// like that of End, without a session.
func (w *Workspaces) Sweep(ctx context.Context, c Call) error {
	return w.e.locks.Abandoned(func(what []byte) error {
		var left home
		if json.Unmarshal(what, &left) != nil || !path.IsAbs(left.Dir) {
			return nil // of an earlier version, which did not say
		}
		c.Principal, c.Session = left.Principal, left.Session
		return w.discard(ctx, c, left.Dir)
	})
}

func (w *Workspaces) discard(ctx context.Context, c Call, dir string) error {
	c.Approver = approval.Yes("tools.jettson.per_session")
	_, err := Do(ctx, w.e, &c, Operation[struct{}, *dialect.Object]{Changes: true,
		Run: func(ctx context.Context, _ struct{}) (*dialect.Object, error) {
			_, err := c.Delete(ctx, dir, DeleteOptions{Recursive: true})
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return &dialect.Object{}, err
		},
		Refuse: func(context.Context, *Call, struct{}, *Refusal) (*dialect.Object, string) {
			return nil, "" // nobody is there to be refused
		},
	})
	return err
}
