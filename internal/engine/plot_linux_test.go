//go:build linux

package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var (
	plotKills = flag.Int("kills", 150, "kills of TestKilledPlots; 60000 in a soak")
	plotSeed  = flag.Uint64("plot", 11, "the first seed of random changes")
)

// contents are a tree by name. "/" is a directory, "@x" a link to x.
type contents map[string]string

func (x *tree) contents() contents {
	x.t.Helper()
	all := contents{}
	must(x.t, filepath.WalkDir(x.ws, func(p string, d fs.DirEntry, err error) error {
		switch name, _ := filepath.Rel(x.ws, p); {
		case err != nil || name == ".":
		case d.IsDir():
			all[name] = "/"
		case d.Type()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			all[name] = "@" + target
		default:
			b, _ := os.ReadFile(p)
			all[name] = string(b)
		}
		return err
	}))
	return all
}

// lay makes the tree so, and of new objects.
func (x *tree) lay(all contents) {
	x.t.Helper()
	entries, err := os.ReadDir(x.ws)
	must(x.t, err)
	for _, e := range entries {
		must(x.t, os.RemoveAll(x.ws+"/"+e.Name()))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch c := all[name]; {
		case c == "/":
			must(x.t, os.MkdirAll(x.ws+"/"+name, 0o755))
		case strings.HasPrefix(c, "@"):
			must(x.t, os.Symlink(c[1:], x.ws+"/"+name))
		default:
			must(x.t, os.WriteFile(x.ws+"/"+name, []byte(c), 0o644))
		}
	}
}

// differs says how all is other than want, with the exception of names at, above and below but.
func (all contents) differs(want contents, but string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(all.and(want))) {
		if all[name] != want[name] && !(but != "" && strings.HasPrefix(name+"/", but+"/") || strings.HasPrefix(but, name+"/")) {
			out = append(out, fmt.Sprintf("%s is %q, not %q", name, all[name], want[name]))
		}
	}
	return out
}

// and is all with what over has; "" is absence.
func (all contents) and(over contents) contents {
	both := maps.Clone(all)
	maps.Copy(both, over)
	return both
}

func (all contents) present() contents {
	maps.DeleteFunc(all, func(_, c string) bool { return c == "" })
	return all
}

// A plot is a change of several paths, and what is there before it.
type plot struct {
	was, change contents
	stored      bool // the store holds what was there
	exchange    bool // names can trade
	nameless    bool // files can be without a name

	step string // one of passages in place of the change, its first file, and what it comes to
	file string
	made contents
}

// passage is the change of that name.
func passage(r *rand.Rand, step string) *plot {
	p := &plot{was: contents{}, change: contents{"": ""}, step: step, file: passages[step].lay[0], stored: true, exchange: r.IntN(4) > 0, nameless: r.IntN(3) > 0}
	for _, name := range passages[step].lay {
		p.was[name] = "old " + name
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			p.was[dir] = "/"
		}
	}
	return p
}

// newPlot is a random one.
func newPlot(r *rand.Rand) *plot {
	p := &plot{was: contents{"d": "/", "empty": "/"}, change: contents{}, stored: r.IntN(3) > 0, exchange: r.IntN(4) > 0, nameless: r.IntN(3) > 0}
	for _, name := range []string{"a", "b", "d/x", "d/y", "l"} {
		link := map[bool]string{true: "@"}[name == "l"]
		if r.IntN(4) > 0 {
			p.was[name] = link + "old " + name
		}
		switch k := r.IntN(6); {
		case k < 3:
			p.change[name] = link + "new " + name
		case k == 3 && p.was[name] != "":
			p.change[name] = ""
		}
	}
	if r.IntN(3) == 0 {
		p.change["n/s/f"], p.change["n/g"] = "new f", "new g"
	}
	if r.IntN(4) == 0 {
		p.change["empty"] = ""
	}
	if r.IntN(4) == 0 {
		p.change["m"] = "/"
	}
	for _, name := range slices.Sorted(maps.Keys(p.change))[min(1, len(p.change)):] {
		if r.IntN(9) == 0 { // of one path, now and then
			p.change = contents{name: p.change[name]}
			break
		}
	}
	return p
}

