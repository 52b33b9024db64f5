package readings

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
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
	add := func(text, as string, ignore, multi bool) {
		r := Pattern{text, ignore, multi, as}
		same := func(o Pattern) bool {
			return o.Text == text && o.IgnoreCase == ignore && o.Multiline == multi
		}
		if text != "" && !(text == p && !ignore && !multi) && !slices.ContainsFunc(out, same) {
			out = append(out, r)
		}
	}
	plain, flags := unquoted(p)
	insensitive := strings.Contains(flags, "i") && !ignoreCase
	add(plain, "the bare pattern", insensitive, false)
	if !multiline && lines.MatchString(p) {
		add(p, "text of several lines", false, true)
	}
	literals := []string{regexp.QuoteMeta(p)}
	if plain != p {
		literals = append(literals, regexp.QuoteMeta(plain))
	}
	if basic.MatchString(plain) {
		add(ofBasic(plain), "a basic regular expression", insensitive, false)
	}
	if strings.Contains(plain, `\\`) {
		single := strings.ReplaceAll(plain, `\\`, `\`)
		add(single, "a pattern with single backslashes", insensitive, false)
	}
	for _, l := range literals {
		add(l, "literal text", insensitive, false)
	}
	if bare := strings.ReplaceAll(plain, `\`, ""); bare != plain {
		add(regexp.QuoteMeta(bare), "literal text without backslashes", insensitive, false)
	}
	if someStar.MatchString(plain) {
		add(strings.TrimPrefix(someStar.ReplaceAllString(plain, "$1.*"), ".*"), "a glob", insensitive,
			false)
	}
	if !ignoreCase {
		for _, r := range append([]Pattern{{Text: p}}, out...) {
			add(r.Text, cmp.Or(r.As, "text")+" in any letter case", true, r.Multiline)
		}
	}
	if words := blanks.ReplaceAllString(strings.TrimSpace(plain), `\s+`); words != plain {
		add(words, "words with any blanks between", insensitive, false)
	}
	return out
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
func Globs(g string) (out []string) {
	add := func(p string) {
		if p != "" && p != g && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	plain := ofOthers(g, add)
	if strings.ContainsAny(plain, "[({") {
		add(strings.NewReplacer("[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(plain))
	}
	trimmed := strings.TrimPrefix(strings.TrimPrefix(plain, "./"), "/")
	if add(trimmed); trimmed == "" || strings.HasPrefix(trimmed, "!") {
		return out
	}
	switch {
	case extension.MatchString(plain):
		add("*." + strings.TrimPrefix(plain, "."))
	case strings.HasPrefix(plain, "{") && strings.HasSuffix(plain, "}"):
		add("*." + strings.ReplaceAll(plain, ".", ""))
	case strings.HasPrefix(plain, "*") && extension.MatchString(plain[1:]) && plain[1:2] != ".":
		add("*." + plain[1:])
	}
	add(wideStar.ReplaceAllString(deepStar.ReplaceAllString(trimmed, "**/*$1"), "$1*/**"))
	if i := strings.LastIndexByte(trimmed, '/'); i > 0 {
		add(strings.TrimSuffix(trimmed[:i], "/**") + "/**/" + trimmed[i+1:])
		if !strings.HasPrefix(trimmed, "**/") {
			add("**/" + trimmed)
		}
	}
	add(anyCase(trimmed))
	if !strings.ContainsAny(trimmed, "*?[{") {
		add(strings.TrimSuffix(trimmed, "/") + "/**")
		add("**/" + strings.TrimSuffix(trimmed, "/") + "/**")
	}
	if i := strings.LastIndexByte(trimmed, '/'); i > 0 && strings.Contains(trimmed[i+1:], ".") &&
		!strings.ContainsAny(trimmed[i+1:], "*?[{") {
		add("**/" + trimmed[i+1:]) // a name; a kind of files elsewhere was not asked for
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
// alternatives of shells made globs. Each stage is a reading.
func ofOthers(g string, add func(string)) string {
	plain := inQuotes(strings.TrimSpace(g))
	if strings.HasPrefix(plain, `["`) && strings.HasSuffix(plain, `"]`) {
		plain = strings.NewReplacer(`["`, "", `"]`, "", `", "`, ",", `","`, ",").Replace(plain)
	}
	add(plain)
	if strings.Contains(plain, `\`) && !strings.Contains(plain, `\.`) {
		plain = strings.ReplaceAll(strings.ReplaceAll(plain, `\\`, `\`), `\`, "/")
		add(plain)
	}
	if ofRegexp.MatchString(plain) {
		plain = strings.NewReplacer(`.*`, "*", `.+`, "*", `\.`, ".", `\/`, "/").Replace(
			strings.TrimSuffix(strings.TrimPrefix(plain, "^"), "$"))
		add(plain)
	}
	if extGlob.MatchString(plain) {
		plain = extGlob.ReplaceAllStringFunc(plain, func(m string) string {
			in := strings.TrimRight(m[strings.IndexByte(m, '(')+1:], ")")
			if in = strings.ReplaceAll(strings.TrimPrefix(in, "?:"), "|", ","); !strings.Contains(in, ",") {
				return in
			}
			return "{" + in + "}"
		})
		add(plain)
	} else if strings.Contains(plain, "|") {
		parts := func(r rune) bool { return r == '|' || r == ' ' }
		plain = strings.Join(strings.FieldsFunc(plain, parts), ",")
		add(plain)
	}
	plain = inBraces.ReplaceAllStringFunc(plain, func(m string) string {
		return strings.ReplaceAll(m, " ", "")
	})
	add(plain)
	apart := func(r rune) bool { return r == ' ' || r == ';' }
	if words := strings.FieldsFunc(plain, apart); len(words) > 1 {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "/") }) {
			add(strings.Join(words, ","))
		}
		add(strings.Join(words, "")) // a blank within a path
	}
	return plain
}

// anyCase is a glob in which letters stand for both cases, but for those in classes.
func anyCase(g string) string {
	var b strings.Builder
	class, escaped := false, false
	for i := range len(g) {
		c := g[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		switch {
		case letter && !class && !escaped:
			fmt.Fprintf(&b, "[%c%c]", c|0x20, c&^0x20)
		default:
			b.WriteByte(c)
		}
		class = !escaped && (c == '[' || class && c != ']')
		escaped = !escaped && c == '\\'
	}
	return b.String()
}
