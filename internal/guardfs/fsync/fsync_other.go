//go:build !linux

package fsync

// Starter starts syncs. The zero value is ready; it is safe for concurrent use.
type Starter struct{}

// Start starts sync, which puts the file fd on stable storage. wait, which must be called once, waits for it and
// returns its error; fd must stay open until then.
func (s *Starter) Start(fd int, sync func() error) (wait func() error) { return inGoroutine(sync) }

// Close gives back what Start kept for the next time.
func (s *Starter) Close() {}
