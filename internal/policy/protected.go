// Package protect knows by name which files keep secrets and which run code later.
//
// For example ".ssh/id_rsa" and ".env.local" are [Secret], ".git/hooks/pre-commit" and
// ".claude/settings.json" are [Exec], and a Makefile is [Marked]. Names say all: nothing is looked
// at, so a name that leads to nothing has its class too.
//
// Names MUST be folded as package policy folds them: here they are in small letters, without
// invisible characters, and without dots and blanks at their end. What is in a directory of a class
// has that class. docs/decisions/0041-protected-classes.md says why each name is here, and why some
// are not.
//
// The package holds tables and pure functions. It opens nothing.
package policy

import "strings"

// A Class says how much a name is protected, each more than the one before.
type Class uint8

// The classes. Hard is no matter of names alone, and has none here: it is for what belongs to this
// program.
const (
	NoClass Class = iota
	Marked        // may run code when it is used: a question says so, and nothing else
	Exec          // runs code later, or tells an agent what to do: a change is asked about
	Secret        // keys and passwords: neither read nor changed
	Hard          // ours
)

// String is the class as the configuration, the answers and the records have it.
func (c Class) String() string {
	return [...]string{"", "marked", "exec", "secret", "hard"}[c]
}

// Holds says which classes there are, besides Marked.
type Holds struct{ Secret, Exec bool }

// Of gives the class of a path below dir, and of all that is above it up to dir. Both are folded
// and clean, dir is absolute, and path begins with it. The strongest class counts.
func (h Holds) Of(path, dir string) (worst Class) {
	for at := len(strings.TrimSuffix(dir, "/")); at < len(path); {
		rest := path[at+1:]
		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		switch c := entry(path[:at], rest[:end]); {
		case c == Secret && !h.Secret, c == Exec && !h.Exec:
		case (c == Marked || rest[:end] == "head") && end < len(rest): // a directory is something else
		default:
			worst = max(worst, c)
		}
		at += 1 + end
	}
	return worst
}

// IsSecret is for walks, and costs little: whether a name in a directory is Secret by itself.
// parents is what Parents gives of the directory.
func IsSecret(name string, parents Tails) bool {
	if len(name) == 0 {
		return false
	}
	if begins[name[0]] && named[name] == Secret || parents[name] == Secret || secretName(name) {
		return true
	}
	of := original(name)
	if of == name || of == "" {
		return false
	}
	bare := strings.TrimPrefix(of, ".") // vim puts a dot before the name
	return named[of] == Secret || parents[of] == Secret || secretName(of) ||
		bare != "" && (parents[bare] == Secret || secretName(bare))
}

// Tails are the names that have a class in one directory only. Most directories have none.
type Tails map[string]Class

// Parents gives the Tails of a directory, by its folded path.
func Parents(dir string) Tails {
	last := dir[strings.LastIndexByte(dir, '/')+1:]
	for _, t := range tails[last] {
		if strings.HasSuffix(dir, t.dir) {
			return t.names
		}
	}
	return nil
}

// entry is the class of one name in a directory.
func entry(dir, name string) Class {
	if name == "" { // of the root directory
		return NoClass
	}
	parents := Parents(dir)
	if IsSecret(name, parents) {
		return Secret
	}
	of := common(name)
	c := max(named[name], parents[name], named[of], forms[inFormat(of)])
	switch {
	case c < Exec && execName(name):
		return Exec
	case c < Marked && strings.HasSuffix(name, ".mk"):
		return Marked
	}
	return c
}

// original is the name that a file was copied from, by how editors, packers and people call copies:
// id_rsa for id_rsa.txt, id_rsa.gz, id_rsa~, #id_rsa#, .id_rsa.swp and "id_rsa (2)".
func original(name string) string {
	if name[0] == '#' {
		name = strings.TrimSuffix(name[1:], "#")
	}
	name = strings.TrimPrefix(name, ".#")
	for {
		name = strings.TrimRight(name, "~)")
		at := len(name) - 1
		for at > 0 && (letter(name[at]) || '0' <= name[at] && name[at] <= '9') {
			at--
		}
		if at < 1 || !isCopy(name[at+1:]) {
			return name
		}
		name = strings.TrimRight(name[:at], ".-_ (")
	}
}

// isCopy says whether the last word of a name says that it is a copy, or is a number.
func isCopy(word string) bool {
	switch word {
	case "bak", "backup", "bkp", "old", "orig", "original", "save", "saved", "swp", "swo", "swn", "tmp", "temp",
		"txt", "copy", "prev", "previous", "new", "local", "gz", "bz2", "xz", "zst", "lz4", "zip", "tgz", "tar",
		"7z", "rpmsave", "rpmnew", "dpkg", "ucf":
		return true
	}
	return strings.Trim(word, "0123456789") == ""
}

