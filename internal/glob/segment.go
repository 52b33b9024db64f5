package glob

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// segment is the part of a pattern between two slashes. The common shapes are recognised when it is built,
// and cost a comparison or two: literal, and prefix*suffix (either may be empty).
type segment struct {
	anyDepth bool // **
	shape    shape
	pre, suf string // shapeLiteral: pre; shapeStar: around the star
	tokens   []token
}

type shape uint8

const (
	shapeLiteral shape = iota
	shapeStar
	shapeMixed
)

// token is a literal run, or one wildcard.
type token struct {
	op    op // opRune: lit; opStar; opOne; opClass
	lit   string
	class *class
	fold  bool // the class matches either case
}

func build(src string, nodes []node, o Options) (*Pattern, error) {
	p := &Pattern{}
	if len(nodes) > 0 && nodes[0].op == opSlash {
		p.absolute = true
		if nodes = nodes[1:]; len(nodes) == 0 { // "/" is the root alone
			p.reach = []State{1}
			return p, nil
		}
	}
	leading := true
	for start, i := 0, 0; i <= len(nodes); i++ {
		if i < len(nodes) && nodes[i].op != opSlash {
			continue
		}
		if i == start {
			at := len(src)
			if i < len(nodes) {
				at = nodes[i].at
			}
			if i == len(nodes) && len(nodes) > 0 {
				why := "ends in a slash; everything below a directory is dir/**"
				return nil, &SyntaxError{src, at - 1, why}
			}
			return nil, &SyntaxError{src, at, "an empty segment matches nothing"}
		}
		s, err := buildSegment(src, nodes[start:i], o)
		if err != nil {
			return nil, err
		}
		start = i + 1
		leading = leading && !s.anyDepth && s.shape == shapeLiteral
		switch {
		case leading:
			p.literal = append(p.literal, s.pre)
		case s.anyDepth && len(p.rest) > 0 && p.rest[len(p.rest)-1].anyDepth:
			// **/** is **
		case len(p.rest) == maxSegments:
			at := nodes[min(i, len(nodes)-1)].at
			return nil, &SyntaxError{src, at, "more than 63 segments after the first wildcard"}
		default:
			p.rest = append(p.rest, s)
		}
	}
	p.reach = make([]State, len(p.rest)+1)
	for i := len(p.rest); i >= 0; i-- {
		p.reach[i] = 1 << i
		if i < len(p.rest) && p.rest[i].anyDepth {
			p.reach[i] |= p.reach[i+1]
		}
	}
	return p, nil
}

func buildSegment(src string, nodes []node, o Options) (segment, error) {
	if len(nodes) == 1 && nodes[0].op == opStars && (nodes[0].stars == 2 || o.LooseStars) {
		return segment{anyDepth: true}, nil
	}
	var tokens []token
	var run strings.Builder
	flush := func(ends bool) {
		lit := run.String()
		run.Reset()
		if o.Fold != nil && lit != "" {
			lit = o.Fold(lit, ends)
		}
		if lit != "" {
			tokens = append(tokens, token{op: opRune, lit: lit})
		}
	}
	for _, n := range nodes {
		if n.op == opRune {
			run.WriteRune(n.r)
			continue
		}
		flush(false)
		switch n.op {
		case opStars:
			if !o.LooseStars {
				why := "** must stand alone between slashes; within a name write *, " +
					"for all below a directory dir/**"
				return segment{}, &SyntaxError{src, n.at, why}
			}
			fallthrough
		case opStar:
			if len(tokens) == 0 || tokens[len(tokens)-1].op != opStar {
				tokens = append(tokens, token{op: opStar})
			}
		case opOne:
			tokens = append(tokens, token{op: opOne})
		case opClass:
			tokens = append(tokens, token{op: opClass, class: n.class, fold: o.Fold != nil})
		}
	}
	flush(true)
	return withShape(tokens), nil
}

// withShape recognises a literal, and a star between two literals of which either may be missing.
func withShape(tokens []token) segment {
	s := segment{shape: shapeMixed, tokens: tokens}
	rest := tokens
	if len(rest) > 0 && rest[0].op == opRune {
		s.pre, rest = rest[0].lit, rest[1:]
	}
	switch {
	case len(rest) == 0: // folding may have left nothing: that matches no name
		s.shape = shapeLiteral
	case rest[0].op == opStar && len(rest) == 1:
		s.shape = shapeStar
	case rest[0].op == opStar && len(rest) == 2 && rest[1].op == opRune:
		s.shape, s.suf = shapeStar, rest[1].lit
	}
	return s
}

func (s *segment) match(name string) bool {
	switch s.shape {
	case shapeLiteral:
		return name == s.pre && name != ""
	case shapeStar:
		return len(name) >= len(s.pre)+len(s.suf) && name != "" &&
			strings.HasPrefix(name, s.pre) && strings.HasSuffix(name, s.suf)
	}
	return name != "" && matchTokens(s.tokens, name)
}

// matchTokens goes back to the latest star only. A piece that an earlier star could take, the latest can
// take as well, so no other choice can help.
func matchTokens(tokens []token, name string) bool {
	t, n := 0, 0
	star, from := -1, 0 // the token after the latest star, and where it was tried last
	for {
		if t < len(tokens) && tokens[t].op == opStar {
			t++
			star, from = t, n
			if t == len(tokens) {
				return true
			}
			continue
		}
		if t == len(tokens) {
			if n == len(name) {
				return true
			}
		} else if size, ok := tokens[t].match(name[n:]); ok {
			n += size
			t++
			continue
		}
		if star < 0 || from == len(name) {
			return false
		}
		// Whole characters: a star must not leave half of one to the next token.
		_, size := utf8.DecodeRuneInString(name[from:])
		from += size
		t, n = star, from
	}
}

func (t *token) match(s string) (size int, ok bool) {
	if t.op == opRune {
		return len(t.lit), strings.HasPrefix(s, t.lit)
	}
	if s == "" {
		return 0, false
	}
	r, size := utf8.DecodeRuneInString(s)
	if t.op == opOne {
		return size, true
	}
	if r == utf8.RuneError && size == 1 {
		return size, t.class.not // a byte that is no character is in no class
	}
	return size, t.class.match(r, t.fold)
}

func (c *class) match(r rune, fold bool) bool {
	in := c.has(r)
	if fold && !in {
		for f := unicode.SimpleFold(r); f != r && !in; f = unicode.SimpleFold(f) {
			in = c.has(f)
		}
		if r == 'i' && !in { // the Turkish pair, which SimpleFold leaves out
			in = c.has('İ') || c.has('ı')
		}
	}
	return in != c.not
}

func (c *class) has(r rune) bool {
	for i := 0; i < len(c.ranges); i += 2 {
		if c.ranges[i] <= r && r <= c.ranges[i+1] {
			return true
		}
	}
	return false
}
