package ignore

import (
	"path"
	"strings"
)

// ExcludesPath finds the user's core.excludesFile: the last of configs that sets it has the word, and where none does it is
// "ignore" in git's directory below xdg (XDG_CONFIG_HOME), or below home/.config. configs are the contents of git's
// configuration files in git's order: the system's, git/config below xdg, and .gitconfig in home. The file need not exist. It is
// "" when it is switched off or nothing says where it would be.
func ExcludesPath(home, xdg string, configs ...[]byte) string {
	for i := len(configs) - 1; i >= 0; i-- {
		v, ok := setting(configs[i], "excludesfile")
		if !ok {
			continue
		}
		if rest, ok := strings.CutPrefix(v, "~/"); ok && home != "" {
			return path.Join(home, rest)
		}
		if !path.IsAbs(v) {
			return ""
		}
		return v
	}
	switch {
	case xdg != "":
		return path.Join(xdg, "git/ignore")
	case home != "":
		return path.Join(home, ".config/git/ignore")
	}
	return ""
}

// setting reads a key, in small letters, of the section core of a git configuration. A key without a value is "true".
// Includes are not followed.
func setting(config []byte, key string) (value string, ok bool) {
	core := false
	text := strings.ReplaceAll(string(config), "\\\r\n", "")
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, rest, _ := strings.Cut(line[1:], "]")
			core = strings.EqualFold(strings.TrimSpace(name), "core")
			line = strings.TrimSpace(rest)
		}
		name, v, has := strings.Cut(line, "=")
		name, _, _ = strings.Cut(name, "#")
		name, _, _ = strings.Cut(name, ";")
		if !core || !strings.EqualFold(strings.TrimSpace(name), key) {
			continue
		}
		if value, ok = "true", true; has {
			value = unquote(strings.TrimSpace(v))
		}
	}
	return value, ok
}

// unquote reads the value of a setting: quotes may stand anywhere, a comment ends it.
func unquote(v string) string {
	var b strings.Builder
	quoted, kept := false, 0
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c == '"':
			quoted = !quoted
			kept = b.Len()
			continue
		case (c == '#' || c == ';') && !quoted:
			i = len(v)
			continue
		case c == '\\' && i+1 < len(v):
			i++
			switch c = v[i]; c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			}
			b.WriteByte(c)
			kept = b.Len()
			continue
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			kept = b.Len()
		}
	}
	return b.String()[:kept]
}

// isTrue reads a boolean as git does.
func isTrue(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}
