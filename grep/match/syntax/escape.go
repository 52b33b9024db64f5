package syntax

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape reads an escape outside of brackets.
func (p *parser) escape() (*Node, *syntaxError) {
	at := p.pos
	if p.pos+1 >= len(p.src) {
		return nil, fail(at, "trailing backslash").withFix(1, `\\`)
	}
	if n, ok, err := p.assertion(); ok || err != nil {
		return n, err
	}
	if n, ok, err := p.reference(); ok || err != nil {
		return n, err
	}
	set, ok, err := p.classEscape()
	if err != nil {
		return nil, err
	}
	if ok {
		return p.set(set), nil
	}
	r, err := p.runeEscape()
	if err != nil {
		return nil, err
	}
	if !p.f.unicode && r >= 0x80 && r <= 0xff && p.src[at+1] == 'x' {
		return &Node{Op: OpBytes, Ranges: []rune{r, r}}, nil
	}
	return p.literal(r, at)
}

// set is a node for a class that is already folded and negated; (?-u) sets reach into raw bytes.
func (p *parser) set(ranges []rune) *Node {
	if p.lines {
		ranges = Intersect(ranges, []rune{0, 9, 11, unicode.MaxRune})
	}
	if n := len(ranges); !p.f.unicode && n > 0 && ranges[n-1] >= 0x80 && ranges[n-1] <= 0xff {
		return &Node{Op: OpBytes, Ranges: ranges}
	}
	return Class(ranges)
}

// top is the highest member a negated class can have.
func (p *parser) top() rune {
	if p.f.unicode {
		return unicode.MaxRune
	}
	return 0xff
}

func (p *parser) assertion() (*Node, bool, *syntaxError) {
	kinds := [...]struct {
		text string
		look Look
	}{
		{`\b{start-half}`, LookWordStartHalf}, {`\b{end-half}`, LookWordEndHalf},
		{`\b{start}`, LookWordStart}, {`\b{end}`, LookWordEnd},
		{`\b`, LookWord}, {`\B`, LookNotWord}, {`\<`, LookWordStart}, {`\>`, LookWordEnd},
		{`\A`, LookTextStart}, {`\z`, LookTextEnd},
	}
	for _, k := range kinds {
		if p.eat(k.text) {
			l := k.look
			if !p.f.unicode && l.UnicodeWord() {
				l += LookWordASCII - LookWord
			}
			return &Node{Op: OpLook, Look: l}, true, nil
		}
	}
	return nil, false, nil
}

// reference reads \1, \k<name>, \k{name} and \g{n}.
func (p *parser) reference() (*Node, bool, *syntaxError) {
	at := p.pos
	s := p.src[at+1:]
	switch c := s[0]; {
	case c >= '1' && c <= '9':
		if len(s) > 1 && c <= '7' && s[1] >= '0' && s[1] <= '7' {
			return nil, false, nil // octal, as in Go
		}
		return nil, false, backReference(at)
	case c == 'k' || c == 'g':
		for _, q := range []string{"<>", "{}", "''"} {
			if len(s) < 2 || s[1] != q[0] {
				continue
			}
			if strings.IndexByte(s[2:], q[1]) >= 0 {
				return nil, false, backReference(at)
			}
			break
		}
	}
	return nil, false, nil
}

// classEscape reads \d \w \s \p and their negations. The answer is folded already.
func (p *parser) classEscape() ([]rune, bool, *syntaxError) {
	at := p.pos
	c := p.src[at+1]
	var set []rune
	switch c | 0x20 {
	case 'd':
		set = digitASCII
		if p.f.unicode {
			set = digitRanges()
		}
	case 'w':
		set = WordASCII
		if p.f.unicode {
			set = WordRanges()
		}
	case 's':
		set = spaceASCII
		if p.f.unicode {
			set = spaceRanges()
		}
	case 'p':
		return p.propertyEscape()
	default:
		return nil, false, nil
	}
	p.pos += 2
	if c&0x20 == 0 {
		set = negateRanges(set, p.top())
	}
	return set, true, nil
}

