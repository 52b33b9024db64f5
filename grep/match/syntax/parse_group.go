package syntax

import (
	"strings"
	"unicode"
)

// group reads a group from its "(" on, or a flag setting, for which the node is nil.
func (p *parser) group() (*Node, *syntaxError) {
	open := p.pos
	p.pos++
	kind := &Node{Op: OpGroup}
	saved := p.f
	switch {
	case p.eat("?:"):
		kind = nil
	case p.eat("?#"):
		end := strings.IndexByte(p.rest(), ')')
		if end < 0 {
			return nil, fail(open, "comment without \")\"").withFix(1, `\(`)
		}
		p.pos += end + 1
		return nil, nil
	case p.at("?="), p.at("?!"), p.at("?<="), p.at("?<!"):
		return nil, refuse(open, "look-around is not supported; match the text around it too, and choose among the lines that are found")
	case p.at("?>"):
		return nil, refuse(open, "atomic groups are not supported; use an ordinary group")
	case p.at("?P="):
		return nil, backReference(open)
	case p.at("?P<"), p.at("?<"), p.at("?'"):
		if err := p.groupName(open); err != nil {
			return nil, err
		}
	case p.at("?P"), p.at("?("), p.at("?|"), p.at("?&"), p.at("?R)"):
		return nil, fail(open, "this kind of group is not supported").withFix(1, `\(`)
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
	inner, err := p.alternation()
	if err != nil {
		return nil, err
	}
	if !p.eat(")") {
		return nil, fail(open, "missing \")\" for this group").withFix(1, `\(`)
	}
	p.f = saved
	if kind == nil {
		// Its own node, so that a repetition after the group takes all of it.
		return inner, nil
	}
	kind.Subs = []*Node{inner}
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
		return fail(open, "group name without %q", closing).withFix(1, `\(`)
	}
	name := p.rest()[:end]
	for i, r := range name {
		later := unicode.IsDigit(r) || r == '.' || r == '[' || r == ']'
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !later) {
			return fail(p.pos+i, "bad group name %q", name)
		}
	}
	if name == "" {
		return fail(p.pos, "empty group name")
	}
	if p.names[name] {
		return fail(p.pos, "two groups are named %q", name)
	}
	p.names[name] = true
	p.pos += end + 1
	return nil
}

func backReference(at int) *syntaxError {
	return refuse(at, "back-references are not supported; match what the group may hold, and choose among the lines that are found")
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
		case 'R': // CRLF lines: Options.CRLF decides
		case '-':
			if !on {
				return false, fail(p.pos-1, "two \"-\" in one flag group")
			}
			on = false
		case ':':
			return true, nil
		case ')':
			if first {
				return false, fail(open, "empty flag group \"(?)\"").withFix(1, `\(`)
			}
			return false, nil
		default:
			return false, fail(p.pos-1, "unknown flag %q in a group", string(c))
		}
	}
	return false, fail(open, "missing \")\" for this group").withFix(1, `\(`)
}
