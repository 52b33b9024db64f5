// Package flock takes locks on open files, which hold between processes. A lock is given back by
// Close or when its process dies, in whatever way. It keeps nobody from the file who does not ask
// for it.
package flock

import (
	"errors"
	"os"
)

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

// Close gives the lock of f back, if f has it, and closes f. Closing alone would leave it held where
// another goroutine is just starting a program: the new process has a copy of f until it executes.
func Close(f *os.File) error { return errors.Join(unlock(f), f.Close()) }
