package gitrepo

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Names that lead into a repository on some file system, of a path that begins with them: with
// dots, spaces or a stream behind them, or by their short names, on NTFS. By the rules of
// core.protectNTFS in git-config(1), which git follows on every system.
var (
	gitDirName     = regexp.MustCompile(`(?is)^(?:\.git|git~1)[. ]*(?:[:/\\].*)?$`)
	gitModulesName = regexp.MustCompile(`(?is)^(?:\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]|gi7eb~[1-9][0-9]|` +
		`gi7e~[1-9][0-9]{2}|gi7~[1-9][0-9]{3}|gi~[1-9][0-9]{4}|g~[1-9][0-9]{5}|~[1-9][0-9]{6})[. ]*(?::.*)?$`)
)

// Refuses says whether git takes no file of that path, which is relative and has slashes: one
// such path, and git apply takes nothing of a whole patch and git clone nothing of a whole tree.
// What git refuses on one system only is refused here on all, because nobody knows where the export
// goes.
func Refuses(path string, link bool) bool {
	if path == "" {
		return true // the root directory itself
	}
	for rest, at := path, byte('/'); ; {
		name, _, _ := strings.Cut(rest, "/")
		folded := strings.ToLower(hfsName(name))
		if at == '/' && (folded == ".git" || link && folded == ".gitmodules") ||
			gitDirName.MatchString(rest) || link && gitModulesName.MatchString(rest) {
			return true
		}
		next := strings.IndexAny(rest, `/\`)
		if next < 0 {
			return false
		}
		at, rest = rest[next], rest[next+1:]
	}
}

// hfsName is a name without what HFS+ ignores in it (core.protectHFS): marks that join, separate or
// give a direction, and the byte order mark. Git reads no further than to bytes that are not UTF-8.
func hfsName(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r == utf8.RuneError && !strings.HasPrefix(name[i:], string(utf8.RuneError)) {
			break
		}
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f,
			r == 0xfeff:
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
