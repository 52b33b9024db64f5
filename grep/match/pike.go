package match

import "unicode/utf8"

// pike simulates a program thread by thread: exact for every assertion, linear in text × program, and slow. It decides
// where the DFA can't: Unicode word boundaries beside non-ASCII text, and programs whose states thrash the cache.
type pike struct {
	p         *program
	now, then threads
	stack     []int32
	meter     *meter
}

// threads is a sparse set of instructions in order of preference, each with where its match began.
type threads struct {
	list  []int32
	begin []int
	place []int32
}

func (t *threads) init(n int) {
	t.list, t.begin, t.place = make([]int32, 0, n), make([]int, n), make([]int32, n)
}

func (t *threads) has(pc int32) bool {
	i := t.place[pc]
	return int(i) < len(t.list) && t.list[i] == pc
}

func (t *threads) add(pc int32) {
	t.place[pc] = int32(len(t.list))
	t.list = append(t.list, pc)
}

func newPike(p *program, m *meter) *pike {
	v := &pike{p: p, meter: m}
	v.now.init(len(p.in))
	v.then.init(len(p.in))
	return v
}

// find gives the leftmost-first match in text that starts at or after at; with earliest, any match is good enough. Once the
// meter is over it finds none.
func (v *pike) find(text []byte, at int, earliest bool) (begin, end int, ok bool) {
	v.now.list = v.now.list[:0]
	for i := at; ; i++ {
		if !ok {
			v.follow(&v.now, v.p.start, i, text, i)
		} else if len(v.now.list) == 0 {
			return begin, end, true
		}
		if v.meter.spend(1 + len(v.now.list)) {
			return 0, 0, false
		}
		v.then.list = v.then.list[:0]
		for _, pc := range v.now.list {
			x := &v.p.in[pc]
			switch x.op {
			case instMatch:
				begin, end, ok = v.now.begin[pc], i, true
				if earliest {
					return begin, end, true
				}
			case instByte:
				if i < len(text) && x.lo <= text[i] && text[i] <= x.hi {
					v.follow(&v.then, x.out, v.now.begin[pc], text, i+1)
				}
			case instEdges:
				if i < len(text) {
					c := text[i]
					for _, e := range x.edges {
						if e.lo <= c && c <= e.hi {
							v.follow(&v.then, x.target(e), v.now.begin[pc], text, i+1)
						}
					}
				}
			}
			if x.op == instMatch {
				break // what follows is less preferred
			}
		}
		if i >= len(text) {
			return begin, end, ok
		}
		v.now, v.then = v.then, v.now
	}
}

// follow adds pc and what it leads to without a byte.
func (v *pike) follow(t *threads, pc int32, begin int, text []byte, i int) {
	v.stack = append(v.stack[:0], pc)
	for len(v.stack) > 0 {
		pc := v.stack[len(v.stack)-1]
		v.stack = v.stack[:len(v.stack)-1]
		for !t.has(pc) {
			t.add(pc)
			t.begin[pc] = begin
			x := &v.p.in[pc]
			if x.op == instAlt {
				v.stack = append(v.stack, x.alt)
				pc = x.out
				continue
			}
			if x.op == instLook && v.p.holds(x.look, text, i) {
				pc = x.out
				continue
			}
			break
		}
	}
}

// holds says whether l is true at text[i:].
func (p *program) holds(l look, text []byte, i int) bool {
	switch l {
	case lookTextStart:
		return i == 0
	case lookTextEnd:
		return i == len(text)
	case lookLineStart:
		return i == 0 || text[i-1] == '\n'
	case lookLineEnd:
		if i == len(text) {
			return true
		}
		if !p.crlf || p.lines {
			return text[i] == '\n'
		}
		return text[i] == '\n' && (i == 0 || text[i-1] != '\r') || text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n'
	}
	var before, after bool
	if l.unicodeWord() {
		// As in ripgrep, stray continuation bytes are passed over to the code point before them.
		last := i
		for k := 0; last > 0 && k < utf8.UTFMax; k++ {
			if last--; utf8.RuneStart(text[last]) {
				break
			}
		}
		r, n := utf8.DecodeRune(text[last:i])
		before = n > 0 && isWordRune(r)
		bad := r == utf8.RuneError && n == 1
		r, n = utf8.DecodeRune(text[i:])
		after = n > 0 && isWordRune(r)
		if bad = bad || r == utf8.RuneError && n == 1; bad && l == lookNotWord {
			return false // ripgrep's rule: nothing is said about text that isn't UTF-8
		}
	} else {
		before = i > 0 && isWordByte(text[i-1])
		after = i < len(text) && isWordByte(text[i])
		l -= lookWordASCII - lookWord
	}
	return l.holdsWord(before, after)
}

// holdsWord wants one of the Unicode kinds.
func (l look) holdsWord(before, after bool) bool {
	switch l {
	case lookWord:
		return before != after
	case lookNotWord:
		return before == after
	case lookWordStart:
		return !before && after
	case lookWordEnd:
		return before && !after
	case lookWordStartHalf:
		return !before
	case lookWordEndHalf:
		return !after
	}
	return false
}
