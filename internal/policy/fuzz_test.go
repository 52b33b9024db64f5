package policy

import (
	"errors"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// The oracle knows rules of stars and question marks only, and matches them the slow way, segment
// by segment, with the standard library. It shares no code with package glob.
func oracleMatches(rule, name []string) bool {
	switch {
	case len(rule) == 0:
		return len(name) == 0
	case rule[0] == "**":
		return oracleMatches(rule[1:], name) || len(name) > 0 && oracleMatches(rule, name[1:])
	case len(name) == 0:
		return false
	}
	ok, err := path.Match(rule[0], name[0])
	return err == nil && ok && oracleMatches(rule[1:], name[1:])
}

func oracleAllows(rule, name string) bool {
	if !strings.HasPrefix(rule, "/") {
		rule = "/" + rule
	}
	if rule == "/" {
		return name == "/"
	}
	return oracleMatches(strings.Split(rule, "/"), strings.Split(strings.TrimSuffix(name, "/"), "/"))
}

// oracleDenies tries the path and every directory above it, in small letters too.
func oracleDenies(rule, name string) bool {
	for ; ; name = path.Dir(name) {
		if oracleAllows(rule, name) || oracleAllows(strings.ToLower(rule), strings.ToLower(name)) {
			return true
		}
		if name == "/" {
			return false
		}
	}
}

// plainRule reports whether the oracle can read a rule.
func plainRule(rule string) bool {
	return !strings.ContainsAny(rule, `[]{}\!~:`) && plainName(rule)
}

// plainName reports whether a path has one reading only, letter case aside.
func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c >= utf8.RuneSelf || c < ' ' || c == '\\' || c == ':' || c == '~' {
			return false
		}
	}
	for _, s := range strings.Split(name, "/") {
		if strings.TrimRight(s, ". ") != s {
			return false
		}
	}
	return true
}

// clean reports whether name could be the kernel's.
func clean(name string) bool {
	return strings.HasPrefix(name, "/") && path.Clean(name) == name && !strings.Contains(name, "\x00")
}

// respell gives spellings that some file system takes for the same name.
func respell(name string) []string {
	out := []string{strings.ToUpper(name), norm.NFD.String(name), norm.NFC.String(name)}
	if strings.Trim(path.Base(name), ". ") == "" { // "/", or a name that no system would take for another
		return out
	}
	_, last := utf8.DecodeLastRuneInString(name)
	if plainName("/" + path.Base(name)) { // who drops an end drops all of it
		out = append(out, name+".", name+" .")
	}
	out = append(out, name+"\u200d", name[:len(name)-last]+"\ufeff"+name[len(name)-last:])
	if plainName(name) { // NTFS knows no names with dots at the end, and a stream has no streams
		out = append(out, name+"::$DATA")
	}
	return out
}

func FuzzRule(f *testing.F) {
	for _, rule := range []string{"/ws/**", "/ws/.env*", "**/.env", "/a/**/b", "/", "/**", "/a?/*b", "/é/**", "/ws/[a-c]*", "/{a,b}/c", "~/x", "/a/../b", "/A b/c.", "**"} {
		for _, name := range []string{"/ws/.env", "/a/x/b/c", "/", "/AB/ab", "/e\u0301/x", "/WS", "/a b/c"} {
			f.Add(rule, name)
		}
	}
	f.Fuzz(func(t *testing.T, rule, name string) {
		if len(rule) > 60 || len(name) > 80 || !clean(name) {
			return
		}
		p, err := New(Options{Deny: []string{rule}})
		var bad *RuleError
		if err != nil {
			if !errors.As(err, &bad) || bad.Rule != rule || bad.Offset < 0 || bad.Offset > len(rule) || bad.Why == "" {
				t.Fatalf("%q: odd error %#v", rule, err)
			}
			if glob.CheckRule(rule) == nil {
				t.Fatalf("%q: refused, yet glob.CheckRule takes it", rule)
			}
			return
		}
		denied := p.Judge(file(name), guardfs.Read) != nil
		if plainRule(rule) && plainName(name) {
			if want := oracleDenies(rule, name); denied != want {
				t.Fatalf("deny %q, %q: %v, oracle says %v", rule, name, denied, want)
			}
		}
		if !denied {
			return
		}
		// A wildcard counts characters, and beyond ASCII the spellings differ in how many they
		// have: é, ß.
		even := utf8.ValidString(name) && (len(name) == utf8.RuneCountInString(name) || !strings.ContainsAny(rule, "*?["))
		for _, other := range respell(name) {
			if clean(other) && even && p.Judge(file(other), guardfs.Read) == nil {
				t.Fatalf("deny %q: %q is denied, and as %q it is not", rule, name, other)
			}
		}
		if below := strings.TrimSuffix(name, "/") + "/x"; p.Judge(file(below), guardfs.Read) == nil {
			t.Fatalf("deny %q: %q is denied, and %q below it is not", rule, name, below)
		}
		if a, err := New(Options{Allow: []string{rule}}); err != nil {
			t.Fatalf("%q can be denied but not allowed: %v", rule, err)
		} else if plainRule(rule) && plainName(name) {
			if got, want := a.Judge(file(name), guardfs.Read) == nil, oracleAllows(rule, name); got != want {
				t.Fatalf("allow %q, %q: %v, oracle says %v", rule, name, got, want)
			}
		}
	})
}

