//go:build !linux

package doctor

// oldKernel: what other systems lack, no operator can add.
func oldKernel() bool { return false }
