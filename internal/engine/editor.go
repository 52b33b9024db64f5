package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/session"
	encodings "moltisfs/internal/text"
)

// An editorOverlay is the Overlay of an editor that answers the disk's text of a file where it has
// no unsaved one: it holds what differs.
type editorOverlay struct {
	e    *Engine
	by   dialect.Overlay
	seen *session.Buffers
	all  bool // it holds the text of every file, saved ones too: what differs is but noted
}

// editors remembers the texts that the editor of each session had. A session that is forgotten is looked at as if for the first time.
type editors struct {
	mu   sync.Mutex
	seen session.Recent[*session.Buffers]
}

// maxCompared is how large a file on the disk may be that the editor is asked for.
const maxCompared = 16 << 20

var errDamaged = errors.New("it can't read the file's encoding, so that its text would destroy bytes")

// Load asks the editor for what the disk has as text, or not at all.
func (o *editorOverlay) Load(ctx context.Context, path string) (string, bool, error) {
	raw, isText := o.e.raw(path)
	if !isText {
		return "", false, nil
	}
	shown, has, err := o.by.Load(ctx, path)
	if err != nil || !has {
		return "", false, err
	}
	switch state := o.seen.Look(path, shown, raw, string(asText(raw))); {
	case o.all: // no text of a file that is not there is no file
		return shown, state != session.Stale && (shown != "" || raw != nil), nil
	case state == session.Damaged:
		return "", false, errDamaged
	default:
		return shown, state == session.Unsaved || state == session.Diverged, nil
	}
}

// raw is a file as it is on the disk, nil where there is none. No text is what no editor has text
// of: a binary file, a large one, a directory, and what can't be read, of which the look at the
// disk says why. Nothing of it is shown to anybody.
func (e *Engine) raw(path string) (raw []byte, isText bool) {
	look := e.free
	if look == nil {
		look = e.tree
	}
	raw, err := readWhole(look, path, maxCompared)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	return raw, !encodings.Sniff(raw).NUL
}

// legible says that a client's text of a path is one: of bytes that it can't decode it has none, and
// the disk counts. If it has more than those, nobody may write it back.
func legible(path string, text, raw []byte) (bool, error) {
	damaged, same := session.Damage(string(text), raw)
	if damaged && !same {
		return false, Refuse(ClientFailed, path, errDamaged)
	}
	return !damaged, nil
}

// Store gives the editor a text in the place of its own.
func (o *editorOverlay) Store(ctx context.Context, path, old, text string) error {
	o.seen.Gave(path, text)
	return o.by.Store(ctx, path, old, text)
}

// attachEditor has the editor of a call compared with the disk. Of another Overlay what differs is noted,
// and it is not asked for what is no text, but by its own protocol.
func (c *Call) attachEditor() {
	by, ok := c.Overlay.(*dialect.Editor)
	if ok && (by == nil || by.Read == nil) {
		c.Overlay = nil
	}
	if c.Overlay == nil || !ok && c.Dialect == "acp" {
		return
	}
	m := &c.editors
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.seen.Get(c.key())
	if seen == nil {
		seen = &session.Buffers{}
		m.seen.Set(c.key(), seen)
	}
	c.Overlay = &editorOverlay{c.Engine, c.Overlay, seen, !ok}
}

// editor gives the overlay of the editor of a call, nil where there is none.
func (c *Call) editor() *editorOverlay {
	o, _ := c.Overlay.(*editorOverlay)
	return o
}

// state gives the text that the editor had of a path at the last look; o may be nil.
func (o *editorOverlay) state(path string) session.BufferState {
	if o == nil {
		return session.Saved
	}
	if is := o.seen.State(path); !o.all || is == session.Saved {
		return is
	}
	return session.Unsaved
}

// Takes says whether the editor takes texts.
func (o *editorOverlay) Takes() bool {
	if by, ok := o.by.(*dialect.Editor); ok {
		return by.Write != nil
	}
	return takes(o.by)
}