func (p *parser) propertyEscape() ([]rune, bool, *syntaxError) {
	at := p.pos
	negated := p.src[at+1] == 'P'
	s := p.src[at+2:]
	if s == "" {
		return nil, false, fail(at, "\\p without a property name").withFix(1, `\\`)
	}
	var name string
	if s[0] == '{' {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return nil, false, fail(at, "\\p{ without \"}\"").withFix(1, `\\`)
		}
		name = s[1:end]
		p.pos += 2 + end + 1
	} else {
		_, n := utf8.DecodeRuneInString(s)
		name = s[:n]
		p.pos += 2 + n
	}
	if rest, ok := strings.CutPrefix(name, "^"); ok {
		name, negated = rest, !negated
	}
	if k, v, ok := strings.Cut(name, "!="); ok {
		name, negated = k+"="+v, !negated
	}
	set, ok := property(name)
	if !ok {
		e := fail(at, "unknown Unicode property %q", name)
		if strings.HasPrefix(name, "Emoji") || name == "Extended_Pictographic" {
			e.withFix(p.pos-at, emoji)
		}
		return nil, false, e
	}
	if p.f.fold {
		set = foldRanges(set)
	}
	if negated {
		set = negateRanges(set, unicode.MaxRune)
	}
	return set, true, nil
}

// emoji are the blocks that most emoji lie in. Package unicode has no property for them.
const emoji = `[\x{2600}-\x{27BF}\x{1F300}-\x{1FAFF}]`

// advice has, for escapes that other engines know, the pattern to write instead.
var advice = map[byte]string{
	'h': `[ \t]`, 'H': `[^ \t]`, 'Z': `\z`, 'e': `\x1b`, 'R': `\r?\n`, 'N': `[^\n]`, 'G': `\A`,
	'K': "", 'X': `.`, 'C': `.`, 'E': "", 'l': `[a-z]`, 'u': `u`, 'i': `[A-Za-z_]`,
}

// runeEscape reads an escape that stands for one code point.
func (p *parser) runeEscape() (rune, *syntaxError) {
	at := p.pos
	if at+1 >= len(p.src) {
		return 0, fail(at, "trailing backslash").withFix(1, `\\`)
	}
	r, n := utf8.DecodeRuneInString(p.src[at+1:])
	p.pos += 1 + n
	switch r {
	case 'a':
		return 7, nil
	case 'f':
		return '\f', nil
	case 't':
		return '\t', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 'v':
		return '\v', nil
	case 'x':
		return p.hex(at, 2)
	case 'u':
		return p.hex(at, 4)
	case 'U':
		return p.hex(at, 8)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		v := r - '0'
		for range 2 {
			if p.more() && p.src[p.pos] >= '0' && p.src[p.pos] <= '7' {
				v = v*8 + rune(p.src[p.pos]-'0')
				p.pos++
			}
		}
		return v, nil
	}
	if r < utf8.RuneSelf && !IsWordByte(byte(r)) || r == '_' {
		return r, nil
	}
	e := fail(at, "unknown escape %q", `\`+string(r))
	if r < utf8.RuneSelf {
		if fix, ok := advice[byte(r)]; ok {
			return 0, e.withFix(1+n, fix)
		}
		return 0, e.withFix(1, `\\`)
	}
	return 0, e.withFix(1, "")
}

// hex reads the digits of \xHH, \x{H…}, \uHHHH or \UHHHHHHHH; pos is after the letter.
func (p *parser) hex(at, digits int) (rune, *syntaxError) {
	var text string
	if p.at("{") {
		end := strings.IndexByte(p.rest(), '}')
		if end < 0 {
			return 0, fail(at, "hexadecimal escape without \"}\"").withFix(1, `\\`)
		}
		text = p.rest()[1:end]
		p.pos += end + 1
	} else {
		text = p.rest()[:min(digits, len(p.rest()))]
		if len(text) < digits {
			e := fail(at, "%s wants %d hexadecimal digits", p.src[at:at+2], digits)
			return 0, e.withFix(1, `\\`)
		}
		p.pos += digits
	}
	v, err := strconv.ParseUint(text, 16, 32)
	surrogate := v >= 0xd800 && v < 0xe000
	if err != nil || strings.Contains(text, "_") || v > unicode.MaxRune || surrogate {
		return 0, fail(at, "%q is not a code point", p.src[at:p.pos]).withFix(1, `\\`)
	}
	return rune(v), nil
}
