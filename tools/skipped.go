package tools

import (
	"fmt"
	"slices"
	"strings"

	"moltisfs/grep"
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

// text is what a model must know of an answer that is not all there is. That ignored and binary files
// are left out is as it should be: it matters where nothing was found.
func (s Skipped) text(partial, found bool) string {
	var b strings.Builder
	if partial {
		b.WriteString("\n[the deadline came first: there may be more; search a smaller part]")
	}
	// Version control directories and links are always there and never meant: not worth a line.
	var notes []string
	for reason, r := range s {
		switch reason {
		case "vcs", "links", "special", "deadline":
			continue
		case "ignored", "binary":
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
