package policy

import "strings"

// short is a long name that a deny rule holds, and the parts of the 8.3 alias that NTFS or FAT would give it: .gitmodules is
// also gitmod~1 and, after a few of its kind, gi7eba~1.
type short struct {
	long      string // folded
	stem, ext string
}

// shorten tells the alias of a folded name; ok is false when the name is short enough to have none.
func shorten(name string) (short, bool) {
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
		return short{}, false
	}
	return short{long: name, stem: stem[:min(6, len(stem))], ext: tail[:min(3, len(tail))]}, true
}

// is reports whether a folded name may be the alias.
func (s *short) is(name string) bool {
	base, ext, _ := strings.Cut(name, ".")
	stem, number, ok := strings.Cut(base, "~")
	if !ok || ext != s.ext || number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	// With a longer number the stem gets shorter; with many aliases four hex digits follow two characters.
	return stem != "" && strings.HasPrefix(s.stem, stem) && len(stem) >= min(len(s.stem), 5) ||
		len(stem) == 6 && len(s.stem) >= 2 && stem[:2] == s.stem[:2] && strings.Trim(stem[2:], "0123456789abcdef") == ""
}

// lengthen gives folded with each short name read as every long name it may stand for; ok is false when there are too many.
func lengthen(folded string, known []short) (readings []string, ok bool) {
	if len(known) == 0 || !strings.Contains(folded, "~") {
		return nil, true
	}
	readings = []string{""}
	changed := false
	for i, name := range strings.Split(folded, "/") {
		names := []string{name}
		for k := range known {
			if known[k].is(name) {
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
