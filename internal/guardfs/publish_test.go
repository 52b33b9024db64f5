package guardfs

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// An object of any kind comes in, goes out, and comes back as the same object, also where the temporary name is in
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
				at, err := f.EntryLink(dir + "/x")
				must(t, err)
				defer at.Close()
				p, err := f.EntryLink(dir + "/x/f")
				must(t, err)
				defer p.Close()
				out := Precondition{}
				if i := p.Object().Info; i.Kind != KindAbsent {
					out = Precondition{i.ID, &Before{Exists: true, Info: i}}
				}
				h, made, err := at.Stage(t.Context(), TempName(someTag, 2), c.new)
				must(t, err)
				defer h.Close()
				staged := snapshot(t, dir)
				if c.new.Sync = true; c.new.Kind != KindAbsent {
					must(t, h.Sync())
				}
				pub, err := p.Publish(t.Context(), h, out, made.Precondition())
				must(t, err)
				if i := pub.Info; i.Kind != c.new.Kind || i.ID != made.Info.ID || c.new.Meta != nil && i.Mode != c.new.Meta.Mode {
					t.Errorf("came in: %+v", i)
				}
				if _, err := p.Publish(t.Context(), h, Precondition{Identity{1, 2, 3}, nil}, pub.Displaced); outcome(err) != "conflict" {
					t.Errorf("another object expected: %v", err)
				}
				back, err := p.Publish(t.Context(), h, made.Precondition(), pub.Displaced)
				must(t, err)
				if now := snapshot(t, dir); now != staged && !(name == "file over file" || name == "file over link") || back.Info.ID != out.ID {
					t.Errorf("after all that\n%s%v", now, back.Info)
				}
				must(t, h.Drop(made.Precondition()))
				if now := snapshot(t, dir); now != was {
					t.Errorf("in the end\n%s", now)
				}
			})
		}
	})
}

// inSteps makes a change of ws/f, from old to new, where names can't trade in one step, and, with links false, where there are no links
// either. do is asked before each call that changes a name, with its number.
func inSteps(t *testing.T, links bool, do func(ws string, n int) *Fault) (ws, hold string, calls int, err error) {
	t.Helper()
	ws = ramdisk(t) + "/ws"
	lay(t, ws, "f = old")
	armed, exchange := false, false
	var f *FS
	f, err = New(Options{Judge: &fence{root: ws}, Fault: func(op string) *Fault {
		switch {
		case !armed || op != "rename" && op != "link" && op != "unlink":
			return nil
		case op == "rename" && !exchange && f.Containment() != "best_effort":
			exchange = true
			return &Fault{Err: syscall.EINVAL}
		case op == "link" && !links:
			return &Fault{Err: syscall.EPERM}
		}
		calls++
		return do(ws, calls)
	}})
	must(t, err)
	defer f.Close()
	p, err := f.Entry(ws + "/f")
	must(t, err)
	defer p.Close()
	before, err := p.Load(-1)
	must(t, err)
	h, made, err := p.Stage(t.Context(), TempName(someTag, 1), NewObject{Kind: KindFile, Content: []byte("new")})
	must(t, err)
	defer h.Close()
	armed = true
	_, err = p.Publish(t.Context(), h, Found(before), made.Precondition())
	armed = false
	return ws, h.Base(), calls, err
}

// A process that dies within a change in steps leaves the old file at its name or at the hold, and where there are links its name has the old or
// the new one at any time. The name becomes the one or the other.
func TestKilledWhereNamesCannotTrade(t *testing.T) {
	for _, links := range []bool{true, false} {
		for n := 1; ; n++ {
			ws, _, calls, err := inSteps(t, links, func(_ string, call int) *Fault {
				if call >= n {
					return &Fault{Err: syscall.EIO}
				}
				return nil
			})
			left := snapshot(t, ws)
			if now := content(ws + "/f"); links && now != "old" && now != "new" {
				t.Errorf("links %v, killed before call %d: the name has %q\n%s", links, n, now, left)
			}
			f := open(t, &fence{root: ws})
			p, perr := f.EntryLink(ws + "/f")
			must(t, perr)
			temp := TempName(someTag, 1)
			h, perr := p.Temp(OldName(temp))
			must(t, perr)
			must(t, p.DropLink(h))
			if all := snapshot(t, ws); strings.Count(all, `"old"`) != 1 {
				t.Errorf("links %v, killed before call %d: was\n%sis\n%s", links, n, left, all)
			}
			if p.Object().Info.Kind == KindAbsent {
				_, perr = p.Publish(t.Context(), h, Precondition{}, Precondition{ID: h.Object().Info.ID})
				must(t, perr)
			}
			for _, name := range []string{temp, OldName(temp)} {
				left, err := p.Temp(name)
				must(t, err)
				must(t, errors.Join(left.Drop(Precondition{ID: left.Object().Info.ID}), left.Close()))
			}
			must(t, errors.Join(h.Close(), p.Close()))
			if now := content(ws + "/f"); litter(t, ws) != nil || now != "old" && now != "new" {
				t.Errorf("links %v, killed before call %d: in the end %q, %v", links, n, now, litter(t, ws))
			}
			if calls < n {
				must(t, err)
				break
			}
		}
	}
}

