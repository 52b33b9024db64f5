package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine/replace"
	"moltisfs/internal/guardfs"
)

// maxReplaced is how many files one Replace changes.
const maxReplaced = 1000

// ReplaceArgs are a text or pattern, what takes its place, and where.
type ReplaceArgs struct {
	Root     string // a file or directory
	Glob     []string
	Rule     *replace.Rule
	Expected int  // replacements; any other number is a *CountError. 0: as many as there are
	Ignored  bool // in what ignore rules hide, too
	DryRun   bool
}

// A Replacing is the result of a Replace.
type Replacing struct {
	Done        *Done
	Files       []Replaced
	Total       int
	Skipped     []*Refusal // files that match and can't be changed
	NotSearched grep.Skipped
}

// A Replaced is a file, and how often something was replaced in it.
type Replaced struct {
	Path  string
	Count int
}

// CountError says that another number of replacements was found than was expected.
type CountError struct {
	Expected int
	*Replacing
}

func (e *CountError) Error() string {
	return fmt.Sprintf("%d replacements were expected, and there are %d", e.Expected, e.Total)
}

// Diff is all that changes, unified.
func (d *Done) Diff() string {
	var b strings.Builder
	for _, t := range d.Targets {
		b.WriteString(diff.Unified(t.True, ends(t), Hunks(t)))
	}
	return b.String()
}

// Replace replaces a text or pattern in all files that have it, as one change. A file that can't be
// changed is left alone and told, unless it is the only one that was asked for. A search that did
// not come to its end changes nothing.
func (c *Call) Replace(ctx context.Context, a ReplaceArgs) (*Replacing, error) {
	found, err := c.matching(ctx, a)
	if err != nil {
		return nil, err
	}
	out := &Replacing{}
	out.Done, err = c.Change(ctx, func(ctx context.Context, d *Planner) (*Plan, error) {
		*out = Replacing{NotSearched: found.Skipped}
		out.NotSearched.Binary += len(found.Binary) // never changed
		size := int64(0)
		for i := range found.Files {
			name := found.Files[i].Path
			t, n, err := d.replaced(ctx, name, a, len(found.Files) == 1)
			if t != nil {
				size += int64(len(t.Before.Content) + len(t.After.Content))
			}
			switch no := Reason(err); {
			case size > maxLoad:
				return nil, &edit.TooLargeError{Size: size, Max: maxLoad}
			case err == nil && n > 0:
				out.Files, out.Total = append(out.Files, Replaced{t.True, n}), out.Total+n
				continue
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil && (no == nil || name == found.Root):
				return nil, err
			case err != nil:
				no.Path = name
				out.Skipped = append(out.Skipped, no)
			}
			d.forget()
		}
		if a.Expected > 0 && out.Total != a.Expected {
			return nil, &CountError{a.Expected, out}
		}
		return d.plan(Plan{DryRun: a.DryRun, Op: checkpoint.Op{Kind: checkpoint.KindEdit},
			Summary: fmt.Sprintf("%d replacements in %d files", out.Total, len(out.Files))})
	})
	return out, err
}

// matching finds the files that a Replace is about.
func (c *Call) matching(ctx context.Context, a ReplaceArgs) (*grep.Result, error) {
	q := grep.Query{Mode: grep.FilesWithMatches, Glob: a.Glob}
	q.Matcher, q.Multiline = a.Rule.Matcher()
	if !a.Ignored {
		q.Glob = append(q.Glob, "!.*")
	}
	var r *grep.Result
	err := c.Walk(ctx, a.Root, func(ctx context.Context, w grep.Walk) (err error) {
		if w.File != nil { // as it is called, so that a link is refused as for any change
			r = &grep.Result{Root: a.Root, Files: []grep.FileHit{{Path: a.Root}}}
			return nil
		}
		if a.Ignored {
			w.NoIgnore, w.Excludes = true, nil
		}
		r, err = grep.Search(ctx, w, q)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case r.Partial:
		return nil, context.DeadlineExceeded
	case len(r.Files) > maxReplaced:
		return nil, Refuse(TooManyPaths, "", CountFacts{Most: maxReplaced})
	}
	slices.SortFunc(r.Files, func(a, b grep.FileHit) int { return strings.Compare(a.Path, b.Path) })
	return r, nil
}

// replaced loads a file and says what becomes of it, in how many places. t is nil where it can't be
// loaded. alone: no other file may change with it.
func (d *Planner) replaced(ctx context.Context, name string, a ReplaceArgs,
	alone bool) (t *Target, n int, err error) {
	if t, err = d.Load(name, Rules{Read: ReadSome, edits: true}); err != nil {
		return nil, 0, err
	}
	if t.unsaved() && !alone {
		return t, 0, Refuse(UnsavedText, t.True, nil)
	}
	encoding := t.encoding("")
	r, err := a.Rule.Apply(t.Before.Content,
		edit.Options{MaxBytes: MaxResult, Encoding: encoding, Err: ctx.Err})
	if err != nil || r == nil {
		return t, 0, err
	}
	t.After = After{Kind: guardfs.KindFile, Content: r.Content, Hunks: r.Patch(), edits: r}
	if err := d.c.keeps(t, checkpoint.KindEdit, false); err != nil {
		return t, 0, err
	}
	if d.c.cfg.MustReadBeforeWrite {
		err = proven(t, r, encoding)
	}
	return t, r.Replacements, err
}
