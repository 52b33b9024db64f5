package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Contents that were read are kept for a while, so that a later conflict can show what changed.
// This is a convenience: nothing depends on finding one.
const (
	maxContent  = 256 << 10 // larger contents are not kept
	maxContents = 32 << 20  // of all together; the older half goes
	contentTTL  = 7 * day   // at most, and half of that at least
	day         = 24 * time.Hour
)

// contents keeps the contents of all sessions in two files. A content is appended to the new one, behind its hash and its length. When that has
// its half of the bytes, it takes the place of the old one. A process opens a file for that moment alone, so that they may be removed at any time.
type contents struct {
	dir string

	mu  sync.Mutex
	has map[[sha256.Size]byte]bool // what this process has put into the new file
}

const contentHead = sha256.Size + 4

// keep stores a content under its SHA-256 in hex, unless it is too large.
func (c *contents) keep(hash string, content []byte) error {
	sum, ok := sumOf(hash)
	if !ok || len(content) > maxContent {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := filepath.Join(c.dir, "new")
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if c.has, err = nil, os.MkdirAll(c.dir, 0o700); err == nil {
			err = appendTo(filepath.Join(c.dir, "old"), nil) // its time says when the new one was begun
		}
	case err == nil && c.has[sum]:
		return nil
	case err == nil && info.Size() >= maxContents/2:
		c.has, err = nil, os.Rename(name, filepath.Join(c.dir, "old"))
	}
	if err == nil {
		one := binary.BigEndian.AppendUint32(append(make([]byte, 0, contentHead+len(content)), sum[:]...), uint32(len(content)))
		err = appendTo(name, append(one, content...))
	}
	if err != nil {
		return fmt.Errorf("storing a content that was read: %w", err)
	}
	if c.has == nil {
		c.has = map[[sha256.Size]byte]bool{}
	}
	c.has[sum] = true
	return nil
}

// expire, once a day, has the new file take the place of the old one when that got its last content, and so the new one its first, half
// of contentTTL ago.
func (c *contents) expire() {
	old := filepath.Join(c.dir, "old")
	info, err := os.Lstat(old)
	if err != nil || time.Since(info.ModTime()) <= contentTTL/2 {
		return
	}
	if os.Rename(filepath.Join(c.dir, "new"), old) != nil {
		_ = os.Remove(old) // tomorrow again
	}
}

// find finds the content with this SHA-256.
func (c *contents) find(hash string) ([]byte, bool) {
	if sum, ok := sumOf(hash); ok {
		for _, name := range []string{"new", "old"} {
			if content := findIn(filepath.Join(c.dir, name), sum); content != nil {
				return content, true
			}
		}
	}
	return nil, false
}

// findIn looks through one file. Behind a torn content, which a crash leaves, nothing is found.
func findIn(name string, sum [sha256.Size]byte) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	head := make([]byte, contentHead)
	for at := int64(0); ; {
		if _, err := f.ReadAt(head, at); err != nil {
			return nil
		}
		n := int64(binary.BigEndian.Uint32(head[sha256.Size:]))
		if n > maxContent {
			return nil
		}
		if at += contentHead; bytes.Equal(head[:sha256.Size], sum[:]) {
			content := make([]byte, n)
			if _, err := f.ReadAt(content, at); err == nil && sha256.Sum256(content) == sum {
				return content
			}
		}
		at += n
	}
}

func sumOf(hash string) (sum [sha256.Size]byte, ok bool) {
	n, err := hex.Decode(sum[:], []byte(hash[:min(len(hash), 2*len(sum))]))
	return sum, err == nil && n == len(sum) && len(hash) == 2*len(sum)
}

// appendTo appends b to a file in one write, which O_APPEND keeps whole beside those of other processes.
func appendTo(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// PurgeContents removes every content that is kept under the directory of the read log dir, of all
// sessions. Nothing depends on them. A session may be storing more meanwhile.
func PurgeContents(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, "content")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing stored contents: %w", err)
	}
	return nil
}
