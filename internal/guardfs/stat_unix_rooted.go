//go:build unix && (!linux || rooted)

package guardfs

import (
	"io/fs"
	"os"
	"syscall"
)

// infoOf describes entry name of root, which fi tells of.
func infoOf(_ *os.Root, _ string, fi fs.FileInfo) Info {
	info := basicInfo(fi)
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		info.ID = Identity{Dev: uint64(st.Dev), Ino: uint64(st.Ino)} //nolint:unconvert // types differ by system
		info.Links = uint64(st.Nlink)                                //nolint:unconvert // types differ by system
		info.UID, info.GID = st.Uid, st.Gid
	}
	return info
}

// infoOfFile describes an open file.
func infoOfFile(_ *os.File, fi fs.FileInfo) Info { return infoOf(nil, "", fi) }
