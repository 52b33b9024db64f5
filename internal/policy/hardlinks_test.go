package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/guardfs"
)

// disk is a tree of names with inode numbers, for Options.Census and Options.Identify.
type disk struct {
	files  map[string]uint64
	err    error
	walked int
}

func (d *disk) identify(path string) (guardfs.Identity, bool) {
	ino, ok := d.files[path]
	return guardfs.Identity{Dev: 1, Ino: ino}, ok
}

func (d *disk) census(root string, visit func(string, guardfs.Kind, guardfs.Identity) error) error {
	d.walked++
	if d.err != nil {
		return d.err
	}
	if err := visit(root, guardfs.KindDir, guardfs.Identity{Dev: 1}); err != nil {
		if err == fs.SkipDir {
			return nil
		}
		return err
	}
	for name, ino := range d.files {
		if strings.HasPrefix(name, strings.TrimSuffix(root, "/")+"/") || name == root {
			if err := visit(name, guardfs.KindFile, guardfs.Identity{Dev: 1, Ino: ino}); err != nil && err != fs.SkipDir {
				return err
			}
		}
	}
	return nil
}

// A rule's own letters hold by identity, by hard links and by where links lead, as its signs do.
func TestLettersHoldByIdentity(t *testing.T) {
	d := &disk{files: map[string]uint64{"/ws/[id]/key": 7, "/ws/[id]": 8, "/out/k": 9}}
	p := mustNew(t, Options{Deny: []string{"/ws/[id]/**", "/ws/{link}/**"}, Identify: d.identify, Census: d.census,
		Canonical: linkTo("/ws/{link}", "/out")})
	for name, ino := range map[string]uint64{"/ws/a": 7, "/mnt/d": 8, "/out/k": 9} {
		o := file(name)
		o.Info.ID, o.Info.Links = guardfs.Identity{Dev: 1, Ino: ino}, 2
		if got := ruleOf(p.Judge(o, guardfs.Read)); got != ruleDeny {
			t.Errorf("%s: %q", name, got)
		}
	}
	if v := p.Dir("/ws"); v.All || shows(v, "[id]") || shows(v, "{link}") || !shows(v, "id") {
		t.Error("the listing of its directory")
	}
}

