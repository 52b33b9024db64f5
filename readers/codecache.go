package readers

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
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
	if c.dir != "" && private(c.dir) {
		if onDisk, err := wazero.NewCompilationCacheWithDir(c.dir); err == nil {
			c.c = onDisk
			return c.c
		}
	}
	c.c = wazero.NewCompilationCache()
	return c.c
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
