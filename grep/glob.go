package grep

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"moltisfs/grep/ignore"
)

// GlobError names the fault of a glob.
type GlobError struct {
	Glob   string
	Why    string
	Climbs bool // it would leave the directory that is searched
}

func (e *GlobError) Error() string { return fmt.Sprintf("bad glob %q: %s", e.Glob, e.Why) }

const (
	maxGlob  = 4 << 10 // bytes
	maxBrace = 1000    // alternatives that the braces of one glob may make
)

// glob is one pattern with its braces written out. A path matches when one of the alternatives
// does. A pattern without a slash is matched against names at any depth.
type glob struct {
	alts []alternative
}

type alternative struct {
	*ignore.Glob
	name bool // compare the name alone
	dir  bool // for directories only
}

// compileGlob reads a glob: "*", "?" and classes within a segment, "**" across segments, nested
// "{a,b}", "\" to escape. A slash at the beginning anchors a pattern that would otherwise match at
// any depth. A slash at the end means everything in the directory; in an excluding glob the
// directory itself, as in ignore files.
func compileGlob(p string, excludes bool) (*glob, error) {
	if len(p) > maxGlob {
		return nil, &GlobError{Glob: p[:64] + "…", Why: "longer than 4 KiB"}
	}
	if strings.IndexByte(p, 0) >= 0 {
		return nil, &GlobError{Glob: p, Why: "contains a NUL byte"}
	}
	texts, err := expand(p)
	if err != nil {
		return nil, &GlobError{Glob: p, Why: err.Error(), Climbs: err == errClimbs}
	}
	g := &glob{}
	for _, t := range texts {
		a, err := readAlternative(t, excludes)
		if err != nil {
			return nil, &GlobError{Glob: p, Why: err.Error(), Climbs: err == errClimbs}
		}
		g.alts = append(g.alts, a)
	}
	return g, nil
}

var errClimbs = errors.New(`nothing below the directory that is searched is called ".."`)

// readAlternative reads a glob without braces.
func readAlternative(t string, excludes bool) (a alternative, err error) {
	var kept []string
	parts := segments(t)
	for _, part := range parts {
		switch part {
		case "", ".":
		case "..":
			return a, errClimbs
		default:
			kept = append(kept, part)
		}
	}
	under := len(parts) > 1 && parts[len(parts)-1] == ""
	a.name = len(parts) == 1 || excludes && under && len(parts) == 2
	clean := strings.Join(kept, "/")
	switch {
	case excludes:
		a.dir = under
	case clean == "" && t != "":
		clean = "**" // the directory that is searched, by any name
	case under:
		clean += "/**"
	}
	if clean == "**" {
		a.name = false
	}
	a.Glob, err = ignore.Compile(clean, ignore.Dialect{Runes: true, Strict: true})
	return a, err
}

// segments cuts p at its slashes, except for those in a class.
func segments(p string) []string {
	var out []string
	from := 0
	for i, c := range signs(p) {
		if c == '/' {
			out = append(out, p[from:i])
			from = i + 1
		}
	}
	return append(out, p[from:])
}

// signs gives the bytes of p that are neither escaped nor in a class, each with its offset.
func signs(p string) iter.Seq2[int, byte] {
	return func(yield func(int, byte) bool) {
		for i := 0; i < len(p); i++ {
			switch c := p[i]; {
			case c == '\\':
				i++
			case c == '[' && classEnd(p[i:]) > 0:
				i += classEnd(p[i:])
			case !yield(i, c):
				return
			}
		}
	}
}

// match decides for the entry name in directory rel, which is "" or ends in a slash.
func (g *glob) match(rel, name string, isDir bool, s *ignore.Scratch) bool {
	path := ""
	for i := range g.alts {
		a := &g.alts[i]
		switch {
		case a.dir && !isDir:
			continue
		case a.name:
			if a.Match(name) {
				return true
			}
			continue
		}
		if path == "" {
			path = s.Join(rel, name)
		}
		if a.Match(path) {
			return true
		}
	}
	return false
}

// under says whether a file below directory rel could match.
func (g *glob) under(rel string) bool {
	return slices.ContainsFunc(g.alts, func(a alternative) bool { return a.name || a.Under(strings.TrimSuffix(rel, "/")) })
}

// leads says whether g names directory rel as one to pass through: "a/*/c" leads through "a" and
// "a/b". "**/c" names no directory.
func (g *glob) leads(rel string) bool {
	return slices.ContainsFunc(g.alts, func(a alternative) bool { return !a.name && a.Leads(strings.TrimSuffix(rel, "/")) })
}

// expand writes out the braces of p. A brace without a partner is an error; one within a class is
// an ordinary character.
func expand(p string) ([]string, error) {
	open, depth := -1, 0
	var commas []int
	for i, c := range signs(p) {
		switch c {
		case '{':
			if depth == 0 {
				open, commas = i, commas[:0]
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth == 0 {
				return nil, fmt.Errorf("the brace at %d closes nothing; a literal one is written \\}", i+1)
			}
			if depth--; depth > 0 {
				continue
			}
			return expandAt(p, open, i, commas)
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("the brace at %d is not closed; a literal one is written \\{", open+1)
	}
	return []string{p}, nil
}

// expandAt writes out the brace at p[open:end+1], of which commas are the offsets of its commas, and all braces within and behind.
func expandAt(p string, open, end int, commas []int) ([]string, error) {
	tails, err := expand(p[end+1:])
	if err != nil {
		return nil, err
	}
	var out []string
	from := open + 1
	for _, to := range append(commas, end) {
		mids, err := expand(p[from:to])
		if err != nil {
			return nil, err
		}
		for _, m := range mids {
			for _, t := range tails {
				if out = append(out, p[:open]+m+t); len(out) > maxBrace {
					return nil, fmt.Errorf("the braces stand for more than %d globs", maxBrace)
				}
			}
		}
		from = to + 1
	}
	return out, nil
}

// classEnd is the offset of the "]" that closes the class at the start of p, 0 when there is none.
func classEnd(p string) int {
	for i := 1; i < len(p); i++ {
		switch {
		case p[i] == '\\':
			i++
		case p[i] == ']' && i > 1 && !(i == 2 && (p[1] == '!' || p[1] == '^')):
			return i
		}
	}
	return 0
}

// SplitGlobs cuts a list of globs at any character of at, outside braces and classes. Models write
// "*.ts, *.tsx".
func SplitGlobs(list, at string) []string {
	var out []string
	depth, from := 0, 0
	cut := func(to int) {
		for from < to && list[from] == ' ' {
			from++
		}
		for to > from && list[to-1] == ' ' && (to < 2 || list[to-2] != '\\') {
			to--
		}
		if to > from {
			out = append(out, list[from:to])
		}
	}
	for i, c := range signs(list) {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth = max(0, depth-1)
		case depth == 0 && strings.IndexByte(at, c) >= 0:
			cut(i)
			from = i + 1
		}
	}
	cut(len(list))
	return out
}

// ListGlobs cuts the list of globs of a Query at its commas and blanks. "!my file.txt" stays one
// glob: cut in two it would ask for the files that it excludes.
func ListGlobs(list string) []string {
	var out []string
	for _, part := range SplitGlobs(list, ",") {
		words := SplitGlobs(part, " ")
		excludes := func(g string) bool { return strings.HasPrefix(g, "!") }
		if excludes(words[0]) && !slices.ContainsFunc(words[1:], excludes) {
			words = []string{part}
		}
		out = append(out, words...)
	}
	return out
}
