package tools

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"moltisfs/grep"
	"moltisfs/internal/engine"
)

// GlobArgs is what a model may say to Glob.
type GlobArgs struct {
	Pattern string  `json:"pattern" doc:"like **/*.rs or *.go,!*_test.go; without a slash it matches at any depth"`
	Path    *string `json:"path,omitempty" doc:"absolute directory"`
	Limit   *int    `json:"limit,omitempty" min:"1" max:"100000" default:"1000"`
	Offset  *int    `json:"offset,omitempty" min:"0"`
}

func (a *GlobArgs) target() string { return value(a.Path) }

// Glob is the payload of kind "glob".
type Glob struct {
	Paths     []string `json:"paths"`
	Truncated bool     `json:"truncated"`
	Root      string   `json:"root"`
	// Total is how many files match, shown or not; a lower bound when Partial.
	Total       int     `json:"total"`
	SizeLimited bool    `json:"size_limited,omitempty"` // one answer holds no more, whatever limit says
	NextOffset  int     `json:"next_offset,omitempty"`
	Partial     bool    `json:"partial,omitempty"` // the deadline ended the walk
	Skipped     Skipped `json:"skipped,omitempty"`
	Note        string  `json:"note,omitempty"` // when nothing was found: what may have been meant
}

func (*Glob) Kind() string { return "glob" }
func (*Glob) payload()     {}

// Text is a path a line, newest first.
func (g *Glob) Text() string {
	var b strings.Builder
	switch {
	case len(g.Paths) == 0 && g.Total > 0:
		fmt.Fprintf(&b, "No files at this offset, of %d", g.Total)
	case len(g.Paths) == 0:
		b.WriteString("No files found")
	default:
		b.WriteString(strings.Join(g.Paths, "\n"))
	}
	if g.Truncated {
		why := ""
		if g.SizeLimited {
			why = ", as many as one answer holds"
		}
		fmt.Fprintf(&b, "\n[%d of %d files%s; go on with offset %d]", len(g.Paths), g.Total, why, g.NextOffset)
	}
	if g.Note != "" {
		b.WriteString("\n[" + g.Note + "]")
	}
	return b.String() + g.Skipped.text(g.Partial)
}

var globTool = define[GlobArgs](Tool{
	Name:        "Glob",
	Title:       "Find files by name",
	Description: "Files matching a glob, newest first. Hidden files count; version-control directories and ignored files don't.",
	Effect:      Reads,
}, runGlob)

func runGlob(ctx context.Context, s *Suite, c *engine.Call, a *GlobArgs) (Payload, error) {
	sent := a.Pattern
	s.reroot(a)
	root, err := s.searchRoot(value(a.Path))
	if err != nil {
		return nil, err
	}
	q := grep.GlobQuery{Pattern: a.Pattern, Limit: 1000, Offset: value(a.Offset)}
	if a.Limit != nil {
		q.Limit = *a.Limit
	}
	out := &Glob{Paths: []string{}}
	err = s.walk(ctx, c, root, func(ctx context.Context, w grep.Walk) error {
		if w.File != nil {
			return notADirectory(a, w.Name)
		}
		r, err := grep.Files(ctx, w, q)
		if err != nil {
			return err
		}
		fit := fitting(len(r.Files), func(i int) int { return jsonSize(r.Files[i].Path) })
		out.SizeLimited = fit < len(r.Files)
		for _, f := range r.Files[:fit] {
			out.Paths = append(out.Paths, f.Path)
		}
		out.Root, out.Total, out.Partial, out.Skipped = r.Root, r.Total, r.Partial, skippedOf(r.Skipped)
		out.Truncated = q.Offset+len(out.Paths) < r.Total
		return nil
	})
	if err != nil {
		return nil, err
	}
	if out.Total == 0 && !out.Partial {
		out.Note = nothingNote(sent)
	}
	if out.Truncated {
		out.NextOffset = q.Offset + len(out.Paths)
	}
	return out, nil
}

// nothingNote says why a pattern may have found nothing, where it reads like another one.
func nothingNote(pattern string) string {
	const wild = "*?[{"
	globs := grep.SplitGlobs(pattern, " ")
	switch {
	case len(globs) > 1 && !slices.ContainsFunc(globs, func(g string) bool { return !strings.ContainsAny(g, wild) }):
		return "a blank is part of the name; for several globs send " + strings.Join(globs, ",")
	case pattern != "" && !strings.ContainsAny(pattern, wild+"!,") && !strings.HasSuffix(pattern, "/"):
		return "only files are listed; for what a directory of that name holds send " + pattern + "/**"
	}
	return ""
}

// reroot changes a to look where its pattern says: a pattern that is absolute, or climbs out of path, begins at the directory that it
// names before its first wildcard. As in every path, ".." is taken by name, and what may be looked at is for the policy to say.
func (s *Suite) reroot(a *GlobArgs) {
	if globs := grep.SplitGlobs(a.Pattern, ","); len(globs) > 1 {
		s.rerootList(a, globs)
		return
	}
	not := ""
	pattern, ok := strings.CutPrefix(a.Pattern, "!")
	if ok {
		not = "!"
	}
	lead, rest := literalLead(pattern)
	root := or(value(a.Path), s.cfg.Tools.FS.WorkspaceRoot)
	switch {
	case path.Clean(pattern) == root:
		a.Pattern = not + "."
		return
	case lead != "" && path.IsAbs(pattern):
		root = path.Clean(lead)
	case path.IsAbs(root) && slices.Contains(strings.Split(lead, "/"), ".."):
		root = path.Join(root, lead)
	default:
		return
	}
	a.Path, a.Pattern = &root, not+"./"+rest
}

// rerootList has a list with absolute globs outside path looked for in the directory that holds all they name.
func (s *Suite) rerootList(a *GlobArgs, globs []string) {
	root := path.Clean(or(value(a.Path), s.cfg.Tools.FS.WorkspaceRoot))
	common, outside := "", false
	for _, g := range globs {
		if !path.IsAbs(g) {
			continue
		}
		lead, _ := literalLead(g)
		if lead = path.Clean(lead); common == "" {
			common = lead
		}
		for !within(lead, common) {
			common = path.Dir(common)
		}
		outside = outside || path.Clean(g) != root && !within(lead, root)
	}
	if outside {
		a.Path = &common
	}
}

// within says whether clean path p is dir or lies below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// literalLead cuts a glob into the directories that it names before its first wildcard, with their slash, and the rest.
func literalLead(pattern string) (lead, rest string) {
	parts := strings.Split(pattern, "/")
	k := 0
	for k < len(parts)-1 && !strings.ContainsAny(parts[k], `*?[{\`) {
		k++
	}
	if k > 0 {
		lead = strings.Join(parts[:k], "/") + "/"
	}
	if parts[k] == ".." {
		lead, parts[k] = lead+"..", "" // "a/.." ends in a directory, not in a file
	}
	return lead, strings.Join(parts[k:], "/")
}

func notADirectory(a *GlobArgs, file string) *Refusal {
	return &Refusal{
		Reason: KindBadRequest, FilePath: value(a.Path), Message: quote(value(a.Path)) + " is a file, not a directory",
		Hint: "Give its directory as path.", Next: &NextCall{"Glob", map[string]any{"pattern": a.Pattern, "path": path.Dir(file)}},
	}
}
