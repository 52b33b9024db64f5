package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"moltisfs/grep"
	"moltisfs/internal/engine"
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

// noneFound says that nothing was found, and never that there is nothing where not all was searched.
func noneFound(what string, partial bool) string {
	if partial {
		return "No " + what + " found before the deadline"
	}
	return "No " + what + " found"
}

// unsaved are files that were searched as the disk has them.
const unsaved = "unsaved"

// notSearched adds the files of which the user's editor has unsaved text, as far as this session
// has met it.
func (s *Suite) notSearched(ctx context.Context, c *engine.Call, root string, sk *Skipped) error {
	paths, err := s.engine.Unsaved(ctx, c, root)
	if len(paths) > 0 {
		if *sk == nil {
			*sk = Skipped{}
		}
		(*sk)[unsaved] = SkippedReason{len(paths), "Read them, or Grep each as path: " +
			strings.Join(paths, ", ")}
	}
	return err
}

// text is what a model must know of an answer that is not all there is. That ignored files are left
// out is as it should be: it matters where nothing was found.
func (s Skipped) text(partial, found bool) string {
	var b strings.Builder
	if partial {
		b.WriteString("\n[the deadline came first: there may be more; search a smaller part]")
	}
	// Version control directories and links are always there and never meant: not worth a line.
	var notes []string
	if r, ok := s[unsaved]; ok {
		fmt.Fprintf(&b, "\n[unsaved text of %s in the user's editor was not searched. %s]",
			plural(r.Count, "file"), r.Include)
	}
	for reason, r := range s {
		switch reason {
		case unsaved:
			continue
		case "vcs", "links", "special", "deadline":
			continue
		case "ignored":
			if found {
				continue
			}
		}
		notes = append(notes, fmt.Sprintf("%d %s", r.Count, strings.ReplaceAll(reason, "_", " ")))
	}
	if notes != nil {
		slices.Sort(notes)
		b.WriteString("\n[not searched: " + strings.Join(notes, ", ") + "]")
	}
	return b.String()
}

// searchRoot is the path of a search, workspace_root when none is given.
func (s *Suite) searchRoot(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if root := s.cfg.WorkspaceRoot; root != "" {
		return root, nil
	}
	return "", bad("send path, an absolute directory, or have workspace_root configured", "no path "+
		"is given and there is no workspace_root")
}
