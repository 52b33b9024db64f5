//go:build !linux

package run

import "os"

// Derived is none here.
type Derived struct{ Changes []Change }

// Derive gives the reason.
func Derive(Upper, Lower) (*Derived, error) { return nil, errSystem }

// Close does nothing.
func (*Derived) Close() {}

// Open opens nothing.
func (*Derived) Open(*Change) (*os.File, error) { return nil, errSystem }

// Strip does nothing.
func (*Derived) Strip([]Change) error { return errSystem }