// takes refuses a change of a text beside which the disk has moved and nobody was told. o may be
// nil.
func (o *editorOverlay) takes(path string) error {
	if o == nil {
		return nil
	}
	if o.state(path) == session.Diverged {
		return Refuse(BufferDiffers, path, nil)
	}
	return nil
}

// Unsaved are the files below a directory, or that file, of which the editor of a call had unsaved
// text when the session last looked, and has it still. A search does not see it.
func (c *Call) Unsaved(ctx context.Context, root string) (out []string, err error) {
	o := c.editor()
	if o == nil {
		return nil, nil
	}
	root = strings.TrimSuffix(c.fs.Canonical(root), "/") + "/"
	for _, path := range o.seen.Paths() {
		if !strings.HasPrefix(path, root) ||
			c.judge.Judge(guardfs.Object{Spelled: path, True: path}, guardfs.Read) != nil {
			continue
		}
		held := true
		if err == nil { // an editor that does not answer is asked once
			_, _, held, err = c.overlaid(ctx, path)
		}
		if held && o.state(path) != session.Saved || err != nil {
			out = append(out, path)
		}
	}
	return out, ctx.Err()
}

// Client is the program at the other end of a call.
type Client struct {
	Program  string            // as it names itself, with its version; "" where it did not
	Approver approval.Approver // nil: the engine's own
	Heard    context.Context   //nolint:containedctx // see [dialect.Call.Heard]; nil: as long as the call
	Overlay  Overlay           // nil: all files are as the disk has them
	Progress *dialect.Progress // nil: nobody looks
	Headers  map[string]string // for the policy chain, see [dialect.Call.Headers]
	Run      int64             // of the script that calls, 0: none. One undo takes back all of a run
	// Waits is told that a person is asked, and what it gives that this is over. It may be nil.
	Waits func() (over func())

	Unavailable *dialect.Unreachable // why the call can't run where it has to; nil: it can
}

// An Overlay has the texts that a client holds instead of the disk. Of a path that it holds its text
// is the whole content. Read, Stat, Search in that file, Copy and Compare answer it; a new text of that
// file alone goes to it. Any other change, and every restore, is made on the disk where the disk has
// that text too, and is UnsavedText where it has another. An error of it ends the call: the disk never
// stands in for it.
//
// Paths are canonical, and policy has let each through. Whatever goes through a directory (List,
// ListTree, Walk, Search, Files, Watch) tells of the disk: a dialect with an Overlay has to say that.
type Overlay = dialect.Overlay

// clientTime is how long a client may take over one text.
const clientTime = 10 * time.Second

// roleBuffer is the role of a path in a checkpoint whose text a client held.
const roleBuffer = "buffer"

// asked gives the answer of the client about a path. Its error is for people: it must not pass
// for a finding about the disk. sure is false where it has not come back: it may still do it.
func asked[T any](ctx context.Context, path string, ask func(context.Context) (T, error)) (
	answer T, sure bool, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, clientTime)
	defer cancel()
	answer, err = answered(ctx, "client", func() (T, error) { return ask(ctx) })
	if sure = ctx.Err() == nil; err != nil && sure {
		err = Refuse(ClientFailed, path, errors.New(err.Error()))
	} else if err != nil {
		err = fmt.Errorf("asking the client for %s: %w", path, ctx.Err())
	}
	return answer, sure, err
}

// held asks the client for its text of a path that policy has let through.
func (c *Call) held(ctx context.Context, path string) (text []byte, held bool, err error) {
	if c.Overlay == nil {
		return nil, false, nil
	}
	type reply struct {
		text string
		held bool
	}
	is, _, err := asked(ctx, path, func(ctx context.Context) (r reply, err error) {
		r.text, r.held, err = c.Overlay.Load(ctx, path)
		return r, err
	})
	switch size := int64(len(is.text)); {
	case err != nil || !is.held:
		return nil, false, err
	case size > maxLoad:
		return nil, false, &guardfs.TooLargeError{Path: path, Size: size, Max: maxLoad}
	case !utf8.ValidString(is.text):
		return nil, false, Refuse(ClientFailed, path, errors.New("its text is not UTF-8"))
	}
	return []byte(is.text), true, nil
}

