//go:build !linux && !darwin

package approval

import "os"

// discardTypeahead: this system offers no way to drop what was typed before.
func discardTypeahead(*os.File) bool { return false }
