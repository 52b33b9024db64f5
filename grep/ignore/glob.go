package ignore

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Dialect says how Compile reads a glob. The zero value is git's wildmatch with WM_PATHNAME: it
// compares bytes, and a malformed glob matches nothing.
type Dialect struct {
	Fold   bool // ignore the case of ASCII letters; Match then wants lower-case text
	Runes  bool // "?" and classes consume one UTF-8 code point, not one byte
	Strict bool // a malformed glob is an error
}

// Errors of Compile with Dialect.Strict.
var (
	ErrClass  = errors.New("a character class is not closed or names an unknown set")
	ErrEscape = errors.New("a backslash at the end escapes nothing")
)

// Glob is a compiled pattern for slash-separated relative paths. "*", "?" and classes stay within a
// segment; "**" alone in its segment crosses segments. Matching takes at most
// len(pattern)·len(path) steps in a segment, and len(pattern)·len(path)² in all. A Glob is
// immutable.
type Glob struct {
	segs      []segment
	tail      int // segments behind the last "**", 0 where there is none
	fold      bool
	malformed bool // malformed: matches nothing
}

type opKind uint8

const (
	opLit  opKind = iota
	opAny         // ?
	opSet         // [...]
	opStar        // *
)

type op struct {
	kind opKind
	lit  string
	set  *classSet
}

type segKind uint8

const (
	segOps    segKind = iota
	segAny            // "*": any one segment
	segLit            // lit
	segSuffix         // "*lit"
	segPrefix         // "lit*"
	segCross          // "**/": any number of segments
	segSome           // "**" at the end, or before an escaped slash: one segment or more
)

type segment struct {
	kind  segKind
	lit   string // of segOps: the end of every match
	must  string // of segOps: more text that every match holds
	ops   []op
	runes bool
}

// classSet is a character class: 256 bits for bytes, and ranges of code points above for Dialect.Runes.
type classSet struct {
	bits [4]uint64
	high []runeRange
	neg  bool // for code points above 0x7f; bits are already negated
}

type runeRange struct{ lo, hi rune }

func (s *classSet) put(b byte)      { s.bits[b>>6] |= 1 << (b & 63) }
func (s *classSet) has(b byte) bool { return s.bits[b>>6]&(1<<(b&63)) != 0 }

func (s *classSet) hasRune(r rune) bool {
	if r < utf8.RuneSelf {
		return s.has(byte(r))
	}
	for _, x := range s.high {
		if x.lo <= r && r <= x.hi {
			return !s.neg
		}
	}
	return s.neg
}

// Compile reads one glob without braces. It only fails with Dialect.Strict.
func Compile(pattern string, d Dialect) (*Glob, error) {
	g := &Glob{fold: d.Fold}
	if err := g.parse(pattern, d); err != nil {
		if d.Strict {
			return nil, err
		}
		g.malformed = true
	}
	for i := range g.segs {
		if g.segs[i].kind >= segCross {
			g.tail = len(g.segs) - 1 - i
		}
	}
	return g, nil
}

func (g *Glob) parse(p string, d Dialect) error {
	var ops []op
	lit := func(b byte) {
		if n := len(ops); n > 0 && ops[n-1].kind == opLit {
			ops[n-1].lit += string([]byte{b})
			return
		}
		ops = append(ops, op{kind: opLit, lit: string([]byte{b})})
	}
	cut := func() {
		g.segs = append(g.segs, newSegment(ops, d.Runes))
		ops = nil
	}
	for i := 0; i < len(p); {
		switch c := p[i]; c {
		case '/':
			cut()
			i++
		case '\\':
			if i+1 == len(p) {
				return ErrEscape
			}
			if p[i+1] == '/' {
				cut()
			} else {
				lit(p[i+1]) // not folded: wildmatch folds before it looks at the backslash
			}
			i += 2
		case '?':
			ops = append(ops, op{kind: opAny})
			i++
		case '*':
			j := i
			for j < len(p) && p[j] == '*' {
				j++
			}
			// Two or more stars cross segments only when they stand alone between slashes.
			if alone := i == 0 || p[i-1] == '/'; alone && j-i > 1 {
				switch {
				case j == len(p):
					g.segs = append(g.segs, segment{kind: segSome})
					return nil
				case p[j] == '/':
					g.segs = append(g.segs, segment{kind: segCross})
					i = j + 1
					continue
				case strings.HasPrefix(p[j:], `\/`):
					g.segs = append(g.segs, segment{kind: segSome})
					i = j + 2
					continue
				}
			}
			if n := len(ops); n == 0 || ops[n-1].kind != opStar {
				ops = append(ops, op{kind: opStar})
			}
			i = j
		case '[':
			s, n, err := parseSet(p[i:], d)
			if err != nil {
				return err
			}
			ops = append(ops, op{kind: opSet, set: s})
			i += n
		default:
			if d.Fold {
				c = lower(c)
			}
			lit(c)
			i++
		}
	}
	cut()
	return nil
}

