//go:build !linux && !darwin

package approval

import "os"

// discardTypeahead does nothing: this system offers no way to drop earlier input.
func discardTypeahead(*os.File) bool { return false }
