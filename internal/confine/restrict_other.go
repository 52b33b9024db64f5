//go:build !linux

package confine

import "syscall"

// ABI is the version of Landlock that the kernel has: none.
func ABI() int { return 0 }

func filtered() bool { return false }

// Restrict holds nothing here.
func Restrict([]Rule, bool, []uint16) error { return nil }

// Become runs a program in the place of this one.
func Become(name string, args, environ []string, _ bool) error {
	return syscall.Exec(name, args, environ)
}
