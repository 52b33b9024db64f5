package grep

import (
	"crypto/sha256"
	"hash"
	"io/fs"
	"strconv"

	"moltisfs/grep/ignore"
)

// isRules: the entry has a say in what is ignored.
func isRules(name string) bool { return name == ".gitignore" || name == ".ignore" || name == ".git" }

// ruleSum stands for everything that rules were read from.
type ruleSum [sha256.Size]byte

// recorder sums up all that the loader of rules sees.
type recorder struct {
	ignore.Dir
	sum hash.Hash
}

func record(d Dir) recorder { return recorder{ruleDir{d}, sha256.New()} }

func (r recorder) result() (s ruleSum) {
	r.sum.Sum(s[:0])
	return s
}

func (r recorder) note(what, name string, err error, data []byte) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	for _, s := range []string{what, name, said, string(data)} {
		r.sum.Write([]byte(strconv.Itoa(len(s)) + ":" + s)) //nolint:errcheck // a hash does not fail
	}
}

func (r recorder) Stat(name string) (fs.FileMode, error) {
	m, err := r.Dir.Stat(name)
	r.note("stat", name, err, []byte(m.String()))
	return m, err
}

func (r recorder) ReadSmall(name string, max int64) ([]byte, error) {
	b, err := r.Dir.ReadSmall(name, max)
	r.note("read", name, err, b)
	return b, err
}

func (r recorder) OpenDir(name string) (ignore.Dir, error) {
	d, err := r.Dir.OpenDir(name)
	r.note("open", name, err, nil)
	return r.with(d, err)
}

func (r recorder) Parent() (ignore.Dir, error) {
	d, err := r.Dir.Parent()
	r.note("parent", "", err, nil)
	return r.with(d, err)
}

func (r recorder) with(d ignore.Dir, err error) (ignore.Dir, error) {
	if err != nil {
		return nil, err
	}
	r.note("at", d.True(), nil, nil)
	return recorder{d, r.sum}, nil
}

// sameRules reads again what rules come from that is not watched: the directories above the root, and repositories' own.
func (t *indexTree) sameRules(root Dir) bool {
	if t.key.noIgnore {
		return true
	}
	w := t.key.walk(root)
	r := record(root)
	ignore.Load(r, w.rules())
	if r.result() != t.sum {
		return false
	}
	for _, d := range t.repos {
		h, err := t.open(root, d)
		if err != nil {
			return false
		}
		r := record(h)
		t.rules.Enter(r, d.full, d.found)
		if h != root {
			h.Close()
		}
		if r.result() != d.sum {
			return false
		}
	}
	return true
}
