package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"moltisfs/grep"
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
		if reason != "vcs" && reason != "links" && reason != "special" {
			notes = append(notes, fmt.Sprintf("%d %s", r.Count, strings.ReplaceAll(reason, "_", " ")))
		}
	}
	if notes != nil {
		slices.Sort(notes)
		b.WriteString("\n[not searched: " + strings.Join(notes, ", ") + "]")
	}
	return b.String()
}

// searchRoot is the path of a search, workspace_root when none is given.
func (s *Suite) searchRoot(path string) (string, error) {
	if path != "" {
		return path, nil
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
		Path: root, Access: guardfs.Read,
		Look: func(ctx context.Context, h *guardfs.Handle) (*engine.Sight, error) {
			if wait := time.Duration(s.cfg.Tools.FS.SearchDeadline); wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
			}
			w := grep.Walk{NoIgnore: !s.cfg.Tools.FS.RespectGitignore}
			if h.Object().Info.Kind == guardfs.KindDir {
				d, err := h.Dir()
				if err != nil {
					return nil, err
				}
				defer d.Close()
				w.Dir = grep.Guarded(d)
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
