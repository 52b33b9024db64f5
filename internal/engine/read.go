package engine

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"
	"time"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/session"
)

// A Source is a content that is being read.
type Source struct {
	io.ReaderAt
	Path string // canonical path
	Info guardfs.Info

	Unsaved bool // a client holds it; Info is of the file on the disk, but for the size
	// Beside is what the editor of the call has of it, where that is not the disk's.
	Beside session.BufferState
	// Given counts the bytes that the answer has of it, for the record. Bytes and Lines count theirs.
	Given int64

	e    *Engine
	file *guardfs.File // nil where the content is in memory,
	held []byte        // which is this one
	hash string        // where it is known
}

// InMemory is the size up to which a file is taken in one read: cheaper than windows, and what was
// hashed is what is shown.
const InMemory = 1 << 20

// A Look takes what it wants of a content, and says what of it a session has now seen; nil: nothing
// that counts as having read it.
type Look func(context.Context, *Source) (*Sight, error)

// Read opens the content of a file for look.
func (e *Engine) Read(ctx context.Context, c *Call, path string, look Look) error {
	in, err := e.begun(c)
	if err != nil {
		return err
	}
	if o, text, held, err := in.overlaid(ctx, c, path); held || err != nil {
		if c.Trace.Paths = []string{o.True}; err != nil {
			return err
		}
		return in.readHeld(ctx, c, o, text, look)
	}
	open := func(ctx context.Context, h *guardfs.Handle) (*Sight, error) {
		f, err := h.Open()
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // nothing was written through it
		s := &Source{ReaderAt: f, Path: h.Object().True, Info: f.Info(), e: e, file: f}
		if beside := c.editor().state(s.Path); beside == session.Stale {
			s.Beside = beside
		}
		if s.Info.Size <= InMemory {
			var content bytes.Buffer
			content.Grow(int(s.Info.Size) + bytes.MinRead) // else it is copied as it grows
			if _, err := content.ReadFrom(io.NewSectionReader(f, 0, InMemory+1)); err != nil {
				return nil, err
			}
			s.hold(content.Bytes())
		}
		sight, err := look(ctx, s)
		if err != nil {
			return nil, err
		}
		c.Trace.Bytes = s.Given
		return sight, nil
	}
	return e.View(ctx, c, View{Path: path, Access: guardfs.Read, Look: open})
}

// Sum is the hash of a file on the disk, of which nobody is shown anything. One of more than so many
// bytes is a *guardfs.TooLargeError.
func (e *Engine) Sum(ctx context.Context, c *Call, path string, most int64) (hash string, err error) {
	err = e.View(ctx, c, View{Path: path, Access: guardfs.Read,
		Look: func(ctx context.Context, h *guardfs.Handle) (*Sight, error) {
			f, err := h.Open()
			if err != nil {
				return nil, err
			}
			defer f.Close() //nolint:errcheck // nothing was written through it
			if size := f.Info().Size; size > most {
				return nil, &guardfs.TooLargeError{Path: h.Object().True, Size: size, Max: most}
			}
			hash, err = e.sums.of(ctx, f, e.now)
			return nil, err
		}})
	return hash, err
}

// readHeld lets look read a text that the client holds. The disk has nothing of it to be kept.
func (e *Engine) readHeld(
	ctx context.Context, c *Call, o guardfs.Object, text []byte, look Look,
) error {
	s := &Source{Path: o.True, Info: o.Info, Unsaved: true, Beside: c.editor().state(o.True), e: e}
	s.hold(text)
	sight, err := look(ctx, s)
	if err != nil {
		return err
	}
	if by := c.editor(); by != nil {
		by.seen.Told(o.True)
	}
	if c.Trace.Bytes = s.Given; sight == nil {
		return nil
	}
	sight.Hash = s.hash
	return e.remember(c, o, sight)
}

// hold makes content what is read.
func (s *Source) hold(content []byte) {
	s.ReaderAt, s.file, s.Info.Size = bytes.NewReader(content), nil, int64(len(content))
	s.held = content
	if s.hash = ""; s.e.Tracks() {
		s.hash = HashOf(content)
		s.e.Keep(s.Path, s.hash, content)
	}
}

// Hash gives the hash of the whole content, as long as it was when it was opened. Of a file that others
// write into meanwhile it may be that of a mixture.
func (s *Source) Hash(ctx context.Context) (_ string, err error) {
	if s.hash == "" && s.file == nil {
		s.hash = HashOf(s.held)
	} else if s.hash == "" {
		s.hash, err = s.e.sums.of(ctx, s.file, s.e.now)
	}
	return s.hash, err
}

