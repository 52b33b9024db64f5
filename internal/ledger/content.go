package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// What was read is kept for a while, so that a later conflict can show what
// changed since. It is a convenience: nothing depends on finding it.
const (
	keepBytes = 256 << 10          // larger files are not kept
	keepFor   = 7 * 24 * time.Hour // since it was last read
)

// Keep stores content under its SHA-256, unless it is there or too large.
func (l *Ledger) Keep(hash string, content []byte) error {
	if len(content) > keepBytes || len(hash) != 2*sha256.Size {
		return nil
	}
	name := l.contentPath(hash)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("keeping what was read: %w", err)
	}
	// Complete before it has its name: others count what is there as kept. Not synced: a torn file does
	// not match its hash and is not found.
	f, err := os.CreateTemp(filepath.Dir(name), "new-")
	if err != nil {
		return fmt.Errorf("keeping what was read: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // nothing needs it
		return fmt.Errorf("keeping what was read: %w", err)
	}
	return nil
}

// Content finds what was kept under hash. A file that does not match it counts as missing.
func (l *Ledger) Content(hash string) ([]byte, bool) {
	if len(hash) != 2*sha256.Size {
		return nil, false
	}
	content, err := os.ReadFile(l.contentPath(hash))
	if err != nil {
		return nil, false
	}
	sum := sha256.Sum256(content)
	return content, hex.EncodeToString(sum[:]) == hash
}

func (l *Ledger) contentPath(hash string) string {
	return filepath.Join(l.dir, "content", hash[:2], hash)
}

// PurgeContents removes all that Keep kept under the ledger directory dir, of every session, and says how many contents that were.
// Nothing needs them; a session may be keeping more meanwhile.
func PurgeContents(dir string) (n int, err error) {
	err = filepath.WalkDir(filepath.Join(dir, "content"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if err = os.Remove(path); err == nil {
				n++
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody else swept it
		}
		return err
	})
	if err != nil {
		return n, fmt.Errorf("removing what was kept of reads: %w", err)
	}
	return n, nil
}

// PurgeHashes takes every entry of a content with one of these hashes out of the journals under dir: those files count as unread, or as
// changed since an earlier reading. What a session notes at the same moment may be forgotten too, which is the safe side.
func PurgeHashes(dir string, hashes []string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return fmt.Errorf("purging the read ledger: %w", err)
	}
	purge := map[string]bool{}
	for _, h := range hashes {
		purge[h] = true
	}
	for _, name := range names {
		old, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("purging the read ledger: %w", err)
		}
		var kept []byte
		for line := range bytes.Lines(old) {
			var e Seen
			if json.Unmarshal(line, &e) == nil && !purge[e.Hash] { // a torn line says nothing, and may hold anything
				kept = append(kept, line...)
			}
		}
		if len(kept) == len(old) {
			continue
		}
		if err := replace(name, kept); err != nil {
			return fmt.Errorf("purging the read ledger: %w", err)
		}
	}
	return nil
}

// sweepContent drops what was kept too long ago.
func sweepContent(dir string) error {
	err := filepath.WalkDir(filepath.Join(dir, "content"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil && time.Since(info.ModTime()) > keepFor {
			os.Remove(path)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
