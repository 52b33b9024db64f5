package guardfs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"strconv"
	"strings"
)

// Names that this package gives beside the agent's files. The temporary ones carry the tag of their operation.
const (
	tempPrefix = ".moltis-"
	keptSuffix = ".kept"
	randomHex  = 24 // 96 bits: not to be guessed, not to collide

	// TagLen is the length of the tag of an operation: hexadecimal digits.
	TagLen = 16
)

// The endings of temporary names: of an object that is staged, or was displaced by it; of one that was displaced where names can't be
// exchanged; and of one that recovery makes anew.
const (
	tempSuffix = ".tmp"
	oldSuffix  = ".old"
	newSuffix  = ".new"
)

// TempName is the n-th temporary name of the operation that has that tag.
func TempName(tag string, n int) string { return tempPrefix + tag + "-" + strconv.Itoa(n) + tempSuffix }

// OldName is the name of the object that temp displaces where names can't be exchanged.
func OldName(temp string) string { return strings.TrimSuffix(temp, tempSuffix) + oldSuffix }

// NewName is the name under which the object that temp displaced is made anew.
func NewName(temp string) string { return strings.TrimSuffix(temp, tempSuffix) + newSuffix }

// ParseTemp gives the tag of the operation that a temporary name is of.
func ParseTemp(name string) (tag string, ok bool) {
	middle, ok := strings.CutPrefix(name, tempPrefix)
	dot := strings.LastIndexByte(middle, '.')
	if !ok || dot < 0 || middle[dot:] != tempSuffix && middle[dot:] != oldSuffix && middle[dot:] != newSuffix {
		return "", false
	}
	tag, number, _ := strings.Cut(middle[:dot], "-")
	n, err := strconv.Atoi(number)
	return tag, isTag(tag) && err == nil && n >= 0 && strconv.Itoa(n) == number
}

func isTag(s string) bool {
	return len(s) == TagLen && strings.Trim(s, "0123456789abcdef") == ""
}

// NewTag is a tag that no other operation has.
func NewTag() string { return random(TagLen) }

// TrashPrefix begins the names of trash directories, which hold objects that were moved out of a tree as a whole, each on its own volume.
const TrashPrefix = ".moltis-trash"

// IsTrash reports whether name, in letters of either case, is that of such a directory.
func IsTrash(name string) bool {
	return len(name) >= len(TrashPrefix) && name[0] == '.' && strings.EqualFold(name[:len(TrashPrefix)], TrashPrefix)
}

// Reserved reports whether name, in letters of either case, is one that this package gives: nobody
// lists it or enters it by way of a walk, and a Judge SHOULD refuse it, with all that is below.
func Reserved(name string) bool {
	if len(name) <= len(tempPrefix) || name[0] != '.' || !strings.EqualFold(name[:len(tempPrefix)], tempPrefix) {
		return false
	}
	return IsTrash(name) || Temporary(strings.ToLower(name))
}

// ReservedPath reports whether any part of a path is Reserved.
func ReservedPath(path string) bool {
	for rest := path; ; {
		at := strings.Index(rest, "/"+tempPrefix)
		if at < 0 {
			return false
		}
		name, _, _ := strings.Cut(rest[at+1:], "/")
		if Reserved(name) {
			return true
		}
		rest = rest[at+1:]
	}
}

// TrashName is the name of that of the user as whom calls are made.
func (f *FS) TrashName() string { return TrashPrefix + "-" + strconv.Itoa(f.user()) }

// Private reports whether a directory of that user is there that nobody else may enter. Windows has no such modes: there it is any directory.
func (p *Entry) Private() bool {
	i := &p.object.Info
	if runtime.GOOS == "windows" {
		return i.Kind == KindDir
	}
	return i.Kind == KindDir && int(i.UID) == p.fs.user() && i.Mode&0o077 == 0
}

// ours says that name is a temporary one of an operation that is under way, or was cut off.
func (f *FS) ours(name string) bool {
	tag, ok := ParseTemp(name)
	return ok && (f.journal.Has(tag) || f.underway != nil && f.underway(tag))
}

func random(digits int) string {
	b := make([]byte, digits/2)
	rand.Read(b) //nolint:errcheck // never fails
	return hex.EncodeToString(b)
}

// Temporary reports whether name looks like one that this package gives for a moment. Whether it is one, the journal and the store
// tell. The names ending in ".kept" are not: they hold a text of somebody that nobody should miss.
func Temporary(name string) bool {
	if _, ok := ParseTemp(name); ok {
		return true
	}
	middle, ours := strings.CutPrefix(name, tempPrefix) // as earlier versions gave them
	middle, temp := strings.CutSuffix(middle, tempSuffix)
	return ours && temp && len(middle) >= TagLen && strings.Trim(middle, "0123456789abcdef-") == ""
}

// IsKept reports whether name is one under which something is kept beside a file.
func IsKept(name string) bool {
	middle, ours := strings.CutPrefix(name, tempPrefix)
	random, kept := strings.CutSuffix(middle, keptSuffix)
	return ours && kept && len(random) == randomHex && strings.Trim(random, "0123456789abcdef") == ""
}

// keptName is a name for an object that must not be lost and could not stay where it was.
func keptName() string { return tempPrefix + random(randomHex) + keptSuffix }

func newBefore(info Info, content []byte, hash string, xattrs map[string][]byte) *Before {
	return &Before{
		Exists: true, Info: info, Content: content, Hash: hash,
		Meta: Metadata{Mode: info.Mode, UID: info.UID, GID: info.GID, ModTime: info.ModTime, Xattrs: xattrs},
	}
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
