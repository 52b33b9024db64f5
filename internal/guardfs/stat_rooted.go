//go:build !linux || rooted

package guardfs

import "io/fs"

// basicInfo is what every system tells.
func basicInfo(fi fs.FileInfo) Info {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return Info{
		Kind: kindOf(fi.Mode()), Size: fi.Size(), Mode: fi.Mode() & bits,
		ModTime: fi.ModTime(), ChangeTime: fi.ModTime(), Links: 1,
	}
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsRegular():
		return KindFile
	case m.IsDir():
		return KindDir
	case m&fs.ModeSymlink != 0:
		return KindSymlink
	}
	return KindOther
}
