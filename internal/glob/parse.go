package glob

import (
	"slices"
	"strings"
	"unicode/utf8"
)

type op uint8

const (
	opRune  op = iota // one literal character
	opStar            // *
	opStars           // ** or longer
	opOne             // ?
	opClass           // [...]
	opSlash           // /
	opGroup           // {...}; not in expanded patterns
)

// node is one element of a pattern as written.
type node struct {
	op     op
	at     int // byte in the pattern
	end    int // the byte behind it; of classes, groups and what has a backslash
	r      rune
	stars  int
	class  *class
	groups [][]node
}

type parser struct {
	src string
	pos int
}

func (p *parser) fail(at int, why string) error {
	return &SyntaxError{Pattern: p.src, Offset: at, Why: why}
}

func parse(src string) ([]node, error) {
	p := &parser{src: src}
	switch {
	case src == "":
		return nil, p.fail(0, "it is empty")
	case !utf8.ValidString(src):
		return nil, p.fail(invalidAt(src), "not valid UTF-8")
	}
	if i := strings.IndexByte(src, 0); i >= 0 {
		return nil, p.fail(i, "holds a NUL byte")
	}
	return p.sequence(0)
}

func invalidAt(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

// sequence reads up to the end, or within braces up to the next comma or closing brace. Its depth
// is bounded by MaxLength.
func (p *parser) sequence(depth int) ([]node, error) {
	var out []node
	for p.pos < len(p.src) {
		at := p.pos
		r, size := utf8.DecodeRuneInString(p.src[at:])
		switch {
		case depth > 0 && (r == ',' || r == '}'):
			return out, nil
		case r == '}':
			return nil, p.fail(at, `closing brace without an opening one; a literal one is \}`)
		case r == '{':
			group, err := p.group(depth + 1)
			if err != nil {
				return nil, err
			}
			out = append(out, group)
			continue
		case r == '[':
			c, err := p.class()
			if err != nil {
				return nil, err
			}
			out = append(out, node{op: opClass, at: at, end: p.pos, class: c})
			continue
		case r == '*':
			for p.pos < len(p.src) && p.src[p.pos] == '*' {
				p.pos++
			}
			n := node{op: opStar, at: at, stars: p.pos - at}
			if n.stars > 1 {
				n.op = opStars
			}
			out = append(out, n)
			continue
		case r == '\\':
			if at+size == len(p.src) {
				return nil, p.fail(at, `ends in a backslash; a literal one is \\`)
			}
			p.pos += size
			r, size = utf8.DecodeRuneInString(p.src[p.pos:])
			if r == '/' {
				return nil, p.fail(at, "a slash needs no backslash")
			}
			out = append(out, node{op: opRune, at: at, end: p.pos + size, r: r})
		case r == '?':
			out = append(out, node{op: opOne, at: at})
		case r == '/':
			out = append(out, node{op: opSlash, at: at})
		default:
			out = append(out, node{op: opRune, at: at, r: r})
		}
		p.pos += size
	}
	return out, nil
}

func (p *parser) group(depth int) (node, error) {
	open := p.pos
	n := node{op: opGroup, at: open}
	for {
		p.pos++ // the brace or the comma
		seq, err := p.sequence(depth)
		if err != nil {
			return n, err
		}
		n.groups = append(n.groups, seq)
		if p.pos == len(p.src) {
			return n, p.fail(open, `brace is never closed; a literal one is \{`)
		}
		if p.src[p.pos] == '}' {
			break
		}
	}
	if body := p.src[open+1 : p.pos]; len(n.groups) == 1 && strings.Contains(body, "..") {
		return n, p.fail(open, "ranges like {1..3} are not known; list the alternatives: {1,2,3}")
	}
	p.pos++
	n.end = p.pos
	return n, nil
}

// class is a set of characters. Ranges are pairs of first and last.
type class struct {
	not    bool
	ranges []rune
}

func (p *parser) class() (*class, error) {
	open := p.pos
	p.pos++
	c := &class{}
	if p.pos < len(p.src) && (p.src[p.pos] == '!' || p.src[p.pos] == '^') {
		c.not = true
		p.pos++
	}
	for first := true; ; first = false {
		if p.pos >= len(p.src) {
			return nil, p.fail(open, `class is never closed; a literal bracket is \[`)
		}
		if p.src[p.pos] == ']' && !first {
			p.pos++
			return c, nil
		}
		if strings.HasPrefix(p.src[p.pos:], "[:") {
			return nil, p.fail(p.pos, "named classes are not known; write the range, such as a-z")
		}
		at := p.pos
		lo, err := p.classRune(open)
		if err != nil {
			return nil, err
		}
		hi := lo
		if rest := p.src[p.pos:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			p.pos++
			if hi, err = p.classRune(open); err != nil {
				return nil, err
			}
			if hi < lo {
				return nil, p.fail(at, "range runs backwards")
			}
		}
		c.ranges = append(c.ranges, lo, hi)
	}
}

func (p *parser) classRune(open int) (rune, error) {
	at := p.pos
	r, size := utf8.DecodeRuneInString(p.src[p.pos:])
	if r == '\\' {
		p.pos += size
		if p.pos == len(p.src) {
			return 0, p.fail(open, `class is never closed; a literal bracket is \[`)
		}
		r, size = utf8.DecodeRuneInString(p.src[p.pos:])
	}
	if r == '/' {
		const why = "a class stands for one character within a segment and can't hold a slash"
		return 0, p.fail(at, why)
	}
	p.pos += size
	return r, nil
}

// expand multiplies the braces out: a{b,c} becomes ab and ac.
func expand(src string, nodes []node) ([][]node, error) {
	out, why := multiply(make([][]node, 1), nodes)
	if why != "" {
		at := nodes[slices.IndexFunc(nodes, func(n node) bool { return n.op == opGroup })].at
		return nil, &SyntaxError{Pattern: src, Offset: at, Why: why}
	}
	return out, nil
}

// multiply appends nodes to each of the heads. why says that the result has grown over MaxAlternatives or maxTokens: it looks behind each
// group, and one group makes no more than MaxLength of each head.
func multiply(heads [][]node, nodes []node) (out [][]node, why string) {
	for _, n := range nodes {
		if n.op != opGroup {
			for i := range heads {
				heads[i] = append(heads[i], n)
			}
			continue
		}
		var next [][]node
		for _, g := range n.groups {
			own := make([][]node, len(heads))
			for i, h := range heads {
				own[i] = append(make([]node, 0, len(h)+len(g)+8), h...)
			}
			if own, why = multiply(own, g); why != "" {
				return nil, why
			}
			if next = append(next, own...); len(next) > MaxAlternatives {
				return nil, "braces multiply out to more than 256 patterns"
			}
		}
		heads = next
	}
	total := 0
	for _, h := range heads {
		total += len(h)
	}
	if total > maxTokens {
		return nil, "braces multiply out to more than 16384 characters"
	}
	return heads, ""
}
