package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"

	"moltisfs/internal/dialect"
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

// editors remembers the texts that the editor of each session had.
type editors struct {
	mu   sync.Mutex
	seen map[session.Key]*session.Buffers
}

// maxEditors bounds the sessions that are remembered. What is forgotten is looked at as if for the
// first time.
const maxEditors = 1000

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
		look = e.fs
	}
	h, err := look.Resolve(path, guardfs.Read)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	if i := h.Object().Info; i.Kind != guardfs.KindFile || i.Size > maxCompared {
		return nil, false
	}
	f, err := h.Open()
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // as above
	raw = make([]byte, f.Info().Size)
	n, err := f.ReadAt(raw, 0)
	raw = raw[:n]
	return raw, (err == nil || errors.Is(err, io.EOF)) && !encodings.Sniff(raw).NUL
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

// edited has the editor of a call compared with the disk. Of another Overlay what differs is noted,
// and it is not asked for what is no text, but by its own protocol.
func (e *Engine) edited(c *Call) {
	by, ok := c.Overlay.(*dialect.Editor)
	if ok && (by == nil || by.Read == nil) {
		c.Overlay = nil
	}
	if c.Overlay == nil || !ok && c.Dialect == "acp" {
		return
	}
	m := &e.editors
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil || len(m.seen) >= maxEditors {
		m.seen = map[session.Key]*session.Buffers{}
	}
	if m.seen[c.key()] == nil {
		m.seen[c.key()] = &session.Buffers{}
	}
	c.Overlay = &editorOverlay{e, c.Overlay, m.seen[c.key()], !ok}
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
func (e *Engine) Unsaved(ctx context.Context, c *Call, root string) (out []string, err error) {
	o := c.editor()
	if e, err = e.begun(c); err != nil || o == nil {
		return nil, err
	}
	root = strings.TrimSuffix(e.fs.Canonical(root), "/") + "/"
	for _, path := range o.seen.Paths() {
		if !strings.HasPrefix(path, root) ||
			e.judge.Judge(guardfs.Object{Spelled: path, True: path}, guardfs.Read) != nil {
			continue
		}
		held := true
		if err == nil { // an editor that does not answer is asked once
			_, _, held, err = e.overlaid(ctx, c, path)
		}
		if held && o.state(path) != session.Saved || err != nil {
			out = append(out, path)
		}
	}
	return out, ctx.Err()
}
