//go:build !linux && !darwin && !windows

package localdir

// Network: this system has no portable way to ask; the operator has to know.
func Network(string) (string, error) { return "", nil }
