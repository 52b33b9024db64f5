// Package alternatives lists other readings of a path, a regular expression or a glob that led to nothing: quotes around it, another system's separators, a line number behind it,
// another dialect, literal text. It is pure: the caller tries them in their order, and
// offers the first that leads somewhere.
package alternatives

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/args"
	"moltisfs/internal/edit"
	"moltisfs/internal/glob"
	"moltisfs/internal/lazy"
)

// A Tree shows the paths that a session may see, and must tell of no others.
type Tree interface {
	// Near is the deepest directory on the way to p that can be listed, how many names above the last
	// one of p are missing in it, and its entries; directories end in a slash.
	Near(p string) (dir string, missing int, names []string)
	// Fits reports whether p is there and of the wanted kind.
	Fits(p string) bool
	// Named finds files by the last part of their name, in whatever case, or directories.
	Named(base string) []string
}

const (
	maxPaths = 3  // that are offered
	maxLooks = 40 // into directories, for one path
	maxDeep  = 40 // names in a path; a longer one is no slip
)

type finder struct {
	Tree
	root  string
	looks int // so many more directories may be listed
}

// Find gives the paths that asked may mean, likeliest first. sure: the first differs from asked only in its spelling,
// such as quotes, letter case or the root before it.
func Find(t Tree, asked, root string) (found []string, sure bool) {
	if strings.Count(asked, "/")+strings.Count(asked, `\`) > maxDeep {
		return nil, false
	}
	f := &finder{t, root, maxLooks}
	readings := Paths(asked, root)
	for _, p := range readings {
		if t.Fits(p) {
			return []string{p}, true
		}
	}
	plain := asked // as simple as it gets
	if n := len(readings); n > 0 {
		plain = readings[n-1]
	}
	if strings.HasPrefix(asked, "/") {
		readings = append([]string{asked}, readings...)
	}
	for _, p := range readings {
		if found = f.like(p, true); len(found) == 1 {
			return found, true
		}
	}
	if found = f.rerooted(readings); len(found) > 0 {
		return found, true
	}
	for _, p := range readings {
		if found = f.like(p, false); len(found) > 0 {
			return found, false
		}
	}
	return f.named(plain), false
}

// like gives paths like p: each name of p that is not there is replaced by names that are like it; with same, by names
// that differ in case and composition only.
func (f *finder) like(p string, same bool) (out []string) {
	if f.looks--; f.looks < 0 {
		return nil
	}
	dir, missing, names := f.Near(p)
	parts := strings.Split(strings.Trim(p, "/"), "/")
	if dir == "" || missing >= len(parts) {
		return nil
	}
	rest := parts[len(parts)-1-missing:]
	for _, n := range Similar(rest[0], names) {
		if same && Fold(n) != Fold(rest[0]) {
			continue
		}
		q := path.Join(append([]string{dir, n}, rest[1:]...)...)
		switch {
		case q == p:
		case f.Fits(q):
			out = append(out, q)
		case len(rest) > 1 && strings.HasSuffix(n, "/"):
			out = append(out, f.like(q, same)...)
		}
	}
	return out[:min(len(out), maxPaths)]
}

// rerooted gives the longest end of the readings that lies below the root: for /other/repo/py/a.py, root/py/a.py.
func (f *finder) rerooted(readings []string) []string {
	if f.root == "" {
		return nil
	}
	for _, p := range readings {
		for _, end := range Suffixes(p) {
			q := path.Join(f.root, end)
			if q == p || !strings.HasPrefix(q, f.root) {
				continue
			}
			if f.Fits(q) {
				return []string{q}
			}
			if !strings.Contains(end, "/") {
				break // a bare name may be anybody's, in another case
			}
			if found := f.like(q, true); len(found) == 1 {
				return found
			}
		}
	}
	return nil
}

// named gives the files of the name of p anywhere below the root, first those in directories named alike.
func (f *finder) named(p string) []string {
	base := path.Base(p)
	if base == "." || base == "/" || base == ".." {
		return nil
	}
	found := f.Named(base)
	common := func(q string) (n int) {
		a, b := strings.Split(Fold(p), "/"), strings.Split(Fold(q), "/")
		for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
			n++
		}
		return n
	}
	slices.SortStableFunc(found, func(a, b string) int { return common(b) - common(a) })
	return found[:min(len(found), maxPaths)]
}

// Fold is a name as a person might misremember it: no case, composed accents, plain quotes, dashes
// and blanks, nothing that can't be seen, no blank and no slash at its end.
func Fold(s string) string {
	s = strings.ReplaceAll(norm.NFC.String(strings.TrimSuffix(s, "/")), "\u200d", "")
	return strings.ToLower(strings.TrimSpace(string(edit.Plain([]byte(s)))))
}

// Similar picks up to three of names that are likely meant by name: equal when folded, the same stem with another
// extension, a typo.
func Similar(name string, names []string) []string {
	scores := map[string]int{}
	var best []string
	folded := Fold(name)
	stem := strings.TrimSuffix(folded, path.Ext(folded))
	for _, n := range names {
		f := Fold(n)
		switch {
		case f == folded:
			scores[n] = 0
		case len(f) < 128 && len(folded) < 128 &&
			args.Distance(f, folded) <= max(1, len(folded)/3):
			scores[n] = 1 + args.Distance(f, folded)
		case strings.TrimSuffix(f, path.Ext(f)) == stem && stem != "":
			scores[n] = 40
		default:
			continue
		}
		best = append(best, n)
	}
	slices.SortStableFunc(best, func(a, b string) int { return scores[a] - scores[b] })
	return best[:min(len(best), maxPaths)]
}

// Paths are other readings of a path, likeliest first: absolute, clean, below root where they were
// relative. asked itself is among them only where it is relative.
func Paths(asked, root string) []string {
	var out []string
	add := func(p string) {
		if p == "" || strings.ContainsRune(p, 0) || !strings.HasPrefix(p, "/") && root == "" {
			return
		}
		if !strings.HasPrefix(p, "/") {
			p = path.Join(root, p)
			if p != root && !strings.HasPrefix(p, strings.TrimSuffix(root, "/")+"/") {
				return // it climbs out
			}
		}
		if p = path.Clean(p); p != asked && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if !strings.HasPrefix(asked, "/") {
		add(asked)
	}
	for _, text := range append([]string{asked}, unwrapped(asked, root)...) {
		if text != asked {
			add(text)
		}
		if m := diffSide().FindStringSubmatch(text); m != nil {
			add(m[1])
		}
	}
	return out
}

var (
	// Spellings of the root: ${workspaceFolder}, $PWD, %CD%, {{root}}, <root>.
	variable = lazy.Regexp(`^.*(?:\$\{[^}/]*\}|\$\([^)/]*\)|\$\w+|%\w+%|` +
		`\{\{[^}/]*\}\}|<[^>/]*>)(?:[/\\]+|$)`)
	diffSide = lazy.Regexp(`^/?[abciow]/(.+)$`)
)

// wraps are the wrappings that models put around a path, each with its replacement; ROOT is the root.
var wraps = []struct {
	around func() *regexp.Regexp
	stays  string
}{
	{lazy.Regexp(`\\([ '"()&\[\]])`), "$1"}, // escaped for a shell
	{lazy.Regexp(`^(?i:file|vscode|vscode-remote|cursor|sandbox):(?://(?:file|localhost)?)?(/.*)$`), "$1"},
	{lazy.Regexp(`%[0-9A-Fa-f]{2}`), "%"},
	{variable, "ROOT/"},
	{lazy.Regexp(`^~[\w.-]*(?:[/\\]+|$)`), "ROOT/"},
	{lazy.Regexp(`\\\\?`), "/"},
	{lazy.Regexp(`^(?:/?[A-Za-z]:|/(?:mnt/|cygdrive/)?[a-z])(/.*)$`), "$1"}, // drives
	// Behind a name: :12, :12:5, :12-20, #L12-L20, (12,5), ::test, ?query, ", line 12".
	{lazy.Regexp(`(?::+L?\d+(?:[:,.-]L?\d+)*:?|#[\w-]*|` +
		`\(\d+(?:[,:]\s*\d+)*\)|::.*|\?[\w=&.-]*|,?\s+(?:at\s+)?\(?lines?\s+\d.*|@L?\d+)$`), ""},
	{lazy.Regexp(`[.,;: ]+$`), ""},
	{lazy.Regexp(`^/(?:workspaces?|app|repo|project|code|sandbox|testbed)(|/.*)$`), "ROOT$1"}, // of other agents
}

var (
	mdLink = lazy.Regexp(`^!?\[[^\]]*\]\((.+)\)$`)
	label  = lazy.Regexp(`^(?i:file(?:_?path|name)?|path)\s*[:=]\s+(.+)$`)
)

// unwrapped takes the wraps off a path, one after the other. Each stage is an alternative.
func unwrapped(p, root string) (out []string) {
	line, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(p), "\r", "\n"), "\n")
	asked, stages := p, []string{strings.TrimSpace(line)}
	for range 3 {
		p = bare(stages[len(stages)-1])
		named := label().ReplaceAllString(p, "$1")
		stages = append(stages, p, named, mdLink().ReplaceAllString(named, "$1"))
	}
	p = stages[len(stages)-1]
	under := strings.ReplaceAll(strings.TrimSuffix(root, "/"), "$", "$$")
	for _, w := range wraps {
		next := w.around().ReplaceAllString(p, strings.Replace(w.stays, "ROOT", under, 1))
		if w.stays == "%" {
			next, _ = url.PathUnescape(p) // "" where that fails
		}
		if next != "" && (root != "" || !strings.HasPrefix(w.stays, "ROOT")) {
			p = next
			stages = append(stages, p)
		}
	}
	for _, s := range stages {
		if s != "" && s != asked && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// bare takes off blanks, quotes and signs of mention around a path.
func bare(p string) string {
	const around = "\u200b\ufeff\u00a0\"'`“”‘’«»*"
	p = strings.TrimSpace(strings.Trim(strings.TrimSpace(p), around))
	if n := len(p); n > 1 && (p[0] == '<' && p[n-1] == '>' || p[0] == '[' && p[n-1] == ']') {
		p = p[1 : len(p)-1]
	}
	p = strings.TrimPrefix(p, "@")
	// "/ws/ x" and `/ws/"x"` were made of a relative path.
	if i := strings.LastIndexAny(p, "\"'`"); i > 0 && p[i-1] == '/' {
		p = p[i+1:]
	}
	return p
}

// Suffixes are the ends of a path, longest first, without the path itself.
func Suffixes(p string) (out []string) {
	parts := strings.Split(strings.Trim(path.Clean(p), "/"), "/")
	for i := range parts {
		if s := strings.Join(parts[i:], "/"); s != "" && s != "." {
			out = append(out, s)
		}
	}
	return out
}

// CutGlob cuts a path with wildcards into the directories before the first of them, and the rest.
func CutGlob(p string) (dir, glob string, ok bool) {
	at := strings.IndexAny(p, "*?[{")
	if at < 0 {
		return "", "", false
	}
	cut := strings.LastIndexByte(p[:at], '/')
	if cut < 0 {
		return "", p, true
	}
	return p[:max(cut, 1)], p[cut+1:], true
}

// NameGlob is a glob for a name in any letter case, and composed in any way.
func NameGlob(name string) string {
	var b strings.Builder
	for _, r := range name {
		lower, upper := unicode.ToLower(r), unicode.ToUpper(r)
		switch {
		case r > unicode.MaxASCII || strings.ContainsRune("'\"- ", r):
			b.WriteByte('*')
		case lower != upper:
			b.WriteString("[" + string(lower) + string(upper) + "]")
		case strings.ContainsRune(`*?[]{}!,\`, r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Pattern is another reading of a regular expression.
type Pattern struct {
	Text       string
	IgnoreCase bool // beside the asked options
	Multiline  bool
	As         string // the name of the reading, as "literal text"
}

var (
	slashed = lazy.Regexp(`^/(.+)/([a-z]*)$`)
	command = lazy.Regexp(`^(?:(?:e?grep|rg|ag|ack)\s+)?((?:-{1,2}[\w-]+\s+)+)(.+)$`)
	called  = lazy.Regexp(`^(?:e?grep|rg|ag|ack)\s+(.+)$`)
	basic   = lazy.Regexp(`\\[|(){}+?<>]`)
	lines   = lazy.Regexp(`\\[nr]|\[\\s\\S\]|\[\\S\\s\]|\(\?s\)|\[\^\]|\n`)
	blanks  = lazy.Regexp(`[ \t]+`)
)

// Patterns are other readings of a regular expression that matched nothing, or is none, likeliest
// first. Not all of them are well-formed.
func Patterns(p string, ignoreCase, multiline bool) (out []Pattern) {
	plain, flags := unquoted(p)
	i := strings.Contains(flags, "i") && !ignoreCase
	all := []Pattern{
		{plain, i, false, "the bare pattern"},
		{given(!multiline && lines().MatchString(p), p), false, true, "text of several lines"},
		{given(basic().MatchString(plain), ofBasic(plain)), i, false, "a basic regular expression"},
		{strings.ReplaceAll(plain, `\\`, `\`), i, false, "a pattern with single backslashes"},
		{regexp.QuoteMeta(p), i, false, "literal text"},
		{regexp.QuoteMeta(plain), i, false, "literal text"},
	}
	if !ignoreCase {
		for _, r := range append([]Pattern{{Text: p, As: "text"}}, all...) {
			all = append(all, Pattern{r.Text, true, r.Multiline, r.As + " in any letter case"})
		}
	}
	all = append(all, Pattern{blanks().ReplaceAllString(strings.TrimSpace(plain), `\s+`), i, false, "words with any blanks between"})
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
	if m := command().FindStringSubmatch(plain); m != nil {
		plain, flags = m[2], m[1]
	} else if m := called().FindStringSubmatch(plain); m != nil {
		plain = m[1]
	}
	for range 2 {
		plain = inQuotes(plain)
		if m := slashed().FindStringSubmatch(plain); m != nil {
			plain, flags = m[1], flags+m[2]
		}
	}
	return plain, flags
}

// inQuotes gives s without the quotes around it.
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
	extGlob   = lazy.Regexp(`[@+?*]?\(([^()]*\|?[^()]*)\)`)
	extension = lazy.Regexp(`^\.?[A-Za-z0-9_]{1,8}$`)
	ofRegexp  = lazy.Regexp(`\.[*+]|\\\.|\$$|^\^`)
	deepStar  = lazy.Regexp(`\*\*([^/*])`)
	wideStar  = lazy.Regexp(`([^/*])\*\*`)
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
// trimmed is plain without "./" or "/" at its beginning.
func elsewhere(plain, trimmed string) (out []string) {
	if extension().MatchString(plain) {
		out = append(out, "*."+strings.TrimPrefix(plain, "."))
	}
	out = append(out, wideStar().ReplaceAllString(deepStar().ReplaceAllString(trimmed, "**/*$1"), "$1*/**"))
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

// Rival is a reading of a glob that is as likely as the one that found something: a bare word is an
// extension or a directory. "" where there is none.
func Rival(g, found string) string {
	word := strings.TrimSuffix(inQuotes(strings.TrimSpace(g)), "/")
	if strings.HasPrefix(word, ".") || !extension().MatchString(word) || found != "*."+word {
		return ""
	}
	return "**/" + word + "/**"
}

// ofOthers is g in our notation: without quotes and backslashes, regular expressions and the
// alternatives of shells made globs. Each stage is a reading; the last is the plainest.
func ofOthers(g string) (out []string) {
	plain := inQuotes(strings.TrimSpace(g))
	out = append(out, plain)
	if strings.Contains(plain, `\`) && !strings.Contains(plain, `\.`) {
		plain = strings.ReplaceAll(strings.ReplaceAll(plain, `\\`, `\`), `\`, "/")
		out = append(out, plain)
	}
	if ofRegexp().MatchString(plain) {
		plain = strings.NewReplacer(`.*`, "*", `.+`, "*", `\.`, ".", `\/`, "/").Replace(
			strings.TrimSuffix(strings.TrimPrefix(plain, "^"), "$"))
		out = append(out, plain)
	}
	if extGlob().MatchString(plain) {
		plain = extGlob().ReplaceAllStringFunc(plain, alternatives)
		out = append(out, plain)
	}
	return out
}

// alternatives is the group of a shell in braces: {a,b} for @(a|b), and a for (a).
func alternatives(group string) string {
	in := strings.TrimRight(group[strings.IndexByte(group, '(')+1:], ")")
	if in = strings.ReplaceAll(strings.TrimPrefix(in, "?:"), "|", ","); !strings.Contains(in, ",") {
		return in
	}
	return "{" + in + "}"
}
