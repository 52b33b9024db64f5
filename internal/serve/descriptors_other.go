//go:build !unix

package serve

// Descriptors gives the number of files and connections that the process may have open: here there is no limit.
func Descriptors() int { return 1 << 20 }
