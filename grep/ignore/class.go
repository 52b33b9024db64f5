package ignore

import (
	"strings"
	"unicode/utf8"
)

// parseSet reads a class at the start of p, "[" included, and says how many bytes it took. It
// follows git's wildmatch.c exactly, oddities included. "]" first is literal. An unfinished
// "[:name" is an ordinary "[". Under folding only ranges and [:upper:] grow, because the text
// arrives lower-cased while single characters are compared as they stand.
func parseSet(p string, d Dialect) (*classSet, int, error) {
	s := new(classSet)
	i := 1
	neg := i < len(p) && (p[i] == '!' || p[i] == '^')
	if neg {
		i++
	}
	prev := rune(-1) // last single character, which may start a range
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0, ErrClass
		}
		c := p[i]
		if c == ']' && !first {
			i++
			break
		}
		switch {
		case c == '-' && prev > 0 && i+1 < len(p) && p[i+1] != ']':
			hi, n, ok := classChar(p[i+1:], d)
			if !ok {
				return nil, 0, ErrClass
			}
			s.addRange(prev, hi, d)
			prev = -1
			i += 1 + n
		case strings.HasPrefix(p[i:], "[:"):
			end := strings.IndexByte(p[i+2:], ']')
			if end < 0 {
				return nil, 0, ErrClass
			}
			name, closed := strings.CutSuffix(p[i+2:i+2+end], ":")
			if !closed {
				s.put('[')
				prev = '['
				i++
				continue
			}
			if !s.addNamed(name, d.Fold) {
				return nil, 0, ErrClass
			}
			prev = -1
			i += 2 + end + 1
		default:
			r, n, ok := classChar(p[i:], d)
			if !ok {
				return nil, 0, ErrClass
			}
			s.addOne(r, d)
			prev = r
			i += n
		}
	}
	if neg {
		s.neg = true
		for k := range s.bits {
			s.bits[k] = ^s.bits[k]
		}
	}
	s.bits['/'>>6] &^= 1 << ('/' & 63)
	return s, i, nil
}

// classChar reads one possibly escaped member of a class, and says how many bytes it took.
func classChar(p string, d Dialect) (r rune, n int, ok bool) {
	escaped := 0
	if p[0] == '\\' {
		escaped = 1
	}
	switch p = p[escaped:]; {
	case p == "":
		return 0, 0, false
	case d.Runes && p[0] >= utf8.RuneSelf:
		r, n = utf8.DecodeRuneInString(p)
		return r, n + escaped, true
	}
	return rune(p[0]), 1 + escaped, true
}

func (s *classSet) addOne(r rune, d Dialect) {
	if d.Runes && r >= utf8.RuneSelf {
		s.high = append(s.high, runeRange{r, r})
		return
	}
	s.put(byte(r))
}

func (s *classSet) addRange(lo, hi rune, d Dialect) {
	if d.Runes && hi >= utf8.RuneSelf {
		s.high = append(s.high, runeRange{max(lo, utf8.RuneSelf), hi})
		hi = utf8.RuneSelf - 1
	}
	for x := lo; x <= hi && x < 256; x++ {
		s.put(byte(x))
		if d.Fold {
			s.put(lower(byte(x)))
		}
	}
}

// posix are the POSIX sets as pairs of their first and last characters, which are ASCII.
var posix = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~", "lower": "az",
	"print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}

// addNamed adds the POSIX set of that name. It gives false when there is none.
func (s *classSet) addNamed(name string, fold bool) bool {
	pairs, ok := posix[name]
	if name == "upper" && fold {
		pairs = posix["alpha"]
	}
	for ; pairs != ""; pairs = pairs[2:] {
		for x := pairs[0]; x <= pairs[1]; x++ {
			s.put(x)
		}
	}
	return ok
}
