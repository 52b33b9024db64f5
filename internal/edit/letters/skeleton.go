package letters

import (
	"sort"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The skeleton of a text is what all tiers up to indentation leave alone: the text decomposed,
// typography folded, without any white space. Whatever two texts a tier takes for equal, their
// skeletons are the same bytes; so one search for the skeleton of Old finds the candidates of all
// tiers at once, and only they have to be compared.

// Bone appends to dst the skeleton of the character at src[at:] and gives the offset of the next.
func Bone(dst, src []byte, at int) ([]byte, int) {
	c := src[at]
	if c < utf8.RuneSelf {
		if c == ' ' || '\t' <= c && c <= '\r' {
			return dst, at + 1
		}
		return append(dst, c), at + 1
	}
	r, n := utf8.DecodeRune(src[at:])
	if r == utf8.RuneError {
		return append(dst, src[at:at+n]...), at + n
	}
	if s, ok := Fold(r); ok {
		if s == " " {
			s = ""
		}
		return append(dst, s...), at + n
	}
	p := norm.NFD.Properties(src[at:])
	hangul := 0xac00 <= r && r <= 0xd7a3
	if !hangul && p.CCC() == 0 && p.Decomposition() == nil {
		return append(dst, src[at:at+n]...), at + n
	}
	// Marks are put in order only together with what they stand on.
	end := at + n
	for end < len(src) && src[end] >= utf8.RuneSelf {
		q := norm.NFD.Properties(src[end:])
		if q.CCC() == 0 || q.Size() == 0 {
			break
		}
		end += q.Size()
	}
	if d := p.Decomposition(); !hangul && end == at+n { // a letter by itself has no marks to sort
		if d == nil {
			d = src[at:end]
		}
		return append(dst, d...), end
	}
	return norm.NFD.Append(dst, src[at:end]...), end
}

// boneMarks is how far apart the marks of a skeleton are, in bytes of the source.
const boneMarks = 2048

// Mark ties an offset in a skeleton to the offset in the source where the same character starts.
type Mark struct{ text, raw int }

// Skeleton gives the skeleton of src and marks to find the way back.
func Skeleton(src []byte) ([]byte, []Mark) {
	out := make([]byte, 0, len(src)*3/4+16)
	marks := make([]Mark, 0, len(src)/boneMarks+1)
	for at, due := 0, 0; at < len(src); {
		if at >= due {
			marks = append(marks, Mark{len(out), at})
			due = at + boneMarks
		}
		if c := src[at]; c < utf8.RuneSelf {
			if c > ' ' {
				out = append(out, c)
			} else if c != ' ' && (c < '\t' || c > '\r') {
				out = append(out, c)
			}
			at++
			continue
		}
		out, at = Bone(out, src, at)
	}
	return out, marks
}

// Place translates skeleton offsets [from,to) to the source bytes that made them. ok is false where
// a character of the source is cut, or a combining mark would be torn from its letter.
func Place(src []byte, marks []Mark, from, to int) (start, end int, ok bool) {
	start, ok = -1, true
	i := sort.Search(len(marks), func(i int) bool { return marks[i].text > from }) - 1
	if i < 0 {
		return 0, 0, false
	}
	var buf [64]byte
	for n, at := marks[i].text, marks[i].raw; at < len(src); {
		got, next := Bone(buf[:0], src, at)
		if len(got) > 0 {
			if start < 0 && n+len(got) > from {
				if n != from {
					return 0, 0, false
				}
				start = at
			}
			if n += len(got); n >= to {
				end = next
				if n != to {
					return 0, 0, false
				}
				break
			}
			// A long stretch is skipped by the marks.
			if start >= 0 && to-n > 2*boneMarks {
				if j := sort.Search(len(marks), func(i int) bool { return marks[i].text > to }) - 1; j >= 0 && marks[j].raw > next {
					n, next = marks[j].text, marks[j].raw
				}
			}
		}
		at = next
	}
	if start < 0 || end == 0 {
		return 0, 0, false
	}
	if r, _ := utf8.DecodeRune(src[end:]); unicode.Is(unicode.Mn, r) {
		return 0, 0, false
	}
	return start, end, true
}
