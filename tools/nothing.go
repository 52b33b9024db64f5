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
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/readings"
)

// A search that finds nothing is tried again in other readings, for a moment: as literal text, in
// any letter case, as another dialect has it. The first that finds something is offered.

// tries is the time for that, of a search that took so long.
func tries(ctx context.Context, took time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(patience, took/10))
}

// others looks for a call that finds something where a found nothing, and puts it into out.
func (s *Suite) others(ctx context.Context, c *engine.Call, a *GrepArgs, out *Grep) {
	plain := *a
	plain.Offset, plain.HeadLimit = nil, nil
	try := func(as string, change func(*GrepArgs)) bool {
		b := plain
		if change(&b); ctx.Err() != nil {
			return false
		}
		r, err := s.search(ctx, c, &b, false)
		if err != nil || r.Total.Files == 0 {
			return false
		}
		sent := *a
		change(&sent)
		sent.Offset = nil
		out.Next = again("Grep", &sent, nil)
		out.Note = joined(fmt.Sprintf("%s: %s", as, r.howMany()), out.Note)
		return true
	}
	if g := value(a.Glob); out.scanned == 0 && g != "" {
		with := func(glob string) bool {
			return try("glob "+glob, func(b *GrepArgs) { b.Glob = &glob })
		}
		for _, other := range append(readings.Globs(g), "**/"+g) {
			if with(other) {
				if rival := readings.Rival(g, other); rival != "" && with(rival) {
					out.Next = nil // which of the two is meant can't be told
				}
				return
			}
		}
	}
	for _, r := range readings.Patterns(a.Pattern, value(a.IgnoreCase), value(a.Multiline)) {
		as := "as " + r.As + ", pattern " + r.Text + flagged(r)
		if try(as, func(b *GrepArgs) { reread(b, r) }) {
			return
		}
	}
	if s.ignoredToo(ctx, c, &plain, out) {
		return
	}
	if g := value(a.Glob); g+value(a.Type) != "" && !strings.Contains(g, "!") {
		try("without glob and type", func(b *GrepArgs) { b.Glob, b.Type = nil, nil })
		out.Next = nil // other files were not asked for
	}
}

func flagged(r readings.Pattern) (out string) {
	if r.IgnoreCase {
		out += " with -i"
	}
	if r.Multiline {
		out += " with multiline"
	}
	return out
}

func reread(a *GrepArgs, r readings.Pattern) {
	yes := true
	if a.Pattern = r.Text; r.IgnoreCase {
		a.IgnoreCase = &yes
	}
	if r.Multiline {
		a.Multiline = &yes
	}
}

// howMany is what a search found, in a word.
func (g *Grep) howMany() string {
	n := plural(g.Total.Files, "file")
	if g.Mode == "content" && g.Total.Lines > 0 {
		n = plural(g.Total.Lines, "line") + " in " + n
	}
	if g.Partial {
		return "at least " + n
	}
	return n
}

// ignoredToo looks into what ignore rules keep out of searches.
func (s *Suite) ignoredToo(ctx context.Context, c *engine.Call, a *GrepArgs, out *Grep) bool {
	if out.Skipped["ignored"].Count == 0 || ctx.Err() != nil {
		return false
	}
	all := *a
	mode := "files_with_matches"
	all.OutputMode = &mode
	r, err := s.search(ctx, c, &all, true)
	if err != nil || len(r.Files) == 0 {
		return false
	}
	for _, in := range []string{commonDir(r.Files), r.Files[0]} {
		b := *a
		if b.Path = &in; in == r.Root {
			continue
		}
		if hit, err := s.search(ctx, c, &b, false); err == nil && hit.Total.Files > 0 {
			out.Next = again("Grep", &b, nil)
			out.Note = joined(fmt.Sprintf("it is in %s that ignore rules leave out, path %s",
				plural(r.Total.Files, "file"), in), out.Note)
			return true
		}
	}
	return false
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

// otherGlobs looks for a call that finds files where a found none, and puts it into out.
func (s *Suite) otherGlobs(ctx context.Context, c *engine.Call, a *GlobArgs, out *Glob) {
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
	if s.throughLink(ctx, c, a, out) {
		return
	}
	for _, g := range readings.Globs(a.Pattern) {
		if with(g) {
			if rival := readings.Rival(a.Pattern, g); rival != "" && with(rival) {
				out.Next = nil // which of the two is meant can't be told
			}
			return
		}
	}
	if value(a.Path) == "" {
		for _, g := range readings.GlobsBelow(a.Pattern, s.cfg.WorkspaceRoot) {
			if with(g) {
				return
			}
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

// throughLink tells of a symbolic link that fits the pattern of a, or its beginning, and offers the
// call that goes there, if there is one.
func (s *Suite) throughLink(ctx context.Context, c *engine.Call, a *GlobArgs, out *Glob) bool {
	parts, r := strings.Split(a.Pattern, "/"), out
	if len(grep.SplitGlobs(a.Pattern, ",")) > 1 {
		parts = []string{a.Pattern}
	}
	for n := len(parts); n > 0 && ctx.Err() == nil; n-- {
		if strings.Trim(parts[n-1], "*?") == "" {
			continue // any name fits it
		}
		rest := strings.Join(parts[n:], "/")
		if n < len(parts) {
			b := GlobArgs{Path: a.Path, Pattern: strings.Join(parts[:n], "/")}
			if r, _ = s.list(ctx, c, &b, false); r == nil {
				return false
			}
		}
		if r.link == "" {
			continue
		}
		at := path.Join(r.Root, r.link)
		out.Note = joined(edit.ShownPath(at)+" is a symbolic link, and no search follows one", out.Note)
		switch o, ok := s.engine.There(c, at); {
		case ok && o.Info.Kind == guardfs.KindFile && rest == "":
			out.Next = again("Read", &ReadArgs{FilePath: at}, nil)
		case ok && o.Info.Kind == guardfs.KindDir:
			b := GlobArgs{Path: &at, Pattern: cmp.Or(rest, "*")}
			next := again("Glob", &b, nil)
			if r, err := s.list(ctx, c, &b, false); err == nil && r.Total > 0 {
				out.Next = next
			}
		}
		return out.Next != nil
	}
	return false
}

// mended is the pattern that finds something in place of one that is no regular expression.
func (a *about) mended(suggest string) (r *readings.Pattern, hits string) {
	args, ok := a.args.(*GrepArgs)
	if !ok || a.call == nil {
		return nil, ""
	}
	ctx, cancel := tries(context.Background(), 0)
	defer cancel()
	all := readings.Patterns(args.Pattern, value(args.IgnoreCase), value(args.Multiline))
	if suggest != "" { // behind the literal text: what was meant as a whole is not a part of it
		at := slices.IndexFunc(all, func(r readings.Pattern) bool { return r.As == "literal text" })
		all = slices.Insert(all, at+1, readings.Pattern{Text: suggest})
	}
	for _, r := range all {
		b := *args
		reread(&b, r)
		b.Offset = nil
		if found, err := a.s.search(ctx, a.call, &b, false); err == nil && found.Total.Files > 0 {
			return &r, found.howMany()
		}
	}
	return nil, ""
}

// whyNone adds to what was skipped how to have it included, which matters where nothing was found.
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
