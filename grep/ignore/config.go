package ignore

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// User says where to find the git configuration of a user.
type User struct {
	Home  string   // where "~/" leads
	XDG   string   // XDG_CONFIG_HOME
	Files []string // configuration files in git's order, absolute; they need not exist
	Read  func(path string) ([]byte, error)
}

// ExcludesPath finds the user's core.excludesFile: the last setting in Files, or in the files that
// they include, wins. Without one it is "ignore" in git's directory below XDG, or below
// Home/.config. The file need not exist. It is "" when the setting switches it off or nothing says
// where it would be. A file that cannot be read counts as empty.
func (u User) ExcludesPath() string {
	c := &configuration{home: u.Home, read: u.Read}
	c.files(u.Files)
	if v, ok := c.values["excludesfile"]; ok {
		if v = expandHome(v, u.Home); !isAbs(v) {
			return ""
		}
		return v
	}
	switch {
	case u.XDG != "":
		return path.Join(u.XDG, "git/ignore")
	case u.Home != "":
		return path.Join(u.Home, ".config/git/ignore")
	}
	return ""
}

// CodePlaces gives the paths from which git runs code, or which it reads for that: each directory of
// hooks and templates, with a slash at the end; each file that is included, also if another setting
// wins or a condition does not hold now; and each path that a word of another value may name, as
// ./lint.sh in alias.l = !sh ./lint.sh. "~/" is expanded. A relative one begins where git runs such programs: at
// the top of the work tree. Most name nothing that is there.
func (u User) CodePlaces() []string {
	c := &configuration{home: u.Home, read: u.Read, every: true}
	c.files(u.Files)
	return c.code
}

// words adds the paths that a value may name: itself, and each word of it as a shell would have it. A path behind
// a variable or a command begins where they lead, mostly at the top.
func (c *configuration) words(value string) {
	sign := func(r rune) bool { return strings.ContainsRune(" \t\r\n;&|()<>`'\"={}!", r) }
	for _, w := range append(strings.FieldsFunc(value, sign), value) {
		if strings.HasPrefix(w, "$") {
			_, w, _ = strings.Cut(w, "/")
		}
		c.code = append(c.code, expandHome(w, c.home))
		if rest, ok := strings.CutPrefix(w, "/"); ok {
			c.code = append(c.code, rest)
		}
	}
}

func (c *configuration) files(names []string) {
	for _, f := range names {
		if c.read == nil {
			break
		}
		if data, err := c.read(f); err == nil {
			c.add(data, path.Dir(f), 0)
		}
	}
}

const (
	maxIncludeDepth = 10 // as in git
	// git has no limit. Without one, ten files that include each other ten times would never end.
	maxIncludes = 100
)

// configuration holds the settings of git's configuration files that matter here. It follows includes. Conditions count as not met.
type configuration struct {
	home  string
	read  func(path string) ([]byte, error)
	every bool // conditions count as met

	values   map[string]string // of the section core, by key in small letters
	code     []string          // see CodePlaces
	included int               // files so far
	unread   int               // files that exist and were not read to their end
}

// add takes in one file, which lies in directory dir.
func (c *configuration) add(data []byte, dir string, depth int) {
	ok := eachSetting(data, func(section, key, value string) {
		switch {
		case section == "core":
			if c.values == nil {
				c.values = map[string]string{}
			}
			c.values[key] = value
		case key == "path" && (section == "include" || c.every && strings.HasPrefix(section, "includeif.")):
			c.include(value, dir, depth+1)
			return
		}
		c.words(value)
		if key == "hookspath" || key == "templatedir" {
			if to := expandHome(value, c.home); to != "" {
				c.code = append(c.code, to+"/")
			}
		}
	})
	if !ok {
		c.unread++
	}
}

func (c *configuration) include(name, dir string, depth int) {
	if name = expandHome(name, c.home); name == "" {
		return
	}
	if !isAbs(name) {
		name = path.Join(dir, name)
	}
	c.code = append(c.code, name)
	if c.included++; c.included > maxIncludes || depth > maxIncludeDepth {
		c.unread++
		return
	}
	data, err := c.read(name)
	switch {
	case err == nil:
		c.add(data, path.Dir(name), depth)
	case !errors.Is(err, fs.ErrNotExist):
		c.unread++
	}
}

// expandHome expands "~/" at the beginning of a path in a configuration. It gives "" when the path
// begins at a place that is unknown here.
func expandHome(name, home string) string {
	name = filepath.ToSlash(name)
	if rest, ok := strings.CutPrefix(name, "~/"); ok && home != "" {
		return path.Join(home, rest)
	}
	if strings.HasPrefix(name, "~") || strings.HasPrefix(name, "%(") {
		return ""
	}
	return name
}

