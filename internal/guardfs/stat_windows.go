package guardfs

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// infoOf describes entry name of root, which fi tells of. Only an open file tells its identity.
func infoOf(root *os.Root, name string, fi fs.FileInfo) Info {
	if k := kindOf(fi.Mode()); k == KindFile || k == KindDir {
		if f, err := root.Open(name); err == nil {
			defer f.Close() //nolint:errcheck // nothing was written through it
			if now, err := f.Stat(); err == nil && os.SameFile(now, fi) {
				return infoOfFile(f, fi)
			}
		}
	}
	return basicInfo(fi)
}

// infoOfFile describes an open file.
func infoOfFile(f *os.File, fi fs.FileInfo) Info {
	info := basicInfo(fi)
	var h windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &h) == nil {
		info.ID = Identity{
			Dev:   uint64(h.VolumeSerialNumber),
			Ino:   uint64(h.FileIndexHigh)<<32 | uint64(h.FileIndexLow),
			Birth: h.CreationTime.Nanoseconds(),
		}
		info.Links = uint64(h.NumberOfLinks)
		info.ChangeTime = time.Unix(0, h.LastWriteTime.Nanoseconds())
	}
	return info
}
