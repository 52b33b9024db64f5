package guardfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"

	"golang.org/x/sys/unix"
)

// differs compares what has the name now with what the caller saw: identity, kind, mode, owner and the hash of the
// content. why is "" when they are the same. An object that nobody touched (size, times and all) since it was
// read is not read again when quick is set; a name that was just changed shows in the times of its object, so
// that quick is of no use there.
func (k *kernel) differs(dir int, name string, before *Before, quick bool) (why string, st status, err error) {
	fd, st, err := k.occupant(dir, name)
	if err != nil {
		return "", st, err
	}
	if fd < 0 {
		if quick {
			return "it was removed", st, nil
		}
		return "", st, unix.ENOENT
	}
	defer k.close(fd)
	was := &before.Info
	switch {
	case st.info.Kind != was.Kind:
		return "it is now a " + st.info.Kind.String(), st, nil
	case st.info.ID != was.ID:
		return "it was replaced by another file", st, nil
	case st.info.Mode != was.Mode:
		return "its mode was changed", st, nil
	case st.info.UID != was.UID || st.info.GID != was.GID:
		return "its owner was changed", st, nil
	case quick && st.unchanged(was):
		return "", st, nil
	case st.info.Kind == KindSymlink:
		target, err := k.target(fd)
		if err == nil && target != string(before.Content) {
			why = "it now leads elsewhere"
		}
		return why, st, err
	case st.info.Size != int64(len(before.Content)):
		return "its content was changed", st, nil
	}
	n, err := k.reopen(fd, readFlags)
	if err != nil {
		return "", st, err
	}
	defer k.close(n)
	hash, err := k.hash(n)
	if err != nil {
		return "", st, err
	}
	if hash != before.Hash {
		return "its content was changed", st, nil
	}
	if quick { // the times differ and the content does not: then it is an attribute, or nothing
		xattrs, err := k.xattrs(n)
		if err == nil && !maps.EqualFunc(xattrs, before.Meta.Xattrs, bytes.Equal) {
			why = "its attributes were changed"
		}
		return why, st, err
	}
	return "", st, nil
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
