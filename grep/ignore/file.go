package ignore

import (
	"bytes"
	"strings"
)

// Decision is the verdict of one ignore file on a path.
type Decision int8

// The decisions. Include comes from a "!" rule.
const (
	None Decision = iota
	Ignore
	Include
)

// File is one parsed ignore file. It is immutable.
//
// Rules are kept in buckets, so that a name is compared with the few rules that could match it and
// not with every line. Literal names and "*.ext" are in maps; other base-name globs and anchored
// rules are in lists. The last matching line of all buckets wins.
type File struct {
	rules []rule
	exact map[string][]int32 // base name → rules
	ext   map[string][]int32 // the part after the last dot → rules of the form "*.ext"
	base  []int32            // other rules without a slash
	top   []int32            // anchored rules of one segment: for the file's own directory only
	deep  []int32            // anchored rules that may reach below
	fold  bool
}

type rule struct {
	neg, dirOnly bool
	lit          string // anchored: literal prefix, compared as bytes before the glob sees the rest
	glob         *Glob  // nil: the literal is the whole pattern
}

// MaxFile is the size in bytes up to which Set.Enter and Load read an ignore file. git has no
// limit. A larger file was not written by a person; it is reported as unread.
const MaxFile = 4 << 20

// Parse reads an ignore file as git does. A byte order mark is skipped. CR before LF is dropped.
// "#" begins a comment in column 0 only. Unescaped spaces at the end (not tabs) are trimmed. A NUL
// ends its line. fold is core.ignorecase. No input is an error; a malformed pattern matches
// nothing.
func Parse(data []byte, fold bool) *File {
	f := &File{fold: fold}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if i := bytes.IndexByte(line, 0); i >= 0 {
			line = line[:i]
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		f.add(trimSpaces(string(line)))
	}
	return f
}

// Empty says that the file holds no rule.
func (f *File) Empty() bool { return f == nil || len(f.rules) == 0 }

func (f *File) add(p string) {
	var r rule
	if strings.HasPrefix(p, "!") {
		r.neg = true
		p = p[1:]
	}
	if strings.HasSuffix(p, "/") {
		r.dirOnly = true
		p = p[:len(p)-1]
	}
	id := int32(len(f.rules))
	d := Dialect{Fold: f.fold}
	if !strings.Contains(p, "/") {
		if p == "" {
			return
		}
		k := literalPrefix(p)
		switch {
		case k == len(p):
			f.exact = put(f.exact, f.folded(p), id)
		case strings.HasPrefix(p, "*.") && literalPrefix(p[1:]) == len(p)-1 &&
			!strings.Contains(p[2:], "."):
			f.ext = put(f.ext, f.folded(p[2:]), id)
		default:
			r.glob, _ = Compile(p, d)
			f.base = append(f.base, id)
		}
		f.rules = append(f.rules, r)
		return
	}
	p = strings.TrimPrefix(p, "/")
	// git compares the literal prefix and hands only the rest to wildmatch: "foo**/bar" is "foo" +
	// "**/bar".
	k := literalPrefix(p)
	r.lit = f.folded(p[:k])
	if k < len(p) {
		r.glob, _ = Compile(p[k:], d)
	}
	if !strings.Contains(p, "/") && !strings.Contains(p, "**") {
		f.top = append(f.top, id)
	} else {
		f.deep = append(f.deep, id)
	}
	f.rules = append(f.rules, r)
}

func put(m map[string][]int32, k string, id int32) map[string][]int32 {
	if m == nil {
		m = make(map[string][]int32)
	}
	m[k] = append(m[k], id)
	return m
}

func (f *File) folded(s string) string {
	if f.fold {
		return Lower(s)
	}
	return s
}

// literalPrefix is the length of p before its first glob character.
func literalPrefix(p string) int {
	if k := strings.IndexAny(p, `*?[\`); k >= 0 {
		return k
	}
	return len(p)
}

// trimSpaces drops spaces at the end that no backslash protects.
func trimSpaces(s string) string {
	cut := -1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if cut < 0 {
				cut = i
			}
			continue
		case '\\':
			i++
			if i >= len(s) {
				return s
			}
		}
		cut = -1
	}
	if cut >= 0 {
		return s[:cut]
	}
	return s
}

// Match decides for a path relative to the file's directory, without a trailing slash.
func (f *File) Match(rel string, isDir bool) Decision {
	rel = f.folded(rel)
	i := strings.LastIndexByte(rel, '/') + 1
	var s Scratch
	return f.match(rel[:i], rel[i:], isDir, &s)
}

// match decides for dir+name; dir is "" or ends in a slash. Both are folded already where f.fold.
func (f *File) match(dir, name string, isDir bool, s *Scratch) Decision {
	best := int32(-1)
	if f.exact != nil {
		best = f.last(f.exact[name], best, isDir)
	}
	if f.ext != nil {
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			best = f.last(f.ext[name[i+1:]], best, isDir)
		}
	}
	for i := len(f.base) - 1; i >= 0 && f.base[i] > best; i-- {
		r := &f.rules[f.base[i]]
		if (isDir || !r.dirOnly) && r.glob.matchName(name) {
			best = f.base[i]
		}
	}
	if dir == "" {
		for i := len(f.top) - 1; i >= 0 && f.top[i] > best; i-- {
			if f.rules[f.top[i]].anchored(name, isDir) {
				best = f.top[i]
			}
		}
	}
	if len(f.deep) > 0 && f.deep[len(f.deep)-1] > best {
		best = f.matchDeep(dir, name, isDir, best, s)
	}
	switch {
	case best < 0:
		return None
	case f.rules[best].neg:
		return Include
	}
	return Ignore
}

func (f *File) matchDeep(dir, name string, isDir bool, best int32, s *Scratch) int32 {
	path := ""
	for i := len(f.deep) - 1; i >= 0 && f.deep[i] > best; i-- {
		r := &f.rules[f.deep[i]]
		if !isDir && r.dirOnly {
			continue
		}
		// Most anchored rules die on the first bytes of the directory, before the path is put
		// together.
		if n := min(len(r.lit), len(dir)); r.lit[:n] != dir[:n] {
			continue
		}
		if path == "" {
			path = s.Join(dir, name)
		}
		if r.anchored(path, isDir) {
			best = f.deep[i]
		}
	}
	return best
}

// anchored matches the path from the rule's directory down.
func (r *rule) anchored(path string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	rest, ok := strings.CutPrefix(path, r.lit)
	if !ok {
		return false
	}
	if r.glob == nil {
		return rest == ""
	}
	return r.glob.Match(rest)
}

// last is the highest applicable rule of ids above best.
func (f *File) last(ids []int32, best int32, isDir bool) int32 {
	for i := len(ids) - 1; i >= 0 && ids[i] > best; i-- {
		if isDir || !f.rules[ids[i]].dirOnly {
			return ids[i]
		}
	}
	return best
}
