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

// Contents that were read are kept for a while, so that a later conflict can show what changed.
// This is a convenience: nothing depends on finding one.
const (
	maxContent = 256 << 10          // larger files are not kept
	contentTTL = 7 * 24 * time.Hour // since it was last read
)

// Keep stores content under its SHA-256, unless it is there already or too large.
func (l *Ledger) Keep(hash string, content []byte) error {
	if len(content) > maxContent || len(hash) != 2*sha256.Size {
		return nil
	}
	name := l.contentPath(hash)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("storing a content that was read: %w", err)
	}
	// Complete before it has its name: another process takes what is there as stored. Not synced: a
	// torn file does not match its hash and counts as missing.
	f, err := os.CreateTemp(filepath.Dir(name), "new-")
	if err != nil {
		return fmt.Errorf("storing a content that was read: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // nothing needs it
		return fmt.Errorf("storing a content that was read: %w", err)
	}
	return nil
}

// Content finds the content with this hash. A file that does not match its hash counts as missing.
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

// PurgeContents removes every content that Keep stored under the ledger directory dir, of all
// sessions, and gives their number. Nothing depends on them. A session may be storing more
// meanwhile.
func PurgeContents(dir string) (n int, err error) {
	contents := filepath.Join(dir, "content")
	err = filepath.WalkDir(contents, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if err = os.Remove(path); err == nil {
				n++
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process removed it
		}
		return err
	})
	if err != nil {
		return n, fmt.Errorf("removing stored contents: %w", err)
	}
	return n, nil
}

// PurgeHashes takes every entry of a content with one of these hashes out of the journals under
// dir. Those files then count as unread, or as changed since an earlier reading. What a session
// records at the same moment may be lost too, which is safe.
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
			// A torn line says nothing, and may hold a hash that must go: drop it too.
			if json.Unmarshal(line, &e) == nil && !purge[e.Hash] {
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

// expireContents drops contents that were stored too long ago.
func expireContents(dir string) error {
	contents := filepath.Join(dir, "content")
	err := filepath.WalkDir(contents, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil && time.Since(info.ModTime()) > contentTTL {
			os.Remove(path)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
