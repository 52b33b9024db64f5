//go:build linux || darwin

package match

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"moltisfs/grep/match/literal"
)

// fenced gives at least size bytes of writable memory, whole pages, between two pages that must not
// be read. A kernel that reads too far faults.
func fenced(t *testing.T, size int) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	size = (size + page - 1) / page * page
	b, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	must(t, err)
	t.Cleanup(func() {
		must(t, syscall.Munmap(b))
	})
	for _, guard := range [][]byte{b[:page], b[page+size:]} {
		must(t, syscall.Mprotect(guard, syscall.PROT_NONE))
	}
	return b[page : page+size]
}

// fill writes size random bytes at one end of memory or the other.
func (g generator) fill(memory []byte, size int, alphabet string) []byte {
	text := memory[:size:size]
	if g.IntN(4) > 0 {
		text = memory[len(memory)-size:]
	}
	for i := range text {
		text[i] = alphabet[g.IntN(len(alphabet))]
	}
	return text
}

// TestPairScan compares the kernel of every level with its contract, on texts that fill their
// memory to the last byte.
func TestPairScan(t *testing.T) {
	t.Parallel()
	g := generator{rand.New(rand.NewPCG(11, 12))}
	memory := fenced(t, 4096)
	alphabets := []string{"ab", "abAB@", "aaaaaaaaaaaaaaaab", "................................................................................a", "\x00\xff\x80\x7fa"}
	for _, v := range levels() {
		if !v.pairs() {
			continue
		}
		found := 0
		for range times(40_000) {
			alphabet := alphabets[g.IntN(len(alphabets))]
			l := literal.Literal{Bytes: make([]byte, 1+g.IntN(12)), Mask: make([]byte, 12)}
			for i := range l.Bytes {
				l.Bytes[i] = alphabet[g.IntN(len(alphabet))]
				if x := l.Bytes[i] | 0x20; x >= 'a' && x <= 'z' && g.IntN(2) == 0 {
					l.Bytes[i], l.Mask[i] = x, 0x20
				}
			}
			l.Mask = l.Mask[:len(l.Bytes)]
			q := newPairPrefilter(l, v).pair
			n := 32 + g.IntN(300)
			text := g.fill(memory, n+max(q.i2, 7), alphabet)
			want := -1
			for i := 0; i < n && want < 0; i++ {
				if text[i+q.i1]|q.f1 == q.b1 && text[i+q.i2]|q.f2 == q.b2 && (load64(unsafe.Pointer(&text[i]))|q.fold)&q.mask == q.word {
					want = i
				}
			}
			if got := v.pairScan(unsafe.Pointer(&text[0]), n, &q); got != want {
				t.Fatalf("level %d: %+v in %q, %d places: got %d, want %d", v, q, text, n, got, want)
			}
			if want >= 0 {
				found++
			}
		}
		if found < times(5000) || found > times(35_000) {
			t.Errorf("level %d: %d found: the texts are too easy", v, found)
		}
	}
}

// TestMaskScan is TestPairScan for the other kernel.
func TestMaskScan(t *testing.T) {
	t.Parallel()
	g := generator{rand.New(rand.NewPCG(13, 14))}
	memory := fenced(t, 4096)
	var every []byte
	for b := range 256 {
		every = append(every, byte(b))
	}
	alphabets := []string{"abc", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "a.\x80\xff1Z", string(every)}
	for _, v := range levels() {
		if !v.masks() {
			continue
		}
		some, full := 0, 0
		for range times(40_000) {
			alphabet := alphabets[g.IntN(len(alphabets))]
			var m masks
			for bucket := range 1 + g.IntN(8) {
				for place := range 3 {
					for range 1 + g.IntN(1+len(alphabet)/3) {
						m.add(place, bucket, alphabet[g.IntN(len(alphabet))])
					}
				}
			}
			n, o1, o2 := block+g.IntN(500), g.IntN(9), g.IntN(9)
			text := g.fill(memory, n+max(o1, o2), alphabet)
			out := make([]blockHits, 1+g.IntN(12))
			var want []blockHits
			far := n
			for at := 0; at < n; at += block {
				at = min(at, n-block)
				b := blockHits{at: at}
				for i := range block {
					if m.has(text[at+i], text[at+i+o1], text[at+i+o2]) != 0 {
						b.hits |= 1 << i
					}
				}
				if b.hits != 0 {
					if want = append(want, b); len(want) == len(out) {
						far = at + block
						break
					}
				}
			}
			count, at := v.maskScan(unsafe.Pointer(&text[0]), n, o1, o2, (*[96]byte)(&m), &out[0], len(out))
			if at != far || !slices.Equal(out[:count], want) {
				t.Fatalf("level %d: %d places of %q, %d, %d: got %x up to %d, want %x up to %d", v, n, text, o1, o2, out[:count], at, want, far)
			}
			if count == len(out) {
				full++
			} else if count > 0 {
				some++
			}
		}
		if some < times(2000) || full < times(2000) {
			t.Errorf("level %d: only %d found something, %d filled the output", v, some, full)
		}
	}
}

// TestMatcherAtWalls puts the texts of whole matchers before and behind memory that must not be
// read.
func TestMatcherAtWalls(t *testing.T) {
	t.Parallel()
	memory := fenced(t, 4096)
	var spans [16][2]int
	for _, v := range levels() {
		for _, pattern := range []string{"zqxj", "zqxjkvbnmwpt", "zq", "(?i)zqxj", "zqxj|wvut", "(?i)zqx|kvb|nmw", `zq[0-9]x`, `[a-z]{3}[0-9][A-Z]`, `[xyz]+_?[qrs]\b`, `(?s)j.{0,3}k`} {
			for _, multiline := range []bool{false, true} {
				m, err := compileAt(pattern, Options{Multiline: multiline}, v)
				must(t, err)
				s := m.Scanner()
				for size := 1; size < 220; size += 200 / times(200) {
					for _, found := range []string{"", "zqxjkvbnmwpt", "zq5xj", "abc1D", "wvut"} {
						for side, text := range [][]byte{memory[:size:size], memory[len(memory)-size:]} {
							copy(text, bytes.Repeat([]byte("-"), size))
							copy(text[max(0, size-len(found)):], found)
							got, want := len(s.Spans(spans[:0], text, 0, size)) > 0, m.slowAny(text)
							if any := s.Any(text); got != want || any != want {
								t.Fatalf("level %d, side %d: %s in %q: %v, %v", v, side, pattern, text, got, any)
							}
						}
					}
				}
				m.Put(s)
			}
		}
	}
}