func TestHardLinks(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	d := &disk{files: map[string]uint64{"/ws/secret/key": 7, "/ws/a": 7, "/ws/b": 8, "/ws/c": 8, "/else/x.pem": 9, "/ws/p": 9}}
	var troubles []error
	o := Options{
		Deny: []string{"/ws/secret/**"}, Identify: d.identify, Census: d.census, Budget: 4,
		CensusFailed: func(err error) { troubles = append(troubles, err) },
		now:          func() time.Time { return now },
	}
	linked := func(path string, ino uint64, changed time.Time) guardfs.Object {
		return guardfs.Object{Spelled: path, True: path, Info: guardfs.Info{
			Kind: guardfs.KindFile, Links: 2, ID: guardfs.Identity{Dev: 1, Ino: ino, Birth: int64(ino)}, ChangeTime: changed}}
	}
	old := now.Add(-time.Hour)
	p := mustNew(t, o)
	judge := func(why string, object guardfs.Object, refused bool, walks int) {
		t.Helper()
		before := d.walked
		if err := p.Judge(object, guardfs.Read); (err != nil) != refused {
			t.Errorf("%s: %v", why, err)
		}
		if got := d.walked - before; got != walks {
			t.Errorf("%s: walked %d times, want %d", why, got, walks)
		}
	}
	judge("one of its names is denied", linked("/ws/a", 7, old), true, 1)
	judge("none is", linked("/ws/b", 8, old), false, 0)
	judge("a single name needs no census", file("/ws/q"), false, 0)

	now = now.Add(deniedTTL / 2)
	judge("linked since the census", linked("/ws/b", 8, now), false, 1)
	d.files["/ws/secret/b"] = 8
	now = now.Add(clockMargin / 2)
	judge("linked since, to a denied name", linked("/ws/b", 8, now), true, 1)
	delete(d.files, "/ws/secret/b")
	now = now.Add(deniedTTL + time.Second)
	judge("old knowledge is looked up again", linked("/ws/b", 8, old), false, 1)
	now = now.Add(-time.Hour)
	judge("so is that of the future", linked("/ws/b", 8, old.Add(-time.Hour)), false, 1)

	now = now.Add(2 * deniedTTL)
	d.err = errors.New("can't be read")
	judge("what is denied can't be told", linked("/ws/b", 8, old), true, 1)
	if len(troubles) != 1 || !errors.Is(troubles[0], d.err) {
		t.Errorf("the operator is told %v", troubles)
	}
	d.err = nil
	judge("a failed census is not tried for each file", linked("/ws/b", 8, old), true, 0)
	now = now.Add(2 * deniedTTL)
	judge("but again after a while", linked("/ws/b", 8, old), false, 1)

	for i := range o.Budget {
		d.files[fmt.Sprintf("/ws/secret/%d", i)] = uint64(100 + i)
	}
	now = now.Add(2 * deniedTTL)
	judge("too many to count", linked("/ws/b", 8, old), true, 1)
	if last := troubles[len(troubles)-1]; !errors.Is(last, errBudget) {
		t.Errorf("the operator is told %v", last)
	}

	o.Census = nil
	p = mustNew(t, o)
	judge("nobody to look", linked("/ws/b", 8, old), true, 0)
	p = mustNew(t, Options{Allow: []string{"/ws/**"}})
	judge("nothing is denied", linked("/ws/b", 8, old), false, 0)
	p = mustNew(t, Options{Protected: []Protected{{"/ws/secret", "ours"}}, Census: d.census})
	judge("a link to what is ours", linked("/ws/a", 7, old), true, 1)
	// A rule for any depth is counted where the agent may go.
	d.files["/ws/x.pem"] = 9
	p = mustNew(t, Options{Allow: []string{"/ws/**"}, Deny: []string{"**/*.pem"}, Census: d.census})
	judge("a name at any depth", linked("/ws/p", 9, old), true, 1)
	judge("not outside", linked("/ws/b", 8, old), false, 0)
}

// TestIdentity: a file that a rule names literally is denied under any name: a bind mount looks like this.
func TestIdentity(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	d := &disk{files: map[string]uint64{"/ws/secret": 5, "/data": 6}}
	p := mustNew(t, Options{
		Deny: []string{"/ws/secret/**", "/ws/later"}, Protected: []Protected{{"/data", "ours"}},
		Identify: d.identify, now: func() time.Time { return now },
	})
	seen := func(ino uint64) string {
		return ruleOf(p.Judge(guardfs.Object{Spelled: "/mnt/x", True: "/mnt/x", Info: guardfs.Info{
			Kind: guardfs.KindDir, Links: 1, ID: guardfs.Identity{Dev: 1, Ino: ino}}}, guardfs.Look))
	}
	for ino, want := range map[uint64]string{5: ruleDeny, 6: ruleProtected, 7: ""} {
		if got := seen(ino); got != want {
			t.Errorf("inode %d under another name: %q, want %q", ino, got, want)
		}
	}
	d.files["/ws/later"] = 7
	now = now.Add(inodesTTL + time.Millisecond)
	if got := seen(7); got != ruleDeny {
		t.Errorf("what came to a denied name later: %q", got)
	}
}