// newSegment picks the cheapest form.
func newSegment(ops []op, runes bool) segment {
	switch {
	case len(ops) == 0:
		return segment{kind: segLit}
	case len(ops) == 1 && ops[0].kind == opLit:
		return segment{kind: segLit, lit: ops[0].lit}
	case len(ops) == 1 && ops[0].kind == opStar:
		return segment{kind: segAny}
	case len(ops) == 2 && ops[0].kind == opStar && ops[1].kind == opLit:
		return segment{kind: segSuffix, lit: ops[1].lit}
	case len(ops) == 2 && ops[0].kind == opLit && ops[1].kind == opStar:
		return segment{kind: segPrefix, lit: ops[0].lit}
	}
	s := segment{ops: ops, runes: runes}
	if last := ops[len(ops)-1]; last.kind == opLit {
		s.lit = last.lit
	}
	for _, o := range ops[1:max(1, len(ops)-1)] {
		if o.kind == opLit && len(o.lit) > len(s.must) {
			s.must = o.lit
		}
	}
	return s
}

// Match says whether the whole of path matches. Under Dialect.Fold path MUST be lower-cased (A-Z
// only).
func (g *Glob) Match(path string) bool {
	if g.malformed {
		return false
	}
	if g.tail > 0 { // the end first: deep in a tree it is the cheapest to compare
		if ok := g.endsIn(path); !ok || g.tail == len(g.segs)-1 && g.segs[0].kind == segCross {
			return ok
		}
	}
	// The same two-pointer scheme as in segment.match, with segments for characters. When the path
	// fails after a "**", the only way to go on is to give the last "**" one more segment.
	p, t := 0, 0
	backP, backT := -1, 0
	for {
		if p < len(g.segs) {
			s := &g.segs[p]
			switch {
			case s.kind == segCross:
				backP, backT = p+1, t
				p++
				continue
			case t > len(path):
			case s.kind == segSome:
				if p == len(g.segs)-1 {
					return true
				}
				p, t = p+1, after(path, t)
				backP, backT = p, t
				continue
			default:
				end := after(path, t)
				if s.match(path[t : end-1]) {
					p, t = p+1, end
					continue
				}
			}
		} else if t > len(path) {
			return true
		}
		if backP < 0 || backT > len(path) {
			return false
		}
		backT = after(path, backT)
		p, t = backP, backT
	}
}

// endsIn says whether the segments behind the last "**" match the end of path.
func (g *Glob) endsIn(path string) bool {
	for i := len(g.segs) - 1; i >= len(g.segs)-g.tail; i-- {
		at := strings.LastIndexByte(path, '/') + 1
		switch {
		case !g.segs[i].match(path[at:]):
			return false
		case at == 0:
			return i == len(g.segs)-g.tail
		}
		path = path[:at-1]
	}
	return true
}

// matchName is Match for a name without a slash.
func (g *Glob) matchName(name string) bool {
	if len(g.segs) != 1 || g.malformed {
		return g.Match(name)
	}
	return g.segs[0].kind == segSome || g.segs[0].match(name)
}

// Under says whether a path below directory dir could match. dir is "" for the root, and has no
// slash at the end.
func (g *Glob) Under(dir string) bool { return g.below(dir, true) }

// Leads is Under for directories that g names, one segment each. It is false where only a "**"
// reaches dir.
func (g *Glob) Leads(dir string) bool { return g.below(dir, false) }

func (g *Glob) below(dir string, cross bool) bool {
	if g.malformed {
		return false
	}
	if dir == "" {
		return true
	}
	p, t := 0, 0
	for t <= len(dir) {
		s := &g.segs[p]
		if s.kind >= segCross {
			return cross
		}
		end := after(dir, t)
		if p == len(g.segs)-1 || !s.match(dir[t:end-1]) {
			return false // the last segment must be left for the file itself
		}
		p, t = p+1, end
	}
	return true
}

// after is the start of the segment after the one at t, or len(path)+1 when that is the last.
func after(path string, t int) int {
	if i := strings.IndexByte(path[t:], '/'); i >= 0 {
		return t + i + 1
	}
	return len(path) + 1
}

func (s *segment) match(t string) bool {
	switch s.kind {
	case segAny:
		return true
	case segLit:
		return t == s.lit
	case segSuffix:
		return strings.HasSuffix(t, s.lit)
	case segPrefix:
		return strings.HasPrefix(t, s.lit)
	}
	if !strings.HasSuffix(t, s.lit) || s.ops[0].kind == opLit && !strings.HasPrefix(t, s.ops[0].lit) ||
		s.must != "" && !strings.Contains(t, s.must) {
		return false
	}
	p, i := 0, 0
	backP, backI := -1, 0
	for {
		if p == len(s.ops) {
			if i == len(t) {
				return true
			}
		} else if o := &s.ops[p]; o.kind == opStar {
			if p == len(s.ops)-1 {
				return true
			}
			backP, backI = p+1, i
			p++
			continue
		} else if n := o.step(t[i:], s.runes); n >= 0 {
			p, i = p+1, i+n
			continue
		}
		if backP < 0 || backI >= len(t) {
			return false
		}
		backI++
		p, i = backP, backI
	}
}

// step is how many bytes of t the op takes, or -1 when it does not match.
func (o *op) step(t string, runes bool) int {
	if o.kind == opLit {
		if strings.HasPrefix(t, o.lit) {
			return len(o.lit)
		}
		return -1
	}
	if t == "" {
		return -1
	}
	n := 1
	if runes && t[0] >= utf8.RuneSelf {
		var r rune
		r, n = utf8.DecodeRuneInString(t)
		if o.kind == opSet && !o.set.hasRune(r) {
			return -1
		}
		return n
	}
	if o.kind == opSet && !o.set.has(t[0]) {
		return -1
	}
	return n
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// Lower folds the ASCII letters of s, the only ones that git folds.
func Lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = lower(b[i])
			}
			return string(b)
		}
	}
	return s
}
