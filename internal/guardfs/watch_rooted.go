//go:build !linux || rooted

package guardfs

import "context"

// Watcher tells what changed in directories. There is none on this system.
type Watcher struct{}

// NewWatcher answers ErrUnwatchable.
func (f *FS) NewWatcher() (*Watcher, error) { return nil, ErrUnwatchable }

// Close does nothing.
func (w *Watcher) Close() error { return nil }

// Watch answers ErrUnwatchable.
func (w *Watcher) Watch(*Dir) (id int, err error) { return 0, ErrUnwatchable }

// Unwatch does nothing.
func (w *Watcher) Unwatch(int) {}

// Wait answers ErrUnwatchable.
func (w *Watcher) Wait(context.Context) error { return ErrUnwatchable }

// Events answers ErrUnwatchable.
func (w *Watcher) Events(func(Event)) error { return ErrUnwatchable }
