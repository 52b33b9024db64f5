//go:build !linux || rooted

package run

import (
	"context"
	"syscall"
)

// errSystem is the answer of every function here.
var errSystem = &Error{Why: "programs are run under the history on Linux only", Do: "run it on Linux, or without moltis-fs"}

// Run is none here.
type Run struct{ Options }

// Process is none here.
type Process struct{}

// Probe gives the reason.
func Probe(Options) error { return errSystem }

// New makes none.
func New(Options) (*Run, error) { return nil, errSystem }

// Open opens none.
func Open(string, string) (*Run, error) { return nil, errSystem }

// List lists none.
func List(string) ([]Info, error) { return nil, nil }

// Closed lists none.
func Closed(string, func(string) func(string, bool) (bool, bool)) ([]string, error) {
	return nil, errSystem
}

// Temporary is empty.
func (*Run) Temporary(string) string { return "" }

// ID is empty.
func (*Run) ID() string { return "" }

// Renew gives the reason.
func (*Run) Renew(Options) error { return errSystem }

// Torn is false.
func (*Run) Torn() bool { return false }

// Upper is empty.
func (*Run) Upper() Upper { return Upper{} }

// Start starts nothing.
func (*Run) Start(context.Context, Program) (*Process, error) { return nil, errSystem }

// Close does nothing.
func (*Run) Close() error { return nil }

// Drop does nothing.
func (*Run) Drop() error { return nil }

// Wait does nothing.
func (*Process) Wait() (Status, error) { return Status{}, errSystem }

// Signal does nothing.
func (*Process) Signal(syscall.Signal) error { return errSystem }

// Kill does nothing.
func (*Process) Kill() {}
