package match

import (
	"fmt"
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

// parser reads Go's syntax, the syntax of ripgrep's regex crate, and, as nodes for the backtracking engine, look-around,
// atomic groups, possessive repetition and back-references. Where Go and ripgrep both accept a text and differ, ripgrep's
// reading is taken; where ripgrep refuses ("a{", "[[(]", "${x}") Go's is.
type parser struct {
	src    string
	pos    int
	depth  int
	lines  bool // line mode: "\n" can't match
	f      flags
	groups int            // capturing groups opened so far
	refs   []ref          // back-references, checked once all groups are known
	names  map[string]int // group names
	exotic string         // the first construct that needs the backtracking engine
	exoAt  int
	sawCR  bool // "\r" is asked for by name
}

// syntaxError is a parse failure together with the smallest edit that would help: src[off:off+n] → fix.
type syntaxError struct {
	off int
	why string
	n   int
	fix string
	has bool
	// meant: the pattern says what it means, only not what can be done; nobody meant its text.
	meant bool
	lines bool // it asks for line breaks, and may have them with Options.Multiline
}

func (e *syntaxError) Error() string { return e.why }

func fail(off int, format string, a ...any) *syntaxError {
	return &syntaxError{off: off, why: fmt.Sprintf(format, a...)}
}

// or adds an edit to an error.
func (e *syntaxError) or(n int, fix string) *syntaxError {
	e.n, e.fix, e.has = n, fix, true
	return e
}

// refuse is fail for what is understood and can't be done.
func refuse(off int, format string, a ...any) *syntaxError {
	e := fail(off, format, a...)
	e.meant = true
	return e
}

// lineBreak refuses a line break where lines are searched one by one.
func lineBreak(off int) *syntaxError {
	e := refuse(off, "it asks for a line break, but lines are searched one by one: set multiline")
	e.lines = true
	return e
}

type tree struct {
	root   *node
	exotic string
	exoAt  int
	sawCR  bool
}

func parse(src string, o Options) (*tree, *syntaxError) {
	p := &parser{src: src, lines: !o.Multiline, names: map[string]int{}}
	p.f = flags{fold: o.IgnoreCase, multi: true, dotall: o.Multiline, unicode: true}
	if i := invalidAt(src); i >= 0 {
		return nil, fail(i, "pattern is not valid UTF-8")
	}
	root, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if p.pos < len(src) { // only ")" stops the alternation early
		return nil, fail(p.pos, "unmatched \")\"").or(1, `\)`)
	}
	for _, r := range p.refs {
		if r.group > p.groups {
			return nil, fail(r.at, "back-reference to group %d, but the pattern has %d", r.group, p.groups).or(1, `\\`)
		}
	}
	return &tree{root, p.exotic, p.exoAt, p.sawCR}, nil
}

type ref struct{ group, at int }

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

func (p *parser) more() bool        { return p.pos < len(p.src) }
func (p *parser) at(s string) bool  { return strings.HasPrefix(p.src[p.pos:], s) }
func (p *parser) rest() string      { return p.src[p.pos:] }
func (p *parser) peek() (rune, int) { return utf8.DecodeRuneInString(p.src[p.pos:]) }
func (p *parser) eat(s string) bool {
	if p.at(s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *parser) needsAt(at int, what string) {
	if p.exotic == "" {
		p.exotic, p.exoAt = what, at
	}
}

func (p *parser) alternation() (*node, *syntaxError) {
	if p.depth++; p.depth > maxNest {
		return nil, refuse(p.pos, "groups are nested more than %d deep", maxNest)
	}
	defer func() { p.depth-- }()
	var alts []*node
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
	return &node{op: opAlt, subs: alts}, nil
}

func (p *parser) concat() (*node, *syntaxError) {
	var subs []*node
	for {
		p.skipVerbose()
		if !p.more() || p.src[p.pos] == '|' || p.src[p.pos] == ')' {
			return concatNode(subs), nil
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

func (p *parser) atom() (*node, *syntaxError) {
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
		return nil, fail(at, "nothing to repeat before %q", r).or(1, `\`+string(r))
	case '{':
		if _, _, n := p.counts(); n > 0 {
			return nil, fail(at, "nothing to repeat before %q", p.src[at:at+n]).or(1, `\{`)
		}
	case '.':
		p.pos++
		return p.dot(), nil
	case '^':
		p.pos++
		if p.f.multi {
			return &node{op: opLook, look: lookLineStart}, nil
		}
		return &node{op: opLook, look: lookTextStart}, nil
	case '$':
		p.pos++
		if p.f.multi {
			return &node{op: opLook, look: lookLineEnd}, nil
		}
		return &node{op: opLook, look: lookTextEnd}, nil
	}
	p.pos += n
	return p.literal(r, at)
}

func (p *parser) dot() *node {
	if !p.f.unicode {
		if p.f.dotall && !p.lines {
			return &node{op: opBytes, ranges: []rune{0, 0xff}}
		}
		return &node{op: opBytes, ranges: []rune{0, 9, 11, 0xff}}
	}
	if p.f.dotall && !p.lines {
		return classNode([]rune{0, unicode.MaxRune})
	}
	return classNode([]rune{0, 9, 11, unicode.MaxRune})
}

func (p *parser) literal(r rune, at int) (*node, *syntaxError) {
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
	return classNode(set), nil
}

func (p *parser) foldSet(set []rune) []rune {
	if p.f.unicode {
		return foldRanges(set)
	}
	return foldASCII(set)
}

// counts looks at "{n}", "{n,}", "{n,m}" at pos; length 0 means that the brace is an ordinary character. "{,m}" is one, as in Go.
func (p *parser) counts() (lo, hi, length int) {
	s := p.rest()
	end := strings.IndexByte(s, '}')
	if !strings.HasPrefix(s, "{") || end < 0 {
		return 0, 0, 0
	}
	body := s[1:end]
	if p.f.verbose {
		body = strings.ReplaceAll(body, " ", "")
	}
	a, b, comma := strings.Cut(body, ",")
	lo, ok := smallNumber(a)
	if !ok {
		return 0, 0, 0
	}
	hi = lo
	if comma {
		hi = -1
		if b != "" {
			if hi, ok = smallNumber(b); !ok {
				return 0, 0, 0
			}
		}
	}
	return lo, hi, end + 1
}

// smallNumber reads decimal digits; anything over maxRepeat comes back as maxRepeat+1.
func smallNumber(s string) (int, bool) {
	if s == "" {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c-'0' > 9 {
			return 0, false
		}
		n = min(n*10+int(c-'0'), maxRepeat+1)
	}
	return n, true
}

func (p *parser) repeats(n *node) (*node, *syntaxError) {
	for depth := 0; ; depth++ {
		p.skipVerbose()
		if !p.more() {
			return n, nil
		}
		at := p.pos
		r := &node{op: opRepeat, subs: []*node{n}, max: -1}
		switch p.src[p.pos] {
		case '*':
			p.pos++
		case '+':
			p.pos++
			r.min = 1
		case '?':
			p.pos++
			r.max = 1
		case '{':
			lo, hi, length := p.counts()
			if length == 0 {
				return n, nil
			}
			if lo > maxRepeat || hi > maxRepeat {
				e := refuse(at, "repetition count is over %d", maxRepeat)
				if lo <= maxRepeat {
					e.or(length, fmt.Sprintf("{%d,}", lo))
				}
				return nil, e
			}
			if hi >= 0 && lo > hi {
				return nil, fail(at, "repetition %q has its bounds in the wrong order", p.src[at:at+length]).or(length, fmt.Sprintf("{%d,%d}", hi, lo))
			}
			p.pos += length
			r.min, r.max = lo, hi
		default:
			return n, nil
		}
		if depth > maxNest {
			return nil, fail(at, "too many repetition operators in a row")
		}
		r.lazy = p.eat("?") != p.f.swap
		if !r.lazy && p.at("+") {
			p.pos++
			// At the very end nothing could ask the repetition to give back, so greedy is the same.
			if p.more() {
				p.needsAt(at, "possessive repetition")
				n = &node{op: opAtomic, subs: []*node{r}}
				continue
			}
		}
		n = r
	}
}

// group reads "(" and what follows, or a flag setting, for which the node is nil.
func (p *parser) group() (*node, *syntaxError) {
	open := p.pos
	p.pos++
	kind := &node{op: opGroup}
	saved := p.f
	switch {
	case p.eat("?:"):
		kind = nil
	case p.eat("?#"):
		end := strings.IndexByte(p.rest(), ')')
		if end < 0 {
			return nil, fail(open, "comment without \")\"").or(1, `\(`)
		}
		p.pos += end + 1
		return nil, nil
	case p.eat("?="):
		kind = &node{op: opAround}
	case p.eat("?!"):
		kind = &node{op: opAround, negated: true}
	case p.eat("?<="):
		kind = &node{op: opAround, behind: true}
	case p.eat("?<!"):
		kind = &node{op: opAround, behind: true, negated: true}
	case p.eat("?>"):
		kind = &node{op: opAtomic}
	case p.at("?P="):
		end := strings.IndexByte(p.rest(), ')')
		if end < 0 {
			return nil, fail(open, "missing \")\"").or(1, `\(`)
		}
		name := p.rest()[3:end]
		p.pos += end + 1
		return p.backref(name, open)
	case p.at("?P<"), p.at("?<"), p.at("?'"):
		if err := p.groupName(open); err != nil {
			return nil, err
		}
	case p.at("?P"), p.at("?("), p.at("?|"), p.at("?&"), p.at("?R)"):
		return nil, fail(open, "this kind of group is not supported").or(1, `\(`)
	case p.eat("?"):
		colon, err := p.setFlags(open)
		if err != nil {
			return nil, err
		}
		if !colon { // holds to the end of the enclosing group
			return nil, nil
		}
		kind = nil
	}
	if kind != nil {
		switch kind.op {
		case opGroup:
			p.groups++
			kind.min = p.groups
		case opAround:
			p.needsAt(open, "look-around")
		case opAtomic:
			p.needsAt(open, "an atomic group")
		}
	}
	inner, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if !p.eat(")") {
		return nil, fail(open, "missing \")\" for this group").or(1, `\(`)
	}
	p.f = saved
	if kind == nil {
		// Its own node, so that a repetition after the group takes all of it.
		return inner, nil
	}
	kind.subs = []*node{inner}
	return kind, nil
}

func (p *parser) groupName(open int) *syntaxError {
	closing := ">"
	switch {
	case p.eat("?P<"), p.eat("?<"):
	case p.eat("?'"):
		closing = "'"
	}
	end := strings.Index(p.rest(), closing)
	if end < 0 {
		return fail(open, "group name without %q", closing).or(1, `\(`)
	}
	name := p.rest()[:end]
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && r != '.' && r != '[' && r != ']') {
			return fail(p.pos+i, "bad group name %q", name)
		}
	}
	if name == "" {
		return fail(p.pos, "empty group name")
	}
	if _, dup := p.names[name]; dup {
		return fail(p.pos, "two groups are named %q", name)
	}
	p.names[name] = p.groups + 1
	p.pos += end + 1
	return nil
}

// setFlags reads "imsxUuR-" up to ":" (true) or ")".
func (p *parser) setFlags(open int) (colon bool, err *syntaxError) {
	on := true
	for first := true; p.more(); first = false {
		c := p.src[p.pos]
		p.pos++
		switch c {
		case 'i':
			p.f.fold = on
		case 'm':
			p.f.multi = on
		case 's':
			p.f.dotall = on
		case 'x':
			p.f.verbose = on
		case 'U':
			p.f.swap = on
		case 'u':
			p.f.unicode = on
		case 'R': // CRLF lines: what Options.CRLF decides
		case '-':
			if !on {
				return false, fail(p.pos-1, "two \"-\" in one flag group")
			}
			on = false
		case ':':
			return true, nil
		case ')':
			if first {
				return false, fail(open, "empty flag group \"(?)\"").or(1, `\(`)
			}
			return false, nil
		default:
			return false, fail(p.pos-1, "unknown flag %q in a group", string(c))
		}
	}
	return false, fail(open, "missing \")\" for this group").or(1, `\(`)
}
