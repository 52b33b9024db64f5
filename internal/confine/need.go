package confine

import "runtime"

// Missing names the parts of a confinement that the kernel can't hold, in words; none where all
// of it is held.
func Missing(abi int, network bool) (missing []string) {
	switch {
	case abi == 0:
		return []string{"Landlock is not there: nothing at all is held"}
	case abi < 2:
		missing = append(missing, "files can't be moved between directories (ABI 1)")
		fallthrough
	case abi < 3:
		missing = append(missing, "files that may only be read can be cut off")
	}
	if abi < 4 && !network {
		missing = append(missing, "TCP is open")
	}
	if abi < 6 {
		missing = append(missing, "processes outside can be signalled, and reached by abstract sockets")
	}
	if !filtered() {
		missing = append(missing, "UDP is open, and a terminal can be typed into: no system call is "+
			"filtered on "+runtime.GOARCH)
	}
	return missing
}
