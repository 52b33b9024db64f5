package policy

import (
	"path"
	"strings"
	"testing"
)

func TestPathsAreNamedAsADenyListIs(t *testing.T) {
	follow := linkTo("/ws/current", "/ws/rel7")
	for _, c := range []struct{ globs, yes, no string }{
		{".env", "/.env /ws/.env /ws/.env/x", "/ws/.envx /ws/.ENV"},
		{"**/.env", "/.env /ws/.env /ws/.env/x", "/ws/x.env"},
		{"secrets", "/ws/secrets/a/b /secrets", "/ws/secretsx/a"},
		{"**/secrets", "/ws/secrets/a/b /secrets", "/ws/secretsx/a"},
		{"/ws/secrets", "/ws/secrets /ws/secrets/a/b", "/ws /ws/x"},
		{"/ws/current/.env", "/ws/rel7/.env /ws/current/.env", "/ws/rel8/.env /ws/rel7/x"},
		{"/ws/current/**", "/ws/rel7/a /ws/rel7 /ws/current/a", "/ws/rel8/a /ws"},
		{"/ws/{current,b}/*.pem", "/ws/rel7/a.pem /ws/b/a.pem", "/ws/rel7/a"},
		{"[id] /ws/back{up}/**", "/ws/[id]/a /i /ws/back{up}/x /ws/backup", "/ws/id /ws/back"},
		{"*.pem /a/b", "/x/k.pem /a/b/c", "/a/c"},
	} {
		p, err := NewPaths(strings.Fields(c.globs), follow)
		must(t, err)
		for _, name := range strings.Fields(c.yes) {
			if !p.Covers(name) {
				t.Errorf("%s does not cover %s", c.globs, name)
			}
		}
		for _, name := range append(strings.Fields(c.no), "", "relative/.env") {
			if p.Covers(name) {
				t.Errorf("%s covers %s", c.globs, name)
			}
		}
	}
	for _, bad := range []string{"", "a/b", "/a/../b", "~/x", "/["} {
		if _, err := NewPaths([]string{bad}, follow); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// A link that leads elsewhere by now: what is there is named too, and what was there stays it. So
// does a file whose name is a link by now.
func TestPathsFollowLinksAnew(t *testing.T) {
	to := "/rel7"
	p, err := NewPaths([]string{"/current/.env"}, func(name string) string {
		name = path.Clean(linkTo("/current", to)(name))
		return linkTo("/rel9/.env", "/vault/env")(name)
	})
	must(t, err)
	to = "/rel8"
	if p.Covers("/rel8/.env") {
		t.Error("it has not looked yet")
	}
	p.Follow()
	to = "/rel9"
	p.Follow()
	for _, name := range []string{"/current/.env", "/rel7/.env", "/rel8/.env", "/rel9/.env", "/vault/env"} {
		if !p.Covers(name) {
			t.Errorf("%s is not covered", name)
		}
	}
	if p.Covers("/rel9/env") {
		t.Error("too much")
	}
}
