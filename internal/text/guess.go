package text

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// sampleBytes of a text are looked at.
const sampleBytes = 64 << 10

// MostlyUTF8 is true for UTF-8 with few foreign bytes: at most one for three multi-byte characters, or for one if each stands alone
// between bytes of ASCII. The text of other encodings has hardly ever a character of UTF-8, or it has many in a row.
func MostlyUTF8(b []byte) bool {
	chars, strange, alone := 0, 0, true
	before := byte(0)
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			before, b = b[0], b[1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			strange++
			alone = alone && before < utf8.RuneSelf && (len(b) == 1 || b[1] < utf8.RuneSelf)
		} else {
			chars++
		}
		before, b = b[n-1], b[n:]
	}
	return chars >= 3*strange || alone && chars >= strange
}

// Guess finds the encoding of content, which is not UTF-8, by its lines beyond ASCII, wherever they stand. Every encoding of bytes reads
// them, and the likeliest text wins, in whatever language. Next is the likeliest that reads them otherwise.
func Guess(content []byte) Detected {
	sample := strangeLines(content, sampleBytes)
	if s := sample; len(s) > guessBytes {
		sample = s[:guessBytes]
		if i := bytes.LastIndexByte(sample, '\n'); i > guessBytes/2 {
			sample = s[:i]
		}
	}
	type reading struct {
		*Encoding
		text  string
		score float64
	}
	var all []reading
	for i := range encodings {
		e := &encodings[i]
		if e.odds == 0 {
			continue
		}
		text, _ := e.Decode(sample)
		if score, ok := e.likelihood(string(text)); ok {
			all = append(all, reading{e, string(text), score - e.odds})
		}
	}
	slices.SortStableFunc(all, func(a, b reading) int {
		if a.score == b.score {
			return 0
		} else if a.score > b.score {
			return -1
		}
		return 1
	})
	if len(all) == 0 { // nothing convinces
		return Detected{Encoding: Lookup("windows-1252"), Guessed: true, Near: []*Encoding{UTF8}}
	}
	d := Detected{Encoding: all[0].Encoding, Guessed: true}
	for _, other := range all[1:] {
		if all[0].score-other.score < nearBy {
			d.Near = append(d.Near, other.Encoding)
		}
	}
	if d.Name == "gb18030" { // a reader of GBK stops at a character of four bytes
		d.Near = append(d.Near, Lookup("gbk"))
	}
	for _, other := range all[1:] {
		if other.text != all[0].text {
			d.Next = other.Encoding
			break
		}
	}
	return d
}

const (
	guessBytes = 1 << 10 // of the sample are read in every encoding
	nearBy     = 12.0    // nats: an encoding that is less likely by more is not near
)

// strangeLines collects the lines with bytes above ASCII, wherever they are, up to most bytes. A line begins shortly before the first such byte.
func strangeLines(content []byte, most int) []byte {
	out := make([]byte, 0, min(len(content), most))
	for len(content) > 0 && len(out) < most {
		line := content
		if i := bytes.IndexByte(content, '\n'); i >= 0 {
			line = content[:i+1]
		}
		content = content[len(line):]
		if i := bytes.IndexFunc(line, beyondASCII); i >= 0 {
			line = line[max(i-128, 0):]
			out = append(out, line[:min(len(line), most-len(out))]...)
		}
	}
	return out
}

// tonguesTable has a line for each language: its name, then, after a tab each, a digit and the pairs of letters whose likelihood is e to
// the minus of that; of Chinese, Japanese and Korean single characters. scripts/tongues makes it.
//
//go:embed tongues.txt
var tonguesTable string

// told is a language, and how likely it has a pair of letters, or a character.
type told struct {
	tongue uint8
	level  float32
}

// tongues is the table to look up: pairs of small letters, a blank for all that is none, and single letters. A character of Chinese,
// Japanese or Korean is a pair with 0.
var tongues = sync.OnceValue(func() (t struct {
	pairs   map[[2]rune][]told
	letters map[rune][]uint8
	count   int
}) {
	t.pairs, t.letters = map[[2]rune][]told{}, map[rune][]uint8{}
	for line := range strings.Lines(tonguesTable) {
		name, levels, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		here := uint8(t.count)
		t.count++
		for level := range strings.SplitSeq(levels, "\t") {
			is := told{here, float32(level[0] - '0')}
			letters := []rune(level[1:])
			for i := 0; i < len(letters); i++ {
				pair := [2]rune{0, letters[i]}
				if name[0] != 'j' && name[0] != 'z' && name != "ko" {
					pair = [2]rune{letters[i], letters[i+1]}
					i++
				}
				t.pairs[pair] = append(t.pairs[pair], is)
				for _, r := range pair {
					if known := t.letters[r]; r >= utf8.RuneSelf && (len(known) == 0 || known[len(known)-1] != here) {
						t.letters[r] = append(known, here)
					}
				}
			}
		}
	}
	return t
})

// The costs of a character beyond ASCII, in nats. A pair that a language is known to have costs its level, less rest, which is about the
// half of a pair that its other half tells.
const (
	rest    = 2.5
	unseen  = 9 - rest  // letters of the language side by side that rarely are
	foreign = 12 - rest // a letter that the language does not have
	ideal   = 9.5       // an ideograph that is not among the most frequent ones
	rare    = 13.0      // one that the encoding has among the rare ones
	broken  = 25.0      // a byte that is no character, or a control character
	inWord  = 4.0       // a capital behind a small letter
	capital = 1.0       // one behind another
	initial = 0.3       // at the beginning of a word
	symbol  = 2.0       // a letter before a symbol of ASCII, as the second byte of an ideograph may be
	beside  = 4.0       // a letter of another script beside a Latin one, or one of two bytes
)

