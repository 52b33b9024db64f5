//go:build !linux

package landlock

// ABI is the version of Landlock that the kernel has: none.
func ABI() int { return 0 }

// Restrict holds nothing here.
func Restrict(_, _ []string) error { return nil }
