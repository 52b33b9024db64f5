package engine

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"moltisfs/grep"
	"moltisfs/grep/ignore"
	"moltisfs/grep/rulefiles"
	"moltisfs/internal/guardfs"
)

// TreeArgs say which entries below a directory are listed.
type TreeArgs struct {
	Path   string
	Depth  int  // how far below Path an entry may lie; 1 is in it, 0 as deep as can be
	Hidden bool // also names that begin with a dot
	// All lists also what ignore rules hide, and the directories of version control systems. Else
	// the rules hold as for a search: if the configuration respects them.
	All bool
}

// maxTreeDepth is the most: so many directories are open at once.
const maxTreeDepth = 200

// ListTree hands over what is below a directory: each directory before what is in it, and the
// entries of one by name. Links are entries, and never followed; other mounts are not entered. What
// is not shown is counted, but for hidden names. An error of use ends it, and is the answer;
// fs.SkipAll is none.
func (e *Engine) ListTree(
	ctx context.Context, c *Call, a TreeArgs, use func(Entry) error,
) (skipped grep.Skipped, err error) {
	if e, err = e.begun(c); err != nil {
		return skipped, err
	}
	w := &treeWalk{TreeArgs: a, use: use, rules: !a.All && e.cfg.RespectGitignore}
	if w.Depth <= 0 || w.Depth > maxTreeDepth {
		w.Depth = maxTreeDepth
	}
	look := func(ctx context.Context, h *guardfs.Handle) (*Sight, error) {
		d, err := e.openDir(ctx, h)
		if err != nil {
			return nil, err
		}
		defer d.Close() //nolint:errcheck // nothing was written through it
		set, base := new(ignore.Set), ""
		if w.rules {
			how := ignore.Options{Excludes: e.gitExcludes(), Home: e.search.home}
			set, base, w.skipped.Rules = ignore.Load(rulefiles.Of(grep.Guarded(d)), how)
		}
		entries, denied, err := list(ctx, d)
		if err != nil {
			return nil, err
		}
		w.skipped.Denied = denied
		return nil, w.dir(ctx, d, entries, base, set, w.Depth)
	}
	err = e.View(ctx, c, View{Path: a.Path, Access: guardfs.Walk, Look: look})
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return w.skipped, err
}

// treeWalk is one listing of a tree on its way.
type treeWalk struct {
	TreeArgs
	use     func(Entry) error
	rules   bool
	scratch ignore.Scratch
	skipped grep.Skipped
}

// dir hands over the entries of d and what is below. at is its path from the base of the ignore
// rules, "" or with a trailing slash; deep is how far below d an entry may lie.
func (w *treeWalk) dir(
	ctx context.Context, d *guardfs.Dir, in []listed, at string, set *ignore.Set, deep int,
) error {
	if f := ruleFiles(in); w.rules && f.Any() {
		var unread int
		set, unread = set.Enter(rulefiles.Of(grep.Guarded(d)), at, f)
		w.skipped.Rules += unread
	}
	for i := range in {
		l := &in[i]
		name, isDir := path.Base(l.Path), l.Kind == guardfs.KindDir
		switch {
		case !w.Hidden && strings.HasPrefix(name, "."):
			continue
		case w.rules && isDir && rulefiles.IsVCS(name):
			w.skipped.VCS++
			continue
		case !set.Idle() && set.Ignored(at, name, isDir, &w.scratch):
			if !l.unnamed {
				w.skipped.Ignored++
			}
			continue
		}
		if !l.unnamed {
			if err := w.use(l.Entry); err != nil {
				return err
			}
		}
		if !isDir {
			continue
		}
		if err := w.enter(ctx, d, l, at+name+"/", set, deep); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// enter goes down into one directory. Of one that policy hides nothing is counted: it was itself.
func (w *treeWalk) enter(
	ctx context.Context, d *guardfs.Dir, l *listed, at string, set *ignore.Set, deep int,
) error {
	if deep <= 1 {
		if !l.unnamed {
			w.skipped.Deep++
		}
		return nil
	}
	sub, err := d.OpenDir(path.Base(l.Path), false)
	var in []listed
	denied := 0
	if err == nil {
		defer sub.Close() //nolint:errcheck // nothing was written through it
		in, denied, err = list(ctx, sub)
	}
	r := Reason(err)
	switch {
	case err == nil:
		if !l.way {
			w.skipped.Denied += denied
		}
		return w.dir(ctx, sub, in, at, set, deep-1)
	case ctx.Err() != nil, TooManyEntries.In(err):
		return err
	case l.unnamed, r != nil && (r.Code == CodeNotFound):
	case errors.Is(err, guardfs.ErrMount):
		w.skipped.Mounts++
	case r != nil && r.Code == CodePathDenied:
		w.skipped.Denied++
	default:
		w.skipped.Unreadable++
	}
	return nil
}

// ruleFiles looks for the entries that carry ignore rules.
func ruleFiles(in []listed) ignore.Found {
	kinds := map[guardfs.Kind]grep.Kind{
		guardfs.KindFile: grep.KindFile, guardfs.KindDir: grep.KindDir,
		guardfs.KindSymlink: grep.KindLink,
	}
	var out []grep.Entry
	for i := range in {
		if name := path.Base(in[i].Path); rulefiles.Is(name) {
			out = append(out, grep.Entry{Name: name, Kind: kinds[in[i].Kind], Way: in[i].unnamed})
		}
	}
	return rulefiles.In(out)
}
