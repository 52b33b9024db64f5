package syntax

import (
	"strings"
	"sync"
	"unicode"
)

// foldable is the sorted list of code points that fold to others. It is computed when first needed.
var foldable = sync.OnceValue(func() []rune {
	var out []rune
	add := func(lo, hi rune) {
		for r := lo; r <= hi; r++ {
			if unicode.SimpleFold(r) != r {
				out = append(out, r)
			}
		}
	}
	add(0, 0x2fff)
	add(0xa640, 0xabff)
	add(0xff00, 0xffff)
	add(0x10400, 0x10fff)
	add(0x11800, 0x118ff)
	add(0x16e00, 0x16eff)
	add(0x1e900, 0x1e9ff)
	return out
})

var wordTables = []*unicode.RangeTable{
	unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc,
}

// The Perl classes as ripgrep reads them (UTS #18 annex C).
var (
	WordRanges = sync.OnceValue(func() []rune {
		return cleanRanges(append(propertyTables(wordTables...), 0x200c, 0x200d)) // Join_Control
	})
	digitRanges = sync.OnceValue(func() []rune { return propertyTables(unicode.Nd) })
	spaceRanges = sync.OnceValue(func() []rune { return propertyTables(unicode.White_Space) })
)

var (
	WordASCII  = []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	digitASCII = []rune{'0', '9'}
	spaceASCII = []rune{'\t', '\r', ' ', ' '}
)

func propertyTables(ts ...*unicode.RangeTable) []rune {
	var out []rune
	for _, t := range ts {
		for _, r := range t.R16 {
			out = appendStride(out, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			out = appendStride(out, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return cleanRanges(out)
}

func appendStride(out []rune, lo, hi, stride rune) []rune {
	if stride == 1 {
		return append(out, lo, hi)
	}
	for r := lo; r <= hi; r += stride {
		out = append(out, r, r)
	}
	return out
}

// IsWordRune says whether \w matches r.
func IsWordRune(r rune) bool {
	if r < 0x80 {
		return IsWordByte(byte(r))
	}
	return unicode.IsLetter(r) || unicode.In(r, wordTables[1:]...) || r == 0x200c || r == 0x200d
}

// IsWordByte says whether \w matches b under (?-u).
func IsWordByte(b byte) bool {
	return b == '_' || b-'0' <= 9 || (b|0x20)-'a' <= 25
}

// posix holds the bracket names, ASCII as in ripgrep and Go.
var posix = map[string][]rune{
	"alnum":  {'0', '9', 'A', 'Z', 'a', 'z'},
	"alpha":  {'A', 'Z', 'a', 'z'},
	"ascii":  {0, 0x7f},
	"blank":  {'\t', '\t', ' ', ' '},
	"cntrl":  {0, 0x1f, 0x7f, 0x7f},
	"digit":  {'0', '9'},
	"graph":  {'!', '~'},
	"lower":  {'a', 'z'},
	"print":  {' ', '~'},
	"punct":  {'!', '/', ':', '@', '[', '`', '{', '~'},
	"space":  {'\t', '\r', ' ', ' '},
	"upper":  {'A', 'Z'},
	"word":   {'0', '9', 'A', 'Z', '_', '_', 'a', 'z'},
	"xdigit": {'0', '9', 'A', 'F', 'a', 'f'},
}

// looseName is a property name as UAX #44 compares it: no case, blanks, hyphens or underscores.
func looseName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// property finds the set behind \p{name}; key=value names look the value up where the key says.
func property(name string) ([]rune, bool) {
	key := ""
	if k, v, ok := strings.Cut(name, "="); ok {
		key, name = looseName(k), v
	}
	n := looseName(name)
	if key == "" {
		switch n {
		case "any":
			return []rune{0, unicode.MaxRune}, true
		case "ascii":
			return []rune{0, 0x7f}, true
		case "alphabetic", "alpha":
			return propertyTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic), true
		case "lowercase", "lower":
			return propertyTables(unicode.Ll, unicode.Other_Lowercase), true
		case "uppercase", "upper":
			return propertyTables(unicode.Lu, unicode.Other_Uppercase), true
		case "space", "wspace":
			return spaceRanges(), true
		}
	}
	if key == "" || key == "gc" || key == "generalcategory" {
		for alias, short := range unicode.CategoryAliases {
			if looseName(alias) == n {
				return propertyTables(unicode.Categories[short]), true
			}
		}
		if t := looseFind(unicode.Categories, n); t != nil {
			return propertyTables(t), true
		}
	}
	if key == "" || key == "sc" || key == "script" {
		if t := looseFind(unicode.Scripts, n); t != nil {
			return propertyTables(t), true
		}
	}
	if key == "" {
		if t := looseFind(unicode.Properties, n); t != nil {
			return propertyTables(t), true
		}
	}
	return nil, false
}

func looseFind(m map[string]*unicode.RangeTable, n string) *unicode.RangeTable {
	for k, t := range m {
		if looseName(k) == n {
			return t
		}
	}
	return nil
}
