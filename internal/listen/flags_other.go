//go:build !unix

package listen

const lockFlags = 0

// Descriptors is how many files and connections the process may have open: here there is no limit.
func Descriptors() int { return 1 << 20 }
