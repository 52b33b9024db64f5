package match

import (
	"unicode/utf8"

	"moltisfs/grep/match/syntax"
)

// pikeVM simulates the program thread by thread (Pike's algorithm, as in RE2). It is exact for
// every assertion, takes time linear in text times program, and is slow. It answers where the DFA
// cannot: at Unicode word boundaries beside non-ASCII text, and for programs whose states thrash
// the cache.
type pikeVM struct {
	p             *program
	current, next threads
	stack         []int32
	meter         *meter
}

// threads is a set of instructions in order of preference, each with the place where its match
// began. It is a sparse set: index[pc] counts only if list holds pc there, so it is cleared by
// cutting list.
type threads struct {
	list  []int32
	begin []int
	index []int32
}

func (t *threads) init(n int) {
	t.list, t.begin, t.index = make([]int32, 0, n), make([]int, n), make([]int32, n)
}

func (t *threads) has(pc int32) bool {
	i := t.index[pc]
	return int(i) < len(t.list) && t.list[i] == pc
}

func (t *threads) add(pc int32) {
	t.index[pc] = int32(len(t.list))
	t.list = append(t.list, pc)
}

func newPikeVM(p *program, m *meter) *pikeVM {
	v := &pikeVM{p: p, meter: m}
	v.current.init(len(p.insts))
	v.next.init(len(p.insts))
	return v
}

// find gives the leftmost-first match in text that begins at or after at. With earliest any match
// will do. Once the meter has stopped it finds none.
func (v *pikeVM) find(text []byte, at int, earliest bool) (begin, end int, ok bool) {
	v.current.list = v.current.list[:0]
	for i := at; ; i++ {
		if !ok {
			v.follow(&v.current, v.p.startAnchored, i, text, i)
		} else if len(v.current.list) == 0 {
			return begin, end, true
		}
		if v.meter.spend(1 + len(v.current.list)) {
			return 0, 0, false
		}
		v.next.list = v.next.list[:0]
		for _, pc := range v.current.list {
			x := &v.p.insts[pc]
			switch x.op {
			case instMatch:
				begin, end, ok = v.current.begin[pc], i, true
				if earliest {
					return begin, end, true
				}
			case instByte:
				if i < len(text) && x.lo <= text[i] && text[i] <= x.hi {
					v.follow(&v.next, x.out, v.current.begin[pc], text, i+1)
				}
			case instEdges:
				if i < len(text) {
					c := text[i]
					for _, e := range x.edges {
						if e.lo <= c && c <= e.hi {
							v.follow(&v.next, x.target(e), v.current.begin[pc], text, i+1)
						}
					}
				}
			}
			if x.op == instMatch {
				break // every later thread is less preferred
			}
		}
		if i >= len(text) {
			return begin, end, ok
		}
		v.current, v.next = v.next, v.current
	}
}

// follow adds pc, and the instructions to which it leads without taking a byte.
func (v *pikeVM) follow(t *threads, pc int32, begin int, text []byte, i int) {
	v.stack = append(v.stack[:0], pc)
	for len(v.stack) > 0 {
		pc := v.stack[len(v.stack)-1]
		v.stack = v.stack[:len(v.stack)-1]
		for !t.has(pc) {
			t.add(pc)
			t.begin[pc] = begin
			x := &v.p.insts[pc]
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

// holds says whether l holds at text[i:].
func (p *program) holds(l syntax.Look, text []byte, i int) bool {
	switch l {
	case syntax.LookTextStart:
		return i == 0
	case syntax.LookTextEnd:
		return i == len(text)
	case syntax.LookLineStart:
		return i == 0 || text[i-1] == '\n'
	case syntax.LookLineEnd:
		if i == len(text) {
			return true
		}
		if !p.crlf || p.lines {
			return text[i] == '\n'
		}
		if text[i] == '\r' {
			return i+1 < len(text) && text[i+1] == '\n'
		}
		return text[i] == '\n' && (i == 0 || text[i-1] != '\r')
	}
	var before, after bool
	if l.UnicodeWord() {
		// As in ripgrep: stray continuation bytes belong to the code point before them.
		last := i
		for k := 0; last > 0 && k < utf8.UTFMax; k++ {
			if last--; utf8.RuneStart(text[last]) {
				break
			}
		}
		r, n := utf8.DecodeRune(text[last:i])
		before = n > 0 && syntax.IsWordRune(r)
		bad := r == utf8.RuneError && n == 1
		r, n = utf8.DecodeRune(text[i:])
		after = n > 0 && syntax.IsWordRune(r)
		if bad = bad || r == utf8.RuneError && n == 1; bad && l == syntax.LookNotWord {
			return false // ripgrep's rule: \B never holds beside bytes that are not UTF-8
		}
	} else {
		before = i > 0 && syntax.IsWordByte(text[i-1])
		after = i < len(text) && syntax.IsWordByte(text[i])
		l -= syntax.LookWordASCII - syntax.LookWord
	}
	return l.HoldsWord(before, after)
}