// heldInfo gives the info of a path with that text; i is the info of the disk.
func heldInfo(i guardfs.Info, path string, text []byte) guardfs.Info {
	if i.Kind == guardfs.KindAbsent { // no other object has its identity
		sum := fnv.New64a()
		sum.Write([]byte(path)) //nolint:errcheck // a hash takes everything
		i = guardfs.Info{Kind: guardfs.KindFile, Links: 1}
		i.ID = guardfs.Identity{Dev: math.MaxUint64, Ino: sum.Sum64()}
	}
	i.Size = int64(len(text))
	return i
}

// overlaid is the text that the client holds of what path names, and what there is to know of it.
// A path that policy or the system refuses is not held: the look at the disk says why.
func (c *Call) overlaid(ctx context.Context, path string) (
	o guardfs.Object, text []byte, held bool, err error,
) {
	if c.Overlay == nil {
		return o, nil, false, nil
	}
	h, err := c.fs.Resolve(path, guardfs.Read)
	if errors.Is(err, fs.ErrNotExist) { // policy has to let its canonical path be read too
		o = guardfs.Object{Spelled: path, True: c.fs.Canonical(path)}
		if h, err = c.fs.Resolve(o.True, guardfs.Read); errors.Is(err, fs.ErrNotExist) {
			h, err = nil, nil
		}
	}
	if h != nil {
		o = h.Object()
		h.Close() //nolint:errcheck // nothing was written through it
	}
	if err != nil || o.Info.Kind != guardfs.KindAbsent && o.Info.Kind != guardfs.KindFile {
		return o, nil, false, nil //nolint:nilerr // as above
	}
	if text, held, err = c.held(ctx, o.True); held && bytes.ContainsRune(text, utf8.RuneError) {
		raw, _ := c.raw(o.True)
		held, err = legible(o.True, text, raw)
	}
	if held {
		o.Info = heldInfo(o.Info, o.True, text)
	}
	return o, text, held, err
}

// A heldFile is a text as a search reads it.
type heldFile struct {
	*bytes.Reader
	info guardfs.Info
}

func (f heldFile) Close() error { return nil }

func (f heldFile) Info() grep.Info {
	return grep.Info{Kind: grep.KindFile, Size: f.info.Size, ModTime: f.info.ModTime}
}

// saved says that text is what a client shows of raw, which the disk has. Nothing on the disk is no
// text. Line ends, a byte order mark and a last line break make no difference: clients have their own.
func saved(text, raw []byte) bool {
	return bytes.Equal(text, raw) || len(raw) > 0 && session.SameText(string(text), string(asText(raw)))
}

// asText is raw decoded, or raw where it is no text.
func asText(raw []byte) []byte {
	if text, _, err := edit.Decode(raw, ""); err == nil {
		return text
	}
	return raw
}

// raw is a text of the client as the disk has it, or would have it once it is saved: in the encoding
// of what is there, with its byte order mark and the line ends that the client does not show.
func (t *Target) raw(text []byte) []byte {
	if !t.unsaved() && bytes.Equal(text, t.Before.Content) {
		return t.disk.Content
	}
	as, crlf := string(text), []byte("\r\n")
	if n := bytes.Count(asText(t.disk.Content), crlf); n > 0 && !bytes.Contains(t.Before.Content, crlf) &&
		!bytes.Contains(text, crlf) && n == bytes.Count(asText(t.disk.Content), crlf[1:]) {
		as = strings.ReplaceAll(as, "\n", "\r\n")
	}
	raw, _, err := edit.Encode(as, t.disk.Content, "")
	if err != nil {
		return text
	}
	return raw
}

// shown turns content of the disk into the text that the client gets, with the line ends that it shows.
func (t *Target) shown(raw []byte) []byte {
	text, crlf := asText(raw), []byte("\r\n")
	if !bytes.Contains(t.Before.Content, crlf) {
		text = bytes.ReplaceAll(text, crlf, crlf[1:])
	}
	return text
}

