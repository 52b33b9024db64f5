//go:build !unix

package wasm

import "os"

// ownedByUs takes the directory's word: below a user's profile the system lets nobody else write.
func ownedByUs(os.FileInfo) bool { return true }
