package policy

import "strings"

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

// expandShortNames reads each short name in folded as every long name that it may stand for. ok is
// false when there are too many readings.
func expandShortNames(folded string, known []shortName) (readings []string, ok bool) {
	if len(known) == 0 || !strings.Contains(folded, "~") {
		return nil, true
	}
	readings = []string{""}
	changed := false
	for i, name := range strings.Split(folded, "/") {
		names := []string{name}
		for k := range known {
			if known[k].matches(name) {
				names = append(names, known[k].long)
				changed = true
			}
		}
		if len(readings)*len(names) > maxReadings {
			return nil, false
		}
		next := make([]string, 0, len(readings)*len(names))
		for _, r := range readings {
			for _, n := range names {
				if i > 0 {
					n = r + "/" + n
				}
				next = append(next, n)
			}
		}
		readings = next
	}
	if !changed {
		return nil, true
	}
	return readings, true
}
