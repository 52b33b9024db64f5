package guardfs

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of Linux. Others allow less; then their own error comes.
const (
	maxPath      = 4095 // bytes, without the final NUL
	maxComponent = 255  // bytes
)

// checkPath refuses what cannot be the name of anything, by its looks alone. p is a path with slashes.
func checkPath(p string) error {
	why := ""
	switch {
	case p == "":
		why = "empty"
	case p[0] != '/':
		why = "not absolute"
	case len(p) > maxPath:
		why = "longer than 4095 bytes"
	case strings.IndexByte(p, 0) >= 0:
		why = "holds a NUL byte"
	case !utf8.ValidString(p):
		why = "not valid UTF-8"
	}
	if why == "" && len(p) > maxComponent {
		for rest := p; rest != ""; {
			var part string
			part, rest, _ = strings.Cut(rest, "/")
			if len(part) > maxComponent {
				why = "a component is longer than 255 bytes"
				break
			}
		}
	}
	if why != "" {
		return &BadPathError{Path: p, Why: why}
	}
	return nil
}

// splitPlace cuts a path that is to be changed into its directory and the one name below it.
func splitPlace(p string) (dir, base string, err error) {
	if err := checkPath(p); err != nil {
		return "", "", err
	}
	i := strings.LastIndexByte(p, '/')
	dir, base = p[:i], p[i+1:]
	if dir == "" {
		dir = "/"
	}
	switch base {
	case "":
		return "", "", &BadPathError{Path: p, Why: "ends in a slash"}
	case ".", "..":
		return "", "", &BadPathError{Path: p, Why: "ends in " + base}
	}
	return dir, base, nil
}

// climb goes on by name alone where nothing can be looked at any more: from the true name at along
// rest. What it goes up from is added to hops, but for at itself if up is set: that it is there is
// no news.
func climb(at string, up bool, rest []string, hops []Hop) (string, []Hop) {
	for _, c := range rest {
		switch c {
		case "", ".":
		case "..":
			if !up && at != "/" {
				hops = append(hops, Hop{Name: at, Left: true})
			}
			at, up = path.Dir(at), true
		default:
			at, up = join(at, c), false
		}
	}
	return at, hops
}

// upNext says whether the next step along rest goes up.
func upNext(rest []string) bool {
	for _, c := range rest {
		if c != "" && c != "." {
			return c == ".."
		}
	}
	return false
}

// checkName refuses what is not one component of a path. Names from a directory may hold any other bytes.
func checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..", strings.ContainsAny(name, "/\x00"):
		return &BadPathError{Path: name, Why: "not the name of a directory entry"}
	case len(name) > maxComponent:
		return &BadPathError{Path: name, Why: "longer than 255 bytes"}
	}
	return nil
}

// join puts name below the true name dir.
func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// foldBase maps all spellings that a case-folding or normalising file system takes for one name to one string, so
// that they share a lock. It may map different names to one string as well, which costs waiting and nothing
// else: beyond ASCII every letter is dropped, together with the letter that a combining mark sits on.
func foldBase(base string) string {
	out := make([]byte, 0, len(base))
	for _, r := range base {
		switch {
		case unicode.Is(unicode.Mn, r):
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		case r >= utf8.RuneSelf:
		case r >= 'A' && r <= 'Z':
			out = append(out, byte(r-'A'+'a'))
		default:
			out = append(out, byte(r))
		}
	}
	return strings.TrimRight(string(out), ". ")
}