// likelihood is the log of how likely s, decoded from e, is, by its characters beyond ASCII, in the language in which it is the likeliest. ok is
// false where more than one of fifty is none.
func (e *Encoding) likelihood(s string) (score float64, ok bool) {
	t := tongues()
	var gain [64]float32
	sum, chars, bad := 0.0, 0, 0
	// The characters before: was, before it first; before is was as a letter, near the last that is no blank.
	first, was, before, near, next := ' ', ' ', ' ', ' ', ' '

	for at, r := range s {
		if r < utf8.RuneSelf {
			if r >= 'A' && r <= 'Z' && was >= utf8.RuneSelf && unicode.IsLower(was) {
				sum -= inWord
			}
			if r != ' ' {
				near = r
			}
			first, was, before = was, r, letter(r)
			continue
		}
		chars++
		next, _ = utf8.DecodeRuneInString(s[at+utf8.RuneLen(r):])
		if at+utf8.RuneLen(r) == len(s) {
			next = ' '
		}
		small := letter(r)
		switch {
		case r == utf8.RuneError, r < 0xa0, r >= 0xe000 && r < 0xf900:
			sum -= broken
			bad++
		case syllabic(r):
			cost := float32(rare)
			if e.frequent(r) {
				cost = ideal
			}
			sum -= float64(cost)
			for _, k := range t.pairs[[2]rune{0, r}] {
				gain[k.tongue] += cost - k.level
			}
		case small != ' ':
			sum -= foreign
			for _, k := range t.letters[small] {
				gain[k] += foreign - unseen
			}
			for _, pair := range [2][2]rune{{before, small}, {small, letter(next)}} {
				for _, k := range t.pairs[pair] {
					gain[k.tongue] += (unseen + rest - k.level) / 2
				}
			}
			if r >= 0x370 && r>>8 != 0x1e && (ascii(before) || ascii(letter(next))) || e.common[0] > 0 {
				sum -= beside
			}
			if strings.ContainsRune("@{}|~`[]\\^_", next) {
				sum -= symbol
			}
			switch {
			case r == small && unicode.IsUpper(was) && unicode.IsUpper(first):
				sum -= inWord // a small letter behind two capitals
			case r == small:
			case unicode.IsLower(was):
				sum -= inWord
			case unicode.IsUpper(was):
				sum -= capital
			default:
				sum -= initial
			}
		default:
			sum -= sign(near, was, r, next)
		}
		first, was, before, near = was, r, small, r
	}
	best := gain[0]
	for _, g := range gain[:t.count] {
		best = max(best, g)
	}
	return sum + float64(best), bad*50 <= chars
}

func ascii(r rune) bool { return r >= 'a' && r <= 'z' }

// frequent says that r is a syllable, or one of the ideographs that e has in front.
func (e *Encoding) frequent(r rune) bool {
	if r < 0x3400 || r >= 0xac00 {
		return true
	}
	raw, _ := e.Codec.NewEncoder().Bytes(utf8.AppendRune(nil, r))
	return len(raw) == 2 && e.common[0] <= raw[0] && raw[0] <= e.common[1]
}

// letter is r as a small letter, or a blank.
func letter(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		if r |= 0x20; r >= 'a' && r <= 'z' {
			return r
		}
		return ' '
	case strings.ContainsRune("µªº", r):
		return ' '
	case unicode.IsLetter(r), unicode.Is(unicode.M, r):
		return unicode.ToLower(r)
	}
	return ' '
}

// syllabic says that r is of a script with too many characters for pairs, or a sign that is used with it.
func syllabic(r rune) bool {
	return r >= 0x2e80 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xffee || r >= 0x20000
}

// sign is the cost of r, which is no letter, between two characters.
func sign(near, was, r, next rune) float64 {
	likely := false
	switch {
	case strings.ContainsRune("«„“‘¿¡", r):
		likely = !unicode.IsLetter(was) && !unicode.IsDigit(was) && !unicode.IsSpace(next) || r == '“' && unicode.IsPunct(was)
	case r == '’':
		likely = unicode.IsLetter(was)
	case strings.ContainsRune("»”…", r):
		likely = was > ' ' && !unicode.IsLetter(next)
	case strings.ContainsRune("–—", r):
		likely = unicode.IsSpace(was) == unicode.IsSpace(next)
	case strings.ContainsRune("°€£‰²³µªº", r):
		if unicode.IsDigit(near) || unicode.IsDigit(next) {
			return 2
		}
		likely = (r == '²' || r == '³') && unicode.IsLetter(was)
	case r == '\u00a0':
		likely = true
	case strings.ContainsRune("©®™§•·×±½№", r):
		likely = !unicode.IsLetter(next) && !unicode.IsLetter(was)
	case r >= 0x2500 && r <= 0x259f: // lines and blocks stand side by side
		const lines = "─━│┃═║█▄▀░▒▓"
		if was == r && strings.ContainsRune(lines, r) {
			return 1
		}
		likely = !unicode.IsLetter(was) && !unicode.IsLetter(next) && (strings.ContainsRune(lines+" \n", was) || strings.ContainsRune(lines+" \n", next))
	}
	switch {
	case likely:
		return 4
	case unicode.IsLetter(was) && unicode.IsLetter(next):
		return 12
	}
	return 8
}
