package doctor

import "os"

// ours is not told on Windows.
func ours(os.FileInfo) bool { return true }
