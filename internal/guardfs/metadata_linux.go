//go:build !rooted

package guardfs

import (
	"encoding/binary"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Attributes with a meaning of their own.
const (
	aclName  = "system.posix_acl_access"
	capsName = "security.capability"
)

// stale says that an attribute belongs to the content it was computed from and is wrong for any other.
func stale(name string) bool { return name == "security.ima" || name == "security.evm" }

// Expected is the part of m that a file staged there will most likely have: an owner and a group that this process can't give are its own, and set-id bits,
// capabilities and the system's own attributes are left out. Published.Dropped has the metadata that was not kept.
func (p *Entry) Expected(m Metadata) Metadata {
	uid, own, groups := p.fs.kernel.calls.User()
	root := uid == 0
	m.Mode &= fs.ModePerm | fs.ModeSticky
	for name := range m.Xattrs {
		if stale(name) || name == capsName || !root && (strings.HasPrefix(name, "security.") || strings.HasPrefix(name, "trusted.")) {
			m.Xattrs = maps.Clone(m.Xattrs)
			delete(m.Xattrs, name)
		}
	}
	if root {
		return m
	}
	m.UID = uint32(uid)
	gid := uint32(own)
	if m.GID == gid || slices.Contains(groups, int(m.GID)) {
		return m
	}
	if m.GID = gid; p.dir.Info.Mode&fs.ModeSetgid != 0 {
		m.GID = p.dir.Info.GID
	}
	m.Mode = foreignGroup(m.Mode)
	return m
}

// foreignGroup is a mode whose group bits were meant for another group: this one gets no more than everybody.
func foreignGroup(mode fs.FileMode) fs.FileMode { return mode&^0o070 | mode&(mode<<3)&0o070 }

// xattrs reads all extended attributes of an open file. nil: there are none, or the file system has no such thing.
func (k *kernel) xattrs(fd int) (map[string][]byte, error) {
	get := func(name string) ([]byte, error) {
		return grow(func(p []byte) (n int, err error) {
			err = k.do("getxattr", func() error { n, err = k.calls.Fgetxattr(fd, name, p); return err })
			return n, err
		})
	}
	raw, err := get("")
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return nil, nil
	}
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	all := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\x00"), "\x00") {
		value, err := get(name)
		switch err {
		case nil:
			all[name] = value
		case unix.ENODATA, unix.EACCES, unix.EPERM, unix.EOPNOTSUPP: // gone meanwhile, or not for us
		default:
			return nil, err
		}
	}
	return all, nil
}

// grow reads something whose size is not known before: most fit a small buffer, and ERANGE asks for a larger one.
func grow(read func([]byte) (int, error)) ([]byte, error) {
	var small [512]byte
	n, err := read(small[:])
	if err == nil {
		return slices.Clone(small[:n]), nil
	}
	for size := 4096; err == unix.ERANGE && size <= 1<<20; size *= 4 {
		p := make([]byte, size)
		if n, err = read(p); err == nil {
			return p[:n], nil
		}
	}
	return nil, err
}

// unkept says that a piece of metadata cannot be kept here, by this user or on this file system. Anything else (no
// space, I/O error) makes the whole Stage fail.
func unkept(err error) bool {
	switch err {
	case unix.EPERM, unix.EACCES, unix.EOPNOTSUPP, unix.EINVAL, unix.ENOSYS, unix.EROFS, unix.ENODATA, unix.ENOENT:
		return true
	}
	return false
}

