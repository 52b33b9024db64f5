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

// classChar reads one possibly escaped member of a class.
func classChar(p string, d Dialect) (r rune, n int, ok bool) {
	if p[0] == '\\' {
		if len(p) == 1 {
			return 0, 0, false
		}
		r, n, ok = classChar2(p[1:], d)
		return r, n + 1, ok
	}
	return classChar2(p, d)
}

func classChar2(p string, d Dialect) (rune, int, bool) {
	if d.Runes && p[0] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(p)
		return r, n, true
	}
	return rune(p[0]), 1, true
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

// addNamed adds a POSIX set, which conditionHolds ASCII characters only.
func (s *classSet) addNamed(name string, fold bool) bool {
	in := func(lo, hi byte) {
		for x := int(lo); x <= int(hi); x++ {
			s.put(byte(x))
		}
	}
	switch name {
	case "alnum":
		in('0', '9')
		in('A', 'Z')
		in('a', 'z')
	case "alpha":
		in('A', 'Z')
		in('a', 'z')
	case "blank":
		s.put(' ')
		s.put('\t')
	case "cntrl":
		in(0, 31)
		s.put(127)
	case "digit":
		in('0', '9')
	case "graph":
		in(33, 126)
	case "lower":
		in('a', 'z')
	case "print":
		in(32, 126)
	case "punct":
		in(33, '/')
		in(':', '@')
		in('[', '`')
		in('{', 126)
	case "space":
		s.put(' ')
		in(9, 13)
	case "upper":
		in('A', 'Z')
		if fold {
			in('a', 'z')
		}
	case "xdigit":
		in('0', '9')
		in('A', 'F')
		in('a', 'f')
	default:
		return false
	}
	return true
}
