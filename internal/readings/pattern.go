package readings

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"moltisfs/internal/glob"
)

// Pattern is another reading of a regular expression.
type Pattern struct {
	Text       string
	IgnoreCase bool // as well as what was asked for
	Multiline  bool
	As         string // what it is read as
}

var (
	slashed  = regexp.MustCompile(`^/(.+)/([a-z]*)$`)
	command  = regexp.MustCompile(`^(?:(?:e?grep|rg|ag|ack)\s+)?((?:-{1,2}[\w-]+\s+)+)(.+)$`)
	called   = regexp.MustCompile(`^(?:e?grep|rg|ag|ack)\s+(.+)$`)
	basic    = regexp.MustCompile(`\\[|(){}+?<>]`)
	lines    = regexp.MustCompile(`\\[nr]|\[\\s\\S\]|\[\\S\\s\]|\(\?s\)|\[\^\]|\n`)
	someStar = regexp.MustCompile(`(^|[^.)\]}\\])\*`)
	blanks   = regexp.MustCompile(`[ \t]+`)
)

// Patterns are other readings of a regular expression that matched nothing, or is none, likeliest
// first. Not all of them are well-formed.
func Patterns(p string, ignoreCase, multiline bool) (out []Pattern) {
	plain, flags := unquoted(p)
	bare := strings.ReplaceAll(plain, `\`, "")
	i := strings.Contains(flags, "i") && !ignoreCase
	all := []Pattern{
		{plain, i, false, "the bare pattern"},
		{given(!multiline && lines.MatchString(p), p), false, true, "text of several lines"},
		{given(basic.MatchString(plain), ofBasic(plain)), i, false, "a basic regular expression"},
		{strings.ReplaceAll(plain, `\\`, `\`), i, false, "a pattern with single backslashes"},
		{regexp.QuoteMeta(p), i, false, "literal text"},
		{regexp.QuoteMeta(plain), i, false, "literal text"},
		{given(bare != plain, regexp.QuoteMeta(bare)), i, false, "literal text without backslashes"},
		{given(someStar.MatchString(plain), strings.TrimPrefix(someStar.ReplaceAllString(plain, "$1.*"), ".*")), i, false, "a glob"},
	}
	if !ignoreCase {
		for _, r := range append([]Pattern{{Text: p, As: "text"}}, all...) {
			all = append(all, Pattern{r.Text, true, r.Multiline, r.As + " in any letter case"})
		}
	}
	all = append(all, Pattern{blanks.ReplaceAllString(strings.TrimSpace(plain), `\s+`), i, false, "words with any blanks between"})
	seen := map[Pattern]bool{{Text: p}: true}
	for _, r := range all {
		if same := (Pattern{r.Text, r.IgnoreCase, r.Multiline, ""}); r.Text != "" && !seen[same] {
			out, seen[same] = append(out, r), true
		}
	}
	return out
}

// given is s where it applies, "" else.
func given(applies bool, s string) string {
	if applies {
		return s
	}
	return ""
}

// unquoted takes off quotes, slashes with flags, and a command with its options.
func unquoted(p string) (plain, flags string) {
	plain = strings.TrimSpace(p)
	if m := command.FindStringSubmatch(plain); m != nil {
		plain, flags = m[2], m[1]
	} else if m := called.FindStringSubmatch(plain); m != nil {
		plain = m[1]
	}
	for range 2 {
		plain = inQuotes(plain)
		if m := slashed.FindStringSubmatch(plain); m != nil {
			plain, flags = m[1], flags+m[2]
		}
	}
	return plain, flags
}

// inQuotes is what stands within quotes.
func inQuotes(s string) string {
	if n := len(s); n > 2 && s[0] == s[n-1] && strings.IndexByte("\"'`", s[0]) >= 0 {
		return s[1 : n-1]
	}
	return s
}

