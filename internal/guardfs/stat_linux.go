//go:build !rooted

package guardfs

import (
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// status is what one look at an object tells: what the caller may know, and the mount it is on.
type status struct {
	info  Info
	mount uint64 // mount id; the device where the kernel does not say (before Linux 5.8)
}

// samePlace reports whether nothing that a foreign writer changes has changed since the look that gave info.
func (s *status) unchanged(info *Info) bool {
	return s.info.ID == info.ID && s.info.Size == info.Size && s.info.Mode == info.Mode &&
		s.info.ModTime.Equal(info.ModTime) && s.info.ChangeTime.Equal(info.ChangeTime)
}

// stat looks at the object behind fd.
func (k *kernel) stat(fd int) (status, error) {
	return k.statx(fd, "", unix.AT_EMPTY_PATH)
}

// lstat looks at name below dir, not following a link and not triggering an automount.
func (k *kernel) lstat(dir int, name string) (status, error) {
	return k.statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
}

func (k *kernel) statx(dir int, name string, flags int) (status, error) {
	if k.noStatx {
		return k.oldStat(dir, name, flags)
	}
	x, err := retry(k, "stat", func() (unix.Statx_t, error) { return k.calls.Statx(dir, name, flags) })
	if err != nil {
		return status{}, err
	}
	return fromStatx(&x), nil
}

func fromStatx(x *unix.Statx_t) status {
	s := status{
		info: Info{
			Kind:       kindOfMode(uint32(x.Mode)),
			Size:       int64(x.Size),
			Mode:       modeOf(uint32(x.Mode)),
			ModTime:    time.Unix(x.Mtime.Sec, int64(x.Mtime.Nsec)),
			ChangeTime: time.Unix(x.Ctime.Sec, int64(x.Ctime.Nsec)),
			AccessTime: time.Unix(x.Atime.Sec, int64(x.Atime.Nsec)),
			ID:         Identity{Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino},
			Links:      uint64(x.Nlink),
			UID:        x.Uid,
			GID:        x.Gid,
		},
	}
	if x.Mask&unix.STATX_BTIME != 0 {
		s.info.ID.Birth = x.Btime.Sec*1e9 + int64(x.Btime.Nsec)
	}
	s.mount = s.info.ID.Dev
	if x.Mask&unix.STATX_MNT_ID != 0 {
		s.mount = x.Mnt_id
	}
	return s
}

func (k *kernel) oldStat(dir int, name string, flags int) (status, error) {
	x, err := retry(k, "stat", func() (unix.Stat_t, error) { return k.calls.Fstatat(dir, name, flags) })
	if err != nil {
		return status{}, err
	}
	info := Info{
		Kind:       kindOfMode(x.Mode),
		Size:       x.Size,
		Mode:       modeOf(x.Mode),
		ModTime:    time.Unix(x.Mtim.Unix()),
		ChangeTime: time.Unix(x.Ctim.Unix()),
		AccessTime: time.Unix(x.Atim.Unix()),
		ID:         Identity{Dev: uint64(x.Dev), Ino: x.Ino}, //nolint:unconvert // 32 bits on some ports
		Links:      uint64(x.Nlink),
		UID:        x.Uid,
		GID:        x.Gid,
	}
	return status{info: info, mount: info.ID.Dev}, nil
}

func kindOfMode(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return KindFile
	case unix.S_IFDIR:
		return KindDir
	case unix.S_IFLNK:
		return KindSymlink
	}
	return KindOther
}

func modeOf(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	if mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// bitsOf is the inverse of modeOf.
func bitsOf(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	if m&fs.ModeSetuid != 0 {
		bits |= unix.S_ISUID
	}
	if m&fs.ModeSetgid != 0 {
		bits |= unix.S_ISGID
	}
	if m&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits
}

// special is the word for a thing that is no regular file, as NotRegularError has it.
func (k *kernel) special(fd int, info *Info) string {
	switch info.Kind {
	case KindDir:
		return "directory"
	case KindSymlink:
		return "symlink"
	}
	if x, err := k.calls.Fstatat(fd, "", unix.AT_EMPTY_PATH); err == nil {
		switch x.Mode & unix.S_IFMT {
		case unix.S_IFIFO:
			return "fifo"
		case unix.S_IFSOCK:
			return "socket"
		}
	}
	return "device"
}

// pseudo reports whether a file system of this type is an interface of the kernel: what is read there is made
// up on the spot, and a write is a command. From linux/magic.h.
func pseudo(magic uint32) bool {
	switch magic {
	case procMagic,
		0x62656572, // sysfs
		0x64626720, // debugfs
		0x74726163, // tracefs
		0xcafe4a11, // bpf
		0x73636673, // securityfs
		0x27e0eb,   // cgroup
		0x63677270, // cgroup2
		0x1cd1,     // devpts
		0xf97cff8c, // selinuxfs
		0x43415d53, // smackfs
		0x5a3c69f0, // apparmorfs (AAFS)
		0x62656570, // configfs
		0xde5e81e4, // efivarfs
		0x6165676c, // pstore
		0x42494e4d, // binfmt_misc
		0x65735543, // fusectl
		0x19800202, // mqueue
		0x6e736673, // nsfs
		0x50494446, // pidfs
		0x67596969, // rpc_pipefs
		0x6e667364, // nfsd
		0x9fa2,     // usbdevice
		0x07655821, // rdtgroup (resctrl)
		0x6c6f6f70, // binderfs
		0xabba1974, // xenfs
		0x09041934, // anon_inode
		0x50495045, // pipefs
		0x534f434b: // sockfs
		return true
	}
	return false
}