// Bytes are n bytes from off on, or with n below zero all of them, and what a session has seen by
// that. Past the end there are none. More than most is a *guardfs.TooLargeError. They are not to be
// changed: others may have them too.
func (s *Source) Bytes(ctx context.Context, off, n, most int64) ([]byte, *Sight, error) {
	if off < 0 {
		return nil, nil, Refuse(BadWindow, s.Path, off)
	}
	if left := max(s.Info.Size-off, 0); n < 0 || n > left {
		n = left
	}
	if n > most {
		return nil, nil, &guardfs.TooLargeError{Path: s.Path, Size: n, Max: most}
	}
	var part []byte
	if s.file == nil {
		part = s.held[min(off, s.Info.Size):][:n:n]
	} else {
		part = make([]byte, n)
		got, err := s.ReadAt(part, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		part = part[:got]
	}
	s.Given += int64(len(part))
	sight := &Sight{Unit: "byte", Lines: -1, Whole: int64(len(part)) == s.Info.Size}
	if sight.Whole { // what was shown is what counts
		s.held, s.file = part, nil
	}
	if s.e.Tracks() {
		var err error
		if sight.Hash, err = s.Hash(ctx); err != nil {
			return nil, nil, err
		}
	}
	return part, sight, nil
}

// Lines are n lines from first on, counted from 1, or with n below zero all of them, each with its
// end, and what a session has seen by that. A line ends with "\n"; a final one makes no extra line.
// Past the end there are none. More than most bytes are a *guardfs.TooLargeError.
func (s *Source) Lines(ctx context.Context, first, n int, most int64) ([]byte, *Sight, error) {
	if first < 1 {
		return nil, nil, Refuse(BadWindow, s.Path, int64(first))
	}
	sum, size := sha256.New(), s.Info.Size
	lines := bufio.NewReaderSize(io.TeeReader(io.NewSectionReader(s, 0, size), sum), 64<<10)
	part, line, shown, begun := []byte{}, 1, 0, false
	defer func() { s.Given += int64(len(part)) }()
	for {
		piece, err := lines.ReadSlice('\n')
		switch wanted := line >= first && (n < 0 || line-first < n); {
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
			return nil, nil, err
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case wanted && len(piece) > 0:
			part, shown = append(part, piece...), line
		case line >= first && !wanted && !s.e.Tracks(): // nobody asks for the rest
			return part, nil, nil
		}
		if int64(len(part)) > most {
			return nil, nil, &guardfs.TooLargeError{Path: s.Path, Size: int64(len(part)), Max: most}
		}
		if begun = begun || len(piece) > 0; err == nil {
			line, begun = line+1, false
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if !begun {
		line--
	}
	s.hash = hex.EncodeToString(sum.Sum(nil))
	sight := &Sight{Unit: "line", Lines: line, Whole: int64(len(part)) == size, Hash: s.hash}
	if shown > 0 {
		sight.Ranges = []session.Range{{First: first, Last: shown}}
	}
	return part, sight, nil
}

// sums remembers hashes of files that were read whole, for as long as it is certain that they are
// still those of the content.
type sums struct {
	mu    sync.Mutex
	known map[guardfs.Identity]sum
}

type sum struct{ stamp, hash string }

const (
	maxSums = 1000
	// settled is how old a change must be: older than the coarsest clock of a file system.
	settled = 3 * time.Second
)

// of hashes f, as long as it was when it was opened, or remembers its hash. A hash is remembered
// where any change that comes after it must move the file's times: nobody has it open for writing,
// and its last change is not of this very moment.
func (m *sums) of(ctx context.Context, f *guardfs.File, now func() time.Time) (string, error) {
	was, err := f.Stat()
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	known := m.known[was.ID]
	m.mu.Unlock()
	if known.hash != "" && known.stamp == stamp(was, "") && was.Size == f.Info().Size {
		return known.hash, nil
	}
	sure := now().Sub(was.ChangeTime) > settled && was.Size == f.Info().Size && f.Steady()
	hash, err := hashAll(ctx, f, f.Info().Size)
	if err != nil || !sure || !f.Steady() {
		return hash, err
	}
	if is, err := f.Stat(); err == nil && stamp(is, "") == stamp(was, "") {
		m.mu.Lock()
		if m.known == nil || len(m.known) >= maxSums {
			m.known = map[guardfs.Identity]sum{}
		}
		m.known[is.ID] = sum{stamp(is, ""), hash}
		m.mu.Unlock()
	}
	return hash, nil
}
