package readers

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

// codeCache keeps compiled WebAssembly: on disk where the configuration says so, else in memory, so that a new sandbox after a trap need
// not compile again. What is in the directory is run as native code, so it must be nobody's but ours.
type codeCache struct {
	dir string

	mu     sync.Mutex
	c      wazero.CompilationCache
	memory bool // the directory is of no use
}

// get makes the cache on first use.
func (c *codeCache) get() wazero.CompilationCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c != nil {
		return c.c
	}
	if dir := c.onDisk(); dir != "" && !c.memory {
		if c.c = openCache(dir); c.c != nil {
			return c.c
		}
	}
	c.c = wazero.NewCompilationCache()
	return c.c
}

// onDisk is the directory, if it may be used.
func (c *codeCache) onDisk() string {
	if c.dir != "" && private(c.dir) {
		return c.dir
	}
	return ""
}

// keep makes what was compiled good for the next process.
func (c *codeCache) keep() {
	if dir := c.onDisk(); dir != "" {
		seal(dir)
	}
}

// leaveDisk makes do with memory from now on. What was compiled stays: something may still run in it.
func (c *codeCache) leaveDisk() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c, c.memory = nil, true
}

// compiled makes native code of gzipped WebAssembly, or takes it from the cache in a directory of ours ("" is none). A cache that can't be
// read or written costs time, and nothing else.
func compiled(ctx context.Context, c wazero.RuntimeConfig, cache string, gzipped []byte) (wazero.Runtime, wazero.CompiledModule, error) {
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

// close frees the compiled code. Nothing may run any more.
func (c *codeCache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c == nil {
		return nil
	}
	err := c.c.Close(context.Background())
	c.c = nil
	return err
}
