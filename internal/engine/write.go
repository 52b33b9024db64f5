package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine/replace"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/session"
	encodings "moltisfs/internal/text"
	"moltisfs/readers"
)

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
		was := t.encoding("")
		old, _, err := edit.Decode(before, was)
		if err != nil { // it can be read and not written
			old, _, err = edit.Decode(before, "")
		}
		if err != nil {
			return err
		}
		text, kept := edit.KeepEnds(a.Text, old)
		raw, name, err := edit.Encode(text, before, t.encoding(a.Encoding))
		if err != nil {
			return err
		}
		t.After = After{Kind: guardfs.KindFile, Content: raw, KeptCRLF: kept, was: old, text: []byte(text), encoding: cmp.Or(a.Encoding, was, guessed(name))}
		if encoding = name; !strings.EqualFold(name, "utf-8") && t.Before.Exists {
			t.After.Hunks = diff.Patch(old, []byte(strings.TrimPrefix(text, "\ufeff")))
		}
		return nil
	})
	return done, encoding, err
}

// Create makes a file of these bytes where nothing is. An object that is there is a conflict, also when it
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
		t.After = After{Kind: guardfs.KindFile, Content: result.Content, Hunks: result.Patch(), edits: result, encoding: cmp.Or(encoding, guessed(result.Encoding))}
		if c.cfg.MustReadBeforeWrite {
			return proven(t, result)
		}
		return nil
	})
	return done, result, err
}

// guessed is an encoding that a file was found to be in, as a session remembers it.
func guessed(name string) string { return name + encodings.GuessMark }

// survives says whether edits of a file may go ahead though others changed it since it was seen. In
// the text that was seen they must find the same places, exactly and once. The changes of others must
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
func proven(t *Target, r *edit.Result) error {
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
		if f.ANSI = seen.Unit == "plain line"; r.Encoding != "utf-8" || !byLine && !f.ANSI {
			f.Encoding = r.Encoding
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

// Append adds bytes to the end of a file that is there, in place: programs that have the file open
// go on with it, others may append at the same time, and then the tail stands after theirs. It takes
// nothing away. So a change by others since the last read refuses it only where files must be read
// before. It has a checkpoint whatever the config says: of a file up to appendWhole that is the whole
// content, of a larger one, which is not read, only the tail.
//
// A file with other names or a set-id bit is made anew, as by any change.
func (c *Call) Append(ctx context.Context, path string, tail []byte,
	r Rules) (*Done, error) {
	return c.append(ctx, path, r, func(*Target) ([]byte, error) { return tail, nil })
}

// AppendText is Append for a text, which is written in the encoding of the file.
func (c *Call) AppendText(ctx context.Context, path, content string,
	r Rules) (*Done, error) {
	return c.append(ctx, path, r, func(t *Target) ([]byte, error) {
		return c.encoded(t, content)
	})
}

// encoded is a text in the encoding of the file at whose end it will stand. Where the bytes before it are damaged, so that it would be read as something
// else, or hide in which encoding they are, it is refused.
func (c *Call) encoded(t *Target, content string) ([]byte, error) {
	like := t.Before.Content
	if t.Unsaved() {
		return []byte(content), nil
	}
	size := int64(len(like))
	if t.large() {
		var err error
		if like, err = c.ends(t); err != nil {
			return nil, err
		}
		size = t.Before.Info.Size
	}
	enc, mark := encodings.Of("", like)
	if enc.Unit == 1 && utf8.RuneCountInString(content) == len(content) { // ASCII
		return []byte(content), nil
	}
	raw, _, err := edit.Encode(content, like, "")
	if err != nil {
		return nil, err
	}
	whole := (size-int64(mark))%int64(enc.Unit) == 0
	if enc.Mapped() && enc.Unit == 1 {
		_, whole = enc.Exact(like[mark:])
	}
	if !whole {
		return nil, &edit.DamagedError{Index: -1, Line: bytes.Count(like, []byte{'\n'}) + 1, Encoding: enc.Name}
	}
	return raw[mark:], nil
}

// append adds the bytes that made gives once the file is known.
func (c *Call) append(ctx context.Context, path string, r Rules,
	made func(*Target) ([]byte, error)) (*Done, error) {
	if err := c.askPolicy(opAppend, path, ""); err != nil {
		return nil, err
	}
	r.Read, r.above = ReadStale, c.appendAbove()
	return c.Change(ctx, func(_ context.Context, d *Planner) (*Plan, error) {
		p := Plan{Op: checkpoint.Op{Kind: checkpoint.KindAppend}}
		t, err := d.Load(path, r)
		if err == nil && t.large() && !growable(t.Before.Info) { // it is made anew, as by any change
			d.forget()
			whole := r
			whole.above = 0
			t, err = d.Load(path, whole)
		}
		switch {
		case err != nil:
			return nil, err
		case !t.Before.Exists:
			return nil, &guardfs.PathError{Op: "append to", Path: path, Err: fs.ErrNotExist}
		}
		tail, err := made(t)
		if err != nil {
			return nil, err
		}
		p.Summary = fmt.Sprintf("append %d bytes", len(tail))
		switch {
		case t.large():
			t.After = After{Kind: guardfs.KindFile, Content: tail, Tail: true}
			p.Checkpoint = true
		default:
			t.After = After{Kind: guardfs.KindFile, Content: slices.Concat(t.Before.Content, tail)}
			if growable(t.Before.Info) && !t.Unsaved() {
				t.After.add, p.Checkpoint = len(tail), true
			}
		}
		return d.plan(p)
	})
}

// growable says that a file may be appended to in place: it has no other name, and no set-id bit, which would stay.
func growable(i guardfs.Info) bool {
	return i.Links == 1 && i.Mode&(fs.ModeSetuid|fs.ModeSetgid) == 0
}

// ends is a part of a large file by which its encoding is told: whole lines of its beginning and end.
func (c *Call) ends(t *Target) ([]byte, error) {
	f, err := c.openSame(t.True, t.Before.Info.ID)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	const part = 64 << 10
	var ends [2][]byte
	for i, at := range []int64{0, max(part, t.Before.Info.Size-part)} {
		ends[i] = make([]byte, part)
		n, err := f.ReadAt(ends[i], at)
		if ends[i] = ends[i][:n]; err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	head, tail := ends[0], ends[1]
	if len(tail) == 0 || encodings.Sniff(head).Wide != nil {
		return head, nil
	}
	head = head[:bytes.LastIndexByte(head, '\n')+1]
	return append(head, tail[bytes.IndexByte(tail, '\n')+1:]...), nil
}

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
		w.Documents = nil // in their text nothing can be replaced
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
	t.After = After{Kind: guardfs.KindFile, Content: r.Content, Hunks: r.Patch(), edits: r, encoding: cmp.Or(encoding, guessed(r.Encoding))}
	if err := d.c.keeps(t, checkpoint.KindEdit, false); err != nil {
		return t, 0, err
	}
	if d.c.cfg.MustReadBeforeWrite {
		err = proven(t, r)
	}
	return t, r.Replacements, err
}
