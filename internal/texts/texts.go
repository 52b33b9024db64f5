// Package texts keeps texts that are dear to make, such as the text of a document, under a key that says what they were made from: in memory, and in
// a directory for the next process. All that it keeps is within bounds and goes after a day, and can be made again. A file that is not what was kept is
// removed and passed by.
package texts

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	keepFor   = 24 * time.Hour
	maxMemory = 64 << 20  // bytes of texts that are held
	maxDir    = 256 << 20 // bytes of files; less than so many new ones are not counted:
	slackDir  = maxDir / 16
	maxText   = 128 << 20
)

// Cache keeps texts. The zero value keeps them in memory. It is safe for concurrent use.
type Cache struct {
	// Dir is a directory of our own, which is made when it is needed, for its owner only; "" is none.
	Dir string

	mu      sync.Mutex
	held    map[string]text
	bytes   int
	written int64 // since the directory was last looked through, which the first one is
	looked  bool
	flights Flights[string, []byte]
}

type text struct {
	b  []byte
	at time.Time
}

// Get gives the text under key, or has work make it: once for all who ask for it meanwhile. plain says that a file may have it, and work that it may be kept. The
// text is not to be changed.
func (c *Cache) Get(ctx context.Context, key string, plain bool, work func() (b []byte, keep bool, err error)) ([]byte, error) {
	return c.flights.Do(ctx, key, func() ([]byte, error) {
		now := time.Now()
		c.mu.Lock()
		t, held := c.held[key]
		c.mu.Unlock()
		if held && now.Sub(t.at) < keepFor {
			return t.b, nil
		}
		if b := c.read(key, now); b != nil {
			c.hold(key, b, now)
			return b, nil
		}
		b, keep, err := work()
		if err == nil && keep {
			c.hold(key, b, now)
			if plain && c.Dir != "" {
				c.write(key, b, now)
			}
		}
		return b, err
	})
}

// hold keeps b in memory. When there is no room the oldest half of all goes.
func (c *Cache) hold(key string, b []byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(b) > maxMemory/4 {
		return
	}
	if c.held == nil {
		c.held = map[string]text{}
	}
	c.bytes += len(b) - len(c.held[key].b)
	c.held[key] = text{b, now}
	if c.bytes <= maxMemory {
		return
	}
	keys := make([]string, 0, len(c.held))
	for k := range c.held {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return c.held[a].at.Compare(c.held[b].at) })
	for _, k := range keys {
		if c.bytes <= maxMemory/2 {
			break
		}
		c.bytes -= len(c.held[k].b)
		delete(c.held, k)
	}
}

// file is the path of a key's file, which does not tell the key.
func (c *Cache) file(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(c.Dir, hex.EncodeToString(sum[:]))
}

// coders work for all caches. A frame has a checksum, which the decoder compares.
var coders = sync.OnceValue(func() (c struct {
	*zstd.Encoder
	*zstd.Decoder
}) {
	c.Encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	c.Decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxText))
	return c
})

func (c *Cache) read(key string, now time.Time) []byte {
	if c.Dir == "" {
		return nil
	}
	name := c.file(key)
	info, err := os.Lstat(name)
	if err != nil {
		return nil
	}
	if info.Mode().IsRegular() && info.Size() <= maxText && now.Sub(info.ModTime()) < keepFor {
		if b, err := os.ReadFile(name); err == nil {
			b, err = coders().DecodeAll(b, nil)
			if rest, ours := bytes.CutPrefix(b, []byte(key+"\n")); err == nil && ours {
				return rest
			}
		}
	}
	_ = os.Remove(name) // old, cut or another's: it is made anew
	return nil
}

// write keeps b for other processes. Where that fails it is made again.
func (c *Cache) write(key string, b []byte, now time.Time) {
	if os.MkdirAll(c.Dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(c.Dir, "new-*") // of mode 600
	if err != nil {
		return
	}
	b = coders().EncodeAll(append([]byte(key+"\n"), b...), nil)
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.file(key))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	c.mu.Lock()
	c.written += int64(len(b))
	full := !c.looked || c.written > slackDir
	if full {
		c.looked, c.written = true, 0
	}
	c.mu.Unlock()
	if full {
		sweep(c.Dir, now)
	}
}

// sweep removes the files of dir that are a day old, and then the oldest ones until the rest is within its bound.
func sweep(dir string, now time.Time) {
	entries, _ := os.ReadDir(dir)
	infos, size := make([]fs.FileInfo, 0, len(entries)), int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			infos = append(infos, info)
			size += info.Size()
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range infos {
		if size <= maxDir-slackDir && now.Sub(info.ModTime()) < keepFor {
			break
		}
		_ = os.Remove(filepath.Join(dir, info.Name()))
		size -= info.Size()
	}
}

// Purge removes all that the directory of a cache has.
func Purge(dir string) error { return os.RemoveAll(dir) }

// Flights lets those who ask for the same thing at the same time share one making of it. The zero value is ready.
type Flights[K comparable, V any] struct {
	mu  sync.Mutex
	now map[K]*flight[V]
}

type flight[V any] struct {
	done chan struct{}
	v    V
	err  error
}

// Do gives the outcome of work for key. It is that of another caller who is at it, unless that one's time was over first.
func (f *Flights[K, V]) Do(ctx context.Context, key K, work func() (V, error)) (v V, err error) {
	for {
		f.mu.Lock()
		at, under := f.now[key]
		if !under {
			at = &flight[V]{done: make(chan struct{}), err: errors.New("its maker gave up")}
			if f.now == nil {
				f.now = map[K]*flight[V]{}
			}
			f.now[key] = at
		}
		f.mu.Unlock()
		if !under {
			defer func() {
				f.mu.Lock()
				delete(f.now, key)
				f.mu.Unlock()
				close(at.done)
			}()
			at.v, at.err = work()
			return at.v, at.err
		}
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-at.done:
		}
		if !errors.Is(at.err, context.Canceled) && !errors.Is(at.err, context.DeadlineExceeded) {
			return at.v, at.err
		}
		if err := ctx.Err(); err != nil {
			return v, err
		}
	}
}
