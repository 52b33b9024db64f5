// Package wasm compiles WebAssembly, and keeps the compiled code for the next process.
//
// The directory of a [Cache] holds machine code that is run as it lies there. So the directory must be
// ours alone, every entry has a checksum beside it, and whatever is odd is passed by and compiled
// again. These are the only files that readers open.
package wasm

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// Cache keeps compiled WebAssembly: in the directory Dir where that may be used, else in memory, so that a new sandbox after a
// trap need not compile again. It is not safe for concurrent use.
type Cache struct {
	Dir string // "": none
	c   wazero.CompilationCache
}

// Get makes the cache on first use.
func (c *Cache) Get() wazero.CompilationCache {
	if c.c == nil && c.usable() && checked(c.Dir) {
		c.c, _ = wazero.NewCompilationCacheWithDir(c.Dir)
	}
	if c.c == nil {
		c.c = wazero.NewCompilationCache()
	}
	return c.c
}

// keep makes the code that was compiled good for the next process, and gives back the memory that compiling took: several
// hundred MB, which nothing will ask for again.
func (c *Cache) keep() {
	compiled := true
	if c.usable() {
		compiled = seal(c.Dir)
		bound(c.Dir)
	}
	if compiled {
		go debug.FreeOSMemory()
	}
}

// leaveDisk makes do with memory from now on. Compiled code is not freed: something may still run in it.
func (c *Cache) leaveDisk() { *c = Cache{} }

// Close frees the compiled code. Nothing may run any more.
func (c *Cache) Close() error {
	if c.c == nil {
		return nil
	}
	err := c.c.Close(context.Background())
	c.c = nil
	return err
}

// Compile makes native code of the WebAssembly code, or takes it from the cache. A cache that can't be read or written costs
// time, and nothing else.
func (c *Cache) Compile(ctx context.Context, config wazero.RuntimeConfig, code []byte) (run wazero.Runtime, module wazero.CompiledModule, err error) {
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	err = c.Try(func() (err error) {
		run = wazero.NewRuntimeWithConfig(ctx, config.WithCompilationCache(c.Get()))
		module, err = run.CompileModule(ctx, code)
		return err
	})
	return run, module, err
}

// Try has something compiled by f with the cache that Get gives.
func (c *Cache) Try(f func() error) error {
	err := f()
	if err != nil {
		err = f() // code that could only not be stored is in memory now
	}
	if err != nil {
		c.leaveDisk()
		err = f()
	}
	if err == nil {
		c.keep()
	}
	return err
}

func (c *Cache) usable() bool { return c.Dir != "" && private(c.Dir) }

// private makes the directory if it is missing and reports whether it and everything in it belong to
// us alone: no link, no other owner, no leave to write for anybody else.
func private(dir string) bool {
	if err := os.MkdirAll(dir, 0o700); err != nil || !ours(dir) {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.IsDir() && !ours(filepath.Join(dir, e.Name())) || e.Type()&os.ModeSymlink != 0 {
			return false
		}
	}
	return true
}

func ours(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && ownedByUs(info)
}

// sealed is the end of the name of a file that holds the CRC-32C of an entry of the cache. wazero's
// own covers the code, but not the table of where its functions begin: a wrong one there is jumped
// to, or memory asked for after it.
const sealed = ".crc"

// checked removes the entries that differ from their seal, and reports whether that was possible.
func checked(dir string) bool {
	for entry := range cacheEntries(dir) {
		want, err := os.ReadFile(entry + sealed)
		if got, ok := checksum(entry); err == nil && ok && got == string(want) {
			continue
		}
		if err := os.Remove(entry); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		_ = os.Remove(entry + sealed) // names nothing any more
	}
	return true
}

// seal writes the checksums of new entries, and reports whether there are any. An entry that gets none is compiled again.
func seal(dir string) (found bool) {
	for entry := range cacheEntries(dir) {
		if _, err := os.Stat(entry + sealed); err == nil {
			continue
		}
		if sum, ok := checksum(entry); ok {
			_ = os.WriteFile(entry+sealed, []byte(sum), 0o600)
			found = true
		}
	}
	return found
}

// entriesKept is how many entries a cache has: three modules, each in a few versions of ours, with up to 20 MB each.
const entriesKept = 8

// bound removes the oldest entries beyond entriesKept. A process that runs one has it in memory.
func bound(dir string) {
	age := map[string]time.Time{}
	for entry := range cacheEntries(dir) {
		if info, err := os.Stat(entry); err == nil {
			age[entry] = info.ModTime()
		}
	}
	newest := slices.SortedFunc(maps.Keys(age), func(a, b string) int { return age[b].Compare(age[a]) })
	for _, entry := range newest[min(len(newest), entriesKept):] {
		if os.Remove(entry) == nil { // else it is tried again
			_ = os.Remove(entry + sealed)
		}
	}
}

// cacheEntries yields the names of compiled code below the directory, not those of files that are
// being written.
func cacheEntries(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		versions, _ := os.ReadDir(dir)
		for _, v := range versions {
			files, _ := os.ReadDir(filepath.Join(dir, v.Name()))
			for _, f := range files {
				if filepath.Ext(f.Name()) == "" && !yield(filepath.Join(dir, v.Name(), f.Name())) {
					return
				}
			}
		}
	}
}

func checksum(name string) (string, bool) {
	f, err := os.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.CopyBuffer(h, struct{ io.Reader }{f}, make([]byte, 256<<10))
	return fmt.Sprintf("%08x %d", h.Sum32(), n), err == nil
}
