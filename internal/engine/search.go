package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/ignore"
	"moltisfs/internal/guardfs"
)

// searching is what all searches share.
type searching struct {
	fs       *guardfs.FS // under the policy; the index reads through it
	index    *grep.Index // nil unless search_index = "auto"
	excludes string      // path of the user's core.excludesFile
	home     string      // where "~/" leads in a repository's configuration
}

// openSearch readies the index, for this policy and no other.
func (e *Engine) openSearch(user ignore.User) (err error) {
	e.search.excludes, e.search.home = user.ExcludesPath(), user.Home
	if e.cfg.SearchIndex == "off" {
		return nil
	}
	if e.search.fs, err = guardfs.New(guardfs.Options{Judge: e.judge, Temporaries: e.temps}); err != nil {
		return fmt.Errorf("opening the tree for the index: %w", err)
	}
	e.search.index = grep.NewIndex(grep.IndexOptions{Open: grep.GuardedOpen(e.search.fs), Watch: grep.GuardedWatch(e.search.fs)})
	return nil
}

func (s *searching) close() error {
	if s.fs == nil {
		return nil
	}
	err := errors.Join(s.index.Close(), s.fs.Close())
	s.fs = nil
	return err
}

// gitExcludes reads the user's own ignore rules. They lie outside the tree and are the user's, not the model's, to choose: no
// policy is asked, and nothing of them is told.
func (e *Engine) gitExcludes() []byte {
	if e.search.excludes == "" {
		return nil
	}
	b, err := readWhole(e.free, e.search.excludes, ignore.MaxFile)
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
func (e *Engine) Walk(ctx context.Context, c *Call, root string, use func(context.Context, grep.Walk) error) error {
	return e.View(ctx, c, View{
		Path: root, Access: guardfs.Walk,
		Look: func(ctx context.Context, h *guardfs.Handle) (*Sight, error) {
			if wait := time.Duration(e.cfg.SearchDeadline); wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
			}
			w := grep.Walk{NoIgnore: !e.cfg.RespectGitignore}
			if !w.NoIgnore {
				w.Excludes, w.Home = e.gitExcludes(), e.search.home
			}
			if h.Object().Info.Kind == guardfs.KindDir {
				d, err := h.Dir()
				if err != nil {
					return nil, err
				}
				defer d.Close()
				w.Dir, w.Spelled = grep.Guarded(d), path.Clean(root)
				// Of a directory that only may lead to something allowed it is told that it is there if it does.
				if denied := e.judge.Judge(h.Object(), guardfs.Look); denied != nil && !grep.Any(ctx, w) {
					return nil, denied
				}
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

// Index serves searches of large trees; nil with search_index = "off".
func (e *Engine) Index() *grep.Index { return e.search.index }