// ofBasic turns the operators of a basic regular expression into ours, and ours into letters.
func ofBasic(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\' && i+1 < len(p):
			i++
			switch p[i] {
			case '|', '(', ')', '{', '}', '+', '?':
				b.WriteByte(p[i])
			case '<', '>':
				b.WriteString(`\b`)
			default:
				b.WriteString(`\` + string(p[i]))
			}
		case strings.IndexByte("|(){}+?", c) >= 0:
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

var (
	extGlob   = regexp.MustCompile(`[@+?*]?\(([^()]*\|?[^()]*)\)`)
	extension = regexp.MustCompile(`^\.?[A-Za-z0-9_]{1,8}$`)
	ofRegexp  = regexp.MustCompile(`\.[*+]|\\\.|\$$|^\^`)
	inBraces  = regexp.MustCompile(`\{[^{}]*\}`)
	deepStar  = regexp.MustCompile(`\*\*([^/*])`)
	wideStar  = regexp.MustCompile(`([^/*])\*\*`)
)

// Globs are other readings of a glob that matched no file, likeliest first.
func Globs(g string) []string {
	all := ofOthers(g)
	plain := all[len(all)-1]
	if words := strings.FieldsFunc(plain, func(r rune) bool { return r == ' ' || r == ';' }); len(words) > 1 {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "/") }) {
			all = append(all, strings.Join(words, ","))
		}
		all = append(all, strings.Join(words, "")) // a blank within a path
	}
	if strings.ContainsAny(plain, "[({") {
		all = append(all, strings.NewReplacer("[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(plain))
	}
	trimmed := strings.TrimPrefix(strings.TrimPrefix(plain, "./"), "/")
	if all = append(all, trimmed); trimmed != "" && !strings.HasPrefix(trimmed, "!") {
		all = append(all, elsewhere(plain, trimmed)...)
	}
	var out []string
	for _, p := range all {
		if p != "" && p != g && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// elsewhere are globs for the same names at other depths, in other letter case, or of that extension.
// trimmed is plain without what begins a path.
func elsewhere(plain, trimmed string) (out []string) {
	switch {
	case extension.MatchString(plain):
		out = append(out, "*."+strings.TrimPrefix(plain, "."))
	case strings.HasPrefix(plain, "{") && strings.HasSuffix(plain, "}"):
		out = append(out, "*."+strings.ReplaceAll(plain, ".", ""))
	case strings.HasPrefix(plain, "*") && extension.MatchString(plain[1:]) && plain[1:2] != ".":
		out = append(out, "*."+plain[1:])
	}
	out = append(out, wideStar.ReplaceAllString(deepStar.ReplaceAllString(trimmed, "**/*$1"), "$1*/**"))
	i := strings.LastIndexByte(trimmed, '/')
	if i > 0 {
		out = append(out, strings.TrimSuffix(trimmed[:i], "/**")+"/**/"+trimmed[i+1:])
		if !strings.HasPrefix(trimmed, "**/") {
			out = append(out, "**/"+trimmed)
		}
	}
	out = append(out, glob.InAnyCase(trimmed))
	if !strings.ContainsAny(trimmed, "*?[{") {
		dir := strings.TrimSuffix(trimmed, "/") + "/**"
		out = append(out, dir, "**/"+dir)
	}
	if i > 0 && strings.Contains(trimmed[i+1:], ".") && !strings.ContainsAny(trimmed[i+1:], "*?[{") {
		out = append(out, "**/"+trimmed[i+1:]) // a name; a kind of files elsewhere was not asked for
	}
	return out
}

// GlobsBelow are globs below the root that a glob may mean which begins with what stands for the root:
// ~, a variable, a sandbox of others, the root's own name.
func GlobsBelow(g, root string) (out []string) {
	head := ""
	if at := variable.FindStringIndex(g); at != nil { // its braces are none of a glob
		head, g = g[:at[1]], g[at[1]:]
	}
	dir, rest, ok := CutGlob(g)
	if !ok {
		dir, rest = path.Split(g)
	}
	if dir = strings.TrimSuffix(head+dir, "/"); dir == "" || root == "" {
		return nil
	}
	dirs := unwrapped(dir, root)
	if own, below, _ := strings.Cut(strings.TrimPrefix(dir, "/"), "/"); own == path.Base(root) {
		dirs = append(dirs, path.Join(root, below))
	}
	for _, d := range dirs {
		if d = path.Clean(d); d == root || strings.HasPrefix(d, strings.TrimSuffix(root, "/")+"/") {
			out = append(out, path.Join(strings.TrimPrefix(strings.TrimPrefix(d, root), "/"), rest))
		}
	}
	return slices.Compact(out)
}

// Rival is a reading of a glob that is as likely as the one that found something: a bare word is an
// extension or a directory. "" where there is none.
func Rival(g, found string) string {
	word := strings.TrimSuffix(inQuotes(strings.TrimSpace(g)), "/")
	if strings.HasPrefix(word, ".") || !extension.MatchString(word) || found != "*."+word {
		return ""
	}
	return "**/" + word + "/**"
}

// ofOthers is g in our notation: without quotes and backslashes, regular expressions and the
// alternatives of shells made globs. Each stage is a reading; the last is the plainest.
func ofOthers(g string) (out []string) {
	plain := inQuotes(strings.TrimSpace(g))
	if strings.HasPrefix(plain, `["`) && strings.HasSuffix(plain, `"]`) {
		plain = strings.NewReplacer(`["`, "", `"]`, "", `", "`, ",", `","`, ",").Replace(plain)
	}
	out = append(out, plain)
	if strings.Contains(plain, `\`) && !strings.Contains(plain, `\.`) {
		plain = strings.ReplaceAll(strings.ReplaceAll(plain, `\\`, `\`), `\`, "/")
		out = append(out, plain)
	}
	if ofRegexp.MatchString(plain) {
		plain = strings.NewReplacer(`.*`, "*", `.+`, "*", `\.`, ".", `\/`, "/").Replace(
			strings.TrimSuffix(strings.TrimPrefix(plain, "^"), "$"))
		out = append(out, plain)
	}
	if extGlob.MatchString(plain) {
		plain = extGlob.ReplaceAllStringFunc(plain, alternatives)
		out = append(out, plain)
	} else if strings.Contains(plain, "|") {
		plain = strings.Join(strings.FieldsFunc(plain, func(r rune) bool { return r == '|' || r == ' ' }), ",")
		out = append(out, plain)
	}
	return append(out, inBraces.ReplaceAllStringFunc(plain, func(m string) string { return strings.ReplaceAll(m, " ", "") }))
}

// alternatives is the group of a shell in braces: {a,b} for @(a|b), and a for (a).
func alternatives(group string) string {
	in := strings.TrimRight(group[strings.IndexByte(group, '(')+1:], ")")
	if in = strings.ReplaceAll(strings.TrimPrefix(in, "?:"), "|", ","); !strings.Contains(in, ",") {
		return in
	}
	return "{" + in + "}"
}
