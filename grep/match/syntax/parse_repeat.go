package syntax

import (
	"fmt"
	"strings"
)

// counts looks at "{n}", "{n,}" and "{n,m}". Length 0 means that the brace is an ordinary
// character. "{,m}" is one, as in Go.
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

func (p *parser) repeats(n *Node) (*Node, *syntaxError) {
	for depth := 0; ; depth++ {
		p.skipVerbose()
		if !p.more() {
			return n, nil
		}
		at := p.pos
		r := &Node{Op: OpRepeat, Subs: []*Node{n}, Max: -1}
		switch p.src[p.pos] {
		case '*':
			p.pos++
		case '+':
			p.pos++
			r.Min = 1
		case '?':
			p.pos++
			r.Max = 1
		case '{':
			lo, hi, length := p.counts()
			if length == 0 {
				return n, nil
			}
			if lo > maxRepeat || hi > maxRepeat {
				e := refuse(at, "repetition count is over %d", maxRepeat)
				if lo <= maxRepeat {
					e.withFix(length, fmt.Sprintf("{%d,}", lo))
				}
				return nil, e
			}
			if hi >= 0 && lo > hi {
				text := p.src[at : at+length]
				e := fail(at, "repetition %q has its bounds in the wrong order", text)
				return nil, e.withFix(length, fmt.Sprintf("{%d,%d}", hi, lo))
			}
			p.pos += length
			r.Min, r.Max = lo, hi
		default:
			return n, nil
		}
		if depth > maxNest {
			return nil, fail(at, "too many repetition operators in a row")
		}
		r.Lazy = p.eat("?") != p.f.swap
		n = r
	}
}
