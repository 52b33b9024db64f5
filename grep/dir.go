package grep

import (
	"io/fs"

	"moltisfs/grep/tree"
)

// Dir, File, Entry and Info are the tree of files as a search sees it; package tree documents each. An Entry of a Dir has Name,
// Kind and Way, an Info has Kind, Size, ModTime, ChangeTime, Ino and Links.
type (
	Dir   = tree.Dir
	File  = tree.File
	Entry = tree.Entry
	Info  = tree.Info
	Kind  = tree.Kind
)

// The kinds. KindOther is a fifo, a socket or a device: never opened.
const (
	KindOther = tree.KindOther
	KindFile  = tree.KindFile
	KindDir   = tree.KindDir
	KindLink  = tree.KindLink
)

// Errors of a Dir.
var (
	ErrMount  = tree.ErrMount
	ErrDenied = tree.ErrDenied
)

// FS makes a Dir of the root of fsys, for trees in memory, in archives or embedded. Paths in
// results are paths of fsys. A file that cannot seek is read once from the start, in order, by one
// worker.
func FS(fsys fs.FS) Dir { return tree.FS(fsys) }
