package guardfs

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// Whatever kind: it comes in, goes out, and comes back as the same object, also where the hold is in
// a directory above.
func TestSwapThereAndBack(t *testing.T) {
	b := base(t)
	roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
		noLeak(t)
		dir := b + "/" + f.Containment()
		for name, c := range map[string]struct {
			old []string // at x/f
			new NewObject
		}{
			"file over file":    {[]string{"x/f = old", "x/g <= x/f"}, NewObject{Kind: KindFile, Content: []byte("new")}},
			"file":              {nil, NewObject{Kind: KindFile, Content: []byte("new")}},
			"directory":         {nil, NewObject{Kind: KindDir, Meta: &Metadata{Mode: 0o750, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}}},
			"link":              {nil, NewObject{Kind: KindSymlink, Content: []byte("away")}},
			"file over link":    {[]string{"x/f => away"}, NewObject{Kind: KindFile, Content: []byte("new")}},
			"removal":           {[]string{"x/f = old"}, NewObject{}},
			"removal of a tree": {[]string{"x/f/sub/g = old"}, NewObject{}},
		} {
			t.Run(name, func(t *testing.T) {
				defer os.RemoveAll(dir)
				lay(t, dir, append(c.old, "x/")...)
				was := snapshot(t, dir)
				at, err := f.PlaceLink(dir + "/x")
				must(t, err)
				defer at.Close()
				p, err := f.PlaceLink(dir + "/x/f")
				must(t, err)
				defer p.Close()
				out := Expect{}
				if i := p.Object().Info; i.Kind != KindAbsent {
					out = Expect{i.ID, &Before{Exists: true, Info: i}}
				}
				h, made, err := at.Hold(t.Context(), someTag, 2, c.new)
				must(t, err)
				defer h.Close()
				staged := snapshot(t, dir)
				if c.new.Sync = true; c.new.Kind != KindAbsent {
					must(t, h.Sync())
				}
				pub, err := p.Swap(t.Context(), h, out, made.Expect())
				must(t, err)
				if i := pub.Info; i.Kind != c.new.Kind || i.ID != made.Info.ID || c.new.Meta != nil && i.Mode != c.new.Meta.Mode {
					t.Errorf("came in: %+v", i)
				}
				if _, err := p.Swap(t.Context(), h, Expect{Identity{1, 2, 3}, nil}, pub.Displaced); outcome(err) != "conflict" {
					t.Errorf("another object expected: %v", err)
				}
				back, err := p.Swap(t.Context(), h, made.Expect(), pub.Displaced)
				must(t, err)
				if now := snapshot(t, dir); now != staged || back.Info.ID != out.ID {
					t.Errorf("after all that\n%s%v", now, back.Info)
				}
				must(t, h.Drop(made.Expect()))
				if now := snapshot(t, dir); now != was {
					t.Errorf("in the end\n%s", now)
				}
			})
		}
	})
}

// Where names trade in several steps a process can die between any two of them. What it left becomes
// what was before the trade or what is after it, whichever was nearer, and nothing has two names.
func TestEndSwap(t *testing.T) {
	b := base(t)
	hold := HoldName(someTag, 1, "")
	expand := strings.NewReplacer("hold", hold, "second", secondOf(hold)).Replace
	before, after := "f = old, hold = new", "f = new, hold = old"
	roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
		noLeak(t)
		for left, want := range map[string]string{
			before: before, after: after,
			"f = old, second <= f, hold = new":      before,
			"hold = new, second = old":              before, // where there are no links
			"f = old, second <= f":                  "f = old",
			"second = old":                          "hold = old",
			"f = new, second = old":                 after,
			"f = new, second = old, hold <= second": after,
			"f = new, hold <= f":                    "f = new",
			"f = old, hold <= f":                    "f = old",
			"f = old":                               "f = old",
			"hold = new":                            "hold = new",
			"f = theirs, hold = new, second = old":  "f = theirs, hold = new, second = old",
		} {
			dir := b + "/" + f.Containment()
			lay(t, dir, strings.Split(expand(want), ", ")...)
			want = snapshot(t, dir)
			must(t, os.RemoveAll(dir))
			lay(t, dir, strings.Split(expand(left), ", ")...)
			p, err := f.PlaceLink(dir + "/f")
			must(t, err)
			h, err := p.Held(hold)
			must(t, err)
			must(t, p.EndSwap(h))
			if now := snapshot(t, dir); now != want {
				t.Errorf("of %s came\n%s", left, now)
			}
			must(t, errors.Join(h.Close(), p.Close(), os.RemoveAll(dir)))
		}
	})
}

