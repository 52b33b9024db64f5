// Package flock takes locks on open files, which hold between processes. A lock is given back when its file is closed
// or its process dies, in whatever way. It keeps nobody from the file who does not ask for it.
package flock

import "os"

// TryLock takes the lock of f if nobody has it through another open file, also one of this process.
func TryLock(f *os.File) (bool, error) { return lock(f, exclusive|atOnce) }

// Lock waits for it.
func Lock(f *os.File) error {
	_, err := lock(f, exclusive)
	return err
}

// TryLockShared takes it beside others who do the same.
func TryLockShared(f *os.File) (bool, error) { return lock(f, shared|atOnce) }

// Unlock gives the lock of f back, and keeps f open.
func Unlock(f *os.File) error { return unlock(f) }
