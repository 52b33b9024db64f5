package tools

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"moltisfs/grep"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// GlobArgs is what a model may say to Glob.
type GlobArgs struct {
	Pattern string  `json:"pattern" form:"list" offer:"*" doc:"like **/*.rs or *.go,!*_test.go; without a slash it matches at any depth"`
	Path    *string `json:"path,omitempty" doc:"absolute directory; default: the workspace"`
	Limit   *int    `json:"limit,omitempty" min:"1" max:"100000" default:"1000"`
	Offset  *int    `json:"offset,omitempty" min:"0" doc:"skip so many; next_offset of the answer"`
}

func (a *GlobArgs) target() string { return value(a.Path) }

func (a *GlobArgs) asked() engine.Asked {
	return engine.Asked{Pattern: a.Pattern, Window: numbers("offset", a.Offset, "limit", a.Limit)}
}

// Glob is the payload of kind "glob".
type Glob struct {
	Paths     []string `json:"paths"`
	Truncated bool     `json:"truncated"`
	Root      string   `json:"root"`
	// Total is how many files match, shown or not; a lower bound when Partial.
	Total       int       `json:"total"`
	SizeLimited bool      `json:"size_limited,omitempty"` // one answer holds no more, whatever limit says
	NextOffset  int       `json:"next_offset,omitempty"`
	Partial     bool      `json:"partial,omitempty"` // the deadline ended the walk
	Skipped     Skipped   `json:"skipped,omitempty"`
	OddNames    []string  `json:"odd_names,omitempty"` // some of Paths that are not what they seem
	Note        string    `json:"note,omitempty"`
	Next        *NextCall `json:"next,omitempty"` // nothing was found: a call that finds something

	link string // a symbolic link that fits the pattern: its path from Root
}

func (*Glob) inText() []string { return []string{"paths"} }

func (g *Glob) brief() (Payload, []string) {
	out := *g
	out.Paths = []string{}
	return &out, g.inText()
}

func (*Glob) Kind() string { return "glob" }
func (*Glob) payload()     {}