// after is the tree when it is made.
func (p *plot) after() contents {
	if p.step != "" {
		return maps.Clone(p.made)
	}
	all := p.was.and(p.change).present()
	for name := range p.change {
		for dir := filepath.Dir(name); dir != "." && all[name] != ""; dir = filepath.Dir(dir) {
			all[dir] = "/"
		}
	}
	return all
}

// run makes the change, beside s, which may be nil.
func (p *plot) run(x *tree, s *stranger) error {
	if p.step != "" {
		return x.does(passages[p.step].run)
	}
	f := engine.Files{Parents: true, Links: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(p.change)) {
		path := x.ws + "/" + name
		switch c := p.change[name]; {
		case c == "/":
			f.Dirs = append(f.Dirs, path)
		case p.was[name] == "/":
			f.Drop = append(f.Drop, path)
		default:
			f.Links[path] = name == "l"
			f.Paths = append(f.Paths, path)
		}
	}
	f.Next = func(ts []*engine.Target) error {
		if s != nil {
			s.seen = s.done
		}
		for i, t := range ts {
			switch c := p.change[f.Paths[i][len(x.ws)+1:]]; {
			case c == "":
				t.After = engine.After{Kind: guardfs.KindAbsent}
			case c[0] == '@':
				t.After = engine.After{Kind: guardfs.KindSymlink, Target: c[1:]}
			default:
				t.After = engine.After{Kind: guardfs.KindFile, Content: []byte(c)}
			}
		}
		return nil
	}
	return errOf(x.call("s").ChangeFiles(ctx, f))
}

// The ways in which a change is disturbed.
const (
	killed = iota
	strangerAndKill
	killAndStranger
	fails
	strangerAlone
	hows
)

// A stranger does one thing at one moment.
type stranger struct {
	does, name, content string
	id                  uint64 // of what is there by it
	done                bool
	seen                bool // the change was planned with it
}

func newStranger(r *rand.Rand, p *plot) *stranger {
	if p.step != "" {
		return &stranger{does: "replace", name: p.file, content: "old " + p.file}
	}
	names := slices.Sorted(maps.Keys(p.change))
	name := names[r.IntN(len(names))]
	s := &stranger{does: []string{"replace", "over", "remove", "clean", "replace", "over", "into"}[r.IntN(7)], name: name, content: "theirs"}
	if c := []string{"theirs", p.change[name], p.was[name]}[r.IntN(3)]; c != "" && !strings.HasPrefix(c, "@") && c != "/" {
		s.content = c
	}
	if s.does == "into" {
		s.name = []string{"n", "d", "m"}[r.IntN(3)] + "/theirs"
	}
	return s
}

func (s *stranger) act(x *tree) {
	at := x.ws + "/" + s.name
	i, err := os.Lstat(at)
	file := err == nil && i.Mode().IsRegular()
	switch s.does {
	case "replace":
		if err == nil && i.IsDir() {
			return
		}
		os.MkdirAll(filepath.Dir(at), 0o755) //nolint:errcheck // then it can't be put there
		must(x.t, os.WriteFile(x.ws+"/theirs", []byte(s.content), 0o644))
		s.done = os.Rename(x.ws+"/theirs", at) == nil
		os.Remove(x.ws + "/theirs") //nolint:errcheck // it has gone there
	case "over":
		if file {
			s.done = os.WriteFile(at, []byte(s.content), 0) == nil
			must(x.t, os.Chtimes(at, i.ModTime().Add(1e9), i.ModTime().Add(1e9))) // a tick of the clock is a moment here
		}
	case "remove":
		s.done = file && os.Remove(at) == nil
	case "into":
		s.done = os.WriteFile(at, []byte(s.content), 0o644) == nil
	case "clean": // as git clean does
		for name := range x.contents() {
			if strings.Contains(name, ".moltis-") {
				s.done = os.RemoveAll(x.ws+"/"+name) == nil
			}
		}
	}
	if i, err := os.Lstat(at); err == nil && s.done {
		s.id = i.Sys().(*syscall.Stat_t).Ino
	}
}

