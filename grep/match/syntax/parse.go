package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxNest   = 200
	maxRepeat = 1000 // as Go has it
)

// flags are the inline flags: (?imsxUu).
type flags struct {
	fold, multi, dotall, verbose, swap, unicode bool
}

// parser reads the syntax of Go and of ripgrep's regex crate. Look-around, atomic groups and back-references are refused.
//
// Where Go and ripgrep both accept a text and differ, ripgrep's reading is taken. Where ripgrep
// refuses ("a{", "[[(]", "${x}"), Go's is.
type parser struct {
	src   string
	pos   int
	depth int
	lines bool // line mode: "\n" can't match
	f     flags
	names map[string]bool // of groups
	sawCR bool            // "\r" is asked for by name
}

// Tree is a pattern that was read.
type Tree struct {
	Root  *Node
	SawCR bool // "\r" is asked for by name
}

func parse(src string, o Options) (*Tree, *syntaxError) {
	p := &parser{src: src, lines: !o.Multiline, names: map[string]bool{}}
	p.f = flags{fold: o.IgnoreCase, multi: true, dotall: o.Multiline, unicode: true}
	if i := invalidAt(src); i >= 0 {
		return nil, fail(i, "pattern is not valid UTF-8")
	}
	root, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if p.pos < len(src) { // only ")" stops the alternation early
		return nil, fail(p.pos, "unmatched \")\"").withFix(1, `\)`)
	}
	return &Tree{root, p.sawCR}, nil
}

func invalidAt(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

func (p *parser) more() bool { return p.pos < len(p.src) }

func (p *parser) at(s string) bool { return strings.HasPrefix(p.src[p.pos:], s) }

func (p *parser) rest() string { return p.src[p.pos:] }

func (p *parser) peek() (rune, int) { return utf8.DecodeRuneInString(p.src[p.pos:]) }

func (p *parser) eat(s string) bool {
	if p.at(s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *parser) alternation() (*Node, *syntaxError) {
	if p.depth++; p.depth > maxNest {
		return nil, refuse(p.pos, "groups are nested more than %d deep", maxNest)
	}
	defer func() { p.depth-- }()
	var alts []*Node
	for {
		n, err := p.concat()
		if err != nil {
			return nil, err
		}
		alts = append(alts, n)
		if !p.eat("|") {
			break
		}
	}
	if len(alts) == 1 {
		return alts[0], nil
	}
	return &Node{Op: OpAlt, Subs: alts}, nil
}

func (p *parser) concat() (*Node, *syntaxError) {
	var subs []*Node
	for {
		p.skipVerbose()
		if !p.more() || p.src[p.pos] == '|' || p.src[p.pos] == ')' {
			return Concat(subs), nil
		}
		if p.at(`\Q`) {
			text := p.rest()[2:]
			body, _, _ := strings.Cut(text, `\E`)
			at := p.pos
			for _, r := range body {
				n, err := p.literal(r, at)
				if err != nil {
					return nil, err
				}
				subs = append(subs, n)
			}
			p.pos = min(len(p.src), p.pos+2+len(body)+2)
			continue
		}
		n, err := p.atom()
		if err != nil {
			return nil, err
		}
		if n == nil { // flags, a comment
			continue
		}
		if n, err = p.repeats(n); err != nil {
			return nil, err
		}
		subs = append(subs, n)
	}
}

func (p *parser) skipVerbose() {
	for p.f.verbose && p.more() {
		r, n := p.peek()
		switch {
		case r == '#':
			if i := strings.IndexByte(p.rest(), '\n'); i >= 0 {
				p.pos += i + 1
			} else {
				p.pos = len(p.src)
			}
		case unicode.IsSpace(r):
			p.pos += n
		default:
			return
		}
	}
}

func (p *parser) atom() (*Node, *syntaxError) {
	at := p.pos
	r, n := p.peek()
	switch r {
	case '(':
		return p.group()
	case '[':
		return p.class()
	case '\\':
		return p.escape()
	case '*', '+', '?':
		return nil, fail(at, "nothing to repeat before %q", r).withFix(1, `\`+string(r))
	case '{':
		if _, _, n := p.counts(); n > 0 {
			return nil, fail(at, "nothing to repeat before %q", p.src[at:at+n]).withFix(1, `\{`)
		}
	case '.':
		p.pos++
		return p.dot(), nil
	case '^':
		p.pos++
		if p.f.multi {
			return &Node{Op: OpLook, Look: LookLineStart}, nil
		}
		return &Node{Op: OpLook, Look: LookTextStart}, nil
	case '$':
		p.pos++
		if p.f.multi {
			return &Node{Op: OpLook, Look: LookLineEnd}, nil
		}
		return &Node{Op: OpLook, Look: LookTextEnd}, nil
	}
	p.pos += n
	return p.literal(r, at)
}

func (p *parser) dot() *Node {
	if !p.f.unicode {
		if p.f.dotall && !p.lines {
			return &Node{Op: OpBytes, Ranges: []rune{0, 0xff}}
		}
		return &Node{Op: OpBytes, Ranges: []rune{0, 9, 11, 0xff}}
	}
	if p.f.dotall && !p.lines {
		return Class([]rune{0, unicode.MaxRune})
	}
	return Class([]rune{0, 9, 11, unicode.MaxRune})
}

func (p *parser) literal(r rune, at int) (*Node, *syntaxError) {
	if r == '\n' && p.lines {
		return nil, lineBreak(at)
	}
	if r == '\r' {
		p.sawCR = true
	}
	set := []rune{r, r}
	if p.f.fold {
		set = p.foldSet(set)
	}
	return Class(set), nil
}

func (p *parser) foldSet(set []rune) []rune {
	if p.f.unicode {
		return foldRanges(set)
	}
	return foldASCII(set)
}