// A tree on the real file system, through the real looks.
func TestLooks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: rules are for paths with slashes")
	}
	root := guardfs.Canonical(t.TempDir())
	for _, dir := range []string{"secret/deep", "ws/sub", "else"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, f := range []string{"secret/deep/key", "ws/plain", "ws/pair", "else/other"} {
		must(t, os.WriteFile(filepath.Join(root, f), []byte(f), 0o644))
	}
	must(t, os.Link(root+"/secret/deep/key", root+"/ws/innocent"))
	must(t, os.Link(root+"/ws/pair", root+"/ws/sub/twin"))
	must(t, os.Symlink(root+"/else", root+"/secret/elsewhere")) // not followed
	must(t, os.Link(root+"/else/other", root+"/ws/other"))

	free, err := guardfs.New(guardfs.Options{Judge: AllowAll{}})
	must(t, err)
	defer free.Close()
	open := func(o Options) *guardfs.FS {
		t.Helper()
		o.Canonical, o.Identify, o.Census = guardfs.Canonical, Identify(free), Census(free)
		f, err := guardfs.New(guardfs.Options{Judge: mustNew(t, o)})
		must(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	read := func(f *guardfs.FS, path string) error {
		h, err := f.Resolve(root+path, guardfs.Read)
		if err != nil {
			return err
		}
		return h.Close()
	}
	f := open(Options{Deny: []string{root + "/secret/**"}})
	for path, refused := range map[string]bool{
		"/ws/plain": false, "/ws/pair": false, "/ws/sub/twin": false, "/ws/other": false,
		"/ws/innocent": true, "/secret/deep/key": true, "/secret": true,
	} {
		if err := read(f, path); (err != nil) != refused {
			t.Errorf("%s: %v", path, err)
		}
	}
	// A link made now is found at once, because it moves the file's change time.
	must(t, os.Link(root+"/ws/pair", root+"/secret/third"))
	if read(f, "/ws/pair") == nil {
		t.Error("a link made after the census is not seen")
	}
	// The rule's tree need not be there, and may be a file.
	f = open(Options{Deny: []string{root + "/none/**", root + "/else/other"}})
	must(t, read(f, "/ws/innocent"))
	if read(f, "/ws/other") == nil {
		t.Error("a link to a denied file is let through")
	}

	t.Run("unreadable", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("SKIPPED: root may read everything")
		}
		must(t, os.Chmod(root+"/secret/deep", 0))
		defer os.Chmod(root+"/secret/deep", 0o755)
		if f := open(Options{Deny: []string{root + "/secret/**"}}); read(f, "/ws/other") == nil {
			t.Error("what the denied tree holds is not known, and the link is let through")
		}
	})
	t.Run("deep", func(t *testing.T) {
		deep := root + "/secret"
		for range maxDepth + 2 {
			deep += "/d"
		}
		must(t, os.MkdirAll(deep, 0o755))
		if f := open(Options{Deny: []string{root + "/secret/**"}}); read(f, "/ws/other") == nil {
			t.Error("a tree too deep to count is taken for counted")
		}
	})
}

func TestTools(t *testing.T) {
	for _, c := range []struct{ allow, deny, yes, no string }{
		{"", "", "Read Write anything", ""},
		{"", "Write Edit MultiEdit", "Read Glob Grep NotebookEdit", "Write Edit MultiEdit"},
		{"exec browser memory Read Glob Grep", "", "Read Glob Grep", "Write Edit read READ Reader"},
		{"*", "checkpoint_*", "Read checkpoint", "checkpoint_restore checkpoint_"},
		{"Read*", "Read", "ReadX", "Read Write rEAD"},
		{"Read", "*", "", "Read Write"},
		{"R*", "Re*", "Rm", "Read"},
	} {
		p := NewTools(strings.Fields(c.allow), strings.Fields(c.deny), false)
		for _, name := range strings.Fields(c.yes) {
			if !p.Allows(name, true) {
				t.Errorf("allow %q deny %q: %s: %s", c.allow, c.deny, name, p.Why(name, true))
			}
		}
		for _, name := range strings.Fields(c.no) {
			if p.Allows(name, true) {
				t.Errorf("allow %q deny %q: %s is allowed", c.allow, c.deny, name)
			}
		}
	}
	for text, why := range map[string]string{"Write": "tools.policy.deny", "Glob": "tools.policy.allow", "Editor": "Edit*"} {
		p := NewTools([]string{"Read", "Write"}, []string{"Write", "Edit*"}, false)
		if !strings.Contains(p.Why(text, true), why) {
			t.Errorf("%s: %q does not name %s", text, p.Why(text, true), why)
		}
	}
}