func isAbs(name string) bool { return path.IsAbs(name) || filepath.VolumeName(name) != "" }

// eachSetting calls fn for every setting of a configuration file, as git reads it. section is in
// small letters; a subsection follows after a dot, as it stands. key is in small letters. A key
// without a value is "true". It gives false when the file is malformed: git then refuses to work,
// and fn has seen the settings before.
func eachSetting(data []byte, fn func(section, key, value string)) bool {
	p := configParser{rest: strings.TrimPrefix(string(data), "\xef\xbb\xbf")}
	section := ""
	for {
		before := p.rest
		c, ok := p.next()
		switch {
		case !ok:
			return true
		case c == '#' || c == ';':
			p.line()
		case isSpace(c):
		case c == '[':
			if section, ok = p.section(); !ok {
				return false
			}
		default:
			p.rest = before
			key, value, ok := p.setting()
			if !ok {
				return false
			}
			fn(section, key, value)
		}
	}
}

type configParser struct{ rest string }

// next gives one character. "\r\n" counts as one.
func (p *configParser) next() (c byte, ok bool) {
	if p.rest == "" {
		return '\n', false
	}
	if strings.HasPrefix(p.rest, "\r\n") {
		p.rest = p.rest[1:]
	}
	c, p.rest = p.rest[0], p.rest[1:]
	return c, true
}

// section reads a header after its "[".
func (p *configParser) section() (name string, ok bool) {
	var b strings.Builder
	for {
		c, ok := p.next()
		switch {
		case !ok:
			return "", false
		case c == ']':
			return b.String(), b.Len() > 0
		case isSpace(c):
			return p.subsection(&b, c)
		case !isKeyByte(c) && c != '.':
			return "", false
		}
		b.WriteByte(lower(c))
	}
}

// subsection reads the quoted part of a header.
func (p *configParser) subsection(b *strings.Builder, c byte) (name string, ok bool) {
	for isSpace(c) {
		if c == '\n' {
			return "", false
		}
		if c, ok = p.next(); !ok {
			return "", false
		}
	}
	if c != '"' {
		return "", false
	}
	b.WriteByte('.')
	for {
		c, ok = p.next()
		switch {
		case !ok, c == '\n':
			return "", false
		case c == '"':
			c, ok = p.next()
			return b.String(), ok && c == ']'
		case c == '\\':
			if c, ok = p.next(); !ok || c == '\n' {
				return "", false
			}
		}
		b.WriteByte(c)
	}
}

// setting reads a key and its value.
func (p *configParser) setting() (key, value string, ok bool) {
	n := 0
	for n < len(p.rest) && isKeyByte(p.rest[n]) {
		n++
	}
	if n == 0 || lower(p.rest[0]) < 'a' {
		return "", "", false
	}
	key, p.rest = Lower(p.rest[:n]), strings.TrimLeft(p.rest[n:], " \t")
	switch c, _ := p.next(); c {
	case '\n':
		return key, "true", true
	case '=':
		value, ok = p.value()
		return key, value, ok
	}
	return "", "", false
}

// value reads the text after "=". Quotes may stand anywhere. A comment or the end of the line
// ends the value; a backslash there continues it on the next line.
func (p *configParser) value() (string, bool) {
	var b, spaces strings.Builder
	for quoted := false; ; {
		c, _ := p.next()
		if c == '\n' {
			return b.String(), !quoted
		}
		if !quoted && isSpace(c) {
			if b.Len() > 0 {
				spaces.WriteByte(c)
			}
			continue
		}
		if !quoted && (c == '#' || c == ';') {
			p.line()
			return b.String(), true
		}
		b.WriteString(spaces.String())
		spaces.Reset()
		switch c {
		case '"':
			quoted = !quoted
			continue
		case '\\':
			switch c, _ = p.next(); c {
			case '\n':
				continue
			case 't':
				c = '\t'
			case 'n':
				c = '\n'
			case 'b':
				c = '\b'
			case '\\', '"':
			default:
				return "", false
			}
		}
		b.WriteByte(c)
	}
}

// line skips to the next line.
func (p *configParser) line() {
	_, p.rest, _ = strings.Cut(p.rest, "\n")
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isKeyByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || 'a' <= lower(c) && lower(c) <= 'z'
}

// isTrue reads a boolean as git does.
func isTrue(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.ParseInt(v, 0, 64)
	return err == nil && n != 0
}
