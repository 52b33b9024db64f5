package syntax

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// class reads "[…]". It tries ripgrep's grammar first: nested classes, "&&", "--", "~~". Text that
// ripgrep refuses, such as "[[(]", is read as Go does: there "[" inside is an ordinary character.
func (p *parser) class() (*Node, *syntaxError) {
	open := p.pos
	sawCR := p.sawCR
	c := &classParser{parser: p, nest: true}
	set, err := c.bracket()
	if err != nil || c.danglingOp {
		p.pos, p.sawCR = open, sawCR
		flat := &classParser{parser: p}
		if set, err = flat.bracket(); err != nil {
			return nil, err
		}
		c = flat
	}
	if p.lines && len(set) == 2 && set[0] == '\n' && set[1] == '\n' {
		return nil, lineBreak(open)
	}
	return p.set(set), nil
}

type classParser struct {
	*parser
	nest       bool
	danglingOp bool // an operator without an operand: surely meant literally
}

func (p *classParser) bracket() ([]rune, *syntaxError) {
	if p.depth++; p.depth > maxNest {
		return nil, refuse(p.pos, "classes are nested more than %d deep", maxNest)
	}
	defer func() { p.depth-- }()
	open := p.pos
	p.pos++
	negated := p.eat("^")
	hadCR := p.sawCR
	var whole, union []rune
	op := ""
	first := true
	combine := func() {
		union = cleanRanges(union)
		if p.f.fold {
			union = p.foldSet(union)
		}
		switch op {
		case "":
			whole = union
		case "&&":
			whole = Intersect(whole, union)
		case "--":
			whole = Intersect(whole, negateRanges(union, 0x10ffff))
		case "~~":
			both := Intersect(whole, union)
			either := cleanRanges(slices.Concat(whole, union))
			whole = Intersect(either, negateRanges(both, 0x10ffff))
		}
		union = nil
	}
	empty := true // nothing read since the bracket or the last operator
	for ; ; first = false {
		p.skipClassVerbose()
		if !p.more() {
			return nil, fail(open, "missing \"]\" for this class").withFix(1, `\[`)
		}
		if p.src[p.pos] == ']' && !first {
			p.pos++
			break
		}
		if p.nest && !first && (p.at("&&") || p.at("~~") || p.at("--") && !p.at("--]")) {
			if empty {
				p.danglingOp = true
			}
			combine()
			op = p.src[p.pos : p.pos+2]
			p.pos += 2
			empty = true
			continue
		}
		empty = false
		set, err := p.item()
		if err != nil {
			return nil, err
		}
		union = append(union, set...)
	}
	if empty && op != "" {
		p.danglingOp = true
	}
	combine()
	if negated {
		p.sawCR = hadCR // "[^\r\n]" does not ask for "\r"
		whole = negateRanges(whole, p.top())
	}
	return whole, nil
}

func (p *classParser) skipClassVerbose() {
	for p.f.verbose && p.more() && strings.IndexByte(" \t\n\r\v\f", p.src[p.pos]) >= 0 {
		p.pos++
	}
}

// item reads one member: a code point, a range, a named class, an escape, a nested class.
func (p *classParser) item() ([]rune, *syntaxError) {
	at := p.pos
	if p.src[at] == '[' {
		if set, ok, err := p.named(); ok || err != nil {
			return set, err
		}
		if p.nest {
			return p.bracket()
		}
	}
	if p.src[at] == '\\' && at+1 < len(p.src) {
		set, ok, err := p.classEscape()
		if err != nil || ok {
			return set, err
		}
	}
	lo, err := p.member()
	if err != nil {
		return nil, err
	}
	if !p.at("-") || p.at("-]") || p.pos+1 >= len(p.src) || p.nest && p.at("--") {
		return p.one(lo, lo), nil
	}
	p.pos++
	p.skipClassVerbose()
	end := p.pos
	if p.src[end] == '\\' && end+1 < len(p.src) {
		if _, ok, _ := p.classEscape(); ok {
			escaped := p.src[at:end-1] + `\-` + p.src[end:p.pos]
			e := fail(at, "range %q ends in a class", p.src[at:p.pos])
			return nil, e.withFix(p.pos-at, escaped)
		}
	}
	hi, err := p.member()
	if err != nil {
		return nil, err
	}
	if lo > hi {
		turned := p.src[end:p.pos] + "-" + p.src[at:end-1]
		return nil, fail(at, "range %q runs backwards", p.src[at:p.pos]).withFix(p.pos-at, turned)
	}
	return p.one(lo, hi), nil
}

func (p *classParser) one(lo, hi rune) []rune {
	if lo == '\r' && hi == '\r' {
		p.sawCR = true
	}
	return []rune{lo, hi}
}

func (p *classParser) member() (rune, *syntaxError) {
	if !p.more() {
		return 0, fail(p.pos, "missing \"]\"")
	}
	if p.src[p.pos] == '\\' {
		if p.at(`\b`) {
			p.pos += 2
			return 8, nil
		}
		return p.runeEscape()
	}
	r, n := utf8.DecodeRuneInString(p.src[p.pos:])
	p.pos += n
	return r, nil
}

// named reads "[:alpha:]" and "[:^alpha:]"; ok is false when it is something else.
func (p *classParser) named() ([]rune, bool, *syntaxError) {
	s := p.rest()
	if !strings.HasPrefix(s, "[:") {
		return nil, false, nil
	}
	end := strings.Index(s, ":]")
	if end < 2 {
		return nil, false, nil
	}
	name, negated := strings.CutPrefix(s[2:end], "^")
	set, ok := posix[name]
	if !ok {
		return nil, false, nil
	}
	p.pos += end + 2
	if p.f.fold {
		set = p.foldSet(set)
	}
	if negated {
		set = negateRanges(set, p.top())
	}
	return set, true, nil
}
