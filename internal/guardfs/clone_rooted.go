//go:build !linux || rooted

package guardfs

import "os"

// Cloner is nil: files can't be cloned here.
func (p *Place) Cloner(*Before) func(dst *os.File) error { return nil }

// Cloner is nil: files can't be cloned here.
func (f *File) Cloner() func(dst *os.File) error { return nil }

// Steady can't be told here.
func (f *File) Steady() bool { return false }
