package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/ignore"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// Skipped says by reason what a walk left out, and how to have it included.
// Denied entries are counted and never named.
type Skipped map[string]SkippedReason

// SkippedReason is one reason.
type SkippedReason struct {
	Count   int    `json:"count"`
	Include string `json:"how,omitempty"`
}

func skippedOf(s grep.Skipped) Skipped {
	var out Skipped
	for _, n := range s.Notes() {
		if out == nil {
			out = Skipped{}
		}
		out[n.Reason] = SkippedReason{n.Count, n.How}
	}
	return out
}

// text is what a model must know of an answer that is not all there is.
func (s Skipped) text(partial bool) string {
	var b strings.Builder
	if partial {
		b.WriteString("\n[the deadline came first: there may be more; search a smaller part]")
	}
	// Version control directories and links are always there and never meant: not worth a line.
	var notes []string
	for reason, r := range s {
		if reason != "vcs" && reason != "links" && reason != "special" && reason != "deadline" {
			notes = append(notes, fmt.Sprintf("%d %s", r.Count, strings.ReplaceAll(reason, "_", " ")))
		}
	}
	if notes != nil {
		slices.Sort(notes)
		b.WriteString("\n[not searched: " + strings.Join(notes, ", ") + "]")
	}
	return b.String()
}

// searching is what all searches share.
type searching struct {
	fs       *guardfs.FS // under the policy; the index reads through it
	index    *grep.Index // nil unless search_index = "auto"
	excludes string      // path of the user's core.excludesFile
	home     string      // where "~/" leads in a repository's configuration
}

// openSearch readies the index, for this policy and no other.
func (s *Suite) openSearch(user ignore.User) (err error) {
	s.search.excludes, s.search.home = user.ExcludesPath(), user.Home
	if s.cfg.Tools.FS.SearchIndex == "off" {
		return nil
	}
	if s.search.fs, err = guardfs.New(guardfs.Options{Judge: s.policy, Temporaries: s.engine.Temporaries()}); err != nil {
		return fmt.Errorf("opening the tree for the index: %w", err)
	}
	s.search.index = grep.NewIndex(grep.IndexOptions{Open: grep.GuardedOpen(s.search.fs), Watch: grep.GuardedWatch(s.search.fs)})
	return nil
}

func (s *searching) close() error {
	if s.fs == nil {
		return nil
	}
	return errors.Join(s.index.Close(), s.fs.Close())
}

// gitExcludes reads the user's own ignore rules. They lie outside the tree and are the user's, not the model's, to choose: no
// policy is asked, and nothing of them is told.
func (s *Suite) gitExcludes() []byte {
	if s.search.excludes == "" {
		return nil
	}
	b, err := readWhole(s.free, s.search.excludes, ignore.MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.logger.Warn("the user's git excludes do not hold", "err", err)
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

// searchRoot is the path of a search, workspace_root when none is given.
func (s *Suite) searchRoot(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if root := s.cfg.Tools.FS.WorkspaceRoot; root != "" {
		return root, nil
	}
	return "", bad("send path, an absolute directory, or have workspace_root configured", "no path is given and there is no workspace_root")
}

// walk opens the root of a search, a directory or a single file, under the
// search deadline. The deadline is not an error: the search ends with what it
// has and says so.
func (s *Suite) walk(ctx context.Context, c *engine.Call, root string, use func(context.Context, grep.Walk) error) error {
	return s.engine.View(ctx, c, engine.View{
		Path: root, Access: guardfs.Walk,
		Look: func(ctx context.Context, h *guardfs.Handle) (*engine.Sight, error) {
			if wait := time.Duration(s.cfg.Tools.FS.SearchDeadline); wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
			}
			w := grep.Walk{NoIgnore: !s.cfg.Tools.FS.RespectGitignore}
			if !w.NoIgnore {
				w.Excludes, w.Home = s.gitExcludes(), s.search.home
			}
			if h.Object().Info.Kind == guardfs.KindDir {
				d, err := h.Dir()
				if err != nil {
					return nil, err
				}
				defer d.Close()
				w.Dir, w.Spelled = grep.Guarded(d), path.Clean(root)
				// Of a directory that only may lead to something allowed it is told that it is there if it does.
				if denied := s.policy.Judge(h.Object(), guardfs.Look); denied != nil && !grep.Any(ctx, w) {
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
