package policy

import (
	"path"
	"strings"
	"testing"

	"moltisfs/internal/guardfs"
)

func dirAt(path string) guardfs.Object {
	return guardfs.Object{Spelled: path, True: path, Info: guardfs.Info{Kind: guardfs.KindDir, Links: 2}}
}

// A directory on the way to something allowed can be walked. Its name is told where a rule has it,
// and not where a wildcard passes.
func TestWays(t *testing.T) {
	for _, c := range []struct {
		allow, deny string
		named       string // may be looked at
		walked      string // may be walked only
		refused     string
	}{
		{allow: "/ws/src/** /ws/*.md", named: "/ /ws /ws/src /ws/src/a", refused: "/home /ws/priv /ws/sub /ws/src2 /wss /WS /ws/SRC/../x"},
		{allow: "/ws/a/b/c.txt", named: "/ /ws /ws/a /ws/a/b /ws/a/b/c.txt", refused: "/ws/a/b/d /ws/b /ws/a/b/c.txt/x"},
		{allow: "/ws/**/*.go", named: "/ /ws", walked: "/ws/pkg /ws/pkg/sub /ws/.git", refused: "/w /home /wsx"},
		{allow: "/ws/*/src/**", named: "/ /ws /ws/a/src /ws/a/src/x", walked: "/ws/a /ws/b", refused: "/ws/a/lib /ws/a/srcs"},
		{allow: "/ws/pkg*/*.go", named: "/ /ws", walked: "/ws/pkg /ws/pkg1", refused: "/ws/lib /ws/pkg/sub"},
		{allow: "**/*.go", named: "/", walked: "/home /home/x"},
		{allow: "/ws/{a,b*}/x/**", named: "/ /ws /ws/a /ws/a/x", walked: "/ws/b /ws/bb", refused: "/ws/c /ws/a/y /ws/bb/y"},
		{allow: "/ws/src/** /ws/*.md", deny: "/ws/src/gen/**", named: "/ws /ws/src", refused: "/ws/src/gen /ws/src/GEN /ws/src/gen/deep"},
		{allow: "/ws/src/**", deny: "/ws/**", named: "/", refused: "/ws /ws/src /ws/src/a"},
		{allow: "/ws/**/*.go", deny: "**/secret", named: "/ws", walked: "/ws/a", refused: "/ws/secret /ws/a/Secret /ws/secret/a"},
		{allow: "/link/src/**", named: "/ /link /real /real/src /link/src", refused: "/real/lib /other"}, // /link leads to /real
	} {
		p := mustNew(t, Options{Allow: strings.Fields(c.allow), Deny: strings.Fields(c.deny), Canonical: linkTo("/link", "/real")})
		check := func(name string, look, walk bool) {
			t.Helper()
			if got := p.Judge(dirAt(name), guardfs.Look) == nil; got != look {
				t.Errorf("allow %q deny %q: to look at %s: %v", c.allow, c.deny, name, got)
			}
			if got := p.Judge(dirAt(name), guardfs.Walk) == nil; got != walk {
				t.Errorf("allow %q deny %q: to walk %s: %v", c.allow, c.deny, name, got)
			}
			if v := p.Dir(name); walk != (v.All || v.Entry != nil) {
				t.Errorf("allow %q deny %q: the verdict on %s: %+v", c.allow, c.deny, name, v)
			}
			if !walk || name == "/" {
				return
			}
			up, base := path.Split(name) // and the directory above shows it just as far
			v := p.Dir(path.Clean(up))
			if v.Entry == nil || v.All {
				return
			}
			if got := v.Entry(base, guardfs.KindDir); got != look {
				t.Errorf("allow %q deny %q: %s shows %s: %v", c.allow, c.deny, up, base, got)
			}
			if !look && !v.Way(base) {
				t.Errorf("allow %q deny %q: %s does not lead on to %s", c.allow, c.deny, up, base)
			}
			if !look && (v.Entry(base, guardfs.KindFile) || v.Entry(base, guardfs.KindSymlink)) {
				t.Errorf("allow %q deny %q: %s shows %s, should it be a file", c.allow, c.deny, up, base)
			}
		}
		for _, name := range strings.Fields(c.named) {
			check(name, true, true)
		}
		for _, name := range strings.Fields(c.walked) {
			check(name, false, true)
		}
		for _, name := range strings.Fields(c.refused) {
			check(name, false, false)
		}
		for _, name := range strings.Fields(c.walked) { // only directories, only to look, only when they are there
			o := dirAt(name)
			for _, a := range []guardfs.Access{guardfs.Read, guardfs.Create, guardfs.Modify, guardfs.Remove} {
				if p.Judge(o, a) == nil {
					t.Errorf("allow %q: %s of %s", c.allow, a, name)
				}
			}
			o.Info.Kind = guardfs.KindAbsent
			if p.Judge(o, guardfs.Walk) == nil || p.Judge(file(name), guardfs.Walk) == nil {
				t.Errorf("allow %q: to walk %s, which is no directory", c.allow, name)
			}
		}
	}
}