// plots plays kills of random changes until one falls, and counts what it played. bad is a rule of recovery that is known to be so.
func plots(t *testing.T, bad string, seed uint64, kills int, n map[string]int) error {
	r := rand.New(rand.NewPCG(seed, 12))
	for n["kills"] < kills {
		p := newPlot(r)
		if steps := slices.Sorted(maps.Keys(passages)); r.IntN(4) == 0 {
			p = passage(r, steps[r.IntN(len(steps))])
		}
		if len(p.change) == 0 {
			continue
		}
		x := grow(t, func(c *config.FS) {
			if !p.stored {
				c.Checkpoint.MaxFileBytes = 2
			}
		})
		x.Close()
		x.calls = p.calls(t)
		system := callsOf(x)
		other := x.open2(x.ws)
		x.lay(p.was)
		if err := p.run(x, nil); err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		if p.step != "" {
			p.made = x.contents()
		}
		if d := x.contents().differs(p.after(), ""); d != nil {
			t.Fatalf("%+v is not made: %v", p, d)
		}
		for at, met := int64(1), true; met && n["kills"] < kills; at++ {
			for how := range hows {
				if p.step != "" && (how == strangerAndKill || how == strangerAlone) { // theirs would go along
					continue
				}
				there, fell := p.play(x, system, other, bad, r, at, how, n)
				if how == killed {
					met = there
				}
				if fell != "" {
					return fmt.Errorf("%+v at %d, %d: %s\nis %v", p, at, how, fell, x.contents())
				}
			}
		}
		must(t, errors.Join(x.Close(), other.Close(), os.RemoveAll(x.dir())))
	}
	return nil
}

// play is one round: a kill, one with a stranger before or after it, some calls that fail, or a stranger alone, before the at-th call.
// met: there are so many. fell is what is broken after it.
func (p *plot) play(x *tree, system *calls, other *tree, bad string, r *rand.Rand, at int64, how int, n map[string]int) (met bool, fell string) {
	x.lay(p.was)
	objects := x.objects()
	var s *stranger
	if how == strangerAndKill || how == killAndStranger || how == strangerAlone {
		s = newStranger(r, p)
	}
	var err error
	run := func() error { err = p.run(x, s); return err }
	switch how {
	case fails:
		bad := badCall{guardfs.Fault{Err: []error{syscall.ENOSPC, syscall.EIO}[r.IntN(2)]}, false}
		hit, _ := system.failFor(1+r.Int64N(150), int64(1+r.IntN(6)), bad, run)
		if hit != "" {
			n["faults"]++
		}
	case strangerAlone:
		meet := moment(1+r.Int64N(90), func() { s.act(x) })
		system.hook.Store(&meet)
		run() //nolint:errcheck // it is looked at below
		system.hook.Store(nil)
	default:
		if how == strangerAndKill {
			look := moment(1+r.Int64N(60), func() { s.act(x) })
			system.look = func() { look("") }
		}
		met, _ = system.ends(at, run)
		system.look = nil
	}
	over := how != fails && how != strangerAlone && met
	if over {
		n["kills"]++
	}
	if how == killAndStranger {
		s.act(x)
	}
	if s != nil && s.done {
		n[s.does]++
	}
	if bad != "" {
		if bad == "remove" { // what was there before, under its temporary name
			for name, c := range x.contents() {
				if strings.Contains(name, ".moltis-") && strings.HasPrefix(c, "old") {
					must(x.t, os.Remove(x.ws+"/"+name))
				}
			}
		}
		other.RecoverBy(ctx, bad) //nolint:errcheck // it is bad
	}
	p.recover(x, r, n)
	if fell = p.judge(x, s, how, over, err); fell == "" && how == killed && x.contents().differs(p.was, "") == nil && x.objects() != objects {
		fell = "other objects came back\n" + x.objects() + "were\n" + objects
	}
	return met, fell
}

// moment has do be done once, before the at-th call.
func moment(at int64, do func()) func(string) *guardfs.Fault {
	var count atomic.Int64
	return func(string) *guardfs.Fault {
		if count.Add(1) == at {
			do()
		}
		return nil
	}
}