// carry gives the staged file or directory behind fd the metadata m; a file gets no set-id bits and no capabilities. Order matters: a change of owner clears set-id bits and
// capabilities, an ACL changes mode bits, so the mode comes last. dropped lists what could not or must not be kept.
// now is the file as it was made, then as it is.
func (k *kernel) carry(fd int, now *status, m *Metadata) (dropped []string, err error) {
	mode := m.Mode
	if now.info.UID != m.UID || now.info.GID != m.GID {
		lost, err := k.chown(fd, m)
		if err != nil {
			return nil, err
		}
		dropped = append(dropped, lost...)
	}
	lost, mode, err := k.carryXattrs(fd, m, mode)
	if err != nil {
		return nil, err
	}
	dropped = append(dropped, lost...)
	if slices.Contains(dropped, "group") {
		mode = foreignGroup(mode)
	}
	keep := mode
	if now.info.Kind == KindFile || slices.Contains(dropped, "owner") {
		keep &^= fs.ModeSetuid
	}
	if now.info.Kind == KindFile || slices.Contains(dropped, "group") {
		keep &^= fs.ModeSetgid
	}
	err = k.chmod(fd, keep)
	if err != nil && !unkept(err) {
		return nil, err
	}
	if *now, err = k.stat(fd); err != nil { // the system clears set-id bits without a word
		return nil, err
	}
	for _, bit := range specialBits {
		if mode&bit.mode != 0 && now.info.Mode&bit.mode == 0 {
			dropped = append(dropped, bit.name)
		}
	}
	if now.info.Mode.Perm() != keep.Perm() {
		dropped = append(dropped, "mode")
	}
	return dropped, nil
}

// chown gives the file its owner and group, or at least its group.
func (k *kernel) chown(fd int, m *Metadata) (dropped []string, err error) {
	err = k.do("chown", func() error { return k.calls.Fchown(fd, int(m.UID), int(m.GID)) })
	if err == nil || !unkept(err) {
		return nil, err
	}
	err = k.do("chown", func() error { return k.calls.Fchown(fd, -1, int(m.GID)) })
	if err != nil && !unkept(err) {
		return nil, err
	}
	now, err := k.stat(fd)
	if err != nil {
		return nil, err
	}
	if now.info.UID != m.UID {
		dropped = append(dropped, "owner")
	}
	if now.info.GID != m.GID {
		dropped = append(dropped, "group")
	}
	return dropped, nil
}

// carryXattrs gives the file its extended attributes and takes away those that it got from its directory (a default
// ACL) and that m lacks. The mode comes back narrowed where an ACL was lost that had narrowed it.
func (k *kernel) carryXattrs(fd int, m *Metadata, mode fs.FileMode) (_ []string, _ fs.FileMode, err error) {
	var dropped []string
	if _, ok := m.Xattrs[aclName]; !ok {
		err := k.do("removexattr", func() error { return k.calls.Fremovexattr(fd, aclName) })
		if err != nil && !unkept(err) {
			return nil, 0, err
		}
	}
	names := make([]string, 0, len(m.Xattrs))
	for name := range m.Xattrs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		label := "xattr:" + name
		switch {
		case name == aclName || strings.HasPrefix(name, "system.") && strings.HasSuffix(name, "acl"):
			label = "acl"
		case name == capsName:
			label = "capabilities"
		}
		if stale(name) || name == capsName {
			dropped = append(dropped, label)
			continue
		}
		err := k.do("setxattr", func() error { return k.calls.Fsetxattr(fd, name, m.Xattrs[name]) })
		if err == nil {
			continue
		}
		if !unkept(err) {
			return nil, 0, err
		}
		dropped = append(dropped, label)
		if name == aclName {
			mode = withoutACL(m.Xattrs[name], mode)
		}
	}
	return dropped, mode, nil
}

// withoutACL is the mode of a file that loses its ACL. With one, the group bits are the mask of everybody named in
// it; without, they are the owning group's, which must not gain by that. The format is that of
// linux/posix_acl_xattr.h: a version of 4 bytes, then tag 2, permissions 2, id 4.
func withoutACL(acl []byte, mode fs.FileMode) fs.FileMode {
	const owningGroup = 0x04
	group := fs.FileMode(0)
	for e := acl; len(e) >= 12; e = e[8:] {
		if binary.LittleEndian.Uint16(e[4:]) == owningGroup {
			group = fs.FileMode(binary.LittleEndian.Uint16(e[6:])&7) << 3
		}
	}
	return mode&^0o070 | mode&0o070&group
}

// setTimes sets the modification time; the access time is left alone.
func (k *kernel) setTimes(fd int, m *Metadata) error {
	if m.ModTime.IsZero() {
		return nil
	}
	mtime, err := unix.TimeToTimespec(m.ModTime)
	if err != nil {
		return nil // a time that the system cannot express is not worth the file
	}
	return k.byHandle(func() error {
		return k.do("utimes", func() error { return k.calls.Touch(fd, mtime) })
	})
}
