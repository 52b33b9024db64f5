//go:build !linux || rooted

package guardfs

import "os"

// Calls are the system calls on the tree, where they can be chosen: on Linux.
type Calls interface{ linuxOnly() }

func (*FS) user() int { return os.Getuid() }