func FuzzJudge(f *testing.F) {
	f.Add("/ws/.env*\n/ws/secrets/**", "/ws/**", "/ws/.data", "/ws/a", "/ws/a", "")
	f.Add("**/*.pem", "", "/home/u/.moltis", "/ws/link/k", "/ws/d/k.PEM", "/ws/link")
	f.Add("/a/*/c", "/a/**\n/b", "/a/b/c/d", "/x/../a/B/c", "/a/b/x", "/a/q/c")
	f.Add("", "/**", "/d", "rel", "pipe:[1]", "/d/x")
	f.Add("/ws/x/**", "/ws/**", "/d", "/out/x/../../ws/a", "/ws/a", "/out/x/..")
	f.Add("/ws/x/**", "/ws/**", "/d", "/out/l", "/ws/x/a", "/out/l")
	f.Add("/p/GIT~1\n/p/.git", "/p/**", "/q", "/p/git~1/x", "/p/.GIT/x", "")
	f.Fuzz(func(t *testing.T, deny, allow, own, spelled, truth, hop string) {
		if len(deny)+len(allow)+len(own)+len(spelled)+len(truth)+len(hop) > 300 {
			return
		}
		lines := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, "\n")
		}
		o := Options{Deny: lines(deny), Allow: lines(allow)}
		if own != "" {
			o.Protected = []Protected{{own, "ours"}}
		}
		p, err := New(o)
		if err != nil {
			return // FuzzRule looks at errors
		}
		object := guardfs.Object{Spelled: spelled, True: truth, Info: guardfs.Info{Kind: guardfs.KindFile, Links: 1}}
		hop, left := strings.CutSuffix(hop, "/..")
		if strings.HasPrefix(hop, "/") {
			object.Hops = []guardfs.Hop{{Name: hop, Left: left}}
		} else {
			hop = ""
		}
		got := ruleOf(p.Judge(object, guardfs.Read))
		if !strings.HasPrefix(truth, "/") {
			if got != rulePseudo {
				t.Fatalf("%q is let through, or for another reason: %q", truth, got)
			}
			return
		}
		if !clean(truth) {
			return // not from the kernel; that it did not panic will do
		}
		absent := object
		absent.Info = guardfs.Info{}
		if other := ruleOf(p.Judge(absent, guardfs.Read)); other != got {
			t.Fatalf("%q when it is there, %q when not", got, other)
		}

		// A listing names an entry exactly where Look is allowed.
		if truth != "/" && spelled == truth && hop == "" {
			dir, name := path.Split(truth)
			dir = strings.TrimSuffix(dir, "/")
			if dir == "" {
				dir = "/"
			}
			v := p.Dir(dir)
			shown := v.All || v.Entry != nil && v.Entry(name, guardfs.KindFile)
			if shown && got != "" && !(v.All && ambiguous(name)) {
				t.Fatalf("%+v\n%q is shown in its directory and refused: %q", o, truth, got)
			}
			if !shown && got == "" && ruleOf(p.Judge(file(dir), guardfs.Look)) == "" {
				t.Fatalf("%+v\n%q is hidden in its directory and allowed", o, truth)
			}
		}
	})
}