// overlay is the text that the client holds in the place of what is on the disk, and that; or what
// is on the disk, and nil.
func (d *Planner) overlay(t *Target, disk *guardfs.Before) (_, _ *guardfs.Before, err error) {
	text, held, err := d.held(t.True)
	if held {
		held, err = legible(t.True, text, disk.Content)
	}
	if err != nil || !held {
		return disk, nil, err
	}
	if disk.Exists && disk.Info.Kind != guardfs.KindFile {
		return nil, nil, Refuse(UnsavedText, t.True, nil)
	}
	same := saved(text, disk.Content)
	if t.twin = ""; same && d.disk {
		t.twin = HashOf(text)
		return disk, nil, nil
	} else if same {
		t.twin = disk.Hash
	}
	if t.disk == disk && t.Before.Hash == HashOf(text) {
		return t.Before, disk, nil
	}
	b := &guardfs.Before{Exists: true, Content: text, Hash: HashOf(text), Meta: disk.Meta}
	b.Info = heldInfo(disk.Info, t.True, text)
	if !disk.Exists { // saved, it will be a new file
		b.Meta, err = t.place.Fresh(0o666)
		b.Info.Mode, b.Info.UID, b.Info.GID = b.Meta.Mode, b.Meta.UID, b.Meta.GID
	}
	return b, disk, err
}

// apart is the client's text of a path, held where the disk has another. Of what is no text the client
// has none.
func (d *Planner) apart(path string) (text []byte, held bool, err error) {
	raw, isText := d.c.raw(path)
	if !isText {
		return nil, false, nil
	}
	text, held, err = d.held(path)
	if !held || saved(text, raw) {
		return nil, false, err
	}
	held, err = legible(path, text, raw)
	return text, held, err
}

// notHeld refuses a path of which the client holds another text than the disk.
func (d *Planner) notHeld(path string) error {
	_, held, err := d.apart(path)
	if held {
		err = Refuse(UnsavedText, path, nil)
	}
	return err
}

// checkOverlay refuses a plan that changes a path of which the client holds the text, unless a new text
// of it is all that comes of the plan, and the client takes texts.
func (d *Planner) checkOverlay(ctx context.Context, p *Plan) error {
	for i := range p.Steps {
		s := &p.Steps[i]
		if t := s.file; t != nil {
			if t.Unsaved() && (!takes(d.c.Overlay) || len(p.Steps) > 1 || s.Action != Put || s.Exact ||
				t.After.From != nil || !utf8.Valid(t.After.Content)) {
				return Refuse(UnsavedText, t.True, nil)
			}
			if t.Unsaved() {
				if err := d.c.editor().takes(t.True); err != nil {
					return err
				}
			}
			continue
		}
		for _, name := range []string{s.Path, s.To} {
			if name == "" || inTrash(name) || d.c.Overlay == nil {
				continue
			}
			if err := d.notHeld(name); err != nil {
				return err
			}
			if s.Action == Rename && s.Before.Kind == checkpoint.Dir && name == s.Path {
				if err := d.noneHeldBelow(ctx, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// noneHeldBelow refuses a directory with a file of which the client holds another text than the
// disk, and one that is too deep to tell.
func (d *Planner) noneHeldBelow(ctx context.Context, name string) error {
	c := *d.c // whose record is not about that
	all := TreeArgs{Path: name, All: true, Hidden: true}
	skipped, err := c.ListTree(ctx, all, func(i Entry) error {
		if i.Kind == guardfs.KindDir {
			return nil
		}
		return d.notHeld(i.Path)
	})
	if err == nil && skipped.Deep > 0 {
		err = Refuse(UnsavedText, name, nil)
	}
	return err
}

// takes says that a client takes texts. One that may not has a method Takes, which says so.
func takes(o Overlay) bool {
	is, ok := o.(interface{ Takes() bool })
	return !ok || is.Takes()
}
