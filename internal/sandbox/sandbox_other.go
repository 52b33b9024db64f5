//go:build !linux || rooted

package sandbox

import (
	"context"
	"errors"

	"moltisfs/internal/guardfs"
)

// errLinux is the answer elsewhere.
var errLinux = errors.New("a sandbox takes Linux, here and inside")

// Session is none here.
type Session struct{}

// Start begins nothing.
func Start(context.Context, Options) (*Session, error) { return nil, errLinux }

// Hello is empty.
func (*Session) Hello() Hello { return Hello{} }

// Calls are none.
func (*Session) Calls() guardfs.Calls { return nil }

// Close does nothing.
func (*Session) Close() error { return nil }

// Work would run a worker.
type Work struct {
	Root, Build string
	Confine     func(root string) (bool, error)
}

// Run does nothing.
func (Work) Run(int, int) error { return errLinux }
