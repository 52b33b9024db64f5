//go:build !linux

package run

import "os"

// Derived is none here.
type Derived struct{ Changes []Change }

// Derive gives the reason.
func Derive(Upper) (*Derived, error) { return nil, errSystem }

// Close does nothing.
func (*Derived) Close() {}

// Open opens nothing.
func (*Derived) Open(*Change) (*os.File, error) { return nil, errSystem }

// Ready does nothing.
func (*Derived) Ready([]Change, bool) error { return errSystem }
