//go:build !unix

package token

const openFlags = 0
