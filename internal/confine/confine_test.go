package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A tree is opened as a whole where nothing in it is closed, and else one by one.
func TestPlans(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"a", "d/b", "d/e/c", "s/k", "x/run", "x/y/z"} {
		path := filepath.Join(dir, f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(dir, "link")), os.Link(filepath.Join(dir, "s/k"), filepath.Join(dir, "d/k2"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		allow, deny string // globs below dir, with blanks
		marked      string // names that may be read only
		options     Options
		want        string
	}{
		{"all", "**", "", "", Options{}, "write ."},
		{"read only", "**", "", "", Options{ReadOnly: true}, "read ."},
		{"a file denied", "**", "d/e/c", "", Options{}, "write a, write d/b, write d/k2, write s, write x, no read d/e/c, frozen ., frozen d, frozen d/e"},
		{"a file denied, weaker", "**", "d/e/c", "", Options{Weaker: true},
			"list ., write a, list d, write d/b, list d/e, write d/k2, write s, write x, no read d/e/c, frozen ., frozen d, frozen d/e"},
		{"a directory denied, and a second name in it", "**", "s/**", "", Options{},
			"write a, write d/b, write d/e, write x, no read d/k2, no read s, frozen ., frozen d"},
		{"read only, denied", "**", "s/** d/k2", "", Options{ReadOnly: true}, "read a, read d/b, read d/e, read x, no read d/k2, no read s"},
		{"a pattern", "**", "**/q", "", Options{Patterns: []string{"**/q"}}, "write ., unheld **/q"},
		{"a pattern, read only", "**", "**/q", "", Options{Patterns: []string{"**/q"}, ReadOnly: true}, "read ."},
		{"not to be written", "**", "", "x/run", Options{}, "read ., write a, write d, write s, read x, read x/run, write x/y, no write x/run, frozen ., frozen x, unheld marked"},
		{"a narrow list", "d/e/** a", "", "", Options{}, "write a, write d/e, no read d/b, no read d/k2, no read s, no read x, frozen ., frozen d"},
		{"missing", "**", "", "", Options{Roots: []string{"nowhere"}}, ""},
	} {
		globs := func(list string) (out []string) {
			for _, g := range strings.Fields(list) {
				if out = append(out, dir+"/"+g); strings.HasPrefix(g, "**/") {
					out[len(out)-1] = g
				}
			}
			return out
		}
		free, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
		if err != nil {
			t.Fatal(err)
		}
		defer free.Close()
		o := c.options
		o.Judge, err = policy.New(policy.Options{Allow: globs(c.allow), Deny: globs(c.deny), Canonical: free.Canonical,
			Identify: policy.Identify(free), Census: policy.Census(free)})
		if err != nil {
			t.Fatal(err)
		}
		if c.marked != "" {
			o.Asked, o.Patterns = func(p string) bool { return p == dir+"/"+c.marked }, []string{"marked"}
		}
		if o.Roots == nil {
			o.Roots = []string{"."}
		}
		for i, root := range o.Roots {
			o.Roots[i] = filepath.Join(dir, root)
		}
		p, err := Make(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		say := func(what, path string) {
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
				got = append(got, what+" "+rel)
			}
		}
		slices.SortFunc(p.Rules, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
		names := []string{"", "list", "read", "write", "device"}
		for _, r := range p.Rules {
			say(names[r.Right], r.Path)
		}
		for _, r := range p.Shut {
			if filepath.Dir(r.Path) != filepath.Dir(dir) { // the top itself, under a narrow list
				say("no "+names[r.Right], r.Path)
			}
		}
		slices.Sort(p.Frozen)
		for _, d := range p.Frozen {
			say("frozen", d)
		}
		for _, u := range p.Unheld {
			got = append(got, "unheld "+u)
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s:\n%s; want\n%s", c.name, got, c.want)
		}
	}
	if _, err := Make(t.Context(), Options{Roots: []string{dir}, Judge: policy.AllowAll{}, Budget: 3}); !errors.Is(err, ErrTooMany) {
		t.Errorf("too many names: %v", err)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		abi     int
		network bool
		want    int
	}{{0, true, 1}, {1, false, 4}, {2, false, 3}, {3, false, 2}, {3, true, 1}, {5, false, 1}, {6, false, 0}, {7, true, 0}} {
		if got := Missing(c.abi, c.network); len(got) != c.want {
			t.Errorf("%+v: %v", c, fmt.Sprint(got))
		}
	}
}
