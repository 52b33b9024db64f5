package rulefiles

import (
	"crypto/sha256"
	"hash"
	"io/fs"
	"strconv"

	"moltisfs/grep/ignore"
	"moltisfs/grep/tree"
)

// Is: the entry has a say in what is ignored.
func Is(name string) bool { return name == ".gitignore" || name == ".ignore" || name == ".git" }

// Sum stands for everything that rules were read from.
type Sum [sha256.Size]byte

// Record sums up all that the loader of rules sees.
type Record struct {
	ignore.Dir
	hash hash.Hash
}

// NewRecord shows d to the loader too.
func NewRecord(d tree.Dir) Record { return Record{dir{d}, sha256.New()} }

// Sum is that of all seen so far.
func (r Record) Sum() (s Sum) {
	r.hash.Sum(s[:0])
	return s
}

func (r Record) note(what, name string, err error, data []byte) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	for _, s := range []string{what, name, said, string(data)} {
		r.hash.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) //nolint:errcheck // a hash does not fail
	}
}

func (r Record) Stat(name string) (fs.FileMode, error) {
	m, err := r.Dir.Stat(name)
	r.note("stat", name, err, []byte(m.String()))
	return m, err
}

func (r Record) ReadSmall(name string, max int64) ([]byte, error) {
	b, err := r.Dir.ReadSmall(name, max)
	r.note("read", name, err, b)
	return b, err
}

func (r Record) OpenDir(name string) (ignore.Dir, error) {
	d, err := r.Dir.OpenDir(name)
	r.note("open", name, err, nil)
	return r.with(d, err)
}

func (r Record) Parent() (ignore.Dir, error) {
	d, err := r.Dir.Parent()
	r.note("parent", "", err, nil)
	return r.with(d, err)
}

func (r Record) with(d ignore.Dir, err error) (ignore.Dir, error) {
	if err != nil {
		return nil, err
	}
	r.note("at", d.True(), nil, nil)
	return Record{d, r.hash}, nil
}