// Two names trade nothing where one is refused, taken, or not as expected; and no call makes
// something out of nothing.
func TestSwapRefusals(t *testing.T) {
	b := base(t)
	roads(t, &fence{root: b, deny: []string{b + "/deny"}}, func(t *testing.T, f *FS) {
		noLeak(t)
		lay(t, b, "a = a", "d/", "taken = t", "deny/")
		defer func() { must(t, os.Remove(b+"/d")) }()
		was := snapshot(t, b)
		from, err := f.PlaceLink(b + "/a")
		must(t, err)
		defer from.Close()
		out := Expect{ID: from.Object().Info.ID}
		for name, want := range map[string]string{"taken": "conflict", "d": "conflict"} {
			to, err := f.PlaceLink(b + "/" + name)
			must(t, err)
			if _, err := from.Swap(t.Context(), to, out, Expect{}); outcome(err) != want {
				t.Errorf("%s: %v", name, err)
			}
			to.Close()
		}
		if _, err := f.PlaceLink(b + "/deny/x"); outcome(err) != "denied" {
			t.Error(err)
		}
		h, made, err := from.Hold(t.Context(), someTag, 1, NewObject{})
		must(t, err)
		defer h.Close()
		if _, err := from.Swap(t.Context(), h, Expect{}, made.Expect()); err == nil {
			t.Error("nothing for nothing")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := from.Swap(ctx, h, out, Expect{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if now := snapshot(t, b); now != was {
			t.Errorf("now\n%s", now)
		}
		// What is put into a directory while it has its hold's name keeps it from going.
		d, err := f.PlaceLink(b + "/d")
		must(t, err)
		defer d.Close()
		h2, _, err := d.Hold(t.Context(), someTag, 2, NewObject{})
		must(t, err)
		defer h2.Close()
		pub, err := d.Swap(t.Context(), h2, Expect{ID: d.Object().Info.ID}, Expect{})
		must(t, err)
		must(t, os.WriteFile(b+"/"+h2.Base()+"/theirs", nil, 0o644))
		if h2.Drop(pub.Displaced) == nil {
			t.Error("a directory that is not empty is gone")
		}
		_, err = d.Swap(t.Context(), h2, Expect{}, pub.Displaced)
		must(t, err)
		must(t, os.Remove(b+"/d/theirs"))
	})
}

// A directory that is missing, or goes and comes anew, is listed; the place is at what stays.
func TestForesee(t *testing.T) {
	b := base(t)
	lay(t, b, "d/b/c = c", "f = f", "l => d", "deny/")
	j := &fence{root: b, deny: []string{b + "/deny"}}
	roads(t, j, func(t *testing.T, f *FS) {
		noLeak(t)
		for _, c := range []struct{ path, gone, dir, missing, name string }{
			{"/d/b/c", "", "/d/b", "", "/d/b/c"},
			{"/x", "", "", "", "/x"},
			{"/x/y/z", "", "", "/x /x/y", "/x/y/z"},
			{"/l/x/y", "", "/d", "/d/x", "/d/x/y"},
			{"/d/b/new", "/d", "", "/d /d/b", "/d/b/new"},
			{"/d/b/x/new", "/d/b", "/d", "/d/b /d/b/x", "/d/b/x/new"},
			{"/f/x", "/f", "", "/f", "/f/x"},
			{"/f/x/y", "/f", "", "/f /f/x", "/f/x/y"},
			{"/f/x", "", "notdir", "", ""},
			{"/deny/x/y", "", "denied", "", ""},
		} {
			gone := func(name string) bool { return c.gone != "" && below(name, b+c.gone) }
			at, missing, name, err := f.Foresee(b+c.path, gone)
			if err != nil {
				if outcome(err) != c.dir {
					t.Errorf("%s: %v", c.path, err)
				}
				continue
			}
			if got := strings.ReplaceAll(strings.Join(missing, " "), b, ""); at.ParentTrue() != b+c.dir || got != c.missing || name != b+c.name {
				t.Errorf("%s: at %s, missing %q, name %s", c.path, at.ParentTrue(), got, name)
			}
			at.Close()
		}
	})
}

func TestHoldNames(t *testing.T) {
	for _, process := range []string{"", strings.Repeat("f", TagLen)} {
		name := HoldName(someTag, 12, process)
		if tag, p, ok := ParseHold(name); !ok || tag != someTag || p != process || !Reserved(name) || !Temporary(name) {
			t.Errorf("%s: %s %s %v", name, tag, p, ok)
		}
	}
	for _, name := range []string{".moltis-notes.tmp", ".moltis-" + someTag + "-.tmp", ".moltis-" + someTag + "-01.tmp",
		".moltis-" + someTag + "-1-x.tmp", ".moltis-" + someTag + ".tmp", compose(someTag), ".moltis-" + someTag + "-1.kept"} {
		if _, _, ok := ParseHold(name); ok {
			t.Errorf("%s is taken for a hold", name)
		}
	}
}
