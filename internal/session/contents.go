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
	"strconv"
	"sync"
	"time"
)

// Contents that were read are kept for a while, so that a later conflict can show what changed.
// This is a convenience: nothing depends on finding one.
const (
	maxContent  = 256 << 10 // larger contents are not kept
	maxSegment  = 8 << 20   // bytes of a file after which the next begins
	maxSegments = 4         // files; the oldest goes
	contentTTL  = 7 * 24 * time.Hour
	day         = 24 * time.Hour
)

// contents keeps the contents of all sessions in a few files, whose names are the times at which they began. A content is appended to the newest,
// behind its hash and its length. Each process opens a file for that moment alone, so that any of them may be removed at any time.
type contents struct {
	dir string

	mu   sync.Mutex
	last string                     // the file that this process has appended to
	has  map[[sha256.Size]byte]bool // what it has put there
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
	if c.has[sum] {
		if _, err := os.Lstat(filepath.Join(c.dir, c.last)); err == nil {
			return nil
		}
	}
	at, err := c.newest()
	if err != nil {
		return fmt.Errorf("storing a content that was read: %w", err)
	}
	if at != c.last {
		c.last, c.has = at, map[[sha256.Size]byte]bool{}
	}
	one := binary.BigEndian.AppendUint32(append(make([]byte, 0, contentHead+len(content)), sum[:]...), uint32(len(content)))
	if err = appendTo(filepath.Join(c.dir, at), append(one, content...)); err != nil {
		return fmt.Errorf("storing a content that was read: %w", err)
	}
	c.has[sum] = true
	return nil
}

// files lists the files of contents, the oldest first, and what else is there.
func (c *contents) files() (ours, others []string) {
	all, _ := os.ReadDir(c.dir) // as far as it can be read
	for _, f := range all {
		if f.Type().IsRegular() && !began(f.Name()).IsZero() {
			ours = append(ours, f.Name())
		} else {
			others = append(others, f.Name())
		}
	}
	return ours, others
}

// began is the time in the name of a file, zero where it has none.
func began(name string) (t time.Time) {
	if n, err := strconv.ParseInt(name, 10, 64); err == nil && len(name) == 19 {
		t = time.Unix(0, n)
	}
	return t
}

// newest gives the file to append to. When it begins another, those that are too many go.
func (c *contents) newest() (string, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return "", err
	}
	ours, _ := c.files()
	if n := len(ours); n > 0 {
		info, err := os.Lstat(filepath.Join(c.dir, ours[n-1]))
		if err == nil && info.Size() < maxSegment && time.Since(began(ours[n-1])) < day {
			return ours[n-1], nil
		}
	}
	for ; len(ours) >= maxSegments; ours = ours[1:] {
		if err := os.Remove(filepath.Join(c.dir, ours[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return fmt.Sprintf("%019d", time.Now().UnixNano()), nil
}

// expire removes the files in which nothing is younger than contentTTL, and what is no file of ours.
func (c *contents) expire() {
	ours, others := c.files()
	for i, name := range ours {
		until := time.Now() // a file ends where the next begins
		if i+1 < len(ours) {
			until = began(ours[i+1])
		} else if info, err := os.Lstat(filepath.Join(c.dir, name)); err == nil {
			until = info.ModTime()
		}
		if time.Since(until) > contentTTL {
			others = append(others, name)
		}
	}
	for _, name := range others {
		_ = os.RemoveAll(filepath.Join(c.dir, name)) // tomorrow again
	}
}

// find finds the content with this SHA-256.
func (c *contents) find(hash string) ([]byte, bool) {
	sum, ok := sumOf(hash)
	ours, _ := c.files()
	for i := len(ours) - 1; ok && i >= 0; i-- {
		if content := findIn(filepath.Join(c.dir, ours[i]), sum); content != nil {
			return content, true
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
