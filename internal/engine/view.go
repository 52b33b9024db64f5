package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/session"
)

// A View is a look of a reading tool at one path.
type View struct {
	Path   string
	Access guardfs.Access // Read for a file's content, Walk for a search
	// Look reads or walks the handle, which is closed when it returns. It says what the session has
	// now seen of it. nil: nothing that counts as having read the file.
	Look func(context.Context, *guardfs.Handle) (*Sight, error)
}

// Sight is the part of a file that was shown.
type Sight struct {
	Hash   string // SHA-256 of the whole content in hex; "" when it was not read whole
	Unit   string // what Lines and Ranges count, see session.Seen
	Lines  int
	Ranges []session.Range
	Whole  bool
	// See session.Seen.
	Lossy   bool
	Sources []session.Range
}

// View is the reading chain. Nothing is changed by it but our own ledger.
func (e *Engine) View(ctx context.Context, c *Call, v View) error {
	e, err := e.begun(c)
	if err != nil {
		return err
	}
	c.Trace.Paths = []string{v.Path}
	// Policy judges the canonical path. Its answer is the same whether or not the file exists.
	h, err := e.fs.Resolve(v.Path, v.Access)
	if err != nil {
		return err
	}
	defer h.Close()
	c.Trace.Paths = []string{h.Object().True}
	sight, err := v.Look(ctx, h)
	if err != nil || sight == nil {
		return err
	}
	// A read that can't be remembered is refused: it would count as unread.
	return e.remember(c, h.Object(), sight)
}

func (e *Engine) remember(c *Call, o guardfs.Object, s *Sight) error {
	if e.ledger == nil {
		return nil
	}
	err := e.ledger.Saw(c.key(), session.Seen{
		ID: o.Info.ID.String(), Path: o.True, Hash: s.Hash, Stamp: stamp(o.Info, s.Hash), Unit: s.Unit,
		Lines: s.Lines, Ranges: s.Ranges, Whole: s.Whole, Lossy: s.Lossy, Sources: s.Sources,
		When: e.now(),
	})
	if err != nil {
		return fmt.Errorf("remembering what was read: %w", err)
	}
	return nil
}

// Tracks says whether reads are remembered, and so whether a Look should hash what it reads.
func (e *Engine) Tracks() bool { return e.ledger != nil }

// stamp stands in for the hash of a file too large to be hashed at every read.
func stamp(i guardfs.Info, hash string) string {
	if hash != "" {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", i.Size, i.ModTime.UnixNano(), i.ChangeTime.UnixNano())
}

// hashAll hashes size bytes, or as many as there are, in pieces, until ctx ends.
func hashAll(ctx context.Context, r io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	buf := make([]byte, 256<<10)
	for in := io.NewSectionReader(r, 0, size); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := in.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("hashing what was read: %w", err)
		}
	}
}

// HashOf is the content hash in payloads, ledger and checkpoints: SHA-256 in lower-case hex.
func HashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
