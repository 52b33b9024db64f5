package ignore_test

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// forest is a generated tree with rules: files, and the rule files by path. Every name and rule is
// drawn from small sets, so that rules hit, and hit each other.
type forest struct {
	files  []string
	rules  map[string]string // ".gitignore" path → content
	info   string            // .git/info/exclude
	global string            // core.excludesFile
	fold   bool              // core.ignorecase
}

var plainNames = []string{"a", "b", "foo", "bar", "baz", "src", "build", "doc", "foo.txt", "bar.txt", "x.log", "y.log", "foo.o", "x.go", ".hid", "foobar", "Foo", "BUILD", "Foo.TXT"}
var oddNames = []string{"x y", "end ", "#hash", "!bang", "[ab]", "a*b", `back\s`, "q?m", "é.txt", "日本.log", "tab\tx", "a]b", "a-b", "{a,b}", "(p)", "a+b", "$d", "^c", "a.b.c", "~t", "-", "..foo", "foo..", "ü", "a|b", "%41", "x\u00a0", "a^b", "é", "[", "]"}

type gen struct{ *rand.Rand }

func (g gen) of(s ...string) string { return s[g.IntN(len(s))] }
func (g gen) one(n int) bool        { return g.IntN(n) == 0 }

func (g gen) tree(odd int) []string {
	dirs, files := map[string]bool{}, map[string]bool{}
	for want, tries := 8+g.IntN(18), 0; len(files) < want && tries < 200; tries++ {
		var p string
		ok := true
		for d := g.IntN(4); d >= 0; d-- {
			name := g.of(plainNames...)
			if g.IntN(100) < odd {
				name = g.of(oddNames...)
			}
			if p != "" {
				ok = ok && !files[p]
				p += "/"
			}
			p += name
		}
		if ok = ok && !dirs[p]; !ok {
			continue
		}
		files[p] = true
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	var out []string
	for f := range files {
		clash := false
		for d := path.Dir(f); d != "."; d = path.Dir(d) {
			clash = clash || files[d]
		}
		if !clash {
			out = append(out, f)
		}
	}
	slices.Sort(out)
	return out
}

// literal escapes a name so that a rule means just it.
func literal(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(`*?[\`, s[i]) >= 0 || i == 0 && (s[i] == '#' || s[i] == '!') || i == len(s)-1 && s[i] == ' ' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// blur replaces a part of a name by a wildcard.
func (g gen) blur(s string) string {
	if s == "" {
		return "*"
	}
	i := g.IntN(len(s))
	j := i + g.IntN(len(s)-i) + 1
	switch g.IntN(10) {
	case 0:
		return "*"
	case 1:
		return s[:i] + "*"
	case 2:
		return "*" + s[j-1:]
	case 3:
		return s[:i] + "?" + s[i+1:]
	case 4:
		return s[:i] + "*" + s[j:]
	case 5:
		return s[:i] + g.class(s[i]) + s[i+1:]
	case 6:
		return s[:i] + g.of("**", "***", "*?*", "?*") + s[j:]
	case 7:
		return s[:i] + `\` + s[i:]
	case 8:
		return g.of(strings.ToUpper(s), strings.ToLower(s))
	}
	return s
}

func (g gen) class(c byte) string {
	return g.of("[a-z]", "[A-Z]", "[!a-z]", "[^a-z]", "["+string(c)+"x]", "[[:alpha:]]", "[[:upper:]]", "[[:digit:]_]", "[!a]", "[a-f]", "[[:punct:]]",
		"[-a]", "[]-a]", `[\]a-b]`, "[.]", "[a-c-e]", "[[:alpha]", "[[:foo:]]", "[[:space:][:lower:]]", "[!]a]", `[\\]`, "[A-z]", "[z-a]", "[a-", "[", "[!", "[]", `[\`, "[[:alnum:]-z]", "[F-f]", "[[.a.]]", "[/]", "[a/b]", "[[:", "[é]", "[[]", "[*?]")
}

// rule makes one line about files; dirs are their directories.
func (g gen) rule(files []string) string {
	p := "foo"
	if len(files) > 0 {
		p = files[g.IntN(len(files))]
	}
	parts := strings.Split(p, "/")
	if g.one(2) {
		parts = parts[:1+g.IntN(len(parts))]
	}
	for i := range parts {
		parts[i] = literal(parts[i])
		if g.one(3) {
			parts[i] = g.blur(parts[i])
		}
	}
	base := parts[len(parts)-1]
	var r string
	switch g.IntN(12) {
	case 0, 1, 2:
		r = base
	case 3, 4:
		r = strings.Join(parts, "/")
	case 5:
		r = "/" + strings.Join(parts, "/")
	case 6:
		r = "**/" + g.of(base, strings.Join(parts, "/"), "*")
	case 7:
		r = parts[0] + g.of("/**", "/**/"+base, "/**/*", "/*", "**/"+base, "/***", `/**\/`+base, `**\/`+base, "/**/**/"+base, "/*/*", "**")
	case 8:
		i := g.IntN(len(parts))
		parts[i] = g.of("*", "**", "?*", "**", "***")
		r = g.of("", "/") + strings.Join(parts, "/")
	case 9:
		r = g.of("*", "/*", "*/", "/**", "**", "**/", "/", "//", "", " ", "#", "!", "\\", "*.*", ".*", "*.txt", "*.log", "/*/", "!*/", "!/*/", "!*", "!*.*", "*o*", "/**/", `\#hash`, `\!bang`, "./foo", "../foo", "foo//", "//foo", " foo", "foo #c", "!!bang", "\x00", "foo\x00x", "\r", "\t", "*\\", "[", "^", "f**", "/f**", "f**/a")
	case 10:
		r = g.blur(base)
	default:
		r = base + g.of(" ", "  ", `\ `, `\  `, "\t", " \t", "\t ", `\\ `, `\`, "\u00a0", "/ ", `\\`, "[", "/*", "/.")
	}
	if g.one(4) {
		r += "/"
	}
	if g.one(4) {
		r = "!" + r
	}
	return r
}

func (g gen) ruleFile(files []string, n int) string {
	var ls []string
	for range 1 + g.IntN(n) {
		ls = append(ls, g.rule(files))
	}
	if g.one(6) {
		ls = append([]string{g.of("*", "/*", "*.txt", "foo*", "*o*")}, ls...)
	}
	s := strings.Join(ls, "\n")
	switch g.IntN(12) {
	case 0:
		return "\xef\xbb\xbf" + s + "\n"
	case 1:
		return strings.ReplaceAll(s, "\n", "\r\n") + "\r\n"
	case 2:
		return s
	case 3:
		return s + "\r"
	}
	return s + "\n"
}

func (g gen) forest() *forest {
	f := &forest{rules: map[string]string{}, fold: g.one(5)}
	f.files = g.tree([]int{5, 15, 60}[g.IntN(3)])
	if !g.one(8) {
		f.rules[".gitignore"] = g.ruleFile(f.files, 5)
	}
	for range g.IntN(3) {
		d := path.Dir(f.files[g.IntN(len(f.files))])
		var below []string
		for _, p := range f.files {
			if strings.HasPrefix(p, d+"/") {
				below = append(below, p[len(d)+1:])
			}
		}
		if d != "." {
			f.rules[d+"/.gitignore"] = g.ruleFile(below, 3)
		}
	}
	if g.one(4) {
		f.info = g.ruleFile(f.files, 3)
	}
	if g.one(4) {
		f.global = g.ruleFile(f.files, 3)
	}
	return f
}
