package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"

	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
)

// Bounds of Holding: a hint is not worth more.
const (
	maxHeld      = 64      // files, those that were read last
	maxHeldBytes = 1 << 20 // of one file
)

// Holding gives the files that the session has read, and that are as it read them, in which each of
// the texts stands exactly once. The file of the call is none of them. Until ctx ends.
func (e *Engine) Holding(ctx context.Context, c *Call, not string, texts []string) (out []string) {
	e, err := e.begun(c)
	if err != nil || e.ledger == nil {
		return nil
	}
	seen, err := e.ledger.Latest(c.key(), maxHeld)
	if err != nil {
		return nil
	}
	for _, s := range seen {
		if ctx.Err() != nil {
			return nil // there may be another
		}
		if s.Path == not || s.Hash == "" {
			continue
		}
		content := e.held(s.Path)
		if sum := sha256.Sum256(content); content == nil || hex.EncodeToString(sum[:]) != s.Hash {
			continue
		}
		plain, _, err := edit.Decode(content, "")
		if err == nil && !slices.ContainsFunc(texts, func(t string) bool {
			return bytes.Count(plain, []byte(t)) != 1
		}) {
			out = append(out, s.Path)
		}
	}
	return out
}

// SawAll says that the session was shown all of a file when it last read it. An edit of a file that
// has changed since is refused before anybody asks this.
func (e *Engine) SawAll(c *Call, path string) bool {
	e, err := e.begun(c)
	if err != nil || e.ledger == nil {
		return false
	}
	seen, _ := e.ledger.Latest(c.key(), maxHeld)
	return slices.ContainsFunc(seen, func(s session.Seen) bool { return s.Path == path && s.Whole })
}

// RunsCode says that a file runs code later by its name, so that a change of it is asked about.
func (e *Engine) RunsCode(path string) bool {
	return e.classes.Of(path) == policy.Exec
}

// Content is the content of a file that the caller may read and that is not large; else nil.
func (e *Engine) Content(c *Call, path string) []byte {
	e, err := e.begun(c)
	if err != nil {
		return nil
	}
	return e.held(path)
}

// held is the content of a file that the session may read and that is not large; else nil.
func (e *Engine) held(path string) []byte {
	h, err := e.fs.Resolve(path, guardfs.Read)
	if err != nil {
		return nil
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	info := h.Object().Info
	if info.Kind != guardfs.KindFile || info.Size > maxHeldBytes {
		return nil
	}
	f, err := h.Open()
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // the same
	content, err := io.ReadAll(io.NewSectionReader(f, 0, maxHeldBytes))
	if err != nil {
		return nil
	}
	return content
}