// recover is another start, which is killed a few times itself, and at times runs beside another one.
func (p *plot) recover(x *tree, r *rand.Rand, n map[string]int) {
	y := *x
	for try := 0; ; try++ {
		system := &calls{}
		y.fault = func(op string) *guardfs.Fault {
			if h := system.hook.Load(); h != nil {
				return (*h)(op)
			}
			return nil
		}
		again := false
		start := func() error { y.open(); return nil }
		switch {
		case try < 4 && r.IntN(2) == 0:
			again, _ = system.ends(1+r.Int64N(8), start)
			n["recoveries killed"]++
		case r.IntN(16) == 0:
			z := *x
			z.fault = nil
			meet := moment(1+r.Int64N(60), func() { z.open(); must(x.t, z.Close()); n["recoveries at once"]++ })
			system.hook.Store(&meet)
			start() //nolint:errcheck // it has no error
			system.hook.Store(nil)
		default:
			start() //nolint:errcheck // see above
		}
		must(x.t, y.Close())
		if !again {
			return
		}
	}
}

// judge compares the tree after the starts with the promises, and says which one is broken; "" for none.
func (p *plot) judge(x *tree, s *stranger, how int, over bool, err error) (fell string) {
	all, after := x.contents(), p.after()
	if left := x.halfWay(); left != nil {
		return fmt.Sprint("open still: ", left)
	}
	but, kept := "", 0
	for name := range all {
		if strings.HasSuffix(name, ".kept") {
			kept++
			delete(all, name)
		} else if strings.Contains(name, ".moltis-") {
			return name + " is left"
		}
	}
	for name, c := range all { // one that can't be removed stays, and is told: a call that fails is no kill there
		if c == "/" && p.was[name] == "/" && (name == "empty" || p.step == "a tree goes" || x.bestEffort()) {
			after[name] = "/"
		}
	}
	whole := s == nil || !s.done
	before := p.was
	switch {
	case whole:
	case s.does == "clean": // of what was removed nothing tells then by whom
		before = before.and(nil)
		for name, c := range p.change {
			if c == "" && all[name] == "" {
				delete(before, name)
			}
		}
	default:
		but = s.name
	}
	was, made := all.differs(before, but), all.differs(after, but)
	switch {
	case how == fails && kept > 0: // what can't be put back at once is kept beside, and told
		return ""
	case whole && kept > 0:
		return "something is kept"
	case !whole && s.does == "clean" && !p.stored && was != nil && made != nil: // not promised
		return ""
	case was != nil && made != nil:
		return fmt.Sprintf("neither as before: %v, nor as after: %v, beside %+v", was, made, s)
	case err == nil && !over && made != nil:
		return fmt.Sprint("said to be made: ", made)
	}
	if whole || s.does == "remove" || s.does == "clean" {
		return ""
	}
	if i, err := os.Lstat(x.ws + "/" + s.name); how == killAndStranger && s.does != "over" && (err != nil || i.Sys().(*syscall.Stat_t).Ino != s.id) {
		return "what they put there after the kill is another: " + all[s.name]
	}
	if !x.holds(s.content) && s.content != p.was[s.name] && !(s.does == "over" && s.content == p.change[s.name]) && p.exchange && (p.stored || !s.seen) {
		return fmt.Sprintf("what they wrote is lost: %+v", s)
	}
	return ""
}

// holds says that a content is in the tree, in the trash, or in the store.
func (x *tree) holds(content string) bool {
	x.t.Helper()
	files, _ := x.trashed()
	for name := range x.contents() {
		files = append(files, x.ws+"/"+name)
	}
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && string(b) == content {
			return true
		}
	}
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
	must(x.t, err)
	defer db.Close()
	_, err = db.Content(ctx, engine.HashOf([]byte(content)))
	return err == nil
}

// A random change of several paths is killed before each of its calls, alone or with others at work, or some calls fail; the starts that
// bring it to its end are killed, and run at once. After that all is as before or as it should become, and what others wrote is there.
func TestKilledPlots(t *testing.T) {
	t.Parallel()
	n := map[string]int{}
	must(t, plots(t, "", *plotSeed, *plotKills, n))
	t.Log(n)
}

// Every rule of recovery that is known to be bad falls.
func TestBadRecoveriesFall(t *testing.T) {
	for _, bad := range []string{"remove", "asafter", "norow"} {
		n := map[string]int{}
		err := plots(t, bad, 11, 2000, n)
		t.Logf("%s: %.300v after %d kills", bad, err, n["kills"])
		if err == nil {
			t.Errorf("%s does not fall: the test tests nothing", bad)
		}
	}
}
