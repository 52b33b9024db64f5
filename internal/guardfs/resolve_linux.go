//go:build !rooted

package guardfs

import (
	"errors"
	"fmt"
)

// FS resolves paths under one Judge. Safe for concurrent use.
type FS struct {
	kernel *kernel
	rules  Judge // as given: who asks it says all names
	pins   *pins
	judge  interface { // rules, told the names by the mounts of the moment
		Judge(o Object, a Access) error
	}

	journal  *Journal
	underway func(tag string) bool
}

// New opens the file system of this process for guarded use.
func New(o Options) (*FS, error) {
	if o.Judge == nil {
		return nil, errors.New("guardfs: a Judge is required")
	}
	k, err := openKernel(o.Calls, o.Walk, o.Fault)
	if err != nil {
		return nil, err
	}
	if err := k.openMounts(); err != nil {
		k.proc.close() //nolint:errcheck // nothing was written through it
		return nil, fmt.Errorf("reading /proc/self/mountinfo: %w", err)
	}
	k.hook = o.Fault
	f := &FS{kernel: k, judge: allNames{o.Judge, k}, rules: o.Judge, journal: o.Journal, underway: o.Underway}
	f.pins = &pins{dirs: map[pinKey]*pin{}}
	return f, nil
}

// With is f under another Judge. What New opened is shared, and Close of f gives it back.
func (f *FS) With(j Judge) *FS {
	other := *f
	other.judge, other.rules = allNames{j, f.kernel}, j
	return &other
}

// Close gives back what New opened, when the last call that uses it is over. Closing again does nothing. What would need it
// from then on, of handles that are still open too, answers fs.ErrClosed.
func (f *FS) Close() error {
	return errors.Join(f.kernel.table.file.close(), f.kernel.proc.close())
}

// Containment says how paths are resolved: "kernel" (openat2), "walk" (component by component) or, on systems
// other than Linux, "best_effort".
func (f *FS) Containment() string {
	if f.kernel.walk {
		return "walk"
	}
	return "kernel"
}
