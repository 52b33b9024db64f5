package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/session"
	"moltisfs/readers"
)

// MaxResult bounds a file after edits, in bytes.
const MaxResult = 64 << 20

// LineFacts are lines that were never shown. Encoding is the one to read them in; "" is the
// default.
type LineFacts struct {
	First, Last int
	Encoding    string
}

// WriteArgs is a whole text for a file.
type WriteArgs struct {
	Path, Text string
	Raw        []byte // not nil: the bytes themselves, which no guard takes for an accident
	Binary     bool   // the call says that Raw is no text: it may go over what is none either
	Encoding   string // "": that of the old file, or UTF-8
	Rules      Rules  // but for Read
	DryRun     bool
}

// Write replaces the whole of a file or makes it. encoding is what it was written in.
func (c *Call) Write(ctx context.Context, a WriteArgs) (done *Done, encoding string, err error) {
	a.Rules.Read, a.Rules.text, a.Rules.encoding = ReadWhole, !a.Binary, a.Encoding
	p := Plan{Summary: fmt.Sprintf("write %d bytes", len(a.Text)+len(a.Raw)), DryRun: a.DryRun,
		Op: checkpoint.Op{Kind: checkpoint.KindWrite}}
	done, err = c.Rewrite(ctx, a.Path, a.Rules, p, func(t *Target) error {
		if a.Raw != nil {
			t.After = After{Kind: guardfs.KindFile, Content: a.Raw}
			return nil
		}
		before := t.Before.Content
		if readers.NoText(before, a.Encoding) != "" {
			before = nil // nothing of how it is written is kept
		}
		old, _, err := edit.Decode(before, "")
		if err != nil {
			return err
		}
		text, kept := edit.KeepEnds(a.Text, old)
		raw, name, err := edit.Encode(text, before, t.encoding(a.Encoding))
		if err != nil {
			return err
		}
		t.After = After{Kind: guardfs.KindFile, Content: raw, KeptCRLF: kept, was: old, text: []byte(text)}
		if encoding = name; !strings.EqualFold(name, "utf-8") && t.Before.Exists {
			t.After.Hunks = diff.Patch(old, []byte(strings.TrimPrefix(text, "\ufeff")))
		}
		return nil
	})
	return done, encoding, err
}

// Create makes a file of these bytes where nothing is. What is there is a conflict, also when it
// appears in between.
func (c *Call) Create(ctx context.Context, path string, content []byte,
	r Rules) (*Done, error) {
	r.Read = ReadNone
	p := Plan{Summary: fmt.Sprintf("create with %d bytes", len(content)),
		Op: checkpoint.Op{Kind: checkpoint.KindWrite}}
	return c.Rewrite(ctx, path, r, p, func(t *Target) error {
		if t.Before.Exists {
			return Refuse(Conflicts, t.True, []Blocked{{Path: t.True, Why: Occupied}})
		}
		t.After = After{Kind: guardfs.KindFile, Content: content}
		return nil
	})
}

// EditArgs are edits of one file.
type EditArgs struct {
	Path     string
	Edits    []edit.Edit
	Encoding string // "": as it is detected
	Rules    Rules  // but for Read
	DryRun   bool
	Kind     string // of the checkpoint
	// Refuse, if set, may refuse in the dialect's words: before the edits, and what they failed with.
	Refuse func(t *Target, failed error) error
}

// Edit replaces text in a file, or makes it by a first edit of nothing.
func (c *Call) Edit(ctx context.Context, a EditArgs) (done *Done, result *edit.Result, err error) {
	a.Rules.Read, a.Rules.edits, a.Rules.encoding = ReadStale, true, a.Encoding
	if a.Refuse == nil {
		a.Refuse = func(*Target, error) error { return nil }
	}
	a.Rules.Parents = a.Rules.Parents && len(a.Edits) > 0 && a.Edits[0].Old == ""
	what := "1 edit"
	if n := len(a.Edits); n != 1 {
		what = fmt.Sprintf("%d edits", n)
	}
	p := Plan{Summary: what, DryRun: a.DryRun, Op: checkpoint.Op{Kind: a.Kind}}
	done, err = c.Rewrite(ctx, a.Path, a.Rules, p, func(t *Target) (err error) {
		if err := a.Refuse(t, nil); err != nil {
			return err
		}
		encoding := t.encoding(a.Encoding)
		how := edit.Options{
			Strict: c.cfg.EditMatching == "strict", MaxBytes: MaxResult,
			Seen: c.lastSeen(t), Encoding: encoding, Err: ctx.Err,
		}
		result, err = edit.Apply(t.Before.Content, a.Edits, how)
		if t.Known.Stale && (err != nil || !survives(result, a.Edits, t.Before.Content, how)) {
			return c.Modified(t)
		}
		if err != nil {
			return cmp.Or(a.Refuse(t, err), err)
		}
		t.After = After{Kind: guardfs.KindFile, Content: result.Content, Hunks: result.Patch(), edits: result}
		if c.cfg.MustReadBeforeWrite {
			return proven(t, result, encoding)
		}
		return nil
	})
	return done, result, err
}

