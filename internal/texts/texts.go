// Package texts keeps texts that are dear to make, such as the text of a document, in a directory, under a key that says what they were made from. All
// that it keeps is within bounds and goes after a day, and can be made again. A file that is not what was kept is removed and passed by.
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
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	keepFor = 24 * time.Hour
	maxDir  = 256 << 20 // bytes of files; so many new ones are not counted yet:
	slack   = maxDir / 16
	maxText = 128 << 20
)

// Cache keeps texts. It is safe for concurrent use, and several processes may have one directory.
type Cache struct {
	// Dir is a directory of our own, which is made when it is needed, for its owner only.
	Dir string

	swept   atomic.Bool
	written atomic.Int64 // since then
	flights Flights[string, []byte]
}

// Get gives the text under key, or has work make it: once for all who ask for it meanwhile, and to its end, though ctx may be over before. A text is kept
// where work says so, and plain that a file may have it. It is not to be changed.
func (c *Cache) Get(ctx context.Context, key string, plain bool, work func() (b []byte, keep bool, err error)) ([]byte, error) {
	return c.flights.Do(ctx, key, true, func() ([]byte, error) {
		now := time.Now()
		if b := c.read(key, now); b != nil {
			return b, nil
		}
		b, keep, err := work()
		if err == nil && keep && plain {
			c.write(key, b, now)
		}
		return b, err
	})
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
	if c.written.Add(int64(len(b))) > slack || c.swept.CompareAndSwap(false, true) {
		c.written.Store(0)
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
		if size <= maxDir-slack && now.Sub(info.ModTime()) < keepFor {
			break
		}
		_ = os.Remove(filepath.Join(dir, info.Name()))
		size -= info.Size()
	}
}

// Wait returns when no text is being made.
func (c *Cache) Wait() { c.flights.under.Wait() }

// Purge removes all that the directory of a cache has.
func Purge(dir string) error { return os.RemoveAll(dir) }

// Flights lets those who ask for the same thing at the same time share one making of it. The zero value is ready.
type Flights[K comparable, V any] struct {
	mu  sync.Mutex
	now map[K]*flight[V]

	under sync.WaitGroup // those that go on
}

type flight[V any] struct {
	done chan struct{}
	v    V
	err  error
}

// Do gives the outcome of work for key. It is that of another caller who is at it, unless that one's time was over first. on has work go on when ctx is
// over, for those who ask next.
func (f *Flights[K, V]) Do(ctx context.Context, key K, on bool, work func() (V, error)) (v V, err error) {
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
		make := func() {
			defer func() {
				f.mu.Lock()
				delete(f.now, key)
				f.mu.Unlock()
				close(at.done)
			}()
			at.v, at.err = work()
		}
		switch {
		case under:
		case on:
			f.under.Go(make)
		default:
			make()
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
