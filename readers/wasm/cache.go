// Package wasm is what our WebAssembly sandboxes share: a cache of compiled code, and how their
// memory grows.
//
// The cache's directory holds machine code that is run as it lies there. So the directory must be
// ours alone, every entry has a checksum beside it, and whatever is odd is passed by and compiled
// again. These are the only files that readers open.
package wasm

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// Cache keeps compiled WebAssembly: on disk where the configuration says so, else in memory, so
// that a new sandbox after a trap need not compile again. What is in the directory is run as native
// code, so it must be nobody's but ours.
type Cache struct {
	Dir string // empty: none

	mu     sync.Mutex
	c      wazero.CompilationCache
	memory bool // the directory is of no use
}

// Get makes the cache on first use.
func (c *Cache) Get() wazero.CompilationCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c != nil {
		return c.c
	}
	if dir := c.OnDisk(); dir != "" && !c.memory {
		if c.c = openCache(dir); c.c != nil {
			return c.c
		}
	}
	c.c = wazero.NewCompilationCache()
	return c.c
}

// OnDisk is the directory, if it may be used.
func (c *Cache) OnDisk() string {
	if c.Dir != "" && private(c.Dir) {
		return c.Dir
	}
	return ""
}

// Keep makes what was compiled good for the next process.
func (c *Cache) Keep() {
	if dir := c.OnDisk(); dir != "" {
		seal(dir)
	}
}

// LeaveDisk makes do with memory from now on. What was compiled stays: something may still run in
// it.
func (c *Cache) LeaveDisk() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c, c.memory = nil, true
}

// Compile makes native code of gzipped WebAssembly, or takes it from the cache in a directory of
// ours ("" is none). A cache that can't be read or written costs time, and nothing else.
func Compile(ctx context.Context, c wazero.RuntimeConfig, cache string, gzipped []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	zip, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		return nil, nil, err
	}
	code, err := io.ReadAll(zip)
	if err != nil {
		return nil, nil, err
	}
	if cache != "" {
		if onDisk := openCache(cache); onDisk != nil {
			run := wazero.NewRuntimeWithConfig(ctx, c.WithCompilationCache(onDisk))
			module, err := run.CompileModule(ctx, code)
			if err != nil {
				module, err = run.CompileModule(ctx, code) // what could only not be stored is at hand now
			}
			if err == nil {
				seal(cache)
				return run, module, nil
			}
		}
	}
	run := wazero.NewRuntimeWithConfig(ctx, c)
	module, err := run.CompileModule(ctx, code)
	return run, module, err
}

// openCache opens the cache in a directory; nil where it is not to be trusted.
func openCache(dir string) wazero.CompilationCache {
	if !sound(dir) {
		return nil
	}
	c, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil
	}
	return c
}

// Close frees the compiled code. Nothing may run any more.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c == nil {
		return nil
	}
	err := c.c.Close(context.Background())
	c.c = nil
	return err
}