// Another writer comes before each call of a change in steps. A text that he writes into the file is never lost; a file that he renames over it is
// lost in one place only, between the last look and the rename. After a conflict it is at the name, or at the hold to be put back.
func TestOthersWhereNamesCannotTrade(t *testing.T) {
	for _, links := range []bool{true, false} {
		for _, inPlace := range []bool{true, false} {
			lost := 0
			for n := 1; ; n++ {
				acted := false
				ws, hold, calls, err := inSteps(t, links, func(ws string, call int) *Fault {
					if call != n || content(ws+"/f") != "old" {
						return nil
					}
					acted = true
					name := ws + "/f"
					if !inPlace {
						name = ws + "/theirs"
					}
					must(t, errors.Join(os.WriteFile(name, []byte("their text"), 0o644), os.Rename(name, ws+"/f")))
					return nil
				})
				if calls < n {
					must(t, err)
					break
				}
				switch now := content(ws + "/f"); {
				case !acted && now == "new" && err == nil:
				case acted && (now == "their text" || content(ws+"/"+hold) == "their text") && outcome(err) == "conflict":
				case acted && now == "new" && err == nil && !inPlace:
					lost++
				default:
					t.Errorf("links %v, in place %v, before call %d: %v\n%s", links, inPlace, n, err, snapshot(t, ws))
				}
			}
			if inSight := !inPlace && links; inSight && lost != 1 || !inSight && lost > 0 {
				t.Errorf("links %v, in place %v: %d of their files are lost", links, inPlace, lost)
			}
		}
	}
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
		from, err := f.EntryLink(b + "/a")
		must(t, err)
		defer from.Close()
		out := Precondition{ID: from.Object().Info.ID}
		for name, want := range map[string]string{"taken": "conflict", "d": "conflict"} {
			to, err := f.EntryLink(b + "/" + name)
			must(t, err)
			if _, err := from.Publish(t.Context(), to, out, Precondition{}); outcome(err) != want {
				t.Errorf("%s: %v", name, err)
			}
			to.Close()
		}
		if _, err := f.EntryLink(b + "/deny/x"); outcome(err) != "denied" {
			t.Error(err)
		}
		h, made, err := from.Stage(t.Context(), TempName(someTag, 1), NewObject{})
		must(t, err)
		defer h.Close()
		if _, err := from.Publish(t.Context(), h, Precondition{}, made.Precondition()); err == nil {
			t.Error("nothing for nothing")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := from.Publish(ctx, h, out, Precondition{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if now := snapshot(t, b); now != was {
			t.Errorf("now\n%s", now)
		}
		// A file put into a directory while that has its temporary name keeps it from going.
		d, err := f.EntryLink(b + "/d")
		must(t, err)
		defer d.Close()
		h2, _, err := d.Stage(t.Context(), TempName(someTag, 2), NewObject{})
		must(t, err)
		defer h2.Close()
		pub, err := d.Publish(t.Context(), h2, Precondition{ID: d.Object().Info.ID}, Precondition{})
		must(t, err)
		must(t, os.WriteFile(b+"/"+h2.Base()+"/theirs", nil, 0o644))
		if h2.Drop(pub.Displaced) == nil {
			t.Error("a directory that is not empty is gone")
		}
		_, err = d.Publish(t.Context(), h2, Precondition{}, pub.Displaced)
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
		for _, c := range []struct{ path, dir, base, name string }{
			{"/d/b/c", "/d/b", "c", "/d/b/c"},
			{"/x", "", "x", "/x"},
			{"/x/y/z", "", "x", "/x/y/z"},
			{"/l/x/y", "/d", "x", "/d/x/y"},
			{"/f/x", "notdir", "", ""},
			{"/deny/x/y", "denied", "", ""},
		} {
			at, name, err := f.NearestEntry(b + c.path)
			if err != nil {
				if outcome(err) != c.dir {
					t.Errorf("%s: %v", c.path, err)
				}
				continue
			}
			if at.ParentTrue() != b+c.dir || at.Base() != c.base || name != b+c.name {
				t.Errorf("%s: %s in %s, name %s", c.path, at.Base(), at.ParentTrue(), name)
			}
			at.Close()
		}
	})
}

func TestTempNames(t *testing.T) {
	temp := TempName(someTag, 12)
	for _, name := range []string{temp, OldName(temp), NewName(temp)} {
		if tag, ok := ParseTemp(name); !ok || tag != someTag || !Reserved(name) || !Temporary(name) {
			t.Errorf("%s: %s %v", name, tag, ok)
		}
	}
	for _, name := range []string{".moltis-notes.tmp", ".moltis-" + someTag + "-.tmp", ".moltis-" + someTag + "-01.tmp",
		".moltis-" + someTag + "-1-x.tmp", ".moltis-" + someTag + ".tmp", ".moltis-" + someTag + "-1.kept", ".moltis-" + someTag + "--1.old"} {
		if _, ok := ParseTemp(name); ok {
			t.Errorf("%s is taken for a temporary name", name)
		}
	}
}
