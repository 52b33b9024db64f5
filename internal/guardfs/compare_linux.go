//go:build !rooted

package guardfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"

	"golang.org/x/sys/unix"
)

// overlayMagic is OVERLAYFS_SUPER_MAGIC of linux/magic.h.
const overlayMagic = 0x794c7630

// hold looks at what has the name before it is changed. When it is what the caller saw (why is ""), held is a handle on it that the caller
// gives back; it is -1 otherwise.
func (k *kernel) hold(dir int, name string, want Expect) (held int, why Meanwhile, err error) {
	fd, st, err := k.occupant(dir, name)
	if err != nil {
		return -1, "", err
	}
	if fd < 0 {
		return -1, WasRemoved, nil
	}
	if why, err = k.unlike(fd, &st, want, -1, true); err != nil || why != "" {
		k.close(fd)
		return -1, why, err
	}
	return fd, "", nil
}

// differs compares what has the name, once it was changed, with what the caller saw; held is what hold gave, or -1. Nothing there is ENOENT.
func (k *kernel) differs(dir int, name string, want Expect, held int) (why Meanwhile, st status, err error) {
	fd, st, err := k.occupant(dir, name)
	if err != nil {
		return "", st, err
	}
	if fd < 0 {
		return "", st, unix.ENOENT
	}
	defer k.close(fd)
	why, err = k.unlike(fd, &st, want, held, false)
	return why, st, err
}

// copiedUp says that an object is the one that was expected though its identity is another: to change a name of an overlay file system's
// lower layer copies the file up, which gives it another time of birth, and where it had several names another number too. A handle that was held over
// the change knows it still. Without one, as when somebody else had it copied up, device and number have to be the same, and the content is
// compared in any case.
func (k *kernel) copiedUp(fd, held int, now, was Identity) bool {
	if held >= 0 {
		st, err := k.stat(held)
		if err == nil && st.info.ID == now {
			return true
		}
	}
	if now.Dev != was.Dev || now.Ino != was.Ino {
		return false
	}
	magic, err := k.magic(fd)
	return err == nil && magic == overlayMagic
}

// unlike says in what an object is not what the caller saw: identity, kind, mode, owner or the hash of the
// content. why is "" when they are the same. An object that nobody touched (size, times and all) since it was
// read is not read again when quick is set; a name that was just changed shows in the times of its object, so
// that quick is of no use there.
func (k *kernel) unlike(fd int, st *status, want Expect, held int, quick bool) (why Meanwhile, err error) {
	if want.Like != nil && st.info.Kind != want.Like.Info.Kind {
		return NowA(st.info.Kind.String()), nil
	}
	before := want.content()
	if st.info.ID != want.ID && !k.copiedUp(fd, held, st.info.ID, want.ID) {
		return Replaced, nil
	}
	if before == nil {
		return "", nil
	}
	was := &before.Info
	switch {
	case st.info.Mode != was.Mode:
		return ModeChanged, nil
	case st.info.UID != was.UID || st.info.GID != was.GID:
		return OwnerChanged, nil
	case quick && st.unchanged(was):
		return "", nil
	case st.info.Kind == KindSymlink:
		target, err := k.target(fd)
		if err == nil && hashOf([]byte(target)) != before.Hash {
			why = LeadsElsewhere
		}
		return why, err
	case st.info.Size != was.Size:
		return ContentChanged, nil
	}
	n, err := k.reopen(fd, ReadFlags)
	if err != nil {
		return "", err
	}
	defer k.close(n)
	hash, err := k.hash(n)
	if err != nil {
		return "", err
	}
	if hash != before.Hash {
		return ContentChanged, nil
	}
	if quick { // the times differ and the content does not: then it is an attribute, or nothing
		xattrs, err := k.xattrs(n)
		if err == nil && !maps.EqualFunc(xattrs, before.Meta.Xattrs, bytes.Equal) {
			why = AttributesChanged
		}
		return why, err
	}
	return "", nil
}

// hash is the SHA-256 of a file's content in hex.
func (k *kernel) hash(fd int) (string, error) {
	raw := k.batches.Get().(*[batch]byte)
	defer k.batches.Put(raw)
	h := sha256.New()
	for off := int64(0); ; {
		n, err := k.preadFull(fd, raw[:], off)
		h.Write(raw[:n]) //nolint:errcheck // never fails
		off += int64(n)
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
