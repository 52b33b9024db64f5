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
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	encodings "moltisfs/internal/text"
)

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
	enc, mark, _ := encodings.Of("", like)
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

// appendWhole is the most bytes of a file that is read whole to be appended to.
const appendWhole = 1 << 20

// appendAbove is the size above which a file is appended to without being read.
func (e *Engine) appendAbove() int64 { return max(1, min(e.cfg.Checkpoint.MaxFileBytes, appendWhole)) }

// large says that the file was not read.
func (t *Target) large() bool {
	return t.rules.above > 0 && t.Before.Exists && !t.Unsaved() &&
		t.Before.Info.Kind == guardfs.KindFile && t.Before.Info.Size > t.rules.above
}

// hash reads a large file for its hash, if something depends on it: what the caller expects, or
// what the session has to have read. Our own appends are known by size and times.
func (d *Planner) hash(t *Target) (err error) {
	want := t.rules.Hash != ""
	if t.rules.Read != ReadNone && d.c.cfg.MustReadBeforeWrite && d.c.ledger != nil && t.large() {
		s, ok, err := d.c.ledger.Look(d.c.key(), t.Before.Info.ID.String(), t.True)
		if err != nil {
			return &hostError{"looking up what was read", err}
		}
		want = want || ok && s.Hash != ""
	}
	if !want || !t.large() || t.Before.Hash != "" {
		return nil
	}
	f, err := d.c.openSame(t.True, t.Before.Info.ID)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	now := *t.Before
	now.Hash, err = d.c.sums.of(d.ctx, f, d.c.now)
	t.Before = &now
	return err
}

// openSame opens a file for reading, if it is that one.
func (c *Call) openSame(name string, id guardfs.Identity) (*guardfs.File, error) {
	h, err := c.fs.Resolve(name, guardfs.Read)
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	if h.Object().Info.ID != id {
		return nil, &guardfs.ConflictError{Path: name, Why: guardfs.Replaced}
	}
	return h.Open()
}

// extend carries out a plan that appends to a file in place: save, append, look. From the moment
// that a byte is there the change is only ever brought to its end.
func (c *Call) extend(ctx context.Context, ts targets, p *Plan) (*Done, error) {
	t := p.Steps[0].file
	info, err := t.place.CopyUp()
	if err != nil {
		return nil, err
	}
	s := &apply{rollback: rollback{c: c, tag: p.Op.Tag}, p: p, done: &Done{Targets: ts}, moves: make([]movement, 1)}
	s.steps = []record{{Do: Append, Path: t.True, Before: objectOf(info, "")}}
	lasting := context.WithoutCancel(ctx)
	err = s.save(ctx)
	var made guardfs.Appended
	if err == nil {
		made, err = t.place.Append(info.ID, t.added())
	}
	switch {
	case err != nil && made.Bytes == 0 && !errors.Is(err, guardfs.ErrUnavailable):
		s.setOutcome(lasting, checkpoint.Aborted)
		return nil, err
	case err != nil: // the next call looks, and appends the missing part
		c.left.Store(true)
		return nil, halfMade(err, []string{t.True}, s.id, true)
	}
	t.Published = &guardfs.Published{True: t.True, Info: made.Info}
	s.setOutcome(lasting, checkpoint.Committed)
	return s.done, nil
}

// added are the bytes that go to the end of the file.
func (t *Target) added() []byte {
	if t.After.Tail {
		return t.After.Content
	}
	return t.After.Content[len(t.After.Content)-t.After.add:]
}

// rememberTail counts what the session appended as seen. It is known by size and times from then
// on. Where others appended at the same time nothing is noted: then the file has changed.
func (c *Call) rememberTail(t *Target) error {
	if t.Published == nil ||
		t.Published.Info.Size != t.Before.Info.Size+int64(len(t.added())) {
		return nil
	}
	sight := &ReadRecord{Unit: "byte", Lines: -1}
	if seen := t.Known.Seen; seen != nil {
		sight.Unit, sight.Lines, sight.Ranges = seen.Unit, seen.Lines, seen.Ranges
		sight.Whole = seen.Whole && !t.Known.Stale
	}
	return c.remember(guardfs.Object{True: t.True, Info: t.Published.Info}, sight)
}

// tailWindow is how much of what others appended is looked through for a tail.
const tailWindow = 16 << 20

// A tail holds the bytes that were to be appended to a file.
type tail struct {
	path    string
	id      string // of the file, Identity.Lasting
	at      int64  // its size before
	size    int64
	hash    string
	content []byte // nil where the store must not hold it
}

// recoverAppend ends the append of a dead process.
func (c *Call) recoverAppend(ctx context.Context, db *checkpoint.DB, id checkpoint.ID, ch *checkpoint.Recorded,
	step *record) error {
	w := &tail{path: step.Path, id: step.Before.ID, at: ch.Before.Size,
		size: ch.After.Size - ch.Before.Size, hash: ch.After.Tail}
	var err error
	if w.content, err = db.Content(ctx, cmp.Or(w.hash, ch.After.Hash)); err != nil && !lacking(err) {
		return err
	}
	if w.hash == "" && err == nil { // the store has the whole file
		w.content = w.content[w.at:]
		w.hash = HashOf(w.content)
	}
	is, err := c.endAppend(w)
	if err != nil {
		return err
	}
	if is == checkpoint.Foreign {
		c.logger.Warn("an append was cut off, and what is there now is left as it is: others have "+
			"changed the file since, or nobody knows what was to be appended",
			"id", id, "path", w.path, "from", w.at, "bytes", w.size)
	} else {
		c.logger.Info("an interrupted append was ended", "id", id, "path", w.path, "outcome", is)
	}
	return db.Settle(ctx, id, is)
}

// lacking says that the store does not have a content, or not for us.
func lacking(err error) bool {
	_, bad := errors.AsType[*checkpoint.CorruptError](err)
	return bad || errors.Is(err, checkpoint.ErrNoContent) || errors.Is(err, checkpoint.ErrSealed)
}

// endAppend brings an append to its end that was interrupted, and says what became of it. It never
// takes a byte away: others may have appended since. What is missing of a tail is appended if the
// file ends with the part that is there. If not, it is left as it is found.
func (c *Call) endAppend(w *tail) (checkpoint.Outcome, error) {
	place, err := c.placeOf(w.path)
	if err != nil {
		return "", err
	}
	if place == nil {
		return checkpoint.Foreign, nil
	}
	defer place.Close() //nolint:errcheck // nothing was written through it
	info := place.Object().Info
	if info.Kind != guardfs.KindFile || info.ID.Lasting() != w.id || info.Size < w.at {
		return checkpoint.Foreign, nil // another file, or cut off by others
	}
	if info.Size == w.at {
		return checkpoint.Aborted, nil
	}
	f, err := c.openSame(w.path, info.ID)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	there := make([]byte, min(info.Size-w.at, w.size+tailWindow))
	n, err := f.ReadAt(there, w.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	there = there[:n]
	whole := int64(n) >= w.size
	switch {
	case whole && HashOf(there[:w.size]) == w.hash,
		w.content != nil && bytes.Contains(there, w.content):
		_, err = place.Append(info.ID, nil) // it syncs: nobody may have come to do that
		return checkpoint.Committed, err
	case whole || !bytes.HasPrefix(w.content, there):
		return checkpoint.Foreign, nil
	}
	made, err := place.Append(info.ID, w.content[n:])
	if err != nil {
		return "", err
	}
	if made.At != w.at+int64(n) { // others came in between; it is all there, in two pieces
		return checkpoint.Foreign, nil
	}
	return checkpoint.Committed, nil
}