// Text is a path a line, newest first, below the root that it names once.
func (g *Glob) Text() string {
	var b strings.Builder
	switch {
	case len(g.Paths) == 0 && g.Total > 0:
		fmt.Fprintf(&b, "No files at this offset, of %d", g.Total)
	case len(g.Paths) == 0:
		b.WriteString(noneFound("files", g.Partial))
	case len(g.Paths) == 1:
		b.WriteString(g.Paths[0])
	default:
		b.WriteString("In " + g.Root + ":")
		for _, p := range g.Paths {
			b.WriteString("\n" + relative(g.Root, p))
		}
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
	return b.String() + oddText(g.OddNames) + g.Skipped.text(g.Partial, g.Total > 0)
}

var globTool = define[GlobArgs](Tool{
	Name:  "Glob",
	Title: "Find files by name",
	Description: "Files matching a glob, newest first. Hidden files count; version-control " +
		"directories and ignored files don't.",
	Effect:  Reads,
	Search:  dialect.Search{Hint: "find files by name or pattern, list a directory"},
	OwnTime: true,
	aliases: []args.Alias{
		{Theirs: "glob globpattern query filepattern filenamepattern name filename namepattern searchpattern " +
			"include includepattern includes search searchterm q match filter patterns globs filequery " +
			"searchquery", Ours: "pattern"},
		{Theirs: dirNames, Ours: "path"},
		{Theirs: notNames, Ours: "pattern", Turn: args.Exclude},
		{Theirs: maxNames + " headlimit", Ours: "limit"},
		{Theirs: "skip", Ours: "offset"},
		{Theirs: "ignorecase caseinsensitive nocase icase", Ours: "pattern", Turn: args.AnyCase},
		{Theirs: "casesensitive matchcase", Ours: "pattern", Turn: args.MatchCase},
		{Theirs: "recursive r", Says: "true", Hint: "** crosses directories, * does not"},
		{Theirs: "type kind filetype", Says: "f file files", Hint: "Glob lists files"},
		{Theirs: "sort sortby orderby", Says: "mtime modified time date newest", Hint: "Glob lists the newest first"},
		{Theirs: hiddenName, Says: "true", Hint: "hidden files are listed"},
		{Theirs: gitNames, Says: "true", Hint: "ignored files are listed where their directory is given as path"},
		{Theirs: noGitNames, Says: "false", Hint: "ignored files are listed where their directory is given as path"},
		{Theirs: verbNames, Says: "glob find search list", Hint: "leave it out"},
	},
	answers: []Payload{&Glob{}},
}, runGlob, func(path string, _ bool) GlobArgs { return GlobArgs{Pattern: "**", Path: &path} })

func runGlob(ctx context.Context, s *Suite, c *engine.Call, a *GlobArgs) (Payload, error) {
	start, sent := time.Now(), *a
	out, err := s.list(ctx, c, a, false)
	if err != nil {
		return nil, err
	}
	if out.Total == 0 && !out.Partial {
		ctx, cancel := tries(ctx, time.Since(start))
		defer cancel()
		s.otherGlobs(ctx, c, &sent, out)
	}
	if err := s.notSearched(ctx, c, out.Root, &out.Skipped); err != nil {
		return nil, err
	}
	out.Skipped = out.Skipped.whyNone(out.Total)
	out.OddNames = engine.OddNames(out.Root, slices.Values(out.Paths))
	return out, nil
}

// list is one listing, and changes a; all says that ignore rules do not hold.
func (s *Suite) list(ctx context.Context, c *engine.Call, a *GlobArgs, all bool) (*Glob, error) {
	if err := s.reroot(a); err != nil {
		return nil, err
	}
	root, err := s.searchRoot(value(a.Path))
	if err != nil {
		return nil, err
	}
	q := grep.GlobQuery{Pattern: a.Pattern, Limit: 1000, Offset: value(a.Offset)}
	if a.Limit != nil {
		q.Limit = *a.Limit
	}
	out := &Glob{Paths: []string{}}
	err = s.engine.Walk(ctx, c, root, func(ctx context.Context, w grep.Walk) error {
		if w.File != nil {
			return notADirectory(a, w.Name)
		}
		w.NoIgnore = w.NoIgnore || all
		r, err := grep.Files(ctx, w, q)
		if err != nil {
			return err
		}
		fit := fitting(len(r.Files), maxAnswer, func(i int) int { return jsonSize(r.Files[i].Path) })
		fit = fitting(fit, s.page.Bytes, func(i int) int { return shownBytes(r.Root, r.Files[i].Path) })
		out.SizeLimited = fit < len(r.Files)
		for _, f := range r.Files[:fit] {
			out.Paths = append(out.Paths, f.Path)
		}
		out.Root, out.Total, out.Partial, out.Skipped = r.Root, r.Total, r.Partial, skippedOf(r.Skipped)
		out.Truncated, out.link = q.Offset+len(out.Paths) < r.Total, r.Link
		return nil
	})
	if err != nil {
		return nil, err
	}
	if out.Truncated {
		out.NextOffset = q.Offset + len(out.Paths)
	}
	return out, nil
}

const wild = "*?[{" // what makes a glob of a name

// reroot changes a to look where its pattern says. A pattern that is absolute, or climbs out of
// path, begins at the directory that it names before its first wildcard. As in every path, ".." is
// taken by name; the policy says what may be looked at.
func (s *Suite) reroot(a *GlobArgs) error {
	if globs := grep.SplitGlobs(a.Pattern, ","); len(globs) > 1 {
		return s.rerootList(a, globs)
	}
	not := ""
	pattern, ok := strings.CutPrefix(a.Pattern, "!")
	if ok {
		not = "!"
	}
	lead, rest := literalLead(pattern)
	root := cmp.Or(value(a.Path), s.cfg.WorkspaceRoot)
	switch {
	case path.Clean(pattern) == root:
		a.Pattern = not + "."
		return nil
	case lead != "" && path.IsAbs(pattern):
		root = path.Clean(lead)
	case path.IsAbs(root) && slices.Contains(strings.Split(lead, "/"), ".."):
		root = path.Join(root, lead)
	default:
		return nil
	}
	a.Path, a.Pattern = &root, not+"./"+rest
	return nil
}

// rerootList is for a list with absolute globs outside path: it is looked for in the directory that
// holds all they name. Relative ones beside them are refused: they speak of another directory, and
// one search has one. An exclusion of what lies elsewhere is left out.
func (s *Suite) rerootList(a *GlobArgs, globs []string) error {
	root := path.Clean(cmp.Or(value(a.Path), s.cfg.WorkspaceRoot))
	base, changed := "", false
	var relative, outside []string
	for i, g := range globs {
		pattern, not := strings.CutPrefix(g, "!")
		lead, rest := literalLead(pattern)
		if path.IsAbs(root) && !strings.ContainsAny(root, wild+`\`) && !path.IsAbs(pattern) &&
			slices.Contains(strings.Split(lead, "/"), "..") {
			lead = strings.TrimSuffix(path.Join(root, lead), "/") + "/"
			pattern, changed = lead+rest, true
			if globs[i] = pattern; not {
				globs[i] = "!" + pattern
			}
		}
		switch lead = path.Clean(lead); {
		case !path.IsAbs(pattern):
			if !not || strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
				relative = append(relative, g)
			}
			continue
		case not:
			continue
		case path.Clean(pattern) != root && !within(lead, root):
			outside = append(outside, g)
		}
		if base == "" {
			base = lead
		}
		for !within(lead, base) {
			base = path.Dir(base)
		}
	}
	switch {
	case len(outside) == 0:
		base = root
	case len(relative) > 0:
		return &Refusal{
			Reason: KindBadRequest, FilePath: value(a.Path),
			Message: fmt.Sprintf("the list speaks of several directories: %s is looked for in %s, %s is not",
				quote(strings.Join(relative, ",")), quote(root), quote(strings.Join(outside, ","))),
			Hint: `Call Glob once for each directory. A comma within a name is written "\,".`,
		}
	default:
		a.Path = &base
	}
	kept := slices.DeleteFunc(slices.Clone(globs), func(g string) bool {
		pattern, not := strings.CutPrefix(g, "!")
		lead, rest := literalLead(pattern)
		if !strings.ContainsAny(rest, wild+`\`) {
			lead = pattern
		}
		lead = path.Clean(lead)
		return not && path.IsAbs(pattern) && !within(lead, base) && !within(base, lead)
	})
	if changed || len(kept) < len(globs) {
		a.Pattern = strings.Join(kept, ",")
	}
	return nil
}

// within says whether clean path p is dir or lies below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// literalLead cuts a glob in two: the directories that it names before its first wildcard, with
// their slash, and the rest.
func literalLead(pattern string) (lead, rest string) {
	parts := strings.Split(pattern, "/")
	k := 0
	for k < len(parts)-1 && !strings.ContainsAny(parts[k], wild+`\`) {
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
	asked := cmp.Or(value(a.Path), file)
	return &Refusal{
		Reason: KindBadRequest, FilePath: asked, Message: quote(asked) + " is a file, not a directory",
		Hint: "Give its directory as path.",
		Next: &NextCall{"Glob", map[string]any{"pattern": a.Pattern, "path": path.Dir(file)}},
	}
}
