package policy

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Deny rules are tried on folded names, because a file system may find one file under many
// spellings. ".Env", ".env." and ".e\u00adnv" may all open .env.
//
// Some systems ignore letter case, composed or decomposed accents, invisible code points, or blanks
// and dots at the end. NTFS also knows stream suffixes, backslashes for slashes, and short names.
// Two spellings that some file system takes for one MUST fold to the same string. Folding more than
// that only denies more.

// foldPath folds every segment of an absolute clean path. Most paths fold to themselves, without an
// allocation.
func foldPath(p string) string {
	if plain(p) {
		return p
	}
	var b strings.Builder
	b.Grow(len(p))
	for i, name := range strings.Split(p, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(foldRun(name, true))
	}
	return b.String()
}

// plain reports whether a path or a name folds to itself and is not ambiguous, as most are. It may say no too often.
func plain(p string) bool {
	var last byte = '/'
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c >= '~' || 'A' <= c && c <= '\\' || c == ':' || c == '/' && (last == '.' || last == ' ') {
			return false
		}
		last = c
	}
	return last != '.' && last != ' '
}

// foldName folds the name of an entry. It gives "" where the name is ambiguous.
func foldName(name string) string {
	switch {
	case plain(name):
		return name
	case ambiguous(name):
		return ""
	}
	return foldRun(name, true)
}

// foldRun folds one segment. With ends false it is a part of a segment that other characters
// follow, and dots and blanks at its end stay.
func foldRun(s string, ends bool) string {
	var all byte
	upper := false
	for i := 0; i < len(s); i++ {
		all |= s[i]
		upper = upper || s[i]-'A' < 26
	}
	switch {
	case all >= utf8.RuneSelf:
		s = foldUnicode(s)
	case upper:
		small := []byte(s)
		for i, c := range small {
			if c-'A' < 26 {
				small[i] += 'a' - 'A'
			}
		}
		s = string(small)
	}
	if ends && (strings.HasSuffix(s, ".") || strings.HasSuffix(s, " ")) {
		if t := strings.TrimRight(s, ". "); t != "" {
			s = t
		}
	}
	return s
}

func foldUnicode(s string) string {
	var b strings.Builder
	s = norm.NFD.String(s)
	dotless := false // the last rune was an i; Turkish may add a dot to it
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		part := s[:size]
		s = s[size:]
		if r == utf8.RuneError && size == 1 {
			b.WriteString(part) // not a character: it stays
			dotless = false
			continue
		}
		if ignorable(r) || r == 0x307 && dotless {
			continue
		}
		if full, ok := fullFold(r); ok {
			b.WriteString(full)
			dotless = strings.HasSuffix(full, "i")
			continue
		}
		r = foldRune(r)
		b.WriteRune(r)
		dotless = r == 'i'
	}
	return norm.NFC.String(b.String())
}

// foldRune picks one of the characters that differ from r only in case: the small ASCII letter, or
// else the first.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if 'A' <= least && least <= 'Z' {
		return least + 'a' - 'A'
	}
	return least
}

// fullFold is the part of Unicode's full case folding that concerns letters of living alphabets.
func fullFold(r rune) (string, bool) {
	switch r {
	case 'ı', 'İ':
		return "i", true
	case 'ß', 'ẞ':
		return "ss", true
	case 'ŉ':
		return "ʼn", true
	case 'ﬀ':
		return "ff", true
	case 'ﬁ':
		return "fi", true
	case 'ﬂ':
		return "fl", true
	case 'ﬃ':
		return "ffi", true
	case 'ﬄ':
		return "ffl", true
	case 'ﬅ', 'ﬆ':
		return "st", true
	}
	return "", false
}

// ignorable is Unicode's Default_Ignorable_Code_Point, which HFS+ ignores in names.
func ignorable(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5,
		0x180B <= r && r <= 0x180F,
		0x200B <= r && r <= 0x200F,
		0x202A <= r && r <= 0x202E,
		0x2060 <= r && r <= 0x206F,
		r == 0x3164,
		0xFE00 <= r && r <= 0xFE0F,
		r == 0xFEFF, r == 0xFFA0,
		0xFFF0 <= r && r <= 0xFFF8,
		0x1BCA0 <= r && r <= 0x1BCA3,
		0x1D173 <= r && r <= 0x1D17A,
		0xE0000 <= r && r <= 0xE0FFF:
		return true
	}
	return false
}