// common is the name that says for everybody what this one says for one place: lefthook.yml for
// lefthook-local.yml, jenkinsfile for jenkinsfile.prod, .bashrc for .bashrc.d.
func common(name string) string {
	if s, rest, ok := strings.Cut(name, "."); ok && strings.HasSuffix(s, "file") && named[s] != NoClass &&
		rest != "md" && rest != "txt" && rest != "rst" {
		return s
	}
	if s, ok := strings.CutSuffix(name, ".d"); ok && name[0] == '.' {
		return s
	}
	for _, local := range []string{".local", "-local"} {
		if s, rest, ok := strings.Cut(name, local); ok && s != "" && (rest == "" || rest[0] == '.') {
			return s + rest
		}
	}
	return name
}

// secretName tries the forms that no table can list: endings, .env and its kin, SSH keys.
func secretName(name string) bool {
	switch name[0] {
	case '.':
		if rest, ok := strings.CutPrefix(name, ".env"); ok {
			return isEnv(rest)
		}
		if strings.HasSuffix(name, "history") {
			return true // of a shell or a database
		}
	case 'i':
		if rest, ok := strings.CutPrefix(name, "id_"); ok && isSSHKey(rest) {
			return true
		}
	case 'c':
		if strings.HasPrefix(name, "client_secret") && strings.HasSuffix(name, ".json") {
			return true
		}
	case 's':
		if strings.HasPrefix(name, "ssh_host_") && strings.HasSuffix(name, "_key") {
			return true
		}
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return strings.HasSuffix(name, "_rsa") || strings.HasSuffix(name, "_ed25519") // of deploy_rsa
	}
	if len(name)-dot > len(".keychain-db") {
		return false
	}
	switch stem := name[:dot]; name[dot+1:] {
	case "key":
		return !public(stem)
	case "pem":
		return namesKey(stem) && !public(stem)
	case "p12", "pfx", "p8", "jks", "jceks", "bks", "keystore", "ppk", "kdbx", "keytab", "agekey",
		"keychain", "keychain-db":
		return true
	}
	return false
}

// isEnv judges what follows ".env": ".env.local" and ".env-prod" hold secrets, ".envrc" and
// ".environment" are other files, and ".env.example" is there to be read.
func isEnv(rest string) bool {
	if rest == "" {
		return true
	}
	if letter(rest[0]) {
		return false
	}
	switch rest[strings.LastIndexAny(rest, ".-_")+1:] {
	case "example", "examples", "sample", "samples", "template", "templates", "tmpl", "tpl", "dist",
		"default", "defaults", "schema", "ts": // .env.d.ts declares types
		return false
	}
	return true
}

// isSSHKey judges what follows "id_": a private key, and copies of it, but not its public half nor
// a source file that is about one.
func isSSHKey(rest string) bool {
	if public(rest) {
		return false
	}
	for _, kind := range []string{"rsa", "dsa", "ecdsa", "ed25519", "xmss"} {
		more, ok := strings.CutPrefix(rest, kind)
		if !ok || more != "" && letter(more[0]) {
			continue
		}
		_, ext, has := strings.Cut(more, ".")
		switch ext[strings.LastIndexByte(ext, '.')+1:] {
		case "", "bak", "backup", "old", "orig", "save", "swp", "tmp", "pem", "key", "ppk", "asc", "enc":
			return true
		}
		return !has
	}
	return false
}

// namesKey says whether a word of a stem says "private key": *.pem is mostly a certificate.
func namesKey(stem string) bool {
	return anyWord(stem, func(w string) bool {
		switch w {
		case "monkey", "turkey", "donkey", "hockey", "jockey", "whiskey", "keyboard":
			return false
		}
		return strings.HasSuffix(w, "key") || strings.HasPrefix(w, "key") || strings.HasPrefix(w, "priv")
	})
}

// public says whether a stem says "public".
func public(stem string) bool {
	return anyWord(stem, func(w string) bool {
		return strings.HasPrefix(w, "pub") || strings.HasSuffix(w, "pub")
	})
}

func anyWord(stem string, is func(string) bool) bool {
	sign := func(r rune) bool { return r < 0x80 && !letter(byte(r)) }
	for w := range strings.FieldsFuncSeq(stem, sign) {
		if is(w) {
			return true
		}
	}
	return false
}

// letter is for folded names: ASCII letters and all beyond ASCII.
func letter(c byte) bool { return 'a' <= c && c <= 'z' || c >= 0x80 }

// execName tries what no table can list: bare repositories, workspaces, run configurations, what
// shells and vims read at their start, rules for agents, and the servers that an agent starts.
func execName(name string) bool {
	for _, end := range []string{".git", ".code-workspace", ".sublime-project", ".run.xml"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	if stem, ok := strings.CutSuffix(inFormat(name), ".yml"); ok {
		return anyWord(stem, func(w string) bool { return w == "mcp" })
	}
	stem, ok := strings.CutPrefix(common(name), ".")
	if !ok {
		return false
	}
	for _, end := range []string{"shrc", "vimrc", "profile", "login", "logout"} {
		if strings.HasSuffix(stem, end) {
			return true
		}
	}
	stem, _, _ = strings.Cut(stem, "-") // .roorules-code
	return strings.HasSuffix(stem, "rules")
}
