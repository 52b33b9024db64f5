package readings

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

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
		if m := diffSide.FindStringSubmatch(text); m != nil {
			add(m[1])
		}
	}
	return out
}

var (
	// What stands for the root: ${workspaceFolder}, $PWD, %CD%, {{root}}, <root>.
	variable = regexp.MustCompile(`^.*(?:\$\{[^}/]*\}|\$\([^)/]*\)|\$\w+|%\w+%|` +
		`\{\{[^}/]*\}\}|<[^>/]*>)(?:[/\\]+|$)`)
	diffSide = regexp.MustCompile(`^/?[abciow]/(.+)$`)
)

// wraps are what models put around a path, each with what stays of it; ROOT is the root.
var wraps = []struct {
	around *regexp.Regexp
	stays  string
}{
	{regexp.MustCompile(`\\([ '"()&\[\]])`), "$1"}, // escaped for a shell
	{regexp.MustCompile(`^(?i:file|vscode|vscode-remote|cursor|sandbox):(?://(?:file|localhost)?)?(/.*)$`), "$1"},
	{regexp.MustCompile(`%[0-9A-Fa-f]{2}`), "%"},
	{variable, "ROOT/"},
	{regexp.MustCompile(`^~[\w.-]*(?:[/\\]+|$)`), "ROOT/"},
	{regexp.MustCompile(`\\\\?`), "/"},
	{regexp.MustCompile(`^(?:/?[A-Za-z]:|/(?:mnt/|cygdrive/)?[a-z])(/.*)$`), "$1"}, // drives
	// Behind a name: :12, :12:5, :12-20, #L12-L20, (12,5), ::test, ?query, ", line 12".
	{regexp.MustCompile(`(?::+L?\d+(?:[:,.-]L?\d+)*:?|#[\w-]*|` +
		`\(\d+(?:[,:]\s*\d+)*\)|::.*|\?[\w=&.-]*|,?\s+(?:at\s+)?\(?lines?\s+\d.*|@L?\d+)$`), ""},
	{regexp.MustCompile(`[.,;: ]+$`), ""},
	{regexp.MustCompile(`^/(?:workspaces?|app|repo|project|code|sandbox|testbed)(|/.*)$`), "ROOT$1"}, // of other agents
}

var (
	mdLink = regexp.MustCompile(`^!?\[[^\]]*\]\((.+)\)$`)
	label  = regexp.MustCompile(`^(?i:file(?:_?path|name)?|path)\s*[:=]\s+(.+)$`)
)

// unwrapped takes off, one after the other, what models put around a path. Each stage is a reading.
func unwrapped(p, root string) (out []string) {
	asked, stages := p, []string{firstLine(p)}
	for range 3 {
		p = bare(stages[len(stages)-1])
		named := label.ReplaceAllString(p, "$1")
		stages = append(stages, p, named, mdLink.ReplaceAllString(named, "$1"))
	}
	p = stages[len(stages)-1]
	under := strings.ReplaceAll(strings.TrimSuffix(root, "/"), "$", "$$")
	for _, w := range wraps {
		next := w.around.ReplaceAllString(p, strings.Replace(w.stays, "ROOT", under, 1))
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

func firstLine(p string) string {
	p = strings.TrimSpace(p)
	if i := strings.IndexAny(p, "\r\n"); i >= 0 {
		return strings.TrimSpace(p[:i])
	}
	return p
}

// bare takes off blanks, quotes and signs of mention around a path.
func bare(p string) string {
	const around = "\u200b\ufeff\u00a0\"'`“”‘’«»*"
	p = strings.TrimSpace(strings.Trim(strings.TrimSpace(p), around))
	if n := len(p); n > 1 && (p[0] == '<' && p[n-1] == '>' || p[0] == '[' && p[n-1] == ']') {
		p = p[1 : len(p)-1]
	}
	p = strings.TrimPrefix(p, "@")
	// "/ws/ x" and `/ws/"x"` are what others made of a relative path.
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
