//go:build !linux

package doctor

// oldKernel gives nothing: no operator can add to other systems.
func oldKernel() bool { return false }
