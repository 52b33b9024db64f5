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

	mu sync.Mutex
	c  wazero.CompilationCache
}

// get makes the cache on first use.
func (c *codeCache) get() wazero.CompilationCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c != nil {
		return c.c
	}
	if dir := c.onDisk(); dir != "" {
		if onDisk, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			c.c = onDisk
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

// compiled makes native code of gzipped WebAssembly, or takes it from the cache in a directory of ours ("" is none).
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
		if onDisk, err := wazero.NewCompilationCacheWithDir(cache); err == nil {
			c = c.WithCompilationCache(onDisk)
		}
	}
	run := wazero.NewRuntimeWithConfig(ctx, c)
	module, err := run.CompileModule(ctx, code)
	return run, module, err
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
