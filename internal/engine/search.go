package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"syscall"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/ignore"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// searching holds the parts that all searches share.
type searching struct {
	excludes string   // path of the user's core.excludesFile
	code     []string // where the user's git configuration may find code
	home     string   // where "~/" leads in a repository's configuration
}

// of takes what there is of the user's.
func (s *searching) of(user ignore.User) {
	s.excludes, s.home, s.code = user.ExcludesPath(), user.Home, user.CodePlaces()
}

// gitExcludes reads the user's own ignore rules. They lie outside the tree, and the user chose
// them, not the model. So no policy is asked, and nothing of them is told.
func (e *Engine) gitExcludes() []byte {
	if e.search.excludes == "" {
		return nil
	}
	free, err := e.free, error(nil)
	if e.place.Calls != nil { // they are the user's of this machine
		if free, err = guardfs.New(guardfs.Options{Judge: policy.AllowAll{}}); err != nil {
			return nil
		}
		defer free.Close() //nolint:errcheck // nothing was written through it
	}
	b, err := readWhole(free, e.search.excludes, ignore.MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.logger.Warn("the user's git excludes do not hold", "err", err)
	}
	return b
}

func readWhole(fs *guardfs.FS, path string, max int64) ([]byte, error) {
	h, err := fs.Resolve(path, guardfs.Read)
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	f, err := h.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	return io.ReadAll(io.NewSectionReader(f, 0, max))
}

// Walk opens the root of a search, a directory or a single file, under the
// search deadline. The deadline is not an error: the search ends with what it
// has and says so.
func (e *Engine) Walk(ctx context.Context, c *Call, root string,
	use func(context.Context, grep.Walk) error) error {
	e, err := e.begun(c)
	if err != nil {
		return err
	}
	if o, text, held, err := e.overlaid(ctx, c, root); held || err != nil {
		if c.Trace.Paths = []string{o.True}; err != nil {
			return err
		}
		return use(ctx, grep.Walk{File: heldFile{bytes.NewReader(text), o.Info}, Name: o.True})
	}
	return e.View(ctx, c, View{
		Path: root, Access: guardfs.Walk,
		Look: func(ctx context.Context, h *guardfs.Handle) (*Sight, error) {
			if wait := time.Duration(e.cfg.SearchDeadline); wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
			}
			w := grep.Walk{NoIgnore: !e.cfg.RespectGitignore}
			if c.Progress != nil {
				w.Come = &c.Progress.Files
			}
			if in, ok := e.place.Calls.(searcher); ok && e.whole == e { // which knows no scope and no chain
				w.Elsewhere = in.Elsewhere(e.rulesTold(), e.judge)
			}
			if !w.NoIgnore {
				w.Excludes, w.Home = e.gitExcludes(), e.search.home
			}
			if h.Object().Info.Kind == guardfs.KindDir {
				d, err := e.openDir(ctx, h)
				if err != nil {
					return nil, err
				}
				defer d.Close()
				w.Dir, w.Spelled = grep.Guarded(d), path.Clean(root)
			} else {
				f, err := h.Open()
				if err != nil {
					return nil, err
				}
				defer f.Close()
				w.File, w.Name = grep.GuardedFile(f), h.Object().True
			}
			return nil, use(ctx, w)
		},
	})
}

// A searcher has searches run where the files are, under rules that judge asks once more of what they find.
type searcher interface {
	Elsewhere(rules policy.Rules, judge guardfs.Judge) grep.Elsewhere
}

// rulesTold are the operator's rules for another process.
func (e *Engine) rulesTold() policy.Rules {
	return policy.Rules{Allow: e.cfg.AllowPaths, Deny: e.cfg.DenyPaths, Only: e.root, Work: e.cfg.WorkspaceRoot,
		Holds: holds(e.cfg), Lifted: e.cfg.Unprotected}
}

// Search looks for q in the content of a file, or of what lies below a directory.
func (e *Engine) Search(
	ctx context.Context, c *Call, root string, q grep.Query,
) (*grep.Result, error) {
	var r *grep.Result
	err := e.Walk(ctx, c, root, func(ctx context.Context, w grep.Walk) (err error) {
		r, err = grep.Search(ctx, w, q)
		return err
	})
	return r, err
}

// SearchIgnored is Search in what ignore rules hide, too.
func (e *Engine) SearchIgnored(
	ctx context.Context, c *Call, root string, q grep.Query,
) (r *grep.Result, err error) {
	err = e.Walk(ctx, c, root, func(ctx context.Context, w grep.Walk) (err error) {
		w.NoIgnore, w.Excludes = true, nil
		r, err = grep.Search(ctx, w, q)
		return err
	})
	return r, err
}

// Files finds files below a directory by name, the newest first.
func (e *Engine) Files(
	ctx context.Context, c *Call, root string, q grep.GlobQuery,
) (r *grep.FilesResult, err error) {
	err = e.Walk(ctx, c, root, func(ctx context.Context, w grep.Walk) (err error) {
		if w.Dir == nil {
			return &guardfs.PathError{Op: "search", Path: w.Name, Err: syscall.ENOTDIR}
		}
		r, err = grep.Files(ctx, w, q)
		return err
	})
	return r, err
}
