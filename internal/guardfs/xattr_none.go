//go:build !linux && !darwin

package guardfs

import "os"

// This system has no extended attributes that Go's x/sys knows.
func xattrs(*os.File) map[string][]byte { return nil }

func setXattrs(_ *os.File, all map[string][]byte) (dropped []string) { return nil }

// pseudo: this system has no kernel interfaces among its files.
func pseudo(*os.Root) bool { return false }
