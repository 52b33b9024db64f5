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
	"moltisfs/internal/alternatives"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
)

// GlobArgs are the arguments of Glob.
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

func (g *Glob) brief() (Payload, []string) {
	out := *g
	out.Paths = []string{}
	return &out, []string{"paths"}
}

func (*Glob) Kind() string     { return "glob" }
func (*Glob) payload()         {}
func (g *Glob) noted() *string { return &g.Note }

// Text is a path a line, newest first, below the root that it names once.
func (g *Glob) Text() string {
	var b lines
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
	b.add(g.Note != "", "\n[%s]", g.Note)
	return b.String() + oddText(g.OddNames) + g.Skipped.text(g.Partial, g.Total > 0)
}

var globTool = define[GlobArgs](toolRow{
	Name:  "Glob",
	Title: "Find files by name",
	Description: "Files matching a glob, newest first. Hidden files count; version-control " +
		"directories and ignored files don't.",
	Search:  dialect.Search{Hint: "find files by name or pattern, list a directory"},
	OwnTime: true,
	aliases: []args.Alias{
		{Theirs: "glob globpattern query filepattern filenamepattern name filename namepattern searchpattern " +
			"include includepattern includes search searchterm q match filter patterns globs filequery " +
			"searchquery", Ours: "pattern"},
		{Theirs: dirNames, Ours: "path"},
		{Theirs: notNames, Hint: "write it into pattern, as *.go,!*_test.go"},
		{Theirs: maxNames + " headlimit", Ours: "limit"},
		{Theirs: "skip", Ours: "offset"},
		{Theirs: "ignorecase caseinsensitive nocase icase", Says: "false", Hint: "write both cases, as *.[gG][oO]"},
		{Theirs: "casesensitive matchcase", Says: "true", Hint: "write both cases, as *.[gG][oO]"},
		{Theirs: "recursive r", Says: "true", Hint: "** crosses directories, * does not"},
		{Theirs: "type kind filetype", Says: "f file files", Hint: "Glob lists files"},
		{Theirs: "sort sortby orderby", Says: "mtime modified time date newest", Hint: "Glob lists the newest first"},
		{Theirs: hiddenName, Says: "true", Hint: "hidden files are listed"},
		{Theirs: gitNames, Says: "true", Hint: "ignored files are listed where their directory is given as path"},
		{Theirs: noGitNames, Says: "false", Hint: "ignored files are listed where their directory is given as path"},
		{Theirs: verbNames, Says: "glob find search list", Hint: "leave it out"},
	},
	refuses: map[engine.Cause]func(*about, *Refusal){refusal.NoDirectory: func(a *about, r *Refusal) {
		r.FilePath = a.Path
		r.Next = &NextCall{"Glob", map[string]any{"pattern": a.args.(*GlobArgs).Pattern, "path": path.Dir(a.Path)}}
	}},
}, runGlob)