// survives says whether edits of a file may go ahead though others changed it since it was seen. In
// the text that was seen they must find the same places, exactly and once. What others changed must
// not touch those places, nor make another one that matches.
func survives(r *edit.Result, edits []edit.Edit, now []byte, how edit.Options) bool {
	if how.Seen == nil || !exactOnce(r) {
		return false
	}
	was, err := edit.Apply(how.Seen, edits, how)
	if err != nil || !exactOnce(was) {
		return false
	}
	var texts [4][]byte
	for i, b := range [][]byte{how.Seen, was.Content, now, r.Content} {
		if texts[i], _, err = edit.Decode(b, r.Encoding); err != nil {
			return false
		}
	}
	merged, conflicts := diff.Merge(texts[0], texts[1], texts[2])
	return len(conflicts) == 0 && bytes.Equal(merged, texts[3])
}

func exactOnce(r *edit.Result) bool {
	return !slices.ContainsFunc(r.Steps,
		func(s edit.Step) bool { return s.Strategy != edit.StrategyExact || s.Replacements != 1 })
}

// proven refuses to change lines that the session was not shown, unless the old text is exactly
// what is there. An exact quote proves that it is known; a similar one does not.
func proven(t *Target, r *edit.Result, encoding string) error {
	seen := t.Known.Seen
	if seen == nil || seen.Whole || !slices.ContainsFunc(r.Steps, func(s edit.Step) bool {
		return s.Strategy != edit.StrategyExact && s.Strategy != edit.StrategyLineEndings
	}) {
		return nil
	}
	byLine := cmp.Or(seen.Unit, "line") == "line"
	for _, h := range t.After.Hunks {
		first, last := changedLines(h)
		if byLine && session.Cover(seen.Ranges, first, last) {
			continue
		}
		f := LineFacts{First: first, Last: last}
		if encoding = cmp.Or(encoding, r.Encoding); encoding != "utf-8" || !byLine {
			f.Encoding = encoding
		}
		return Refuse(LinesUnseen, t.True, f)
	}
	return nil
}

// changedLines are the first and the last line of the old text that a hunk changes. Where a hunk
// only adds, it is the line above.
func changedLines(h diff.Hunk) (first, last int) {
	n := h.OldStart
	for _, l := range h.Lines {
		switch l[0] {
		case '-':
			if first == 0 {
				first = n
			}
			last = n
			n++
		case ' ':
			n++
		case '+':
			last = max(last, n-1, 1)
			if first == 0 {
				first = last
			}
		}
	}
	return first, last
}

// MkdirArgs say which directory is made.
type MkdirArgs struct {
	Path   string
	Exists bool  // one that is there already is fine
	Rules  Rules // of these only Parents counts
	DryRun bool
}

// Mkdir makes a directory: an ordinary change, checkpointed whatever the config says. An undo
// removes it if it is still that one, and nothing is in it. A link at the path is refused, and
// whatever else is there is a conflict.
func (c *Call) Mkdir(ctx context.Context, a MkdirArgs) (*Done, error) {
	if err := c.askPolicy(opMkdir, a.Path, "", a.Rules.Parents); err != nil {
		return nil, err
	}
	return c.Change(ctx, func(_ context.Context, d *Planner) (*Plan, error) {
		c.Trace.Paths = []string{a.Path}
		p := Plan{DryRun: a.DryRun, Checkpoint: true, Op: checkpoint.Op{Kind: checkpoint.KindMkdir}}
		place, err := d.c.fs.Entry(a.Path)
		gone, ok := errors.AsType[*guardfs.MissingParentError](err)
		var name string
		switch {
		case ok && a.Rules.Parents:
			name = gone.True
		case err != nil:
			return nil, err
		default:
			defer place.Close() //nolint:errcheck // nothing was written through it
			name = place.Object().True
		}
		if place != nil && place.Object().Info.Kind != guardfs.KindAbsent {
			if a.Exists && place.Object().Info.Kind == guardfs.KindDir {
				return &p, nil
			}
			return nil, Refuse(Conflicts, name, []Blocked{{Path: name, Why: Occupied}})
		}
		p.Summary = "make directory " + edit.ShownPath(name)
		if p.Steps, err = d.above(a.Path, name); err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, mkdir(name, 0o777))
		return &p, nil
	})
}
