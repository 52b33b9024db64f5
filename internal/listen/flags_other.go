//go:build !unix

package listen

const lockFlags = 0