func runGlob(ctx context.Context, s *Suite, c *engine.Call, a *GlobArgs) (Payload, error) {
	start, sent := time.Now(), *a
	out, err := s.list(ctx, c, a, false)
	if err != nil {
		return nil, err
	}
	if out.Total == 0 && !out.Partial {
		ctx, cancel := tries(ctx, time.Since(start))
		defer cancel()
		s.otherGlob(ctx, c, &sent, out)
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
	err = c.Walk(ctx, root, func(ctx context.Context, w grep.Walk) error {
		if w.File != nil {
			return engine.Refuse(refusal.NoDirectory, cmp.Or(value(a.Path), w.Name), nil)
		}
		w.NoIgnore = w.NoIgnore || all
		r, err := grep.Files(ctx, w, q)
		if err != nil {
			return err
		}
		fit := fitting(len(r.Files), maxAnswer, func(i int) int { return jsonSize(r.Files[i].Path) })
		all := make([]string, fit)
		for i, f := range r.Files[:fit] {
			all[i] = f.Path
		}
		out.Root, out.Total, out.Partial, out.Skipped, out.link = r.Root, r.Total, r.Partial, skippedOf(r.Skipped), r.Link
		show := func(k int) string {
			out.Paths, out.SizeLimited, out.NextOffset = all[:k], k < len(r.Files), q.Offset+k
			if out.Truncated = out.NextOffset < r.Total; !out.Truncated {
				out.NextOffset = 0
			}
			return out.Text()
		}
		if s.page.Over(show(fit)) > 0 {
			show(max(1, s.page.Fit(fit, show)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const wild = "*?[{" // a name that has one of them is a glob

// reroot changes a to look where its pattern says. A pattern that is absolute, or climbs out of
// path, begins at the directory that it names before its first wildcard. As in every path, ".." is
// taken by name; the policy says what may be looked at.
func (s *Suite) reroot(a *GlobArgs) error {
	if globs := grep.SplitGlobs(a.Pattern, ","); len(globs) > 1 {
		return s.oneRoot(a, globs)
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

// oneRoot refuses a list of globs some of which lie outside of path: one search has one directory.
func (s *Suite) oneRoot(a *GlobArgs, globs []string) error {
	root := path.Clean(cmp.Or(value(a.Path), s.cfg.WorkspaceRoot))
	var outside []string
	for _, g := range globs {
		pattern := strings.TrimPrefix(g, "!")
		lead, _ := literalLead(pattern)
		if path.IsAbs(pattern) && path.Clean(pattern) != root && !within(path.Clean(lead), root) ||
			slices.Contains(strings.Split(lead, "/"), "..") {
			outside = append(outside, g)
		}
	}
	if len(outside) == 0 {
		return nil
	}
	return engine.Refuse(refusal.SeveralDirectories, "", refusal.GlobFacts{Root: quote(root), Outside: quote(strings.Join(outside, ","))})
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

// Skipped counts by reason the entries that a walk left out, and tells how to have them included.
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
	paths, err := c.Unsaved(ctx, root)
	if len(paths) > 0 {
		if *sk == nil {
			*sk = Skipped{}
		}
		(*sk)[unsaved] = SkippedReason{len(paths), "read them, or search each as path: " +
			strings.Join(paths, ", ")}
	}
	return err
}

// text tells a model that an answer is incomplete, and why. That ignored files and links are left
// out is as it should be: it matters where nothing was found.
func (s Skipped) text(partial, found bool) string {
	var b lines
	late, ok := s["late_documents"]
	b.add(partial && (!ok || s["deadline"].Count > 0), "\n[the deadline came first: there may be more; search a smaller part]")
	b.add(ok, "\n[%s not searched before the deadline; search again: the texts that were made are kept]", plural(late.Count, "document"))
	// Version control directories are always there and never meant: not worth a line.
	var notes []string
	if r, ok := s[unsaved]; ok {
		fmt.Fprintf(&b, "\n[unsaved text of %s in the user's editor was not searched. %s]",
			plural(r.Count, "file"), r.Include)
	}
	for reason, r := range s {
		switch reason {
		case unsaved:
			continue
		case "vcs", "special", "deadline", "late_documents":
			continue
		case "ignored", "links":
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

func oddText(names []string) string {
	if names == nil {
		return ""
	}
	return "\n[names that are not what they seem: " + strings.Join(names, ", ") + "]"
}

// listed are the paths of an answer, as often as it has them.
func (g *Grep) listed(use func(string) bool) {
	for _, p := range g.Files {
		if !use(p) {
			return
		}
	}
	for i := range g.Counts {
		if !use(g.Counts[i].Path) {
			return
		}
	}
	for i := range g.Matches {
		if !use(g.Matches[i].Path) {
			return
		}
	}
}

// maxAnswer is about how many bytes of JSON the rows or files of one answer take.
const maxAnswer = 4_000_000

// fitting gives how many of n entries fit into most bytes, where cost(i) is the size of entry i. The first always
// counts as fitting.
func fitting(n, most int, cost func(i int) int) int {
	sum := 0
	for i := range n {
		if sum += cost(i); sum > most && i > 0 {
			return i
		}
	}
	return n
}

// jsonSize gives about the bytes that s takes in JSON.
func jsonSize(s string) int {
	return dialect.Page{JSON: true}.Size(s) + len(`"",`)
}

// relative is a path below root without it.
func relative(root, path string) string {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
	if !ok || root == "" {
		return path
	}
	return rest
}

// tries bounds the look for another reading of a search, which itself took so long: a fortieth of that, or a quarter of
// patience, so that a long search that finds nothing costs little more than one that does.
func tries(ctx context.Context, took time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(patience/4, took/40))
}

// commonDir is the deepest directory that all the paths lie in.
func commonDir(paths []string) string {
	dir := path.Dir(paths[0])
	for _, p := range paths {
		for !within(p, dir) {
			dir = path.Dir(dir)
		}
	}
	return dir
}

// otherGlob looks for a call that finds files where a found none, and puts it into out.
func (s *Suite) otherGlob(ctx context.Context, c *engine.Call, a *GlobArgs, out *Glob) {
	try := func(as string, change func(*GlobArgs)) bool {
		b := GlobArgs{Pattern: a.Pattern, Path: a.Path, Limit: a.Limit}
		if change(&b); ctx.Err() != nil {
			return false
		}
		sent := b
		r, err := s.list(ctx, c, &b, false)
		if err != nil || r.Total == 0 {
			return false
		}
		n := plural(r.Total, "file")
		if r.Partial {
			n = "at least " + n
		}
		out.Next, out.Note = again("Glob", &sent, nil), joined(fmt.Sprintf("%s: %s", as, n), out.Note)
		return true
	}
	with := func(g string) bool {
		return try("pattern "+g, func(b *GlobArgs) { b.Pattern = g })
	}
	if out.link != "" {
		out.Note = joined(edit.ShownPath(path.Join(out.Root, out.link))+" is a symbolic link, and no search follows one", out.Note)
	}
	for _, g := range alternatives.Globs(a.Pattern) {
		if with(g) {
			if rival := alternatives.Rival(a.Pattern, g); rival != "" && with(rival) {
				out.Next = nil // which of the two is meant can't be told
			}
			return
		}
	}
	if out.Skipped["ignored"].Count > 0 && ctx.Err() == nil {
		b := GlobArgs{Pattern: a.Pattern, Path: a.Path}
		if r, err := s.list(ctx, c, &b, true); err == nil && len(r.Paths) > 0 {
			in := commonDir(r.Paths)
			name := path.Base(a.Pattern)
			if try("what ignore rules leave out, path "+in+" and pattern "+name,
				func(b *GlobArgs) { b.Path, b.Pattern = &in, name }) {
				return
			}
		}
	}
	if root := s.cfg.WorkspaceRoot; root != "" && value(a.Path) != "" && value(a.Path) != root &&
		!path.IsAbs(a.Pattern) {
		try("in the whole workspace", func(b *GlobArgs) { b.Path = nil })
		out.Next = nil // it was not asked for
	}
}

// whyNone drops how to have skipped entries included if something was found: it matters where nothing was.
func (s Skipped) whyNone(found int) Skipped {
	if found > 0 {
		for reason, r := range s {
			if reason != unsaved {
				s[reason] = SkippedReason{Count: r.Count}
			}
		}
	}
	return s
}
