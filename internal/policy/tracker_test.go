package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/guardfs"
)

// A rule holds wherever the links in its literal beginning lead, or have led since the start.
func TestRulesFollowLinks(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	links := map[string]string{}
	asked := 0
	d := &disk{files: map[string]uint64{"/ws/real/k": 7, "/ws/other": 7}}
	p := mustNew(t, Options{
		Allow: []string{"/ws/**"}, Deny: []string{"/ws/late/**", "/ws/l/*/f?.pem", "**/*.key"}, Protected: []Protected{{"/ws/own", "ours"}},
		Canonical: func(path string) string {
			asked++
			for from, to := range links {
				path = linkTo(from, to)(path)
			}
			return path
		},
		Census: d.census, now: func() time.Time { return now },
	})
	was := p.Dir("/ws/x")
	expect := func(path, want string) {
		t.Helper()
		if got := ruleOf(p.Judge(file(path), guardfs.Read)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		dir, name := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/')+1:]
		if v := p.Dir(dir); (v.All || v.Entry != nil && v.Entry(name, guardfs.KindFile)) != (want == "") {
			t.Errorf("%s: the verdict on its directory differs", path)
		}
	}
	free := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			expect(path, "")
		}
	}
	linked := file("/ws/other")
	linked.Info.Links, linked.Info.ID = 2, guardfs.Identity{Dev: 1, Ino: 7}
	free("/ws/real/k", "/ws/REAL", "/ws/m/d/f1.pem", "/ws/o/x", "/ws/x/k")
	must(t, p.Judge(linked, guardfs.Read))
	before := asked
	free("/ws/real/k")
	if asked != before {
		t.Error("links are followed for every path")
	}

	links["/ws/late"], links["/ws/l"], links["/ws/own"] = "/ws/real", "/ws/m", "/ws/o"
	now = now.Add(linkCheckInterval)
	expect("/ws/real/k", ruleDeny)
	expect("/ws/Real/deep/k", ruleDeny)
	expect("/ws/late/k", ruleDeny)
	expect("/ws/m/d/f1.PEM", ruleDeny)
	expect("/ws/o/x", ruleProtected)
	free("/ws/m/d/f1.txt", "/ws/x/k")
	if err := p.Judge(linked, guardfs.Read); err == nil {
		t.Error("a hard link of what is denied since the link was made is let through")
	}
	if was.Entry == nil || !was.Entry("k", guardfs.KindFile) {
		t.Error("a verdict that was given has changed")
	}

	links["/ws/late"] = "/ws/next"
	delete(links, "/ws/l")
	now = now.Add(linkCheckInterval)
	expect("/ws/next/k", ruleDeny)
	expect("/ws/real/k", ruleDeny) // where it led before
	expect("/ws/m/d/f1.pem", ruleDeny)

	for i := range maxFollowed + 2 {
		links["/ws/late"] = fmt.Sprintf("/ws/to%d", i)
		now = now.Add(linkCheckInterval)
		p.Dir("/ws")
	}
	var no *Denied
	if err := p.Judge(file("/ws/x/k"), guardfs.Read); !errors.As(err, &no) || no.Why == "" {
		t.Errorf("links that led to more places than are held: %v", err)
	}
	if v := p.Dir("/ws/x"); v.All || v.Entry != nil {
		t.Error("and directories are shown")
	}
}

// Slow looks, as on a server far away, are rarer.
func TestSlowLinksAreFollowedSeldom(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	asked := 0
	p := mustNew(t, Options{
		Deny: []string{"/far/**"}, now: func() time.Time { return now },
		Canonical: func(path string) string { asked++; now = now.Add(time.Second); return path },
	})
	for range 100 {
		now = now.Add(time.Second)
		p.Dir("/ws")
	}
	if asked > 4 {
		t.Errorf("a look of a second was taken %d times in two minutes", asked)
	}
}