// ambiguous reports whether a name may stand for other names: on NTFS by a stream suffix, a
// backslash or a short name; elsewhere by dots and blanks at an end, which some systems drop.
func ambiguous(name string) bool {
	var last byte = '/'
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '\\' || c == ':' || c == '~' || c == '/' && (last == '.' || last == ' ') {
			return true
		}
		if c < utf8.RuneSelf { // a code point beyond ASCII may be invisible
			last = c
		}
	}
	return last == '.' || last == ' '
}

// maxReadings bounds how many readings a path may have.
const maxReadings = 64

// readings gives every way to read a path of which a name has one way or more: ways gives them, the usual one first. The path with the usual ones
// is left out. ok is false when there are too many.
func readings(path string, ways func(name string) []string) (all []string, ok bool) {
	all = []string{""}
	for i, name := range strings.Split(path, "/") {
		ways := ways(name)
		if len(all)*len(ways) > maxReadings {
			return nil, false
		}
		next := make([]string, 0, len(all)*len(ways))
		for _, r := range all {
			for _, w := range ways {
				if i > 0 {
					w = r + "/" + w
				}
				next = append(next, w)
			}
		}
		all = next
	}
	return all[1:], true
}

// foldKeepingEnds folds a path in every way that keeps the dots and blanks at the end of one
// segment or more. A system that does not drop them reads it so, and a rule such as "/a *" means
// them.
func foldKeepingEnds(path string) ([]string, bool) {
	return readings(path, func(name string) []string {
		ways := []string{foldRun(name, true)}
		if kept := foldRun(name, false); kept != ways[0] {
			ways = append(ways, kept)
		}
		return ways
	})
}

// asNTFS gives a folded path as NTFS would read it.
func asNTFS(folded string) string {
	parts := strings.Split(strings.ReplaceAll(folded, `\`, "/"), "/")
	for i, name := range parts {
		name, _, _ = strings.Cut(name, ":")
		if t := strings.TrimRight(name, " "); t == "." || t == ".." {
			parts[i] = t
			continue
		}
		parts[i] = foldRun(name, true)
	}
	return path.Clean("/" + strings.Join(parts, "/"))
}

// shortName is a long name in a deny rule, and the parts of the 8.3 alias that NTFS or FAT would
// give it. .gitmodules is also gitmod~1 and, after a few such names, gi7eba~1.
type shortName struct {
	long      string // folded
	stem, ext string
}

// newShortName gives the alias of a folded name. ok is false when the name is so short that it has
// none.
func newShortName(name string) (shortName, bool) {
	base, ext := name, ""
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		base, ext = name[:i], name[i+1:]
	}
	drop := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '.' || r == ' ' {
				return -1
			}
			return r
		}, s)
	}
	stem, tail := drop(base), drop(ext)
	if stem == base && tail == ext && len(stem) <= 8 && len(tail) <= 3 || stem == "" {
		return shortName{}, false
	}
	stem, tail = stem[:min(6, len(stem))], tail[:min(3, len(tail))]
	return shortName{long: name, stem: stem, ext: tail}, true
}

// matches reports whether a folded name may be the alias.
func (s *shortName) matches(name string) bool {
	base, ext, _ := strings.Cut(name, ".")
	stem, number, ok := strings.Cut(base, "~")
	if !ok || ext != s.ext || number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	// A longer number makes the stem shorter.
	if stem != "" && strings.HasPrefix(s.stem, stem) && len(stem) >= min(len(s.stem), 5) {
		return true
	}
	// After many aliases four hex digits follow the first two characters.
	return len(stem) == 6 && len(s.stem) >= 2 && stem[:2] == s.stem[:2] &&
		strings.Trim(stem[2:], "0123456789abcdef") == ""
}

// expandShortNames reads each short name in a folded path as every long name that it may stand for.
func expandShortNames(folded string, known []shortName) ([]string, bool) {
	if len(known) == 0 || !strings.Contains(folded, "~") {
		return nil, true
	}
	return readings(folded, func(name string) []string {
		names := []string{name}
		for k := range known {
			if known[k].matches(name) {
				names = append(names, known[k].long)
			}
		}
		return names
	})
}
